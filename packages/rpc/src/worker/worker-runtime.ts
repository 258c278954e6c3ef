/**
 * One worker: everything that belongs to it hangs off this object, so that a simulated cluster is N of them in one thread. What comes from the machine
 * (clock, links, generator, device) is passed in. It is the core with the parts that rpc itself adds, and what users call of them.
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
  /** Who makes its calls; default one that sends them. */
  readonly caller?: (worker: WorkerRuntime) => Caller
}

/** Of `shutdown`. */
export interface ShutdownOptions {
  /** Wait for the whole group (default), or end at once. */
  readonly graceful?: boolean
  /** For the graceful way, in ms; default 0, which is no limit. */
  readonly timeoutMs?: number
}

/** What nobody got. */
export interface DeadLetterReport {
  /** How many there were. */
  readonly total: number
  /** How many there were, by reason. */
  readonly counts: Readonly<Record<DeadLetterReason, number>>
  /** Oldest first. */
  readonly last: readonly DeadLetter[]
}

/** One worker: what it is called, whom it knows, what it serves. `currentWorker()` gives it. */
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

  /**
   * Runs `fn` as this worker, for somebody outside of all workers who may cancel it: then its `currentSignal()` aborts, and the calls that it has made are
   * cancelled.
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

  /** As the function `call`, from this worker. */
  call(to: Target, fn: AnyFunction, args: readonly unknown[], options: CallOptions = {}): Future<unknown> {
    try {
      return this.caller.call(to, this.registry.nameOf(fn), args, options)
    } catch (error) {
      return Future.rejected(error)
    }
  }

  /** See `ready` in `api.ts`. */
  ready(to: Target, options: CallOptions = {}): Future<void> {
    return this.caller.ready(to, options)
  }

  /** As the function `remote`, from this worker. */
  remote(to: Target, fn: AnyFunction | AnyClass, args: readonly unknown[], options: RemoteOptions = {}): RRef {
    return this.caller.remote(to, this.registry.nameOf(fn), args, options)
  }

  /** As the function `stream`, from this worker. */
  stream(to: Target, fn: AnyFunction, args: readonly unknown[], options: StreamOptions = {}): RemoteStream<unknown> {
    try {
      return this.caller.stream(to, this.registry.nameOf(fn), args, options)
    } catch (error) {
      return RemoteStream.failed(error)
    }
  }

  // --- what happens here

  /** See `intercept` in `api`. Returns what takes it away. */
  interceptCalls(interceptor: CallInterceptor): () => void {
    return this.observation.intercept(interceptor)
  }

  /**
   * `listener` receives every event of this worker from now on: messages sent and received, calls begun and ended, dead letters, deaths,
   * full mailboxes. It runs at the event and should be short; its errors go to `onBug`. Returns a function that removes it.
   * PyTorch has none but its profiler.
   */
  inspect(listener: InspectListener): () => void {
    return this.observation.inspect(listener)
  }

  /** The same for a reader that takes its time: `for await (const event of worker.inspectStream())`. Events beyond the capacity are dropped and counted. @throws INVALID_ARGUMENT */
  inspectStream({ capacity = 1024 }: InspectStreamOptions = {}): InspectStream {
    return new InspectStream((listener) => this.inspect(listener), capacity)
  }

  /**
   * How many calls wait here, how long they waited and ran, by actor too. Counting begins with the first call of this and continues until
   * `stopMetrics`; before, it costs nothing. PyTorch: `get_debug_info` with `enable_gil_profiling`.
   */
  metrics(): WorkerMetrics {
    return this.observation.metrics()
  }

  /** Counts no more, and forgets what was counted. */
  stopMetrics(): void {
    this.observation.stopMetrics()
  }

  /** The messages that this worker could not handle: how many by reason, and the last few. */
  deadLetters(): DeadLetterReport {
    const { counts, total } = this.letters
    return { total, counts: { ...counts }, last: this.letters.last() }
  }

  /** The waits of this worker's programs and of the calls that it serves, now. */
  waits(): Waits {
    const peers = [...this.peers]
    return {
      waits: [...ownWaits(this.requests.waits), ...peers.flatMap((peer) => [...requestsTo(peer)]), ...this.contributedWaits()],
      serving: peers.flatMap((peer) => [...servedFor(peer)]),
    }
  }

  /**
   * PyTorch's `_get_debug_info`: what its agent says (`agent.…`), with the counts of references and of autograd (`debugInfo`), their keys disjoint. Its
   * numbers of threads have no counterpart: a worker is one.
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

  /** Which of its values others refer to, who they are, and which references it holds itself; for how long, and where they were made if that is kept. */
  references(): References {
    return this.rrefs.references()
  }

  // --- ends

  /**
   * Ends this worker: waits up to `drainMs` for the calls that it has made, those that it serves, and until large tensors that it has sent are
   * read; then rejects what waits with RPC_SHUT_DOWN and closes its links. Callers of what has not begun here learn that it was not run (WORKER_DRAINING),
   * who else waits for it that it has died. Later calls meet RPC_SHUT_DOWN. Idempotent.
   */
  async close({ drainMs = 0 }: { drainMs?: number } = {}): Promise<void> {
    await this.group.close(drainMs)
  }

  /**
   * Ends this worker by its own decision: calls of others that come from now on are refused with WORKER_DRAINING, those that wait are served, its own are
   * awaited, then it closes. Its peers need not agree, as they do with `leave`, so a function that waits for a call back into this worker fails. Not to be
   * awaited by a function that is served. Idempotent.
   * @throws (rejects) TIMEOUT_INVALID; RPC_TIMEOUT after `timeoutMs` (default this worker's `rpcTimeoutMs`, 0: without a limit), when it has closed all the same
   */
  async drain({ timeoutMs = this.rpcTimeoutMs }: { timeoutMs?: number } = {}): Promise<void> {
    await this.group.drain(timeLimit('drain', timeoutMs))
  }

  /**
   * Ends this worker while the others continue: waits for its own calls, asks its peers to make no more, serves those that were made before, gives its
   * references up, closes when its messages have been read. Peers find it left, not died. Values that it owns go with it. Idempotent.
   * @throws (rejects) TIMEOUT_INVALID; GROUP_TIMEOUT after `timeoutMs` (default this worker's `rpcTimeoutMs`, 0: without a limit), when it has left all the same
   */
  async leave({ timeoutMs = this.rpcTimeoutMs }: { timeoutMs?: number } = {}): Promise<void> {
    await this.group.leave(timeLimit('leave', timeoutMs))
  }

  /**
   * Ends this worker. Graceful: together with all others, when each has called this and no call is under way anywhere, also none that another, or a
   * callback, has brought about; references are disposed first. Whatever goes wrong, the local end comes about. A guest leaves. Idempotent.
   * @throws (rejects) TIMEOUT_INVALID; GROUP_TIMEOUT with the names after `timeoutMs` (default 0, no limit); WORKER_DIED when a member dies meanwhile
   */
  async shutdown({ graceful = true, timeoutMs = 0 }: ShutdownOptions = {}): Promise<void> {
    const limitMs = timeLimit('shutdown', timeoutMs)
    await (graceful ? this.group.shutdown(limitMs) : this.close())
  }

  /** How many messages this worker has sent to its peers and received, if nothing is under way here; else null. See `Tally`. */
  countsIfQuiet(): Counts | null {
    return this.group.countsIfQuiet()
  }

  /** `say` gets the same whenever nothing is under way here, if it is news. Returns what ends that. */
  onQuiet(say: (counts: Counts) => void): () => void {
    return this.group.onQuiet(say)
  }
}
