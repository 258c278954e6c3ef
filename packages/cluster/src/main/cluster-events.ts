/**
 * Reports which workers of a cluster joined, left, died, stalled and recovered, to listeners for one of these and to inspectors (`inspect-events.ts`).
 * If a worker dies or stalls without a listener, the process prints a warning.
 */
import type { PostgradError } from '@postgrad/base'
import { warnOfDeath } from '@postgrad/base/internal'
import type { WorkerInfo } from '@postgrad/rpc'
import { checkFunction } from '@postgrad/tensor/internal'
import type { Clock } from '@postgrad/transport'
import { callListener } from '@postgrad/transport/internal'
import { type ClusterEventListener, ClusterInspection } from '../admin/inspect-events.js'
import type { RemoteWorker, WorkerEnd } from '../admin/remote-worker.js'
import { StallWatch } from '../host/heartbeat.js'
import { stalled } from './cluster-errors.js'

/** A function that receives a stalled worker and the error WORKER_STALLED. */
export type StallListener = (worker: WorkerInfo, error: PostgradError) => void
/** A function that receives a worker that had stalled and continues. */
export type RecoveryListener = (worker: WorkerInfo) => void
/** A function that receives a worker that has left: it ended in order, and did not crash. */
export type LeaveListener = (worker: WorkerInfo) => void
/** A function that receives a worker that has died, and the error WORKER_DIED with the cause in `values.cause`. */
export type DeathListener = (worker: WorkerInfo, error: PostgradError) => void

/** How long a worker may take to answer that it reports its events. */
const ANSWER_MS = 1000

export class ClusterEvents {
  private readonly clock: Clock
  readonly deaths = new Set<DeathListener>()
  readonly leaves = new Set<LeaveListener>()
  readonly stalls = new Set<StallListener>()
  readonly recoveries = new Set<RecoveryListener>()
  private readonly inspection: ClusterInspection
  /** Null: nobody looks. */
  private readonly watch: StallWatch<RemoteWorker> | null

  constructor(clock: Clock, stallMs: number, onStall: 'report' | 'kill') {
    this.clock = clock
    this.inspection = new ClusterInspection((fn) => callListener(clock, fn))
    this.watch =
      stallMs === 0
        ? null
        : new StallWatch(stallMs, clock.now(), {
            onStalled: (worker, silentMs) => this.onStalled(worker, silentMs, onStall),
            onRecovered: ({ info }) => {
              this.inspection.saw(info, { kind: 'recovered' })
              this.tell(this.recoveries, (listener) => listener(info))
            },
          })
  }

  /** Adds to one of these. Returns what takes the listener away. @throws INVALID_ARGUMENT */
  listen<L>(op: string, listeners: Set<L>, listener: L): () => void {
    checkFunction(op, 'the listener', listener)
    listeners.add(listener)
    return () => listeners.delete(listener)
  }

  /** Looks for stalls from now on. */
  start(): void {
    this.watch?.start(
      () => this.clock.now(),
      () => this.clock.isHeld?.() === true,
    )
  }

  stop(): void {
    this.watch?.stop()
  }

  isStalled(worker: RemoteWorker): boolean {
    return this.watch?.isStalled(worker) === true
  }

  /** It is a member from now on. */
  joined(worker: RemoteWorker): void {
    this.watch?.watch(worker, worker.beats)
    worker.onInspected = (post) => this.inspection.onPost(worker.info, post)
    this.inspection.saw(worker.info, { kind: 'joined' })
    if (this.inspection.isWanted) void this.syncInspection(worker)
  }

  ended(worker: RemoteWorker, { cause }: WorkerEnd): void {
    this.watch?.unwatch(worker)
    this.inspection.saw(worker.info, cause === 'left' ? { kind: 'left' } : { kind: 'died', cause })
  }

  left({ info }: RemoteWorker): void {
    this.tell(this.leaves, (listener) => listener(info))
  }

  /** Warns of a death that nobody asked for and that nobody has learned of. */
  died({ info }: RemoteWorker, error: PostgradError, isHeard: boolean): void {
    this.tell(this.deaths, (listener) => listener(info, error))
    if (!isHeard && this.deaths.size === 0) warnOfDeath(error)
  }

  /** See `cluster.inspect`. @param running the workers at that moment */
  async inspect(listener: ClusterEventListener, running: () => readonly RemoteWorker[]): Promise<() => Promise<void>> {
    checkFunction('cluster.inspect', 'the listener', listener)
    const workers = running()
    const ids = workers.map(({ info }) => info.id)
    const inspector = this.inspection.add(listener, ids)
    const ask = async (worker: RemoteWorker): Promise<void> => {
      await this.syncInspection(worker)
      inspector.unasked.delete(worker.info.id)
    }
    await Promise.all(workers.map(ask))
    return async () => {
      inspector.isLeaving = true
      await Promise.all(running().map((worker) => this.syncInspection(worker)))
      this.inspection.remove(inspector)
    }
  }

  /** Makes the worker report its events, or stop, as was wanted last. Gives up a busy or dead worker. */
  private async syncInspection(worker: RemoteWorker): Promise<void> {
    await worker.ask('inspect', [this.inspection.isWanted], { timeoutMs: ANSWER_MS }).catch(() => {})
  }

  private onStalled(worker: RemoteWorker, silentMs: number, onStall: 'report' | 'kill'): void {
    const error = stalled(worker.info, silentMs)
    this.inspection.saw(worker.info, { kind: 'stalled', silentMs })
    this.tell(this.stalls, (listener) => listener(worker.info, error))
    if (onStall === 'kill') void worker.terminate('stalled')
    else if (this.stalls.size === 0) process.emitWarning(error.message, { type: error.code })
  }

  private tell<L>(listeners: ReadonlySet<L>, call: (listener: L) => void): void {
    for (const listener of [...listeners]) callListener(this.clock, () => call(listener))
  }
}
