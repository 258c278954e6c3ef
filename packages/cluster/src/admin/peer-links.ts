/** How a runtime of this process opens its ends of the channels that `members.ts` has made: with the road through the shared heap. */
import type { WorkerRuntime } from '@postgrad/rpc/internal'
import { type Heap, HeapRoad } from '@postgrad/tensor/internal'
import type { Link } from '@postgrad/transport'
import type { LinkEnd } from '../host/worker-host.js'
import type { PeerEnd } from './protocol.js'

export class PeerLinks {
  private readonly runtime: WorkerRuntime
  private readonly heap: Heap | null
  private readonly openEnd: (end: LinkEnd) => Link

  /**
   * @param heap null: this worker shares none, and tensors travel with their bytes
   * @param openEnd the host's
   */
  constructor(runtime: WorkerRuntime, heap: Heap | null, openEnd: (end: LinkEnd) => Link) {
    this.runtime = runtime
    this.heap = heap
    this.openEnd = openEnd
  }

  open({ info, end, hasHeap, isGuest }: PeerEnd): void {
    if (this.runtime.agent.isClosed) {
      // Whoever has the other end shall know.
      end.close()
      return
    }
    const road = this.heap !== null && hasHeap ? new HeapRoad(this.heap) : null
    this.runtime.connect(info, this.openEnd(end), road, isGuest)
  }

  /** Newcomers, of whom some may take the names of former workers. */
  async openAll(peers: readonly PeerEnd[]): Promise<void> {
    for (const peer of peers) {
      await this.untilNameIsFree(peer.info.name)
      this.open(peer)
    }
  }

  /** The word of a restart may come before the end of the link to the former worker of that name, which has ended for certain. */
  private async untilNameIsFree(name: string): Promise<void> {
    const { runtime } = this
    while (runtime.isLinkedTo(name)) {
      runtime.lookAround()
      await new Promise<void>((resolve) => runtime.clock.defer(resolve))
    }
  }
}
