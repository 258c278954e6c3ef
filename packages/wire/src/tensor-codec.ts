/**
 * Bytes that ride beside the packed values: tensors (dtype and shape in the header, elements here, row by row) and typed arrays. Small ones
 * lie behind the packed values in the header's own buffer, each at a multiple of 8; large ones are a segment each, with a buffer of their own
 * that a link can move. Where a part lies follows from the lengths alone, so no offsets travel.
 */
import { strict as assert } from 'node:assert'
import type { DType, Tensor, TypedArray } from '@postgrad/tensor'
import { BYTES_PER_ELEMENT, Tensor as TensorClass } from '@postgrad/tensor/internal'

/** Parts up to this length lie in the header. */
export const INLINE_BYTES_MAX = 4096

/** By code on the wire; the code of a dtype is its index. */
export const DTYPE_CODES = ['float32', 'float64', 'int32', 'bool'] as const satisfies readonly DType[]

export const codeOf = (dtype: DType): number => DTYPE_CODES.indexOf(dtype)

/** Up to this many elements a loop beats making a view and copying by it. */
const LOOP_ELEMENTS_MAX = 64

export const align8 = (n: number): number => (n + 7) & ~7

/** One buffer as all element types, starting at its first byte. */
export class Views {
  readonly buffer: ArrayBuffer
  readonly bytes: Uint8Array
  private readonly arrays: Record<DType, TypedArray>

  constructor(buffer: ArrayBuffer) {
    const { byteLength } = buffer
    this.buffer = buffer
    this.bytes = new Uint8Array(buffer)
    this.arrays = {
      float32: new Float32Array(buffer, 0, Math.trunc(byteLength / 4)),
      float64: new Float64Array(buffer, 0, Math.trunc(byteLength / 8)),
      int32: new Int32Array(buffer, 0, Math.trunc(byteLength / 4)),
      bool: this.bytes,
    }
  }

  of(dtype: DType): TypedArray {
    return this.arrays[dtype]
  }
}

export function byteLengthOf(tensor: Tensor): number {
  return tensor.numel * BYTES_PER_ELEMENT[tensor.dtype]
}

/** The elements in row-major order, in an array with a buffer of its own that nobody else holds. */
export function elementsOf(tensor: Tensor): TypedArray {
  const { numel, offset } = tensor
  const { host: array, dtype } = tensor.storage
  if (tensor.isContiguous) return array.slice(offset, offset + numel)
  // Not by `allocate`, whose small arrays share a buffer: this one is moved.
  const out = new Views(new ArrayBuffer(byteLengthOf(tensor))).of(dtype)
  gather(tensor, out, 0)
  return out
}

/** Writes the elements in row-major order at `byteOffset`, which is a multiple of 8. */
export function writeElements(tensor: Tensor, into: Views, byteOffset: number): void {
  const { numel, offset, dtype } = tensor
  const { host: array } = tensor.storage
  const target = into.of(dtype)
  const at = byteOffset / BYTES_PER_ELEMENT[dtype]
  if (!tensor.isContiguous) {
    gather(tensor, target, at)
  } else if (numel <= LOOP_ELEMENTS_MAX) {
    for (let i = 0; i < numel; i++) target[at + i] = array[offset + i] as number
  } else {
    target.set(array.subarray(offset, offset + numel), at)
  }
}

/** Any strides, 0 and negative ones included: an odometer over the shape, its innermost digit as a loop. */
function gather(tensor: Tensor, target: TypedArray, start: number): void {
  const { shape, strides, numel } = tensor
  const { host: array } = tensor.storage
  const inner = shape.length - 1
  if (numel === 0) return
  assert(inner >= 0, 'a tensor without dimensions is contiguous')
  const length = shape[inner] as number
  const stride = strides[inner] as number
  const index = new Array<number>(inner).fill(0)
  let from = tensor.offset
  for (let to = start; ; ) {
    for (let i = 0; i < length; i++) target[to++] = array[from + i * stride] as number
    let d = inner - 1
    for (; d >= 0; d--) {
      from += strides[d] as number
      index[d] = (index[d] as number) + 1
      if ((index[d] as number) < (shape[d] as number)) break
      from -= (strides[d] as number) * (shape[d] as number)
      index[d] = 0
    }
    if (d < 0) return
  }
}

/** A tensor of its own from elements that lie in someone's buffer. */
export function readElements(dtype: DType, shape: readonly number[], numel: number, from: Views, byteOffset: number): Tensor {
  const out = TensorClass.uninitialized(dtype, shape)
  const { host: array } = out.storage
  const source = from.of(dtype)
  const at = byteOffset / BYTES_PER_ELEMENT[dtype]
  if (dtype === 'bool') {
    for (let i = 0; i < numel; i++) array[i] = source[at + i] === 0 ? 0 : 1
  } else if (numel <= LOOP_ELEMENTS_MAX) {
    for (let i = 0; i < numel; i++) array[i] = source[at + i] as number
  } else {
    array.set(source.subarray(at, at + numel))
  }
  return out
}

/** A tensor from a segment: over the segment's own memory if that is all of its buffer, so that it holds nobody else's bytes alive; a copy else. */
export function fromSegment(dtype: DType, shape: readonly number[], segment: Uint8Array): Tensor {
  const isOwn = segment.byteOffset === 0 && segment.length === segment.buffer.byteLength
  const buffer = isOwn ? (segment.buffer as ArrayBuffer) : bufferOf(segment)
  const array = new Views(buffer).of(dtype)
  if (dtype === 'bool') for (let i = 0; i < array.length; i++) if (array[i] !== 0) array[i] = 1
  return TensorClass.over(dtype, shape, array)
}

/** A copy in a buffer of its own. Not by `slice`, which is a view if the bytes are a Buffer. */
export function bufferOf(bytes: Uint8Array): ArrayBuffer {
  const copy = new Uint8Array(bytes.length)
  copy.set(bytes)
  return copy.buffer
}
