/** A process of a group: the result of `init`. `init.ts` makes it, `group.ts` knows the others. */

import type { PostgradError } from '@postgrad/base'
import { queueMicrotask } from '@postgrad/base/internal'
import type { ShutdownOptions, Worker, WorkerInfo } from '@postgrad/rpc'
import type { WorkerRuntime } from '@postgrad/rpc/internal'
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
 * This process as a worker of its group, from `init` until its end.
 * @example
 * await using member = await init() // reads MASTER_ADDR, MASTER_PORT, RANK and WORLD_SIZE
 * if (member.rank === 0) console.log(await member.run(() => call('worker1', addOne, [x])))
 * await member.shutdown()
 */
export class Member {
  /** This process as the others see it; in `run` it is `currentWorker()`. */
  readonly worker: Worker
  /** The group's store, by which its processes may agree on what they like, those in a role that `rights` name only with `stores`. PyTorch: the default store. */
  readonly store: Store
  /** This process's place, from 0. */
  readonly rank: number
  /** Resolves when this process is a worker no more, by its own doing. */
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

  /** How many processes there are: in a group of no fixed size those that are there now. */
  get worldSize(): number {
    return this.parts.group.worldSize
  }

  /**
   * Calls `listener` once, with STORE_LOST, when the group's store has ended for this process. The process continues, but no longer learns which workers join. A store whose process
   * has stopped on this machine has not ended: see `onWorkerStalled`. Without a listener, postgrad prints a warning. Returns a function that removes the listener.
   */
  onStoreLost(listener: (error: PostgradError) => void): () => void {
    this.lostListeners.add(listener)
    return () => this.lostListeners.delete(listener)
  }

  /**
   * Called with WORKER_STALLED when a worker that this one is connected with has been quiet for `connection.suspectMs`, and its process is there: it computes without an
   * await, or is stopped. On this machine such a worker never counts as dead; on another machine it does after `connection.deadMs`. Returns a function that removes the listener.
   */
  onWorkerStalled(listener: StallListener): () => void {
    this.stallListeners.add(listener)
    return () => this.stallListeners.delete(listener)
  }

  /** Called when a stalled worker continues. Returns a function that removes the listener. */
  onWorkerRecovered(listener: RecoveryListener): () => void {
    this.recoveryListeners.add(listener)
    return () => this.recoveryListeners.delete(listener)
  }

  /** Runs `fn(...args)` as this worker, so that `call`, `remote`, contexts and other functions in it know the calling worker. Resolves with its result. */
  async run<A extends unknown[], T>(fn: (...args: A) => T, ...args: A): Promise<Awaited<T>> {
    return await this.parts.runtime.run(() => fn(...args))
  }

  /**
   * Ends this worker together with all others, when each has called this and nothing is under way anywhere. The local end comes about whatever goes wrong.
   * @throws (rejects) GROUP_TIMEOUT, WORKER_DIED, TIMEOUT_INVALID. PyTorch: `rpc.shutdown`
   */
  shutdown(options?: ShutdownOptions): Promise<void> {
    return this.endWith(() => this.parts.runtime.shutdown(options))
  }

  /** Ends this worker while the others continue: see `leave`. @throws (rejects) GROUP_TIMEOUT, TIMEOUT_INVALID */
  leave(options?: { readonly timeoutMs?: number }): Promise<void> {
    return this.endWith(() => this.parts.runtime.leave(options))
  }

  /** Ends this worker at once: what waits rejects with RPC_SHUT_DOWN. Idempotent. */
  close(): Promise<void> {
    return this.endWith(() => this.parts.runtime.close())
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
