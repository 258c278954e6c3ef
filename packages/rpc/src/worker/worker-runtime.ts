/**
 * One worker: this object has everything that belongs to it, so that a simulated cluster is N of them in one thread. Clock, links, generator and device
 * are passed in. It is the core (`worker-core.ts`) with rpc's own parts, and the methods that users call.
 */

import type { DeadLetter, DeadLetterReason } from '@postgrad/actor/internal'
import { Future, type PostgradError } from '@postgrad/base'
import { inScope, Lane, Scope, timeLimit } from '@postgrad/base/internal'
import { ACTORS, type Actors } from '../actors/actors.js'
import { WATCHES, type Watches } from '../actors/watches.js'
import { AuthorityCheck } from '../authority/authority-check.js'
import { RemoteStream, type StreamOptions } from '../calls/stream.js'
import { installStreams } from '../calls/stream-serving.js'
import type { CallOptions } from '../common/call-options.js'
import type { AnyClass, AnyFunction } from '../common/function-registry.js'
import { valueTypeExtension } from '../common/value-types.js'
import type { Target, WorkerInfo } from '../common/worker-info.js'
import { OwnCall } from '../core/served-call.js'
import { ownWaits, requestsTo, servedFor, type Waits } from '../core/waits.js'
import { type CoreOptions, WorkerCore } from '../core/worker-core.js'
import { MEMBERSHIP, type Membership } from '../groups/membership.js'
import type { Counts } from '../groups/traffic.js'
import type { CallInterceptor } from '../observe/call-interceptors.js'
import { type InspectListener, InspectStream, type InspectStreamOptions } from '../observe/inspection.js'
import type { WorkerMetrics } from '../observe/metrics.js'
import { OBSERVATION, type Observation } from '../observe/observation.js'
import type { Caller, RemoteOptions } from '../references/caller.js'
import { REFERENCES } from '../references/references.js'
import { RpcCaller } from '../references/rpc-caller.js'
import type { RRef } from '../references/rref.js'
import type { RRefContext } from '../references/rref-context.js'
import type { References } from '../references/rref-table.js'
import { exposeBuiltIns } from './built-ins.js'

export interface WorkerOptions extends CoreOptions {
  /** Makes its calls; default one that sends them. */
  readonly caller?: (worker: WorkerRuntime) => Caller
}

/** Options of `shutdown`: whether to wait for the other workers, and how long. */
export interface ShutdownOptions {
  /** Whether to wait for all workers; default true. With false this worker ends at once. */
  readonly graceful?: boolean
  /** How long a graceful shutdown may wait, in ms. Default 0: without a limit. */
  readonly timeoutMs?: number
}

/** The dead letters of a worker: the messages that it could not process. `WorkerRuntime.deadLetters` returns it. */
export interface DeadLetterReport {
  /** The number of dead letters so far. */
  readonly total: number
  /** The number of dead letters so far, by reason. */
  readonly counts: Readonly<Record<DeadLetterReason, number>>
  /** The latest dead letters, at most 32, oldest first. */
  readonly last: readonly DeadLetter[]
}

/**
 * A worker, with all its members. `currentWorker()` returns the current one, typed as `Worker`; plugins get it from `currentRuntime()`.
 * @example
 * const worker = currentWorker()
 * worker.workers().map(({ name }) => name) // ['worker0', 'worker1']
 * worker.deadLetters().total // 0
 */
export class WorkerRuntime extends WorkerCore {
  /** Makes the calls of this worker, by the names of functions. */
  readonly caller: Caller
  /** The references of this worker: makes them, and counts those of other workers. */
  readonly rrefs: RRefContext
  /** The actors of this worker. */
  readonly actors: Actors
  /** The watches of this worker, and those of its own actors. */
  readonly watches: Watches
  private readonly observation: Observation
  private readonly group: Membership

  constructor(options: WorkerOptions) {
    super(options)
    // In this order their ends come.
    this.rrefs = REFERENCES.of(this)
    this.messages.carry(valueTypeExtension)
    this.observation = OBSERVATION.of(this)
    installStreams(this)
    this.group = MEMBERSHIP.of(this)
    this.actors = ACTORS.of(this)
    this.watches = WATCHES.of(this)
    this.caller = options.caller?.(this) ?? new RpcCaller(this, this.rrefs)
    this.rrefs.caller = this.caller
    exposeBuiltIns(this.registry)
    if (options.authority !== undefined) this.messages.gate = new AuthorityCheck(this, options.authority)
  }

  // --- calls

  override workers(): WorkerInfo[] {
    return this.caller.workers()
  }

  override resolve(target: Target, op?: string): WorkerInfo {
    return this.caller.resolve(target, op)
  }

  /**
   * Runs `fn` as this worker, and returns its result with a function that cancels it. `cancel` aborts the `currentSignal()` of `fn`, and cancels the calls
   * that `fn` has made. For code that runs outside of all workers.
   */
  runCancellable<T>(fn: () => T): { readonly result: Promise<Awaited<T>>; cancel(reason: PostgradError): void } {
    const own = new OwnCall(this.info, () => this.requests.shutdownSignal)
    const run = async (): Promise<Awaited<T>> => {
      try {
        return await inScope(new Scope({ serving: own }, this.scope), fn)
      } finally {
        own.close()
      }
    }
    return { result: run(), cancel: (reason) => this.requests.giveUp([own], reason) }
  }

  /** Does the same as the function `call`, from this worker. */
  call(to: Target, fn: AnyFunction, args: readonly unknown[], options: CallOptions = {}): Future<unknown> {
    try {
      return this.caller.call(to, this.registry.nameOf(fn), args, options)
    } catch (error) {
      return Future.rejected(error)
    }
  }

  /** Does the same as the function `ready`, from this worker. */
  ready(to: Target, options: CallOptions = {}): Future<void> {
    return this.caller.ready(to, options)
  }

  /** Does the same as the function `remote`, from this worker. */
  remote(to: Target, fn: AnyFunction | AnyClass, args: readonly unknown[], options: RemoteOptions = {}): RRef {
    return this.caller.remote(to, this.registry.nameOf(fn), args, options)
  }

  /** Does the same as the function `stream`, from this worker. */
  stream(to: Target, fn: AnyFunction, args: readonly unknown[], options: StreamOptions = {}): RemoteStream<unknown> {
    try {
      return this.caller.stream(to, this.registry.nameOf(fn), args, options)
    } catch (error) {
      return RemoteStream.failed(error)
    }
  }

  // --- what happens here

  /** Installs an interceptor, as the function `intercept` does. Returns a function that removes it. */
  interceptCalls(interceptor: CallInterceptor): () => void {
    return this.observation.intercept(interceptor)
  }

  /**
   * Calls `listener` with every event of this worker from now on: messages sent and received, calls begun and ended, dead letters, deaths, full mailboxes.
   * Returns a function that removes the listener. The listener is called during the event and should be fast; its errors count as uncaught exceptions.
   * PyTorch has only its profiler for this.
   */
  inspect(listener: InspectListener): () => void {
    return this.observation.inspect(listener)
  }

  /**
   * Returns the events of this worker as a stream, for a reader at its own speed: `for await (const event of worker.inspectStream())`. If more than `capacity`
   * (1024) events wait, the oldest are dropped and counted.
   * @throws INVALID_ARGUMENT if `capacity` is not an integer ≥ 1
   */
  inspectStream({ capacity = 1024 }: InspectStreamOptions = {}): InspectStream {
    return new InspectStream((listener) => this.inspect(listener), capacity)
  }

  /**
   * Returns how many calls wait on this worker, and how long calls waited and ran, in total and by actor. Counting begins with the first call of `metrics` and
   * continues until `stopMetrics`; without it, a call costs nothing more. PyTorch: `get_debug_info` with `enable_gil_profiling`.
   */
  metrics(): WorkerMetrics {
    return this.observation.metrics()
  }

  /** Ends the counting that `metrics` began, and forgets the counts. */
  stopMetrics(): void {
    this.observation.stopMetrics()
  }

  /** Returns the messages that this worker could not process: their number by reason, and the latest. */
  deadLetters(): DeadLetterReport {
    const { counts, total } = this.letters
    return { total, counts: { ...counts }, last: this.letters.last() }
  }

  /** Returns the things that this worker waits for now, for its programs and for the calls that it serves, and the calls that it serves. */
  waits(): Waits {
    const peers = [...this.peers]
    return {
      waits: [...ownWaits(this.requests.waits), ...peers.flatMap((peer) => [...requestsTo(peer)]), ...this.contributedWaits()],
      serving: peers.flatMap((peer) => [...servedFor(peer)]),
    }
  }

  /**
   * Returns the counts of PyTorch's `_get_debug_info` by name: those of its agent (`agent.…`), and those of references and autograd (`debugInfo`). PyTorch's
   * numbers of threads have no counterpart: a worker is one thread.
   */
  getDebugInfo(): Record<string, number> {
    const { pendingCalls, servingCalls, openLinks, deadLetters, ...others } = this.debugInfo() as Record<string, number>
    return {
      'agent.clientActiveCalls': pendingCalls!,
      'agent.serverActiveCalls': servingCalls! + this.pump.mailbox.depth(Lane.call),
      'agent.serverActiveAsyncCalls': servingCalls!,
      'agent.openLinks': openLinks!,
      'agent.deadLetters': deadLetters!,
      ...others,
    }
  }

  /**
   * Returns the references of this worker: its values that other workers refer to, with the holders, and its own references to values of other workers.
   * Each has its age, and with `referenceStacks` the stack of the code that made it.
   */
  references(): References {
    return this.rrefs.references()
  }

  // --- ends

  /**
   * Ends this worker, without waiting for other workers. It waits up to `drainMs` (0) for the calls that it has made, for the calls that it serves, and until
   * the large tensors that it has sent are read. Then its own waits and its later calls fail with RPC_SHUT_DOWN, and its links close. On other workers, calls
   * that have not begun here fail with WORKER_DRAINING, and all other waits for this worker fail with WORKER_DIED. Idempotent.
   */
  async close({ drainMs = 0 }: { drainMs?: number } = {}): Promise<void> {
    await this.group.close(drainMs)
  }

  /**
   * Ends this worker without asking its peers. New calls of other workers fail with WORKER_DRAINING. This worker serves the calls that wait, awaits its own
   * calls, and closes. `timeoutMs` defaults to its `rpcTimeoutMs` (60,000); 0: without a limit. Idempotent.
   *
   * `leave` asks the peers first, and `drain` does not: so a function fails if it waits for a call back into this worker. A function that serves a call must
   * not await `drain`.
   * @throws RPC_TIMEOUT if the worker is still busy after `timeoutMs`; it has closed all the same
   * @throws TIMEOUT_INVALID if `timeoutMs` is not a number ≥ 0
   */
  async drain({ timeoutMs = this.rpcTimeoutMs }: { timeoutMs?: number } = {}): Promise<void> {
    await this.group.drain(timeLimit('drain', timeoutMs))
  }

  /**
   * Ends this worker while the others continue. It waits for its own calls, asks its peers to make no more calls to it, serves their earlier calls, gives its
   * references up, and closes when its messages have been read. The peers see that the worker left, not that it died. Its values end with it. `timeoutMs`
   * defaults to its `rpcTimeoutMs` (60,000); 0: without a limit. Idempotent.
   * @throws GROUP_TIMEOUT if that takes longer than `timeoutMs`; the worker has left all the same
   * @throws TIMEOUT_INVALID if `timeoutMs` is not a number ≥ 0
   */
  async leave({ timeoutMs = this.rpcTimeoutMs }: { timeoutMs?: number } = {}): Promise<void> {
    await this.group.leave(timeLimit('leave', timeoutMs))
  }

  /**
   * Ends this worker. If graceful (the default), it ends together with all others: when each has called `shutdown` and no call is running anywhere, including
   * calls that another call or a callback made. References are given up first. A guest leaves instead. Even if `shutdown` rejects with GROUP_TIMEOUT or
   * WORKER_DIED, this worker has ended. Idempotent.
   * @throws GROUP_TIMEOUT with the names of the missing workers, if the workers do not all end within `timeoutMs`
   * @throws WORKER_DIED if another worker dies meanwhile
   * @throws TIMEOUT_INVALID if `timeoutMs` is not a number ≥ 0
   */
  async shutdown({ graceful = true, timeoutMs = 0 }: ShutdownOptions = {}): Promise<void> {
    const limitMs = timeLimit('shutdown', timeoutMs)
    await (graceful ? this.group.shutdown(limitMs) : this.close())
  }

  /** Returns how many messages this worker has sent to its peers and received, or null if work is under way on it. See `Tally`. */
  countsIfQuiet(): Counts | null {
    return this.group.countsIfQuiet()
  }

  /** Calls `say` with the counts of `countsIfQuiet` when no work is under way and the counts have changed. Returns a function that ends that. */
  onQuiet(say: (counts: Counts) => void): () => void {
    return this.group.onQuiet(say)
  }
}
