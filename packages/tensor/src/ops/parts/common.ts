/** Small parts that several operations are made of. */
import { arange } from '../../tensor/create.js'
import { Tensor } from '../../tensor/tensor.js'
import { invalidArgument, shapeText } from '../../values/errors.js'
import { numelOf, type Shape } from '../../values/shape.js'
import type { Ops } from '../define/define.js'

/** softplus(x) is x beyond this, in float64 too: e⁻⁴⁰ < 2⁻⁵³. */
export const SOFTPLUS_EXACT = 40

/** `bound` where x is below it, else x. The gradient ignores the bound, as where PyTorch bounds without recording. */
export function atLeast(ops: Ops, x: Tensor, bound: number): Tensor {
  const held = x.requiresGrad ? x.detach() : x
  return ops.where(ops.lt(held, bound), ops.add(ops.sub(x, held), bound), x)
}

/** int32 [length], where x lies: indices for an operation on it. */
export function placesFor(x: Tensor, length: number, at: (i: number) => number): Tensor {
  const places = new Int32Array(length)
  for (let i = 0; i < length; i++) places[i] = at(i)
  return Tensor.over('int32', [length], places, x.storage.memory)
}

/** [..., k] → [..., rows, columns] with it at [i, i + offset] (i counted from where the diagonal begins), zeros elsewhere. */
export function embedDiagonal(ops: Ops, x: Tensor, rows: number, columns: number, offset: number): Tensor {
  const batch = x.shape.slice(0, -1)
  const k = x.shape.at(-1)!
  const first = Math.max(-offset, 0) * columns + Math.max(offset, 0)
  const n = numelOf(batch)
  const places = ops.expand(
    placesFor(x, k, (i) => first + i * (columns + 1)),
    [n, k],
  )
  const zeros = Tensor.empty(x.dtype, [n, rows * columns], x.storage.memory)
  return ops.reshape(ops.scatter(zeros, 1, places, ops.reshape(x, [n, k])), [...batch, rows, columns])
}

/** x […, k] as […, k, k]: row i is x with a 1 in the place of its element i. */
export function withoutEach(x: Tensor, ops: Ops): Tensor {
  const k = x.shape.at(-1)!
  const index = arange(0, k, 1, { dtype: 'int32', device: x.device })
  return ops.where(ops.eq(ops.unsqueeze(index, 1), index), 1, ops.unsqueeze(x, -2))
}

/** @throws INVALID_ARGUMENT unless `pads` holds pairs of integers for at most all dimensions */
export function checkPads(op: string, shape: Shape, pads: readonly number[]): void {
  const ndim = shape.length
  if (Array.isArray(pads) && pads.length % 2 === 0 && pads.length <= 2 * ndim && [...pads].every(Number.isSafeInteger)) return
  const got = Array.isArray(pads) ? shapeText(pads) : typeof pads
  throw invalidArgument(op, `pairs of integers for at most ${ndim} dimensions, the last dimension first`, got)
}
