/**
 * Primitives of windows over planes, the last two dimensions: pools, and a convolution with its two adjoints, each bilinear, so that the derivatives of each are the
 * other two. `convolution.ts` and `pooling.ts` check the geometries.
 */

import type { AvgPoolGeometry, ConvGeometry, PoolGeometry } from '../../kernels/table/neural.js'
import { contiguous } from '../../raw/copy.js'
import { tensor } from '../../tensor/create.js'
import { type Device, kernelsFor } from '../../tensor/device.js'
import { Tensor } from '../../tensor/tensor.js'
import { isFloating } from '../../values/dtype.js'
import { dtypeMismatch } from '../../values/errors.js'
import type { Shape } from '../../values/shape.js'
import { type Functional, primitive, rawOperations } from '../define/define.js'
import { result } from '../define/formula.js'
import { scattered } from '../parts/at-indices.js'
import { floatingOnly } from '../parts/fibres.js'

/** x [N, C, H, W], weight [O, C / groups, kH, kW] → [N, O, oH, oW]: for `conv2d` and its siblings. */
export const convolution: Functional<(x: Tensor, weight: Tensor, bias: Tensor | null, geometry: ConvGeometry) => Tensor> = primitive(
  'convolution',
  {
    raw: (x, weight, bias, g) => {
      if (bias !== null) checkDTypes('conv2d', weight, bias)
      return bilinear('conv2d', x, weight, [g.n, g.o, g.oh, g.ow], g, bias)
    },
    grad: {
      reads: [[1], [0], []],
      grads: ([grad], s, ops) => {
        // Each of the three would copy it otherwise.
        const g = grad!.isContiguous ? grad! : ops.contiguous(grad!)
        return [
          s.needs(0) ? ops.convolutionInput(g, s.tensor(1), s.attrs[0]) : null,
          s.needs(1) ? ops.convolutionWeight(s.tensor(0), g, s.attrs[0]) : null,
          s.needs(2) ? ops.sum(g, [0, 2, 3]) : null,
        ]
      },
    },
  },
)

/** Its adjoint in x, from grad [N, O, oH, oW] and weight: a transposed convolution. */
export const convolutionInput: Functional<(grad: Tensor, weight: Tensor, geometry: ConvGeometry) => Tensor> = primitive(
  'convolutionInput',
  {
    raw: (grad, weight, g) => bilinear('conv2dInput', grad, weight, [g.n, g.c, g.h, g.w], g),
    grad: {
      reads: [[1], [0]],
      grads: ([g], s, ops) => [
        s.needs(0) ? ops.convolution(g!, s.tensor(1), null, s.attrs[0]) : null,
        s.needs(1) ? ops.convolutionWeight(g!, s.tensor(0), s.attrs[0]) : null,
      ],
    },
  },
)

/** Its adjoint in the weight. */
export const convolutionWeight: Functional<(x: Tensor, grad: Tensor, geometry: ConvGeometry) => Tensor> = primitive('convolutionWeight', {
  raw: (x, grad, g) => bilinear('conv2dWeight', x, grad, [g.o, g.c / g.groups, g.kh, g.kw], g),
  grad: {
    reads: [[1], [0]],
    grads: ([g], s, ops) => [
      s.needs(0) ? ops.convolutionInput(s.tensor(1), g!, s.attrs[0]) : null,
      s.needs(1) ? ops.convolution(s.tensor(0), g!, null, s.attrs[0]) : null,
    ],
  },
})

/** x […, H, W] → maxima and their places (int32 y · W + x) […, oH, oW]. */
export const maxPoolPlanes: Functional<(x: Tensor, geometry: PoolGeometry) => readonly [Tensor, Tensor]> = primitive('maxPoolPlanes', {
  raw: (x, g) => {
    floatingOnly('maxPool2d', x)
    const shape = withPlanes(x.shape, g.oh, g.ow)
    const out = Tensor.uninitialized(x.dtype, shape, x.storage.memory)
    const indices = Tensor.uninitialized('int32', shape, x.storage.memory)
    kernelsFor(x).maxPool2d[x.dtype](contiguous(x), out, indices, g)
    return [out, indices]
  },
  grad: {
    reads: [[result(1)]],
    grads: ([g], s, ops) => {
      const { planes, h, w, oh, ow } = s.attrs[0]
      const zeros = Tensor.empty(g!.dtype, [planes, h * w], g!.storage.memory)
      const blind = blindWindows(s.attrs[0], g!.device)
      const places = blind === null ? s.result(1) : ops.where(blind, 0, s.result(1))
      const grad = blind === null ? g! : ops.where(blind, 0, g!)
      const [at, from] = [ops.reshape(places, [planes, oh * ow]), ops.reshape(grad, [planes, oh * ow])]
      // Unless it is recorded, into the zeros themselves.
      const spread = ops === rawOperations ? scattered('scatterAdd', zeros, 1, at, from, 'gradient') : ops.scatterAdd(zeros, 1, at, from)
      return [ops.reshape(spread, s.shape(0))]
    },
  },
})

/** x […, H, W] → means […, oH, oW]. */
export const avgPoolPlanes: Functional<(x: Tensor, geometry: AvgPoolGeometry) => Tensor> = primitive('avgPoolPlanes', {
  raw: (x, g) => average('avgPool2d', x, g.oh, g.ow, g),
  grad: { reads: [[]], grads: ([g], s, ops) => [ops.avgPoolSpread(g!, s.attrs[0])] },
})

/** Its adjoint: the gradient of each mean in equal parts to what it was taken of. */
export const avgPoolSpread: Functional<(grad: Tensor, geometry: AvgPoolGeometry) => Tensor> = primitive('avgPoolSpread', {
  raw: (grad, g) => average('avgPool2dBackward', grad, g.h, g.w, g),
  grad: { reads: [[]], grads: ([g], s, ops) => [ops.avgPoolPlanes(g!, s.attrs[0])] },
})

function bilinear(
  op: 'conv2d' | 'conv2dInput' | 'conv2dWeight',
  a: Tensor,
  b: Tensor,
  shape: Shape,
  g: ConvGeometry,
  bias: Tensor | null = null,
): Tensor {
  checkDTypes(op, a, b)
  const out = Tensor.uninitialized(a.dtype, shape, a.storage.memory)
  kernelsFor(a)[op][a.dtype](contiguous(a), contiguous(b), bias && contiguous(bias), out, g)
  return out
}

function checkDTypes(op: string, a: Tensor, b: Tensor): void {
  if (a.dtype === b.dtype && isFloating(a.dtype)) return
  throw dtypeMismatch(op, 'one floating point dtype for input, weight and bias', `${a.dtype} and ${b.dtype}`, `Convert with to('float32').`)
}

function average(op: 'avgPool2d' | 'avgPool2dBackward', x: Tensor, h: number, w: number, g: AvgPoolGeometry): Tensor {
  floatingOnly(op, x)
  const out = Tensor.uninitialized(x.dtype, withPlanes(x.shape, h, w), x.storage.memory)
  kernelsFor(x)[op][x.dtype](contiguous(x), out, g)
  return out
}

/** The shape with planes of another size. */
function withPlanes(shape: Shape, h: number, w: number): Shape {
  const out = shape.slice()
  out[out.length - 2] = h
  out[out.length - 1] = w
  return out
}

/** [oh, ow]: the windows that see nothing but padding, whose place lies outside of the plane; null where there are none. */
function blindWindows({ h, w, kh, kw, oh, ow, strideH, strideW, padH, padW, dilH, dilW }: PoolGeometry, device: Device): Tensor | null {
  const blind = (outs: number, stride: number, pad: number, k: number, dil: number, extent: number): boolean[] =>
    Array.from({ length: outs }, (_, o) => {
      const from = o * stride - pad
      const first = from >= 0 ? from : from + Math.ceil(-from / dil) * dil
      return first >= extent || first > from + (k - 1) * dil
    })
  const rows = blind(oh, strideH, padH, kh, dilH, h)
  const columns = blind(ow, strideW, padW, kw, dilW, w)
  if (!rows.includes(true) && !columns.includes(true)) return null
  const planes = rows.map((row) => columns.map((column) => row || column))
  return tensor(planes, { device })
}
