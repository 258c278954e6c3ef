/** Pooling over planes, the last two dimensions; geometries come checked from `ops/pooling.ts`, where the public functions are. */

import type { AvgPoolGeometry, PoolGeometry } from '../../kernels/table/table.js'
import { kernelsFor } from '../../tensor/device.js'
import { Tensor } from '../../tensor/tensor.js'
import { isFloating } from '../../values/dtype.js'
import { dtypeMismatch } from '../../values/errors.js'
import { contiguous } from '../copy.js'

/** x […, H, W] → the maxima […, oH, oW] and where they stand: int32 y · W + x. @throws DTYPE_MISMATCH */
export function maxPoolPlanes(x: Tensor, g: PoolGeometry): readonly [Tensor, Tensor] {
  checkReal('maxPool2d', x)
  const shape = [...x.shape.slice(0, -2), g.oh, g.ow]
  const out = Tensor.uninitialized(x.dtype, shape, x.storage.memory)
  const indices = Tensor.uninitialized('int32', shape, x.storage.memory)
  kernelsFor(x).maxPool2d[x.dtype](contiguous(x), out, indices, g)
  return [out, indices]
}

/** x […, H, W] → the means of the windows […, oH, oW]. @throws DTYPE_MISMATCH */
export function avgPoolPlanes(x: Tensor, g: AvgPoolGeometry): Tensor {
  return average('avgPool2d', x, g.oh, g.ow, g)
}

/** Its adjoint: each mean's gradient […, oH, oW] in equal parts to what it was taken of. @throws DTYPE_MISMATCH */
export function avgPoolSpread(grad: Tensor, g: AvgPoolGeometry): Tensor {
  return average('avgPool2dBackward', grad, g.h, g.w, g)
}

function average(op: 'avgPool2d' | 'avgPool2dBackward', x: Tensor, h: number, w: number, g: AvgPoolGeometry): Tensor {
  checkReal(op, x)
  const out = Tensor.uninitialized(x.dtype, [...x.shape.slice(0, -2), h, w], x.storage.memory)
  kernelsFor(x)[op][x.dtype](contiguous(x), out, g)
  return out
}

function checkReal(op: string, x: Tensor): void {
  if (!isFloating(x.dtype)) throw dtypeMismatch(op, 'a floating point tensor', x.dtype, "Convert with to('float32') first.")
}
