/** Programs whose tensors are on a device with a memory of its own: the bits of the inlined program, in each order of delivery and of the bytes' arrival. */
import { expect, test } from '@jest/globals'
import { bitsText } from '@postgrad/testing-cases'
import { generate, runProgram, useDevice } from '@postgrad/testing-cases/programs'
import { explore } from '../explore/explore.js'
import { expectSameBits, expectTypedEnd, there, whileLate } from './late-messages.suite.js'
import { inlinedRun } from './programs/oracle.suite.js'

test.each([
  ['smart', 0, 25],
  ['fast', 1000, 15],
] as const)(
  'LATE-5 in %s, from seed %i on, %i random programs on a device have the bits of the inlined program',
  async (mode, first, count) => {
    for (let seed = first; seed < first + count; seed++) await expectSameBits(seed, mode)
  },
)

test('LATE-4 30 random programs on a device whose workers crash: right or a typed error, and nothing left', async () => {
  const ends: (string | null)[] = []
  for (let seed = 0; seed < 30; seed++) ends.push(await expectTypedEnd(seed))
  expect(ends.filter((end) => end === 'WORKER_DIED').length).toBeGreaterThan(4)
})

test.each([2, 8])('LATE-5 a random program on a device (seed %i), in each order that explore finds', async (seed) => {
  const program = generate(seed, { workers: 3, scalars: true, rootsMin: 3, passesMin: 3 })
  const { bits } = await inlinedRun(program, { device: there.spec })
  const found = await explore({ workers: 3, ordersMax: 60, seeds: 20 }, (sim) =>
    whileLate(seed, async () => {
      for (const { name } of sim.workers) await sim.on(name).run(useDevice, there.spec)
      const outcome = await sim.on('worker0').run(runProgram, JSON.stringify(program))
      expect(bitsText(outcome)).toBe(bits)
      return outcome
    }),
  )
  expect(found.outcomes).toBe(1)
  expect(found.orders).toBeGreaterThan(6)
})
