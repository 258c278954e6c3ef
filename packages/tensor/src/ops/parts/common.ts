/** Small parts that several operations are made of. */
import { arange } from '../../tensor/create.js'
import { Tensor } from '../../tensor/tensor.js'
import { numelOf } from '../../values/shape.js'
import type { Ops } from '../define/define.js'

/** softplus(x) is x beyond this, in float64 too: e⁻⁴⁰ < 2⁻⁵³. */
export const SOFTPLUS_EXACT = 40

/** `bound` where x is below it; the gradient goes on as if it were not, as PyTorch has it where it bounds without recording. */
export function atLeast(ops: Ops, x: Tensor, bound: number): Tensor {
  const held = x.requiresGrad ? x.detach() : x
  return ops.where(ops.lt(held, bound), ops.add(ops.sub(x, held), bound), x)
}

/** [..., k] → [..., rows, columns] with it at [i, i + offset] (i counted from where the diagonal begins), zeros elsewhere. */
export function embedDiagonal(ops: Ops, x: Tensor, rows: number, columns: number, offset: number): Tensor {
  const batch = x.shape.slice(0, -1)
  const k = x.shape.at(-1)!
  const first = Math.max(-offset, 0) * columns + Math.max(offset, 0)
  const places = Tensor.over(
    'int32',
    [1, k],
    Int32Array.from({ length: k }, (_, i) => first + i * (columns + 1)),
    x.storage.memory,
  )
  const n = numelOf(batch)
  const flat = ops.scatter(
    Tensor.empty(x.dtype, [n, rows * columns], x.storage.memory),
    1,
    ops.expand(places, [n, k]),
    ops.reshape(x, [n, k]),
  )
  return ops.reshape(flat, [...batch, rows, columns])
}

/** x […, k] as […, k, k]: row i is x with a 1 in the place of its element i. */
export function withoutEach(x: Tensor, ops: Ops): Tensor {
  const k = x.shape.at(-1)!
  const index = arange(0, k, 1, { dtype: 'int32', device: x.device })
  return ops.where(ops.eq(ops.unsqueeze(index, 1), index), 1, ops.unsqueeze(x, -2))
}
