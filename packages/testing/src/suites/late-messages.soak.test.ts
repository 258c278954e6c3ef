/** More of `late-messages.sim`. */
import { expect, test } from '@jest/globals'
import { expectSameBits, expectTypedEnd } from './late-messages.suite.js'

test('LATE-5 1,000 random programs on a device have the bits of the inlined program', async () => {
  for (let seed = 10_000; seed < 11_000; seed++) await expectSameBits(seed, seed % 2 === 0 ? 'smart' : 'fast')
})

test('LATE-4 1,000 random programs on a device whose workers crash: right or a typed error, and nothing left', async () => {
  const ends = new Map<string | null, number>()
  for (let seed = 20_000; seed < 21_000; seed++) {
    const end = await expectTypedEnd(seed)
    ends.set(end, (ends.get(end) ?? 0) + 1)
  }
  console.log('programs ended', Object.fromEntries(ends))
  expect(ends.get('WORKER_DIED')).toBeGreaterThan(100)
})
