/** Tables of vectors, looked up by index, one by one or in bags. PyTorch: `torch.nn.Embedding`, `EmbeddingBag`. */
import { embedding, embeddingBag } from '@postgrad/autograd'
import type { Tensor } from '@postgrad/tensor'
import { indexOutOfRange, raw, shapeMismatch, shapeText } from '@postgrad/tensor/internal'
import { checkOneOf, checkOptions, checkSizes } from '../module/check.js'
import { extraRepr } from '../module/extra-repr.js'
import { Module, noteMembers } from '../module/module.js'
import { normal, type ParameterOptions, parameter } from '../module/parameter.js'

/** Options of `Embedding`. */
export interface EmbeddingOptions extends ParameterOptions {
  /** The index of a row that begins with zeros and gets no gradient; negative indices count from the end. Default: none. */
  readonly paddingIdx?: number | null
  /** Whether the gradient of the weight is a `SparseTensor` of the rows that were used; default false. */
  readonly sparse?: boolean
}

/** Options of `Embedding.fromPretrained` and `EmbeddingBag.fromPretrained`. */
export interface FromPretrainedOptions extends Omit<EmbeddingOptions, 'dtype'> {
  /** Whether the table stays as it is, and is not trained; default true. The row at `paddingIdx` keeps its values. */
  readonly freeze?: boolean
}

abstract class Table extends Module {
  /** The number of vectors. */
  readonly numEmbeddings: number
  /** The length of each vector. */
  readonly embeddingDim: number
  /** The index of the row that gets no gradient; null: none. */
  readonly paddingIdx: number | null
  /** Whether the gradient of the weight is a `SparseTensor`. */
  readonly sparse: boolean
  /** The table of vectors, [numEmbeddings, embeddingDim]. */
  readonly weight: Tensor

  /** @param given a weight, in place of one that is drawn */
  protected constructor(numEmbeddings: number, embeddingDim: number, options: EmbeddingOptions, given: Tensor | null) {
    super()
    checkOptions(new.target.name, options, ['paddingIdx', 'sparse', 'dtype'])
    const { paddingIdx = null, sparse = false, ...parameters } = options
    const op = new.target.name
    checkSizes(op, { numEmbeddings, embeddingDim }, 0)
    this.numEmbeddings = numEmbeddings
    this.embeddingDim = embeddingDim
    this.paddingIdx = checkedPadding(op, paddingIdx, numEmbeddings)
    this.sparse = sparse
    this.weight = given ?? normal([numEmbeddings, embeddingDim], parameters)
    if (given === null && this.paddingIdx !== null) raw.fill_(raw.select(this.weight, 0, this.paddingIdx), 0)
    noteMembers(this)
  }
}

/**
 * A table of vectors [numEmbeddings, embeddingDim], from which indices pick rows. The table begins standard normal. PyTorch: `torch.nn.Embedding`.
 * @example
 * new Embedding(10, 4).forward(tensor([[1, 2, 9]], { dtype: 'int32' })).shape // [1, 3, 4]
 * Embedding.fromPretrained(tensor([[1, 2], [3, 4]])).forward(tensor([1, 0, 1])) // [[3, 4], [1, 2], [3, 4]]
 */
export class Embedding extends Table {
  /**
   * The weight begins standard normal, or is `given`, a parameter of this shape.
   * @throws INVALID_ARGUMENT if a size is not valid; INDEX_OUT_OF_RANGE if the table does not have the row `paddingIdx`; DTYPE_MISMATCH if the dtype is not
   * float32 or float64
   */
  constructor(numEmbeddings: number, embeddingDim: number, options: EmbeddingOptions = {}, given: Tensor | null = null) {
    super(numEmbeddings, embeddingDim, options, given)
  }

  /**
   * Makes an Embedding on the storage of `weight` [numEmbeddings, embeddingDim].
   * @throws SHAPE_MISMATCH if `weight` is not a matrix; INDEX_OUT_OF_RANGE if it does not have the row `paddingIdx`; REQUIRES_GRAD_NEEDS_FLOAT if it is int32
   * or bool
   */
  static fromPretrained(weight: Tensor, { freeze = true, ...options }: FromPretrainedOptions = {}): Embedding {
    const [rows, width] = matrixShape('Embedding.fromPretrained', weight)
    return new Embedding(rows, width, options, parameter(weight, { requiresGrad: !freeze }))
  }

  /**
   * indices (int32 or whole numbers) of any shape → […indices, embeddingDim].
   * @throws INDEX_OUT_OF_RANGE if an index is not from 0 to numEmbeddings − 1; DTYPE_MISMATCH if an index is not a whole number
   */
  forward(indices: Tensor): Tensor {
    const { weight, paddingIdx, sparse } = this
    return paddingIdx === null && !sparse ? embedding(weight, indices) : embedding(weight, indices, { paddingIdx, sparse })
  }

  override extraRepr(): string {
    const { numEmbeddings, embeddingDim, paddingIdx, sparse } = this
    return extraRepr({ numEmbeddings, embeddingDim, paddingIdx, ...(sparse && { sparse }) })
  }
}

/** How the rows of a bag are combined into one. */
export type BagMode = 'sum' | 'mean' | 'max'

/** Options of `EmbeddingBag`. */
export interface EmbeddingBagModuleOptions extends EmbeddingOptions {
  /** How the rows of a bag are combined into one; default 'mean'. */
  readonly mode?: BagMode
  /** Whether the last offset is the end of the last bag; default false. */
  readonly includeLastOffset?: boolean
}

/** Options of `EmbeddingBag.forward`. */
export interface EmbeddingBagCall {
  /** Where each bag begins in the indices [n]: a tensor [bags], int32 or whole numbers. With `includeLastOffset` it has one more element. */
  readonly offsets?: Tensor | null
  /** A factor for each row, in the shape of the indices. Only for mode 'sum'. */
  readonly perSampleWeights?: Tensor | null
}

/**
 * A table of vectors. For each bag of indices, the result is the sum, mean (default) or maximum of the rows at these indices. PyTorch: `torch.nn.EmbeddingBag`.
 * @example
 * const bags = EmbeddingBag.fromPretrained(tensor([[1, 2], [3, 4], [5, 6]]), { mode: 'sum' })
 * bags.forward(tensor([[0, 1], [2, 2]])) // [[4, 6], [10, 12]]
 * bags.forward(tensor([0, 1, 2]), { offsets: tensor([0, 2]) }) // [[4, 6], [5, 6]]
 */
export class EmbeddingBag extends Table {
  /** How the rows of a bag are combined into one. */
  readonly mode: BagMode
  /** Whether the last offset is the end of the last bag. */
  readonly includeLastOffset: boolean

  /**
   * The weight begins standard normal, or is `given`, a parameter of this shape.
   * @throws INVALID_ARGUMENT if a size or the mode is not valid; INDEX_OUT_OF_RANGE if the table does not have the row `paddingIdx`; DTYPE_MISMATCH if the
   * dtype is not float32 or float64
   */
  constructor(numEmbeddings: number, embeddingDim: number, options: EmbeddingBagModuleOptions = {}, given: Tensor | null = null) {
    const { mode = 'mean', includeLastOffset = false, ...rest } = options
    super(numEmbeddings, embeddingDim, rest, given)
    checkOneOf('EmbeddingBag', 'mode', mode, ['sum', 'mean', 'max'])
    this.mode = mode
    this.includeLastOffset = includeLastOffset
  }

  /**
   * Makes an EmbeddingBag on the storage of `weight` [numEmbeddings, embeddingDim].
   * @throws SHAPE_MISMATCH if `weight` is not a matrix; INDEX_OUT_OF_RANGE if it does not have the row `paddingIdx`; REQUIRES_GRAD_NEEDS_FLOAT if it is int32
   * or bool
   */
  static fromPretrained(weight: Tensor, options: FromPretrainedOptions & EmbeddingBagModuleOptions = {}): EmbeddingBag {
    const { freeze = true, ...rest } = options
    const [rows, width] = matrixShape('EmbeddingBag.fromPretrained', weight)
    return new EmbeddingBag(rows, width, rest, parameter(weight, { requiresGrad: !freeze }))
  }

  /**
   * indices (int32 or whole numbers) [bags, length], or [n] with `offsets` → [bags, embeddingDim]. Rows at `paddingIdx` do not count. An empty bag gives 0.
   * @throws INDEX_OUT_OF_RANGE if an index is not from 0 to numEmbeddings − 1; DTYPE_MISMATCH if an index is not a whole number; SHAPE_MISMATCH if the indices
   * are [n] without offsets; INVALID_ARGUMENT if offsets do not ascend, or an option does not fit
   */
  forward(indices: Tensor, options: EmbeddingBagCall = {}): Tensor {
    checkOptions('EmbeddingBag', options, ['offsets', 'perSampleWeights'], 'Write bag.forward(indices, { offsets }).')
    const { offsets = null, perSampleWeights = null } = options
    const { weight, mode, paddingIdx, sparse, includeLastOffset } = this
    return embeddingBag(weight, indices, { mode, paddingIdx, sparse, includeLastOffset, offsets, perSampleWeights })
  }

  override extraRepr(): string {
    const { numEmbeddings, embeddingDim, mode, paddingIdx } = this
    return extraRepr({ numEmbeddings, embeddingDim, mode, paddingIdx })
  }
}

function matrixShape(op: string, weight: Tensor): readonly [rows: number, width: number] {
  if (weight.ndim === 2) return weight.shape as readonly [number, number]
  throw shapeMismatch(op, 'a matrix', shapeText(weight.shape), 'One row is one vector: use reshape().')
}

function checkedPadding(op: string, index: number | null, rows: number): number | null {
  if (index === null) return null
  if (Number.isInteger(index) && index >= -rows && index < rows) return index < 0 ? index + rows : index
  throw indexOutOfRange(op, `a paddingIdx from ${-rows} to ${rows - 1}`, index, 'Pass the index of one of the rows.')
}
