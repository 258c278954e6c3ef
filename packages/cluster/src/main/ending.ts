/**
 * Ends workers: one that leaves, or all of them when a cluster is closed. A closing cluster knows by counting that nothing is under way, as the
 * workers' own shutdown does (Note [The end of a group] in rpc's `shutdown.ts`): the main thread leads, and each worker reports whenever it is quiet.
 */
import type { PostgradError } from '@postgrad/base'
import { Tally } from '@postgrad/rpc/internal'
import type { Clock } from '@postgrad/transport'
import type { RemoteWorker } from '../admin/remote-worker.js'
import { MAIN_ID } from '../membership/roster.js'
import type { MainThread } from './main-thread.js'
import type { News } from './news.js'
import type { RemoteMembers } from './remote-members.js'

/** A thread whose runtime is closed ends by itself, unless the program left a timer or a socket open; then it is ended after this. */
const EXIT_GRACE_MS = 500
/** How long a worker that should be idle may take to answer while the cluster closes. */
export const ANSWER_MS = 1000
/** Once more, for one that did not. */
const LAST_ANSWER_MS = 200

export interface EndingParts {
  readonly members: RemoteMembers
  readonly main: MainThread
  readonly news: News
  readonly clock: Clock
}

export class Ending {
  /** When a closing cluster stops waiting for calls and runs, by its clock. */
  deadlineMs = Number.POSITIVE_INFINITY
  graceMs = EXIT_GRACE_MS
  private readonly parts: EndingParts
  /** Those that have been asked to report. */
  private readonly asked = new Set<RemoteWorker>()
  /** Those that did not answer: they are not waited for as long again. A worker that died or did not answer has nothing under way that could still end. */
  private readonly silent = new Set<RemoteWorker>()
  private readonly tally = new Tally()

  constructor(parts: EndingParts) {
    this.parts = parts
  }

  get leftMs(): number {
    return Math.max(0, this.deadlineMs - this.parts.clock.now())
  }

  /** Those that have answered. */
  get answering(): readonly RemoteWorker[] {
    return this.parts.members.running.filter((worker) => !this.silent.has(worker))
  }

  /** Waits until no run and no call is under way anywhere, also none that a callback makes, or the time is over. Nothing new is asked of workers by now. */
  async untilQuiet(): Promise<void> {
    const { main, news } = this.parts
    const unwatch = main.onQuiet(() => news.tell())
    await news.until(
      () => this.isQuiet(),
      () => this.deadlineMs,
    )
    unwatch()
  }

  /** Ends a worker in peace: its runs have until then to end, and what it does as one of the group. @throws (rejects) WORKER_DIED */
  async depart(op: string, worker: RemoteWorker, endMs: number, isAlone: () => boolean): Promise<void> {
    const { members, news, clock } = this.parts
    members.depart(worker)
    await news.until(
      () => worker.dead || worker.waitingCount === 0,
      () => endMs,
    )
    // When all end, it need not notify the others.
    await this.end(worker, isAlone() ? Math.max(0, endMs - clock.now()) : 0)
    if (!worker.isExpectedToEnd) throw worker.death(op)
  }

  /** @param leaveMs how long what is under way there may still take; 0: nothing is waited for */
  async end(worker: RemoteWorker, leaveMs: number): Promise<void> {
    if (!worker.dead) {
      const options = { op: 'close', timeoutMs: leaveMs + (this.silent.has(worker) ? LAST_ANSWER_MS : ANSWER_MS) }
      const answer = leaveMs === 0 ? worker.ask('close', [], options) : worker.ask('leave', [leaveMs], options)
      const hasAnswered = await answer.then(
        () => true,
        () => false,
      )
      // One that was dying before it could be asked, or that came to an end of its own instead of an answer, has not left.
      if (hasAnswered || !worker.dead) worker.isExpectedToEnd = true
      worker.release()
      // A worker that did not answer is stuck or dead: it is not waited for.
      if (hasAnswered && (await this.endsWithin(worker, this.graceMs))) return
    }
    await worker.terminate()
  }

  /** Its death, if it ends within that time. */
  async deathWithin(worker: RemoteWorker, limitMs: number): Promise<PostgradError | null> {
    return (await this.endsWithin(worker, limitMs)) ? worker.death('cluster') : null
  }

  private isQuiet(): boolean {
    const { members, main } = this.parts
    const { running } = members
    if (running.some(({ waitingCount }) => waitingCount > 0)) return false
    const unasked = running.filter((worker) => !this.asked.has(worker))
    for (const worker of unasked) void this.askToReport(worker)
    const here = main.countsIfQuiet()
    if (unasked.length > 0 || here === null) return false
    if (here === undefined) this.tally.forget(MAIN_ID)
    else this.tally.note(MAIN_ID, here)
    const ids = this.answering.map(({ info }) => info.id)
    return this.tally.unsettled(here === undefined ? ids : [...ids, MAIN_ID]).length === 0
  }

  private async askToReport(worker: RemoteWorker): Promise<void> {
    const { news } = this.parts
    this.asked.add(worker)
    worker.onQuiet = (counts) => {
      this.silent.delete(worker)
      this.tally.note(worker.info.id, counts)
      news.tell()
    }
    const timeoutMs = Math.min(this.leftMs, ANSWER_MS)
    await worker.ask('reportQuiet', [], { op: 'close', timeoutMs }).catch(() => {
      if (timeoutMs === ANSWER_MS) this.silent.add(worker)
    })
    news.tell()
  }

  private endsWithin(worker: RemoteWorker, limitMs: number): Promise<boolean> {
    return new Promise((resolve) => {
      const timer = this.parts.clock.setTimer(limitMs, () => resolve(false))
      void worker.ended.then(() => {
        timer.cancel()
        resolve(true)
      })
    })
  }
}
