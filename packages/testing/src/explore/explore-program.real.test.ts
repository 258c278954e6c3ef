/** Exploring with a pool of threads: what it counts, which failure it reports, and how it ends. */
import { expect, test } from '@jest/globals'
import { replayProgram } from '../simulate/program-run.js'
import { type ExploreProgress, explore } from './explore.js'
import { default as ringBody } from './explore-program.fixture.js'
import { exploreProgram } from './explore-program.js'
import { RACY_WORKERS } from './racy.fixture.js'

const ring = new URL('./explore-program.fixture.js', import.meta.url)
const racy = { program: new URL('./racy.fixture.js', import.meta.url), export: 'racy', workers: RACY_WORKERS, sameResult: false }

test('TK-8: seeds are spread over threads, and come to what one thread comes to', async () => {
  const options = { workers: 3, strategy: 'seeds' as const, seeds: 30, seed: 3 }
  const seen: ExploreProgress[] = []
  const two = await exploreProgram({ program: ring, ...options, threads: 2, onProgress: (progress) => seen.push(progress) })
  const one = await exploreProgram({ program: ring, ...options, threads: 1 })
  expect(two).toEqual(one)
  expect(two).toEqual(await explore(options, ringBody))
  expect(two).toMatchObject({ runs: 30, drawn: 30, outcomes: 1, exhausted: false, aborted: false })
  expect(two.orders).toBeGreaterThan(25)
  expect(seen.map(({ runs, runsMax }) => [runs, runsMax])).toEqual([
    [25, 30],
    [30, 30],
  ])
})

test('TK-8: a small program is searched through, and no thread is started; of a larger one the seeds are spread', async () => {
  expect(await exploreProgram({ program: ring, workers: 2, threads: 2 })).toMatchObject({ exhausted: true, drawn: 0 })
  const found = await exploreProgram({ program: ring, workers: 3, threads: 2, ordersMax: 20, seeds: 30 })
  expect(found).toMatchObject({ exhausted: false, runs: 50, drawn: 30 })
})

test('TK-8: a run that fails in a thread comes with the line that repeats it', async () => {
  const error = await exploreProgram({ ...racy, strategy: 'seeds', seeds: 500, threads: 2 }).catch((e: unknown) => e as Error)
  expect(error).toMatchObject({ message: 'worker3 came first of 3' })
  const { stack, remoteStack } = error as Error & { remoteStack?: string }
  expect(`${stack}\n${remoteStack}`).toMatch(/Repeat it: npx postgrad replay pg1\./)
})

test('TK-8: a run of the search that fails comes with the line that repeats it', async () => {
  const error = await exploreProgram(racy).catch((e: unknown) => e as Error & { replay: string })
  const { message, stack, replay } = error as Error & { replay: string }
  expect(message).toBe('worker3 came first of 3')
  expect(stack).toContain(`Repeat it: npx postgrad replay ${replay}`)
  await expect(replayProgram(replay)).rejects.toThrow(message)
})

test.each([
  { strategy: 'exhaustive' as const, ordersMax: 200 },
  { strategy: 'seeds' as const, seeds: 50 },
])('TK-65: of two orders with different results, by $strategy, it gives the line that shows one', async (how) => {
  const program = { program: racy.program, export: 'unordered', workers: RACY_WORKERS }
  const error = (await exploreProgram({ ...program, ...how, threads: 2 }).catch((e: unknown) => e)) as Error & {
    replay: string
    remoteStack?: string
  }
  expect(error).toMatchObject({ code: 'ORDERS_DIFFER' })
  expect(`${error.stack}\n${error.remoteStack}`).toMatch(/See this order: npx postgrad replay pg1\.\S+ --trace/)
  // By itself it is as good as the other.
  const [token] = /pg1\.\S+/.exec(`${error.stack}\n${error.remoteStack}`)!
  await expect(replayProgram(token)).resolves.toBeDefined()
})

test('TK-8: a signal ends it with what there is, and no thread is left', async () => {
  const abort = new AbortController()
  const options = { program: ring, workers: 3, strategy: 'seeds' as const, seeds: 5000, threads: 2, signal: abort.signal }
  const found = await exploreProgram({ ...options, onProgress: () => abort.abort() })
  expect(found).toMatchObject({ aborted: true, exhausted: false })
  expect(found.runs).toBeGreaterThan(0)
  expect(found.runs).toBeLessThan(5000)
})

test('TK-8: a module or an export that is not there is told of before a thread starts', async () => {
  await expect(exploreProgram({ ...racy, export: 'notAProgram' })).rejects.toMatchObject({ code: 'PROGRAM_INVALID' })
})
