/**
 * One worker leaves while the others go on: it waits for its own calls, asks that nobody calls it any more, serves what was called before, gives
 * its references up and closes. Peers see that it has left and not that it died. The rules GRP-1 to GRP-5, GRP-13 and GRP-14 are in SPEC.md.
 */
import type { PostgradError, WorkerId } from '@postgrad/base'
import type { Quiet } from '../core/quiet.js'
import type { WorkerInfo } from '../core/worker-info.js'
import { groupTimeout } from './group-errors.js'
import { GroupWhat } from './group-protocol.js'

export interface LeaveHost {
  readonly name: string
  readonly quiet: Quiet
  /** Living peers, without this worker; also those that leave themselves. */
  peers(): WorkerInfo[]
  say(to: WorkerId, what: GroupWhat): void
  /** The peer takes no more calls. */
  refuse(id: WorkerId): void
  releaseAll(): void
  /** References that were passed on and not accepted yet. */
  pendingChildren(): number
  /** Peers that have not read a large tensor which this worker has sent: its end would take that with it. */
  unread(): WorkerInfo[]
  close(): Promise<void>
}

export class Leaving {
  private readonly host: LeaveHost
  private ending: Promise<void> | null = null
  /** Who may still call; null before the word was given. */
  private unseen: Set<WorkerId> | null = null
  private readonly told = new Set<WorkerId>()

  constructor(host: LeaveHost) {
    this.host = host
  }

  leave(timeoutMs: number): Promise<void> {
    this.ending ??= this.run(timeoutMs)
    return this.ending
  }

  /** A peer has said LEAVE: the answer stands behind the calls that were made before. */
  onLeave(from: WorkerId): void {
    this.host.refuse(from)
    this.host.say(from, GroupWhat.SEEN)
  }

  /** A peer calls no more: it has said so, or it is gone. */
  onSeen(from: WorkerId): void {
    this.unseen?.delete(from)
  }

  private async run(timeoutMs: number): Promise<void> {
    const { host } = this
    const isDone = () => {
      if (this.unseen === null && !host.quiet.hasPending) this.announce()
      return this.unseen?.size === 0 && !host.quiet.isBusy && host.pendingChildren() === 0 && host.unread().length === 0
    }
    const late = (await host.quiet.until(isDone, timeoutMs)) ? null : this.late(timeoutMs)
    host.releaseAll()
    // Also those who came meanwhile, and all of them if there was no time for it before: that this end is no accident.
    for (const { id } of host.peers()) if (!this.told.has(id)) host.say(id, GroupWhat.LEAVE)
    await host.close()
    if (late !== null) throw late
  }

  private announce(): void {
    this.unseen = new Set()
    for (const { id } of this.host.peers()) {
      this.told.add(id)
      this.unseen.add(id)
      this.host.say(id, GroupWhat.LEAVE)
    }
  }

  private late(timeoutMs: number): PostgradError {
    const unseen = this.host.peers().filter(({ id }) => this.unseen?.has(id))
    const late = unseen.length > 0 ? unseen : this.host.unread()
    return groupTimeout('leave', timeoutMs, [], late.length > 0 ? late.map(({ name }) => name) : [this.host.name])
  }
}
