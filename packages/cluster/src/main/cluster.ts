/**
 * A local cluster: the workers' threads, their controllers, who joins and leaves, and one clean end for all of them. `launch` makes it; the main
 * thread is not one of its workers, and its guest when it calls them (`main-thread.ts`). The rules CLU-n are in `SPEC.md`; `remote-members.ts` below links threads.
 */
import type { Supervisor } from '@postgrad/actor/internal'
import { isPostgradError, PostgradError } from '@postgrad/base'
import { checkTime, timeLimit } from '@postgrad/base/internal'
import type { Jobs } from '@postgrad/jobs'
import {
  type AnyClass,
  type AnyFunction,
  type CallOptions,
  call,
  currentWorker,
  type DeadLetterReport,
  type ReferenceLeak,
  type References,
  type RRef,
  type Target,
  type WorkerInfo,
  type WorkerMetrics,
} from '@postgrad/rpc'
import { type Counts, type Rest, unsettled } from '@postgrad/rpc/internal'
import { checkFunction, invalidArgument } from '@postgrad/tensor/internal'
import type { Clock } from '@postgrad/transport'
import { callListener } from '@postgrad/transport/internal'
import type { PayloadCodec } from '@postgrad/wire/internal'
import { type ClusterEventListener, ClusterInspection } from '../admin/inspect-road.js'
import { type LeakPolicy, leaksOf, referencesLeft } from '../admin/leaks.js'
import type { Answer, Report, WorkerDebugInfo } from '../admin/protocol.js'
import type { RemoteWorker, WorkerEnd } from '../admin/remote-worker.js'
import { StallWatch } from '../host/heartbeat.js'
import type { ClusterJobs, ClusterJobsOptions } from '../jobs/cluster-jobs.js'
import { JOBS_OPTIONS } from '../jobs/job-pool.js'
import { attempt } from '../membership/launch-failed.js'
import { checkNames, type OptionNames } from '../options/check-options.js'
import { workerNames } from '../options/worker-names.js'
import { Controller, type ControllerOptions } from './controller.js'
import { type MainOptions, MainThread } from './main-thread.js'
import type { RemoteMembers } from './remote-members.js'
import { type SupervisionOptions, superviseWorkers, type WorkerChild, type WorkerStarter, workerSpec } from './supervision.js'

/** Of `cluster.close`. */
export interface CloseOptions {
  /** How long runs and calls that are under way may still take, in ms; 0 cuts them off at once. Default 5000. */
  readonly timeoutMs?: number
  /** How long each thread may go on after its runtime was closed, to clean up, in ms, before it is ended. Default 500. */
  readonly graceMs?: number
}

/** Of `cluster.join` and `cluster.restart`. */
export interface JoinOptions {
  /** How long the newcomers may take to load the program, in ms; 0 is no limit. Default `launchTimeoutMs` of the launch. */
  readonly timeoutMs?: number
}

/** Of `cluster.leave`. */
export interface LeaveOptions {
  /** How long runs and calls of the worker that are under way may still take, in ms; 0 cuts them off at once. Default 5000. */
  readonly timeoutMs?: number
}

/** Of `cluster.ready`. */
export interface ReadyOptions {
  /** How long a worker that is being started may take, in ms; 0 is no limit. Default `launchTimeoutMs` of the launch. */
  readonly timeoutMs?: number
}

const JOIN: OptionNames<JoinOptions> = { timeoutMs: true }

/** How a cluster ended. */
export interface ClusterEnd {
  /** One WORKER_DIED for each worker whose thread ended by itself: without being asked to leave, and before `close` had asked it. */
  readonly deaths: readonly PostgradError[]
  /** References that nobody had given up when the cluster was closed, if `referenceLeaks` of launch asks for them. */
  readonly leaks: readonly ReferenceLeak[]
  /** SUPERVISOR_GAVE_UP, if that ended it. */
  readonly error?: PostgradError
}

export interface ClusterParts {
  readonly members: RemoteMembers
  readonly main: MainOptions
  readonly pools: ClusterJobs
  readonly payloads: PayloadCodec
  readonly clock: Clock
  readonly launchTimeoutMs: number
  readonly stallMs: number
  readonly onStall: 'report' | 'kill'
  readonly referenceLeaks: LeakPolicy
  /** Null: what dies stays dead until somebody restarts it. */
  readonly supervision: SupervisionOptions | null
}

/** Gets a worker that does not come to its next turn, and the error WORKER_STALLED. */
export type StallListener = (worker: WorkerInfo, error: PostgradError) => void
/** Gets a worker that had stalled and goes on. */
export type RecoveryListener = (worker: WorkerInfo) => void
/** Gets a worker that has left in peace. */
export type LeaveListener = (worker: WorkerInfo) => void
/** Gets a worker that has died, and why. */
export type DeathListener = (worker: WorkerInfo, error: PostgradError) => void

const CLOSE_TIMEOUT_MS = 5000
/** A thread whose runtime is closed ends by itself, unless the program left a timer or a socket open; then it is ended after this. */
const EXIT_GRACE_MS = 500
/** How often a closing cluster looks whether its workers are idle. */
const QUIET_POLL_MS = 10
/** How long a worker may take to say what it holds: as long as one that is busy and not stalled does, by default. */
const ASK_MS = 10_000
/** How long after its peers this thread may learn of a worker's end. */
const END_NEWS_MS = 1000
/** How long a worker that should be idle may take to answer while the cluster closes. */
const ANSWER_MS = 1000
/** Once more, for one that did not. */
const LAST_ANSWER_MS = 200

/** Worker threads of one program, as the process that launched them sees them: `on(name).run(fn)` runs something there, `close()` ends all. */
export class Cluster {
  /** Resolves when no thread is left, by `close` or otherwise; never rejects. A worker may be started anew after that, unless it was `close`. */
  readonly closed: Promise<ClusterEnd>
  private readonly members: RemoteMembers
  private readonly main: MainThread
  private readonly pools: ClusterJobs
  private readonly payloads: PayloadCodec
  private readonly clock: Clock
  private readonly launchTimeoutMs: number
  private readonly deaths: PostgradError[] = []
  private readonly leakPolicy: LeakPolicy
  private leaks: readonly ReferenceLeak[] = []
  private readonly deathListeners = new Set<DeathListener>()
  private readonly leaveListeners = new Set<LeaveListener>()
  private readonly stallListeners = new Set<StallListener>()
  private readonly recoveryListeners = new Set<RecoveryListener>()
  private readonly inspection = new ClusterInspection((fn) => callListener(this.clock, fn))
  /** Null: nobody looks. */
  private readonly stalls: StallWatch<RemoteWorker> | null
  private readonly killed = new Set<number>()
  /** Names whose worker leaves for another, or is about to be followed by it. */
  private readonly restarting = new Set<string>()
  private readonly supervision: SupervisionOptions | null
  private supervisor: Supervisor<WorkerChild> | null = null
  private gaveUp: PostgradError | null = null
  private closing: Promise<void> | null = null
  /** Until when a closing cluster lets what is under way go on, by its clock. */
  private quietDeadline = Number.POSITIVE_INFINITY
  private graceMs = EXIT_GRACE_MS
  /** Those that did not answer while the cluster closes: they are not waited for as long again. */
  private readonly silent = new Set<RemoteWorker>()
  /** Joins and restarts under way: meanwhile a cluster without a thread has not ended. */
  private changes = 0
  /** Those that look again when somebody has come or gone. */
  private awaitingNews: (() => void)[] = []
  private resolveClosed!: (end: ClusterEnd) => void

  constructor({ members, main, pools, payloads, clock, launchTimeoutMs, stallMs, onStall, referenceLeaks, supervision }: ClusterParts) {
    this.leakPolicy = referenceLeaks
    this.members = members
    this.main = new MainThread(main, {
      closedError: (op) => (this.closing === null ? null : this.closedError(op)),
      endOf: (workerId) => this.endOf(workerId),
    })
    this.pools = pools
    this.payloads = payloads
    this.clock = clock
    this.launchTimeoutMs = launchTimeoutMs
    this.supervision = supervision
    this.closed = new Promise((resolve) => {
      this.resolveClosed = resolve
    })
    this.stalls =
      stallMs === 0
        ? null
        : new StallWatch(stallMs, clock.now(), {
            onStalled: (thread, silentMs) => this.onStalled(thread, silentMs, onStall),
            onRecovered: ({ info }) => {
              this.inspection.saw(info, { kind: 'recovered' })
              this.tell(this.recoveryListeners, (listener) => listener(info))
            },
          })
  }

  /**
   * Starts the first workers: all at once, or one by one under supervision. If one cannot, none is left. For `launch`.
   * Rejects as `join` does. @internal
   */
  async begin(names: readonly string[]): Promise<void> {
    if (this.supervision === null) await this.start('launch', names, {})
    else await this.supervise(names, this.supervision)
    this.stalls?.start(() => this.clock.now())
  }

  /** In the order in which their names came: of each name the worker that came last, dead or alive, without those that left. */
  get workers(): readonly WorkerInfo[] {
    return this.members.workers
  }

  /**
   * Starts further workers with the same program. When it resolves they have loaded it, every living worker can call them, and they can call every
   * living worker. All of them join, or none. Channels are added to those that are there: nothing of what is under way stops. A worker that is busy
   * for more than 5 s learns of newcomers when it comes to itself. PyTorch: `init_rpc` without a `world_size`.
   * Supervised ones join one by one, behind the others.
   * Rejects with WORKER_NAME_TAKEN, WORKER_NAME_INVALID, WORKER_NAME_DUPLICATE, WORKER_COUNT_INVALID, WORKER_IDS_SPENT, LAUNCH_FAILED (`values.worker`,
   * and why in `cause`), TIMEOUT_INVALID, CLUSTER_CLOSED.
   */
  join(name: string, options?: JoinOptions): Promise<WorkerInfo>
  join(names: readonly string[], options?: JoinOptions): Promise<readonly WorkerInfo[]>
  async join(names: string | readonly string[], options: JoinOptions = {}): Promise<WorkerInfo | readonly WorkerInfo[]> {
    if (typeof names === 'number')
      throw invalidArgument('cluster.join', 'a name, or a list of names', names, "Write join(['worker2', 'worker3']).")
    checkNames('cluster.join', options, JOIN)
    const wanted = workerNames(typeof names === 'string' ? [names] : names)
    const { supervisor } = this
    const infos = await (supervisor === null
      ? this.start('cluster.join', wanted, options)
      : this.change(() => this.addChildren(supervisor, wanted, options)))
    return typeof names === 'string' ? infos[0]! : infos
  }

  /**
   * Ends a worker in peace: its runs and the calls that it has made have `timeoutMs` to end, then the others are told (`workers()` leaves it out, they call
   * it no more), what they called before is served, its references are given up and its thread ends. What it owned is gone: who still refers to it
   * meets WORKER_DIED with the cause `left`. It is no death. Resolves when the thread is gone; a dead worker is forgotten. Under supervision its
   * `shutdownMs` stands for `timeoutMs`.
   * Rejects with UNKNOWN_WORKER, WORKER_NAME_TAKEN while it is being started anew, TIMEOUT_INVALID, CLUSTER_CLOSED, and WORKER_DIED when it dies before it could leave.
   */
  async leave(target: Target, options: LeaveOptions = {}): Promise<void> {
    this.admit('cluster.leave')
    checkNames('cluster.leave', options, { timeoutMs: true })
    const thread = this.thread('cluster.leave', target)
    const { name } = thread.info
    const { supervisor } = this
    if (supervisor !== null) return this.change(() => this.refused('cluster.leave', target, this.removeChild(supervisor, name)))
    if (this.restarting.has(name) || this.members.isStarting(name)) throw nameTaken('cluster.leave', name, 'is being started anew')
    if (!thread.dead) await this.part('cluster.leave', thread, options)
    this.members.remove(name)
  }

  /**
   * Starts a worker anew: the same name and program, a fresh id that no worker of this cluster ever had, random numbers that continue by the name and how often
   * it was started. One that is alive leaves first, as `leave` has it. Whatever is about the old id fails with WORKER_DIED, whose `values.restartedAs` is
   * the new one. If it cannot start, the name keeps its dead worker, and another try is possible.
   * Rejects as `join` and `leave` do.
   */
  async restart(target: Target, options: JoinOptions & { readonly leaveTimeoutMs?: number } = {}): Promise<WorkerInfo> {
    this.admit('cluster.restart')
    checkNames('cluster.restart', options, { ...JOIN, leaveTimeoutMs: true })
    const thread = this.thread('cluster.restart', target)
    const { name } = thread.info
    const op = 'cluster.restart'
    const { supervisor } = this
    if (supervisor !== null) return (await this.change(() => this.refused(op, target, supervisor.restart(name)))).thread.info
    if (this.restarting.has(name)) throw nameTaken(op, name, 'is being started anew')
    if (!thread.dead && thread.leaving !== null) throw nameTaken(op, name, 'is leaving')
    this.restarting.add(name)
    return this.change(async () => {
      try {
        await this.partBefore(op, thread, options.leaveTimeoutMs)
        const [info] = await this.start(op, [name], options)
        return info!
      } finally {
        this.restarting.delete(name)
      }
    })
  }

  /**
   * The worker that has this name, as soon as it is a member: at once, or when the `join`, `restart` or supervisor that starts it is done with it. Use it before
   * calling again after a WORKER_DIED.
   * Rejects with UNKNOWN_WORKER, WORKER_DIED when it is dead and nobody starts it anew, RUN_TIMEOUT, TIMEOUT_INVALID, CLUSTER_CLOSED.
   */
  async ready(name: string, options: ReadyOptions = {}): Promise<WorkerInfo> {
    const op = 'cluster.ready'
    checkNames(op, options, { timeoutMs: true })
    const limitMs = options.timeoutMs === undefined ? this.launchTimeoutMs : timeLimit(op, options.timeoutMs)
    let [isLate, isDown] = [false, false]
    const timer =
      limitMs === Number.POSITIVE_INFINITY
        ? null
        : this.clock.setTimer(limitMs, () => {
            isLate = true
            this.noteNews()
          })
    try {
      for (;;) {
        this.admit(op)
        const thread = this.members.threads.find(({ info }) => info.name === name)
        const supervisor = this.supervisor?.names.includes(name) ? this.supervisor : null
        const isStarting = this.members.isStarting(name) || this.restarting.has(name)
        // A supervisor has it as its child when onRestart is done with it.
        const isThere = supervisor === null ? !isStarting : supervisor.child(name)?.thread === thread
        if (thread !== undefined && !thread.dead && thread.leaving === null && isThere) return thread.info
        const isLeaving = thread !== undefined && !thread.dead && thread.leaving !== null
        if (!isStarting && !isLeaving && (supervisor === null || isDown)) throw thread?.dead ? thread.death(op) : this.unknown(op, name)
        if (isLate) throw notReady(op, name, limitMs)
        const news = new Promise<void>((resolve) => this.awaitingNews.push(resolve))
        void supervisor?.settled().then(() => {
          isDown = supervisor.names.includes(name) && supervisor.isDown(name)
          this.clock.defer(() => this.noteNews())
        })
        await news
      }
    } finally {
      timer?.cancel()
    }
  }

  /** The controller of a worker, by name, id or info. @throws UNKNOWN_WORKER, TIMEOUT_INVALID */
  on(target: Target, options: ControllerOptions = {}): Controller {
    return new Controller(this.thread('cluster.on', target), this.payloads, options, {
      workers: this.workers,
      admit: (op) => this.admit(op),
      endOf: (workerId) => this.endOf(workerId),
    })
  }

  /**
   * Runs an exposed function on a worker as a call of the main thread, and gives its result: references and tensors as well. With the first of `call`, `remote`
   * and `runHere` the main thread joins the cluster as a guest named 'main': workers can call what it has exposed, no group and no rank counts it. A worker that
   * is busy then is waited for up to 5 s. Under a distributed context (in `runHere`) the call is recorded at both ends. The function must be exposed here too:
   * import the program. Rejects as rpc's `call` does, with WORKER_NAME_TAKEN where a worker has the main thread's name, and with CLUSTER_CLOSED. PyTorch: `rpc_sync` on the master.
   */
  call<F extends AnyFunction>(to: Target, fn: F, ...rest: Rest<Parameters<F>>): Promise<Awaited<ReturnType<F>>> {
    return this.main.run('cluster.call', () => call(to, fn, ...rest)) as Promise<Awaited<ReturnType<F>>>
  }

  /**
   * Runs an exposed function, or makes an instance of an exposed class, on a worker, and leaves the result there. The main thread holds the reference:
   * `await policy.rpcAsync().act(x)` calls a method, `dispose()` or `using` gives it up, `close` at the latest. An error of the function is thrown by the reference's uses.
   * Rejects with what rpc's `remote` throws, WORKER_NAME_TAKEN, and CLUSTER_CLOSED. PyTorch: `rpc.remote` on the master.
   */
  remote<C extends AnyClass>(to: Target, make: C, ...rest: Rest<ConstructorParameters<C>>): Promise<RRef<InstanceType<C>>>
  remote<F extends AnyFunction>(to: Target, fn: F, ...rest: Rest<Parameters<F>>): Promise<RRef<Awaited<ReturnType<F>>>>
  remote(
    to: Target,
    fn: AnyFunction | AnyClass,
    ...[args = [], options]: [args?: readonly unknown[], options?: CallOptions]
  ): Promise<RRef> {
    return this.main.run('cluster.remote', () => currentWorker().remote(to, fn, args, options))
  }

  /**
   * Runs `fn` here, on the main thread, as a guest of the cluster: in it everything works as in a worker, `stream`, `rref`, `distAutograd.context` with
   * `ctx.backward`, `DistributedOptimizer`; its random numbers follow from the cluster's seed. While this thread is blocked, whoever calls or waits for it waits.
   * Rejects with what `fn` throws, WORKER_NAME_TAKEN and CLUSTER_CLOSED. PyTorch: what the master does between `init_rpc` and `shutdown`.
   */
  async runHere<T>(fn: () => T): Promise<Awaited<T>> {
    checkFunction('cluster.runHere', 'what to run', fn)
    return this.main.run('cluster.runHere', fn)
  }

  /**
   * A pool of threads for stateless work: the exposed functions of a module, which may be the program itself. The main thread uses what is returned, workers
   * `currentJobs(name)`. It ends with the cluster at the latest. @throws JOBS_MODULE_NOT_FOUND, JOBS_NAME_TAKEN, INVALID_ARGUMENT, CLUSTER_CLOSED
   */
  jobs(url: URL | string, options: ClusterJobsOptions = {}): Jobs {
    this.admit('cluster.jobs')
    checkNames('cluster.jobs', options, { ...JOBS_OPTIONS, name: true })
    return this.pools.open(url, options)
  }

  /** Ends a worker's thread at any instruction, as a crash would. Resolves when it is gone. @throws UNKNOWN_WORKER */
  async kill(target: Target): Promise<void> {
    const thread = this.thread('cluster.kill', target)
    this.killed.add(thread.info.id)
    await thread.terminate()
  }

  /** WORKER_DIED with what ended this worker (`values.cause`), null while it lives. @throws UNKNOWN_WORKER */
  deathOf(target: Target): PostgradError | null {
    const thread = this.thread('cluster.deathOf', target)
    return thread.dead ? thread.death('cluster.deathOf') : null
  }

  /** Called when a worker's thread ends by itself, with WORKER_DIED, also when it was dying as the cluster was closed. Returns what takes the listener away. */
  onWorkerDeath(listener: DeathListener): () => void {
    checkFunction('cluster.onWorkerDeath', 'the listener', listener)
    this.deathListeners.add(listener)
    return () => this.deathListeners.delete(listener)
  }

  /** Called when a worker has left, by `leave` or for a `restart`, and its thread has ended; not when it is `close` that ends it. Returns what takes the listener away. */
  onWorkerLeft(listener: LeaveListener): () => void {
    checkFunction('cluster.onWorkerLeft', 'the listener', listener)
    this.leaveListeners.add(listener)
    return () => this.leaveListeners.delete(listener)
  }

  /**
   * Called when a living worker has not come to its next turn for `stallMs` (`launch`), with WORKER_STALLED: an endless loop, a lock, a callback that
   * blocks. A worker that waits, or that is in a long kernel, is not stalled. Returns what takes the listener away.
   */
  onWorkerStalled(listener: StallListener): () => void {
    checkFunction('cluster.onWorkerStalled', 'the listener', listener)
    this.stallListeners.add(listener)
    return () => this.stallListeners.delete(listener)
  }

  /** Called when a worker that was stalled goes on. Returns what takes the listener away. */
  onWorkerRecovered(listener: RecoveryListener): () => void {
    checkFunction('cluster.onWorkerRecovered', 'the listener', listener)
    this.recoveryListeners.add(listener)
    return () => this.recoveryListeners.delete(listener)
  }

  /**
   * What every live worker holds, by name: pending calls, contexts, RRefs, ports, memory of its thread in bytes. One that is stalled is left out.
   * Rejects with CLUSTER_CLOSED, and RUN_TIMEOUT when one does not answer for 10 s and has not been reported as stalled.
   */
  async debugInfo(): Promise<Record<string, WorkerDebugInfo>> {
    this.admit('debugInfo')
    return this.ofEach('debugInfo')
  }

  /**
   * `listener` is told what happens at every worker, newcomers included: messages sent and received, calls begun and ended, dead letters, full mailboxes,
   * deaths of peers; and what the main thread sees of them: who joined, left, died, stalled. Events of one worker come in order, a moment late, and before the
   * result of a run that came about after them; those of different workers as they come. It costs something while anybody listens. Resolves with the
   * listener's removal when every worker that answers tells; the removal resolves when the listener has been told all that had happened by then. Rejects with CLUSTER_CLOSED.
   */
  async inspect(listener: ClusterEventListener): Promise<() => Promise<void>> {
    this.admit('cluster.inspect')
    checkFunction('cluster.inspect', 'the listener', listener)
    const threads = this.members.running
    const inspector = this.inspection.add(
      listener,
      threads.map(({ info }) => info.id),
    )
    const ask = async (thread: RemoteWorker): Promise<void> => {
      await this.askToTell(thread)
      inspector.unasked.delete(thread.info.id)
    }
    await Promise.all(threads.map(ask))
    return async () => {
      inspector.isLeaving = true
      await Promise.all(this.members.running.map((thread) => this.askToTell(thread)))
      this.inspection.remove(inspector)
    }
  }

  /** What each live worker received or held and could not do, by name. Rejects with CLUSTER_CLOSED. */
  async deadLetters(): Promise<Record<string, DeadLetterReport>> {
    this.admit('deadLetters')
    return this.ofEach('deadLetters')
  }

  /** How many calls wait at each live worker, how long they waited and ran, by actor too. Counting begins with the first call of this. Rejects with CLUSTER_CLOSED. */
  async metrics(): Promise<Record<string, WorkerMetrics>> {
    this.admit('metrics')
    return this.ofEach('metrics')
  }

  /** Who holds references to what, on every live worker, and on the main thread if it has joined, by name. Rejects as `debugInfo` does. */
  async references(): Promise<Record<string, References>> {
    this.admit('references')
    return { ...(await this.ofEach('references')), ...this.main.references() }
  }

  /** Of the living; one that is stalled could not answer and is left out. */
  private async ofEach<Q extends Report>(query: Q): Promise<Record<string, Answer<Q>>> {
    const answers: Record<string, Answer<Q>> = {}
    await Promise.all(
      this.members.threads.map(async (thread) => {
        try {
          if (!thread.dead && !this.stalls?.isStalled(thread))
            answers[thread.info.name] = (await thread.ask<Report>(query, [], { timeoutMs: ASK_MS })) as Answer<Q>
        } catch (error) {
          // One that dies while it is asked is not alive any more; one that stalls is known by now.
          if (!thread.dead && !this.stalls?.isStalled(thread)) throw error
        }
      }),
    )
    return Object.fromEntries(this.workers.flatMap(({ name }) => (name in answers ? [[name, answers[name]!]] : [])))
  }

  /**
   * Ends the cluster: lets what is under way finish (at most `timeoutMs`), closes every runtime and its ports, and lets the threads end; one that
   * does not end by itself is ended. Runs that were not done are rejected with CLUSTER_CLOSED. Idempotent: a second call can only hasten the first.
   * Rejects with RREF_LEAK, when all threads have ended, if references are held and `referenceLeaks` of launch is 'error'; with nothing else.
   * @throws TIMEOUT_INVALID
   */
  close(options: CloseOptions = {}): Promise<void> {
    checkNames('cluster.close', options, { timeoutMs: true, graceMs: true })
    const timeoutMs = checkTime('cluster.close', options.timeoutMs ?? CLOSE_TIMEOUT_MS, '0 for at once')
    this.quietDeadline = Math.min(this.quietDeadline, this.clock.now() + timeoutMs)
    if (options.graceMs !== undefined) this.graceMs = checkTime('cluster.close', options.graceMs, '0 for at once')
    this.closing ??= this.shutDown()
    this.noteNews()
    return this.closing
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close()
  }

  private async shutDown(): Promise<void> {
    await this.untilQuiet()
    // What the main thread holds ends with it, and is known to be given up before anybody is asked what was left.
    if (this.main.release()) await this.untilQuiet()
    this.stalls?.stop()
    const left = this.quietDeadline - this.clock.now()
    // Who wants the end at once does not wait for this.
    if (this.leakPolicy !== 'ignore' && left > 0)
      this.leaks = await leaksOf(
        this.members.running.filter((thread) => !this.silent.has(thread)),
        Math.min(left, ANSWER_MS),
      )
    for (const thread of this.members.running) thread.rejectAll((op) => this.closedError(op))
    await this.main.close()
    if (this.supervisor !== null) await this.supervisor.stop()
    const running = this.members.running
    for (const thread of running) thread.rejectAll((op) => this.closedError(op))
    // All at once: whoever closes first is gone for the others, and nobody waits for anybody any more.
    await Promise.all([this.pools.close(), ...running.map((thread) => this.end(thread, 0))])
    this.endIfEmpty()
    if (this.leaks.length === 0) return
    const error = referencesLeft(this.leaks)
    if (this.leakPolicy === 'error') throw error
    process.emitWarning(error.message, { type: error.code })
  }

  /** Waits until no run and no call is under way anywhere, also none that a callback makes. It asks again and again, but what it learns is certain. */
  private async untilQuiet(): Promise<void> {
    for (;;) {
      const left = this.quietDeadline - this.clock.now()
      if (left <= 0) return
      const hasRuns = this.members.running.some((thread) => thread.waitingCount > 0)
      if (!hasRuns && (await this.isQuiet(Math.min(left, ANSWER_MS)))) return
      await this.sleep(QUIET_POLL_MS)
    }
  }

  /** By counting, as the workers' own shutdown does (SHD-1). A worker that died or did not answer has nothing under way that could still end. */
  private async isQuiet(timeoutMs: number): Promise<boolean> {
    const here = this.main.countsIfQuiet()
    if (here === null) return false
    const threads = this.members.running
    const asked = threads.map((thread) => thread.ask('countsIfQuiet', [], { timeoutMs }))
    const answers = await Promise.allSettled(asked)
    const reports = new Map<number, Counts>(here)
    for (const [i, answer] of answers.entries()) {
      if (answer.status === 'rejected') {
        if (timeoutMs === ANSWER_MS) this.silent.add(threads[i]!)
        continue
      }
      this.silent.delete(threads[i]!)
      if (answer.value === null) return false
      reports.set(threads[i]!.info.id, answer.value)
    }
    return unsettled(reports).length === 0
  }

  private async start(op: string, names: readonly string[], { timeoutMs }: JoinOptions): Promise<readonly WorkerInfo[]> {
    this.admit(op)
    const limitMs = timeoutMs === undefined ? this.launchTimeoutMs : timeLimit(op, timeoutMs)
    return this.change(async () => {
      const threads = await this.members.start(op, names, limitMs)
      this.admit(op)
      for (const thread of threads) void this.watch(thread)
      return threads.map(({ info }) => info)
    })
  }

  private async supervise(names: readonly string[], options: SupervisionOptions): Promise<void> {
    const endMs = this.clock.now() + this.launchTimeoutMs
    let isLaunched = false
    const starter = this.starter(() =>
      isLaunched ? ['cluster.restart', this.launchTimeoutMs] : ['launch', Math.max(1, endMs - this.clock.now())],
    )
    const supervisor = attempt('launch', null, () => superviseWorkers(names, this.clock, options, starter))
    try {
      await supervisor.start()
    } catch (error) {
      throw isPostgradError(error, 'SUPERVISOR_START_FAILED') ? error.cause : error
    }
    isLaunched = true
    this.supervisor = supervisor
    void supervisor.exited.then(async ({ reason }) => {
      if (reason !== undefined) {
        this.gaveUp = reason as PostgradError
        // Whoever has closed it meanwhile hears of leaks.
        await this.close({ timeoutMs: 0 }).catch(() => {})
      }
      this.supervisor = null
      this.endIfEmpty()
    })
  }

  /** Adds them one by one, all or none. */
  private async addChildren(
    supervisor: Supervisor<WorkerChild>,
    names: readonly string[],
    { timeoutMs }: JoinOptions,
  ): Promise<readonly WorkerInfo[]> {
    const op = 'cluster.join'
    this.admit(op)
    const limitMs = timeoutMs === undefined ? this.launchTimeoutMs : timeLimit(op, timeoutMs)
    const added: WorkerInfo[] = []
    try {
      for (const name of names) {
        // The name of a dead worker is taken as well: its supervisor starts it anew.
        if (supervisor.names.includes(name)) throw nameTaken(op, name, 'is supervised')
        const spec = workerSpec(
          name,
          this.supervision!,
          this.starter(() => [op, limitMs]),
        )
        added.push((await supervisor.add(spec)).thread.info)
      }
      return added
    } catch (error) {
      for (const { name } of added) await this.removeChild(supervisor, name).catch(() => {})
      throw this.inOurWords(op, names[added.length]!, error)
    }
  }

  private async refused<T>(op: string, target: Target, asked: Promise<T>): Promise<T> {
    try {
      return await asked
    } catch (error) {
      throw this.inOurWords(op, target, error)
    }
  }

  /** What the supervisor refuses. Changes take turns there: meanwhile the cluster may have been closed, the worker have left, or the name have been taken. */
  private inOurWords(op: string, target: Target, error: unknown): unknown {
    if (this.closing !== null) return this.closedError(op)
    if (isPostgradError(error, 'UNKNOWN_CHILD')) return this.unknown(op, target)
    if (isPostgradError(error, 'CHILD_NAME_TAKEN')) return nameTaken(op, String(target), 'is supervised')
    return error
  }

  private async removeChild(supervisor: Supervisor<WorkerChild>, name: string): Promise<void> {
    await supervisor.remove(name)
    this.members.remove(name)
  }

  private starter(now: () => readonly [op: string, timeoutMs: number]): WorkerStarter {
    return {
      start: async (name) => {
        const [op, timeoutMs] = now()
        const [thread] = await this.members.start(op, [name], timeoutMs)
        void this.watch(thread!)
        return thread!
      },
      stop: (thread, deadlineMs) =>
        this.part('cluster', thread, { timeoutMs: Math.min(deadlineMs, Math.max(0, this.quietDeadline - this.clock.now())) }),
    }
  }

  /** A worker that is alive leaves for its successor. */
  private async partBefore(op: string, thread: RemoteWorker, timeoutMs: number | undefined): Promise<void> {
    try {
      if (!thread.dead) await this.part(op, thread, timeoutMs === undefined ? {} : { timeoutMs })
    } catch (error) {
      // It was dying: a death as any other, and its successor is wanted all the more.
      if (!thread.dead) throw error
    }
  }

  private async part(op: string, thread: RemoteWorker, { timeoutMs }: LeaveOptions): Promise<void> {
    const endMs = this.clock.now() + checkTime(op, timeoutMs ?? CLOSE_TIMEOUT_MS, '0 for at once')
    if (thread.leaving !== null) return thread.leaving
    thread.leaving = this.depart(op, thread, endMs)
    return thread.leaving
  }

  private async depart(op: string, thread: RemoteWorker, endMs: number): Promise<void> {
    this.members.depart(thread)
    const left = () => Math.max(0, endMs - this.clock.now())
    while (!thread.dead && thread.waitingCount > 0 && left() > 0) await this.sleep(QUIET_POLL_MS)
    // When everybody ends nobody needs to be told.
    await this.end(thread, this.closing === null ? left() : 0)
    if (!thread.isExpectedToEnd) throw thread.death(op)
  }

  /** While `work` goes on, a cluster without a thread has not ended. */
  private async change<T>(work: () => Promise<T>): Promise<T> {
    this.changes++
    try {
      return await work()
    } finally {
      this.changes--
      this.noteNews()
      this.endIfEmpty()
    }
  }

  private noteNews(): void {
    for (const lookAgain of this.awaitingNews.splice(0)) lookAgain()
  }

  private endIfEmpty(): void {
    if (!this.isEmpty) return
    // What it is about to start anew counts.
    if (this.supervisor === null) this.tellEnd()
    else void this.supervisor.settled().then((isIdle) => isIdle && this.isEmpty && this.tellEnd())
  }

  private get isEmpty(): boolean {
    return this.changes === 0 && this.members.running.length === 0
  }

  private tellEnd(): void {
    const { deaths, leaks, gaveUp } = this
    this.resolveClosed({ deaths, leaks, ...(gaveUp === null ? {} : { error: gaveUp }) })
  }

  /** @param leaveMs how long what is under way there may still take; 0: nothing is waited for */
  private async end(thread: RemoteWorker, leaveMs: number): Promise<void> {
    if (!thread.dead) {
      const options = { timeoutMs: leaveMs + (this.silent.has(thread) ? LAST_ANSWER_MS : ANSWER_MS) }
      const asked = await (leaveMs === 0 ? thread.ask('close', [], options) : thread.ask('leave', [leaveMs], options)).then(
        () => true,
        () => false,
      )
      // One that was dying before it could be asked, or that came to an end of its own instead of an answer, has not left.
      if (asked || !thread.dead) thread.isExpectedToEnd = true
      thread.release()
      // A worker that did not answer is wedged or dead: there is no use in waiting for it.
      if (asked && (await this.endsWithin(thread, this.graceMs))) return
    }
    await thread.terminate()
  }

  private endsWithin(thread: RemoteWorker, limitMs: number): Promise<boolean> {
    return new Promise((resolve) => {
      const timer = this.clock.setTimer(limitMs, () => resolve(false))
      void thread.ended.then(() => {
        timer.cancel()
        resolve(true)
      })
    })
  }

  private async watch(thread: RemoteWorker): Promise<void> {
    this.stalls?.watch(thread, thread.beats)
    thread.onInspected = (post) => this.inspection.onPost(thread.info, post)
    this.inspection.saw(thread.info, { kind: 'joined' })
    this.noteNews()
    if (this.inspection.isWanted) void this.askToTell(thread)
    const end = await thread.ended
    this.stalls?.unwatch(thread)
    this.inspection.saw(thread.info, end.cause === 'left' ? { kind: 'left' } : { kind: 'died', cause: end.cause })
    if (!thread.isExpectedToEnd) this.onDeath(thread, end)
    else if (this.closing === null) this.tell(this.leaveListeners, (listener) => listener(thread.info))
    this.noteNews()
    this.endIfEmpty()
  }

  /** Whether it tells what happens there is as it was wanted last; one that is busy or gone is not waited for. */
  private async askToTell(thread: RemoteWorker): Promise<void> {
    await thread.ask('inspect', [this.inspection.isWanted], { timeoutMs: ANSWER_MS }).catch(() => {})
  }

  /** How a worker died, which its peers may see a moment before this thread does; null if it lives on, or nobody has that id. */
  private async endOf(workerId: number): Promise<PostgradError | null> {
    const thread = this.members.threads.find(({ info }) => info.id === workerId)
    if (thread === undefined) return this.deaths.find(({ values }) => values.workerId === workerId) ?? null
    return (await this.endsWithin(thread, END_NEWS_MS)) ? thread.death('cluster') : null
  }

  private onDeath(thread: RemoteWorker, { rejected }: WorkerEnd): void {
    const error = thread.death('cluster')
    // Until it is read a stack holds the objects of its frames: the whole thread, for as long as the cluster lives.
    void error.stack
    this.deaths.push(error)
    this.tell(this.deathListeners, (listener) => listener(thread.info, error))
    // A death that nobody asked for and nobody has heard of must not pass in silence.
    const isHeard = this.supervision !== null || this.deathListeners.size > 0 || rejected > 0 || this.main.hearsOf(thread.info.id)
    if (!isHeard && !this.killed.has(thread.info.id)) process.emitWarning(error.message, { type: error.code })
  }

  private onStalled(thread: RemoteWorker, silentMs: number, onStall: 'report' | 'kill'): void {
    const { name, id } = thread.info
    const error = new PostgradError('WORKER_STALLED', {
      op: 'cluster',
      message: `worker '${name}' (id ${id}) is alive but has not come to its next turn for ${Math.round(silentMs)} ms`,
      remedy: 'Look for an endless loop, a lock or a call that blocks there; cluster.kill(name) ends it.',
      values: { worker: name, workerId: id, silentMs },
    })
    this.inspection.saw(thread.info, { kind: 'stalled', silentMs })
    this.tell(this.stallListeners, (listener) => listener(thread.info, error))
    if (onStall === 'kill') void thread.terminate('stalled')
    else if (this.stallListeners.size === 0) process.emitWarning(error.message, { type: error.code })
  }

  private tell<L>(listeners: ReadonlySet<L>, call: (listener: L) => void): void {
    for (const listener of [...listeners]) callListener(this.clock, () => call(listener))
  }

  private thread(op: string, target: Target): RemoteWorker {
    const wanted = typeof target === 'object' ? target?.id : target
    const found = this.members.threads.find(({ info }) => info.name === wanted || info.id === wanted)
    if (found !== undefined) return found
    throw this.unknown(op, wanted)
  }

  private unknown(op: string, target: Target): PostgradError {
    const wanted = String((typeof target === 'object' ? target?.id : target) ?? target) || "''"
    const known = this.workers.map(({ name }) => name)
    return new PostgradError('UNKNOWN_WORKER', {
      op,
      expected: known.length === 0 ? 'a worker of the cluster, which has none now' : `one of ${known.join(', ')}`,
      got: wanted,
      remedy: 'Name a worker that was launched or has joined; after a restart its id is another.',
      values: { target: wanted, known },
    })
  }

  private admit(op: string): void {
    if (this.closing !== null) throw this.closedError(op)
  }

  private closedError(op: string): PostgradError {
    return new PostgradError('CLUSTER_CLOSED', {
      op,
      message: this.gaveUp === null ? 'the cluster has been closed' : 'the cluster has ended, because its supervisor gave up',
      remedy: this.gaveUp === null ? 'Await what runs before close(), or give close({ timeoutMs }) more time.' : 'Look at the cause.',
      ...(this.gaveUp === null ? {} : { cause: this.gaveUp }),
    })
  }

  private sleep(delayMs: number): Promise<void> {
    return new Promise((resolve) => this.clock.setTimer(delayMs, resolve))
  }
}

function nameTaken(op: string, name: string, why: string): PostgradError {
  return new PostgradError('WORKER_NAME_TAKEN', {
    op,
    message: `worker '${name}' ${why}`,
    remedy: 'Use another name, or await what is being done with this one first; cluster.restart(name) makes a new worker in its place.',
    values: { worker: name },
  })
}

function notReady(op: string, name: string, limitMs: number): PostgradError {
  return new PostgradError('RUN_TIMEOUT', {
    op,
    message: `worker '${name}' has not become ready within ${limitMs} ms`,
    remedy: 'Pass a larger timeoutMs, or look at what starts it: the program, or onRestart of supervision.',
    values: { worker: name, timeoutMs: limitMs },
  })
}
