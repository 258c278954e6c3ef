/** Layers as functions: linear maps, dropout, attention, embeddings. */
import { contiguous } from '../raw/copy.js'
import { checkedIndices, wholeIndices } from '../raw/indices.js'
import { elementsOf } from '../tensor/bytes.js'
import { filledAt, rand } from '../tensor/create.js'
import { kernelsFor } from '../tensor/device.js'
import { Tensor } from '../tensor/tensor.js'
import { allocate } from '../values/dtype.js'
import { dtypeMismatch, invalidArgument, shapeMismatch, shapeText } from '../values/errors.js'
import type { AttentionOptions, DropoutOptions, EmbeddingBagOptions, EmbedOptions } from '../values/options-neural.js'
import { numelOf } from '../values/shape.js'
import { composite, type Functional, type Ops, primitive } from './define/define.js'
import { isAttended } from './inner/attention.js'
import { sharesOf } from './parts/attention.js'
import { sumToShape } from './parts/dims.js'

/**
 * x · weightᵀ + bias, with x […, in], weight [out, in] and bias [out] → […, out]. PyTorch: `torch.nn.functional.linear`.
 * @throws SHAPE_MISMATCH if the shapes do not fit; DTYPE_MISMATCH if the dtypes differ
 * @example linear(tensor([1, 2]), tensor([[1, 0], [0, 1], [1, 1]]), tensor([0, 0, 10])) // [1, 2, 13]
 */
export const linear: Functional<(x: Tensor, weight: Tensor, bias?: Tensor | null) => Tensor> = primitive('linear', {
  args: ['tensor', 'tensor', 'tensor??'],
  isFunctional: true,
  // One product, and the bias added where it lies.
  raw: (x, weight, bias = null) => {
    checkLinear(x, weight, bias)
    const last = x.shape.length - 1
    const shape = x.shape.with(last, weight.shape[0]!)
    const out = Tensor.uninitialized(x.dtype, shape, x.storage.memory)
    const kernels = kernelsFor(x)
    // Leading dimensions become rows, and for that they must follow each other; rows of a matrix may lie at any distance.
    kernels.matmul[x.dtype](last > 1 ? contiguous(x) : x, weight, out, true)
    if (bias !== null) kernels.add[x.dtype](out, bias, out)
    return out
  },
  // g · weight, gᵀ · x over all rows, g summed over all rows
  grad: {
    reads: [[1], [0], []],
    grads: ([g], s, ops) => {
      const matrix = s.needs(1) ? rowsAsMatrix(g!, ops) : null
      return [
        s.needs(0) ? ops.matmul(g!, s.tensor(1)) : null,
        matrix === null ? null : ops.matmul(ops.transpose(matrix, 0, 1), rowsAsMatrix(s.tensor(0), ops)),
        s.needs(2) ? sumToShape(g!, s.shape(2)) : null,
      ]
    },
  },
})

/**
 * Each element becomes 0 with probability p (default 0.5), else x / (1 − p). With `training: false` the result is x itself. `generator` gives the random
 * numbers, by default that of the scope. PyTorch: `torch.nn.functional.dropout`.
 * @throws INVALID_ARGUMENT if p is not from 0 to 1
 * @example dropout(ones([6]), 0.5, { generator: new Generator(7) }) // [2, 0, 2, 2, 0, 2]: what is left is doubled
 */
export const dropout: Functional<(x: Tensor, p?: number, options?: DropoutOptions) => Tensor> = composite('dropout', {
  args: ['tensor', 'number?', 'options?'],
  options: { training: true, generator: true },
  isFunctional: true,
  of:
    (ops) =>
    (x, p = 0.5, options = {}) => {
      if (!(p >= 0 && p <= 1))
        throw invalidArgument('dropout', 'a probability from 0 to 1', p, 'Pass the share of elements to zero: 0.5 is one half.')
      const { training = true, generator } = options
      if (!training || p === 0) return x
      if (p === 1) return ops.mul(x, 0)
      const kept = ops.ge(rand(x.shape, { device: x.device, ...(generator === undefined ? {} : { generator }) }), p)
      return ops.mul(x, ops.div(ops.to(kept, x.dtype), 1 - p))
    },
})

/**
 * softmax(Q Kᵀ · scale) V of query [..., L, E], key [..., S, E] and value [..., S, V] → [..., L, V]. `scale` is 1 / √E by default. A bool mask is true where a
 * position takes part. In float32 and without dropout no tensor of all scores is made, unless the mask requires grad. PyTorch: `torch.nn.functional.scaled_dot_product_attention`.
 * @throws SHAPE_MISMATCH if the shapes do not fit; DTYPE_MISMATCH if the dtypes differ or are integers; INVALID_ARGUMENT if both `isCausal` and `attnMask` are
 * given
 * @example scaledDotProductAttention(zeros([2, 4]), zeros([2, 4]), tensor([[2], [4]]), { isCausal: true }) // [[2], [3]]: the mean of what each position sees
 */
export const scaledDotProductAttention: Functional<
  (query: Tensor, key: Tensor, value: Tensor, options?: AttentionOptions<Tensor>) => Tensor
> = composite('scaledDotProductAttention', {
  args: ['tensor', 'tensor', 'tensor', 'options?'],
  options: { attnMask: true, isCausal: true, dropoutP: true, scale: true, generator: true },
  isFunctional: true,
  of:
    (ops) =>
    (query, key, value, options = {}) => {
      const op = 'scaledDotProductAttention'
      const { attnMask = null, isCausal = false, dropoutP = 0, scale, generator } = options
      if (query.ndim < 2 || key.ndim < 2 || value.ndim < 2) {
        throw shapeMismatch(
          op,
          'query […, L, E], key […, S, E] and value […, S, V]',
          [query, key, value].map((t) => shapeText(t.shape)).join(', '),
          'Insert the dimension of positions with unsqueeze(-2).',
        )
      }
      if (isCausal && attnMask !== null) throw invalidArgument(op, 'isCausal or an attnMask', 'both', 'Combine them in one mask.')
      const factor = scale ?? 1 / Math.sqrt(query.shape.at(-1)!)
      if (dropoutP === 0 && isAttended(query, key, value, attnMask)) return ops.attention(query, key, value, attnMask, factor, isCausal)
      const all = sharesOf(ops, ops.mul(query, factor), key, attnMask, isCausal)
      const shares = ops.dropout(all, dropoutP, generator === undefined ? {} : { generator })
      return ops.matmul(shares, value)
    },
})

/**
 * Rows of a table: weight [V, D], indices (int32 or whole numbers) of any shape → […indices, D]. With `sparse` the gradient of the weight is a SparseTensor.
 * PyTorch: `torch.nn.functional.embedding`.
 * @throws INDEX_OUT_OF_RANGE if an index is not from 0 to V−1; DTYPE_MISMATCH if an index is not a whole number; SHAPE_MISMATCH if the weight is not a matrix
 * @example embedding(tensor([[1, 2], [3, 4], [5, 6]]), tensor([2, 0])) // [[5, 6], [1, 2]]
 */
export const embedding: (weight: Tensor, indices: Tensor, options?: EmbedOptions) => Tensor = composite('embedding', {
  args: ['tensor', 'tensor', 'options?'],
  options: { paddingIdx: true, sparse: true },
  of: (ops) => (weight, indices, options) => {
    if (options === undefined) return ops.embeddingAt(weight, indices)
    const { paddingIdx = null, sparse = false } = options
    const padding = checkPadding('embedding', paddingIdx, weight)
    return padding === NO_PADDING && !sparse ? ops.embeddingAt(weight, indices) : ops.embeddingRows(weight, indices, padding, sparse)
  },
})

/**
 * Sums, means (the default) or maxima of rows of a table: weight [V, D], indices (int32 or whole numbers) [bags, length], or [n] with `offsets` → [bags, D].
 * The result for an empty bag is 0. PyTorch: `torch.nn.functional.embedding_bag`.
 * @throws INDEX_OUT_OF_RANGE if an index is not from 0 to V−1; SHAPE_MISMATCH if the shapes do not fit; INVALID_ARGUMENT if offsets do not ascend, or an option
 * is invalid
 * @example embeddingBag(tensor([[1], [2], [3]]), tensor([0, 1, 2]), { offsets: tensor([0, 2]), mode: 'sum' }) // [[3], [3]]: the bags [0, 1] and [2]
 */
export const embeddingBag: Functional<(weight: Tensor, indices: Tensor, options?: EmbeddingBagOptions<Tensor>) => Tensor> = composite(
  'embeddingBag',
  {
    args: ['tensor', 'tensor', 'options?'],
    options: { mode: true, offsets: true, perSampleWeights: true, includeLastOffset: true, paddingIdx: true, sparse: true },
    isFunctional: true,
    of:
      (ops) =>
      (weight, given, options = {}) => {
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
        if (mode === 'max') return largest(ops, rows, flat, bagOf, bags, padding)
        const counted = padding === NO_PADDING ? weights : ops.where(ops.unsqueeze(ops.eq(flat, padding), 1), 0, weights)
        const zeros = Tensor.empty(weight.dtype, [bags, width], weight.storage.memory)
        const sums = ops.indexAdd(zeros, 0, int32(bagOf, [bagOf.length], weight), counted)
        if (mode === 'sum') return sums
        const counts = allocate(weight.dtype, bags)
        counts.set(sizes(flat, bagOf, bags, padding).map((n) => Math.max(1, n)))
        return ops.div(sums, Tensor.over(weight.dtype, [bags, 1], counts, weight.storage.memory))
      },
  },
)

/**
 * One-hot vectors: classes (int32 or whole numbers) of any shape → int32 […classes, numClasses]. `numClasses` is by default one more than the largest class. No
 * gradient. PyTorch: `torch.nn.functional.one_hot`.
 * @throws INDEX_OUT_OF_RANGE if a class is not from 0 to numClasses−1; DTYPE_MISMATCH if a class is not a whole number
 * @example oneHot(tensor([0, 2]), 3) // [[1, 0, 0], [0, 0, 1]]
 */
export const oneHot: Functional<(classes: Tensor, numClasses?: number) => Tensor> = primitive('oneHot', {
  args: ['tensor', 'number?'],
  isFunctional: true,
  raw: (classes, numClasses) => {
    const whole = wholeIndices('oneHot', classes, 'classes')
    let count = numClasses ?? 0
    if (numClasses === undefined) {
      if (classes.numel === 0)
        throw invalidArgument('oneHot', 'numClasses for no classes', 'none', 'Pass it: it cannot be seen from the data.')
      for (const each of elementsOf(whole, 'oneHot')) count = Math.max(count, each + 1)
    } else if (!Number.isSafeInteger(numClasses) || numClasses < 1) throw invalidArgument('oneHot', 'numClasses ≥ 1', numClasses)
    const at = checkedIndices('oneHot', whole, count)
    const { memory } = classes.storage
    const out = Tensor.empty('int32', [...classes.shape, count], memory)
    const each = filledAt(memory, 'int32', at.shape, 1)
    kernelsFor(out).scatter.int32(each, at, out, at.numel, count, 1, 1)
    each.close()
    return out
  },
  grad: null,
})

function checkLinear(x: Tensor, weight: Tensor, bias: Tensor | null): void {
  if (weight.shape.length !== 2 || x.shape.length === 0 || x.shape[x.shape.length - 1] !== weight.shape[1]) {
    throw shapeMismatch(
      'linear',
      'x […, in] and a weight [out, in]',
      `${shapeText(x.shape)} and ${shapeText(weight.shape)}`,
      'The last extent of x must be the last one of the weight: reshape x, or transpose the weight.',
      { x: [...x.shape], weight: [...weight.shape] },
    )
  }
  if (bias !== null && (bias.shape.length !== 1 || bias.shape[0] !== weight.shape[0])) {
    throw shapeMismatch('linear', `a bias [${weight.shape[0]}]`, shapeText(bias.shape), 'There is one bias for each row of the weight.', {
      bias: [...bias.shape],
    })
  }
  if (x.dtype !== weight.dtype || (bias !== null && bias.dtype !== x.dtype)) {
    const got = bias === null ? `${x.dtype} and ${weight.dtype}` : `${x.dtype}, ${weight.dtype} and ${bias.dtype}`
    throw dtypeMismatch('linear', 'one dtype for all tensors', got, `Convert with to('${weight.dtype}').`)
  }
  if (x.dtype === 'bool') throw dtypeMismatch('linear', 'numbers', 'bool', "Convert with to('float32') first.")
}

/** paddingIdx of who has none: no index is negative. */
const NO_PADDING = -1

/** How many rows count in each bag. */
function sizes(flat: Tensor, bagOf: Int32Array, bags: number, padding: number): Int32Array {
  const counts = new Int32Array(bags)
  const at = elements(flat)
  for (const [i, bag] of bagOf.entries()) if (at[i] !== padding) counts[bag]!++
  return counts
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

function largest(ops: Ops, rows: Tensor, flat: Tensor, bagOf: Int32Array, bags: number, padding: number): Tensor {
  const counts = sizes(flat, bagOf, bags, padding)
  const at = elements(flat)
  const longest = Math.max(1, ...counts)
  // Bags side by side, filled up with the row after the last, which is smaller than any.
  const places = new Int32Array(bags * longest).fill(bagOf.length)
  counts.fill(0)
  for (const [i, bag] of bagOf.entries()) if (at[i] !== padding) places[bag * longest + counts[bag]!++] = i
  const width = rows.shape[1]!
  const least = filledAt(rows.storage.memory, rows.dtype, [1, width], Number.NEGATIVE_INFINITY)
  const table = ops.reshape(ops.indexSelect(ops.cat([rows, least]), 0, int32(places, [places.length], rows)), [bags, longest, width])
  const maxima = ops.squeeze(ops.gather(table, 1, ops.argmax(table, 1, true)), 1)
  return ops.where(ops.eq(int32(counts, [bags, 1], rows), 0), 0, maxima)
}

/** All leading dimensions as one; the tensor itself where it is a matrix. */
function rowsAsMatrix(t: Tensor, ops: Ops): Tensor {
  return t.ndim === 2 ? t : ops.reshape(t, [numelOf(t.shape.slice(0, -1)), t.shape.at(-1)!])
}
