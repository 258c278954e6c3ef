/** A table of vectors, looked up by index. PyTorch: `torch.nn.Embedding`. */
import type { Tensor } from '@postgrad/tensor'
import { normal, type ParameterOptions } from './init.js'
import { Module } from './module.js'

export class Embedding extends Module {
  /** [numEmbeddings, embeddingDim] */
  readonly weight: Tensor

  /** Weight standard normal. */
  constructor(numEmbeddings: number, embeddingDim: number, options: ParameterOptions = {}) {
    super()
    this.weight = normal([numEmbeddings, embeddingDim], options)
  }

  /** indices int32 of any shape → […indices, embeddingDim]. @throws INDEX_OUT_OF_RANGE, DTYPE_MISMATCH */
  forward(indices: Tensor): Tensor {
    return this.weight.embedding(indices)
  }
}
