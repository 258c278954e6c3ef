/**
 * A message's bytes that are not packed: tensors (dtype and shape in the header, elements here, row by row) and typed arrays. Small ones
 * follow the packed values in the header's own buffer, each at a multiple of 8; large ones are a segment each, with a buffer of their own
 * that a link can move. The lengths alone give the place of each part, so no offsets travel.
 */
import type { DType, Tensor, TypedArray } from '@postgrad/tensor'
import { BYTES_PER_ELEMENT, Tensor as TensorClass } from '@postgrad/tensor/internal'

/** Parts up to this length lie in the header. */
export const INLINE_BYTES_MAX = 4096

/** The code of a dtype on the wire. */
export const CODE_OF = { float32: 0, float64: 1, int32: 2, bool: 3 } as const satisfies Record<DType, number>

/** By code. */
export const DTYPE_CODES = ['float32', 'float64', 'int32', 'bool'] as const satisfies readonly DType[]

/** Parts begin at multiples of 8: `(n + ROUND) & ~ROUND`. */
export const ROUND = 7
export const align8 = (n: number): number => (n + ROUND) & ~ROUND

/** One buffer as all element types, starting at its first byte. */
export class Views {
  readonly buffer: ArrayBuffer
  readonly bytes: Uint8Array
  /** By dtype. */
  readonly of: Readonly<Record<DType, TypedArray>>

  constructor(buffer: ArrayBuffer) {
    const { byteLength } = buffer
    this.buffer = buffer
    this.bytes = new Uint8Array(buffer)
    this.of = {
      float32: new Float32Array(buffer, 0, Math.trunc(byteLength / 4)),
      float64: new Float64Array(buffer, 0, Math.trunc(byteLength / 8)),
      int32: new Int32Array(buffer, 0, Math.trunc(byteLength / 4)),
      bool: this.bytes,
    }
  }
}

export function byteLengthOf(tensor: Tensor): number {
  return tensor.numel * BYTES_PER_ELEMENT[tensor.dtype]
}

/** A tensor from a segment: over the segment's own memory if that is all of its buffer, so that it holds nobody else's bytes alive; a copy else. */
export function fromSegment(dtype: DType, shape: readonly number[], segment: Uint8Array): Tensor {
  const isOwn = segment.byteOffset === 0 && segment.length === segment.buffer.byteLength
  const buffer = isOwn ? (segment.buffer as ArrayBuffer) : bufferOf(segment)
  const array = new Views(buffer).of[dtype]
  if (dtype === 'bool') for (let i = 0; i < array.length; i++) if (array[i] !== 0) array[i] = 1
  return TensorClass.over(dtype, shape, array)
}

/** A copy in a buffer of its own. Not by `slice`, which is a view if the bytes are a Buffer. */
export function bufferOf(bytes: Uint8Array): ArrayBuffer {
  const copy = new Uint8Array(bytes.length)
  copy.set(bytes)
  return copy.buffer
}
