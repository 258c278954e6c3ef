/**
 * Element types: their names, arrays, and how two of them promote. Below everything else in this package.
 * PyTorch's rules (`torch.result_type`) over the four types that exist here; PyTorch's int64 results are int32.
 */

/** The dtypes of tensors. A bool is one byte, 0 or 1. */
export type DType = 'float32' | 'float64' | 'int32' | 'bool'

export interface ArrayOf {
  float32: Float32Array
  float64: Float64Array
  int32: Int32Array
  bool: Uint8Array
}

/** The array of a tensor's elements: Float32Array, Float64Array, Int32Array, and Uint8Array for bool. */
export type TypedArray = ArrayOf[DType]

export const DTYPES = ['float32', 'float64', 'int32', 'bool'] as const satisfies readonly DType[]

export const BYTES_PER_ELEMENT: Readonly<Record<DType, number>> = { float32: 4, float64: 8, int32: 4, bool: 1 }

/** Of so many elements. Not by the table above: this is on the way of every tensor, and a look-up by a name that varies costs 3 ns. */
export function byteLength(dtype: DType, length: number): number {
  return dtype === 'bool' ? length : dtype === 'float64' ? 8 * length : 4 * length
}

/** int32 holds −INT32_SPAN … INT32_SPAN−1. */
export const INT32_SPAN = 2 ** 31

/** Order of promotion: the result of two dtypes is the one with the higher rank (they form a chain). */
const RANK: Readonly<Record<DType, number>> = { bool: 0, int32: 1, float32: 2, float64: 3 }

/**
 * A fresh array of `length` zeros. Arrays of more than 64 bytes have a buffer, which costs 500 to 1,500 ns and a place in the collector's lists; so those up
 * to `SLAB_ARRAY_MAX` share one, a slab, as Node's Buffers do. An array that shares a buffer may not be transferred, and a small array that is
 * kept keeps its slab, so slabs are small: larger ones saved 0.1 µs more.
 */
export function allocate(dtype: DType, length: number): TypedArray {
  const bytes = byteLength(dtype, length)
  if (bytes > IN_OBJECT_MAX && bytes <= SLAB_ARRAY_MAX) return inSlab(dtype, length, (bytes + 7) & ~7)
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

/** V8 keeps the elements of arrays up to this size in the object. */
const IN_OBJECT_MAX = 64
/** Below the size at which storage lies in the heap. */
const SLAB_ARRAY_MAX = 8192
const SLAB_BYTES = 16384

/** The slab of this thread that is being cut up. */
let slab = new ArrayBuffer(SLAB_BYTES)
let slabUsed = 0

function inSlab(dtype: DType, length: number, bytes: number): TypedArray {
  if (slabUsed + bytes > SLAB_BYTES) {
    slab = new ArrayBuffer(SLAB_BYTES)
    slabUsed = 0
  }
  const at = slabUsed
  slabUsed += bytes
  switch (dtype) {
    case 'float32':
      return new Float32Array(slab, at, length)
    case 'float64':
      return new Float64Array(slab, at, length)
    case 'int32':
      return new Int32Array(slab, at, length)
    case 'bool':
      return new Uint8Array(slab, at, length)
  }
}

/** A view of `length` elements on `buffer` from byte `offset` on. */
export function viewOn(dtype: DType, buffer: ArrayBufferLike, offset: number, length: number): TypedArray {
  switch (dtype) {
    case 'float32':
      return new Float32Array(buffer, offset, length)
    case 'float64':
      return new Float64Array(buffer, offset, length)
    case 'int32':
      return new Int32Array(buffer, offset, length)
    case 'bool':
      return new Uint8Array(buffer, offset, length)
  }
}

/** The element of an array of `dtype` for `value`: for bool 0 or 1. Arrays of other dtypes convert the number themselves. */
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
