/** Tables of vectors as users look them up: rows by index, and bags of rows reduced to one. */

import type { Ops, PrimitiveOps } from '../ops/ops.js'
import type { EmbeddingBagOptions, EmbeddingOps } from '../ops/ops-neural.js'
import { wholeIndices } from '../raw/indices.js'
import { elementsOf } from '../tensor/bytes.js'
import { filledAt } from '../tensor/create.js'
import { Tensor } from '../tensor/tensor.js'
import { allocate, type DType } from '../values/dtype.js'
import { invalidArgument, shapeMismatch, shapeText } from '../values/errors.js'

/** paddingIdx of who has none: no index is negative. */
const NO_PADDING = -1

export function embeddingComposites(ops: Ops<Tensor>, plain: Pick<PrimitiveOps<Tensor>, 'embedding'>): EmbeddingOps<Tensor> {
  return {
    embedding(weight, indices, options) {
      if (options === undefined) return plain.embedding(weight, indices)
      const { paddingIdx = null, sparse = false } = options
      const padding = checkPadding('embedding', paddingIdx, weight)
      return padding === NO_PADDING && !sparse ? plain.embedding(weight, indices) : ops.embeddingRows(weight, indices, padding, sparse)
    },

    embeddingBag(weight, given, options = {}) {
      const { mode = 'mean', perSampleWeights = null, paddingIdx = null, sparse = false } = options
      if (mode !== 'sum' && mode !== 'mean' && mode !== 'max')
        throw invalidArgument('embeddingBag', "'sum', 'mean' or 'max' as the mode", mode)
      if (weight.ndim !== 2) throw shapeMismatch('embeddingBag', 'a weight [rows, width]', shapeText(weight.shape), 'Reshape the weight.')
      const indices = wholeIndices('embeddingBag', given)
      if (perSampleWeights !== null && (mode !== 'sum' || perSampleWeights.shape.join() !== indices.shape.join())) {
        throw invalidArgument(
          'embeddingBag',
          "perSampleWeights of the indices' shape, with mode 'sum'",
          `${mode}, ${shapeText(perSampleWeights.shape)}`,
        )
      }
      const padding = checkPadding('embeddingBag', paddingIdx, weight)
      const flat = ops.reshape(indices, [indices.numel])
      const { bagOf, bags } = bagsOf(indices, options)
      const rows = ops.embedding(weight, flat, { paddingIdx: padding === NO_PADDING ? null : padding, sparse })
      const weights = perSampleWeights === null ? rows : ops.mul(rows, ops.reshape(perSampleWeights, [flat.numel, 1]))
      const width = weight.shape[1]!
      if (mode === 'max') return largest(rows, flat, bagOf, bags, padding)
      const counted = padding === NO_PADDING ? weights : ops.where(ops.unsqueeze(ops.eq(flat, padding), 1), 0, weights)
      const sums = ops.indexAdd(
        Tensor.empty(weight.dtype, [bags, width], weight.storage.memory),
        0,
        int32(bagOf, [bagOf.length], weight),
        counted,
      )
      return mode === 'sum' ? sums : ops.div(sums, sizes(flat, bagOf, bags, padding, weight.dtype))
    },
  }

  /** The first of the largest elements of each bag's rows, column by column; 0 for a bag of nothing. */
  function largest(rows: Tensor, flat: Tensor, bagOf: Int32Array, bags: number, padding: number): Tensor {
    const counts = new Int32Array(bags)
    const at = elements(flat)
    for (const [i, bag] of bagOf.entries()) if (at[i] !== padding) counts[bag]!++
    const longest = Math.max(1, ...counts)
    // Bags side by side, filled up with the row behind the last, which is smaller than any.
    const places = new Int32Array(bags * longest).fill(bagOf.length)
    counts.fill(0)
    for (const [i, bag] of bagOf.entries()) if (at[i] !== padding) places[bag * longest + counts[bag]!++] = i
    const width = rows.shape[1]!
    const least = filledAt(rows.storage.memory, rows.dtype, [1, width], Number.NEGATIVE_INFINITY)
    const table = ops.reshape(ops.indexSelect(ops.cat([rows, least]), 0, int32(places, [places.length], rows)), [bags, longest, width])
    const maxima = ops.squeeze(ops.gather(table, 1, ops.argmax(table, 1, true)), 1)
    const empty = int32(
      Int32Array.from(counts, (n) => (n === 0 ? 1 : 0)),
      [bags, 1],
      rows,
    )
    return ops.where(ops.ne(empty, 0), 0, maxima)
  }
}

/** How many rows count in each bag, at least 1: [bags, 1]. */
function sizes(flat: Tensor, bagOf: Int32Array, bags: number, padding: number, dtype: DType): Tensor {
  const array = allocate(dtype, bags)
  const at = elements(flat)
  for (const [i, bag] of bagOf.entries()) if (at[i] !== padding) array[bag]!++
  for (let bag = 0; bag < bags; bag++) array[bag] = Math.max(1, array[bag]!)
  return Tensor.over(dtype, [bags, 1], array, flat.storage.memory)
}

/** The bag of each index, in order. @throws SHAPE_MISMATCH, INVALID_ARGUMENT */
function bagsOf(
  indices: Tensor,
  { offsets = null, includeLastOffset = false }: EmbeddingBagOptions<Tensor>,
): { bagOf: Int32Array; bags: number } {
  const op = 'embeddingBag'
  if (indices.ndim === 2) {
    if (offsets !== null) throw invalidArgument(op, 'offsets only with indices [n]', shapeText(indices.shape), 'Each row is a bag already.')
    const [bags, length] = indices.shape as readonly [number, number]
    return { bagOf: Int32Array.from({ length: bags * length }, (_, i) => Math.floor(i / length)), bags }
  }
  if (indices.ndim !== 1 || offsets === null || offsets.ndim !== 1) {
    throw shapeMismatch(
      op,
      'indices [bags, length], or indices [n] with offsets [bags]',
      shapeText(indices.shape),
      'Pass where each bag begins as offsets.',
    )
  }
  const from = [...elements(wholeIndices(op, offsets, 'offsets'))]
  const end = includeLastOffset ? (from.pop() ?? 0) : indices.numel
  const ascending = [...from, end].every((at, i, all) => at >= (i === 0 ? 0 : all[i - 1]!) && at <= indices.numel)
  if (!ascending || (from[0] ?? 0) !== 0)
    throw invalidArgument(op, `offsets that ascend from 0 to at most ${indices.numel}`, from.join(', '))
  const bagOf = new Int32Array(indices.numel)
  for (const [bag, at] of from.entries()) bagOf.fill(bag, at)
  return { bagOf, bags: from.length }
}

function checkPadding(op: string, paddingIdx: number | null, weight: Tensor): number {
  if (paddingIdx === null) return NO_PADDING
  const rows = weight.shape[0] ?? 0
  if (!Number.isInteger(paddingIdx) || paddingIdx < -rows || paddingIdx >= rows) {
    throw invalidArgument(
      op,
      `a paddingIdx from ${-rows} to ${rows - 1}`,
      paddingIdx,
      'It names a row of the weight; negative ones count from the end.',
    )
  }
  return paddingIdx < 0 ? paddingIdx + rows : paddingIdx
}

function int32(array: Int32Array, shape: readonly number[], beside: Tensor): Tensor {
  return Tensor.over('int32', shape, array, beside.storage.memory)
}

function elements(x: Tensor): Int32Array {
  return elementsOf(x, 'embeddingBag') as Int32Array
}
