/** A process of a group: the result of `init`. `init.ts` makes it, `group.ts` knows the others. */

import type { PostgradError } from '@postgrad/base'
import { queueMicrotask } from '@postgrad/base/internal'
import type { ShutdownOptions, Worker, WorkerInfo } from '@postgrad/rpc'
import type { WorkerRuntime } from '@postgrad/rpc/internal'
import { checkFunction } from '@postgrad/tensor/internal'
import type { Clock, Store } from '@postgrad/transport'
import { callListener, type Exchange, type PeerHealth } from '@postgrad/transport/internal'
import { stalled } from '../main/cluster-errors.js'
import type { RecoveryListener, StallListener } from '../main/cluster-events.js'
import type { Group } from './group.js'

export interface MemberParts {
  readonly runtime: WorkerRuntime
  readonly rank: number
  readonly store: Store
  /** Others use the store through this process. */
  readonly isServing: boolean
  readonly group: Group
  readonly exchange: Exchange
  readonly clock: Clock
  /** How long a worker has been quiet that is suspected. */
  readonly suspectMs: number
  /** Ends the reading of the group's log, connections and the store. */
  readonly end: () => Promise<void>
}

/** How long rank 0 waits until the others no longer need its store. */
const LAST_MS = 5000

/**
 * This process as a worker of its group: the result of `init`.
 * @example
 * await using member = await init() // reads MASTER_ADDR, MASTER_PORT, RANK and WORLD_SIZE
 * if (member.rank === 0) console.log(await member.run(() => call('worker1', addOne, [x])))
 * await member.shutdown()
 */
export class Member {
  /** The worker that this process is. Within `run`, `currentWorker()` returns it. */
  readonly worker: Worker
  /** The group's store, for small values that all processes share. A role that rank 0's `rights` list needs the right `stores` to use it. PyTorch: the default store. */
  readonly store: Store
  /** The rank of this process, from 0. */
  readonly rank: number
  /** Resolves when this process has ended as a worker, by `shutdown`, `leave`, `close` or its own program. Never rejects. */
  readonly closed: Promise<void>
  private readonly parts: MemberParts
  private ending: Promise<void> | null = null
  private resolveClosed!: () => void
  private readonly lostListeners = new Set<(error: PostgradError) => void>()
  private readonly stallListeners = new Set<StallListener>()
  private readonly recoveryListeners = new Set<RecoveryListener>()
  /** The ids of stalled workers. */
  private readonly stalled = new Set<number>()

  constructor(parts: MemberParts) {
    const { runtime, store, rank } = parts
    this.parts = parts
    this.worker = runtime
    this.store = store
    this.rank = rank
    this.closed = new Promise((resolve) => {
      this.resolveClosed = resolve
    })
    // However this worker ends, by its own program as well (`shutdown`, `leave` or `drain` within `run`): what is around it ends too, or the process would not.
    runtime.onClose(() => queueMicrotask(() => this.endWith(async () => {})))
    parts.group.whenStoreLost((error) => this.storeLost(error))
    parts.exchange.onPeerHealth((worker, health) => this.noteHealth(worker as WorkerInfo, health))
  }

  /** How many processes the group has. In a group without a fixed size: how many it has now. */
  get worldSize(): number {
    return this.parts.group.worldSize
  }

  /**
   * Calls `listener` once, with the error STORE_LOST, when this process has lost the group's store. The process continues, but no longer learns which workers join.
   * If the process that serves the store is on this machine and has only stopped, the store is not lost: see `onWorkerStalled`. Without a listener, postgrad
   * prints a warning. Returns a function that removes the listener.
   * @throws INVALID_ARGUMENT if `listener` is not a function
   */
  onStoreLost(listener: (error: PostgradError) => void): () => void {
    checkFunction('member.onStoreLost', 'the listener', listener)
    this.lostListeners.add(listener)
    return () => this.lostListeners.delete(listener)
  }

  /**
   * Calls `listener` with the error WORKER_STALLED when a connected worker has sent nothing for `connection.suspectMs`, but its process still exists: it computes
   * without an await, or is stopped. A stalled worker on this machine never counts as dead. A worker on another machine counts as dead after `connection.deadMs`.
   * Returns a function that removes the listener.
   * @throws INVALID_ARGUMENT if `listener` is not a function
   */
  onWorkerStalled(listener: StallListener): () => void {
    checkFunction('member.onWorkerStalled', 'the listener', listener)
    this.stallListeners.add(listener)
    return () => this.stallListeners.delete(listener)
  }

  /** Calls `listener` when a stalled worker continues. Returns a function that removes the listener. @throws INVALID_ARGUMENT */
  onWorkerRecovered(listener: RecoveryListener): () => void {
    checkFunction('member.onWorkerRecovered', 'the listener', listener)
    this.recoveryListeners.add(listener)
    return () => this.recoveryListeners.delete(listener)
  }

  /** Runs `fn(...args)` as this worker, and resolves with its result. `call`, `remote`, contexts and groups work only within such a run. @throws the error of `fn` */
  async run<A extends unknown[], T>(fn: (...args: A) => T, ...args: A): Promise<Awaited<T>> {
    return await this.parts.runtime.run(() => fn(...args))
  }

  /**
   * Ends this worker together with all others: when each worker has called `shutdown`, and no call is running anywhere. Even if `shutdown` rejects, this worker has
   * ended. PyTorch: `rpc.shutdown`.
   * @throws GROUP_TIMEOUT after `timeoutMs`; WORKER_DIED if a worker dies meanwhile; TIMEOUT_INVALID; NOT_PERMITTED if this worker's role lacks the right
   * `groups`: the worker has left, and the others continue; call `leave` instead
   */
  shutdown(options?: ShutdownOptions): Promise<void> {
    return this.endWith(() => this.parts.runtime.shutdown(options))
  }

  /** Ends this worker in order, while the others continue. See `leave` of 'postgrad'. @throws GROUP_TIMEOUT after `timeoutMs`; TIMEOUT_INVALID */
  leave(options?: { readonly timeoutMs?: number }): Promise<void> {
    return this.endWith(() => this.parts.runtime.leave(options))
  }

  /**
   * Ends this worker at once. Its pending calls reject with RPC_SHUT_DOWN. Idempotent. After `shutdown` or `leave` it waits for that, and does not report its error
   * again: the caller of those has it.
   */
  close(): Promise<void> {
    return this.ending === null ? this.endWith(() => this.parts.runtime.close()) : this.ending.catch(() => {})
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close()
  }

  private noteHealth({ name, id }: WorkerInfo, health: PeerHealth): void {
    const worker = { name, id }
    if (health === 'standing-still') {
      this.stalled.add(id)
      const error = stalled(worker, this.parts.suspectMs, 'init')
      this.tell(this.stallListeners, worker, error)
    } else if (health === 'well' && this.stalled.delete(id)) {
      this.tell(this.recoveryListeners, worker)
    }
  }

  private storeLost(error: PostgradError): void {
    // Others may have ended before it.
    if (this.ending !== null) return
    if (this.lostListeners.size === 0) process.emitWarning(error)
    this.tell(this.lostListeners, error)
  }

  private tell<Args extends readonly unknown[]>(listeners: ReadonlySet<(...args: Args) => void>, ...args: Args): void {
    for (const listener of [...listeners]) callListener(this.parts.clock, () => listener(...args))
  }

  private endWith(how: () => Promise<void>): Promise<void> {
    this.ending ??= this.end(how)
    return this.ending
  }

  private async end(how: () => Promise<void>): Promise<void> {
    const { group, isServing, end } = this.parts
    try {
      await how()
    } finally {
      // The store may be gone already, with rank 0.
      await group.leave().catch(() => {})
      if (isServing) await group.untilAlone(LAST_MS)
      await end()
      this.resolveClosed()
    }
  }
}
