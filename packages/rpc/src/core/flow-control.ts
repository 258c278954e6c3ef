/** Says and hears, for one worker, how much has begun and was read (`flow.ts`), so that its peers may send more and let go of what they hold for it. */
import type { WorkerId } from '@postgrad/base'
import type { Clock } from '@postgrad/transport'
import { MessageType } from '@postgrad/wire/internal'
import type { WorkerInfo } from '../common/worker-info.js'
import type { Peer } from './peer.js'

/** How long a peer at most holds blocks for this worker that were read already. */
const TELL_TAKEN_MS = 1

/** See `MessagePath`. */
interface Path {
  postIfReachable(id: WorkerId, type: MessageType, body: readonly unknown[]): void
  refuseInvalid(from: WorkerInfo, type: MessageType, why: string): void
}

export class FlowControl {
  private readonly clock: Clock
  private readonly path: Path

  constructor(clock: Clock, path: Path) {
    this.clock = clock
    this.path = path
  }

  onCredits({ flow, info }: Peer, body: readonly unknown[]): void {
    const isKnown = flow.onCredits(...(body as [number, number, number, number]))
    if (!isKnown) this.path.refuseInvalid(info, MessageType.CREDITS, 'more has begun there than has left here')
  }

  onBlocksTaken({ flow, info }: Peer, [messages]: readonly unknown[]): void {
    if (flow.blocks?.onTaken(messages as number) === false)
      this.path.refuseInvalid(info, MessageType.BLOCKS_TAKEN, 'more was read there than has left here')
  }

  /** A call or fetch begins, or ends without: its place is its sender's again. Without effect for all else, and when it is said twice. */
  begun(item: { readonly peer: Peer; readonly type: MessageType; callBytes: number }): void {
    const { peer, callBytes } = item
    if (callBytes === 0) return
    const { flow } = peer
    item.callBytes = 0
    if (!flow.incomingOf(item.type)!.onBegun(callBytes)) return
    if (peer.link === null) flow.onCredits(...flow.takeCredits())
    else if (!peer.link.closed) this.path.postIfReachable(peer.info.id, MessageType.CREDITS, flow.takeCredits())
  }

  /**
   * The word that blocks are taken rides with the next message to the peer, which mostly is the reply: a post of its own would wake the peer once
   * more. If there is none, it leaves by itself.
   */
  tellTakenSoon(peer: Peer): void {
    const { blocks } = peer.flow
    if (blocks?.isTellable !== true || blocks.telling !== null) return
    blocks.telling = this.clock.setTimer(TELL_TAKEN_MS, () => {
      blocks.telling = null
      this.tellTaken(peer)
    })
  }

  /** Lets the peer go of the blocks that it held for this worker. */
  tellTaken(peer: Peer): void {
    const messages = peer.flow.blocks?.due() ?? null
    if (messages !== null) this.path.postIfReachable(peer.info.id, MessageType.BLOCKS_TAKEN, [messages])
  }
}
