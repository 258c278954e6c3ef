/**
 * Reads from a frame that `Codec.decode` refused which request or reply it was, or of which context and pass, so that rpc can notify the waiting
 * worker. It reads the first few bytes alone, and for a pass the fields after the body, in the encodings that `codec.ts` writes.
 */
import type { Frame } from '@postgrad/transport'
import { PREFIX_BYTES } from './codec.js'
import { type MessageType, specOf } from './message-type.js'

export interface RequestHead {
  readonly type: MessageType
  readonly requestId: number
}

/** Null if that much cannot be read either. Never throws. */
export function requestHead({ header }: Frame): RequestHead | null {
  if (header.length < PREFIX_BYTES + 3) return null
  const view = new DataView(header.buffer, header.byteOffset, header.length)
  let at = PREFIX_BYTES
  // msgpack: an array of up to 15 elements, a number below 128, a number.
  if ((view.getUint8(at++) & 0xf0) !== 0x90) return null
  const type = view.getUint8(at++)
  if (specOf(type) === undefined) return null
  const requestId = readNumber(view, at)
  return requestId !== null && Number.isSafeInteger(requestId) && requestId >= 0 ? { type: type as MessageType, requestId } : null
}

/** Of a message about a pass. */
export interface PassHead {
  readonly context: bigint
  readonly pass: bigint
}

/** Null if there is none, or if that much cannot be read. Never throws. */
export function passHead(frame: Frame): PassHead | null {
  if (requestHead(frame) === null) return null
  const { header } = frame
  const view = new DataView(header.buffer, header.byteOffset, header.length)
  // Type and request id; then the body, the context, the autograd id, the pass.
  let at: number | null = PREFIX_BYTES + 1
  for (let skipped = 0; skipped < 3 && at !== null; skipped++) at = skipValue(view, at)
  if (at === null) return null
  const context = readId(view, at)
  at = skipValue(view, at)
  if (at !== null) at = skipValue(view, at)
  const pass = at === null ? null : readId(view, at)
  return context === null || pass === null ? null : { context, pass }
}

/** The end of the value that begins at `at`; null if too late. */
function skipValue(view: DataView, at: number): number | null {
  let left = 1
  let end = at
  for (; left > 0; left--) {
    if (end >= view.byteLength) return null
    const token = view.getUint8(end++)
    if (token < 0x80 || token >= 0xe0) continue
    if (token < 0xa0) left += (token & 0x0f) * (token < 0x90 ? 2 : 1)
    else if (token < 0xc0) end += token & 0x1f
    else {
      const length = LENGTHS[token]
      if (length === undefined) return null
      const [bytes, kind] = length
      if (end + bytes > view.byteLength) return null
      const count = kind === 'plain' ? 0 : bytes === 1 ? view.getUint8(end) : bytes === 2 ? view.getUint16(end) : view.getUint32(end)
      end += bytes
      if (kind === 'string') end += count
      else left += kind === 'map' ? 2 * count : count
    }
  }
  return end <= view.byteLength ? end : null
}

/** For tokens 0xc0 to 0xdf that the codec writes: how many bytes follow, and of what kind. */
const LENGTHS: Readonly<Record<number, readonly [bytes: number, kind: 'plain' | 'string' | 'array' | 'map']>> = {
  192: [0, 'plain'],
  194: [0, 'plain'],
  195: [0, 'plain'],
  203: [8, 'plain'],
  204: [1, 'plain'],
  205: [2, 'plain'],
  206: [4, 'plain'],
  207: [8, 'plain'],
  208: [1, 'plain'],
  209: [2, 'plain'],
  210: [4, 'plain'],
  211: [8, 'plain'],
  217: [1, 'string'],
  218: [2, 'string'],
  219: [4, 'string'],
  220: [2, 'array'],
  221: [4, 'array'],
  222: [2, 'map'],
  223: [4, 'map'],
}

/** A bigint is always written in 64 bits. */
function readId(view: DataView, at: number): bigint | null {
  if (at + 9 > view.byteLength) return null
  const token = view.getUint8(at)
  return token === 0xcf || token === 0xd3 ? view.getBigUint64(at + 1) : null
}

function readNumber(view: DataView, at: number): number | null {
  const first = view.getUint8(at)
  if (first < 0x80) return first
  const bytes = BYTES[first]
  if (bytes === undefined || at + 1 + bytes > view.byteLength) return null
  switch (first) {
    case 0xcb:
      return view.getFloat64(at + 1)
    case 0xcc:
      return view.getUint8(at + 1)
    case 0xcd:
      return view.getUint16(at + 1)
    default:
      return view.getUint32(at + 1)
  }
}

/** Bytes after the first of a number: float64, uint8, uint16, uint32. */
const BYTES: Readonly<Record<number, number>> = { 203: 8, 204: 1, 205: 2, 206: 4 }
