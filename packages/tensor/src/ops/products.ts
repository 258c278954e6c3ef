/** Products of matrices, and distances. Transposes reach the kernel as strides, without a copy. */
import { kernelsFor } from '../tensor/device.js'
import { Tensor } from '../tensor/tensor.js'
import { type DType, isFloating, promote } from '../values/dtype.js'
import { dtypeMismatch, invalidArgument, shapeMismatch, shapeText } from '../values/errors.js'
import type { AddmmOptions, DistanceOptions, SimilarityOptions } from '../values/options.js'
import { broadcastShapes, normalizeDim, numelOf, type Shape } from '../values/shape.js'
import { composite, type Functional, type Ops, primitive, rawOperations } from './define/define.js'
import { formula } from './define/formula.js'
import { atLeast } from './parts/common.js'
import { sumToShape } from './parts/dims.js'
import { contract } from './parts/einsum.js'

/**
 * Matrix product: [k] · [k] → [], [m, k] · [k] → [m], [m, k] · [k, n] → [m, n]. Batch dimensions in front broadcast. PyTorch: `torch.matmul`.
 * @throws SHAPE_MISMATCH if the shapes do not fit; DTYPE_MISMATCH if the dtypes differ or are bool
 * @example tensor([[1, 2], [3, 4]]).matmul(tensor([10, 1])) // [12, 34]
 */
export const matmul: (a: Tensor, b: Tensor) => Tensor = primitive('matmul', {
  args: ['tensor', 'tensor'],
  raw: (a, b) => {
    const aDims = a.shape.length
    const bDims = b.shape.length
    if (aDims === 0 || bDims === 0) {
      throw shapeMismatch(
        'matmul',
        'tensors with at least one dimension',
        `${shapeText(a.shape)} and ${shapeText(b.shape)}`,
        'Use mul for 0-d tensors.',
      )
    }
    if (a.dtype !== b.dtype) throw dtypeMismatch('matmul', 'one dtype', `${a.dtype} and ${b.dtype}`, conversion(a.dtype, b.dtype))
    if (a.dtype === 'bool') throw dtypeMismatch('matmul', 'numbers', 'bool', "Convert with to('int32') or to('float32') first.")
    const m = aDims === 1 ? 1 : a.shape[aDims - 2]!
    const k = a.shape[aDims - 1]!
    const n = bDims === 1 ? 1 : b.shape[bDims - 1]!
    if (k !== (bDims === 1 ? b.shape[0] : b.shape[bDims - 2])) {
      throw shapeMismatch(
        'matmul',
        'the last extent of a to equal the second to last of b',
        `${shapeText(a.shape)} and ${shapeText(b.shape)}`,
        'Transpose one of them: matmul(a, b.T).',
        { a: [...a.shape], b: [...b.shape] },
      )
    }
    const tail = aDims === 1 ? (bDims === 1 ? [] : [n]) : bDims === 1 ? [m] : [m, n]
    const shape =
      aDims <= 2 && bDims <= 2
        ? tail
        : [...broadcastShapes('matmul', a.shape.slice(0, Math.max(aDims - 2, 0)), b.shape.slice(0, Math.max(bDims - 2, 0))), ...tail]
    const out = Tensor.uninitialized(a.dtype, shape, a.storage.memory)
    kernelsFor(a).matmul[a.dtype](a, b, out)
    return out
  },
  // g bᵀ, aᵀ g
  grad: {
    a: formula(['b'], (g, s, ops) => matmulGradA(g, s.b as Tensor, s.shapeA, ops)),
    b: formula(['a'], (g, s, ops) => matmulGradB(g, s.a as Tensor, s.shapeB, ops)),
  },
})

/**
 * Matrix products of a batch: [b, m, k] · [b, k, n] → [b, m, n]. Unlike `matmul`, it does not broadcast. PyTorch: `torch.bmm`.
 * @throws SHAPE_MISMATCH if the shapes do not fit; DTYPE_MISMATCH if the dtypes differ or are bool
 * @example bmm(ones([8, 2, 3]), ones([8, 3, 4])) // shape [8, 2, 4]
 */
export const bmm: (a: Tensor, b: Tensor) => Tensor = primitive('bmm', {
  args: ['tensor', 'tensor'],
  raw: (a, b) => {
    if (a.shape.length !== 3 || b.shape.length !== 3 || a.shape[0] !== b.shape[0]) {
      throw shapeMismatch(
        'bmm',
        '[batch, m, k] and [batch, k, n]',
        `${shapeText(a.shape)} and ${shapeText(b.shape)}`,
        'Use matmul() for other ranks and for broadcasting.',
      )
    }
    return rawOperations.matmul(a, b)
  },
  grad: {
    a: formula(['b'], (g, s, ops) => ops.bmm(g, ops.transpose(s.b as Tensor, 1, 2))),
    b: formula(['a'], (g, s, ops) => ops.bmm(ops.transpose(s.a as Tensor, 1, 2), g)),
  },
})

/**
 * Product of two matrices: [m, k] · [k, n] → [m, n]. PyTorch: `torch.mm`.
 * @throws SHAPE_MISMATCH if the shapes do not fit; DTYPE_MISMATCH if the dtypes differ or are bool
 * @example tensor([[1, 2], [3, 4]]).mm(tensor([[0, 1], [1, 0]])) // [[2, 1], [4, 3]]
 */
export const mm: (a: Tensor, b: Tensor) => Tensor = composite('mm', {
  args: ['tensor', 'tensor'],
  of: (ops) => (a, b) => {
    checkRanks('mm', '[m, k] and [k, n]', a, 2, b, 2)
    return ops.matmul(a, b)
  },
})

/**
 * A matrix times a vector: [m, k] · [k] → [m]. PyTorch: `torch.mv`.
 * @throws SHAPE_MISMATCH if the shapes do not fit; DTYPE_MISMATCH if the dtypes differ or are bool
 * @example tensor([[1, 2], [3, 4]]).mv(tensor([1, 1])) // [3, 7]
 */
export const mv: (a: Tensor, b: Tensor) => Tensor = composite('mv', {
  args: ['tensor', 'tensor'],
  of: (ops) => (a, b) => {
    checkRanks('mv', '[m, k] and [k]', a, 2, b, 1)
    return ops.matmul(a, b)
  },
})

/**
 * Σ a · b of two vectors: [k] · [k] → []. PyTorch: `torch.dot`.
 * @throws SHAPE_MISMATCH if the shapes do not fit; DTYPE_MISMATCH if the dtypes differ or are bool
 * @example tensor([1, 2, 3]).dot(tensor([4, 5, 6])) // 32
 */
export const dot: (a: Tensor, b: Tensor) => Tensor = composite('dot', {
  args: ['tensor', 'tensor'],
  of: (ops) => (a, b) => {
    checkRanks('dot', '[k] and [k]', a, 1, b, 1)
    return ops.matmul(a, b)
  },
})

/**
 * The product of each element of a with each element of b: [m], [n] → [m, n]. PyTorch: `torch.outer`.
 * @throws SHAPE_MISMATCH if a or b is not a vector
 * @example tensor([1, 2]).outer(tensor([10, 20, 30])) // [[10, 20, 30], [20, 40, 60]]
 */
export const outer: (a: Tensor, b: Tensor) => Tensor = composite('outer', {
  args: ['tensor', 'tensor'],
  of: (ops) => (a, b) => {
    checkRanks('outer', '[m] and [n]', a, 1, b, 1)
    return ops.mul(ops.unsqueeze(a, 1), b)
  },
})

/**
 * beta · x + alpha · (a b), with both factors 1 by default. a is [m, k], b is [k, n], and x broadcasts to [m, n]. If beta is 0, NaN in x does not count.
 * PyTorch: `torch.addmm`.
 * @throws SHAPE_MISMATCH if the shapes do not fit; DTYPE_MISMATCH if the dtypes differ or are bool
 * @example tensor([100, 200]).addmm(tensor([[1, 2]]), tensor([[1, 0], [0, 1]]), { beta: 0.5 }) // [[51, 102]]
 */
export const addmm: (x: Tensor, a: Tensor, b: Tensor, options?: AddmmOptions) => Tensor = composite('addmm', {
  args: ['tensor', 'tensor', 'tensor', 'options?'],
  options: { beta: true, alpha: true },
  of: (ops) => (x, a, b, options) => {
    checkRanks('addmm', '[m, k] and [k, n]', a, 2, b, 2)
    return added(ops, 'addmm', x, ops.matmul(a, b), options)
  },
})

/**
 * beta · x + alpha · (a b) for each matrix of a batch, with both factors 1 by default. a is [b, m, k], b is [b, k, n], and x broadcasts to [b, m, n]. PyTorch:
 * `torch.baddbmm`.
 * @throws SHAPE_MISMATCH if the shapes do not fit; DTYPE_MISMATCH if the dtypes differ or are bool
 * @example zeros([2, 4]).baddbmm(ones([8, 2, 3]), ones([8, 3, 4])) // shape [8, 2, 4]
 */
export const baddbmm: (x: Tensor, a: Tensor, b: Tensor, options?: AddmmOptions) => Tensor = composite('baddbmm', {
  args: ['tensor', 'tensor', 'tensor', 'options?'],
  options: { beta: true, alpha: true },
  of: (ops) => (x, a, b, options) => added(ops, 'baddbmm', x, ops.bmm(a, b), options),
})

/**
 * Sums of products over dimensions of a and b. With a number (default 2), these are the last `dims` dimensions of a and the first of b. With two lists, they
 * are dims[0] of a and dims[1] of b. PyTorch: `torch.tensordot`.
 * @throws SHAPE_MISMATCH if the extents of these dimensions differ; INVALID_ARGUMENT if `dims` is not valid
 * @example tensordot(ones([2, 3, 4]), ones([4, 3, 5]), [[1, 2], [1, 0]]) // shape [2, 5]
 */
export const tensordot: Functional<(a: Tensor, b: Tensor, dims?: number | readonly [readonly number[], readonly number[]]) => Tensor> =
  composite('tensordot', {
    args: ['tensor', 'tensor', 'number or list?'],
    isFunctional: true,
    of:
      (ops) =>
      (a, b, dims = 2) => {
        const [da, db] = contracted(a, b, dims)
        const rest = (x: Tensor, taken: readonly number[]) => x.shape.map((_, d) => d).filter((d) => !taken.includes(d))
        const [ra, rb] = [rest(a, da), rest(b, db)]
        const extents = (x: Tensor, list: readonly number[]) => list.map((d) => x.shape[d]!)
        const k = numelOf(extents(a, da))
        const left = ops.reshape(ops.permute(a, [...ra, ...da]), [numelOf(extents(a, ra)), k])
        const right = ops.reshape(ops.permute(b, [...db, ...rb]), [k, numelOf(extents(b, rb))])
        return ops.reshape(ops.matmul(left, right), [...extents(a, ra), ...extents(b, rb)])
      },
  })

/**
 * Sums of products by Einstein's convention: einsum('ij,jk->ik', a, b). Without '->', the result keeps the letters that occur once. '...' broadcasts. A letter
 * that occurs twice in one operand takes its diagonal. PyTorch: `torch.einsum`.
 * @throws INVALID_ARGUMENT if the equation is not valid; SHAPE_MISMATCH if an operand does not fit to it
 * @example einsum('i,ij->j', tensor([1, 10]), tensor([[1, 2], [3, 4]])) // [31, 42]
 */
export const einsum: Functional<(equation: string, ...operands: readonly (Tensor | readonly Tensor[])[]) => Tensor> = composite('einsum', {
  of:
    (ops) =>
    (equation, ...operands) =>
      contract(ops, equation, operands.flat() as Tensor[]),
})

/**
 * The sum of the diagonal of a matrix. PyTorch: `torch.trace`.
 * @throws SHAPE_MISMATCH if x is not a matrix
 * @example tensor([[1, 2], [3, 4]]).trace() // 5
 */
export const trace: (x: Tensor) => Tensor = composite('trace', {
  args: ['tensor'],
  of: (ops) => (x) => {
    if (x.ndim !== 2) throw shapeMismatch('trace', 'a matrix', shapeText(x.shape), 'Use diagonal() and sum() for batches.')
    return ops.sum(ops.diagonal(x))
  },
})

/**
 * Σ a · b / (|a| · |b|) along `dim` (default 1), with norms of at least `eps` (default 1e-8). a and b broadcast. PyTorch:
 * `torch.nn.functional.cosine_similarity`.
 * @throws SHAPE_MISMATCH if the shapes do not broadcast; DIM_OUT_OF_RANGE if `dim` is not a dimension of the result; DTYPE_MISMATCH if a or b is int32 or bool
 * @example cosineSimilarity(tensor([[1, 0], [1, 1]]), tensor([[2, 0], [1, 0]])) // [1, 0.7071]
 */
export const cosineSimilarity: Functional<(a: Tensor, b: Tensor, options?: SimilarityOptions) => Tensor> = composite('cosineSimilarity', {
  args: ['tensor', 'tensor', 'options?'],
  options: { dim: true, eps: true },
  isFunctional: true,
  of:
    (ops) =>
    (a, b, { dim = 1, eps = 1e-8 } = {}) => {
      const [x, y] = ops.broadcastTensors([a, b]) as [Tensor, Tensor]
      const d = normalizeDim('cosineSimilarity', dim, x.ndim)
      if (!isFloating(promote(x.dtype, y.dtype)))
        throw dtypeMismatch('cosineSimilarity', 'floating point tensors', x.dtype, "Convert with to('float32').")
      // Each norm has its own bound, and no square of one meets the other's: that could overflow.
      const direction = (t: Tensor) => ops.div(t, ops.sqrt(atLeast(ops, ops.sum(ops.mul(t, t), d, true), eps * eps)))
      return ops.sum(ops.mul(direction(x), direction(y)), d)
    },
})

/**
 * The p-norm (default 2) of a − b + eps (default 1e-6) over the last dimension. a and b broadcast. PyTorch: `torch.nn.functional.pairwise_distance`.
 * @throws SHAPE_MISMATCH if the shapes do not broadcast
 * @example pairwiseDistance(tensor([[0, 0], [1, 1]]), tensor([[3, 4], [1, 1]])) // [5, 0]
 */
export const pairwiseDistance: Functional<(a: Tensor, b: Tensor, options?: DistanceOptions) => Tensor> = composite('pairwiseDistance', {
  args: ['tensor', 'tensor', 'options?'],
  options: { p: true, eps: true, keepdim: true },
  isFunctional: true,
  of:
    (ops) =>
    (a, b, { p = 2, eps = 1e-6, keepdim = false } = {}) => {
      return ops.norm(ops.add(ops.sub(a, b), eps), p, -1, keepdim)
    },
})

/**
 * The p-norm (default 2) of the difference of each row of x1 and each row of x2: [..., P, M], [..., R, M] → [..., P, R]. Batch dimensions broadcast. The
 * function holds all P · R · M differences, since a product of matrices would lose small distances. At a distance of 0 the gradient is 0. PyTorch:
 * `torch.cdist`.
 * @throws SHAPE_MISMATCH if the shapes do not fit; DTYPE_MISMATCH if x1 or x2 is int32 or bool; INVALID_ARGUMENT if p is negative
 * @example cdist(tensor([[0, 0]]), tensor([[3, 4], [1, 0]])) // [[5, 1]]
 */
export const cdist: Functional<(x1: Tensor, x2: Tensor, p?: number) => Tensor> = composite('cdist', {
  args: ['tensor', 'tensor', 'number?'],
  isFunctional: true,
  of:
    (ops) =>
    (x1, x2, p = 2) => {
      if (!(p >= 0)) throw invalidArgument('cdist', 'p ≥ 0', p, 'Infinity gives the largest difference.')
      if (x1.ndim < 2 || x2.ndim < 2 || x1.shape.at(-1) !== x2.shape.at(-1)) {
        throw shapeMismatch(
          'cdist',
          '[..., P, M] and [..., R, M]',
          `${shapeText(x1.shape)} and ${shapeText(x2.shape)}`,
          'unsqueeze(0) makes a row of a vector.',
        )
      }
      const whole = [x1, x2].find(({ dtype }) => !isFloating(dtype))
      if (whole !== undefined) throw dtypeMismatch('cdist', 'floating point tensors', whole.dtype, "Convert with to('float32') first.")
      broadcastShapes('cdist', x1.shape.slice(0, -2), x2.shape.slice(0, -2))
      return ops.norm(ops.sub(ops.unsqueeze(x1, -2), ops.unsqueeze(x2, -3)), p, -1)
    },
})

/** To the wider of the two: the other way would lose digits. */
function conversion(a: DType, b: DType): string {
  const wide = promote(a, b)
  return `Convert the ${a === wide ? 'second' : 'first'} one with to('${wide}').`
}

function checkRanks(op: string, expected: string, a: Tensor, aRank: number, b: Tensor, bRank: number): void {
  if (a.ndim === aRank && b.ndim === bRank) return
  throw shapeMismatch(op, expected, `${shapeText(a.shape)} and ${shapeText(b.shape)}`, 'Use matmul() for other ranks.')
}

function added(ops: Ops, op: string, x: Tensor, product: Tensor, { beta = 1, alpha = 1 }: AddmmOptions = {}): Tensor {
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

/**
 * Gradient of a in matmul(a, b). Vectors become matrices for the time being (a a row, b a column), as matmul treats them; what a broadcast
 * over batches is summed.
 */
function matmulGradA(g: Tensor, b: Tensor, shapeA: Shape, ops: Ops): Tensor {
  if (shapeA.length === 2 && b.ndim === 2) return ops.matmul(g, ops.transpose(b, 0, 1))
  const g2 = asMatrix(g, shapeA, b.shape, ops)
  const b2 = b.ndim === 1 ? ops.unsqueeze(b, 1) : b
  const a2Shape = shapeA.length === 1 ? [1, ...shapeA] : shapeA
  return ops.reshape(sumToShape(ops.matmul(g2, ops.transpose(b2, -2, -1)), a2Shape), shapeA)
}

/** Gradient of b in matmul(a, b). */
function matmulGradB(g: Tensor, a: Tensor, shapeB: Shape, ops: Ops): Tensor {
  if (shapeB.length === 2 && a.ndim === 2) return ops.matmul(ops.transpose(a, 0, 1), g)
  const g2 = asMatrix(g, a.shape, shapeB, ops)
  const a2 = a.ndim === 1 ? ops.unsqueeze(a, 0) : a
  const b2Shape = shapeB.length === 1 ? [...shapeB, 1] : shapeB
  if (b2Shape.length === 2 && a2.ndim > 2) {
    // One matrix served all batches: one large product does the sum over them, too.
    const [k, n] = b2Shape as [number, number]
    const rows = numelOf(a2.shape.slice(0, -1))
    return ops.reshape(ops.matmul(ops.transpose(ops.reshape(a2, [rows, k]), 0, 1), ops.reshape(g2, [rows, n])), shapeB)
  }
  return ops.reshape(sumToShape(ops.matmul(ops.transpose(a2, -2, -1), g2), b2Shape), shapeB)
}

/** The gradient of a product with the dimensions that matmul dropped because a or b was a vector. */
function asMatrix(g: Tensor, shapeA: Shape, shapeB: Shape, ops: Ops): Tensor {
  const withColumn = shapeB.length === 1 ? ops.unsqueeze(g, -1) : g
  return shapeA.length === 1 ? ops.unsqueeze(withColumn, -2) : withColumn
}
