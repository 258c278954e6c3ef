/**
 * A worker as one of a group: it takes GROUP_UPDATE apart for leaving (`leave.ts`) and for the end of all (`shutdown.ts`), and gives both what they need of
 * the post office below.
 */
import type { PostgradError, WorkerId } from '@postgrad/base'
import { MessageType } from '@postgrad/wire/internal'
import type { Delivery, Peer } from '../agent/delivery.js'
import type { RpcAgent } from '../agent/rpc-agent.js'
import { Quiet } from '../core/quiet.js'
import type { Counts } from '../core/traffic.js'
import type { WorkerInfo } from '../core/worker-info.js'
import type { RRefContext } from '../references/rref-context.js'
import { Draining } from './drain.js'
import { GroupWhat, isJoin, isRelease, isReport } from './group-protocol.js'
import { Leaving } from './leave.js'
import { GroupEnd } from './shutdown.js'

export interface MembershipHost {
  readonly isGuest: boolean
  readonly agent: RpcAgent
  readonly rrefs: RRefContext
  /** Calls that are being served. */
  serving(): number
  close(): Promise<void>
}

export class Membership {
  private readonly agent: RpcAgent
  private readonly isGuest: boolean
  private readonly quiet: Quiet
  private readonly rrefs: RRefContext
  private readonly close: () => Promise<void>
  /** Null before anybody asks for it; so is the next. */
  private drainingPart: Draining | null = null
  private leavingPart: Leaving | null = null
  private readonly end: GroupEnd

  constructor({ isGuest, agent, rrefs, serving, close }: MembershipHost) {
    this.agent = agent
    this.isGuest = isGuest
    this.rrefs = rrefs
    this.close = close
    this.quiet = new Quiet({
      clock: agent.clock,
      pending: () => agent.pendingCount,
      serving: () => serving() + agent.pump.mailbox.size,
      listen: (listener) => agent.activity.listen(listener),
    })
    this.end = new GroupEnd({
      quiet: this.quiet,
      say: this.say,
      releaseAll: () => rrefs.releaseAll(),
      setTimer: (delayMs: number, fn: () => void) => agent.clock.setTimer(delayMs, fn),
      close,
      info: agent.info,
      members: () => agent.workers(),
      guests: () => this.linked().flatMap(({ info, isGuest }) => (isGuest ? [info] : [])),
      counts: () => this.counts((peer) => !peer.isGuest),
      expectEnds: () => {
        for (const { id } of this.peers()) agent.expectEnd(id)
      },
      shutDownError: () => agent.shutDownError('shutdown'),
    })
    agent.handle(MessageType.GROUP_UPDATE, (delivery) => this.onUpdate(delivery))
  }

  /** What this worker has sent and received; null while anything is under way here. To be asked in a turn of its own. */
  countsIfQuiet(): Counts | null {
    return this.quiet.isBusy ? null : this.counts()
  }

  drain(timeoutMs: number): Promise<void> {
    return this.draining.drain(timeoutMs)
  }

  leave(timeoutMs: number): Promise<void> {
    return this.leaving.leave(timeoutMs)
  }

  /** A guest is none of those that end together. */
  shutdown(timeoutMs: number): Promise<void> {
    return this.isGuest ? this.leave(timeoutMs) : this.end.shutdown(timeoutMs)
  }

  /** A worker has come. */
  onConnect(peer: WorkerInfo): void {
    this.end.onConnect(peer)
  }

  onPeerDeath(peer: WorkerInfo, error: PostgradError): void {
    this.leavingPart?.onSeen(peer.id)
    if (!this.agent.isGuest(peer.id)) this.end.onGone(peer, error, error.values.cause === 'left')
  }

  /** Waits until no call is made or served here, or the time is over. */
  async untilIdle(isIdle: () => boolean, limitMs: number): Promise<void> {
    await this.quiet.until(isIdle, limitMs)
  }

  onClose(): void {
    this.quiet.stop()
    this.end.onClose()
  }

  private onUpdate(delivery: Delivery): void {
    const { message, peer } = delivery
    const { end } = this
    const [what, data, error] = message.body as [GroupWhat, unknown, PostgradError | null]
    const { id } = peer.info
    if (what === GroupWhat.LEAVE) {
      this.leaving.onLeave(id)
      end.onLeaving(id)
    } else if (what === GroupWhat.SEEN) this.leaving.onSeen(id)
    else if (peer.isGuest) this.agent.discard(delivery, 'invalid', `GROUP_UPDATE ${what} of a guest`)
    else if (what === GroupWhat.JOIN && isJoin(data)) end.onJoin(id, data[0])
    else if (what === GroupWhat.REPORT && isReport(data)) end.onReport(id, data)
    else if (what === GroupWhat.RELEASE && isRelease(data) && end.mayRelease(id, data)) end.onRelease(id, data)
    else if (what === GroupWhat.DONE && end.mayEnd(id)) end.onDone()
    else if (what === GroupWhat.FAILED && error !== null) end.onFailed(error)
    else this.agent.discard(delivery, 'invalid', `GROUP_UPDATE ${what}`)
  }

  private counts(isCounted: (peer: Peer) => boolean = () => true): Counts {
    return this.linked()
      .filter(isCounted)
      .map(({ info, ledger: { traffic } }) => [info.id, traffic.sent, traffic.received])
  }

  private linked(): Peer[] {
    return [...this.agent.peers()].filter(({ info }) => this.agent.reachable(info.id) !== undefined)
  }

  private get draining(): Draining {
    const { agent, quiet, close } = this
    this.drainingPart ??= new Draining({ quiet, close, name: agent.info.name, begin: () => agent.drain(), unread: () => agent.unread })
    return this.drainingPart
  }

  private get leaving(): Leaving {
    const { agent, rrefs, quiet, say, close } = this
    this.leavingPart ??= new Leaving({
      quiet,
      say,
      close,
      name: agent.info.name,
      releaseAll: () => rrefs.releaseAll(),
      // Those that leave, too: what they serve until then may call this worker.
      peers: () => this.linked().flatMap(({ info }) => (info.id === agent.info.id ? [] : [info])),
      refuse: (id) => agent.refuse(id),
      pendingChildren: () => rrefs.debugInfo().pendingChildren,
      unread: () => agent.unread,
    })
    return this.leavingPart
  }

  private peers(): WorkerInfo[] {
    return this.agent.workers().filter(({ id }) => id !== this.agent.info.id)
  }

  private readonly say = (to: WorkerId, what: GroupWhat, data: unknown = null, error: PostgradError | null = null): void => {
    const peer = this.agent.reachable(to)
    if (peer !== undefined) this.agent.post(peer, MessageType.GROUP_UPDATE, [what, data, error])
  }
}
