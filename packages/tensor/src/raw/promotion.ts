/** The dtype in which operands are computed: PyTorch's `result_type`, with 0-d tensors and numbers as the weaker side. */

import type { Tensor } from '../tensor/tensor.js'
import { categoryOf, type DType, INT32_SPAN, isFloating, promote } from '../values/dtype.js'

/**
 * A number widens only into a higher category: integer-valued numbers count as integers, others (and those beyond 32 bits) as floating
 * point, which is float32 for an integer tensor.
 */
export function promoteNumber(dtype: DType, value: number): DType {
  const whole = Number.isInteger(value) && value >= -INT32_SPAN && value < INT32_SPAN
  if (dtype === 'bool') return whole ? 'int32' : 'float32'
  return dtype === 'int32' && !whole ? 'float32' : dtype
}

/** A 0-d tensor widens one with dimensions only into a higher category; otherwise the wider of the two. */
export function promoteTensors(a: Tensor, b: Tensor): DType {
  if (a.dtype === b.dtype) return a.dtype
  const aScalar = a.shape.length === 0
  if (aScalar === (b.shape.length === 0)) return promote(a.dtype, b.dtype)
  const strong = aScalar ? b.dtype : a.dtype
  const weak = aScalar ? a.dtype : b.dtype
  return categoryOf(weak) > categoryOf(strong) ? promote(strong, weak) : strong
}

/** The same of several: those with dimensions agree among themselves, and so do the 0-d ones, before the two meet. */
export function promoteAll(tensors: readonly Tensor[]): DType {
  const common = (some: readonly Tensor[]): DType | null =>
    some.length === 0 ? null : some.map(({ dtype }) => dtype).reduce((a, b) => promote(a, b))
  const strong = common(tensors.filter(({ shape }) => shape.length > 0))
  const weak = common(tensors.filter(({ shape }) => shape.length === 0))
  if (strong === null || weak === null) return (strong ?? weak)!
  return categoryOf(weak) > categoryOf(strong) ? promote(strong, weak) : strong
}

/** int32 and bool become float32, real dtypes stay. */
export function toFloating(dtype: DType): DType {
  return isFloating(dtype) ? dtype : 'float32'
}
