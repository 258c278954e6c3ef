/**
 * The format of a store's file (`store-file.ts`): its changes, one after the other. If a writer was killed or the machine stopped, the last record is a part: shorter than its
 * length says, and followed by nothing or zeros, unlike a damaged one.
 *
 *     file     'PGSTORE1' record record …
 *     record   bytes of the body · its CRC-32 · CRC-32 of these two · body      three 32-bit numbers, little-endian
 *     body     bytes of the head (32 bits) · head (JSON) · value
 */
import { utf8 } from './store-values.js'

export const FILE_MAGIC: Uint8Array = utf8('PGSTORE1')

/** No record is longer. */
export const RECORD_BYTES_MAX = 2 ** 26

const FRONT_BYTES = 12

/** `torn`: the beginning of a record follows, and then nothing, or zeros, which a machine leaves that stopped. `damaged`: other bytes follow. */
export type LogEnd = 'whole' | 'torn' | 'damaged'

/** One record as it was written. The value is a view. */
export interface LogRecord {
  readonly head: unknown
  readonly value: Uint8Array
}

export function encodeRecord(head: object, value: Uint8Array): Uint8Array {
  const headBytes = utf8(JSON.stringify(head))
  const bodyBytes = 4 + headBytes.length + value.length
  const bytes = new Uint8Array(FRONT_BYTES + bodyBytes)
  const view = new DataView(bytes.buffer)
  view.setUint32(FRONT_BYTES, headBytes.length, true)
  bytes.set(headBytes, FRONT_BYTES + 4)
  bytes.set(value, FRONT_BYTES + 4 + headBytes.length)
  view.setUint32(0, bodyBytes, true)
  view.setUint32(4, crc32(bytes.subarray(FRONT_BYTES)), true)
  view.setUint32(8, crc32(bytes.subarray(0, 8)), true)
  return bytes
}

/** Reads the records from `at` on. `end` is where the last whole one ends. */
export function readRecords(bytes: Uint8Array, at: number, onRecord: (record: LogRecord) => void): { end: number; how: LogEnd } {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  let end = at
  for (;;) {
    const left = bytes.length - end
    if (left === 0) return { end, how: 'whole' }
    if (left < FRONT_BYTES) return { end, how: 'torn' }
    const bodyBytes = view.getUint32(end, true)
    const isFrontWhole = view.getUint32(end + 8, true) === crc32(bytes.subarray(end, end + 8))
    if (!isFrontWhole || bodyBytes < 4 || bodyBytes > RECORD_BYTES_MAX)
      return { end, how: isZero(bytes, end + FRONT_BYTES) ? 'torn' : 'damaged' }
    const next = end + FRONT_BYTES + bodyBytes
    if (next > bytes.length) return { end, how: 'torn' }
    const record =
      view.getUint32(end + 4, true) === crc32(bytes.subarray(end + FRONT_BYTES, next)) && decodeBody(bytes, end + FRONT_BYTES, next)
    // A machine that stopped may have made the file longer before it wrote the bytes: at the very end, that is a torn record.
    if (!record) return { end, how: isZero(bytes, next) ? 'torn' : 'damaged' }
    onRecord(record)
    end = next
  }
}

/** Whether the file begins as it should; `torn`: with a part of that, which a killed writer left. */
export function magicOf(bytes: Uint8Array): LogEnd {
  const length = Math.min(bytes.length, FILE_MAGIC.length)
  for (let i = 0; i < length; i++) if (bytes[i] !== FILE_MAGIC[i]) return isZero(bytes, i) ? 'torn' : 'damaged'
  return length === FILE_MAGIC.length ? 'whole' : 'torn'
}

function decodeBody(bytes: Uint8Array, at: number, end: number): LogRecord | null {
  const headBytes = new DataView(bytes.buffer, bytes.byteOffset).getUint32(at, true)
  const valueAt = at + 4 + headBytes
  if (valueAt > end) return null
  try {
    return {
      head: JSON.parse(Buffer.from(bytes.buffer, bytes.byteOffset + at + 4, headBytes).toString()),
      value: bytes.subarray(valueAt, end),
    }
  } catch {
    return null
  }
}

function isZero(bytes: Uint8Array, at: number): boolean {
  for (let i = at; i < bytes.length; i++) if (bytes[i] !== 0) return false
  return true
}

/** By the polynomial of ISO 3309, reflected, as zlib's. */
const CRC_TABLE = Uint32Array.from({ length: 256 }, (_, byte) => {
  let crc = byte
  for (let bit = 0; bit < 8; bit++) crc = crc & 1 ? (crc >>> 1) ^ 0xedb88320 : crc >>> 1
  return crc
})

/** `zlib.crc32` came with Node 20.15. */
export function crc32(bytes: Uint8Array): number {
  let crc = -1
  for (let i = 0; i < bytes.length; i++) crc = (CRC_TABLE[(crc ^ bytes[i]!) & 255] as number) ^ (crc >>> 8)
  return ~crc >>> 0
}
