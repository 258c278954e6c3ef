/**
 * `simulate`: a program on N workers in one thread, its messages delivered in an order drawn from a seed. Same seed, same run; every pair keeps its
 * own order, everything else is shuffled. The runtimes are the ones that `launch` starts; only clock and links are the simulation's.
 */

import { isPostgradError, type PostgradError } from '@postgrad/base'
import { checkTime, timeLimit, workerDied } from '@postgrad/base/internal'
import type { Birth } from '@postgrad/cluster/internal'
import { checkNames, type OptionNames } from '@postgrad/cluster/internal'
import { installDistAutograd } from '@postgrad/dist-autograd/internal'
import { syncDisk, useCheckpointDisk } from '@postgrad/parallel/internal'
import { installProcessGroups } from '@postgrad/process-group/internal'
import type { MailboxOptions, ReferenceLeak, Target, WorkerInfo } from '@postgrad/rpc'
import { RPC_TIMEOUT_MS, referenceLeaks, WorkerRuntime, workerGenerator } from '@postgrad/rpc/internal'
import type { FaultKind, SimWorldOptions, Trace } from '@postgrad/sim'
import { FAULT_KINDS, ReplaySchedule, SimWorld } from '@postgrad/sim/internal'
import { suspendHeapStorage } from '@postgrad/tensor/internal'
import { type FaultsOption, misnamed, rulesOf } from '../faults/fault-plan.js'
import type { FaultRule } from '../faults/message-kind.js'
import { DAMAGED, MESSAGE_KINDS, messageKind } from '../faults/message-kind.js'
import { noteInStack } from '../replay/error-notes.js'
import type { RunVariant } from '../replay/replay-token.js'
import { noteFailure, noteRun, type Reproducible, reproducible, runTrace } from '../replay/reproduce.js'
import type { FailedRun, ShrinkOptions } from '../replay/shrink.js'
import { twice } from '../replay/twice.js'
import { checkRun } from './check-run.js'
import { InThreadCluster, type TestCluster, type TestWorker, workerNames } from './cluster.js'
import { MessageLedger, type Messages } from './message-ledger.js'
import { MessageNamer } from './message-names.js'
import { type Disturbance, Network, type SlowLine } from './network.js'
import { SimulatedJobs, type SimulatedJobsOptions } from './simulated-jobs.js'
import { SimulatedMembers } from './simulated-members.js'
import { type WaitsNow, type WhoWaits, waitsNow, whoWaits, whoWaitsText, withWaits } from './who-waits.js'

/** Options of `simulate`. */
export interface SimulateOptions {
  /** The names of the workers, or how many: 2 makes worker0 and worker1. */
  readonly workers: readonly string[] | number
  /** The seed of the order of delivery. Default 0. */
  readonly seed?: number
  /** The seed of the workers' random numbers, like `seed` of `launch`. It is separate from `seed`, so that runs in different orders use the same numbers. Default 0. */
  readonly dataSeed?: number
  /** The time limit of a call that has no `timeoutMs` of its own, in ms of virtual time. Default 60,000. 0: without a limit. */
  readonly rpcTimeoutMs?: number
  /** How many calls of one worker, and how many bytes of calls, may wait at another. Further calls fail with MAILBOX_FULL. */
  readonly mailbox?: MailboxOptions
  /**
   * The faults of the run: rules by which messages are lost, repeated or delayed, or crash or restart a worker. 'random' draws rules from the seed, as
   * `randomFaults()` does. With this option, even as an empty list, links are sessions, which send lost messages again. Default: no faults, and no sessions.
   */
  readonly faults?: FaultsOption
  /** The pools of jobs, by name, for `currentJobs(name)`. Jobs run in this thread, in an order that the seed decides. Default: no pools. */
  readonly jobs?: Readonly<Record<string, SimulatedJobsOptions>>
  /** Whether to keep the stack at which each reference is made, for `simulation.leaks`. Default false. */
  readonly referenceStacks?: boolean
  /** Whether to count all messages, for `simulation.messages` and the checks that read these counts. Default true. false saves some time if you run many seeds. */
  readonly countMessages?: boolean
  /**
   * Options of the simulated world. If a run needs more than `stepsMax` steps (default 50 million) or `timeMsMax` ms of virtual time (default a day), it fails with
   * SIM_LIMIT. `arrival` is 'seeded' (default: the seed decides how many frames of a pair arrive together), 'at-once' (all in flight) or 'alone' (one by one). With
   * `overtaking` (default false; no effect with `faults`), small frames may overtake others, as on sockets. The trace keeps `traceEventsMax` events (default 65,536).
   * A `schedule` decides the order in place of the seed, and an `observer` learns what each step uses.
   */
  readonly world?: Omit<SimWorldOptions, 'faults'>
  /**
   * Whether to shrink a run that fails: `simulate` repeats it with fewer faults and simpler orders, and reports the smallest run that fails in the same way. An object
   * sets the limits of this search. Default: true if the faults are drawn from the seed, or if the environment has POSTGRAD_SHRINK=1. POSTGRAD_SHRINK=0 turns
   * shrinking off.
   */
  readonly shrink?: boolean | ShrinkOptions
  /**
   * Whether to run the body twice and compare the runs. If they differ, the program depends on something other than the seed, and `simulate` fails with
   * NOT_DETERMINISTIC. The error says where the two runs first differ. Default false.
   */
  readonly twice?: boolean
  /** The folder to which each failing run is written, as text and as a diagram. Default: POSTGRAD_TRACE_DIR of the environment. If neither is set, nothing is written. */
  readonly traceDir?: string
  /** A name of the run, in addition to the test's name, for the line that repeats the run. Use it if a test makes several runs. */
  readonly name?: string
}

/** An option of another name is refused: a run without it would silently be another. */
export const SIMULATE_OPTIONS: OptionNames<SimulateOptions> = {
  workers: true,
  seed: true,
  dataSeed: true,
  rpcTimeoutMs: true,
  mailbox: true,
  faults: true,
  jobs: true,
  referenceStacks: true,
  countMessages: true,
  world: true,
  shrink: true,
  twice: true,
  traceDir: true,
  name: true,
}

/** Options of other kinds of runs in this package. */
export type RunOptions = SimulateOptions &
  Reproducible & {
    /** Whether errors name the seed. Not in `explore`, where `simulate` with the seed gives another run. Default true. */
    readonly saysSeed?: boolean
  }

/** The cluster that `simulate` passes to its body. Its workers run in this thread, in virtual time. The body can crash, restart and partition them. */
export interface SimCluster extends TestCluster {
  /** The seed of the run. */
  readonly seed: number
  /** The simulated world in which the workers run. */
  readonly world: SimWorld
  /** Ends a worker between two of its turns, as if its thread were killed. */
  crash(target: Target): void
  /**
   * Starts a worker again, under its name and with a new id. A living worker crashes first. All that the old worker held is gone. The other workers can call the new
   * one after they have learned of it: await `ready`. From now on, `on(name)` returns the new worker. @throws UNKNOWN_WORKER
   */
  restart(name: string): TestWorker
  /**
   * Starts a further worker, whose name is new, or that of a worker that has left or crashed. The new worker can call the others at once. The others can call the new
   * worker after they have learned of it: await `ready`. @throws WORKER_NAME_TAKEN if a living worker has this name; WORKER_NAME_INVALID
   */
  join(name: string): TestWorker
  /**
   * Resolves with the worker of this name when all other workers can call it: at once, or after its `join` or `restart` has ended, or after a fault rule has
   * restarted it. @throws WORKER_DIED if the worker has crashed, or crashes before, and no fault rule restarts it
   */
  ready(name: string): Promise<TestWorker>
  /**
   * Ends a worker in order, as `cluster.leave` does, and resolves when the worker has ended. Its calls may take `timeoutMs` (by default `rpcTimeoutMs` of `simulate`; 0
   * ends them at once). @throws WORKER_NAME_TAKEN if the worker is being started; TIMEOUT_INVALID
   */
  leave(target: Target, options?: { readonly timeoutMs?: number }): Promise<void>
  /**
   * Cuts workers off from others until the result's `heal` is called. By default, `other` is all other workers. Messages that are lost meanwhile are sent again later.
   * A partition that lasts longer than 30 s of virtual time ends the links between the two sides. `simulate` needs the option `faults`, which may be an empty list.
   * @throws INVALID_ARGUMENT if the cluster does not have such a worker, or `faults` is missing
   */
  partition(one: string | readonly string[], other?: string | readonly string[]): Disturbance
  /**
   * Slows down the messages between workers, in both directions, until the result's `heal` is called. Messages keep their order. If `other` is undefined, it is all
   * other workers. `simulate` needs the option `faults`, which may be an empty list. @throws the errors of `partition`
   */
  slow(one: string | readonly string[], other: string | readonly string[] | undefined, line: SlowLine): Disturbance
  /** Ends all partitions and slow lines that `partition` and `slow` began. */
  heal(): void
}

/** A simulated run that has passed: its result, its events, and what was left at its end. */
export interface Simulation<T> {
  /** The seed of the run. */
  readonly seed: number
  /** The result of the body. */
  readonly result: T
  /** The events of the run, in order. Runs with the same seed have equal traces. */
  readonly trace: Trace
  /** How many steps the run took. A step is one event: frames of a pair, a timer, or a deferred turn. */
  readonly steps: number
  /** The virtual time that passed, in ms. */
  readonly timeMs: number
  /** Counts of all that each worker held at the end, after all messages were delivered. A name that was restarted has the counts of its latest worker. */
  readonly debugInfo: Readonly<Record<string, Readonly<Record<string, number>>>>
  /** The references that were not disposed of at the end. */
  readonly leaks: readonly ReferenceLeak[]
  /** How often fault rules dropped, repeated or delayed a frame, or crashed or restarted a worker. */
  readonly faults: Readonly<Record<FaultKind, number>>
  /** The fault rules, as they were given or drawn. `planText` makes a text of them. */
  readonly plan: readonly FaultRule[]
  /** The counts of all messages, for `expectConserved` and the other checks. Null with `countMessages: false`. */
  readonly messages: Messages | null
  /** The names whose latest worker had crashed at the end. */
  readonly crashed: readonly string[]
  /** Whether any worker crashed, left or was started again. Then some messages may not have reached a worker. */
  readonly anyEnded: boolean
}

/** Shorter stretches without any event are not looked at. */
const IDLE_MS = 100

/** A world and its workers, some of which may live again. */
export class SimulatedWorkers implements SimCluster {
  readonly seed: number
  readonly world: SimWorld
  readonly cluster: InThreadCluster
  private readonly options: RunOptions
  /** Null: links are bare. */
  readonly plan: readonly FaultRule[] | null
  /** The waits when last nothing could happen but for time to pass. */
  stood: { readonly atMs: number; readonly waits: WaitsNow } | null = null
  /** Null: nobody counts messages. */
  readonly ledger: MessageLedger | null
  private readonly jobs: SimulatedJobs
  private readonly network: Network
  private readonly members: SimulatedMembers

  private readonly variant: RunVariant
  /** They end a worker's programs as it crashes. */
  private readonly running = new Map<WorkerRuntime, Set<() => void>>()

  constructor(options: RunOptions) {
    const { workers, faults, world } = options
    this.options = options
    this.variant = options.variant ?? plainVariant(options)
    const { seed, decisions, faults: exactly } = this.variant
    this.seed = seed
    this.ledger = options.countMessages === false ? null : new MessageLedger()
    this.plan = rulesOf(faults, seed, workerNames(workers))
    const faultOptions = this.plan && {
      rules: this.plan,
      ...(exactly === null ? {} : { exactly }),
      classify: messageKind,
      kinds: [...MESSAGE_KINDS, DAMAGED],
      restart: (name: string) => void this.restart(name),
    }
    const schedule = decisions === null ? {} : { schedule: new ReplaySchedule(decisions) }
    this.world = new SimWorld(seed, { ...world, ...schedule, ...(faultOptions && { faults: faultOptions }) })
    this.world.trace.namer = () => new MessageNamer()
    this.world.onIdle = (untilMs) => {
      if (untilMs - this.world.nowMs >= IDLE_MS) this.stood = { atMs: this.world.nowMs, waits: waitsNow(this.living()) }
    }
    this.network = new Network(this.world, () => this.workers.map(({ name }) => name))
    this.jobs = new SimulatedJobs(this.world, options.jobs ?? {}, options.dataSeed ?? 0)
    this.cluster = new InThreadCluster(
      [],
      (worker) => this.world.touch(worker),
      (runtime, run) => this.untilDeath(runtime, run),
    )
    this.members = new SimulatedMembers(this.world, (birth) => this.make(birth))
    this.members.launch(workerNames(workers))
    this.world.onCrash((name) => {
      const { runtime } = this.on(name)
      for (const end of this.running.get(runtime) ?? []) end()
      this.running.delete(runtime)
    })
  }

  get workers(): readonly WorkerInfo[] {
    return this.cluster.workers
  }

  on(target: Target): TestWorker {
    return this.cluster.on(target)
  }

  crash(target: Target): void {
    const { runtime } = this.on(target)
    // The former life of a name that is borne again: it is dead.
    if (this.on(runtime.info.name).runtime !== runtime) return
    this.world.crash(runtime.info.name)
  }

  restart(name: string): TestWorker {
    this.crash(this.on(name).info)
    return this.join(name)
  }

  join(name: string): TestWorker {
    this.members.join(name)
    return this.on(name)
  }

  async ready(name: string): Promise<TestWorker> {
    await this.members.ready(name)
    const worker = this.on(name)
    if (this.world.isCrashed(name)) throw crashed('sim.ready', worker.info)
    return worker
  }

  async leave(
    target: Target,
    { timeoutMs = timeLimit('leave', this.options.rpcTimeoutMs ?? RPC_TIMEOUT_MS) }: { readonly timeoutMs?: number } = {},
  ): Promise<void> {
    await this.members.leave(this.on(target).info, checkTime('leave', timeoutMs, '0 for at once'))
  }

  partition(one: string | readonly string[], other?: string | readonly string[]): Disturbance {
    return this.network.partition(one, other)
  }

  slow(one: string | readonly string[], other: string | readonly string[] | undefined, line: SlowLine): Disturbance {
    return this.network.slow(one, other, line)
  }

  heal(): void {
    this.network.heal()
  }

  /** The last life of each name, unless it has crashed. */
  living(): readonly WorkerRuntime[] {
    const runtimes = this.cluster.current.map(({ runtime }) => runtime)
    return runtimes.filter(({ info }) => !this.world.isCrashed(info.name))
  }

  /** Which run it was, to be repeated. A schedule of the caller's own is known by what it decided alone. */
  record(): Omit<FailedRun, 'error'> {
    const { world, options, plan } = this
    const { decisions, faultDraws, trace } = world
    const isOwn = options.world?.schedule !== undefined && this.variant.decisions === null
    const variant = isOwn ? { ...this.variant, decisions } : this.variant
    return { variant, decisions, faults: world.faults?.happened ?? [], faultDraws, plan: plan ?? [], trace }
  }

  /** The error of fault rules whose worker has not been in this run. */
  misnamed(): PostgradError | null {
    return misnamed(this.plan ?? [], [...new Set(this.cluster.runtimes.map(({ info }) => info.name))])
  }

  whoWaits(): WhoWaits {
    const crashed = this.workers.map(({ name }) => name).filter((name) => this.world.isCrashed(name))
    return whoWaits(waitsNow(this.living()), crashed)
  }

  /** Whether this is the last life of its name. */
  isCurrent(runtime: WorkerRuntime): boolean {
    return this.on(runtime.info.name).runtime === runtime
  }

  /** As `launch` has it: a worker's death rejects its programs, and nothing is begun on the dead. */
  private untilDeath<R>(runtime: WorkerRuntime, run: () => Promise<R>): Promise<R> {
    if (!this.isCurrent(runtime) || this.world.isCrashed(runtime.info.name)) return Promise.reject(crashed('run', runtime.info))
    let end = () => {}
    const promise = new Promise<R>((resolve, reject) => {
      end = () => {
        // A program that nobody waits for may die.
        promise.catch(() => {})
        reject(crashed('run', runtime.info))
      }
      run().then(resolve, reject)
    })
    const ends = this.running.get(runtime) ?? new Set()
    this.running.set(runtime, ends.add(end))
    const forget = () => void ends.delete(end)
    promise.then(forget, forget)
    return promise
  }

  private make({ worker: { name, id }, life }: Birth): WorkerRuntime {
    const { dataSeed = 0, rpcTimeoutMs, mailbox, referenceStacks = false } = this.options
    const runtime = new WorkerRuntime({
      name,
      id,
      clock: this.world.clockOf(name),
      generator: workerGenerator(dataSeed, name, life),
      finalizers: 'report',
      referenceStacks,
      ...(rpcTimeoutMs === undefined ? {} : { rpcTimeoutMs }),
      ...(mailbox === undefined ? {} : { mailbox }),
    })
    installDistAutograd(runtime)
    installProcessGroups(runtime)
    this.ledger?.attach(runtime)
    useCheckpointDisk(runtime, syncDisk)
    this.jobs.attach(runtime, life)
    this.cluster.add(runtime)
    return runtime
  }
}

/**
 * Runs `body` on a simulated cluster in this thread, and resolves when `body` has ended and all messages have been delivered. The order of messages follows from
 * `seed`: the same seed gives the same run. Time is virtual: a wait of a minute takes no real time.
 * @throws the error of `body`, with the seed in `seed`, the token that repeats the run in `replay`, and a line with that token in the stack, not in the message: print
 * the stack. SIM_DEADLOCK if `body` waits for something that cannot happen, with the waits of all workers; SIM_LIMIT if the run takes too many steps or too much
 * virtual time; NOT_DETERMINISTIC with `twice`; INVALID_ARGUMENT
 * @example
 * const { result, timeMs } = await simulate({ workers: 2, seed: 7 }, (sim) => sim.on('worker0').run(() => call('worker1', addOne, [x])))
 * result // [[2, 3], [4, 5]]
 */
export async function simulate<T>(options: SimulateOptions, body: (sim: SimCluster) => Promise<T>): Promise<Simulation<T>> {
  checkRun('simulate', options, body)
  checkNames('simulate', options, SIMULATE_OPTIONS)
  return runSimulation(options, body, ({ world }, main) => world.run(main))
}

/** `simulate` and the runs of `liveness.ts` have it in common; `drive` takes the world to the end of the body. */
export async function runSimulation<T, R>(
  options: RunOptions,
  body: (sim: SimCluster) => Promise<T>,
  drive: (sim: SimulatedWorkers, main: Promise<T>) => Promise<R>,
): Promise<Simulation<R>> {
  checkRun('simulate', options, body)
  return reproducible(options, (one) => {
    const run = () => runOnce(one, body, drive)
    return one.twice === true ? twice(run, runTrace).catch((error: unknown) => Promise.reject(unlike(error, one))) : run()
  })
}

async function runOnce<T, R>(
  options: RunOptions,
  body: (sim: SimCluster) => Promise<T>,
  drive: (sim: SimulatedWorkers, main: Promise<T>) => Promise<R>,
): Promise<Simulation<R>> {
  const sim = new SimulatedWorkers(options)
  const { seed, world, cluster } = sim
  const resumeHeapStorage = suspendHeapStorage()
  let simulation: Simulation<R>
  try {
    const result = await drive(sim, body(sim))
    await world.drain()
    // Reads and closes from here on are not part of the last step.
    world.observer?.jump()
    const debugInfo = Object.fromEntries(cluster.current.map((worker) => [worker.info.name, worker.debugInfo()]))
    const alive = sim.living()
    const leaks = referenceLeaks(Object.fromEntries(alive.map((runtime) => [runtime.info.name, runtime.references()])))
    const faults = world.faults?.injected ?? NO_FAULTS
    const { trace, steps, nowMs: timeMs } = world
    const isLive = (runtime: WorkerRuntime) => !runtime.isClosed && sim.isCurrent(runtime) && !world.isCrashed(runtime.info.name)
    const messages = sim.ledger?.read(world, isLive) ?? null
    const crashed = cluster.current.map(({ info }) => info.name).filter((name) => world.isCrashed(name))
    const anyEnded = !cluster.runtimes.every(isLive)
    const plan = sim.plan ?? []
    simulation = { seed, result, trace, steps, timeMs, debugInfo, leaks, faults, plan, messages, crashed, anyEnded }
    noteRun(simulation, sim.record())
  } catch (error) {
    const thrown = explained(error, sim, options.saysSeed !== false)
    noteFailure(thrown, sim.record())
    throw thrown
  } finally {
    resumeHeapStorage()
    await Promise.all(cluster.runtimes.map((runtime) => runtime.close()))
  }
  const wrong = sim.misnamed()
  if (wrong !== null) throw wrong
  return simulation
}

function crashed(op: string, worker: WorkerInfo): PostgradError {
  const death = { worker, cause: 'killed', detail: 'it crashed, and with it what ran there' } as const
  const remedy =
    'Let the test wait for a program on a worker that lives, or expect this. After `restart` the name is another life: sim.on(name) again.'
  return workerDied(op, death, { remedy })
}

const NO_FAULTS = Object.freeze(Object.fromEntries(FAULT_KINDS.map((kind) => [kind, 0]))) as Readonly<Record<FaultKind, number>>

/** The error of a run as its caller gets it: with the seed, and where waiting was its end, with who waited for whom. */
function explained(thrown: unknown, sim: SimulatedWorkers, saysSeed: boolean): unknown {
  const error = isPostgradError(thrown, 'SIM_DEADLOCK') ? withWaits(thrown, sim.whoWaits()) : thrown
  if (typeof error !== 'object' || error === null || !Object.isExtensible(error)) return error
  Object.assign(error, { seed: sim.seed })
  const stood = isPostgradError(error) && OUT_OF_TIME.has(error.code) ? sim.stood : null
  if (saysSeed) noteInStack(error, ` (seed ${sim.seed})`)
  if (stood !== null) {
    const waits = whoWaits(stood.waits)
    Object.assign(error, { waits })
    noteInStack(error, `\nAt ${stood.atMs} ms nothing could happen any more but for time to pass. ${whoWaitsText(waits)}`)
  }
  const wrong = sim.misnamed()
  if (wrong !== null) noteInStack(error, `\nA fault rule names a worker that was not in this run: ${wrong.message}`)
  return error
}

/** Of two runs neither is the one that failed: what repeats them is what they had in common. */
function unlike(error: unknown, options: RunOptions): unknown {
  if (!isPostgradError(error, 'NOT_DETERMINISTIC')) return error
  const variant = options.variant ?? plainVariant(options)
  Object.assign(error, { seed: variant.seed })
  noteInStack(error, ` (seed ${variant.seed})`)
  noteFailure(error, { variant, decisions: [], faults: [], faultDraws: [], plan: [], trace: null })
  return error
}

function plainVariant({ seed = 0 }: SimulateOptions): RunVariant {
  return { seed, decisions: null, faults: null }
}

/** Waits that ended since time was up: as good a sign of a deadlock as there is where calls have deadlines. */
const OUT_OF_TIME: ReadonlySet<string> = new Set(['RPC_TIMEOUT', 'GROUP_TIMEOUT', 'DIST_BACKWARD_TIMEOUT', 'RREF_CREATION_TIMEOUT'])
