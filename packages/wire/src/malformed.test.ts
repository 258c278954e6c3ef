/** Bytes that no codec of ours wrote: typed errors, no crash, no hang, no memory without bound. */
import { describe, expect, test } from '@jest/globals'
import { SparseTensor, tensor } from '@postgrad/tensor'
import { Packr } from 'msgpackr'
import { Codec, WIRE_VERSION } from './codec.js'
import { MESSAGE_TABLE, MessageType } from './message-type.js'

const codec = new Codec()
const TYPES = Object.values(MessageType)

function frameOf(packed: Uint8Array, ...segments: Uint8Array[]) {
  const header = new Uint8Array(4 + packed.length)
  header.set([packed.length & 0xff, (packed.length >> 8) & 0xff, packed.length >> 16, WIRE_VERSION])
  header.set(packed, 4)
  return { header, segments }
}

const pack = (value: unknown) => frameOf(new Uint8Array(new Packr({ useRecords: false }).pack(value)))
const code = (name: string) => expect.objectContaining({ name: 'PostgradError', code: name })

describe('damaged frames', () => {
  test('5 MB of nested empty arrays are refused before they are unpacked', () => {
    const wide = new Uint8Array(5 * 2 ** 20).fill(0x90)
    wide.set([0xdd, 0, 0x4f, 0xff, 0xfb])
    expect(() => codec.decode(frameOf(wide))).toThrow(code('WIRE_TOO_LARGE'))
    const deep = new Uint8Array(5 * 2 ** 20).fill(0x91)
    expect(() => codec.decode(frameOf(deep))).toThrow(code('WIRE_TOO_DEEP'))
    const groups = new Uint8Array(5 * 2 ** 20).fill(0x90)
    for (let i = 0; i + 16 <= groups.length; i += 16) groups[i] = 0x9f
    expect(() => codec.decode(frameOf(groups))).toThrow(expect.objectContaining({ code: expect.stringMatching(/^WIRE_/) }))
  })

  test('an array that says it has 4 billion elements is refused', () => {
    expect(() => codec.decode(frameOf(Uint8Array.from([0xdd, 0xff, 0xff, 0xff, 0xff])))).toThrow(code('WIRE_CORRUPT'))
    expect(() => codec.decode(frameOf(Uint8Array.from([0xdf, 0xff, 0xff, 0xff, 0xff])))).toThrow(code('WIRE_CORRUPT'))
  })

  test.each([0xc1, 0xc4, 0xc5, 0xc6, 0xc7, 0xc8, 0xc9, 0xca, 0xd4, 0xd5, 0xd6, 0xd7, 0xd8])(
    'byte 0x%s, which we never write, is refused',
    (token) => {
      const body = Uint8Array.from([0x93, 0x01, 0x00, 0x91, token, ...new Array(20).fill(0)])
      expect(() => codec.decode(frameOf(body))).toThrow(code('WIRE_CORRUPT'))
    },
  )

  test('a message without the ids that it is nothing without, and fields that cannot be', () => {
    const ids = { context: 1n, autogradId: 2n, pass: 3n }
    const bodies: readonly (readonly [MessageType, readonly unknown[]])[] = [
      [MessageType.PROPAGATE_GRADIENTS, [[], 0]],
      [MessageType.PASS_REPORT, [1, 0, [[1, 1]], 0, []]],
      [MessageType.PASS_ERROR, [new Error('e')]],
      [MessageType.PASS_ABORT, [new Error('e')]],
      [MessageType.PASS_COMMIT, []],
      [MessageType.CLEANUP_CONTEXT, []],
      [MessageType.LINEAGE, []],
    ]
    const decoded = (type: MessageType, body: readonly unknown[], head: object) =>
      codec.decode(codec.encode(Object.assign(codec.prepare(type, body), head)))
    expect(bodies.map(([type]) => type).sort()).toEqual(TYPES.filter((type) => MESSAGE_TABLE[type].ids.length > 0).sort())
    for (const [type, body] of bodies) {
      expect(decoded(type, body, ids)).toMatchObject({ type, ...ids })
      for (const id of MESSAGE_TABLE[type].ids) {
        expect(() => decoded(type, body, { ...ids, [id]: null })).toThrow(code('WIRE_BAD_FIELD'))
        expect(() => decoded(type, body, { ...ids, [id]: -1n })).toThrow(code('WIRE_BAD_FIELD'))
      }
    }
    for (const how of [-1, 4, 0.5, null])
      expect(() => decoded(MessageType.PROPAGATE_GRADIENTS, [[], how], ids)).toThrow(code('WIRE_BAD_FIELD'))
    for (const sent of [
      [[65_536, 1]],
      [[1, 2 ** 53]],
      [[1, 1, 1]],
      [
        [1, 1],
        [1, 2],
      ],
      [1],
      null,
    ]) {
      expect(() => decoded(MessageType.PASS_REPORT, [1, 0, sent, 0, []], ids)).toThrow(code('WIRE_BAD_FIELD'))
    }
    for (const missing of [[7n], [[7n]], [[7n, 1]], [[7, 1, 'call']], [[7n, -1, 'call']], [[7n, 1, 2]], [[7n, 1, 'call', 0]], 'call']) {
      expect(() => decoded(MessageType.PASS_REPORT, [1, 0, [], 1, missing], ids)).toThrow(code('WIRE_BAD_FIELD'))
    }
    expect(() => decoded(MessageType.CALL, ['f', []], { deadlineMs: Number.POSITIVE_INFINITY })).toThrow(code('WIRE_BAD_FIELD'))
  })

  test('a record is refused', () => {
    const record = new Uint8Array(new Packr({ useRecords: true }).pack([1, 0, [{ a: 1 }, { a: 2 }]]))
    expect(() => codec.decode(frameOf(record))).toThrow(code('WIRE_CORRUPT'))
  })

  test('every proper prefix of a frame, and a frame with bytes behind it, is refused', () => {
    const { header } = codec.encode(codec.prepare(0, ['fun', [1, 'é', { a: [1.5, 2n, null] }]]))
    for (let length = 0; length < header.length; length++) {
      expect(() => codec.decode({ header: header.slice(0, length), segments: [] })).toThrow(code('WIRE_CORRUPT'))
    }
    const longer = new Uint8Array(header.length + 8)
    longer.set(header)
    expect(() => codec.decode({ header: longer, segments: [] })).toThrow(code('WIRE_CORRUPT'))
    expect(() => codec.decode({ header, segments: [new Uint8Array(8)] })).toThrow(code('WIRE_CORRUPT'))
  })

  test('sparse rows that fit no shape, are out of range, say that they ascend, or are none', () => {
    const indices = tensor([2, 0], { dtype: 'int32' })
    const values = tensor([[1], [2]])
    const parts = (rows: unknown, elements: unknown, isCoalesced: unknown, ...shape: unknown[]) =>
      pack([1, 0, [[null, 0x0c, isCoalesced, rows, elements, ...shape]]])
    const good = codec.encode(codec.prepare(1, [new SparseTensor(indices, values, [4, 1])]))
    const change = (from: readonly number[], to: readonly number[]) => {
      const header = Uint8Array.from(good.header)
      const at = Buffer.from(header).indexOf(Uint8Array.from(from))
      expect(at).toBeGreaterThan(0)
      header.set(to, at)
      return { header, segments: good.segments }
    }
    expect((codec.decode(good).body[0] as SparseTensor).isSparse).toBe(true)
    // The tag, then whether they ascend.
    expect(() => codec.decode(change([0x0c, 0xc2], [0x0c, 0xc3]))).toThrow(code('WIRE_CORRUPT'))
    expect(() => codec.decode(change([0x0c, 0xc2], [0x0c, 0x00]))).toThrow(code('WIRE_CORRUPT'))
    // The shape after the parts: [4, 1].
    expect(() => codec.decode(change([0x04, 0x01], [0x02, 0x01]))).toThrow(code('WIRE_CORRUPT'))
    expect(() => codec.decode(change([0x04, 0x01], [0x04, 0x03]))).toThrow(code('WIRE_CORRUPT'))
    expect(() => codec.decode(parts(1, 2, false, 4, 1))).toThrow(code('WIRE_CORRUPT'))
    expect(() => codec.decode(parts([], [], false))).toThrow(code('WIRE_CORRUPT'))
  })

  test('another version, another type, other fields', () => {
    const frame = pack([1, 0, [1]])
    frame.header[3] = 99
    expect(() => codec.decode(frame)).toThrow(code('WIRE_VERSION'))
    for (const type of [0x7f, 0x99, -1, 1.5, 'CALL', null, [1], 'constructor']) {
      expect(() => codec.decode(pack([type, 0, [1]]))).toThrow(code('WIRE_UNKNOWN_TYPE'))
    }
    expect(() => codec.decode(pack([0, 0, ['f']]))).toThrow(code('WIRE_BAD_FIELD'))
    expect(() => codec.decode(pack([0, 0, [1, []]]))).toThrow(code('WIRE_BAD_FIELD'))
    expect(() => codec.decode(pack([0, 0, ['f', {}]]))).toThrow(code('WIRE_BAD_FIELD'))
    expect(() => codec.decode(pack([0, -1, ['f', []]]))).toThrow(code('WIRE_BAD_FIELD'))
    expect(() => codec.decode(pack([0, 0, ['f', []], 5]))).toThrow(code('WIRE_BAD_FIELD'))
    expect(() => codec.decode(pack([0, 0, ['f', []], -5n]))).toThrow(code('WIRE_BAD_FIELD'))
    expect(() => codec.decode(pack([0, 0, ['f', []], null, null, null, Number.NaN]))).toThrow(code('WIRE_BAD_FIELD'))
    expect(() => codec.decode(pack([5, 0, [-1n]]))).toThrow(code('WIRE_BAD_FIELD'))
    expect(() => codec.decode(pack([2, 0, ['no error']]))).toThrow(code('WIRE_BAD_FIELD'))
    expect(() => codec.decode(pack([0x10, 0, [[1], true]]))).toThrow(code('WIRE_BAD_FIELD'))
    expect(() => codec.decode(pack([0x11, 0, [1, 1, [[1]], 0, []]]))).toThrow(code('WIRE_BAD_FIELD'))
    for (const envelope of [5, 'x', [], [0, 0], {}, [0, 0, ['f', []], null, null, null, null, null, null, null]]) {
      expect(() => codec.decode(pack(envelope))).toThrow(code('WIRE_CORRUPT'))
    }
  })

  const special = (...value: unknown[]) => pack([1, 0, [[null, ...value]]])

  test.each<[string, unknown[], string]>([
    ['no tag', [], 'WIRE_CORRUPT'],
    ['a tag that is no number', ['x'], 'WIRE_CORRUPT'],
    ['an unknown tag', [0x0f], 'WIRE_UNKNOWN_VALUE'],
    ['an extension nobody has', [0x25, 1], 'WIRE_UNKNOWN_VALUE'],
    ['a bigint that is code', [4, '1;process.exit()'], 'WIRE_CORRUPT'],
    ['a string of no code units', [5, 70_000], 'WIRE_CORRUPT'],
    ['a date of a string', [6, 'now'], 'WIRE_CORRUPT'],
    ['a regular expression that is none', [7, '(', ''], 'WIRE_CORRUPT'],
    ['flags that are none', [7, 'a', 'zz'], 'WIRE_CORRUPT'],
    ['a map with half an entry', [8, 1], 'WIRE_CORRUPT'],
    ['an object with a key that is no string', [3, 1, 1], 'WIRE_CORRUPT'],
    ['an error of two fields', [10, 0, 'Error'], 'WIRE_CORRUPT'],
    ['an error with a path that is none', [10, 0, 'Error', 'm', null, null, null, [1, 2], null, null, null, null], 'WIRE_CORRUPT'],
    ['an error of a strange kind', [10, 7, 'Error', 'm', null, null, null, [], null, null, null, null], 'WIRE_CORRUPT'],
    ['a typed array of a strange kind', [11, 77, 4], 'WIRE_CORRUPT'],
    ['a typed array of half an element', [11, 10, 4], 'WIRE_CORRUPT'],
    ['a typed array without its bytes', [11, 3, 4], 'WIRE_CORRUPT'],
    ['a typed array of all the memory there is', [11, 3, 2 ** 50], 'WIRE_CORRUPT'],
    ['a tensor without its elements', [0x10, 3], 'WIRE_CORRUPT'],
    ['a tensor of all the memory there is', [0x10, 2 ** 40], 'WIRE_CORRUPT'],
    ['a tensor beyond what numbers hold', [0x10, 2 ** 40, 2 ** 40], 'WIRE_CORRUPT'],
    ['a tensor of a negative extent', [0x10, -1], 'WIRE_CORRUPT'],
    ['a tensor of a broken extent', [0x10, 1.5], 'WIRE_CORRUPT'],
  ])('%s', (_, value, expected) => {
    expect(() => codec.decode(special(...value))).toThrow(code(expected))
  })

  test('elements of a bool tensor that are neither 0 nor 1 become 1', () => {
    const frame = special(0x13, 3)
    const header = new Uint8Array(((frame.header.length + 7) & ~7) + 8)
    header.set(frame.header)
    header.set([0, 1, 200], header.length - 8)
    expect(codec.decode({ header, segments: [] }).tensors[0]?.toArray()).toEqual([false, true, true])
  })

  test('a codec that has met a damaged frame works on', () => {
    expect(() => codec.decode(special(0x10, 3))).toThrow(code('WIRE_CORRUPT'))
    expect(codec.decode(pack([1, 3, ['ok']])).body).toEqual(['ok'])
  })
})
