/**
 * Element types: their names, arrays, and how two of them promote. Below everything else in this package.
 * PyTorch's rules (`torch.result_type`) over the four types that exist here; PyTorch's int64 results are int32.
 */

/** `bool` is a Uint8Array of 0 and 1. */
export type DType = 'float32' | 'float64' | 'int32' | 'bool'

export interface ArrayOf {
  float32: Float32Array
  float64: Float64Array
  int32: Int32Array
  bool: Uint8Array
}

export type TypedArray = ArrayOf[DType]

export const DTYPES = ['float32', 'float64', 'int32', 'bool'] as const satisfies readonly DType[]

export const BYTES_PER_ELEMENT: Readonly<Record<DType, number>> = { float32: 4, float64: 8, int32: 4, bool: 1 }

/** int32 holds −INT32_SPAN … INT32_SPAN−1. */
export const INT32_SPAN = 2 ** 31

/** Order of promotion: the result of two dtypes is the one with the higher rank (they form a chain). */
const RANK: Readonly<Record<DType, number>> = { bool: 0, int32: 1, float32: 2, float64: 3 }

/** A fresh array of `length` zeros. */
export function allocate(dtype: DType, length: number): TypedArray {
  switch (dtype) {
    case 'float32':
      return new Float32Array(length)
    case 'float64':
      return new Float64Array(length)
    case 'int32':
      return new Int32Array(length)
    case 'bool':
      return new Uint8Array(length)
  }
}

/** What an array of `dtype` is given for `value`: of bool 0 or 1, whatever number it was. The arrays convert the rest by themselves. */
export function elementOf(dtype: DType, value: number): number {
  return dtype === 'bool' ? Number(value !== 0) : value
}

export function isFloating(dtype: DType): boolean {
  return dtype === 'float32' || dtype === 'float64'
}

export function isDType(value: unknown): value is DType {
  return (DTYPES as readonly unknown[]).includes(value)
}

/** The dtype that holds values of both (tensors with at least one dimension, or both without). */
export function promote(a: DType, b: DType): DType {
  return RANK[a] >= RANK[b] ? a : b
}

/** 0 bool, 1 integer, 2 floating: within one category a 0-d tensor or a number does not widen the other operand. */
export function categoryOf(dtype: DType): number {
  return dtype === 'bool' ? 0 : dtype === 'int32' ? 1 : 2
}
