/**
 * What can be said of a frame that `Codec.decode` refused: which request or reply it was, so that whoever waits for it can be told. It
 * reads the first few bytes alone, in the encodings that `codec.ts` writes.
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

/** Behind the first byte of a number: float64, uint8, uint16, uint32. */
const BYTES: Readonly<Record<number, number>> = { 203: 8, 204: 1, 205: 2, 206: 4 }
