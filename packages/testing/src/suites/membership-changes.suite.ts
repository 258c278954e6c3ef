/** A join, a restart, a leave and a death as they ship, among three workers, for `explore`. Rules MEM-n of `cluster/SPEC.md`. */
import { expect } from '@jest/globals'
import { type Exploration, type ExploreOptions, explore } from '../explore/explore.js'
import type { SimCluster } from '../simulate/simulate.js'
import { ask, outcome, pass, quiet, Witness } from './membership.suite.js'

const print = (what: string, { text }: Exploration) => process.stdout.write(`      ${what}: ${text}\n`)
const PAIR = ['a', 'b']
const ALL = ['a', 'b', 'c']
/** The outcomes of a call to a worker as it ends. */
const DONE_OR_DEAD = [2, 'WORKER_DIED']

type Body = (sim: SimCluster, witness: Witness) => Promise<void>

/** In each order all that live are linked, nobody is linked with the dead, and each has noticed each end once. */
export async function everyOrder(
  what: string,
  workers: readonly string[],
  body: Body,
  options: Partial<ExploreOptions> = {},
): Promise<Exploration> {
  const found = await explore({ workers, ordersMax: 50_000, seeds: 0, ...options }, async (sim) => {
    const witness = new Witness(sim)
    await body(sim, witness)
    await quiet(sim)
    expect(witness.problems()).toEqual([])
  })
  print(what, found)
  return found
}

type Change = readonly [what: string, workers: readonly string[], body: Body]

/** Each change, with the workers before it, and calls that are under way. */
export const CHANGES: readonly Change[] = [
  [
    'a join beside a call',
    PAIR,
    async (sim, witness) => {
      const beside = ask(sim, 'a', 'b')
      witness.join('c')
      await sim.ready('c')
      expect(await beside).toBe(1)
      expect(await Promise.all([ask(sim, 'a', 'c'), ask(sim, 'b', 'c')])).toEqual([2, 2])
    },
  ],
  [
    'a join beside a pass',
    PAIR,
    async (sim, witness) => {
      const beside = pass(sim, 'a', 'b')
      witness.join('c')
      await sim.ready('c')
      expect(await beside).toBe(2)
    },
  ],
  [
    'a newcomer that calls while it loads',
    PAIR,
    async (sim, witness) => {
      witness.join('c')
      expect(await ask(sim, 'c', 'a')).toBe(0)
      await sim.ready('c')
    },
  ],
  [
    'a restart beside a call to it',
    ALL,
    async (sim, witness) => {
      const beside = ask(sim, 'a', 'c')
      witness.restart('c')
      expect(DONE_OR_DEAD).toContain(await beside)
      await sim.ready('c')
      expect(await ask(sim, 'a', 'c')).toBe(3)
    },
  ],
  [
    'a leave beside a call to it',
    ALL,
    async (sim) => {
      const beside = ask(sim, 'a', 'c')
      await sim.leave('c')
      expect(DONE_OR_DEAD).toContain(await beside)
    },
  ],
  [
    'a death beside a call to it',
    ALL,
    async (sim) => {
      const beside = ask(sim, 'a', 'c')
      await ask(sim, 'b', 'a')
      sim.crash('c')
      expect(DONE_OR_DEAD).toContain(await beside)
    },
  ],
  [
    'a death amid a pass over it',
    ALL,
    async (sim) => {
      const beside = pass(sim, 'a', 'c')
      await ask(sim, 'b', 'a')
      sim.crash('c')
      expect(DONE_OR_DEAD).toContain(await beside)
    },
  ],
  [
    'the death of a member while another one joins',
    PAIR,
    async (sim, witness) => {
      witness.join('c')
      sim.crash('b')
      await sim.ready('c')
      expect(await ask(sim, 'a', 'c')).toBe(2)
    },
  ],
  [
    'the death of a newcomer at any moment of its join',
    PAIR,
    async (sim, witness) => {
      witness.join('c')
      const ready = outcome(sim.ready('c').then(() => 'joined'))
      void ask(sim, 'c', 'a').catch(() => {})
      await ask(sim, 'a', 'b')
      sim.crash('c')
      expect(['joined', 'WORKER_DIED']).toContain(await ready)
    },
  ],
]

/** Those of some two thousand orders each: `npm run soak -- membership` sees all of them. */
export const LARGE_CHANGES: readonly Change[] = [
  [
    'a restart amid a pass over it',
    ALL,
    async (sim, witness) => {
      const beside = pass(sim, 'a', 'c')
      await ask(sim, 'b', 'a')
      witness.restart('c')
      expect(DONE_OR_DEAD).toContain(await beside)
      await sim.ready('c')
    },
  ],
  [
    'a leave beside a pass over it',
    ALL,
    async (sim) => {
      const beside = pass(sim, 'a', 'c')
      await sim.leave('c')
      expect(DONE_OR_DEAD).toContain(await beside)
    },
  ],
]
