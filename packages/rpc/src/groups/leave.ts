/**
 * `leave`: one worker ends while the others continue. It waits for its own calls, asks its peers for no more calls, serves earlier ones, gives
 * its references up and closes. Peers see that it has left, not that it died. The rules GRP-1 to GRP-5, GRP-13 and GRP-14 are in SPEC.md.
 */
import type { PostgradError, WorkerId } from '@postgrad/base'
import type { WorkerInfo } from '../common/worker-info.js'
import { Standing } from '../core/peer.js'
import { groupTimeout } from './group-errors.js'
import { GroupWhat } from './group-protocol.js'
import type { GroupView } from './group-view.js'

export class Leaving {
  private readonly view: GroupView
  private ending: Promise<void> | null = null
  /** Peers that may still call; null before LEAVE is sent. */
  private unseen: Set<WorkerId> | null = null
  private readonly told = new Set<WorkerId>()

  constructor(view: GroupView) {
    this.view = view
  }

  leave(timeoutMs: number): Promise<void> {
    this.ending ??= this.run(timeoutMs)
    return this.ending
  }

  /** A peer has said LEAVE: the answer arrives after the calls that were made before. */
  onLeave(from: WorkerId): void {
    this.view.core.peers.stands(from, Standing.closed)
    this.view.say(from, GroupWhat.SEEN)
  }

  /** A peer calls no more: it has said so, or it is gone. */
  onSeen(from: WorkerId): void {
    this.unseen?.delete(from)
  }

  private async run(timeoutMs: number): Promise<void> {
    const { view } = this
    const { core, quiet } = view
    const isDone = () => {
      if (this.unseen === null && !quiet.hasPending) this.announce()
      // A large tensor that this worker has sent would go with it before it is read.
      return this.unseen?.size === 0 && !quiet.isBusy && view.pendingChildren === 0 && core.unread.length === 0
    }
    const late = (await quiet.until(isDone, timeoutMs)) ? null : this.late(timeoutMs)
    // LEAVE does not wait for what waits.
    core.dropLateMessages()
    view.releaseAll()
    // Also to peers that came meanwhile, and to all if time ran out before: they must see no death in this end.
    for (const { id } of this.others()) if (!this.told.has(id)) view.say(id, GroupWhat.LEAVE)
    core.end()
    if (late !== null) throw late
  }

  /** Living peers; also those that leave themselves, since what they serve until then may call this worker. */
  private others(): WorkerInfo[] {
    return this.view.linked().flatMap(({ info }) => (info.id === this.view.info.id ? [] : [info]))
  }

  private announce(): void {
    this.unseen = new Set()
    for (const { id } of this.others()) {
      this.told.add(id)
      this.unseen.add(id)
      this.view.say(id, GroupWhat.LEAVE)
    }
  }

  private late(timeoutMs: number): PostgradError {
    const unseen = this.others().filter(({ id }) => this.unseen?.has(id))
    const late = unseen.length > 0 ? unseen : this.view.core.unread
    return groupTimeout('leave', timeoutMs, [], late.length > 0 ? late.map(({ name }) => name) : [this.view.info.name])
  }
}
