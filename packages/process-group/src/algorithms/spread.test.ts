/** broadcast and allGather, counted: each heap gets one copy of a large tensor, and all ranks have all of it. */
import { expect, test } from '@jest/globals'
import { tensor } from '@postgrad/tensor'
import { LIMITS, type Place } from '../common/step.js'
import { Draw } from '../programs.suite.js'
import { drive } from './driver.suite.js'
import { allGather, broadcast } from './moves.js'

const NUMEL = 10
const S = 4 * NUMEL
const LARGE = { ...LIMITS, oneStepBytes: 0 }
const valuesOf = (rank: number): number[] => Array.from({ length: NUMEL }, (_, i) => rank * 100 + i)
const placesOf = (heaps: readonly number[], limits = LARGE): Place[] =>
  heaps.map((_, rank) => ({ rank, size: heaps.length, limits, heaps }))
const together = (heaps: number, ranks: number): number[] =>
  Array.from({ length: heaps }, (_, heap) => heap).flatMap((heap) => new Array<number>(ranks).fill(heap))

function broadcasted(places: readonly Place[], root: number, draw: Draw): ReturnType<typeof drive> {
  const all = places.map(({ rank }) => [tensor(valuesOf(rank)), tensor([rank])])
  const sent = drive(
    places,
    (place) => broadcast(place, 'broadcast', root, all[place.rank]!),
    (n) => draw.below(n),
  )
  for (const [x, y] of all) expect([x!.toArray(), y!.toArray()]).toEqual([valuesOf(root), [root]])
  return sent
}

function gathered(places: readonly Place[], draw: Draw): ReturnType<typeof drive> {
  const outs = places.map(() => places.map(() => [tensor(valuesOf(-1))]))
  const sent = drive(
    places,
    (place) => allGather(place, 'allGather', outs[place.rank]!, [tensor(valuesOf(place.rank))]),
    (n) => draw.below(n),
  )
  for (const each of outs) expect(each.map(([x]) => x!.toArray())).toEqual(places.map(({ rank }) => valuesOf(rank)))
  return sent
}

test.each([
  [1, 3],
  [3, 1],
  [2, 2],
  [3, 4],
])('PG-30: broadcast in %i heaps of %i ranks: the root sends each other heap one copy', (heaps, ranks) => {
  const root = ranks - 1
  const sent = broadcasted(placesOf(together(heaps, ranks)), root, new Draw(1))
  const bytes = S + 4
  for (const [rank, each] of sent.entries()) {
    if (rank === root) expect(each).toEqual({ messages: ranks - 1 + heaps - 1, bytes: (heaps - 1) * bytes })
    else expect(each).toEqual({ messages: rank >= ranks && rank % ranks === root ? ranks - 1 : 0, bytes: 0 })
  }
})

test.each([
  [1, 3],
  [3, 1],
  [2, 2],
  [3, 4],
])('PG-30: allGather in %i heaps of %i ranks: each rank sends each other heap one copy', (heaps, ranks) => {
  const each = { messages: ranks - 1 + heaps - 1 + (heaps > 1 ? ranks - 1 : 0), bytes: (heaps - 1) * S }
  expect(gathered(placesOf(together(heaps, ranks)), new Draw(1))).toEqual(together(heaps, ranks).map(() => each))
})

test('PG-30: small tensors go from each to each', () => {
  const places = placesOf(together(2, 2), LIMITS)
  expect(gathered(places, new Draw(1))).toEqual(places.map(() => ({ messages: 3, bytes: 2 * S })))
  expect(broadcasted(places, 0, new Draw(1))[0]).toEqual({ messages: 3, bytes: 2 * (S + 4) })
})

test('PG-11, PG-30: 60 topologies and roots, in orders that are drawn', () => {
  for (let seed = 1; seed <= 60; seed++) {
    const draw = new Draw(seed)
    const size = 1 + draw.below(7)
    const places = placesOf(Array.from({ length: size }, () => draw.below(size)))
    try {
      broadcasted(places, draw.below(size), draw)
      gathered(places, draw)
    } catch (error) {
      throw new Error(`seed ${seed}, heaps ${places[0]!.heaps}`, { cause: error })
    }
  }
})
