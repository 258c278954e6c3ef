/**
 * Random programs of calls and references on three or four workers, under a random plan of faults, both from one seed: what no program may see,
 * whatever happens to its messages and workers. A worker that is restarted begins a program of its own.
 */
import { distAutograd } from '@postgrad/dist-autograd'
import { call, type Monitor, monitor, type RRef, stream, type WorkerInfo, type WorkerRuntime } from '@postgrad/rpc'
import { currentRuntime } from '@postgrad/rpc/internal'
import { Random } from '@postgrad/sim/internal'
import { ones } from '@postgrad/tensor'
import { leaks } from '../check/expect-clean.js'
import type { FaultRule } from '../faults/message-kind.js'
import { type SimCluster, type Simulation, simulate } from '../simulate/simulate.js'
import { type Account, type Cell, freshAccount, lives, makeCell, served, sleep } from './faulty.suite.js'

/** Faults end by then, but for crashes; so does what waits for a session. */
const WEATHER_MS = 3000
/** How long a program may take after that: the longest deadline, several times. */
const SETTLE_MS = 20_000
const TIMEOUTS_MS = [50, 500, 3000] as const
const CRASH_KINDS = [
  'CALL',
  'RESULT',
  'REMOTE_CALL',
  'REMOTE_RET',
  'RREF_FORK_REQUEST',
  'RREF_ACK',
  'RREF_CHILD_ACCEPT',
  'RREF_USER_DELETE',
] as const
/** How a wait may end: what else there is would be a riddle to a user. */
const FINE: ReadonlySet<string> = new Set([
  ...['value', 'RangeError: thrown on purpose', 'RPC_TIMEOUT', 'WORKER_DIED', 'RREF_CREATION_TIMEOUT', 'CALL_CANCELLED'],
  'DIST_BACKWARD_TIMEOUT',
])

export interface Report {
  readonly account: Account
  readonly simulation: Simulation<void>
  readonly plan: readonly FaultRule[]
  readonly programs: number
  /** Problems; empty. */
  readonly problems: readonly string[]
}

function pick<T>(random: Random, list: readonly T[]): T {
  return list[random.below(list.length)] as T
}

/** Of 1,000. */
const often = (random: Random, most: number): number => (1 + random.below(most)) / 1000

/** The faults of messages and workers: some of everything, or none. */
function planOf(random: Random, names: readonly string[]): FaultRule[] {
  const plan: FaultRule[] = []
  for (let crashes = random.below(4); crashes > 1; crashes--) {
    const match = { kind: pick(random, CRASH_KINDS), nth: 1 + random.below(12) }
    plan.push(random.coin() ? { match, do: 'crash' } : { match, do: 'restart', delayMs: random.below(300) })
  }
  if (random.below(3) === 0) {
    const fromMs = random.below(1000)
    const [from, to] = [pick(random, names), pick(random, names)]
    plan.push({ match: { from: [from, to], to: [from, to] }, do: 'drop', fromMs, untilMs: fromMs + random.below(WEATHER_MS - 1000) })
  }
  if (random.coin()) plan.push({ match: { probability: often(random, 300) }, do: 'drop', untilMs: WEATHER_MS })
  if (random.coin())
    plan.push({ match: { probability: often(random, 300) }, do: 'delay', delayMs: 1 + random.below(400), untilMs: WEATHER_MS })
  if (random.coin())
    plan.push({ match: { probability: often(random, 300) }, do: 'duplicate', delayMs: random.below(200), untilMs: WEATHER_MS })
  return plan
}

/** A worker that another watches. */
interface Watched {
  readonly watcher: WorkerRuntime
  readonly worker: WorkerInfo
  readonly monitor: Monitor
  told: number
}

function watch(watches: Watched[], to: string): void {
  const watcher = currentRuntime()
  // A worker that died earlier was never a peer of this one.
  if (!watcher.workers().some(({ name }) => name === to)) return
  const watched: Watched = { watcher, worker: watcher.resolve(to), monitor: monitor(to), told: 0 }
  watches.push(watched)
  void watched.monitor.down.then(() => {
    watched.told++
  })
}

/** Takes what a generator elsewhere gives, in order. */
async function takeAll(account: Account, to: string, key: string, count: number, timeoutMs: number): Promise<void> {
  let expected = 0
  for await (const n of stream(to, served.count, [key, count], { timeoutMs, window: 4 })) {
    if (n !== expected++) account.problems.push(`${key}: item ${n} came instead of ${expected - 1}`)
  }
  if (expected !== count) account.problems.push(`${key}: ${expected} items came of ${count}`)
}

/** One life of a worker: some steps, several under way at once, and in the end everything is disposed. */
async function program(account: Account, random: Random, names: readonly string[], watches: Watched[]): Promise<void> {
  const { name, id } = currentRuntime().info
  const held: RRef<Cell>[] = []
  const underWay: Promise<unknown>[] = []
  const steps = 5 + random.below(8)
  for (let step = 0; step < steps; step++) {
    const key = `${name}#${id}/${step}`
    const timeoutMs = pick(random, TIMEOUTS_MS)
    const to = pick(random, names)
    const ms = random.below(3) === 0 ? random.below(300) : 0
    const wait = <T>(what: string, make: () => PromiseLike<T>) => underWay.push(account.wait(`${key} ${what}`, timeoutMs, make))
    const ref = held.length === 0 ? null : pick(random, held)
    const what = random.below(13)
    if (what === 0) wait('echo', () => call(to, served.echo, [key, { x: [step] }, ms], { timeoutMs }))
    else if (what === 1) wait('fail', () => call(to, served.fail, [key, ms], { timeoutMs }))
    else if (what === 2) {
      const path = Array.from({ length: random.below(5) }, () => pick(random, names))
      wait('relay', () => call(to, served.relay, [key, path], { timeoutMs }))
    } else if (what === 9) {
      const path = Array.from({ length: random.below(4) }, () => pick(random, names))
      underWay.push(backwardAlong(account, key, passesOf(random, [to, ...path]), timeoutMs))
    } else if (what === 10) {
      const called = call(to, served.echo, [key, 'never', 400], { timeoutMs })
      wait('cancelled', () => called)
      underWay.push(sleep(ms).then(() => called.cancel()))
    } else if (what === 11) {
      const items = random.below(15)
      // The deadline is one of each item.
      underWay.push(account.wait(`${key} stream`, 20 * timeoutMs, () => takeAll(account, to, key, items, timeoutMs)))
    } else if (what === 12) {
      watch(watches, to)
    } else if (what <= 4 || ref === null) {
      const made = makeCell(to, key, { timeoutMs })
      if (made !== null) held.push(made)
    } else if (what === 5) wait('add', () => ref.call('add', [key, 1], { timeoutMs }))
    else if (what === 6) wait('use', () => call(to, served.useRef, [key, ref], { timeoutMs }))
    else if (what === 7) wait('pass on', () => call(to, served.passOn, [key, ref, pick(random, names)], { timeoutMs }))
    else {
      held.splice(held.indexOf(ref), 1)
      // Its calls under way continue.
      ref.dispose()
    }
    if (random.coin()) await underWay.at(-1)
    else if (random.below(3) === 0) await sleep(random.below(100))
  }
  await Promise.all(underWay)
  for (const ref of held) ref.dispose()
}

/** Passes over the workers of a path: from so many roots each, of which the nth is worth its factor, one after the other or at once. */
interface Passes {
  readonly path: readonly string[]
  readonly factors: readonly (readonly number[])[]
  readonly isAtOnce: boolean
}

function passesOf(random: Random, path: readonly string[]): Passes {
  const some = (most: number) => Array.from({ length: 1 + random.below(most) }, () => 1 + random.below(3))
  return { path, factors: some(3).map(() => some(6)), isAtOnce: random.coin() }
}

/** The gradient is right to the bit for the passes that ended well: what failed has left nothing. */
async function backwardAlong(account: Account, key: string, { path, factors, isAtOnce }: Passes, timeoutMs: number): Promise<void> {
  await distAutograd.context(async (ctx) => {
    const leaf = ones([2], { requiresGrad: true })
    const [to, ...rest] = path as [string, ...string[]]
    const y = await account.wait(`${key} forward`, timeoutMs, () => call(to, served.doubleAlong, [key, leaf, rest], { timeoutMs }))
    if (typeof y === 'string') return
    let right = 0
    const pass = async (own: readonly number[], nr: number): Promise<void> => {
      const roots = own.map((factor) => y.mul(factor).sum())
      const what = `${key} backward ${nr}`
      const failed = await account.wait(what, timeoutMs, () => ctx.backward(roots, { timeoutMs, retainGraph: true }))
      if (failed === undefined) right += own.reduce((a, b) => a + b) * 2 ** path.length
    }
    if (isAtOnce) await Promise.all(factors.map(pass))
    else for (const [nr, own] of factors.entries()) await pass(own, nr)
    const grad = ctx.gradients().get(leaf)?.toArray()
    if (String(grad ?? [0, 0]) !== `${right},${right}`) account.problems.push(`${key}: gradient ${grad}, not ${right}`)
  })
}

const after = (sim: SimCluster, ms: number) => new Promise<void>((resolve) => sim.world.clock.setTimer(ms, resolve))

export async function faultyProgram(seed: number): Promise<Report> {
  const account = freshAccount()
  const random = new Random(seed)
  const names = Array.from({ length: 3 + random.below(2) }, (_, i) => `worker${i}`)
  const plan = planOf(random, names)
  const problems: string[] = []
  const watches: Watched[] = []
  let dead: readonly string[] = []
  let programs = 0
  const simulation = await simulate({ workers: names, seed, rpcTimeoutMs: 3000, faults: plan }, async (sim) => {
    const begun = new Set<number>()
    const begin = () => {
      for (const { name, id } of sim.workers) {
        const { runtime } = sim.on(name)
        if (begun.has(id) || !lives(sim, runtime)) continue
        begun.add(id)
        programs++
        const own = new Random(sim.world.seedFor(`${name}#${id}`))
        sim
          .on(name)
          .run(program, account, own, names, watches)
          .catch((error: unknown) => lives(sim, runtime) && problems.push(`the program of ${name} (id ${id}) threw ${error}`))
      }
    }
    for (begin(); sim.world.nowMs < WEATHER_MS; begin()) await after(sim, 50)
    await after(sim, SETTLE_MS)
    account.close(sim)
    problems.push(...account.problems)
    for (const { watcher, worker, monitor, told } of watches) {
      const isDown = watcher.deathOf(worker.id) !== null
      if (lives(sim, watcher) && told !== Number(isDown)) {
        problems.push(`${watcher.info.name} was told ${told} times of the end of ${worker.name} (id ${worker.id})`)
      }
      monitor.dispose()
    }
    dead = names.filter((name) => sim.world.isCrashed(name))
    const { sent, repeated, delivered, dropped, lost } = sim.world.frames
    if (sent + repeated !== delivered + dropped + lost) problems.push(`frames are missing: ${JSON.stringify(sim.world.frames)}`)
  })
  for (const end of account.ends.keys()) if (!FINE.has(end)) problems.push(`a wait ended with ${end}`)
  problems.push(...leaks(simulation.debugInfo, { except: dead, allow: ['deadLetters'] }))
  return { account, simulation, plan, programs, problems }
}

/** Runs so many seeds, prints how many there were a minute and what happened in them, and gives the seeds that failed, with the reasons. */
export async function overFaultySeeds(seeds: number, first = 0): Promise<string[]> {
  const failed: string[] = []
  const faults: Record<string, number> = {}
  const ends: Record<string, number> = {}
  let requests = 0
  let programs = 0
  const startMs = performance.now()
  for (let seed = first; seed < first + seeds; seed++) {
    const report = await faultyProgram(seed).catch((error: unknown) => ({ problems: [String(error)] }))
    if (report.problems.length > 0) failed.push(`seed ${seed}: ${report.problems.join('; ')}`)
    if (!('account' in report)) continue
    for (const [kind, count] of Object.entries(report.simulation.faults)) faults[kind] = (faults[kind] ?? 0) + count
    for (const [end, count] of report.account.ends) ends[end] = (ends[end] ?? 0) + count
    requests += report.account.requestsRun
    programs += report.programs
  }
  const perMinute = Math.round((seeds * 60_000) / (performance.now() - startMs))
  console.log(
    `seeds ${first} to ${first + seeds - 1}: ${perMinute} seeds a minute, ${programs} programs, ${requests} requests run, ` +
      `faults ${JSON.stringify(faults)}, waits that ended with ${JSON.stringify(ends)}`,
  )
  return failed
}
