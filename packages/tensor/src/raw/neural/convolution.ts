/**
 * A convolution and its two adjoints, each bilinear, so that the derivatives of each are the other two. Geometries come checked from
 * `ops/convolution.ts`, where the public functions are.
 */

import type { ConvGeometry } from '../../kernels/table/table.js'
import { kernelsFor } from '../../tensor/device.js'
import { Tensor } from '../../tensor/tensor.js'
import { isFloating } from '../../values/dtype.js'
import { dtypeMismatch } from '../../values/errors.js'
import type { Shape } from '../../values/shape.js'
import { contiguous } from '../copy.js'

/** x [N, C, H, W], weight [O, C / groups, kH, kW], bias [O] → [N, O, oH, oW]. @throws DTYPE_MISMATCH */
export function convolution(x: Tensor, weight: Tensor, bias: Tensor | null, g: ConvGeometry): Tensor {
  const out = bilinear('conv2d', x, weight, [g.n, g.o, g.oh, g.ow], g)
  if (bias !== null) {
    checkDTypes('conv2d', weight, bias)
    const each = Tensor.view(bias, [g.o, 1, 1], [bias.strides[0]!, 0, 0], bias.offset)
    kernelsFor(x).add[x.dtype](out, each, out)
  }
  return out
}

/** What `grad` [N, O, oH, oW] of a convolution's result gives for its x. @throws DTYPE_MISMATCH */
export function convolutionInput(grad: Tensor, weight: Tensor, g: ConvGeometry): Tensor {
  return bilinear('conv2dInput', grad, weight, [g.n, g.c, g.h, g.w], g)
}

/** What it gives for its weight. @throws DTYPE_MISMATCH */
export function convolutionWeight(x: Tensor, grad: Tensor, g: ConvGeometry): Tensor {
  return bilinear('conv2dWeight', x, grad, [g.o, g.c / g.groups, g.kh, g.kw], g)
}

function bilinear(op: 'conv2d' | 'conv2dInput' | 'conv2dWeight', a: Tensor, b: Tensor, shape: Shape, g: ConvGeometry): Tensor {
  checkDTypes(op, a, b)
  const out = Tensor.uninitialized(a.dtype, shape, a.storage.memory)
  kernelsFor(a)[op][a.dtype](contiguous(a), contiguous(b), out, g)
  return out
}

function checkDTypes(op: string, a: Tensor, b: Tensor): void {
  if (a.dtype === b.dtype && isFloating(a.dtype)) return
  throw dtypeMismatch(op, 'one floating point dtype for input, weight and bias', `${a.dtype} and ${b.dtype}`, `Convert with to('float32').`)
}
