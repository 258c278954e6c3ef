/** Threads pass blocks around and die, a short run of it; `npm run soak -- --rounds 10000 turmoil` is a long one. */
import { expect, test } from '@jest/globals'
import type { Heap, HeapHandle } from './heap.js'
import { holderBit, holderWord } from './layout.js'
import { turmoil } from './turmoil.fixture.js'
import type { Slip } from './turmoil-thread.fixture.js'

const ROUNDS = 20
const seed = Math.floor(Math.random() * 2 ** 30)

test(`HEAP-9 ${ROUNDS} rounds of deaths among threads that pass blocks around (seed ${seed})`, async () => {
  const { deaths, operations } = await turmoil({ rounds: ROUNDS, seed })
  expect(deaths).toBeGreaterThan(ROUNDS / 10)
  expect(operations).toBeGreaterThan(ROUNDS)
})

// That the checks can fail: each of these mistakes is found.
test.each<[Slip]>([['early'], ['careless'], ['leak']])('a thread that is %s is caught', async (slip) => {
  await expect(turmoil({ rounds: 300, seed, slip })).rejects.toThrow(/turmoil, seed/)
})

test('a reclaim that forgets a bit is caught', async () => {
  const forgetful = (heap: Heap, dead: HeapHandle): boolean => {
    const { ints, layout } = heap.words
    let kept = -1
    for (let id = layout.firstSegment * 32; id < heap.words.high * 32 && kept < 0; id++) if (heap.words.holds(dead.slot, id)) kept = id
    const done = heap.reclaim(dead)
    if (kept >= 0) Atomics.or(ints, layout.recordAt(kept) + holderWord(dead.slot), holderBit(dead.slot))
    return done
  }
  await expect(turmoil({ rounds: 300, seed, reclaim: forgetful })).rejects.toThrow(/turmoil, seed .* contradictions/)
})
