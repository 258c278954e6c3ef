/** allReduce by each algorithm, counted: the sum in the order of the ranks, and as many messages and bytes as the formulas say, on every topology. */
import { describe, expect, test } from '@jest/globals'
import { type Tensor, tensor } from '@postgrad/tensor'
import { LIMITS, limitsFor, type Place, type ReduceLimits } from '../common/step.js'
import { Draw, formula } from '../programs.suite.js'
import { allReduce } from './all-reduce.js'
import { drive, type Sent } from './driver.suite.js'
import { runsFor, sharesOut } from './runs.js'

const SLICES = { oneStepBytes: 0, rootBytes: 0, pieceBytes: Number.POSITIVE_INFINITY }

function placesOf(heaps: readonly number[], limits: ReduceLimits): Place[] {
  return heaps.map((_, rank) => ({ rank, size: heaps.length, limits, heaps }))
}

/** Reduces tensors of so many float32; a wrong element throws. */
function reduced(
  heaps: readonly number[],
  limits: ReduceLimits,
  { numel = 960, seed = 1, op = 'sum' as 'sum' | 'avg', count = 1 } = {},
): readonly Sent[] {
  const draw = new Draw(seed)
  const inputs = heaps.map(() =>
    Array.from({ length: count }, () => Array.from({ length: numel }, () => (draw.unit() - 0.3) * 10 ** draw.below(6))),
  )
  const all = inputs.map((each) => each.map((values) => tensor(values)))
  const sent = drive(
    placesOf(heaps, limits),
    (place) => allReduce(place, 'allReduce', op, all[place.rank] as Tensor[]),
    (n) => draw.below(n),
  )
  for (let i = 0; i < count; i++) {
    const expected = Array.from({ length: numel }, (_, at) =>
      formula(
        op,
        'float32',
        inputs.map((each) => Math.fround(each[i]![at]!)),
      ),
    )
    for (const each of all) expect(each[i]!.toArray()).toEqual(expected)
  }
  return sent
}

const apart = (size: number): number[] => Array.from({ length: size }, (_, rank) => rank)
/** So many heaps, of so many ranks each, one heap after the other. */
const together = (heaps: number, ranks: number): number[] => apart(heaps).flatMap((heap) => new Array<number>(ranks).fill(heap))

describe('messages and bytes', () => {
  const S = 4 * 960

  test.each([2, 3, 4])('PG-30: small tensors of %i ranks: one message to each other', (size) => {
    expect(reduced(apart(size), LIMITS)).toEqual(apart(size).map(() => ({ messages: size - 1, bytes: (size - 1) * S })))
  })

  test('PG-30: two ranks apart: the whole to each other, whatever its size', () => {
    expect(reduced(apart(2), limitsFor([0, 1]), { numel: 60_000 })).toEqual(apart(2).map(() => ({ messages: 1, bytes: 240_000 })))
  })

  test.each([5, 10])('PG-30: small tensors of %i ranks: to one and back', (size) => {
    const [root, ...others] = reduced(apart(size), LIMITS)
    expect(root).toEqual({ messages: size - 1, bytes: (size - 1) * S })
    for (const each of others) expect(each).toEqual({ messages: 1, bytes: S })
  })

  // As in a ring, whose steps follow each other.
  test.each([2, 3, 4, 5, 6])('PG-30: large tensors of %i ranks apart: 2 (N − 1) / N of a tensor', (size) => {
    for (const pieces of [1, 3]) {
      const limits = { ...SLICES, pieceBytes: Math.ceil(S / size / pieces) }
      const sent = reduced(apart(size), limits)
      expect(sent).toEqual(apart(size).map(() => ({ messages: (size - 1) * (2 * pieces + 1), bytes: (2 * (size - 1) * S) / size })))
    }
  })

  test.each([2, 3, 5])('PG-30: in one heap of %i ranks no byte travels', (size) => {
    expect(reduced(together(1, size), SLICES)).toEqual(apart(size).map(() => ({ messages: 3 * (size - 1), bytes: 0 })))
  })

  test.each([
    [2, 2],
    [2, 3],
    [3, 2],
    [3, 4],
  ])('PG-30: of %i heaps with %i ranks each: a tensor crosses from heap to heap once in each direction', (heaps, ranks) => {
    for (const pieces of [1, 4]) {
      const limits = { ...SLICES, pieceBytes: Math.ceil(S / ranks / pieces) }
      const sent = reduced(together(heaps, ranks), limits)
      for (const [rank, each] of sent.entries()) {
        const heap = Math.floor(rank / ranks)
        const neighbours = (heap > 0 ? 1 : 0) + (heap < heaps - 1 ? 1 : 0)
        expect(each).toEqual({ messages: 3 * (ranks - 1) + neighbours * (pieces + 1), bytes: (neighbours * S) / ranks })
      }
    }
  })

  test('PG-30: ranks of a heap that do not follow each other reduce with all others', () => {
    const heaps = [0, 1, 0, 1]
    expect(runsFor({ heaps })).toEqual([[0, 1, 2, 3]])
    const sent = reduced(heaps, SLICES)
    expect(sent.map(({ bytes }) => bytes)).toEqual([S, S, S, S])
  })

  test('PG-30: runs are those from whose heaps less leaves', () => {
    expect(runsFor({ heaps: [0, 0, 2] })).toEqual([[0, 1], [2]])
    expect(runsFor({ heaps: [0, 1] })).toEqual([[0, 1]])
    expect(runsFor({ heaps: [0, 0, 0] })).toEqual([[0, 1, 2]])
    expect([
      ...sharesOut(
        [
          [0, 1],
          [2, 3],
        ],
        [0, 0, 2, 2],
      ).values(),
    ]).toEqual([1, 1])
    expect([...sharesOut([[0, 1, 2, 3]], [0, 0, 2, 2]).values()]).toEqual([2, 2])
  })
})

test('PG-12, PG-30: 60 topologies, sizes and pieces, in orders that are drawn: the same bits', () => {
  for (let seed = 1; seed <= 60; seed++) {
    const draw = new Draw(seed)
    const size = 1 + draw.below(7)
    const heaps: number[] = []
    for (let rank = 0; rank < size; rank++) heaps.push(rank > 0 && draw.below(5) < 3 ? heaps[rank - 1]! : draw.below(size))
    const limits = { ...SLICES, pieceBytes: 8 * (1 + draw.below(40)) }
    try {
      reduced(heaps, limits, { seed, numel: draw.below(150), op: draw.pick(['sum', 'avg'] as const), count: 1 + draw.below(2) })
    } catch (error) {
      throw new Error(`seed ${seed}, heaps ${heaps}, pieces of ${limits.pieceBytes} bytes`, { cause: error })
    }
  }
})
