/**
 * Exchanges, for one worker, how far each end of a pair has come (`peer-ledger.ts`), so that peers may send more and let go of what they hold. One PROGRESS
 * says all of it. After half a window of calls or of a stream's items it is sent at once; for blocks that were read it goes with the next message, or soon.
 */
import type { WorkerId } from '@postgrad/base'
import type { Clock } from '@postgrad/transport'
import { MessageType } from '@postgrad/wire/internal'
import type { WorkerInfo } from '../common/worker-info.js'
import type { Peer } from './peer.js'
import type { ProgressBody } from './peer-ledger.js'

/** How long a peer at most holds blocks for this worker that were read already. */
const TELL_READ_MS = 1

/** See `MessagePath`. */
interface Path {
  postIfReachable(id: WorkerId, type: MessageType, body: readonly unknown[]): void
  refuseInvalid(from: WorkerInfo, type: MessageType, why: string): void
  idle(from: WorkerId): void
}

export class Progress {
  private readonly clock: Clock
  private readonly path: Path

  constructor(clock: Clock, path: Path) {
    this.clock = clock
    this.path = path
  }

  onProgress(peer: Peer, body: readonly unknown[]): void {
    const progress = body as ProgressBody
    const { outgoing, outgoingFetches } = peer.ledger
    const before = outgoing.calls + outgoingFetches.calls
    if (!peer.ledger.onProgress(progress) || !toStreams(peer, progress)) {
      this.path.refuseInvalid(peer.info, MessageType.PROGRESS, 'more was taken there than has left here')
    } else if (outgoing.calls + outgoingFetches.calls === before && progress[5].length === 0) this.path.idle(peer.info.id)
  }

  /** A call or fetch begins, or ends without. Without effect for all else, and when it is said twice. */
  begun(item: { readonly peer: Peer; readonly type: MessageType; callBytes: number }): void {
    const { peer, callBytes, type } = item
    if (callBytes === 0) return
    item.callBytes = 0
    if (peer.ledger.onBegun(type, callBytes)) this.tell(peer)
  }

  /** Of a stream that this worker receives. */
  taken(peer: Peer, requestId: number, items: number): void {
    peer.ledger.onTaken(requestId, items)
    this.tell(peer)
  }

  /**
   * For blocks that were read, PROGRESS goes with the next message to the peer, mostly the reply: a post of its own would wake the peer once more. If
   * there is none, it is sent by itself.
   */
  tellSoon(peer: Peer): void {
    const { ledger } = peer
    if (!ledger.isDue || ledger.telling !== null) return
    ledger.telling = this.clock.setTimer(TELL_READ_MS, () => {
      ledger.telling = null
      this.tell(peer)
    })
  }

  tell(peer: Peer): void {
    const progress = peer.ledger.take()
    if (progress === null) return
    if (peer.link === null) this.onProgress(peer, progress)
    else this.path.postIfReachable(peer.info.id, MessageType.PROGRESS, progress)
  }
}

/** Streams that have ended meanwhile have no outlet. False: more items were taken than were sent. */
function toStreams({ served }: Peer, [, , , , , streams]: ProgressBody): boolean {
  let areKnown = true
  for (const [requestId, items] of streams) {
    if (served.get(requestId)?.outlet?.onTaken(items) === false) areKnown = false
  }
  return areKnown
}
