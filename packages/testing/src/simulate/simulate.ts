/**
 * `simulate`: a program on N workers in one thread, its messages delivered in an order drawn from a seed. Same seed, same run; every pair keeps its
 * own order, everything else is shuffled. The runtimes are the ones that `launch` starts; only clock and links are the simulation's.
 */
import { isPostgradError, type PostgradError } from '@postgrad/base'
import { checkTime, timeLimit, workerDied } from '@postgrad/base/internal'
import type { Birth } from '@postgrad/cluster/internal'
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
  /** Names, or a count: worker0, worker1, … */
  readonly workers: readonly string[] | number
  /** The seed of the order of delivery. Default 0. */
  readonly seed?: number
  /** The seed of the workers' random numbers, as `seed` of `launch`. It is separate from `seed`, so that every order uses the same numbers. Default 0. */
  readonly dataSeed?: number
  /** Default deadline of calls, in ms of virtual time. Default 60,000. 0: without a limit. */
  readonly rpcTimeoutMs?: number
  /** How many calls of one worker, and how many bytes of calls, may wait at another. */
  readonly mailbox?: MailboxOptions
  /**
   * Faults that happen to messages: they are lost, repeated or delayed, and a message may crash or restart a worker. The kinds in the rules are those of
   * the protocol (`CALL`, `RESULT`, `RREF_ACK`, …). With this option, also with an empty list, links are sessions, which send lost messages again.
   * `'random'` draws rules from the seed, as `randomFaults()` does.
   */
  readonly faults?: FaultsOption
  /** Pools by name, for `currentJobs(name)`. Their jobs run in this thread, in an order that the seed decides. */
  readonly jobs?: Readonly<Record<string, SimulatedJobsOptions>>
  /** Whether to keep the stack at which each reference is made, for `leaks`. Default false. */
  readonly referenceStacks?: boolean
  /** Whether to count every message at both ends, for `simulation.messages` and the checkers that read it. Default true; false saves some time if you run many seeds. */
  readonly countMessages?: boolean
  /** The limits of the run, and the schedule that decides the order; see `SimWorldOptions`. */
  readonly world?: Omit<SimWorldOptions, 'faults'>
  /**
   * Whether to make a failing run smaller: it is repeated with fewer faults and simpler orders, within a limit of runs and time, and the smallest run that
   * fails in the same way is reported. Default: if the faults are drawn from the seed, or with POSTGRAD_SHRINK=1. POSTGRAD_SHRINK=0 turns it off.
   */
  readonly shrink?: boolean | ShrinkOptions
  /**
   * Whether to make the run twice and compare: the body is called a second time. If the program depends on anything but the seed, it fails with
   * NOT_DETERMINISTIC, which says where the two runs parted. Default false.
   */
  readonly twice?: boolean
  /** The folder for failing runs: each is written there, as text and as a diagram. Default POSTGRAD_TRACE_DIR; without it nothing is written. */
  readonly traceDir?: string
  /** A name for the run in the line that repeats it, in addition to the name of the test. */
  readonly name?: string
}

/** Options of other kinds of runs in this package. */
export type RunOptions = SimulateOptions &
  Reproducible & {
    /** Whether errors name the seed. Not in `explore`, where `simulate` with the seed gives another run. Default true. */
    readonly saysSeed?: boolean
  }

/** The cluster that `simulate` passes to its body: workers in this thread, in virtual time. The body can crash, restart and partition them. */
export interface SimCluster extends TestCluster {
  /** The seed of the run. */
  readonly seed: number
  /** The simulated world in which the workers run. */
  readonly world: SimWorld
  /** Ends a worker between two of its turns, as if its thread were killed. */
  crash(target: Target): void
  /**
   * Starts a worker again under its name, with a new id and a link to every member; a living worker crashes first. All that it held is gone. Each member
   * can call the new worker once it has learned of it and of the end of the former one (`ready`). `on(name)` then returns the new worker.
   */
  restart(name: string): TestWorker
  /**
   * Starts a worker later than the others. It may call the members at once; each member may call it once it has learned of it (`ready`), as under
   * `launch`. The name is new, or that of a worker that has left or crashed. @throws WORKER_NAME_TAKEN, WORKER_NAME_INVALID
   */
  join(name: string): TestWorker
  /**
   * Resolves with the worker of this name when every member can call it: at once, or after its `join` or `restart` has ended, or after a fault rule
   * has restarted it. @throws (rejects) WORKER_DIED if it has crashed, or crashes before, and no fault rule restarts it
   */
  ready(name: string): Promise<TestWorker>
  /**
   * Ends a worker in order, as `cluster.leave` does. New workers are not linked with it, and it leaves the others within `timeoutMs` (default the workers'
   * `rpcTimeoutMs`; 0 cuts off its calls at once). Each call resolves when the worker has ended. @throws (rejects) WORKER_NAME_TAKEN while it is being
   * started, TIMEOUT_INVALID
   */
  leave(target: Target, options?: { readonly timeoutMs?: number }): Promise<void>
  /**
   * Cuts the two sides off from each other until it is healed; messages that are lost meanwhile are sent again. `other` is all other workers by default. A
   * partition that lasts longer than 30 s ends the links between the sides. Needs `faults`, which may be an empty list. @throws INVALID_ARGUMENT
   */
  partition(one: string | readonly string[], other?: string | readonly string[]): Disturbance
  /** Slows down the line between the two sides, in both directions, until it is healed. Messages keep their order. Sides and `faults` as for `partition`. @throws INVALID_ARGUMENT */
  slow(one: string | readonly string[], other: string | readonly string[] | undefined, line: SlowLine): Disturbance
  /** Ends all partitions and slow lines that `partition` and `slow` have begun. */
  heal(): void
}

/** How a run of `simulate` ended, and what happened in it. */
export interface Simulation<T> {
  /** The seed of the run. */
  readonly seed: number
  /** The result of the body. */
  readonly result: T
  /** The events of the run, in order; equal for the same seed. */
  readonly trace: Trace
  /** How many steps the world took. */
  readonly steps: number
  /** The virtual time that passed, in ms. */
  readonly timeMs: number
  /** The counts of each worker at the end, after all messages were delivered. For a name that was restarted, the counts of the last worker. */
  readonly debugInfo: Readonly<Record<string, Readonly<Record<string, number>>>>
  /** References that were not disposed of at the end. */
  readonly leaks: readonly ReferenceLeak[]
  /** How often the rules of `faults` did each action. */
  readonly faults: Readonly<Record<FaultKind, number>>
  /** The rules of `faults`, as they were given or drawn. `planText` prints them. */
  readonly plan: readonly FaultRule[]
  /** The counts of each message, for `expectConserved` and the other checkers; null with `countMessages: false`. */
  readonly messages: Messages | null
  /** The names of workers whose last life had crashed at the end. */
  readonly crashed: readonly string[]
  /** Whether any worker crashed, left or was started again. Then some messages may have reached nobody. */
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
 * Runs `body` on a simulated cluster until it settles, then delivers the messages that are still under way.
 * @throws (rejects) the error of `body`, with the seed in `seed`, the token that repeats the run in `replay`, and the line with that token in the stack. The
 * message stays as it was, since tests compare it: print the stack. SIM_DEADLOCK if it waits for something that cannot happen, with who waits for whom
 * @example
 * const { result, timeMs } = await simulate({ workers: 2, seed: 7 }, (sim) => sim.on('worker0').run(() => call('worker1', addOne, [x])))
 * result // [[2, 3], [4, 5]]
 */
export function simulate<T>(options: SimulateOptions, body: (sim: SimCluster) => Promise<T>): Promise<Simulation<T>> {
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
