/** A deep chain of nested calls between two workers, forward and backward, in one thread. `acceptance-ping-pong.real.test.ts` has 10,000 between threads. */
import { expect, test } from '@jest/globals'
import { longPingPong } from '@postgrad/testing-cases'
import { expectClean } from '../check/expect-clean.js'
import { inlined } from '../inlined/inlined.js'
import { simulate } from '../simulate/simulate.js'

const CALLS = 4_000

test(`${CALLS} nested calls that go back and forth between two workers, forward and backward`, async () => {
  const simulation = await simulate({ workers: 2, seed: 1, world: { traceEventsMax: 0 } }, (sim) =>
    sim.on('worker0').run(longPingPong, CALLS),
  )
  expect(simulation.result.y.data).toEqual([1 + CALLS, 2 + CALLS, 3 + CALLS])
  expect(simulation.result.t.data).toEqual([0.5, -1, 2])
  expectClean(simulation)
})

test('the same bits inlined', async () => {
  const calls = 200
  const simulation = await simulate({ workers: 2, seed: 2 }, (sim) => sim.on('worker0').run(longPingPong, calls))
  const oracle = await inlined({ workers: 2 }, (cluster) => cluster.on('worker0').run(longPingPong, calls))
  expect([simulation.result.y, simulation.result.t]).toEqual([oracle.y, oracle.t])
})
