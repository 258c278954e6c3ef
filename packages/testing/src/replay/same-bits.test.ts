/** What counts as the same bits, and the text about the first that differ. */
import { describe, expect, test } from '@jest/globals'
import { SparseTensor, tensor } from '@postgrad/tensor'
import { bitDifference, bitDigest, differenceOfKnown, expectSameBits } from './same-bits.js'

const NAN_OF_OTHER_BITS = new Float32Array(Uint32Array.of(0x7fc00001).buffer)

describe('TK-40 the same to the last bit', () => {
  test.each([
    ['tensors', tensor([1, 2]), tensor([1, 2])],
    [
      'a view and what it shows',
      tensor([
        [1, 2],
        [3, 4],
      ]).T,
      tensor([
        [1, 3],
        [2, 4],
      ]),
    ],
    ['objects whose keys stand in another order', { a: 1, b: [tensor([0])] }, { b: [tensor([0])], a: 1 }],
    ['maps by name', new Map([['w', tensor([1])]]), new Map([['w', tensor([1])]])],
    ['a NaN and itself', tensor([Number.NaN]), tensor([Number.NaN])],
    [
      'sparse tensors',
      new SparseTensor(tensor([2], { dtype: 'int32' }), tensor([[1]]), [3, 1]),
      new SparseTensor(tensor([2], { dtype: 'int32' }), tensor([[1]]), [3, 1]),
    ],
  ])('TK-40 %s are equal', (_, got, expected) => {
    expect(bitDifference(got, expected)).toBe(null)
  })

  test.each([
    [
      '0 and −0',
      { x: tensor([0, 0]) },
      { x: tensor([0, -0]) },
      { path: 'x', index: [1], got: '0 (0x00000000)', expected: '-0 (0x80000000)' },
    ],
    ['the last bit of a float32', tensor([[1, 2]]), tensor([[1, 2.0000002]]), { path: '', index: [0, 1], got: '2 (0x40000000)' }],
    ['float64', [tensor([1], { dtype: 'float64' })], [tensor([2], { dtype: 'float64' })], { path: '[0]', got: '1 (0x3ff0000000000000)' }],
    ['two NaNs', tensor(NAN_OF_OTHER_BITS), tensor([Number.NaN]), { got: 'NaN (0x7fc00001)', expected: 'NaN (0x7fc00000)' }],
    [
      'dtypes',
      { a: { b: tensor([1]) } },
      { a: { b: tensor([1], { dtype: 'int32' }) } },
      { path: 'a.b', index: null, got: 'a tensor of float32 [1]' },
    ],
    ['shapes', tensor([1, 2]), tensor([[1, 2]]), { got: 'a tensor of float32 [2]', expected: 'a tensor of float32 [1, 2]' }],
    ['keys', { a: 1 }, { b: 1 }, { got: 'keys a', expected: 'keys b' }],
    ['lengths', [1], [1, 2], { got: 'keys 0', expected: 'keys 0, 1' }],
    ['numbers', { loss: 0.1 }, { loss: 0.2 }, { path: 'loss', got: '0.1 (0x3fb999999999999a)' }],
    ['kinds', { a: 1 }, { a: tensor([1]) }, { path: 'a', got: 'a number', expected: 'a tensor' }],
    ['a missing gradient', { a: undefined }, { a: tensor([1]) }, { path: 'a', got: 'undefined', expected: 'a tensor' }],
    [
      'sparse rows',
      new SparseTensor(tensor([2], { dtype: 'int32' }), tensor([[1]]), [3, 1]),
      new SparseTensor(tensor([1], { dtype: 'int32' }), tensor([[1]]), [3, 1]),
      { path: 'indices()', index: [0] },
    ],
  ])('TK-40 %s differ', (_, got, expected, difference) => {
    expect(bitDifference(got, expected)).toMatchObject(difference)
  })

  test('TK-40 the message names the place, both values, how many more, and the seed', () => {
    const check = () =>
      expectSameBits(
        {
          t1: tensor([
            [1, 2],
            [3, 4],
          ]),
        },
        {
          t1: tensor([
            [1, 2],
            [5, 6],
          ]),
        },
        { seed: 7 },
      )
    expect(check).toThrow(
      expect.objectContaining({
        code: 'BITS_DIFFER',
        message: expect.stringMatching(
          /t1 at \[1, 0\] differs\n {2}expected 5 \(0x40a00000\)\n {2}got {6}3 \(0x40400000\)\n {2}2 elements.*\n {2}seed 7/,
        ),
        values: expect.objectContaining({ seed: 7, path: 't1', index: [1, 0], elements: 2 }),
      }),
    )
  })

  test('TK-40 the digests of two results are the same when their bits are, and only then', () => {
    const results = [1, '1', 0, -0, [1], ['1'], { a: 1, b: 2 }, new Map([['a', 1]]), null, undefined, true, 1n, tensor([1]), tensor([[1]])]
    const more = [tensor([1], { dtype: 'float64' }), tensor([2]), Float32Array.of(1), Float64Array.of(1), { a: { b: 2 } }, { 'a.b': 2 }]
    const all: unknown[] = [...results, ...more]
    for (const one of all) {
      for (const other of all) expect(bitDigest(one) === bitDigest(other)).toBe(bitDifference(one, other) === null)
    }
    expect(bitDigest({ b: 2, a: tensor([1]) })).toBe(bitDigest({ a: tensor([1]), b: 2 }))
  })

  test('TK-40 one value without bits hides no other difference, before it or behind it, and what has other kinds of keys or values is different', () => {
    const gradients = new Map([[tensor([1]), tensor([1])]])
    const pairs: [unknown, unknown][] = [
      [
        { a: new Set(), b: 1 },
        { a: new Set(), b: 2 },
      ],
      [
        { b: 1, a: () => {} },
        { b: 2, a: () => {} },
      ],
      [
        { gradients, b: [1] },
        { gradients, b: [2] },
      ],
      [gradients, new Map<unknown, unknown>([...gradients, [tensor([2]), 1]])],
      [new Map<unknown, unknown>([...gradients, ['loss', 1]]), new Map<unknown, unknown>([...gradients, ['loss', 2]])],
      [new Set(), new Date(0)],
      [new Set(), 1],
      [null, {}],
      [new Map([[1, 'a']]), new Map([['1', 'a']])],
    ]
    for (const [one, other] of pairs) {
      expect(bitDifference(one, other)).not.toBeNull()
      expect(differenceOfKnown(one, other)).not.toBeNull()
      expect(bitDigest(one)).not.toBe(bitDigest(other))
      for (const same of [one, other]) {
        expect(differenceOfKnown(same, same)).toBeNull()
        expect(bitDigest(same)).toBe(bitDigest(same))
      }
    }
    const both = new Map<unknown, unknown>([
      [1, 'a'],
      ['1', 'b'],
    ])
    expect(bitDifference(both, new Map(both))).toBeNull()
  })

  test('TK-40 what has no bits is refused, not taken for equal', () => {
    const gradients = new Map([[tensor([1]), tensor([1])]])
    expect(() => bitDifference(gradients, gradients)).toThrow(expect.objectContaining({ code: 'BITS_UNCOMPARABLE' }))
    const [one, other] = [1, 2].map((byte) => new DataView(Uint8Array.of(byte).buffer))
    expect(() => bitDifference(one, other)).toThrow(expect.objectContaining({ code: 'BITS_UNCOMPARABLE' }))
    expect(() => bitDifference(new Set(), new Set())).toThrow(expect.objectContaining({ code: 'BITS_UNCOMPARABLE' }))
  })
})
