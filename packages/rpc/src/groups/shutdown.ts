/**
 * The end of a whole group: every worker calls `shutdown`, and all of them end when nothing is under way anywhere, which is known by counting
 * and not by time. The rules SHD-1 to SHD-9 are in SPEC.md. PyTorch: `rpc.shutdown`, `_wait_all_workers`, `TensorPipeAgent::join`.
 *
 * Note [The end of a group]. The worker with the smallest name leads. Each member reports to it, whenever it is quiet (`quiet.ts`) and the numbers are
 * new, how many messages it has sent to and received from each other member. Messages count at the receiver when they come off the link.
 * The leader looks at the last report of each: if for every pair one has sent as many as the other has received, nothing is under way.
 * Why: take the moments of these reports as a cut through the run. Links keep order, so if some message had been sent after the cut of its sender
 * and received before the cut of its receiver, the latter would have received more than the former says to have sent. So every message
 * received before the cut was sent before it, and, the numbers being equal, every message sent before the cut was received before it. All
 * were quiet there: nobody had a call to wait for or to serve, nor anything in the mailbox. Only a message makes a quiet worker busy again, and the
 * first such message would have been sent by a worker that was quiet. (Nobody can foresee a message that a program sends on its own, from a timer
 * say, after its worker has called `shutdown`.) A worker that leaves is not a member but may still send: each member's report has its link until
 * the member has noticed its end, and as long as one has, the end of all waits.
 * Then the references are disposed, which sends messages and may run user code; so all is counted once more, and then everybody closes. A
 * worker that connects in between does not end with the others: each of them says LEAVE to it.
 */
import { isPostgradError, type PostgradError, type WorkerId } from '@postgrad/base'
import type { Timer } from '@postgrad/transport'
import { shutDownError } from '../common/rpc-errors.js'
import type { WorkerInfo } from '../common/worker-info.js'
import { Standing } from '../core/peer.js'
import { byName, groupTimeout, LEADER_GRACE_MS, leaderSilent, mayNotEnd } from './group-errors.js'
import { GroupWhat, type Phase, type ReleaseData, type ReportData } from './group-protocol.js'
import type { GroupView } from './group-view.js'
import type { QuietReports } from './quiet.js'
import { Tally } from './traffic.js'

/** One worker's own part: it has called `shutdown` and waits. */
interface Own {
  readonly timeoutMs: number
  /** Changes only when a leader leaves. */
  leader: WorkerInfo
  phase: Phase
  readonly reports: QuietReports
  readonly timer: Timer | null
  end(error: PostgradError | null): void
}

export class GroupEnd {
  private readonly view: GroupView
  private own: Own | null = null
  private ending: Promise<void> | null = null
  /** On the leader: who has called `shutdown`, and the timer of how long that one waits. */
  private readonly joined = new Map<WorkerId, Timer | null>()
  /** On the leader: what they have said in this phase. */
  private readonly tally = new Tally()
  private phase: Phase = 0
  /** The workers that end together, known from RELEASE on. They say LEAVE to a worker that joins later. */
  private circle: ReadonlySet<WorkerId> | null = null
  /** Why it cannot come about any more. */
  private failed: PostgradError | null = null
  private isOver = false

  constructor(view: GroupView) {
    this.view = view
  }

  /** Whether this worker has called `shutdown`, and waits for the others. */
  get isAwaited(): boolean {
    return this.own !== null
  }

  // --- as a member

  shutdown(timeoutMs: number): Promise<void> {
    this.ending ??= this.isOver ? Promise.resolve() : this.run(timeoutMs)
    return this.ending
  }

  private async run(timeoutMs: number): Promise<void> {
    const error = this.failed ?? (await this.over(timeoutMs))
    this.isOver = true
    // The others end without this worker, and must see no death in its end.
    if (isPostgradError(error, 'NOT_PERMITTED')) for (const { id } of this.othersLinked()) this.view.say(id, GroupWhat.LEAVE)
    this.view.core.end()
    if (error !== null) throw error
  }

  private over(timeoutMs: number): Promise<PostgradError | null> {
    return new Promise((resolve) => {
      const { view } = this
      const end = (error: PostgradError | null) => {
        this.own!.reports.stop()
        this.own!.timer?.cancel()
        this.own = null
        resolve(error)
      }
      const leader = this.leader()
      this.own = {
        timeoutMs,
        leader,
        phase: 0,
        reports: view.quiet.reports(
          () => this.ownReport(),
          (data) => this.report(data),
        ),
        timer: this.timer(timeoutMs + LEADER_GRACE_MS, () => end(leaderSilent('shutdown', timeoutMs, this.own!.leader))),
        end,
      }
      this.join()
    })
  }

  private leader(): WorkerInfo {
    return this.members().sort(byName)[0]!
  }

  private members(): WorkerInfo[] {
    return this.view.members().filter(({ id }) => this.isInCircle(id))
  }

  private othersLinked(): WorkerInfo[] {
    return this.view.linked().flatMap(({ info }) => (info.id === this.view.info.id ? [] : [info]))
  }

  private isInCircle(id: WorkerId): boolean {
    return this.circle === null || this.circle.has(id)
  }

  private join(): void {
    const { leader, timeoutMs } = this.own!
    const limitMs = timeoutMs === Number.POSITIVE_INFINITY ? 0 : timeoutMs
    if (leader.id === this.view.info.id) this.onJoin(leader.id, limitMs)
    else this.view.say(leader.id, GroupWhat.JOIN, [limitMs])
  }

  /** Another one leads now. */
  private follow(leader: WorkerInfo): void {
    const own = this.own!
    own.leader = leader
    this.join()
    own.reports.repeat()
  }

  onConnect({ id }: WorkerInfo): void {
    if (this.own === null) return
    if (this.own.phase === 1) {
      // It has come too late to end with this group.
      this.view.say(id, GroupWhat.LEAVE)
      return
    }
    const leader = this.leader()
    if (leader.id !== this.own.leader.id) this.follow(leader)
  }

  private ownReport(): ReportData {
    return [this.own!.phase, this.view.counts((peer) => !peer.isGuest).filter(([peer]) => this.isInCircle(peer))]
  }

  private report(data: ReportData): void {
    const { leader } = this.own!
    if (leader.id === this.view.info.id) this.onReport(leader.id, data)
    else this.view.say(leader.id, GroupWhat.REPORT, data)
  }

  /** Whether that worker leads these, and this one is among them. One that takes no part (any more) has nothing to lose. */
  mayRelease(from: WorkerId, circle: ReleaseData): boolean {
    if (this.own === null) return true
    const { info } = this.view
    const members = this.view.members().filter(({ id }) => circle.includes(id))
    return this.own.phase === 0 && members.some(({ id }) => id === info.id) && members.sort(byName)[0]!.id === from
  }

  /** Whether that worker may say that all are quiet again. */
  mayEnd(from: WorkerId): boolean {
    return this.own === null || (this.own.phase === 1 && this.own.leader.id === from)
  }

  onRelease(from: WorkerId, circle: ReleaseData): void {
    const { own, view } = this
    if (own === null) return
    own.phase = 1
    this.circle = new Set(circle)
    // Also if a worker that would lead has joined since.
    own.leader = this.members().find(({ id }) => id === from) ?? own.leader
    // From now on the end of any peer is in order.
    for (const { id } of view.members()) view.core.peers.stands(id, Standing.ending)
    for (const { id } of view.members()) if (!this.isInCircle(id)) view.say(id, GroupWhat.LEAVE)
    for (const { info, isGuest } of view.linked()) if (isGuest) view.say(info.id, GroupWhat.LEAVE)
    view.releaseAll()
    own.reports.look()
  }

  onDone(): void {
    this.own?.end(null)
  }

  onFailed(error: PostgradError): void {
    this.failed ??= error
    this.own?.end(error)
  }

  /** That worker may not take part in the end of all. It waits for an answer, whether it leads or this worker does. A refused FAILED gets none: two would answer each other for ever. */
  onRefused(from: WorkerInfo, what: GroupWhat, { values }: PostgradError): void {
    if (what !== GroupWhat.JOIN && what !== GroupWhat.RELEASE) return
    this.view.say(from.id, GroupWhat.FAILED, null, mayNotEnd(from, values.role, this.view.info))
  }

  // --- as the leader

  onJoin(from: WorkerId, limitMs: number): void {
    if (this.isOver || !this.isInCircle(from)) return
    if (this.failed !== null) {
      this.view.say(from, GroupWhat.FAILED, null, this.failed)
      return
    }
    const timeoutMs = limitMs === 0 ? Number.POSITIVE_INFINITY : limitMs
    const timer = this.timer(timeoutMs, () => this.fail(this.late(timeoutMs)))
    this.forget(from)
    this.joined.set(from, timer)
  }

  onReport(from: WorkerId, [phase, counts]: ReportData): void {
    if (!this.joined.has(from)) return
    if (phase === this.phase) this.tally.note(from, counts)
    else this.tally.forget(from)
    this.check()
  }

  private check(): void {
    const members = this.members()
    if (this.isOver || this.failed !== null || this.unsettled(members).length > 0) return
    const isDone = this.phase === 1
    this.phase = 1
    if (!isDone) this.tally.clear()
    const self = this.view.info.id
    const circle: ReleaseData = members.map(({ id }) => id)
    for (const id of circle) {
      if (id !== self) this.view.say(id, isDone ? GroupWhat.DONE : GroupWhat.RELEASE, isDone ? null : circle)
    }
    if (!isDone) this.onRelease(self, circle)
    else {
      this.cancelTimers()
      this.onDone()
    }
  }

  /** Members whose last report does not fit, or that have none. */
  private unsettled(members: readonly WorkerInfo[]): WorkerInfo[] {
    const silent = members.filter(({ id }) => !this.tally.has(id))
    if (silent.length > 0) return silent
    const ids = members.map(({ id }) => id)
    const late = this.tally.unsettled(ids)
    // A member with a link to a leaving worker may get a message from it.
    return members.filter(({ id }) => late.includes(id) || this.tally.seesOthers(id, ids))
  }

  /** A peer is gone. */
  onGone(peer: WorkerInfo, error: PostgradError, hasLeft: boolean): void {
    if (this.isOver || !this.isInCircle(peer.id)) return
    const { own } = this
    const hadJoined = this.forget(peer.id)
    if (own !== null && own.leader.id === peer.id) {
      if (!hasLeft || own.phase === 1) this.fail(error)
      else this.follow(this.leader())
    } else if (this.joined.size > 0 && (own === null || own.leader.id === this.view.info.id)) {
      if (hadJoined || !hasLeft) this.fail(error)
      else this.check()
    }
  }

  /** Returns whether it had called `shutdown`. */
  private forget(id: WorkerId): boolean {
    this.joined.get(id)?.cancel()
    this.tally.forget(id)
    return this.joined.delete(id)
  }

  /** A worker has said LEAVE: it is not a member any more. */
  onLeaving(from: WorkerId): void {
    this.forget(from)
    if (this.joined.size > 0) this.check()
  }

  private fail(error: PostgradError): void {
    if (this.failed !== null) return
    this.cancelTimers()
    // Also to members that have not called it yet: when they do, this worker will be gone.
    for (const { id } of this.view.members()) if (id !== this.view.info.id) this.view.say(id, GroupWhat.FAILED, null, error)
    this.onFailed(error)
  }

  private late(timeoutMs: number): PostgradError {
    const members = this.members().sort(byName)
    const missing = members.filter(({ id }) => !this.joined.has(id))
    const busy = this.unsettled(members).filter((member) => !missing.includes(member))
    return groupTimeout(
      'shutdown',
      timeoutMs,
      missing.map(({ name }) => name),
      busy.map(({ name }) => name),
    )
  }

  private cancelTimers(): void {
    for (const timer of this.joined.values()) timer?.cancel()
  }

  private timer(delayMs: number, fn: () => void): Timer | null {
    return delayMs === Number.POSITIVE_INFINITY ? null : this.view.core.clock.setTimer(delayMs, fn)
  }

  /** This worker closes, for whatever reason. */
  onClose(): void {
    this.isOver = true
    this.cancelTimers()
    this.own?.end(shutDownError('shutdown', this.view.info))
  }
}
