/** Products of vectors and matrices as compositions of `matmul`: they add names, checks and factors. Beside: `einsum.ts`. */

import type { Ops } from '../ops/ops.js'
import type { AddmmOptions, ContractionOps } from '../ops/ops-indexing.js'
import { Tensor } from '../tensor/tensor.js'
import { isFloating, promote } from '../values/dtype.js'
import { dtypeMismatch, invalidArgument, shapeMismatch, shapeText } from '../values/errors.js'
import { normalizeDim, numelOf } from '../values/shape.js'
import { atLeast } from './arithmetic.js'
import { einsum } from './einsum.js'

export function contractionComposites(ops: Ops<Tensor>): ContractionOps<Tensor> {
  return {
    dot(a, b) {
      checkRanks('dot', '[k] and [k]', a, 1, b, 1)
      return ops.matmul(a, b)
    },

    outer(a, b) {
      checkRanks('outer', '[m] and [n]', a, 1, b, 1)
      return ops.mul(ops.unsqueeze(a, 1), b)
    },

    mv(a, b) {
      checkRanks('mv', '[m, k] and [k]', a, 2, b, 1)
      return ops.matmul(a, b)
    },

    mm(a, b) {
      checkRanks('mm', '[m, k] and [k, n]', a, 2, b, 2)
      return ops.matmul(a, b)
    },

    addmm(x, a, b, options) {
      checkRanks('addmm', '[m, k] and [k, n]', a, 2, b, 2)
      return added(ops, 'addmm', x, ops.matmul(a, b), options)
    },

    baddbmm: (x, a, b, options) => added(ops, 'baddbmm', x, ops.bmm(a, b), options),

    tensordot(a, b, dims = 2) {
      const [da, db] = contracted(a, b, dims)
      const rest = (x: Tensor, taken: readonly number[]) => x.shape.map((_, d) => d).filter((d) => !taken.includes(d))
      const [ra, rb] = [rest(a, da), rest(b, db)]
      const extents = (x: Tensor, list: readonly number[]) => list.map((d) => x.shape[d]!)
      const k = numelOf(extents(a, da))
      const left = ops.reshape(ops.permute(a, [...ra, ...da]), [numelOf(extents(a, ra)), k])
      const right = ops.reshape(ops.permute(b, [...db, ...rb]), [k, numelOf(extents(b, rb))])
      return ops.reshape(ops.matmul(left, right), [...extents(a, ra), ...extents(b, rb)])
    },

    einsum: (equation, ...operands) => einsum(ops, equation, operands.flat() as Tensor[]),

    trace(x) {
      if (x.ndim !== 2) throw shapeMismatch('trace', 'a matrix', shapeText(x.shape), 'Use diagonal() and sum() for batches.')
      return ops.sum(ops.diagonal(x))
    },

    cosineSimilarity(a, b, { dim = 1, eps = 1e-8 } = {}) {
      const [x, y] = ops.broadcastTensors([a, b]) as [Tensor, Tensor]
      const d = normalizeDim('cosineSimilarity', dim, x.ndim)
      if (!isFloating(promote(x.dtype, y.dtype)))
        throw dtypeMismatch('cosineSimilarity', 'floating point tensors', x.dtype, "Convert with to('float32').")
      // Each norm has its own bound, and no square of one meets the other's: that could overflow.
      const direction = (t: Tensor) => ops.div(t, ops.sqrt(atLeast(ops, ops.sum(ops.mul(t, t), d, true), eps * eps)))
      return ops.sum(ops.mul(direction(x), direction(y)), d)
    },

    pairwiseDistance(a, b, { p = 2, eps = 1e-6, keepdim = false } = {}) {
      return ops.norm(ops.add(ops.sub(a, b), eps), p, -1, keepdim)
    },
  }
}

function checkRanks(op: string, expected: string, a: Tensor, aRank: number, b: Tensor, bRank: number): void {
  if (a.ndim === aRank && b.ndim === bRank) return
  throw shapeMismatch(op, expected, `${shapeText(a.shape)} and ${shapeText(b.shape)}`, 'Use matmul() for other ranks.')
}

function added(ops: Ops<Tensor>, op: string, x: Tensor, product: Tensor, { beta = 1, alpha = 1 }: AddmmOptions = {}): Tensor {
  if (!broadcasts(x, product)) {
    throw shapeMismatch(
      op,
      `something to add that broadcasts to ${shapeText(product.shape)}`,
      shapeText(x.shape),
      'Reshape it, or use add().',
    )
  }
  const scaled = alpha === 1 ? product : ops.mul(product, alpha)
  // Chosen, not multiplied by 0: NaN and infinities of x must not come through, but its gradient is 0 and not none.
  if (beta === 0) return ops.where(Tensor.empty('bool', [], x.storage.memory), x, scaled)
  return ops.add(beta === 1 ? x : ops.mul(x, beta), scaled)
}

function broadcasts(x: Tensor, to: Tensor): boolean {
  const missing = to.ndim - x.ndim
  return missing >= 0 && x.shape.every((n, i) => n === 1 || n === to.shape[i + missing])
}

/** The dimensions of a and of b to sum over, pair by pair. */
function contracted(a: Tensor, b: Tensor, dims: number | readonly [readonly number[], readonly number[]]): readonly [number[], number[]] {
  if (typeof dims === 'number' && (!Number.isInteger(dims) || dims < 0 || dims > a.ndim || dims > b.ndim)) {
    throw invalidArgument('tensordot', `a number of dimensions from 0 to ${Math.min(a.ndim, b.ndim)}, or two lists`, dims)
  }
  if (typeof dims === 'object' && !(dims.length === 2 && [...dims].every((list) => Array.isArray(list)))) {
    throw invalidArgument(
      'tensordot',
      'a number of dimensions, or a list of them for each side',
      shapeText(dims as never),
      'Write [[1], [0]].',
    )
  }
  const [da, db] =
    typeof dims === 'number'
      ? [Array.from({ length: dims }, (_, i) => a.ndim - dims + i), Array.from({ length: dims }, (_, i) => i)]
      : [dims[0].map((d) => normalizeDim('tensordot', d, a.ndim)), dims[1].map((d) => normalizeDim('tensordot', d, b.ndim))]
  if (da.length !== db.length || new Set(da).size !== da.length || new Set(db).size !== db.length) {
    throw invalidArgument('tensordot', 'two lists of equal length, without repetitions', `${shapeText(da)} and ${shapeText(db)}`)
  }
  if (da.some((d, i) => a.shape[d] !== b.shape[db[i]!])) {
    throw shapeMismatch(
      'tensordot',
      'equal extents of the dimensions to sum over',
      `dimensions ${shapeText(da)} of ${shapeText(a.shape)} and ${shapeText(db)} of ${shapeText(b.shape)}`,
      'Name the dimensions that belong together.',
    )
  }
  return [da, db]
}
