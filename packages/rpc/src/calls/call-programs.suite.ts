/**
 * Random programs of calls that call, by `call`, `remote` and `stream`, over three or four workers, which are cancelled, run out of time, throw and die
 * at random moments, and the rules that each must keep. Everything is drawn from the seed before it begins, so a failing one can be run alone.
 */
import { Random } from '@postgrad/sim/internal'
import { call, currentSignal, currentWorker, remote, rref, stream } from '../api/api.js'
import { expose } from '../common/function-registry.js'
import { GRAIN_MS } from '../core/pending-calls.js'
import type { RRef } from '../references/rref.js'
import { Cluster } from '../worker/sim-cluster.suite.js'

const DEPTH_MAX = 4
/** Longer than all of a program's functions take one after the other. */
const SETTLE_MS = 20_000
const CHILDREN_MAX = 3
const KINDS = ['call', 'call', 'method', 'remote', 'stream'] as const

/** One call of a program, and what it calls in turn. Plain, since it travels as an argument. */
interface Plan {
  readonly id: number
  readonly to: number
  readonly kind: (typeof KINDS)[number]
  /** Whether its function ends when it is cancelled. */
  readonly isAware: boolean
  readonly ms: number
  readonly throws: boolean
  /** Its calls begin at once, not one after the other. */
  readonly together: boolean
  readonly cancelMs: number | null
  readonly timeoutMs: number | null
  /** Of a stream: how many items it has, and how many are taken. */
  readonly items: number
  readonly taken: number
  readonly window: number
  readonly calls: readonly Plan[]
}

/** The fate of one call. */
interface Fate {
  readonly plan: Plan
  readonly parent: number | null
  begunMs: number[]
  endedMs: number[]
  outcome: string | null
  /** When its caller gave it up. */
  givenUpMs: number | null
}

/** How a wait may end: what else there is would be a riddle to a user. */
const FINE: ReadonlySet<string> = new Set(['value', 'RangeError', 'RPC_TIMEOUT', 'CALL_CANCELLED', 'WORKER_DIED', 'RREF_CREATION_TIMEOUT'])

// Of the program that is running: tests run one at a time.
let fates: Fate[] = []

const nowMs = () => currentWorker().clock.now()
const sleep = (ms: number, signal?: AbortSignal): Promise<void> => {
  const { clock } = currentWorker()
  return new Promise((resolve) => {
    if (signal?.aborted) resolve()
    clock.setTimer(ms, resolve)
    signal?.addEventListener('abort', () => resolve())
  })
}

async function body(plan: Plan): Promise<void> {
  const ends: Promise<void>[] = []
  for (const one of plan.calls) {
    const end = make(one)
    if (plan.together) ends.push(end)
    else await end
  }
  await Promise.all(ends)
  await sleep(plan.ms, plan.isAware ? currentSignal() : undefined)
  if (plan.throws) throw new RangeError('on purpose')
}

const serve = async (plan: Plan): Promise<number> => {
  const fate = fates[plan.id]!
  fate.begunMs.push(nowMs())
  try {
    await body(plan)
    return plan.id
  } finally {
    fate.endedMs.push(nowMs())
  }
}

async function* serveStream(plan: Plan): AsyncGenerator<RRef<number>> {
  const fate = fates[plan.id]!
  fate.begunMs.push(nowMs())
  try {
    for (let i = 0; i < plan.items; i++) {
      if (i === 1) await body(plan)
      yield rref(i)
    }
  } finally {
    fate.endedMs.push(nowMs())
  }
}

class Server {
  serve(plan: Plan): Promise<number> {
    return serve(plan)
  }
}
expose({ serveProgram: serve, serveProgramStream: serveStream, ProgramServer: Server })

/** Makes one call and waits for its end, which is noted and never thrown. */
async function make(plan: Plan): Promise<void> {
  const fate = fates[plan.id]!
  const controller = new AbortController()
  const { signal } = controller
  if (plan.cancelMs !== null) currentWorker().clock.setTimer(plan.cancelMs, () => controller.abort())
  const options = plan.timeoutMs === null ? { signal } : { signal, timeoutMs: plan.timeoutMs }
  try {
    await wait(plan, options)
    fate.outcome = 'value'
  } catch (error) {
    const { code, name } = error as { code?: string; name: string }
    fate.outcome = code ?? name
  }
  // The deadline of a fetch, or of one item, is not the function's.
  const isItsOwn = plan.kind === 'call' || plan.kind === 'method'
  if (fate.outcome === 'CALL_CANCELLED' || (isItsOwn && fate.outcome === 'RPC_TIMEOUT')) fate.givenUpMs = nowMs()
}

async function wait(plan: Plan, options: { readonly signal: AbortSignal; readonly timeoutMs?: number }): Promise<void> {
  switch (plan.kind) {
    case 'call':
      await call(plan.to, serve, [plan], options)
      return
    case 'method': {
      using server = remote(plan.to, Server)
      await server.call('serve', [plan], options)
      return
    }
    case 'remote': {
      using made = remote(plan.to, serve, [plan], options)
      await made.toHere(options)
      return
    }
    case 'stream': {
      let taken = 0
      for await (const item of stream(plan.to, serveStream, [plan], { ...options, window: plan.window })) {
        item.dispose()
        if (++taken === plan.taken) break
      }
    }
  }
}

function draw(random: Random, size: number, parent: number | null, depth: number): Plan {
  const id = fates.length
  // Its place is taken before those of its calls.
  fates.push(null as never)
  const times = [1, 5, 20, 60]
  const maybe = (): number | null => (random.below(4) === 0 ? times[random.below(times.length)]! + random.below(3) : null)
  const count = depth === 0 ? 0 : random.below(CHILDREN_MAX + 1)
  const plan: Plan = {
    id,
    to: random.below(size),
    kind: KINDS[random.below(KINDS.length)]!,
    isAware: random.coin(),
    ms: times[random.below(times.length)]!,
    throws: random.below(8) === 0,
    together: random.coin(),
    cancelMs: maybe(),
    timeoutMs: maybe(),
    items: random.below(12),
    taken: 1 + random.below(12),
    window: 1 + random.below(4),
    calls: Array.from({ length: count }, () => draw(random, size, id, depth - 1)),
  }
  fates[id] = { plan, parent, begunMs: [], endedMs: [], outcome: null, givenUpMs: null }
  return plan
}

/** Runs the program of a seed and says what of it must not be; empty. A worker dies in every other one. */
export async function callProgramProblems(seed: number): Promise<string[]> {
  const random = new Random(seed)
  const size = 3 + random.below(2)
  fates = []
  const plans = Array.from({ length: 1 + random.below(3) }, () => draw(random, size, null, DEPTH_MAX))
  const victim = random.coin() ? size - 1 : null
  const deathMs = random.below(80)
  // ORD-4: in every second run messages overtake others.
  const cluster = new Cluster(seed, size, { overtaking: seed % 2 === 1 })
  await cluster.run(0, async () => {
    if (victim !== null) currentWorker().clock.setTimer(deathMs, () => cluster.world.crash(`worker${victim}`))
    await Promise.all(plans.map(make))
    // Functions that do not look run for a while, though their calls are refused.
    await sleep(SETTLE_MS)
  })
  await cluster.world.drain()
  const letters = cluster.workers.reduce((sum, { info, letters }) => sum + (info.id === victim ? 0 : letters.total), 0)
  const problems = await cluster.leftovers({ except: victim === null ? [] : [victim], letters })
  for (const { info, letters: ofWorker } of cluster.workers) {
    const { counts } = ofWorker
    if (info.id !== victim && counts.unreadable + counts['unknown-reference'] + counts.stopped > 0) {
      problems.push(`${info.name}: ${JSON.stringify(ofWorker.last())}`)
    }
  }
  for (const fate of fates) problems.push(...problemsOf(fate, victim))
  return problems
}

function problemsOf(fate: Fate, victim: number | null): string[] {
  const { plan, begunMs, endedMs, outcome } = fate
  const what = `${plan.kind} ${plan.id} of worker${plan.to}`
  const problems: string[] = []
  if (begunMs.length > 1) problems.push(`${what} began ${begunMs.length} times`)
  if (outcome !== null && !FINE.has(outcome)) problems.push(`${what} ended with ${outcome}`)
  if (outcome === 'WORKER_DIED' && victim === null) problems.push(`${what} ended with WORKER_DIED, and nobody died`)
  if (outcome === 'value' && begunMs.length !== 1) problems.push(`${what} has a value and never began`)
  if (plan.to === victim) return problems
  if (begunMs.length !== endedMs.length) problems.push(`${what} began and never ended`)
  const sinceMs = givenUpSince(fate)
  const [begin, end] = [begunMs[0], endedMs[0]]
  if (sinceMs === null || begin === undefined || end === undefined || !plan.isAware || !plan.calls.every(isPrompt)) return problems
  if (end > Math.max(begin, sinceMs) + GRAIN_MS + 1) problems.push(`${what} was cancelled at ${sinceMs} and ended at ${end}`)
  return problems
}

/** A call that ends soon after it was cancelled, as far as its caller is concerned. A stream waits for the end of its generator. */
function isPrompt({ kind }: Plan): boolean {
  return kind !== 'stream'
}

/** When it, or the first of the calls that it is part of, was cancelled; what a reference is made by is part of nothing. */
function givenUpSince(fate: Fate): number | null {
  const { plan, parent, givenUpMs } = fate
  if (plan.kind === 'remote' || plan.kind === 'stream') return null
  const above = parent === null ? null : givenUpSince(fates[parent]!)
  return above === null || givenUpMs === null ? (above ?? givenUpMs) : Math.min(above, givenUpMs)
}

/** How many of its calls a set of seeds has had, by how they ended: a check that something happens at all. */
export function outcomes(): Record<string, number> {
  const counts: Record<string, number> = {}
  for (const { outcome } of fates) if (outcome !== null) counts[outcome] = (counts[outcome] ?? 0) + 1
  return counts
}

/** The problems, one line each, with their seeds. */
export async function overCallSeeds(count: number, first: number, seen: Record<string, number> = {}): Promise<string[]> {
  const problems: string[] = []
  for (let seed = first; seed < first + count && problems.length < 20; seed++) {
    try {
      problems.push(...(await callProgramProblems(seed)).map((problem) => `seed ${seed}: ${problem}`))
    } catch (error) {
      problems.push(`seed ${seed}: ${error instanceof Error ? error.stack : String(error)}`)
    }
    for (const [outcome, times] of Object.entries(outcomes())) seen[outcome] = (seen[outcome] ?? 0) + times
  }
  return problems
}
