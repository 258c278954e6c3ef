/** Zeros of a known shape and dtype, for gradients that are missing. */
import type { DType } from '../dtype.js'
import type { Shape } from '../shape.js'
import { Tensor } from '../tensor.js'

export function zerosOf(shape: Shape, dtype: DType): Tensor {
  return Tensor.empty(dtype, shape)
}
