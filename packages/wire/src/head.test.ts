/** Tests what is known of an unreadable frame. */
import { describe, expect, test } from '@jest/globals'
import { tensor } from '@postgrad/tensor'
import { Codec } from './codec.js'
import { passHead, requestHead } from './head.js'
import { MessageType } from './message-type.js'

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
    for (const body of [
      ['f', [], 5n, 6n],
      ['f', [{ packed: true }], 5n, 6n],
    ]) {
      const frame = frameOf(MessageType.REMOTE_CALL, body, 300)
      const header = frame.header.slice()
      header.fill(0xc1, 16)
      expect(() => new Codec().decode({ header, segments: [] })).toThrow()
      expect(requestHead({ header })).toEqual({ type: MessageType.REMOTE_CALL, requestId: 300 })
    }
  })

  test('is null where it cannot be read, and nothing ever throws', () => {
    const { header } = frameOf(MessageType.CALL, ['f', []], 70_000)
    for (let length = 0; length < 16; length++) expect(requestHead({ header: header.slice(0, length) })).toBeNull()
    const with_ = (at: number, byte: number) => requestHead({ header: header.with(at, byte) })
    expect(with_(4, 0x7f)).toBeNull()
    // The sign, an infinity, a fraction.
    for (const [at, byte] of [
      [15, 0xc0],
      [15, 0x7f],
      [8, 1],
    ] as const)
      expect(with_(at, byte)).toBeNull()
    for (let at = 0; at < 16; at++) for (let byte = 0; byte < 256; byte++) with_(at, byte)
  })
})

describe('the pass of a frame', () => {
  const context = (3n << 48n) | 7n
  const pass = (40_000n << 48n) | 2n
  const body = [[null, tensor([1, 2]), null], 1]
  const ofPass = (body: readonly unknown[], type: MessageType = MessageType.PROPAGATE_GRADIENTS) => {
    const codec = new Codec()
    return codec.encode(Object.assign(codec.prepare(type, body), { context, autogradId: 5n, pass }))
  }

  test('is known where the body cannot be read', () => {
    const frame = ofPass(body)
    expect(passHead(frame)).toEqual({ context, pass })
    const header = frame.header.slice()
    // The tag of the tensor becomes one that nobody has.
    const at = Buffer.from(header).indexOf(Uint8Array.from([0x08, 0x10, 0, 0, 1]))
    header[at + 1] = 0x0f
    expect(() => new Codec().decode({ header, segments: [] })).toThrow()
    expect(passHead({ header })).toEqual({ context, pass })
  })

  test('whatever stands in the body', () => {
    const values = [
      null,
      true,
      -1,
      -200,
      2 ** 40,
      0.5,
      1n,
      'x'.repeat(300),
      'y'.repeat(40),
      Array.from({ length: 20 }, (_, i) => i),
      { a: { b: [] } },
    ]
    expect(passHead(ofPass([values], MessageType.RESULT))).toEqual({ context, pass })
    expect(passHead(ofPass([Object.fromEntries(values.map((value, i) => [`k${i}`, value]))], MessageType.RESULT))).toEqual({
      context,
      pass,
    })
    expect(passHead(ofPass([new Map([[1, 'z'.repeat(70_000)]])], MessageType.RESULT))).toEqual({ context, pass })
  })

  test('is null where there is none, or it cannot be read; nothing ever throws', () => {
    expect(passHead(frameOf(MessageType.CALL, ['f', []], 7))).toBeNull()
    const { header } = ofPass(body)
    for (let length = 0; length < 40; length++) expect(passHead({ header: header.slice(0, length) })).toBeNull()
    for (let at = 4; at < header.length; at++) {
      for (let byte = 0; byte < 256; byte++) passHead({ header: header.with(at, byte) })
    }
  })
})
