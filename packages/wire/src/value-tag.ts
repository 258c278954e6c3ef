/**
 * How the codec writes values that neither cells nor msgpack have: as an array whose first element is null and whose second is one of
 * these tags. An array of the user that begins with null is itself written so (`array`), hence nothing is ambiguous. Numbers are part of the wire
 * format. Everything else has a form there: null, booleans, numbers, bigints of 64 bits (int64 and uint64 are never numbers), strings, arrays, objects.
 */
export const ValueTag = {
  /** [] */
  undefined: 0x00,
  /** -0: [] */
  minusZero: 0x01,
  /** An array that begins with null: its elements. */
  array: 0x02,
  /** An object with a key that msgpackr would change: key, value, … */
  object: 0x03,
  /** Beyond 64 bits: a string of hexadecimal digits with a sign. */
  bigint: 0x04,
  /** A string that UTF-8 would change (lone surrogates, a byte order mark in front): its UTF-16 code units. */
  string: 0x05,
  /** Milliseconds since 1970, NaN for an invalid date. */
  date: 0x06,
  /** Source, flags. */
  regexp: 0x07,
  /** Key, value, … */
  map: 0x08,
  /** Elements. */
  set: 0x09,
  /** See error-codec.ts. */
  error: 0x0a,
  /** Kind (see `BYTES_KINDS`), length in bytes; the bytes are a part. */
  bytes: 0x0b,
  /** Sparse rows: whether they are coalesced, indices and values (two tensors), extents of the shape…. */
  sparse: 0x0c,
  /** A tensor that the receiver puts on a device: the device there, the tensor. */
  onDevice: 0x0d,
  /** 0x10 + dtype (see `DTYPE_CODES`), + 4 if the sender's required a gradient: extents of the shape…; the elements are a part. */
  tensor: 0x10,
  /** 0x18 + as above: a tensor whose block of the shared heap is named (see block-transport.ts): five words, then extents of the shape…; no part. */
  block: 0x18,
  /** 0x20 to 0x3f: what the extension with this tag made of its value. */
  extension: 0x20,
} as const

export const TENSOR_TAG_MAX = 0x17
export const BLOCK_TAG_MAX = 0x1f
export const TENSOR_REQUIRES_GRAD = 0x04
export const EXTENSION_TAG_MAX = 0x3f

/** The binary values of JavaScript: typed arrays, DataView, ArrayBuffer. By tag and not by class, since a value from another realm fails `instanceof`. */
interface BytesKind {
  readonly tag: string
  readonly elementBytes: number
  /** Over the whole buffer. */
  make(buffer: ArrayBuffer): ArrayBuffer | ArrayBufferView
}

/** The index is the number on the wire. */
export const BYTES_KINDS: readonly BytesKind[] = [
  { tag: 'ArrayBuffer', elementBytes: 1, make: (buffer) => buffer },
  { tag: 'DataView', elementBytes: 1, make: (buffer) => new DataView(buffer) },
  { tag: 'Int8Array', elementBytes: 1, make: (buffer) => new Int8Array(buffer) },
  { tag: 'Uint8Array', elementBytes: 1, make: (buffer) => new Uint8Array(buffer) },
  { tag: 'Uint8ClampedArray', elementBytes: 1, make: (buffer) => new Uint8ClampedArray(buffer) },
  { tag: 'Int16Array', elementBytes: 2, make: (buffer) => new Int16Array(buffer) },
  { tag: 'Uint16Array', elementBytes: 2, make: (buffer) => new Uint16Array(buffer) },
  { tag: 'Int32Array', elementBytes: 4, make: (buffer) => new Int32Array(buffer) },
  { tag: 'Uint32Array', elementBytes: 4, make: (buffer) => new Uint32Array(buffer) },
  { tag: 'Float32Array', elementBytes: 4, make: (buffer) => new Float32Array(buffer) },
  { tag: 'Float64Array', elementBytes: 8, make: (buffer) => new Float64Array(buffer) },
  { tag: 'BigInt64Array', elementBytes: 8, make: (buffer) => new BigInt64Array(buffer) },
  { tag: 'BigUint64Array', elementBytes: 8, make: (buffer) => new BigUint64Array(buffer) },
]

/** The number of a value's kind; -1 if it is not binary. */
export function bytesKindOf(tag: string): number {
  return BYTES_KINDS.findIndex((kind) => kind.tag === tag)
}

/**
 * On which device of the receiver a tensor of a device of this worker arrives; `env` is the one that `prepare` got.
 * @throws DEVICE_MAP_MISSING
 */
export type DeviceOf = (device: string, env: unknown) => string

/** How a package above teaches a codec a value of its own (rpc: RRef), so that `wire` need not know it. */
export interface ValueExtension {
  /** 0x20 to 0x3f, one per extension, the same on all workers. */
  readonly tag: number
  /** Asked for objects that are neither arrays, plain objects nor tensors. */
  matches(value: object): boolean
  /** Returns any value that can be sent, to send instead. `env` is the one that `prepare` got. */
  encode(value: object, env: unknown): unknown
  /** The value again. `plain` comes from another worker: check it. `env` is what was given to `decode`. */
  decode(plain: unknown, env: unknown): unknown
}
