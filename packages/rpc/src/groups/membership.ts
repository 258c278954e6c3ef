/**
 * The part of a worker that belongs to its group: it gives GROUP_UPDATE to leaving (`leave.ts`), to the end of all (`shutdown.ts`) and to the search for a
 * standstill (`standstill-watch.ts`), and has the ways in which a worker ends.
 */
import type { PostgradError } from '@postgrad/base'
import { type Message, MessageType } from '@postgrad/wire/internal'
import { CALL_SERVING } from '../calls/call-serving.js'
import type { WorkerInfo } from '../common/worker-info.js'
import type { Incoming } from '../core/incoming-call.js'
import { WorkerSlot } from '../core/slots.js'
import type { WorkerCore } from '../core/worker-core.js'
import { Draining } from './drain.js'
import { GroupWhat, isAnswer, isAsk, isJoin, isOver, isRelease, isReport } from './group-protocol.js'
import { GroupView } from './group-view.js'
import { Leaving } from './leave.js'
import { GroupEnd } from './shutdown.js'
import { Standstill } from './standstill-watch.js'
import type { Counts } from './traffic.js'

export class Membership {
  readonly standstill: Standstill
  private readonly core: WorkerCore
  private readonly view: GroupView
  /** Null before anybody asks for it; so is the next. */
  private drainingPart: Draining | null = null
  private leavingPart: Leaving | null = null
  private readonly end: GroupEnd

  constructor(core: WorkerCore) {
    this.core = core
    this.view = new GroupView(core)
    this.end = new GroupEnd(this.view)
    this.standstill = new Standstill(this.view, () => this.end.isAwaited)
    core.handle(MessageType.GROUP_UPDATE, (message, _from, item) => this.onUpdate(message, item))
    core.messages.handleRefused(MessageType.GROUP_UPDATE, ({ body }, from, error) => this.end.onRefused(from, body[0] as GroupWhat, error))
    core.onPeerConnect((peer) => this.end.onConnect(peer))
    core.onPeerDeath((peer, error) => this.onPeerDeath(peer, error))
    core.onClose(() => {
      this.view.quiet.stop()
      this.end.onClose()
      this.standstill.onClose()
    })
  }

  /** The counts of its messages; null while anything is under way here. To be asked in a turn of its own. */
  countsIfQuiet(): Counts | null {
    return this.view.quiet.isBusy ? null : this.view.counts()
  }

  /** Waits up to `drainMs` until no call is made or served here and what was sent is read, then closes. */
  async close(drainMs: number): Promise<void> {
    const { core } = this
    const serving = CALL_SERVING.of(core)
    const isIdle = () => core.requests.pendingCount + serving.count + core.lateMessages + core.blocksOnTheWay === 0
    if (drainMs > 0 && !core.isClosed && !isIdle()) await this.view.quiet.until(isIdle, drainMs)
    core.end()
  }

  /** `say` gets these counts whenever nothing is under way here, if they are news. Returns a function that ends this. */
  onQuiet(say: (counts: Counts) => void): () => void {
    return this.view.quiet.reports(() => this.view.counts(), say).stop
  }

  drain(timeoutMs: number): Promise<void> {
    this.drainingPart ??= new Draining(this.view)
    return this.drainingPart.drain(timeoutMs)
  }

  leave(timeoutMs: number): Promise<void> {
    return this.leaving.leave(timeoutMs)
  }

  /** A guest does not end with the group. */
  shutdown(timeoutMs: number): Promise<void> {
    return this.core.isGuest ? this.leave(timeoutMs) : this.end.shutdown(timeoutMs)
  }

  private onPeerDeath(peer: WorkerInfo, error: PostgradError): void {
    this.leavingPart?.onSeen(peer.id)
    this.standstill.onGone(peer)
    if (this.core.peers.get(peer.id)?.isGuest !== true) this.end.onGone(peer, error, error.values.cause === 'left')
  }

  private onUpdate({ body }: Message, item: Incoming): void {
    const { end, core, standstill } = this
    const { peer } = item
    const [what, data, error] = body as [GroupWhat, unknown, PostgradError | null]
    const { id } = peer.info
    // Each of these is said once.
    if (what === GroupWhat.LEAVE || what === GroupWhat.SEEN) core.idle(id)
    if (what === GroupWhat.LEAVE) {
      this.leaving.onLeave(id)
      end.onLeaving(id)
    } else if (what === GroupWhat.SEEN) this.leaving.onSeen(id)
    else if (peer.isGuest) core.messages.discard(item, 'invalid', `GROUP_UPDATE ${what} of a guest`)
    else if (what === GroupWhat.JOIN && isJoin(data)) end.onJoin(id, data[0])
    else if (what === GroupWhat.REPORT && isReport(data)) end.onReport(id, data)
    else if (what === GroupWhat.RELEASE && isRelease(data) && end.mayRelease(id, data)) end.onRelease(id, data)
    else if (what === GroupWhat.DONE && end.mayEnd(id)) end.onDone()
    else if (what === GroupWhat.FAILED && error !== null) end.onFailed(error)
    else if (what === GroupWhat.ASK && isAsk(data)) standstill.onAsk(peer.info, data)
    else if (what === GroupWhat.ANSWER && isAnswer(data) && standstill.onAnswer(id, data)) return
    else if (what === GroupWhat.OVER && isOver(data) && standstill.onOver(id, data)) return
    else core.messages.discard(item, 'invalid', `GROUP_UPDATE ${what}`)
  }

  private get leaving(): Leaving {
    this.leavingPart ??= new Leaving(this.view)
    return this.leavingPart
  }
}

/** Watches how long a worker waits in operations of groups. */
export function standstillOf(core: WorkerCore): Standstill {
  return MEMBERSHIP.of(core).standstill
}

export const MEMBERSHIP = new WorkerSlot('membership', (core) => new Membership(core))
