/**
 * `exploreProgram({ program, export, … })`: explores a body that is in a module of its own, so that any thread can run it. A pool of threads runs its seeds;
 * this thread searches through all orders, since each run decides the next one.
 */

import { availableParallelism } from 'node:os'
import { ownFile } from '@postgrad/base/internal'
import { checkNames, type OptionNames } from '@postgrad/cluster/internal'
import { Jobs } from '@postgrad/jobs'
import { checkThreads, JobQueue, ThreadPlaces } from '@postgrad/jobs/internal'
import { workerGenerator } from '@postgrad/rpc/internal'
import { ProgressBar } from '@postgrad/training'
import { RealClock } from '@postgrad/transport/internal'
import { bodyOf, type ProgramRef, programUrl } from '../simulate/program-run.js'
import { checkOptions, EXPLORE_OPTIONS, type Exploration, type ExploreOptions, Explorer, ORDERS_MAX, type Part, SEEDS } from './explore.js'
import { type ExploreTask, reportedOf } from './explore-job.js'

/** Options of `exploreProgram`. All except `signal` and `onProgress` are copied to threads: they must be plain data, so fault rules without functions. */
export interface ExploreProgramOptions extends Omit<ExploreOptions, 'name'>, ProgramRef {
  /** How many threads run orders that are drawn by seeds. Default: the number of the machine's cores. */
  readonly threads?: number
}

const { name: _, ...OF_EXPLORE } = EXPLORE_OPTIONS
const OPTIONS: OptionNames<ExploreProgramOptions> = { ...OF_EXPLORE, program: true, export: true, threads: true }

/** Seeds of one job: enough to make its way worth it, few enough to end soon when asked. */
const CHUNK = 25

/**
 * Explores a function of a module, as `explore` does with a function of a test. The exhaustive search runs in this thread; orders that are drawn by seeds run in
 * several threads. On a terminal it shows a progress bar. The first Ctrl-C ends the exploration, which resolves with the counts so far.
 * @throws PROGRAM_INVALID if the module cannot be imported, or does not export the function; the errors of `explore`. The line `Repeat it: npx postgrad replay …`
 * is in the error's stack, and its token in `replay`. The message has neither, so print the stack
 * @example
 * const { orders, exhausted } = await exploreProgram({ program: './program.js', workers: 3 }) // its default export is (sim) => Promise
 * console.log(`${orders} orders${exhausted ? '' : ', not all'}`)
 */
export async function exploreProgram(options: ExploreProgramOptions): Promise<Exploration> {
  checkNames('exploreProgram', options, OPTIONS)
  const { program, export: name = 'default', threads: wanted, signal, onProgress, ...rest } = options
  checkOptions(rest)
  const threads = checkThreads('explore', wanted ?? availableParallelism())
  const url = programUrl(program)
  const { strategy = 'exhaustive', seeds = SEEDS, seed = 0, ordersMax = ORDERS_MAX } = rest
  const isSearch = strategy === 'exhaustive'
  const runsMax = (isSearch ? ordersMax : 0) + seeds
  // A program's output belongs to the program: only a terminal gets a bar.
  const bar = process.stderr.isTTY ? new ProgressBar({ total: runsMax, label: 'explore', unit: 'run' }) : null
  const end = new AbortController()
  const stop = () => end.abort()
  const ends = signal === undefined ? end.signal : AbortSignal.any([signal, end.signal])
  const tell = () => {
    bar?.show({ done: whole.soFar.runs })
    onProgress?.({ ...whole.soFar, runsMax })
  }
  const whole = new Explorer({ ...rest, signal: ends, onProgress: tell }, await bodyOf({ program: url, export: name }))
  // The first Ctrl-C ends it with what there is; the next one is Node's own.
  process.once('SIGINT', stop)
  try {
    if (isSearch) {
      const isAll = await whole.searchPart().catch(async (error: unknown) => {
        throw await reportedOf(error, { program: url, export: name }, rest, whole)
      })
      if (isAll) return whole.report()
    }
    const chunks = Array.from({ length: ends.aborted ? 0 : Math.ceil(seeds / CHUNK) }, (_, i): ExploreTask => {
      return { program: url, export: name, options: rest, first: seed + i * CHUNK, count: Math.min(CHUNK, seeds - i * CHUNK) }
    })
    await spread(chunks, threads, ends, (done) => {
      whole.add(done)
      tell()
    })
    return whole.report()
  } finally {
    bar?.close()
    process.off('SIGINT', stop)
  }
}

/** Has the chunks run in a pool, and takes what they come to, until the signal. */
async function spread(chunks: readonly ExploreTask[], threads: number, signal: AbortSignal, take: (part: Part) => void): Promise<void> {
  const clock = new RealClock()
  const boot = { program: ownFile('exploreProgram', 'testing', 'explore/explore-job.js').href, data: null, device: null }
  const queue = new JobQueue(new ThreadPlaces({ boot, threads }), { threads, queueMax: 2 * threads + 1, clock })
  const jobs = new Jobs({ host: queue, clock, nameOf: () => 'explore', generator: workerGenerator(0, 'explore') })
  try {
    for await (const part of jobs.map(runChunk, chunks, { signal })) take(part)
  } catch (error) {
    if (!signal.aborted) throw error
  } finally {
    await jobs.close()
  }
}

/** A placeholder of the threads' function, which has a name only there. Its task may be unsendable: fault rules may hold functions. */
const runChunk = (_task: unknown): Part => {
  throw new Error('it runs in the threads of the pool')
}
