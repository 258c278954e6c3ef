/**
 * A local cluster: the workers' threads, their controllers, and one clean end for all of them. `launch` makes it; the main thread is not one
 * of its workers.
 */
import { PostgradError } from '@postgrad/base'
import { checkTime } from '@postgrad/base/internal'
import type { Target, WorkerInfo } from '@postgrad/rpc'
import type { Clock } from '@postgrad/transport'
import type { PayloadCodec } from '@postgrad/wire/internal'
import { Controller, type ControllerOptions } from './controller.js'
import type { ThreadUsage } from './usage.js'
import type { WorkerThread } from './worker-thread.js'

export interface CloseOptions {
  /** How long runs and calls that are under way may still take, in ms; 0 cuts them off at once. Default 5000. */
  readonly timeoutMs?: number
}

/** How a cluster ended. */
export interface ClusterEnd {
  /** One WORKER_DIED for each worker whose thread ended before the cluster was closed. */
  readonly deaths: readonly PostgradError[]
}

/** Counts of a worker's runtime (pendingCalls, autogradContexts, ownerRRefs, …) and of its thread. */
export type WorkerDebugInfo = ThreadUsage & Readonly<Record<string, number>>

export type DeathListener = (worker: WorkerInfo, error: PostgradError) => void

const CLOSE_TIMEOUT_MS = 5000
/** A thread whose runtime is closed ends by itself, unless the program left a timer or a socket open; then it is ended after this. */
const EXIT_GRACE_MS = 500
/** How often a closing cluster looks whether its workers are idle. */
const QUIET_POLL_MS = 10
/** How long a worker that should be idle may take to answer while the cluster closes. */
const ANSWER_MS = 1000

export class Cluster {
  /** All workers, in the order of their ids, dead ones included. */
  readonly workers: readonly WorkerInfo[]
  /** Resolves when the last thread has ended, by `close` or otherwise; never rejects. */
  readonly closed: Promise<ClusterEnd>
  private readonly threads: readonly WorkerThread[]
  private readonly payloads: PayloadCodec
  private readonly clock: Clock
  private readonly deaths: PostgradError[] = []
  private readonly deathListeners = new Set<DeathListener>()
  private readonly killed = new Set<number>()
  private closing: Promise<void> | null = null
  /** Until when a closing cluster lets what is under way go on, by its clock. */
  private quietDeadline = Number.POSITIVE_INFINITY

  constructor(threads: readonly WorkerThread[], payloads: PayloadCodec, clock: Clock) {
    this.threads = threads
    this.payloads = payloads
    this.clock = clock
    this.workers = threads.map(({ info }) => info)
    this.closed = Promise.all(threads.map((thread) => this.watch(thread))).then(() => ({ deaths: this.deaths }))
  }

  /** The controller of a worker, by name, id or info. @throws UNKNOWN_WORKER, TIMEOUT_INVALID */
  on(target: Target, options: ControllerOptions = {}): Controller {
    return new Controller(this.thread(target), this.payloads, options, (op) => this.admit(op))
  }

  /** Ends a worker's thread at any instruction, as a crash would. Resolves when it is gone. @throws UNKNOWN_WORKER */
  async kill(target: Target): Promise<void> {
    const thread = this.thread(target)
    this.killed.add(thread.info.id)
    await thread.terminate()
  }

  /** Called when a worker's thread ends before the cluster is closed, with WORKER_DIED. Returns what takes the listener away. */
  onWorkerDeath(listener: DeathListener): () => void {
    this.deathListeners.add(listener)
    return () => this.deathListeners.delete(listener)
  }

  /** What every live worker holds, by name: pending calls, contexts, RRefs, ports, memory of its thread in bytes. */
  async debugInfo(): Promise<Record<string, WorkerDebugInfo>> {
    this.admit('debugInfo')
    const infos: Record<string, WorkerDebugInfo> = {}
    await Promise.all(
      this.threads.map(async (thread) => {
        try {
          if (!thread.dead) infos[thread.info.name] = await this.infoOf(thread, Number.POSITIVE_INFINITY)
        } catch (error) {
          // One that dies while it is asked is not alive any more.
          if (!thread.dead) throw error
        }
      }),
    )
    return Object.fromEntries(this.workers.flatMap(({ name }) => (infos[name] === undefined ? [] : [[name, infos[name]]])))
  }

  /**
   * Ends the cluster: lets what is under way finish (at most `timeoutMs`), closes every runtime and its ports, and lets the threads end; one that
   * does not end by itself is ended. Runs that were not done are rejected with CLUSTER_CLOSED. Idempotent: a second call can only hasten the first.
   * Never rejects.
   * @throws TIMEOUT_INVALID
   */
  close(options: CloseOptions = {}): Promise<void> {
    const timeoutMs = checkTime('cluster.close', options.timeoutMs ?? CLOSE_TIMEOUT_MS, '0 for at once')
    this.quietDeadline = Math.min(this.quietDeadline, this.clock.now() + timeoutMs)
    this.closing ??= this.shutDown()
    return this.closing
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close()
  }

  private async shutDown(): Promise<void> {
    await this.untilQuiet()
    for (const thread of this.threads) thread.rejectAll(closed)
    // All at once: whoever closes first is gone for the others, and nobody waits for anybody any more.
    await Promise.all(this.threads.map((thread) => this.end(thread)))
  }

  /** Waits until no run is under way and, in two looks in a row, no worker has a call under way (PyTorch's shutdown sums active calls likewise). */
  private async untilQuiet(): Promise<void> {
    let quiet = 0
    while (quiet < 2) {
      const left = this.quietDeadline - this.clock.now()
      if (left <= 0) return
      if (this.threads.some((thread) => thread.waitingCount > 0)) quiet = 0
      else quiet = (await this.pendingCalls(Math.min(left, ANSWER_MS))) === 0 ? quiet + 1 : 0
      if (quiet < 2) await this.sleep(QUIET_POLL_MS)
    }
  }

  /** Calls under way on all live workers; a worker that died or did not answer has none that could still end. */
  private async pendingCalls(timeoutMs: number): Promise<number> {
    const alive = this.threads.filter((thread) => !thread.dead)
    const infos = await Promise.allSettled(alive.map((thread) => this.infoOf(thread, timeoutMs)))
    return infos.reduce(
      (sum, info) => sum + (info.status === 'fulfilled' ? (info.value.pendingCalls ?? 0) + (info.value.servingCalls ?? 0) : 0),
      0,
    )
  }

  private async end(thread: WorkerThread): Promise<void> {
    if (!thread.dead) {
      const asked = await thread
        .request('close', (facade) => facade.close(), ANSWER_MS)
        .then(
          () => true,
          () => false,
        )
      thread.release()
      // A worker that did not answer is wedged or dead: there is no use in waiting for it.
      if (asked && (await this.withinGrace(thread))) return
    }
    await thread.terminate()
  }

  private withinGrace(thread: WorkerThread): Promise<boolean> {
    return new Promise((resolve) => {
      const timer = this.clock.setTimer(EXIT_GRACE_MS, () => resolve(false))
      void thread.ended.then(() => {
        timer.cancel()
        resolve(true)
      })
    })
  }

  private async watch(thread: WorkerThread): Promise<void> {
    const end = await thread.ended
    if (this.closing !== null) return
    const error = thread.died('cluster', end)
    this.deaths.push(error)
    for (const listener of [...this.deathListeners]) this.tell(listener, thread.info, error)
    // A death that nobody asked for and nobody has heard of must not pass in silence.
    if (this.deathListeners.size === 0 && end.rejected === 0 && !this.killed.has(thread.info.id))
      process.emitWarning(error.message, { type: error.code })
  }

  /** What a listener throws is the program's own uncaught error: it neither silences the next listener nor keeps `closed` from resolving. */
  private tell(listener: DeathListener, worker: WorkerInfo, error: PostgradError): void {
    try {
      listener(worker, error)
    } catch (thrown) {
      this.clock.defer(() => {
        throw thrown
      })
    }
  }

  private async infoOf(thread: WorkerThread, timeoutMs: number): Promise<WorkerDebugInfo> {
    return (await thread.request('debugInfo', (facade) => facade.debugInfo(), timeoutMs)) as WorkerDebugInfo
  }

  private thread(target: Target): WorkerThread {
    const wanted = typeof target === 'object' ? target.id : target
    const found = this.threads.find(({ info }) => info.name === wanted || info.id === wanted)
    if (found !== undefined) return found
    const known = this.workers.map(({ name }) => name)
    throw new PostgradError('UNKNOWN_WORKER', {
      op: 'cluster.on',
      expected: `one of ${known.join(', ')}`,
      got: String(wanted),
      remedy: 'Name a worker that was launched.',
      values: { target: String(wanted), known },
    })
  }

  private admit(op: string): void {
    if (this.closing !== null) throw closed(op)
  }

  private sleep(delayMs: number): Promise<void> {
    return new Promise((resolve) => this.clock.setTimer(delayMs, resolve))
  }
}

function closed(op: string): PostgradError {
  return new PostgradError('CLUSTER_CLOSED', {
    op,
    message: 'the cluster has been closed',
    remedy: 'Await what runs before close(), or give close({ timeoutMs }) more time.',
  })
}
