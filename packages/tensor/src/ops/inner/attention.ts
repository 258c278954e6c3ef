/** Attention whose scores are not kept: a kernel computes it by blocks of queries, and its gradients by computing the scores again. */
import { contiguous } from '../../raw/copy.js'
import { fusedKernel } from '../../tensor/device.js'
import { Tensor } from '../../tensor/tensor.js'
import { broadcastStrides, broadcastsTo, numelOf, type Shape, sameShape } from '../../values/shape.js'
import { type Functional, type Ops, primitive, rawOperations } from '../define/define.js'
import type { ManySaved } from '../define/formula.js'
import { limitsOf, sharesOf } from '../parts/attention.js'
import { sumToShape } from '../parts/dims.js'

/**
 * softmax(mask(q scale kᵀ)) v of query […, L, E], key […, S, E], value […, S, V] → […, L, V]. The mask has no gradient. Where `isAttended` says no, it is made of
 * operations.
 */
export const attention: Functional<
  (query: Tensor, key: Tensor, value: Tensor, mask: Tensor | null, scale: number, isCausal: boolean) => Tensor
> = primitive('attention', {
  raw: (query, key, value, mask, scale, isCausal) => {
    const kernel = isAttended(query, key, value, mask) ? fusedKernel('attention', query) : null
    if (kernel === null) {
      return rawOperations.matmul(sharesOf(rawOperations, rawOperations.mul(query, scale), key, mask, isCausal), value)
    }
    const lead = leadOf(query, key, value)
    const out = Tensor.uninitialized(query.dtype, [...lead, query.shape.at(-2)!, value.shape.at(-1)!], query.storage.memory)
    const [q, k, v, o] = [query, key, value, out].map((x) => matrices(x, lead)) as [Tensor, Tensor, Tensor, Tensor]
    kernel(q, k, v, masksOf(mask, lead, q, k), o, scale, isCausal)
    return out
  },
  grad: {
    reads: [[0, 1, 2, 3], [0, 1, 2, 3], [0, 1, 2, 3], null],
    isFused: true,
    grads: ([g], s, ops) => [...(ops === rawOperations ? attendedGrads(g!, s) : composedGrads(g!, s, ops)), null],
  },
})

/** Whether the device has a kernel for these operands: of one floating dtype, with fitting shapes that are not empty, and a mask that has no gradient. */
export function isAttended(query: Tensor, key: Tensor, value: Tensor, mask: Tensor | null): boolean {
  const { dtype, storage } = query
  if (fusedKernel('attention', query) === null) return false
  for (const x of [query, key, value]) {
    if (x.ndim < 2 || x.dtype !== dtype || x.isSparse || x.storage.memory !== storage.memory || x.numel === 0) return false
  }
  if (query.shape.at(-1) !== key.shape.at(-1) || key.shape.at(-2) !== value.shape.at(-2)) return false
  const lead = leadOf(query, key, value)
  if (![query, key, value].every((x) => broadcastsTo(x.shape.slice(0, -2), lead))) return false
  if (mask === null) return true
  const scores = [...lead, query.shape.at(-2)!, key.shape.at(-2)!]
  return (mask.dtype === 'bool' || mask.dtype === dtype) && !mask.requiresGrad && broadcastsTo(mask.shape, scores)
}

/** The leading dimensions of the result, if those of the operands fit. */
function leadOf(...operands: readonly Tensor[]): Shape {
  const leads = operands.map(({ shape }) => shape.slice(0, -2))
  const lead = new Array<number>(Math.max(...leads.map((each) => each.length))).fill(1)
  for (const each of leads) for (const [d, extent] of each.entries()) if (extent !== 1) lead[lead.length - each.length + d] = extent
  return lead
}

/** x as [A, B, rows, width], with its leading dimensions spread to `lead`; a view where it has at most two of them. */
function matrices(x: Tensor, lead: Shape): Tensor {
  const dense = x.strides.at(-1) === 1 || x.shape.at(-1) === 1 ? x : contiguous(x)
  const [rows, width] = x.shape.slice(-2) as [number, number]
  const strides = broadcastStrides(dense.shape, dense.strides, [...lead, rows, width])
  const spread = Tensor.view(dense, [...lead, rows, width], strides, dense.offset)
  const [a, b] = [numelOf(lead.slice(0, -1)), lead.at(-1) ?? 1]
  return rawOperations.reshape(spread, [a, b, rows, width])
}

/** A mask as [A, B, L, S], with a place of its own for each key, so that a row of it lies densely. */
function masksOf(mask: Tensor | null, lead: Shape, q: Tensor, k: Tensor): Tensor | null {
  if (mask === null) return null
  const [rows, keys] = [q.shape[2]!, k.shape[2]!]
  const own = mask.ndim === 0 ? [keys] : mask.shape.with(-1, keys)
  const wide = sameShape(own, mask.shape) ? mask : contiguous(rawOperations.expand(mask, own))
  const spread = broadcastStrides(wide.shape, wide.strides, [...lead, rows, keys])
  return matrices(Tensor.view(wide, [...lead, rows, keys], spread, wide.offset), lead)
}

type Attended = ManySaved<[scale: number, isCausal: boolean]>

function attendedGrads(g: Tensor, s: Attended): (Tensor | null)[] {
  const [query, key, value, mask] = [s.tensor(0), s.tensor(1), s.tensor(2), s.arg(3)]
  const kernel = isAttended(query, key, value, mask) ? fusedKernel('attentionBackward', query) : null
  if (kernel === null) return composedGrads(g, s, rawOperations)
  const lead = leadOf(query, key, value)
  const [q, k, v] = [query, key, value].map((x) => matrices(x, lead)) as [Tensor, Tensor, Tensor]
  const outs = [q, k, v].map((x, i) => (s.needs(i) ? Tensor.uninitialized(x.dtype, x.shape, x.storage.memory) : null))
  const [dq, dk, dv] = outs as [Tensor | null, Tensor | null, Tensor | null]
  kernel(matrices(g, lead), q, k, v, masksOf(mask, lead, q, k), dq, dk, dv, ...s.attrs)
  return outs.map((x, i) => x && sumToShape(rawOperations.reshape(x, [...lead, ...x.shape.slice(2)]), s.shape(i)))
}

/** The same out of operations: dv = Pᵀ g, and with dS = P (g vᵀ − Σ P g vᵀ): dq = dS k · scale, dk = dSᵀ (q · scale). */
function composedGrads(g: Tensor, s: Attended, ops: Ops): (Tensor | null)[] {
  const [scale, isCausal] = s.attrs
  const turned = (x: Tensor): Tensor => ops.transpose(x, -2, -1)
  const scaled = ops.mul(s.tensor(0), scale)
  const shares = sharesOf(ops, scaled, s.tensor(1), s.arg(3), isCausal)
  const forValue = s.needs(2) ? sumToShape(ops.matmul(turned(shares), g), s.shape(2)) : null
  if (!s.needs(0) && !s.needs(1)) return [null, null, forValue]
  const slopes = ops.matmul(g, turned(s.tensor(2)))
  const all = ops.mul(shares, ops.sub(slopes, ops.sum(ops.mul(slopes, shares), -1, true)))
  const limits = limitsOf(ops, scaled, s.tensor(1), s.arg(3), isCausal)
  // A row that sees no key has NaN, which must not reach the gradients of the keys.
  const forScores = limits?.dtype === 'bool' ? ops.where(limits, all, 0) : all
  return [
    s.needs(0) ? sumToShape(ops.mul(ops.matmul(forScores, s.tensor(1)), scale), s.shape(0)) : null,
    s.needs(1) ? sumToShape(ops.matmul(turned(forScores), scaled), s.shape(1)) : null,
    forValue,
  ]
}
