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

/** Options of `shutdown`. */
export interface ShutdownOptions {
  /** Whether to wait for the whole group (default), or to end at once. */
  readonly graceful?: boolean
  /** The deadline if graceful, in ms. Default 0: without a limit. */
  readonly timeoutMs?: number
}

/** The dead letters of a worker: messages that it could not process. */
export interface DeadLetterReport {
  /** How many there were. */
  readonly total: number
  /** How many there were, by reason. */
  readonly counts: Readonly<Record<DeadLetterReason, number>>
  /** The latest dead letters, oldest first. */
  readonly last: readonly DeadLetter[]
}

/**
 * One worker: its name, the workers that it knows, and the functions that it serves. `currentWorker()` returns it.
 * @example
 * const worker = currentWorker()
 * worker.workers().map(({ name }) => name) // ['worker0', 'worker1']
 * worker.deadLetters().total // 0
 */
export class WorkerRuntime extends WorkerCore {
  readonly caller: Caller
  readonly rrefs: RRefContext
  readonly actors: Actors
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

  /** Runs `fn` as this worker, for code outside of all workers that may cancel it. `cancel` aborts the `currentSignal()` of `fn`, and cancels the calls that `fn` has made. */
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

  /** The same as the function `call`, from this worker. */
  call(to: Target, fn: AnyFunction, args: readonly unknown[], options: CallOptions = {}): Future<unknown> {
    try {
      return this.caller.call(to, this.registry.nameOf(fn), args, options)
    } catch (error) {
      return Future.rejected(error)
    }
  }

  /** The same as the function `ready`, from this worker. */
  ready(to: Target, options: CallOptions = {}): Future<void> {
    return this.caller.ready(to, options)
  }

  /** The same as the function `remote`, from this worker. */
  remote(to: Target, fn: AnyFunction | AnyClass, args: readonly unknown[], options: RemoteOptions = {}): RRef {
    return this.caller.remote(to, this.registry.nameOf(fn), args, options)
  }

  /** The same as the function `stream`, from this worker. */
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
   * It is called during the event and should be fast; its errors go to `onBug`. Returns a function that removes it. PyTorch has only its profiler for this.
   */
  inspect(listener: InspectListener): () => void {
    return this.observation.inspect(listener)
  }

  /**
   * The events of this worker for a reader at its own speed: `for await (const event of worker.inspectStream())`. Events beyond the capacity are dropped
   * and counted. @throws INVALID_ARGUMENT
   */
  inspectStream({ capacity = 1024 }: InspectStreamOptions = {}): InspectStream {
    return new InspectStream((listener) => this.inspect(listener), capacity)
  }

  /**
   * How many calls wait here, and how long calls waited and ran, in total and by actor. Counting begins with the first call of `metrics` and continues
   * until `stopMetrics`; before, it costs nothing. PyTorch: `get_debug_info` with `enable_gil_profiling`.
   */
  metrics(): WorkerMetrics {
    return this.observation.metrics()
  }

  /** Stops counting, and forgets the counts. */
  stopMetrics(): void {
    this.observation.stopMetrics()
  }

  /** The messages that this worker could not handle: how many by reason, and the last few. */
  deadLetters(): DeadLetterReport {
    const { counts, total } = this.letters
    return { total, counts: { ...counts }, last: this.letters.last() }
  }

  /** The waits of this worker now: those of its programs and of the calls that it serves. */
  waits(): Waits {
    const peers = [...this.peers]
    return {
      waits: [...ownWaits(this.requests.waits), ...peers.flatMap((peer) => [...requestsTo(peer)]), ...this.contributedWaits()],
      serving: peers.flatMap((peer) => [...servedFor(peer)]),
    }
  }

  /**
   * The counts of PyTorch's `_get_debug_info`: those of its agent (`agent.…`), and those of references and autograd (`debugInfo`), in one object.
   * PyTorch's numbers of threads have no counterpart: a worker is one thread.
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
   * The values of this worker that others have references to, with the holders, and the references that it holds itself; with their ages, and with the
   * stacks at which they were made if they are kept.
   */
  references(): References {
    return this.rrefs.references()
  }

  // --- ends

  /**
   * Ends this worker. It waits up to `drainMs` for the calls that it has made, for those that it serves, and until large tensors that it has sent are
   * read. Then its own waits fail with RPC_SHUT_DOWN, and it closes its links. Callers of calls that have not begun here receive WORKER_DRAINING, other
   * waiting workers WORKER_DIED. Later calls of this worker fail with RPC_SHUT_DOWN. Idempotent.
   */
  async close({ drainMs = 0 }: { drainMs?: number } = {}): Promise<void> {
    await this.group.close(drainMs)
  }

  /**
   * Ends this worker without asking its peers. It refuses new calls of others with WORKER_DRAINING, serves those that wait, awaits its own, and closes.
   * Unlike `leave` it does not need its peers' agreement, so a function that waits for a call back into this worker fails. A function that serves a call
   * must not await it. Idempotent.
   * @throws (rejects) TIMEOUT_INVALID; RPC_TIMEOUT after `timeoutMs` (default this worker's `rpcTimeoutMs`, 0: without a limit), when it has closed all the same
   */
  async drain({ timeoutMs = this.rpcTimeoutMs }: { timeoutMs?: number } = {}): Promise<void> {
    await this.group.drain(timeLimit('drain', timeoutMs))
  }

  /**
   * Ends this worker while the others continue. It waits for its own calls, asks its peers to make no more, serves their earlier calls, disposes its
   * references, and closes when its messages have been read. Peers see that it left, not that it died. Its values end with it. Idempotent.
   * @throws (rejects) TIMEOUT_INVALID; GROUP_TIMEOUT after `timeoutMs` (default this worker's `rpcTimeoutMs`, 0: without a limit), when it has left all the same
   */
  async leave({ timeoutMs = this.rpcTimeoutMs }: { timeoutMs?: number } = {}): Promise<void> {
    await this.group.leave(timeLimit('leave', timeoutMs))
  }

  /**
   * Ends this worker. If graceful, it ends together with all others: when each has called `shutdown` and no call is running anywhere, including calls that
   * another call or a callback made. References are disposed first. Whatever goes wrong, this worker ends. A guest leaves. Idempotent.
   * @throws (rejects) TIMEOUT_INVALID; GROUP_TIMEOUT with the names after `timeoutMs` (default 0: without a limit); WORKER_DIED when a member dies meanwhile
   */
  async shutdown({ graceful = true, timeoutMs = 0 }: ShutdownOptions = {}): Promise<void> {
    const limitMs = timeLimit('shutdown', timeoutMs)
    await (graceful ? this.group.shutdown(limitMs) : this.close())
  }

  /** How many messages this worker has sent to its peers and received, if nothing is under way here; else null. See `Tally`. */
  countsIfQuiet(): Counts | null {
    return this.group.countsIfQuiet()
  }

  /** Calls `say` with these counts whenever nothing is running here and the counts have changed. Returns a function that ends that. */
  onQuiet(say: (counts: Counts) => void): () => void {
    return this.group.onQuiet(say)
  }
}
