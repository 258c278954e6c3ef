/**
 * The fixture of this package's simulated tests: N runtimes over one SimWorld, each direction of each link with a gate in it that says what
 * passed, and that can be shut so that a test decides what arrives first. The entry `./suite` lends it to dist-autograd and parallel, whose parts are
 * installed on it. Users get the one of package `testing`.
 */
import { setImmediate } from 'node:timers/promises'
import type { PostgradError } from '@postgrad/base'
import { SimWorld } from '@postgrad/sim/internal'
import type { Generator } from '@postgrad/tensor'
import type { Frame, Link } from '@postgrad/transport'
import { ForwardingLink } from '@postgrad/transport/internal'
import { MESSAGE_TABLE, requestHead } from '@postgrad/wire/internal'
import type { FunctionRegistry } from '../common/function-registry.js'
import type { MailboxOptions } from '../core/call-credits.js'
import { type WorkerOptions, WorkerRuntime } from './worker-runtime.js'

/** One end of a link, seen from its sender. */
export class Gate extends ForwardingLink {
  /** The names of the messages that were sent, in order. */
  readonly sent: string[] = []
  /** Changes frames on their way, for tests of what cannot be read. */
  tamper: ((frame: Frame) => Frame) | null = null
  /** Which messages arrive twice, by name, as over a link that repeats. */
  repeats: (kind: string) => boolean = () => false
  private held: Parameters<Link['send']>[] | null = null

  /** Messages sent from now on wait for `unshut`. */
  shut(): void {
    this.held ??= []
  }

  unshut(): void {
    const held = this.held ?? []
    this.held = null
    for (const sent of held) this.link.send(...sent)
  }

  override send(...[frame, ...how]: Parameters<Link['send']>): void {
    const head = requestHead(frame)
    this.sent.push(head === null ? '?' : MESSAGE_TABLE[head.type].name)
    const passed = this.tamper === null ? frame : this.tamper(frame)
    const times = this.repeats(this.sent.at(-1)!) ? 2 : 1
    for (let i = 0; i < times; i++) {
      if (this.held !== null) this.held.push([passed, ...how])
      else this.link.send(passed, ...how)
    }
  }
}

/** The frame with a body that ends too early. Its head can be read. */
export function cutShort({ header, segments }: Frame): Frame {
  const cut = header.slice()
  // The length is in front.
  cut[0]! -= 8
  return { header: cut, segments }
}

export interface ClusterOptions extends Partial<Omit<WorkerOptions, 'name' | 'id' | 'clock'>> {
  readonly registryOf?: (id: number) => FunctionRegistry
  /** Windows of their own, as no cluster that `launch` makes has them. */
  readonly mailboxOf?: (id: number) => MailboxOptions
  /** Default: none of its own. */
  readonly generatorOf?: (name: string) => Generator
  /** Adds the parts of packages above. */
  readonly install?: (worker: WorkerRuntime) => unknown
  /** Ids of those that no group counts. */
  readonly guests?: readonly number[]
  /** Pairs that get no link. */
  readonly apart?: readonly (readonly [number, number])[]
  /** Messages overtake others where no order is promised. */
  readonly overtaking?: boolean
}

export class Cluster {
  readonly world: SimWorld
  readonly workers: WorkerRuntime[]
  readonly bugs: unknown[] = []
  private readonly guests: readonly number[]
  private readonly gates = new Map<string, Gate>()

  constructor(seed: number, size: number, clusterOptions: ClusterOptions = {}) {
    const { registryOf, mailboxOf, generatorOf, install, guests = [], apart = [], overtaking = false, ...options } = clusterOptions
    this.world = new SimWorld(seed, { overtaking })
    this.guests = guests
    this.workers = Array.from({ length: size }, (_, id) => {
      const name = `worker${id}`
      return new WorkerRuntime({
        name,
        id,
        clock: this.world.clockOf(name),
        finalizers: 'report',
        onBug: (error) => this.bugs.push(error),
        isGuest: guests.includes(id),
        ...options,
        ...(registryOf === undefined ? {} : { registry: registryOf(id) }),
        ...(mailboxOf === undefined ? {} : { mailbox: mailboxOf(id) }),
        ...(generatorOf === undefined ? {} : { generator: generatorOf(name) }),
      })
    })
    if (install !== undefined) for (const worker of this.workers) install(worker)
    for (const a of this.workers) {
      for (const b of this.workers.slice(a.info.id + 1)) {
        if (!apart.some(([i, j]) => i === a.info.id && j === b.info.id)) this.link(a, b)
      }
    }
  }

  /** A worker that comes late, linked to all that live. */
  join(name: string): WorkerRuntime {
    const id = this.workers.length
    const worker = new WorkerRuntime({
      name,
      id,
      clock: this.world.clockOf(`${name} ${id}`),
      finalizers: 'report',
      onBug: (error) => this.bugs.push(error),
    })
    for (const other of this.workers) if (!other.isClosed) this.link(other, worker)
    this.workers.push(worker)
    return worker
  }

  link(a: WorkerRuntime, b: WorkerRuntime): void {
    const [ofA, ofB] = this.world.link(a.info.name, b.info.name)
    const gateOfA = new Gate(ofA)
    const gateOfB = new Gate(ofB)
    this.gates.set(`${a.info.id}→${b.info.id}`, gateOfA)
    this.gates.set(`${b.info.id}→${a.info.id}`, gateOfB)
    a.connect(b.info, gateOfA, null, this.guests.includes(b.info.id))
    b.connect(a.info, gateOfB, null, this.guests.includes(a.info.id))
  }

  /** The gate from worker `from` to worker `to`. */
  gate(from: number, to: number): Gate {
    return this.gates.get(`${from}→${to}`)!
  }

  /** How many messages have left for other workers. */
  get messages(): number {
    return [...this.gates.values()].reduce((sum, { sent }) => sum + sent.length, 0)
  }

  /** Runs `main` as worker `id` until it settles. */
  run<T>(id: number, main: () => Promise<T>): Promise<T> {
    return this.world.run(this.workers[id]!.run(main))
  }

  info(id: number): Record<string, number> {
    return this.workers[id]!.debugInfo()
  }

  /** Delivers what is under way, then says what is left: nothing may be. `letters`: so many dead ones; null: however many. */
  async leftovers({ except = [], letters = 0, held = HELD }: LeftoverOptions = {}): Promise<string[]> {
    await this.world.drain()
    const left = this.bugs.map((bug) => `bug: ${bug instanceof Error ? bug.stack : String(bug)}`)
    let dead = 0
    for (const worker of this.workers) {
      const info = worker.debugInfo()
      if (except.includes(worker.info.id)) continue
      dead += info.deadLetters!
      for (const key of held) if (info[key] !== 0) left.push(`${worker.info.name}: ${key} ${info[key]}`)
    }
    if (letters !== null && dead !== letters) {
      const last = this.workers.flatMap((worker) => worker.letters.last().map((letter) => JSON.stringify(letter)))
      left.push(`${dead} dead letters: ${last.join('; ')}`)
    }
    return left
  }
}

export interface LeftoverOptions {
  /** Ids of workers that are not asked. */
  readonly except?: readonly number[]
  readonly letters?: number | null
  /** Counts that must be 0, by their names in `debugInfo`. */
  readonly held?: readonly string[]
}

const HELD = ['pendingCalls', 'servingCalls', 'ownerRRefs', 'userRRefs', 'forks', 'pendingUsers', 'pendingChildren']

/** Runs `main` on worker 0 of fresh clusters, one per seed, and asks each time that nothing is left. A failure names its seed. */
export function overSeeds(
  count: number,
  size: number,
  main: (cluster: Cluster, seed: number) => Promise<void>,
  options: ClusterOptions = {},
): Promise<void> {
  return overClusters(count, (seed) => new Cluster(seed, size, options), main)
}

/** The same of clusters of another kind. */
export async function overClusters<C extends Pick<Cluster, 'run'> & { leftovers(): Promise<string[]> }>(
  count: number,
  make: (seed: number) => C,
  main: (cluster: C, seed: number) => Promise<void>,
): Promise<void> {
  for (let seed = 1; seed <= count; seed++) {
    await withSeed(seed, async () => {
      const cluster = make(seed)
      await cluster.run(0, () => main(cluster, seed))
      const left = await cluster.leftovers()
      if (left.length > 0) throw new Error(`left over: ${left.join('; ')}`)
    })
  }
}

export async function withSeed<T>(seed: number | string, body: () => Promise<T>): Promise<T> {
  try {
    return await body()
  } catch (error) {
    throw new Error(`seed ${seed}: ${error instanceof Error ? error.message : String(error)}`, { cause: error })
  }
}

/** Steps the world until `main` settles or nothing can happen; the victim crashes before step `step`. */
export async function runWithCrash<T>(
  { world }: Pick<Cluster, 'world'>,
  main: Promise<T>,
  victim: string,
  step: number,
): Promise<{
  readonly outcome: 'value' | 'error' | 'pending'
  readonly value: T | undefined
  readonly error: unknown
  readonly crashed: boolean
}> {
  const state: { outcome: 'value' | 'error' | 'pending'; value: T | undefined; error: unknown } = {
    outcome: 'pending',
    value: undefined,
    error: null,
  }
  main.then(
    (value) => {
      state.outcome = 'value'
      state.value = value
    },
    (error: unknown) => {
      state.outcome = 'error'
      state.error = error
    },
  )
  let taken = 0
  let crashed = false
  await setImmediate()
  while (state.outcome === 'pending') {
    if (taken === step) {
      world.crash(victim)
      crashed = true
    }
    taken++
    if (!world.step()) break
    await setImmediate()
  }
  return { ...state, crashed }
}

/** The error that rejects a promise. */
export async function failure(promise: PromiseLike<unknown>): Promise<PostgradError & { readonly [key: string]: unknown }> {
  try {
    await promise
  } catch (error) {
    return error as PostgradError & { readonly [key: string]: unknown }
  }
  throw new Error('expected a rejection, got a value')
}

/** The error of a function. */
export function thrown(fn: () => unknown): PostgradError {
  try {
    fn()
  } catch (error) {
    return error as PostgradError
  }
  throw new Error('expected an exception, got a value')
}
