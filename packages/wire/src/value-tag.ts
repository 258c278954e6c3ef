/**
 * How the codec packs values that msgpack does not have: as an array whose first element is null and whose second is one of
 * these tags. An array of the user that begins with null is itself written so (`array`), hence nothing is ambiguous. Numbers are part of the wire
 * format. Everything else is msgpack's own: null, booleans, numbers, bigints of 64 bits (int64 and uint64 are never numbers), strings, arrays, objects.
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
