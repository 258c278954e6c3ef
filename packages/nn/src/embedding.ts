/** A table of vectors, looked up by index. PyTorch: `torch.nn.Embedding`. */
import type { Tensor } from '@postgrad/tensor'
import { indexOutOfRange, raw, shapeMismatch, shapeText } from '@postgrad/tensor/internal'
import { checkSizes } from './check.js'
import { extraRepr } from './extra-repr.js'
import { Module } from './module.js'
import { normal, type ParameterOptions, parameter } from './parameter.js'

export interface EmbeddingOptions extends ParameterOptions {
  /** The row of this index begins with zeros and gets no gradient; −1 is the last. Default: none. */
  readonly paddingIdx?: number | null
}

export interface FromPretrainedOptions {
  /** Not trained; default true. */
  readonly freeze?: boolean
  /** As above, but the row keeps its values. */
  readonly paddingIdx?: number | null
}

export class Embedding extends Module {
  readonly numEmbeddings: number
  readonly embeddingDim: number
  readonly paddingIdx: number | null
  /** [numEmbeddings, embeddingDim] */
  readonly weight: Tensor

  /** Weight standard normal. @throws INVALID_ARGUMENT, INDEX_OUT_OF_RANGE, DTYPE_MISMATCH */
  constructor(numEmbeddings: number, embeddingDim: number, { paddingIdx = null, ...options }: EmbeddingOptions = {}) {
    super()
    checkSizes('Embedding', { numEmbeddings, embeddingDim }, 0)
    this.numEmbeddings = numEmbeddings
    this.embeddingDim = embeddingDim
    this.paddingIdx = checkedPadding('Embedding', paddingIdx, numEmbeddings)
    this.weight = normal([numEmbeddings, embeddingDim], options)
    if (this.paddingIdx !== null) raw.fill_(raw.select(this.weight, 0, this.paddingIdx), 0)
  }

  /** On the storage of `weight` [numEmbeddings, embeddingDim]. @throws SHAPE_MISMATCH, INDEX_OUT_OF_RANGE, DTYPE_MISMATCH */
  static fromPretrained(weight: Tensor, { freeze = true, paddingIdx = null }: FromPretrainedOptions = {}): Embedding {
    if (weight.ndim !== 2) {
      throw shapeMismatch('Embedding.fromPretrained', 'a matrix', shapeText(weight.shape), 'One row is one vector: use reshape().')
    }
    const [rows, width] = weight.shape as readonly [number, number]
    // Made empty, so that nothing is drawn.
    const made = new Embedding(0, width)
    const fields = { numEmbeddings: rows, paddingIdx: checkedPadding('Embedding.fromPretrained', paddingIdx, rows) }
    return Object.assign(made, { ...fields, weight: parameter(weight, { requiresGrad: !freeze }) })
  }

  /** indices int32 of any shape → […indices, embeddingDim]. @throws INDEX_OUT_OF_RANGE, DTYPE_MISMATCH */
  forward(indices: Tensor): Tensor {
    const rows = this.weight.embedding(indices)
    if (this.paddingIdx === null || !rows.requiresGrad) return rows
    // Where the padding stands, the same values without a way back.
    return indices.ne(this.paddingIdx).unsqueeze(-1).where(rows, rows.detach())
  }

  override extraRepr(): string {
    const { numEmbeddings, embeddingDim, paddingIdx } = this
    return extraRepr({ numEmbeddings, embeddingDim, paddingIdx })
  }
}

function checkedPadding(op: string, index: number | null, rows: number): number | null {
  if (index === null) return null
  if (Number.isInteger(index) && index >= -rows && index < rows) return index < 0 ? index + rows : index
  throw indexOutOfRange(op, `a paddingIdx from ${-rows} to ${rows - 1}`, index, 'Pass the index of one of the rows.')
}
