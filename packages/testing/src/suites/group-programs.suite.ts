/**
 * Random programs whose workers end together: chains of calls that nobody awaits, with sleeps and callbacks in between, references that are passed on, workers
 * that leave in the middle of it, under faults or none, all from one seed. The end must come, and must not cut off a call.
 */
import { isPostgradError } from '@postgrad/base'
import { call, currentWorker, expose, getWorkerInfos, leave, type RRef, remote, shutdown } from '@postgrad/rpc'
import { Random } from '@postgrad/sim/internal'
import { leaks } from '../check/expect-clean.js'
import type { FaultRule } from '../faults/message-kind.js'
import { type SimCluster, simulate } from '../simulate/simulate.js'

/** The counts of a run; its programs share them, since it is one thread. */
interface Account {
  made: number
  served: number
  /** Calls that met a worker which had left. */
  refused: number
  readonly problems: string[]
  readonly random: Random
}

let account: Account

const sleep = (ms: number): Promise<void> => {
  const { clock } = currentWorker()
  return new Promise((resolve) => {
    clock.setTimer(ms, resolve)
  })
}

/** Makes a call that nobody awaits; what its answer sets off is another. */
function begin(ttl: number): void {
  const { random } = account
  const workers = getWorkerInfos()
  const to = workers[random.below(workers.length)]!
  account.made++
  call(to, work, [ttl]).then(
    () => {
      if (ttl > 0 && random.below(3) === 0) begin(ttl - 1)
    },
    (error) => {
      if (isPostgradError(error, 'WORKER_DIED') && error.values.cause === 'left') account.refused++
      else account.problems.push(`a call from ${currentWorker().info.name} to ${to.name}: ${error}`)
    },
  )
}

async function work(ttl: number): Promise<void> {
  const { random } = account
  account.served++
  if (random.coin()) await sleep(random.below(30))
  if (ttl === 0) return
  for (let n = random.below(3); n > 0; n--) begin(ttl - 1)
  if (random.below(4) === 0) pass(remote(currentWorker().info, give, [ttl]))
  if (random.coin()) await sleep(random.below(5))
}

const give = (n: number): number => n
const take = async (ref: RRef<number>): Promise<number> => ref.toHere()
expose({ work, give, take })

/** A reference goes to another worker, and nobody gives it up. */
function pass(ref: RRef<number>): void {
  const workers = getWorkerInfos()
  const to = workers[account.random.below(workers.length)]!
  call(to, take, [ref]).catch((error) => {
    if (!isPostgradError(error, 'WORKER_DIED') || error.values.cause !== 'left')
      account.problems.push(`a reference to ${to.name}: ${error}`)
  })
}

const FAULTS: readonly FaultRule[] = [
  { match: { probability: 0.05 }, do: 'drop', timesEach: 4 },
  { match: { probability: 0.1 }, do: 'duplicate', delayMs: 3 },
  { match: { probability: 0.1 }, do: 'delay', delayMs: 15 },
]

/** The problems of this seed's program; empty. */
export async function runGroupProgram(seed: number): Promise<string[]> {
  const random = new Random(seed)
  account = { made: 0, served: 0, refused: 0, problems: [], random }
  const own = account
  const size = 1 + random.below(5)
  // Some leave; one stays.
  const leavers = new Set(random.below(3) === 0 ? Array.from({ length: random.below(size) }, (_, i) => i + 1) : [])
  const isDone: boolean[] = []
  const program = async (id: number): Promise<void> => {
    if (random.coin()) await sleep(random.below(40))
    for (let n = random.below(4); n > 0; n--) begin(random.below(6))
    if (random.coin()) await sleep(random.below(40))
    if (leavers.has(id)) await leave()
    else await shutdown()
    isDone[id] = true
  }
  const simulation = await simulate({ workers: size, seed, faults: random.coin() ? FAULTS : [] }, async (sim: SimCluster) => {
    await Promise.all(Array.from({ length: size }, (_, id) => sim.on(id).run(() => program(id))))
  })
  const problems = [...own.problems]
  if (own.served !== own.made - own.refused) problems.push(`${own.made} calls made, ${own.refused} refused, ${own.served} served`)
  for (let id = 0; id < size; id++) if (!isDone[id]) problems.push(`worker${id} did not end`)
  // Others may get messages about a worker that left, which they do not need any more.
  problems.push(
    ...leaks(simulation.debugInfo, { allow: leavers.size > 0 ? ['deadLetters'] : [], except: [...leavers].map((id) => `worker${id}`) }),
  )
  return problems.map((problem) => `seed ${seed}: ${problem}`)
}

export async function overGroupSeeds(count: number, first = 0): Promise<string[]> {
  const problems: string[] = []
  for (let seed = first; seed < first + count && problems.length < 10; seed++) {
    try {
      problems.push(...(await runGroupProgram(seed)))
    } catch (error) {
      problems.push(`seed ${seed}: ${error instanceof Error ? error.stack : String(error)}`)
    }
  }
  return problems
}
