/**
 * Starts and watches the workers of a cluster, lets them leave or restart, and knows when none is left. `cluster.ts` calls it for users, `remote-members.ts` links
 * workers, `ending.ts` ends them.
 */
import { isPostgradError, type PostgradError } from '@postgrad/base'
import { checkTime, timeLimit } from '@postgrad/base/internal'
import type { Target, WorkerInfo } from '@postgrad/rpc'
import { unknownWorker } from '@postgrad/rpc/internal'
import type { Clock } from '@postgrad/transport'
import type { RemoteWorker, WorkerEnd } from '../admin/remote-worker.js'
import { nameTaken, notReady } from './cluster-errors.js'
import type { ClusterEvents } from './cluster-events.js'
import type { Ending } from './ending.js'
import type { Gate } from './gate.js'
import type { News } from './news.js'
import type { RemoteMembers } from './remote-members.js'
import { type SupervisionHost, type SupervisionOptions, WorkerSupervisor } from './supervision.js'

export interface LifecycleParts {
  readonly members: RemoteMembers
  readonly news: News
  readonly clock: Clock
  readonly gate: Gate
  readonly events: ClusterEvents
  readonly ending: Ending
  readonly launchTimeoutMs: number
  /** Null: only the program restarts dead workers. */
  readonly supervision: SupervisionOptions | null
  /** Whether a call of the main thread rejects with this worker's death. */
  isHeardByMain(workerId: number): boolean
  /** Whether the main thread's link to this worker has ended. */
  isLostToMain(workerId: number): boolean
  /** Ends the cluster at once. */
  close(): Promise<void>
}

/** Of the name that somebody waits for. */
interface Seen {
  /** The last one that had it; it may have left since. */
  worker: RemoteWorker | undefined
  /** Its supervisor does not start it again. */
  isDown: boolean
}

interface TimeLimit {
  readonly timeoutMs?: number
}

const LEAVE_MS = 5000
/** How long after its peers this thread may learn of a worker's end. */
const END_NEWS_MS = 1000

export class Lifecycle {
  /** Of workers whose thread ended by itself. */
  readonly deaths: PostgradError[] = []
  /** Resolves when no worker is left, none is being started, and none will be. */
  readonly emptied: Promise<void>
  /** SUPERVISOR_GAVE_UP, if that ends the cluster. */
  gaveUp: PostgradError | null = null
  private readonly parts: LifecycleParts
  /** Whose end somebody waits for: `kill` resolves with it, `leave` rejects with a death. */
  private readonly awaited = new Set<number>()
  /** Names whose worker leaves for another, or is about to be followed by it. */
  private readonly restarting = new Set<string>()
  private supervisor: WorkerSupervisor | null = null
  /** Joins and restarts under way: meanwhile a cluster without a worker has not ended. */
  private changes = 0
  /** Workers whose end was not reported yet. */
  private watched = 0
  private resolveEmptied!: () => void

  constructor(parts: LifecycleParts) {
    this.parts = parts
    this.emptied = new Promise((resolve) => {
      this.resolveEmptied = resolve
    })
  }

  /** The first of them. */
  async begin(names: readonly string[]): Promise<void> {
    const { supervision, launchTimeoutMs } = this.parts
    if (supervision === null) await this.start('launch', names, launchTimeoutMs)
    else await this.supervise(names, supervision)
  }

  /** See `cluster.join`. */
  async join(op: string, names: readonly string[], options: TimeLimit): Promise<readonly WorkerInfo[]> {
    this.parts.gate.admit(op)
    const limitMs = this.limitMs(op, options)
    const { supervisor } = this
    return supervisor === null ? this.start(op, names, limitMs) : this.change(() => supervisor.join(op, names, limitMs))
  }

  /** See `cluster.leave`. */
  async leave(op: string, target: Target, timeoutMs: number | undefined): Promise<void> {
    const { members } = this.parts
    const worker = this.find(op, target)
    const { name } = worker.info
    const { supervisor } = this
    if (supervisor !== null) return this.change(() => supervisor.leave(op, name, target))
    if (this.restarting.has(name) || members.isStarting(name)) throw nameTaken(op, name, 'is being started again')
    this.awaited.add(worker.info.id)
    if (!worker.dead) await this.part(op, worker, timeoutMs)
    members.remove(name)
  }

  /** See `cluster.restart`. */
  async restart(op: string, target: Target, options: TimeLimit & { readonly leaveTimeoutMs?: number }): Promise<WorkerInfo> {
    const worker = this.find(op, target)
    const { name } = worker.info
    const { supervisor } = this
    if (supervisor !== null) return this.change(() => supervisor.restartWorker(op, name, target))
    if (this.restarting.has(name)) throw nameTaken(op, name, 'is being started again')
    if (!worker.dead && worker.leaving !== null) throw nameTaken(op, name, 'is leaving')
    this.restarting.add(name)
    return this.change(async () => {
      try {
        await this.leaveForSuccessor(op, worker, options.leaveTimeoutMs)
        const [info] = await this.start(op, [name], this.limitMs(op, options))
        return info!
      } finally {
        this.restarting.delete(name)
      }
    })
  }

  /** See `cluster.ready`. */
  async ready(op: string, name: string, options: TimeLimit): Promise<WorkerInfo> {
    const { news, clock, gate } = this.parts
    const limitMs = this.limitMs(op, options)
    const endMs = clock.now() + limitMs
    const seen: Seen = { worker: undefined, isDown: false }
    let found: WorkerInfo | null = null
    const isFound = (): boolean => {
      gate.admit(op)
      found = this.memberNamed(op, name, seen)
      if (found !== null) return true
      // The end of its thread is news.
      if (this.isAboutToEnd(seen.worker)) return false
      const supervisor = this.supervisorOf(name)
      void supervisor?.settled().then(() => {
        seen.isDown = supervisor.has(name) && supervisor.isDown(name)
        news.tell()
      })
      return false
    }
    if (await news.until(isFound, () => endMs)) return found!
    throw notReady(op, name, limitMs)
  }

  async kill(worker: RemoteWorker): Promise<void> {
    this.awaited.add(worker.info.id)
    await worker.terminate()
  }

  /** @throws UNKNOWN_WORKER */
  find(op: string, target: Target): RemoteWorker {
    const wanted = typeof target === 'object' ? target?.id : target
    const found = this.parts.members.threads.find(({ info }) => info.name === wanted || info.id === wanted)
    if (found !== undefined) return found
    throw unknownWorker(op, wanted, this.parts.members.workers)
  }

  /** How a worker died, which its peers may see a moment before this thread does; null if it lives on, or nobody has that id. */
  async endOf(workerId: number): Promise<PostgradError | null> {
    const worker = this.parts.members.threads.find(({ info }) => info.id === workerId)
    if (worker === undefined) return this.deaths.find(({ values }) => values.workerId === workerId) ?? null
    return this.parts.ending.deathWithin(worker, END_NEWS_MS)
  }

  /** Nothing is started again from now on. */
  async stop(): Promise<void> {
    await this.supervisor?.stop()
  }

  endIfEmpty(): void {
    if (!this.isEmpty) return
    // What it is about to start again counts.
    if (this.supervisor === null) this.resolveEmptied()
    else void this.supervisor.settled().then((isIdle) => isIdle && this.isEmpty && this.resolveEmptied())
  }

  private get isEmpty(): boolean {
    return this.changes === 0 && this.watched === 0
  }

  // --- inside

  private limitMs(op: string, { timeoutMs }: { readonly timeoutMs?: number }): number {
    return timeoutMs === undefined ? this.parts.launchTimeoutMs : timeLimit(op, timeoutMs)
  }

  private start(op: string, names: readonly string[], limitMs: number): Promise<readonly WorkerInfo[]> {
    this.parts.gate.admit(op)
    return this.change(async () => {
      const workers = await this.parts.members.start(op, names, limitMs)
      this.parts.gate.admit(op)
      for (const worker of workers) void this.watch(worker)
      return workers.map(({ info }) => info)
    })
  }

  private async supervise(names: readonly string[], options: SupervisionOptions): Promise<void> {
    const { members, clock, gate, ending, launchTimeoutMs } = this.parts
    const host: SupervisionHost = {
      clock,
      launchTimeoutMs,
      workers: () => members.workers,
      start: async (op, name, timeoutMs) => {
        const [worker] = await members.start(op, [name], timeoutMs)
        void this.watch(worker!)
        return worker!
      },
      stop: (worker, deadlineMs) => this.part('cluster', worker, Math.min(deadlineMs, ending.leftMs)),
      forget: (name) => members.remove(name),
      closedError: gate.closedError,
    }
    const supervisor = new WorkerSupervisor(names, options, host)
    try {
      await supervisor.start()
    } catch (error) {
      throw isPostgradError(error, 'SUPERVISOR_START_FAILED') ? error.cause : error
    }
    this.supervisor = supervisor
    void supervisor.exited.then(async ({ reason }) => {
      if (reason !== undefined) {
        this.gaveUp = reason as PostgradError
        // The program's own `close` reports leaks.
        await this.parts.close().catch(() => {})
      }
      this.supervisor = null
      this.endIfEmpty()
    })
  }

  private supervisorOf(name: string): WorkerSupervisor | null {
    return this.supervisor?.has(name) ? this.supervisor : null
  }

  /**
   * This thread has asked for its end, or has lost the link to it: its death is only a matter of time. A program that waits for `ready` after WORKER_DIED
   * must not get the dead worker once more, or it would try again and again, in one turn, in which the end of the thread cannot be learnt.
   */
  private isAboutToEnd(worker: RemoteWorker | undefined): boolean {
    return worker !== undefined && !worker.dead && (worker.isTerminated || this.parts.isLostToMain(worker.info.id))
  }

  /** Null: it is being started, leaves, or is about to end. @throws UNKNOWN_WORKER, WORKER_DIED */
  private memberNamed(op: string, name: string, seen: Seen): WorkerInfo | null {
    const { members } = this.parts
    const worker = members.threads.find(({ info }) => info.name === name) ?? seen.worker
    seen.worker = worker
    const supervisor = this.supervisorOf(name)
    const isStarting = members.isStarting(name) || this.restarting.has(name)
    const isAlive = worker !== undefined && !worker.dead
    // A supervisor has it as its child when onRestart is done with it.
    const isThere = supervisor === null ? !isStarting : supervisor.child(name)?.worker === worker
    if (isAlive && worker.leaving === null && isThere && !this.isAboutToEnd(worker)) return worker.info
    if (!isStarting && !isAlive && (supervisor === null || seen.isDown)) {
      throw worker === undefined ? unknownWorker(op, name, members.workers) : worker.death(op)
    }
    return null
  }

  /** A worker that is alive leaves for its successor. */
  private async leaveForSuccessor(op: string, worker: RemoteWorker, timeoutMs: number | undefined): Promise<void> {
    try {
      if (!worker.dead) await this.part(op, worker, timeoutMs)
    } catch (error) {
      // It was dying: a death as any other, and its successor is wanted all the more.
      if (!worker.dead) throw error
    }
  }

  private async part(op: string, worker: RemoteWorker, timeoutMs = LEAVE_MS): Promise<void> {
    const { ending, gate, clock } = this.parts
    const endMs = clock.now() + checkTime(op, timeoutMs, '0 for at once')
    // A closed one has notified the others.
    worker.leaving ??= ending.depart(op, worker, endMs, () => gate.isOpen && !worker.hasClosed)
    return worker.leaving
  }

  /** Its program has ended the worker by `shutdown`, `leave` or `drain`: when its runs are done, it leaves as by `cluster.leave`, and its thread ends. */
  private async leaveByItself(worker: RemoteWorker): Promise<void> {
    const { gate, members, news } = this.parts
    const { name } = worker.info
    // What closes it here has its own way, `cluster.leave` or `cluster.close`.
    if (worker.leaving !== null || !gate.isOpen) return
    members.depart(worker)
    await news.until(
      () => worker.dead || worker.waitingCount === 0,
      () => Number.POSITIVE_INFINITY,
    )
    if (worker.dead || worker.leaving !== null || !gate.isOpen) return
    const supervisor = this.supervisorOf(name)
    if (supervisor !== null) return this.change(() => supervisor.leave('cluster', name, name))
    return this.change(async () => {
      await this.part('cluster', worker)
      members.remove(name)
    })
  }

  /** While `work` runs, a cluster without a thread has not ended. */
  private async change<T>(work: () => Promise<T>): Promise<T> {
    this.changes++
    try {
      return await work()
    } finally {
      this.changes--
      this.parts.news.tell()
      this.endIfEmpty()
    }
  }

  private async watch(worker: RemoteWorker): Promise<void> {
    const { events, gate, news } = this.parts
    this.watched++
    events.joined(worker)
    news.tell()
    // If it dies meanwhile, that is reported as any death; or the cluster may be closed.
    worker.onClosed = () => void this.leaveByItself(worker).catch(() => {})
    if (worker.hasClosed) worker.onClosed()
    const end = await worker.ended
    events.ended(worker, end)
    if (!worker.isExpectedToEnd) this.onDeath(worker, end)
    else if (gate.isOpen) events.left(worker)
    this.awaited.delete(worker.info.id)
    this.watched--
    news.tell()
    this.endIfEmpty()
  }

  private onDeath(worker: RemoteWorker, end: WorkerEnd): void {
    const { id } = worker.info
    const error = worker.death('cluster')
    // Until it is read a stack holds the objects of its frames: the whole thread, for as long as the cluster lives.
    void error.stack
    this.deaths.push(error)
    // A supervisor starts nothing again once `close` has begun.
    const isSupervised = this.parts.supervision !== null && this.parts.gate.isOpen
    const isHeard = isSupervised || end.isHeard || this.awaited.has(id) || this.parts.isHeardByMain(id)
    this.parts.events.died(worker, error, isHeard)
  }
}
