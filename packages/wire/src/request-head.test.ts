/** What is known of a frame that cannot be read. */
import { describe, expect, test } from '@jest/globals'
import { Codec } from './codec.js'
import { MessageType } from './message-type.js'
import { requestHead } from './request-head.js'

function frameOf(type: MessageType, body: readonly unknown[], requestId: number) {
  const codec = new Codec()
  const out = codec.prepare(type, body)
  out.requestId = requestId
  return codec.encode(out)
}

describe('the head of a frame', () => {
  test.each([0, 1, 127, 128, 255, 256, 65_535, 65_536, 2 ** 32 - 1, 2 ** 32, 2 ** 40, 2 ** 53 - 1])('request %d', (requestId) => {
    const frame = frameOf(MessageType.CALL, ['f', [1, 'two', [3]]], requestId)
    expect(requestHead(frame)).toEqual({ type: MessageType.CALL, requestId })
  })

  test('the longest envelope', () => {
    const codec = new Codec()
    const out = codec.prepare(MessageType.RESULT, [1])
    out.requestId = 9
    out.trace = 'x'
    out.lineage = [3]
    expect(requestHead(codec.encode(out))).toEqual({ type: MessageType.RESULT, requestId: 9 })
  })

  test('is known of a frame whose body is damaged', () => {
    const frame = frameOf(MessageType.REMOTE_CALL, ['f', [], 5n, 6n], 300)
    const header = frame.header.slice()
    header.fill(0xc1, 12)
    expect(() => new Codec().decode({ header, segments: [] })).toThrow()
    expect(requestHead({ header, segments: [] })).toEqual({ type: MessageType.REMOTE_CALL, requestId: 300 })
  })

  test('is null where it cannot be read, and nothing ever throws', () => {
    const { header } = frameOf(MessageType.CALL, ['f', []], 70_000)
    for (let length = 0; length < 10; length++) expect(requestHead({ header: header.slice(0, length), segments: [] })).toBeNull()
    const with_ = (at: number, byte: number) => {
      const copy = header.slice()
      copy[at] = byte
      return requestHead({ header: copy, segments: [] })
    }
    expect(with_(4, 0x80)).toBeNull()
    expect(with_(5, 0x7f)).toBeNull()
    for (const byte of [0xa0, 0xc0, 0xcf, 0xd0, 0xd3, 0xff]) expect(with_(6, byte)).toBeNull()
    for (let at = 4; at < 12; at++) for (let byte = 0; byte < 256; byte++) with_(at, byte)
  })
})
