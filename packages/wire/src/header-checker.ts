/**
 * Walks over packed bytes before msgpackr sees them: msgpackr has no limit on depth or counts (5 MB of nested empty arrays become 200 MB of
 * heap), accepts byte 0xc1, records and extensions, and reads past the end. A header that passes is plain, whole and bounded.
 */
import type { WireLimits } from './limits.js'
import { corrupt, tooDeep, tooLarge } from './wire-errors.js'

/** Payload bytes after the tokens 0xc0 to 0xdf that the codec writes; -1: never written, so refused; -2: a string or a container, read below. */
const PAYLOAD_BYTES = Int8Array.from([
  ...[0, -1, 0, 0], // nil, never used, false, true
  ...[-1, -1, -1, -1, -1, -1], // bin 8 to 32, ext 8 to 32
  ...[-1, 8], // float 32, float 64
  ...[1, 2, 4, 8, 1, 2, 4, 8], // uint 8 to 64, int 8 to 64
  ...[-1, -1, -1, -1, -1], // fixext 1 to 16
  ...[-2, -2, -2], // str 8 to 32
  ...[-2, -2, -2, -2], // array 16 and 32, map 16 and 32
])

export class HeaderChecker {
  private readonly limits: WireLimits
  /** Per open level: values that are left in it. */
  private readonly left: Int32Array
  /** Per open level: 1 for a map, whose values are keys in turn. */
  private readonly isMap: Uint8Array

  constructor(limits: WireLimits) {
    this.limits = limits
    this.left = new Int32Array(limits.depthMax + 1)
    this.isMap = new Uint8Array(limits.depthMax + 1)
  }

  /** Exactly one value from `start` to `end`. @throws WIRE_CORRUPT, WIRE_TOO_DEEP, WIRE_TOO_LARGE */
  check(bytes: Uint8Array, start: number, end: number): void {
    const { depthMax, itemsMax } = this.limits
    let at = start
    let items = 0
    let depth = 0
    let left = 1
    let isMap = 0
    for (;;) {
      while (left === 0) {
        if (depth === 0) {
          if (at !== end) throw corrupt('bytes after the message')
          return
        }
        left = this.left[--depth] as number
        isMap = this.isMap[depth] as number
      }
      if (at >= end) throw corrupt('it ends too early')
      const token = bytes[at++] as number
      const isKey = isMap === 1 && (left & 1) === 0
      left--
      if (token >= 0xa0 && token < 0xc0) {
        at += token - 0xa0
        if (at > end) throw corrupt('a string ends too late')
        continue
      }
      if (token >= 0xd9 && token <= 0xdb) {
        const width = token === 0xd9 ? 1 : token === 0xda ? 2 : 4
        if (at + width > end) throw corrupt('it ends too early')
        at += width + unsigned(bytes, at, width)
        if (at > end) throw corrupt('a string ends too late')
        continue
      }
      if (isKey) throw corrupt('a key that is not a string')
      if (token < 0x80 || token >= 0xe0) continue
      let count: number
      let map = 0
      if (token < 0x90) {
        count = token - 0x80
        map = 1
      } else if (token < 0xa0) {
        count = token - 0x90
      } else if (token >= 0xdc) {
        const width = token === 0xdc || token === 0xde ? 2 : 4
        if (at + width > end) throw corrupt('it ends too early')
        count = unsigned(bytes, at, width)
        at += width
        map = token >= 0xde ? 1 : 0
      } else {
        const payload = PAYLOAD_BYTES[token - 0xc0] as number
        if (payload < 0) throw corrupt(`byte 0x${token.toString(16)}, which is never written`)
        at += payload
        if (at > end) throw corrupt('it ends too early')
        continue
      }
      const values = map === 1 ? 2 * count : count
      if (values > end - at) throw corrupt('more elements than bytes')
      items += values
      if (items > itemsMax) throw tooLarge('decode', 'elements in one message', itemsMax, items)
      if (depth >= depthMax) throw tooDeep('decode', depthMax)
      this.left[depth] = left
      this.isMap[depth] = isMap
      depth++
      left = values
      isMap = map
    }
  }
}

function unsigned(bytes: Uint8Array, at: number, width: number): number {
  let value = 0
  for (let i = 0; i < width; i++) value = value * 256 + (bytes[at + i] as number)
  return value
}
