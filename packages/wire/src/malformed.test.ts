/** Bytes that no codec of ours wrote: typed errors, no crash, no hang, no memory without bound. */
import { describe, expect, test } from '@jest/globals'
import { SparseTensor, tensor } from '@postgrad/tensor'
import { Packr } from 'msgpackr'
import { Codec } from './codec.js'
import { WIRE_VERSION } from './head.js'
import { MESSAGE_TABLE, MessageType } from './message-type.js'

const codec = new Codec()
const TYPES = Object.values(MessageType)

/** A frame whose body is packed, by the drawing in head.ts. */
function frameOf(packed: Uint8Array, type: number = MessageType.RESULT, requestId = 0) {
  const header = new Uint8Array(16 + packed.length)
  const length = header.length - 4
  header.set([length & 0xff, (length >> 8) & 0xff, length >> 16, WIRE_VERSION, type, 0x20])
  new DataView(header.buffer).setFloat64(8, requestId, true)
  header.set(packed, 16)
  return { header, segments: [] }
}

const packed = (type: number, ...values: unknown[]) => frameOf(new Uint8Array(new Packr({ useRecords: false }).pack(values)), type)

/** A frame of cells: pairs of 32-bit words, or numbers as float64. Above the flags: the count of the lineage. */
function cellsOf(type: number, flags: number, ...cells: (readonly [low: number, high: number] | number)[]) {
  const header = new Uint8Array(16 + 8 * cells.length)
  const length = header.length - 4
  header.set([length & 0xff, (length >> 8) & 0xff, length >> 16, WIRE_VERSION, type, flags, flags >> 8])
  const view = new DataView(header.buffer)
  cells.forEach((cell, i) => {
    const at = 16 + 8 * i
    if (typeof cell === 'number') view.setFloat64(at, cell, true)
    else for (const [half, word] of cell.entries()) view.setInt32(at + 4 * half, word, true)
  })
  return { header, segments: [] }
}

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
      const body = Uint8Array.from([0x91, 0x91, token, ...new Array(20).fill(0)])
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
    const record = new Uint8Array(new Packr({ useRecords: true }).pack([[{ a: 1 }, { a: 2 }]]))
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
      packed(1, [[null, 0x0c, isCoalesced, rows, elements, ...shape]])
    const good = codec.encode(codec.prepare(1, [new SparseTensor(indices, values, [4, 1])]))
    const change = (from: readonly number[], to: readonly number[]) => {
      const header = Uint8Array.from(good.header)
      const at = Buffer.from(header).indexOf(Uint8Array.from(from))
      expect(at).toBeGreaterThan(0)
      header.set(to, at)
      return { header, segments: good.segments }
    }
    expect((codec.decode(good).body[0] as SparseTensor).isSparse).toBe(true)
    // The tag and the count, then whether they ascend: false; true; null.
    const rows = (kind: number) => [0x08, 0x0c, 0, 0, 5, 0, 0, 0, kind, 0, 0, 0, 0, 0, 0, 0]
    expect(() => codec.decode(change(rows(1), rows(2)))).toThrow(code('WIRE_CORRUPT'))
    expect(() => codec.decode(change(rows(1), rows(0)))).toThrow(code('WIRE_CORRUPT'))
    // The shape after the parts: [4, 1].
    const shape = (height: number, width: number) => [3, 0, 0, 0, height, 0, 0, 0, 3, 0, 0, 0, width, 0, 0, 0]
    expect(() => codec.decode(change(shape(4, 1), shape(2, 1)))).toThrow(code('WIRE_CORRUPT'))
    expect(() => codec.decode(change(shape(4, 1), shape(4, 3)))).toThrow(code('WIRE_CORRUPT'))
    expect(() => codec.decode(parts(1, 2, false, 4, 1))).toThrow(code('WIRE_CORRUPT'))
    expect(() => codec.decode(parts([], [], false))).toThrow(code('WIRE_CORRUPT'))
  })

  test('another version, another type, other fields', () => {
    const frame = packed(1, [1])
    frame.header[3] = 99
    expect(() => codec.decode(frame)).toThrow(code('WIRE_VERSION'))
    for (const type of [0x7f, 0x99, 0x0a, 0xff]) expect(() => codec.decode(packed(type, [1]))).toThrow(code('WIRE_UNKNOWN_TYPE'))
    const bad: readonly (readonly [type: number, ...unknown[]])[] = [
      [0, ['f']],
      [0, [1, []]],
      [0, ['f', {}]],
      [0, {}],
      [0, null],
      [0, ['f', []], null, 5],
      [0, ['f', []], null, [-1]],
      [5, [-1n]],
      [2, ['no error']],
      [0x10, [[1], true]],
      [0x11, [1, 1, [[1]], 0, []]],
    ]
    for (const [type, ...values] of bad) expect(() => codec.decode(packed(type, ...values))).toThrow(code('WIRE_BAD_FIELD'))
    for (const requestId of [-1, 0.5, 2 ** 53, Number.NaN, Number.POSITIVE_INFINITY]) {
      expect(() => codec.decode(frameOf(Uint8Array.from([0x91, 0x91, 1]), 1, requestId))).toThrow(code('WIRE_BAD_FIELD'))
    }
    for (const values of [[], [['f', []], null, null, null]]) expect(() => codec.decode(packed(0, ...values))).toThrow(code('WIRE_CORRUPT'))
    for (const value of [5, 'x', {}, null]) {
      expect(() => codec.decode(frameOf(new Uint8Array(new Packr({ useRecords: false }).pack(value))))).toThrow(code('WIRE_CORRUPT'))
    }
  })

  test.each<[string, ReturnType<typeof cellsOf>, string]>([
    ['a failure without an error', cellsOf(1, 0x80, [0, 0], [3, 1]), 'WIRE_BAD_FIELD'],
    ['a failure with values', cellsOf(1, 0x80, [3, 1], [3, 1]), 'WIRE_BAD_FIELD'],
    ['a failure of a message that has no tensors', cellsOf(MessageType.CALL_CANCEL, 0x80, [3, 1]), 'WIRE_CORRUPT'],
    ['a trace that is not there', cellsOf(1, 0x40, [3, 1]), 'WIRE_CORRUPT'],
    ['a count of no lineage', cellsOf(1, 1 << 8, [3, 1], [3, 1]), 'WIRE_CORRUPT'],
    ['ids that are not there', cellsOf(0x14, 0x07, [1, 0], [1, 0]), 'WIRE_CORRUPT'],
    ['no field', cellsOf(1, 0), 'WIRE_CORRUPT'],
    ['a field too many', cellsOf(1, 0, [0, 0], [0, 0]), 'WIRE_CORRUPT'],
    ['a kind that nobody knows', cellsOf(1, 0, [10, 0]), 'WIRE_CORRUPT'],
    ['an object without its keys', cellsOf(1, 0, [9, 1]), 'WIRE_CORRUPT'],
    ['an object of 2 billion keys', cellsOf(1, 0, [9, 0x7fffffff], [6, 0], [0, 0]), 'WIRE_CORRUPT'],
    ['an object of -1 keys', cellsOf(1, 0, [9, -1]), 'WIRE_CORRUPT'],
    ['an object with a key that is a number', cellsOf(1, 0, [9, 1], [3, 1], [3, 1]), 'WIRE_CORRUPT'],
    ['an object with the key __proto__', cellsOf(1, 0, [9, 1], [6, 9], [0x72705f5f, 0x5f6f746f], [0x5f, 0], [3, 1]), 'WIRE_CORRUPT'],
    ['a number without its cell', cellsOf(1, 0, [4, 0]), 'WIRE_CORRUPT'],
    ['a bigint without its cell', cellsOf(1, 0, [5, 0]), 'WIRE_CORRUPT'],
    ['a text that is too long', cellsOf(1, 0, [6, 9], [0, 0]), 'WIRE_CORRUPT'],
    ['a text of 4 GB', cellsOf(1, 0, [6, -1], [0, 0]), 'WIRE_CORRUPT'],
    ['a text of 2 GB', cellsOf(1, 0, [6, 0x7fffffff], [0, 0]), 'WIRE_CORRUPT'],
    ['a list of 4 billion', cellsOf(1, 0, [7, -1], [0, 0]), 'WIRE_CORRUPT'],
    ['a list of 2 billion', cellsOf(1, 0, [7, 0x7fffffff], [0, 0]), 'WIRE_CORRUPT'],
    ['a list of one more than there are', cellsOf(1, 0, [7, 2], [0, 0]), 'WIRE_CORRUPT'],
    ['nested deeper than may be', cellsOf(1, 0, ...new Array(200).fill([7, 1]), [0, 0]), 'WIRE_TOO_DEEP'],
    ['more cells than a frame has', cellsOf(1, 0, [7, 300], ...new Array(300).fill([0, 0])), 'WIRE_CORRUPT'],
    ['a special value that nobody knows', cellsOf(1, 0, [8 | (0x0f << 8), 0]), 'WIRE_UNKNOWN_VALUE'],
    ['a tensor without its elements', cellsOf(1, 0, [8 | (0x10 << 8), 1], [3, 4]), 'WIRE_CORRUPT'],
    ['a tensor of a negative extent', cellsOf(1, 0, [8 | (0x10 << 8), 1], [3, -4]), 'WIRE_CORRUPT'],
    ['a tensor of all the memory there is', cellsOf(1, 0, [8 | (0x10 << 8), 1], [4, 0], 2 ** 52), 'WIRE_CORRUPT'],
    ['lineage that is not there', cellsOf(1, 0x10 | (0xff << 8), [1, 0], [0, 0]), 'WIRE_CORRUPT'],
    ['a lineage that takes the body', cellsOf(1, 0x10 | (16 << 8), [0, 0], [0, 0]), 'WIRE_CORRUPT'],
    [
      'a number of the lineage without an end',
      cellsOf(1, 0x10 | (1 << 8), ...new Array(20).fill([0x80808080, 0x80808080]), [0, 0], [0, 0]),
      'WIRE_CORRUPT',
    ],
    ['a number of the lineage beyond 2^53', cellsOf(1, 0x10 | (1 << 8), [-1, 0x7fffffff], [0, 0]), 'WIRE_CORRUPT'],
    ['a deadline that is past', cellsOf(1, 0x08, -1, [0, 0]), 'WIRE_BAD_FIELD'],
    ['a deadline that never is', cellsOf(1, 0x08, Number.POSITIVE_INFINITY, [0, 0]), 'WIRE_BAD_FIELD'],
    ['a field of another kind', cellsOf(5, 0, [3, 1]), 'WIRE_BAD_FIELD'],
    ['a count of a half', cellsOf(0x22, 0, [4, 0], 0.5), 'WIRE_BAD_FIELD'],
  ])('cells: %s', (_, frame, expected) => {
    expect(() => codec.decode(frame)).toThrow(code(expected))
  })

  const special = (...value: unknown[]) => packed(1, [[null, ...value]])

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
    expect(codec.decode(packed(1, ['ok'])).body).toEqual(['ok'])
  })
})
