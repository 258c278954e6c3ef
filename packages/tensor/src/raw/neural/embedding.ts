/** Rows of a table by index: as `embedding`, with what its gradient needs to know among the arguments. */
import type { Tensor } from '../../tensor/tensor.js'
import { embedding } from '../indexing.js'

/** @throws as embedding */
export function embeddingRows(weight: Tensor, indices: Tensor, _paddingIdx: number, _sparse: boolean): Tensor {
  return embedding(weight, indices)
}
