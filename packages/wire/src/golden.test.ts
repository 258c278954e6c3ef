import { readFileSync } from 'node:fs'
import { describe, expect, test } from '@jest/globals'
import { GOLDEN_CASES, goldenCodec, goldenFrames } from './golden.suite.js'
import { MESSAGE_TABLE, MessageType } from './message-type.js'

const golden = JSON.parse(readFileSync(new URL('../golden/wire.json', import.meta.url), 'utf8')) as Record<string, string[]>

describe('the wire format', () => {
  const frames = goldenFrames()

  test.each(GOLDEN_CASES.map(({ name }) => name))(
    '%s has the bytes in golden/wire.json (node scripts/golden/wire.mjs writes it again)',
    (name) => {
      expect(frames[name]).toEqual(golden[name])
    },
  )

  test('golden/wire.json has every case and no other', () => {
    expect(Object.keys(golden)).toEqual(GOLDEN_CASES.map(({ name }) => name))
  })

  test.each(GOLDEN_CASES.filter(({ failure }) => failure === undefined).map(({ name }) => name))(
    '%s is the same message after decoding and encoding again',
    (name) => {
      const codec = goldenCodec()
      const frame = codec.encode((GOLDEN_CASES.find((c) => c.name === name) as (typeof GOLDEN_CASES)[number]).make(codec))
      const first = { header: frame.header.slice(), segments: frame.segments.map((bytes) => bytes.slice()) }
      const message = codec.decode(frame)
      const again = codec.prepare(message.type, message.body)
      Object.assign(again, {
        requestId: message.requestId,
        requiresGrad: message.requiresGrad,
        context: message.context,
        autogradId: message.autogradId,
      })
      Object.assign(again, { pass: message.pass, deadlineMs: message.deadlineMs, trace: message.trace, lineage: message.lineage })
      const second = codec.encode(again)
      expect(second.segments.map((bytes) => Buffer.from(bytes).toString('hex'))).toEqual(
        first.segments.map((bytes) => Buffer.from(bytes).toString('hex')),
      )
      expect(Buffer.from(second.header).toString('hex')).toBe(Buffer.from(first.header).toString('hex'))
    },
  )

  test('numbers and names of the table agree with those of the types', () => {
    const rows = Object.entries(MESSAGE_TABLE).map(([type, { name }]) => [name, Number(type)])
    expect(Object.fromEntries(rows)).toEqual(MessageType)
  })
})
