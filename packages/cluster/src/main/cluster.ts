/**
 * A local cluster: its workers and their controllers, joins and leaves, and one clean end for all of them. `launch` makes it. The main thread is
 * not a worker of it, but a guest when it calls workers (`main-thread.ts`). The rules CLU-n are in `SPEC.md`; `remote-members.ts` links the threads.
 */
import { isPostgradError, type PostgradError } from '@postgrad/base'
import { checkTime, timeLimit } from '@postgrad/base/internal'
import type { Jobs } from '@postgrad/jobs'
import {
  type AnyClass,
  type AnyFunction,
  type CallOptions,
  call,
  type DeadLetterReport,
  type ReferenceLeak,
  type References,
  type RRef,
  type Target,
  type WorkerInfo,
  type WorkerMetrics,
} from '@postgrad/rpc'
import type { Rest } from '@postgrad/rpc/internal'
import { currentRuntime } from '@postgrad/rpc/internal'
import { checkFunction, invalidArgument } from '@postgrad/tensor/internal'
import type { Clock } from '@postgrad/transport'
import type { PayloadCodec } from '@postgrad/wire/internal'
import type { ClusterEventListener } from '../admin/inspect-events.js'
import { type LeakPolicy, leaksOf, referencesLeft } from '../admin/leaks.js'
import type { Answer, Report, WorkerDebugInfo } from '../admin/protocol.js'
import type { ClusterJobs, ClusterJobsOptions } from '../jobs/cluster-jobs.js'
import { JOBS_OPTIONS } from '../jobs/job-pool.js'
import { checkNames, type OptionNames } from '../options/check-options.js'
import { workerNames } from '../options/worker-names.js'
import { clusterClosed } from './cluster-errors.js'
import { ClusterEvents, type DeathListener, type LeaveListener, type RecoveryListener, type StallListener } from './cluster-events.js'
import { Controller, type ControllerOptions } from './controller.js'
import { ANSWER_MS, Ending } from './ending.js'
import { Gate } from './gate.js'
import { Lifecycle } from './lifecycle.js'
import { type MainOptions, MainThread } from './main-thread.js'
import type { News } from './news.js'
import type { RemoteMembers } from './remote-members.js'
import type { SupervisionOptions } from './supervision.js'

/** Options of `cluster.close`. */
export interface CloseOptions {
  /** How long runs and calls that have begun may still take, in ms. Default 5000. 0 ends them at once. */
  readonly timeoutMs?: number
  /** How long each thread may take to clean up after its runtime has closed, in ms. Then the thread is ended. Default 500. */
  readonly graceMs?: number
}

/** Options of `cluster.join` and `cluster.restart`. */
export interface JoinOptions {
  /** How long the new workers may take to load the program, in ms. Default: `launchTimeoutMs` of `launch`. 0: without a limit. */
  readonly timeoutMs?: number
}

/** Options of `cluster.leave`. */
export interface LeaveOptions {
  /** How long the worker's runs, and the calls that it has made, may still take, in ms. Default 5000. 0 ends them at once. */
  readonly timeoutMs?: number
}

/** Options of `cluster.ready`. */
export interface ReadyOptions {
  /** How long to wait for the worker, in ms. Default: `launchTimeoutMs` of `launch`. 0: without a limit. */
  readonly timeoutMs?: number
}

const JOIN: OptionNames<JoinOptions> = { timeoutMs: true }

/** How a cluster ended. */
export interface ClusterEnd {
  /** An error WORKER_DIED for each worker that died: its thread ended by itself, before it was asked to leave and before `close`. */
  readonly deaths: readonly PostgradError[]
  /** References that were not disposed of when the cluster closed. Empty if `referenceLeaks` of `launch` is 'ignore'. */
  readonly leaks: readonly ReferenceLeak[]
  /** The error SUPERVISOR_GAVE_UP, if the supervisor ended the cluster. */
  readonly error?: PostgradError
}

export interface ClusterParts {
  readonly members: RemoteMembers
  readonly main: MainOptions
  readonly pools: ClusterJobs
  /** Of workers that have come or gone, or that nobody waits for any more. */
  readonly news: News
  readonly payloads: PayloadCodec
  readonly clock: Clock
  readonly launchTimeoutMs: number
  readonly stallMs: number
  readonly onStall: 'report' | 'kill'
  readonly referenceLeaks: LeakPolicy
  /** Null: what dies stays dead until somebody restarts it. */
  readonly supervision: SupervisionOptions | null
}

const CLOSE_TIMEOUT_MS = 5000
/** Of workers, when it is printed. */
const SHOWN_MAX = 32
/** How long a worker may take to say what it holds: as long as one that is busy and not stalled does, by default. */
const ASK_MS = 10_000

/**
 * The workers that one `launch` started. `on(name).run(fn)` runs a function on a worker, `call` calls a worker, `close()` ends all workers.
 * @example
 * await using cluster: Cluster = await launch(new URL('./program.js', import.meta.url), { workers: 2 })
 * const y = await cluster.call('worker0', addOne, [x]) // the program has: expose({ addOne })
 * await cluster.join('worker2')
 * cluster.workers.map(({ name }) => name) // the names of all three
 */
export class Cluster {
  /** Resolves when the last thread has ended, by `close` or otherwise. Never rejects. If the cluster was not closed, workers may still be started again. */
  readonly closed: Promise<ClusterEnd>
  private readonly parts: ClusterParts
  private readonly gate = new Gate(
    (op) => (this.closing === null ? null : clusterClosed(op, this.lifecycle.gaveUp)),
    (workerId) => this.lifecycle.endOf(workerId),
  )
  private readonly main: MainThread
  private readonly events: ClusterEvents
  private readonly ending: Ending
  private readonly lifecycle: Lifecycle
  private leaks: readonly ReferenceLeak[] = []
  private closing: Promise<void> | null = null

  constructor(parts: ClusterParts) {
    const { clock, stallMs, onStall } = parts
    this.parts = parts
    this.main = new MainThread(parts.main, this.gate)
    this.events = new ClusterEvents(clock, stallMs, onStall)
    this.ending = new Ending({ ...parts, main: this.main })
    this.lifecycle = new Lifecycle({
      ...parts,
      gate: this.gate,
      events: this.events,
      ending: this.ending,
      isHeardByMain: (workerId) => this.main.hearsOf(workerId),
      isLostToMain: (workerId) => this.main.hasLost(workerId),
      close: () => this.close({ timeoutMs: 0 }),
    })
    this.closed = this.lifecycle.emptied.then(() => {
      const { deaths, gaveUp } = this.lifecycle
      return { deaths, leaks: this.leaks, ...(gaveUp === null ? {} : { error: gaveUp }) }
    })
  }

  /**
   * Starts the first workers: all at once, or one by one under supervision. If one cannot, none is left. For `launch`.
   * Rejects as `join` does. @internal
   */
  async begin(names: readonly string[]): Promise<void> {
    try {
      await this.lifecycle.begin(names)
    } catch (error) {
      await this.parts.members.shutDown()
      throw error
    }
    this.events.start()
  }

  /** The workers, in the order in which their names joined. Each name has its latest worker, dead or alive. Workers that left are not included. */
  get workers(): readonly WorkerInfo[] {
    return this.parts.members.workers
  }

  /**
   * Starts further workers with the same program. Resolves when all of them have loaded the program, and all living workers can call each other. Either all new
   * workers join, or none. The other workers continue their work meanwhile. A worker that is busy for more than 5 s learns of the new workers at its next turn.
   * Supervised workers join one after the other. PyTorch: `init_rpc` without a `world_size`.
   * @throws WORKER_NAME_TAKEN, WORKER_NAME_INVALID, WORKER_NAME_DUPLICATE, WORKER_COUNT_INVALID; WORKER_IDS_SPENT if the cluster has given out all ids;
   * LAUNCH_FAILED if a worker cannot load the program, with `values.worker` and the reason in `cause`; INVALID_ARGUMENT, TIMEOUT_INVALID, CLUSTER_CLOSED
   */
  join(name: string, options?: JoinOptions): Promise<WorkerInfo>
  join(names: readonly string[], options?: JoinOptions): Promise<readonly WorkerInfo[]>
  async join(names: string | readonly string[], options: JoinOptions = {}): Promise<WorkerInfo | readonly WorkerInfo[]> {
    if (typeof names === 'number')
      throw invalidArgument('cluster.join', 'a name, or a list of names', names, "Write join(['worker2', 'worker3']).")
    checkNames('cluster.join', options, JOIN)
    const wanted = workerNames(typeof names === 'string' ? [names] : names)
    const infos = await this.lifecycle.join('cluster.join', wanted, options)
    return typeof names === 'string' ? infos[0]! : infos
  }

  /**
   * Ends a worker in order, and resolves when its thread has ended. The worker's runs, and the calls that it has made, may take `timeoutMs`. Then the other workers
   * stop calling it, and `workers()` no longer lists it. The worker serves their earlier calls, disposes its references, and ends. Leaving does not count as
   * a death. But the worker's values are gone: using a reference to one of them fails with WORKER_DIED, cause `left`. If the worker is already dead, the cluster
   * forgets it. Under supervision, `shutdownMs` of the supervision replaces `timeoutMs`.
   * @throws UNKNOWN_WORKER; WORKER_NAME_TAKEN if the worker is being started again; WORKER_DIED if it dies before it has left; INVALID_ARGUMENT,
   * TIMEOUT_INVALID, CLUSTER_CLOSED
   */
  async leave(target: Target, options: LeaveOptions = {}): Promise<void> {
    this.gate.admit('cluster.leave')
    checkNames('cluster.leave', options, { timeoutMs: true })
    await this.lifecycle.leave('cluster.leave', target, options.timeoutMs)
  }

  /**
   * Starts a worker again, with the same name and program and a new id. A living worker leaves first, as in `leave`, within `leaveTimeoutMs` (default 5000). The new
   * worker's random numbers depend on the name and on how often the name was started. Requests to the old id fail with WORKER_DIED, where `values.restartedAs` is
   * the new id. If the new worker cannot start, the name keeps its dead worker, and you can try again. Under supervision, the options have no effect.
   * @throws the errors of `join` and `leave`
   */
  async restart(target: Target, options: JoinOptions & { readonly leaveTimeoutMs?: number } = {}): Promise<WorkerInfo> {
    this.gate.admit('cluster.restart')
    checkNames('cluster.restart', options, { ...JOIN, leaveTimeoutMs: true })
    return this.lifecycle.restart('cluster.restart', target, options)
  }

  /**
   * Resolves with the worker of this name when other workers can call it: at once, or when the `join`, the `restart` or the supervisor that starts it has finished.
   * Await it before you call a worker again after WORKER_DIED.
   * @throws UNKNOWN_WORKER; WORKER_DIED if the worker is dead and is not being started again; RUN_TIMEOUT after `timeoutMs`; INVALID_ARGUMENT,
   * TIMEOUT_INVALID, CLUSTER_CLOSED
   */
  async ready(name: string, options: ReadyOptions = {}): Promise<WorkerInfo> {
    checkNames('cluster.ready', options, { timeoutMs: true })
    return this.lifecycle.ready('cluster.ready', name, options)
  }

  /** Returns the controller of a worker, which you name by its name, id or info. @throws UNKNOWN_WORKER, TIMEOUT_INVALID, INVALID_ARGUMENT */
  on(target: Target, options: ControllerOptions = {}): Controller {
    return new Controller(this.lifecycle.find('cluster.on', target), this.parts.payloads, options, this.gate, () => this.workers)
  }

  /**
   * Calls an exposed function of a worker from the main thread, and resolves with its result. Arguments and result may contain references and tensors. Import the
   * program on this thread too, so that the function is exposed here. Within a distributed context (in `runHere`), both ends record the call.
   *
   * At the first `call`, `remote` or `runHere`, the main thread joins the cluster as a guest named 'main' (`mainName` of `launch`). Workers can then call the
   * functions that the main thread has exposed. Groups and ranks do not count it. Joining waits up to 5 s for a worker that is busy. PyTorch: `rpc_sync` on the
   * master.
   * @throws the errors of `call` of 'postgrad'; WORKER_NAME_TAKEN if a worker has the main thread's name; CLUSTER_CLOSED
   */
  call<F extends AnyFunction>(to: Target, fn: F, ...rest: Rest<Parameters<F>>): Promise<Awaited<ReturnType<F>>> {
    return this.main.run('cluster.call', () => call(to, fn, ...rest)) as Promise<Awaited<ReturnType<F>>>
  }

  /**
   * Runs an exposed function on a worker, or makes an instance of an exposed class there, and keeps the result there. Resolves with a reference to the result:
   * `await policy.rpcAsync().act(x)` calls a method of it. `dispose()`, `using` or at the latest `close` releases the reference. If the function fails, uses of
   * the reference fail with its error. PyTorch: `rpc.remote` on the master.
   * @throws the errors of `remote` of 'postgrad'; WORKER_NAME_TAKEN if a worker has the main thread's name; CLUSTER_CLOSED
   */
  remote<C extends AnyClass>(to: Target, make: C, ...rest: Rest<ConstructorParameters<C>>): Promise<RRef<InstanceType<C>>>
  remote<F extends AnyFunction>(to: Target, fn: F, ...rest: Rest<Parameters<F>>): Promise<RRef<Awaited<ReturnType<F>>>>
  remote(
    to: Target,
    fn: AnyFunction | AnyClass,
    ...[args = [], options]: [args?: readonly unknown[], options?: CallOptions]
  ): Promise<RRef> {
    return this.main.run('cluster.remote', () => currentRuntime().remote(to, fn, args, options))
  }

  /**
   * Runs `fn(...args)` on the main thread, as a guest of the cluster, and resolves with its result. `fn` can use everything that a worker can: `call`, `stream`,
   * `rref`, `distAutograd.context` with `ctx.backward`, `DistributedOptimizer`. Its random numbers follow from the cluster's seed. While this thread is blocked,
   * workers that call it wait. PyTorch: the code of the master between `init_rpc` and `shutdown`.
   * @throws the error of `fn`; WORKER_NAME_TAKEN if a worker has the main thread's name; INVALID_ARGUMENT, CLUSTER_CLOSED
   */
  runHere<A extends unknown[], T>(fn: (...args: A) => T, ...args: A): Promise<Awaited<T>> {
    try {
      checkFunction('cluster.runHere', 'what to run', fn)
    } catch (error) {
      return Promise.reject(error)
    }
    return this.main.run('cluster.runHere', () => fn(...args))
  }

  /**
   * Makes a pool of threads for stateless work. Jobs run the exposed functions of the module at `url`, which may be the program itself. The main thread uses the
   * pool that this method returns; workers use `currentJobs(name)`. When the cluster closes, the pool closes, too.
   * @throws JOBS_MODULE_NOT_FOUND; JOBS_NAME_TAKEN if the cluster has a pool of this name; INVALID_ARGUMENT, DEVICE_UNKNOWN, CLUSTER_CLOSED
   */
  jobs(url: URL | string, options: ClusterJobsOptions = {}): Jobs {
    this.gate.admit('cluster.jobs')
    checkNames('cluster.jobs', options, { ...JOBS_OPTIONS, name: true })
    return this.parts.pools.open(url, options)
  }

  /** Ends a worker's thread at any instruction, as a crash would. Resolves when the thread has ended. @throws UNKNOWN_WORKER */
  async kill(target: Target): Promise<void> {
    await this.lifecycle.kill(this.lifecycle.find('cluster.kill', target))
  }

  /** Returns the error WORKER_DIED of a dead worker, with the cause in `values.cause`, and null while the worker lives. @throws UNKNOWN_WORKER */
  deathOf(target: Target): PostgradError | null {
    const worker = this.lifecycle.find('cluster.deathOf', target)
    return worker.dead ? worker.death('cluster.deathOf') : null
  }

  /**
   * Calls `listener` with the error WORKER_DIED when a worker's thread ends by itself, also if this happens while the cluster closes. Returns a function that
   * removes the listener. @throws INVALID_ARGUMENT
   */
  onWorkerDeath(listener: DeathListener): () => void {
    return this.events.listen('cluster.onWorkerDeath', this.events.deaths, listener)
  }

  /**
   * Calls `listener` when a worker has left and its thread has ended: by `cluster.leave`, for a `restart`, or because its program called `shutdown()`,
   * `leave()` or `drain()`. It is not called for workers that `close` ends. Returns a function that removes the listener. @throws INVALID_ARGUMENT
   */
  onWorkerLeft(listener: LeaveListener): () => void {
    return this.events.listen('cluster.onWorkerLeft', this.events.leaves, listener)
  }

  /**
   * Calls `listener` with the error WORKER_STALLED when a living worker has not reached its next turn for `stallMs` (of `launch`). Such a worker is in an endless
   * loop, waits for a lock, or runs a callback that blocks. A worker that awaits, or that runs a long kernel, does not count as stalled. Returns a function that
   * removes the listener. @throws INVALID_ARGUMENT
   */
  onWorkerStalled(listener: StallListener): () => void {
    return this.events.listen('cluster.onWorkerStalled', this.events.stalls, listener)
  }

  /** Calls `listener` when a stalled worker continues. Returns a function that removes the listener. @throws INVALID_ARGUMENT */
  onWorkerRecovered(listener: RecoveryListener): () => void {
    return this.events.listen('cluster.onWorkerRecovered', this.events.recoveries, listener)
  }

  /**
   * Resolves with counts of every live worker, by its name: pending calls, contexts, references, ports, and its thread's memory in bytes. Stalled workers are left
   * out, and with `timeoutMs` each worker that does not answer within that time. @throws CLUSTER_CLOSED; TIMEOUT_INVALID; RUN_TIMEOUT, without `timeoutMs`, if a
   * worker that was not reported as stalled does not answer for 10 s
   */
  async debugInfo(options: { readonly timeoutMs?: number } = {}): Promise<Record<string, WorkerDebugInfo>> {
    return this.ofEach('debugInfo', options)
  }

  /**
   * Calls `listener` with the events of every worker, also of workers that join later: messages sent and received, calls begun and ended, dead letters, full
   * mailboxes, deaths of peers. The listener also receives the main thread's events: workers that joined, left, died, stalled or recovered. Events of one worker
   * arrive in order, with a short delay, and before the result of a run that ended after them. Events of different workers arrive in any order. Inspection costs
   * time while there is a listener. Resolves when all workers send their events; a worker that does not answer for 1 s is not waited for. The result is a function
   * that removes the listener. Its promise resolves when the listener has received all earlier events.
   * @throws INVALID_ARGUMENT, CLUSTER_CLOSED
   */
  async inspect(listener: ClusterEventListener): Promise<() => Promise<void>> {
    this.gate.admit('cluster.inspect')
    return this.events.inspect(listener, () => this.parts.members.running)
  }

  /** Resolves with the messages that each live worker could not handle, by the worker's name. @throws the errors of `debugInfo` */
  async deadLetters(): Promise<Record<string, DeadLetterReport>> {
    return this.ofEach('deadLetters')
  }

  /**
   * Resolves with the metrics of each live worker, by its name: how many calls wait, and how long calls waited and ran, in total and by actor. Workers begin to
   * count at the first call of `metrics`. It leaves out the same workers as `debugInfo`. @throws the errors of `debugInfo`
   */
  async metrics(options: { readonly timeoutMs?: number } = {}): Promise<Record<string, WorkerMetrics>> {
    return this.ofEach('metrics', options)
  }

  /** Resolves with the references that each live worker holds, by the worker's name, and those of the main thread if it has joined. @throws the errors of `debugInfo` */
  async references(): Promise<Record<string, References>> {
    return { ...(await this.ofEach('references')), ...this.main.references() }
  }

  /**
   * Ends the cluster. Runs and calls that have begun may finish within `timeoutMs`; then unfinished runs reject with CLUSTER_CLOSED. Next, all workers close, and
   * their threads end. A thread that has not ended after `graceMs` is ended. Resolves when no thread is left. A second call can only shorten the times of the
   * first. @throws TIMEOUT_INVALID, INVALID_ARGUMENT; RREF_LEAK if references were not disposed of and `referenceLeaks` of `launch` is 'error'
   */
  close(options: CloseOptions = {}): Promise<void> {
    checkNames('cluster.close', options, { timeoutMs: true, graceMs: true })
    const timeoutMs = checkTime('cluster.close', options.timeoutMs ?? CLOSE_TIMEOUT_MS, '0 for at once')
    const { ending } = this
    ending.deadlineMs = Math.min(ending.deadlineMs, this.parts.clock.now() + timeoutMs)
    if (options.graceMs !== undefined) ending.graceMs = checkTime('cluster.close', options.graceMs, '0 for at once')
    this.closing ??= this.shutDown()
    this.parts.news.tell()
    return this.closing
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close()
  }

  /** Returns a text to print: `Cluster { worker0: alive, worker1: died (exited) }`. */
  toString(): string {
    const { workers } = this.parts.members
    const shown = workers.slice(0, SHOWN_MAX).map(({ name, id }) => `${name}: ${this.stateOf(id)}`)
    if (workers.length > SHOWN_MAX) shown.push(`and ${workers.length - SHOWN_MAX} more`)
    return `Cluster${this.closing === null ? '' : ' (closed)'} {${shown.length === 0 ? '' : ` ${shown.join(', ')} `}}`
  }

  /** For `console.log`. */
  [Symbol.for('nodejs.util.inspect.custom')](): string {
    return this.toString()
  }

  private stateOf(workerId: number): string {
    const worker = this.parts.members.threads.find(({ info }) => info.id === workerId)
    if (worker === undefined) return 'gone'
    if (worker.dead) return worker.isExpectedToEnd ? 'has left' : `died (${worker.death('cluster').values.cause})`
    if (worker.leaving !== null) return 'leaving'
    return this.events.isStalled(worker) ? 'stalled' : 'alive'
  }

  private async shutDown(): Promise<void> {
    const { ending, main, lifecycle } = this
    const { members, pools, referenceLeaks } = this.parts
    // What is closed is known to be from here on.
    await null
    await ending.untilQuiet()
    // What the main thread holds ends with it, and is known to be disposed before anybody is asked what was left.
    if (main.release()) await ending.untilQuiet()
    this.events.stop()
    // Who wants the end at once does not wait for this.
    if (referenceLeaks !== 'ignore' && ending.leftMs > 0) this.leaks = await leaksOf(ending.answering, Math.min(ending.leftMs, ANSWER_MS))
    const rejectRuns = (): void => {
      for (const worker of members.running) worker.rejectAll((op) => clusterClosed(op, lifecycle.gaveUp))
    }
    rejectRuns()
    await main.close()
    await lifecycle.stop()
    rejectRuns()
    // All at once: a worker that closes is gone for the others, and none waits for another any more.
    await Promise.all([pools.close(), ...members.running.map((worker) => ending.end(worker, 0))])
    await members.shutDown()
    lifecycle.endIfEmpty()
    if (this.leaks.length === 0) return
    const error = referencesLeft(this.leaks)
    if (referenceLeaks === 'error') throw error
    process.emitWarning(error.message, { type: error.code })
  }

  /** The answers of the living workers. A stalled worker is left out, and so is a worker that takes longer than the caller wants to wait. */
  private async ofEach<R extends Report>(report: R, options: { readonly timeoutMs?: number } = {}): Promise<Record<string, Answer<R>>> {
    this.gate.admit(report)
    checkNames(`cluster.${report}`, options, { timeoutMs: true })
    const isPatient = options.timeoutMs === undefined
    const timeoutMs = isPatient ? ASK_MS : timeLimit(`cluster.${report}`, options.timeoutMs!)
    const answers: Record<string, Answer<R>> = {}
    await Promise.all(
      this.parts.members.threads.map(async (worker) => {
        const canAnswer = (): boolean => !worker.dead && !this.events.isStalled(worker)
        try {
          if (canAnswer()) answers[worker.info.name] = (await worker.ask<Report>(report, [], { timeoutMs })) as Answer<R>
        } catch (error) {
          // One that dies while it is asked is not alive any more; one that stalls is known by now.
          if (canAnswer() && (isPatient || !isPostgradError(error, 'RUN_TIMEOUT'))) throw error
        }
      }),
    )
    return Object.fromEntries(this.workers.flatMap(({ name }) => (name in answers ? [[name, answers[name]!]] : [])))
  }
}
