/**
 * The binary values of JavaScript by their number on the wire: typed arrays, DataView, ArrayBuffer. By tag and not by class, since a value
 * from another realm fails `instanceof`.
 */

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
