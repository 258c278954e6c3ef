/** Runs a program of `accumulation.suite.ts` in a simulation, and compares it with one place. */
import { expect } from '@jest/globals'
import type { PostgradError } from '@postgrad/base'
import { Ranks, runWithCrash, withSeed } from '../ddp/sim-ranks.suite.js'
import { accumulationProgramOf, type Entry, runAccumulation } from './accumulation.suite.js'
import { type Compared, compareWithOnePlace } from './accumulation-in-one-place.suite.js'

/** Errors with which a survivor may end its program. */
const ENDS = ['GROUP_BROKEN', 'WORKER_DIED', 'GATHER_FAILED', 'PIPELINE_FAILED']

/** A pass of noSync that begins after a reduction has failed says so, with that error as the cause. */
const isOfDeath = ({ code, cause }: PostgradError): boolean =>
  ENDS.includes(code) || (code === 'DDP_REDUCTION_UNFINISHED' && ENDS.includes((cause as PostgradError | undefined)?.code ?? ''))

export const nothingCompared = () => ({ reductions: 0, alone: 0, refused: 0, mistakes: 0, steps: 0, deaths: 0, failed: 0 })

/** Of programs 1 to `count` those that failed, each with its seed, the program, and how. `crashAt`: as below. */
export async function accumulationsOf(
  count: number,
  compared: Compared & { deaths: number; failed: number },
  crashAt: (seed: number) => number | undefined = () => undefined,
): Promise<string[]> {
  const wrong: string[] = []
  for (let seed = 1; seed <= count; seed++)
    await accumulationOf(seed, compared, crashAt(seed)).catch((error: Error) => void wrong.push(error.message))
  return wrong
}

/** `crashAt`: before which step of the simulated world a rank dies; left out: none does. */
async function accumulationOf(seed: number, compared: Compared & { deaths: number; failed: number }, crashAt?: number): Promise<void> {
  const program = accumulationProgramOf(seed)
  const death = crashAt === undefined ? '' : `, with a death before step ${crashAt}`
  await withSeed(`${seed}${death}, ${JSON.stringify(program)}`, async () => {
    const size = program.replicas * program.places
    const ranks = new Ranks(seed, size)
    const logs = Array.from({ length: size }, (): Entry[] => [])
    const ends = ranks.workers.map((worker, rank) => worker.run(() => runAccumulation(program, rank, logs[rank]!)))
    if (crashAt === undefined) {
      const outcomes = await ranks.world.run(Promise.allSettled(ends))
      for (const outcome of outcomes) if (outcome.status === 'rejected') throw outcome.reason
      expect(await ranks.leftovers()).toEqual([])
    } else if (size > 1) {
      const victim = seed % size
      ends[victim]!.catch(() => {})
      const survivors = Promise.allSettled(ends.filter((_, rank) => rank !== victim))
      const { outcome, value, crashed } = await runWithCrash(ranks, survivors, `worker${victim}`, crashAt)
      expect(outcome).toBe('value')
      compared.deaths += Number(crashed)
      for (const end of value!) {
        if (end.status === 'fulfilled') continue
        compared.failed++
        if (!crashed || !isOfDeath(end.reason as PostgradError)) throw end.reason
      }
    }
    if (ranks.bugs.length > 0) throw ranks.bugs[0]
    compareWithOnePlace(program, logs, compared)
  })
}
