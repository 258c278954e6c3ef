/** The design note's example under hundreds of seeds: other orders of delivery, the same bits; and each seed is one run, whatever the collector does. */
import { setImmediate } from 'node:timers'
import v8 from 'node:v8'
import vm from 'node:vm'
import { expect, test } from '@jest/globals'
import { remote } from '@postgrad/rpc'
import { Random } from '@postgrad/sim/internal'
import { bitsText, contextState, designNoteOn, type Plains, readGolden, trainerPs } from '@postgrad/testing-cases'
import { expectClean } from '../check/expect-clean.js'
import { inlined } from '../inlined/inlined.js'
import { type SimCluster, type Simulation, simulate } from '../simulate/simulate.js'

/** `npm run soak -- --seeds 10000 suites/seeds` takes more. */
const SEEDS = Number(process.env.POSTGRAD_SOAK_SEEDS ?? 80)
/** All four workers at once, as PyTorch's tests run on all ranks: more orders, and more work a seed. */
const CROWDED_SEEDS = Math.ceil(SEEDS / 4)

const golden = readGolden()
const { inputs } = golden.design_note!

const alone = (seed: number): Promise<Simulation<Plains>> =>
  simulate({ workers: 2, seed }, (sim) => sim.on('worker0').run(designNoteOn, 'worker1', inputs))

const crowd = (cluster: Pick<SimCluster, 'on'>): Promise<Plains[]> =>
  Promise.all([0, 1, 2, 3].map((i) => cluster.on(i).run(designNoteOn, `worker${(i + 1) % 4}`, inputs)))

/** Runs every seed twice, and counts the orders that were seen. */
async function everySeedTwice<T>(seeds: number, run: (seed: number) => Promise<Simulation<T>>, expected: T): Promise<number> {
  const orders = new Set<string>()
  const want = bitsText(expected)
  for (let seed = 0; seed < seeds; seed++) {
    const first = await run(seed)
    const second = await run(seed)
    // A comparison of strings, since a thousand calls of `expect` cost more than the runs.
    if (bitsText(first.result) !== want) expect(`seed ${seed}: ${bitsText(first.result)}`).toBe(`seed ${seed}: ${want}`)
    if (second.trace.hash !== first.trace.hash) {
      expect({ seed, trace: second.trace.text }).toEqual({ seed, trace: first.trace.text })
      // Of messages the text has the names only.
      expect({ seed, hash: second.trace.hash }).toEqual({ seed, hash: first.trace.hash })
    }
    expectClean(first)
    orders.add(first.trace.hash)
  }
  return orders.size
}

test(`the design note's example under ${SEEDS} seeds: the same bits every time, each seed the same run twice`, async () => {
  const oracle = await inlined({ workers: 2 }, (cluster) => cluster.on('worker0').run(designNoteOn, 'worker1', inputs))
  const orders = await everySeedTwice(SEEDS, alone, oracle)
  // One call at a time leaves the seed little to choose: which turn a worker takes first, and whether its report comes alone.
  expect(orders).toBeGreaterThan(1)
})

test(`the same on all four workers at once, under ${CROWDED_SEEDS} seeds`, async () => {
  const oracle = await inlined({ workers: 4 }, crowd)
  const orders = await everySeedTwice(CROWDED_SEEDS, (seed) => simulate({ workers: 4, seed }, crowd), oracle)
  // Hardly any two seeds choose alike.
  expect(orders).toBeGreaterThan(CROWDED_SEEDS * 0.9)
})

/** Runs `run` undisturbed and with collections between random steps of the world; both must be the same run. Returns how many there were. */
async function withCollections<T>(seed: number, run: () => Promise<Simulation<T>>): Promise<number> {
  const quiet = await run()
  const random = new Random(seed)
  let collections = 0
  let running = true
  const between = (): void => {
    if (!running) return
    if (random.below(8) === 0) {
      collect()
      collections++
    }
    setImmediate(between)
  }
  setImmediate(between)
  const disturbed = await run()
  running = false
  expect({ seed, text: disturbed.trace.text }).toEqual({ seed, text: quiet.trace.text })
  expect(disturbed.trace.hash).toBe(quiet.trace.hash)
  expect(disturbed.result).toEqual(quiet.result)
  expect(disturbed.debugInfo).toEqual(quiet.debugInfo)
  return collections
}

test('collections at random moments change nothing: the design note’s example under 6 seeds', async () => {
  let collections = 0
  for (let seed = 0; seed < 6; seed++) collections += await withCollections(seed, () => alone(seed))
  expect(collections).toBeGreaterThan(3)
})

test('collections at random moments change nothing: three trainers whose references are passed on', async () => {
  const { inputs: tensors } = golden.trainer_ps!
  const run = () => simulate({ workers: 4, seed: 77 }, (sim) => sim.on('worker0').run(trainerPs, tensors))
  expect(await withCollections(77, run)).toBeGreaterThan(3)
})

test('collections at random moments change nothing: references that nobody disposes of are only counted', async () => {
  let finalized = 0
  const run = () =>
    simulate({ workers: 2, seed: 5 }, async (sim) => {
      await sim.on('worker0').run(dropReferences, 24)
      finalized = sim.on('worker0').runtime.rrefs.finalized
    })
  expect(await withCollections(5, run)).toBeGreaterThan(2)
  // Without this the test would not notice that nothing had been collected.
  expect(finalized).toBeGreaterThan(0)
  expect((await run()).debugInfo.worker1).toMatchObject({ ownerRRefs: 24, forks: 24 })
})

/** V8's own collection, which Node hides unless it is asked for. */
function collector(): () => void {
  v8.setFlagsFromString('--expose-gc')
  return vm.runInNewContext('gc') as () => void
}

const collect = collector()

/** Makes references and forgets them. */
async function dropReferences(count: number): Promise<void> {
  for (let i = 0; i < count; i++) await remote('worker1', contextState, [BigInt(i)]).toHere()
}
