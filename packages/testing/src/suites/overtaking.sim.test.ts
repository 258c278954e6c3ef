/**
 * Messages that overtake others wherever no order is promised (rpc's `message-order.ts`), as small ones overtake large ones between processes, and far more often: any may be
 * overtaken here. The results stay the same.
 */
import { expect, test } from '@jest/globals'
import { bitsText, contextCases, designNoteOn, failingCases, loadCases, readGolden, runScenario } from '@postgrad/testing-cases'
import { generate } from '@postgrad/testing-cases/programs'
import { expectClean } from '../check/expect-clean.js'
import { expectSound } from '../check/expect-sound.js'
import { inlined } from '../inlined/inlined.js'
import { type SimCluster, simulate } from '../simulate/simulate.js'
import { inlinedRun, simulatedRun } from './programs/oracle.suite.js'

const SEEDS = 20
const PROGRAMS = 25
const FIRST = 3000
const world = { overtaking: true }
const { inputs } = readGolden().design_note!

const crowd = (cluster: Pick<SimCluster, 'on'>): Promise<unknown[]> =>
  Promise.all([0, 1, 2, 3].map((i) => cluster.on(i).run(designNoteOn, `worker${(i + 1) % 4}`, inputs)))

test(`ORD-4 the design note's example on four workers at once, ${SEEDS} seeds: the same bits`, async () => {
  const oracle = bitsText(await inlined({ workers: 4 }, crowd))
  for (let seed = 0; seed < SEEDS; seed++) {
    const simulation = await simulate({ workers: 4, seed, world }, crowd)
    expect({ seed, bits: bitsText(simulation.result) }).toEqual({ seed, bits: oracle })
    expectClean(simulation)
    expectSound(simulation)
  }
})

test(`ORD-4 ${PROGRAMS} random programs: the bits of the inlined program`, async () => {
  for (let seed = FIRST; seed < FIRST + PROGRAMS; seed++) {
    const program = generate(seed)
    const { problem } = await simulatedRun(program, await inlinedRun(program), seed, 'smart', { overtaking: true })
    expect({ seed, problem }).toEqual({ seed, problem: null })
  }
})

// A fetch in a context once went ahead of the call that makes the value, since it went by its context alone.
test.each([...contextCases, ...loadCases, ...failingCases].map((one) => [one.name, one] as const))('ORD-4 %s', async (_, one) => {
  for (let seed = 1; seed <= 3; seed++) {
    const simulation = await simulate({ workers: 4, seed, world }, (sim) => runScenario(sim, one))
    for (const result of simulation.result) expect({ seed, result }).toEqual({ seed, result: one.expected })
    expectClean(simulation)
  }
})
