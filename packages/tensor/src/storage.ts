/**
 * Storage: one flat array of elements, shared by every view on it. Tensors stand above, arrays below.
 * `managed` storage is an ordinary typed array that JavaScript collects.
 */
import { allocate, type DType, type TypedArray } from './dtype.js'

export class Storage {
  readonly kind: 'managed'
  readonly dtype: DType
  readonly array: TypedArray
  /** Raised by each in-place write; autograd compares it with what it saw when it saved a tensor. */
  version: number
  /** The operation that wrote last, for the message when autograd finds another version than it saw; null before the first. */
  writer: string | null

  /** Takes ownership of `array`: whoever passes it does not write to it any more. */
  constructor(dtype: DType, array: TypedArray) {
    this.kind = 'managed'
    this.dtype = dtype
    this.array = array
    this.version = 0
    this.writer = null
  }

  /** Zero-filled. */
  static allocate(dtype: DType, length: number): Storage {
    return new Storage(dtype, allocate(dtype, length))
  }

  /** Holds anything: for who writes all of it. */
  static uninitialized(dtype: DType, length: number): Storage {
    return new Storage(dtype, allocate(dtype, length))
  }
}
