/** Repeating and moving elements into new tensors. */

import { checkedIndices } from '../raw/indices.js'
import { checkReadable, elementsOf } from '../tensor/bytes.js'
import { kernelsFor } from '../tensor/device.js'
import { Tensor } from '../tensor/tensor.js'
import { invalidArgument, shapeMismatch, shapeText } from '../values/errors.js'
import type { PadMode, PadOptions } from '../values/options.js'
import { type DimsArg, normalizeDim, normalizeDims } from '../values/shape.js'
import { composite, type Functional, type Ops, primitive, rawOperations, type WithInPlace } from './define/define.js'
import { formula } from './define/formula.js'
import { checkPads, embedDiagonal, placesFor } from './parts/common.js'
import { fibres } from './parts/fibres.js'

/**
 * A copy that repeats each dimension as often as `repeats` says. More counts than dimensions add dimensions in front. PyTorch: `Tensor.repeat`.
 * @throws INVALID_ARGUMENT if there are fewer counts than dimensions, or a count is negative
 * @example tensor([1, 2]).repeat([2, 2]) // [[1, 2, 1, 2], [1, 2, 1, 2]]
 */
export const repeat: (x: Tensor, repeats: readonly number[]) => Tensor = composite('repeat', {
  args: ['tensor', 'numbers'],
  of: (ops) => (x, repeats) => {
    const extra = repeats.length - x.ndim
    if (extra < 0 || repeats.some((n) => !Number.isSafeInteger(n) || n < 0)) {
      throw invalidArgument('repeat', `counts ≥ 0 for at least the ${x.ndim} dimensions`, shapeText(repeats), 'Use tile() for fewer.')
    }
    const shape = [...new Array<number>(extra).fill(1), ...x.shape]
    // [n] → [1, n] → [times, n] → [times · n], for every dimension at once: one copy.
    const single = shape.flatMap((n) => [1, n])
    const several = shape.flatMap((n, d) => [repeats[d]!, n])
    const joined = shape.map((n, d) => n * repeats[d]!)
    return own(x, ops.reshape(ops.expand(ops.reshape(x, single), several), joined), ops)
  },
})

/**
 * A copy that repeats the last dimensions as often as `repeats` says. Unlike `repeat`, it takes fewer counts than dimensions. PyTorch: `torch.tile`.
 * @throws INVALID_ARGUMENT if a count is negative
 * @example tensor([[1], [2]]).tile([3]) // [[1, 1, 1], [2, 2, 2]]
 */
export const tile: (x: Tensor, repeats: readonly number[]) => Tensor = composite('tile', {
  args: ['tensor', 'numbers'],
  of: (ops) => (x, repeats) => {
    return ops.repeat(x, [...new Array<number>(Math.max(x.ndim - repeats.length, 0)).fill(1), ...repeats])
  },
})

/**
 * A copy in which the order of elements is reversed along `dims`. PyTorch: `torch.flip`.
 * @throws DIM_OUT_OF_RANGE if x does not have one of the dimensions; INVALID_ARGUMENT if a dimension is listed twice
 * @example tensor([[1, 2], [3, 4]]).flip([0, 1]) // [[4, 3], [2, 1]]
 */
export const flip: (x: Tensor, dims: DimsArg) => Tensor = primitive('flip', {
  args: ['tensor', 'dims'],
  raw: (x, dims) => {
    let out = x
    // No dimensions are none here.
    for (const d of typeof dims !== 'number' && dims.length === 0 ? [] : normalizeDims('flip', dims, x.ndim)) {
      if (x.shape[d]! <= 1) continue
      const { dense, outer, k, inner } = fibres(out, d, d)
      out = Tensor.uninitialized(x.dtype, x.shape, x.storage.memory)
      kernelsFor(x).flip[x.dtype](dense, out, outer, k, inner)
    }
    return own(x, out, rawOperations)
  },
  grad: formula([], (g, s, ops) => ops.flip(g, s.attrs[0])),
})

/**
 * A copy whose elements are shifted along `dims`; elements that leave at one end enter at the other. Without `dims` x is shifted as if flattened. PyTorch:
 * `torch.roll`.
 * @throws DIM_OUT_OF_RANGE if x does not have one of the dimensions; INVALID_ARGUMENT if there is not one shift for each dimension
 * @example tensor([1, 2, 3, 4]).roll(1) // [4, 1, 2, 3]
 */
export const roll: (x: Tensor, shifts: DimsArg, dims?: DimsArg) => Tensor = composite('roll', {
  args: ['tensor', 'dims', 'dims?'],
  of: (ops) => (x, shifts, dims) => {
    if (dims === undefined) {
      if (typeof shifts !== 'number' && shifts.length !== 1) {
        throw invalidArgument('roll', 'one shift where no dimensions are given', shapeText(shifts), 'Name the dimensions.')
      }
      return own(x, ops.reshape(rolled(ops, ops.reshape(x, [x.numel]), typeof shifts === 'number' ? shifts : shifts[0]!, 0), x.shape), ops)
    }
    const by = typeof shifts === 'number' ? [shifts] : shifts
    const along = typeof dims === 'number' ? [dims] : dims
    if (by.length !== along.length) throw invalidArgument('roll', 'a shift for each dimension', `${by.length} for ${along.length}`)
    let out = x
    for (const [i, dim] of along.entries()) out = rolled(ops, out, by[i]!, normalizeDim('roll', dim, x.ndim))
    return own(x, out, ops)
  },
})

/**
 * A padded copy. `pads` has two numbers, before and after, for each dimension, from the last dimension on. Mode 'constant' (the default) fills with `value`
 * (default 0), and negative pads cut elements off; the other modes are 'reflect', 'replicate' and 'circular'. PyTorch: `torch.nn.functional.pad`.
 * @throws INVALID_ARGUMENT if `pads` or the mode is invalid, or x is too small for the mode
 * @example pad(tensor([1, 2, 3]), [2, 1], { mode: 'reflect' }) // [3, 2, 1, 2, 3, 2]
 */
export const pad: Functional<(x: Tensor, pads: readonly number[], options?: PadOptions) => Tensor> = composite('pad', {
  args: ['tensor', 'numbers', 'options?'],
  options: { mode: true, value: true },
  isFunctional: true,
  of:
    (ops) =>
    (x, pads, options = {}) => {
      const mode = options.mode ?? 'constant'
      if (mode === 'constant') return ops.constantPad(x, pads, options.value)
      if (mode !== 'reflect' && mode !== 'replicate' && mode !== 'circular') {
        throw invalidArgument('pad', "the mode 'constant', 'reflect', 'replicate' or 'circular'", String(mode))
      }
      let out = x
      checkPads('pad', x.shape, pads)
      for (let i = 0; i < pads.length; i += 2) {
        const d = x.ndim - 1 - i / 2
        const [before, behind] = [pads[i]!, pads[i + 1]!]
        if (before === 0 && behind === 0) continue
        const extent = x.shape[d]!
        checkPad(mode, d, extent, before, behind)
        const sources = placesFor(x, before + extent + behind, (i) => sourceOf(mode, i - before, extent))
        out = ops.indexSelect(out, d, sources)
      }
      return own(x, out, ops)
    },
})

/**
 * Each element, or each slice along `dim`, several times in a row. `repeats` is one count, or a tensor with a count for each. Without `dim` x counts as
 * flattened. PyTorch: `torch.repeat_interleave`.
 * @throws INVALID_ARGUMENT if a count is negative; SHAPE_MISMATCH if the number of counts does not fit; DIM_OUT_OF_RANGE if `dim` is not a dimension of x
 * @example tensor([7, 8]).repeatInterleave(tensor([2, 1])) // [7, 7, 8]
 */
export const repeatInterleave: (x: Tensor, repeats: number | Tensor, dim?: number) => Tensor = composite('repeatInterleave', {
  args: ['tensor', 'operand', 'number?'],
  of: (ops) => (x, repeats, dim) => {
    const source = dim === undefined ? ops.reshape(x, [x.numel]) : x
    const d = normalizeDim('repeatInterleave', dim ?? 0, source.ndim)
    if (source.ndim === 0) return ops.repeatInterleave(ops.reshape(source, [1]), repeats, 0)
    const extent = source.shape[d]!
    if (typeof repeats !== 'number') return ops.indexSelect(source, d, repeated(repeats, extent))
    if (!Number.isSafeInteger(repeats) || repeats < 0) throw invalidArgument('repeatInterleave', 'a count ≥ 0', repeats)
    const shape = source.shape
    const spread = ops.expand(ops.unsqueeze(source, d + 1), [...shape.slice(0, d + 1), repeats, ...shape.slice(d + 1)])
    return own(x, ops.reshape(spread, shape.with(d, extent * repeats)), ops)
  },
})

/**
 * For a vector, the matrix with that vector on diagonal number `diagonal` (default 0). For a matrix, its diagonal of that number. PyTorch: `torch.diag`.
 * @throws SHAPE_MISMATCH if x is not a vector or a matrix
 * @example tensor([1, 2]).diag(1) // [[0, 1, 0], [0, 0, 2], [0, 0, 0]]
 */
export const diag: (x: Tensor, diagonal?: number) => Tensor = composite('diag', {
  args: ['tensor', 'number?'],
  of:
    (ops) =>
    (x, diagonal = 0) => {
      if (x.ndim === 1) return ops.diagEmbed(x, diagonal)
      if (x.ndim === 2) return ops.diagonal(x, diagonal)
      throw shapeMismatch('diag', 'a vector or a matrix', shapeText(x.shape), 'Use diagonal() or diagEmbed() for batches.')
    },
})

/**
 * The last dimension of x as the diagonal of planes dim1 × dim2 (default −2 and −1), with zeros elsewhere. `offset` (default 0) is the number of the diagonal.
 * PyTorch: `torch.diag_embed`.
 * @throws DIM_OUT_OF_RANGE if the result does not have dim1 or dim2; INVALID_ARGUMENT if dim1 and dim2 are the same dimension
 * @example tensor([[1, 2], [3, 4]]).diagEmbed() // [[[1, 0], [0, 2]], [[3, 0], [0, 4]]]
 */
export const diagEmbed: (x: Tensor, offset?: number, dim1?: number, dim2?: number) => Tensor = composite('diagEmbed', {
  args: ['tensor', 'number?', 'number?', 'number?'],
  of:
    (ops) =>
    (x, offset = 0, dim1 = -2, dim2 = -1) => {
      if (x.ndim === 0) throw shapeMismatch('diagEmbed', 'a tensor with at least one dimension', '[]', 'Use reshape([1]) first.')
      const a = normalizeDim('diagEmbed', dim1, x.ndim + 1, 'result')
      const b = normalizeDim('diagEmbed', dim2, x.ndim + 1, 'result')
      if (a === b) throw invalidArgument('diagEmbed', 'two different dimensions', `${dim1} and ${dim2}`)
      const extent = x.shape.at(-1)! + Math.abs(offset)
      return ops.movedim(embedDiagonal(ops, x, extent, extent, offset), [-2, -1], [a, b])
    },
})

/**
 * The lower triangle of the last two dimensions, with 0 above diagonal number `diagonal` (default 0). PyTorch: `torch.tril`.
 * @throws SHAPE_MISMATCH if x has fewer than two dimensions
 * @example tensor([[1, 2, 3], [4, 5, 6]]).tril() // [[1, 0, 0], [4, 5, 0]]
 */
export const tril: WithInPlace<(x: Tensor, diagonal?: number) => Tensor> = primitive('tril', {
  args: ['tensor', 'number?'],
  inPlace: true,
  raw: (x, diagonal) => triangle('tril', x, diagonal),
  grad: formula([], (g, s, ops) => ops.tril(g, s.attrs[0])),
})

/**
 * The upper triangle of the last two dimensions, with 0 below diagonal number `diagonal` (default 0). PyTorch: `torch.triu`.
 * @throws SHAPE_MISMATCH if x has fewer than two dimensions
 * @example tensor([[1, 2, 3], [4, 5, 6]]).triu(1) // [[0, 2, 3], [0, 0, 6]]
 */
export const triu: WithInPlace<(x: Tensor, diagonal?: number) => Tensor> = primitive('triu', {
  args: ['tensor', 'number?'],
  inPlace: true,
  raw: (x, diagonal) => triangle('triu', x, diagonal),
  grad: formula([], (g, s, ops) => ops.triu(g, s.attrs[0])),
})

/**
 * Grids of coordinates, made from vectors. With 'ij' (the default), result i varies along dimension i. With 'xy', the first two dimensions are exchanged.
 * PyTorch: `torch.meshgrid`.
 * @throws SHAPE_MISMATCH if a tensor has more than one dimension; INVALID_ARGUMENT if `indexing` is not one of these
 * @example meshgrid([tensor([1, 2]), tensor([3, 4])]) // [[[1, 1], [2, 2]], [[3, 4], [3, 4]]]
 */
export const meshgrid: Functional<(tensors: readonly Tensor[], indexing?: 'ij' | 'xy') => Tensor[]> = composite('meshgrid', {
  args: ['tensors', 'string?'],
  isFunctional: true,
  of:
    (ops) =>
    (tensors, indexing = 'ij') => {
      if (indexing !== 'ij' && indexing !== 'xy') throw invalidArgument('meshgrid', "the indexing 'ij' or 'xy'", String(indexing))
      for (const t of tensors) {
        if (t.ndim > 1) throw shapeMismatch('meshgrid', 'vectors', shapeText(t.shape), 'Flatten them with reshape([-1]).')
      }
      const shape = tensors.map((t) => t.numel)
      const grids = tensors.map((t, i) => {
        const alone = shape.map((n, d) => (d === i ? n : 1))
        return ops.expand(ops.reshape(t, alone), shape)
      })
      return indexing === 'xy' && tensors.length > 1 ? grids.map((grid) => ops.transpose(grid, 0, 1)) : grids
    },
})

/** These operations promise a tensor of its own: a copy where nothing was moved. */
function own(x: Tensor, out: Tensor, ops: Ops): Tensor {
  return out.storage === x.storage ? ops.clone(out) : out
}

function rolled(ops: Ops, x: Tensor, shift: number, d: number): Tensor {
  if (!Number.isSafeInteger(shift)) throw invalidArgument('roll', 'an integer shift', shift)
  const extent = x.shape[d] ?? 1
  const by = extent === 0 ? 0 : ((shift % extent) + extent) % extent
  if (by === 0) return x
  return ops.cat([ops.narrow(x, d, extent - by, by), ops.narrow(x, d, 0, extent - by)], d)
}

/** For [2, 0, 1]: 0, 0, 2. */
function repeated(counts: Tensor, extent: number): Tensor {
  if (counts.ndim > 1 || (counts.numel !== extent && counts.numel !== 1)) {
    throw shapeMismatch('repeatInterleave', `counts [${extent}] or []`, shapeText(counts.shape), 'Give one count for each element.')
  }
  checkReadable('repeatInterleave', counts)
  const each = elementsOf(checkedIndices('repeatInterleave', counts, Number.MAX_SAFE_INTEGER))
  const index: number[] = []
  for (let i = 0; i < extent; i++) {
    const count = each[each.length === 1 ? 0 : i]!
    for (let j = 0; j < count; j++) index.push(i)
  }
  return placesFor(counts, index.length, (i) => index[i]!)
}

function checkPad(mode: MirrorMode, d: number, extent: number, before: number, behind: number): void {
  const most = mode === 'reflect' ? extent - 1 : mode === 'circular' ? extent : extent > 0 ? Number.POSITIVE_INFINITY : 0
  if (before >= 0 && behind >= 0 && before <= most && behind <= most) return
  const limit = most === Number.POSITIVE_INFINITY ? 'pads ≥ 0' : `pads from 0 to ${Math.max(most, 0)}`
  throw invalidArgument('pad', `${limit} for mode '${mode}' and the ${extent} elements of dimension ${d}`, `${before} and ${behind}`)
}

/** The element at place `i`, counted from the first element. */
function sourceOf(mode: MirrorMode, i: number, extent: number): number {
  if (mode === 'replicate') return Math.min(Math.max(i, 0), extent - 1)
  if (mode === 'circular') return (i + extent) % extent
  return i < 0 ? -i : i < extent ? i : 2 * (extent - 1) - i
}

/** Keeps what is on one side of the diagonal, zeros elsewhere. */
function triangle(op: 'tril' | 'triu', x: Tensor, diagonal = 0): Tensor {
  if (x.ndim < 2) throw shapeMismatch(op, 'at least two dimensions', shapeText(x.shape), 'Use reshape() to make a matrix.')
  if (!Number.isSafeInteger(diagonal)) throw invalidArgument(op, 'an integer diagonal', diagonal, '0 is the main one, 1 the one above.')
  const { dense, outer, k: rows, inner: columns } = fibres(x, x.ndim - 2, x.ndim - 2)
  const out = Tensor.uninitialized(x.dtype, x.shape, x.storage.memory)
  // All elements are on one side of what lies beyond the first and the last diagonal.
  kernelsFor(x)[op][x.dtype](dense, out, outer, rows, columns, Math.max(-rows - 1, Math.min(diagonal, columns + 1)))
  return out
}

type MirrorMode = Exclude<PadMode, 'constant'>
