/** The group as one worker sees it: its linked peers, the counts of their messages, whether it is quiet itself, and how it speaks to a member. */
import type { PostgradError, WorkerId } from '@postgrad/base'
import { MessageType } from '@postgrad/wire/internal'
import type { WorkerInfo } from '../common/worker-info.js'
import type { Peer } from '../core/peer.js'
import type { WorkerCore } from '../core/worker-core.js'
import { REFERENCES } from '../references/references.js'
import type { GroupWhat } from './group-protocol.js'
import { Quiet } from './quiet.js'
import type { Counts } from './traffic.js'

export class GroupView {
  readonly core: WorkerCore
  readonly quiet: Quiet

  constructor(core: WorkerCore) {
    this.core = core
    this.quiet = new Quiet(core)
  }

  get info(): WorkerInfo {
    return this.core.info
  }

  /** This worker and its living peers, without those that are leaving, and without guests. */
  members(): WorkerInfo[] {
    return this.core.peers.members()
  }

  /** Self included; also those that leave themselves. */
  linked(): Peer[] {
    return [...this.core.peers].filter(({ info }) => this.core.reachable(info.id) !== undefined)
  }

  /** Messages sent to each linked peer and received from it. */
  counts(isCounted: (peer: Peer) => boolean = () => true): Counts {
    return this.linked()
      .filter(isCounted)
      .map(({ info, ledger: { traffic } }) => [info.id, traffic.sent, traffic.received])
  }

  say(to: WorkerId, what: GroupWhat, data: unknown = null, error: PostgradError | null = null): void {
    this.core.messages.postIfReachable(to, MessageType.GROUP_UPDATE, [what, data, error])
  }

  /** Disposes of every reference to a value of another. */
  releaseAll(): void {
    REFERENCES.of(this.core).releaseAll()
  }

  /** References that were passed on and not accepted yet. */
  get pendingChildren(): number {
    return REFERENCES.of(this.core).debugInfo().pendingChildren
  }
}
