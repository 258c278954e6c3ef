/** How a runtime of this process opens its ends of the channels that `members.ts` has made: links over ports, with the road through the shared heap. */
import type { WorkerRuntime } from '@postgrad/rpc/internal'
import { type Heap, HeapRoad } from '@postgrad/tensor/internal'
import { messagePortLink, StayAwake } from '@postgrad/transport/internal'
import type { PeerPort } from '../admin/protocol.js'

export class PeerLinks {
  private readonly runtime: WorkerRuntime
  private readonly heap: Heap | null
  private readonly stayAwake = new StayAwake()

  /** @param heap null: this thread shares none, and tensors travel with their bytes */
  constructor(runtime: WorkerRuntime, heap: Heap | null) {
    this.runtime = runtime
    this.heap = heap
  }

  open({ info, port, hasHeap, isGuest }: PeerPort): void {
    if (this.runtime.isClosed) {
      // Whoever has the other end shall know.
      port.close()
      return
    }
    const road = this.heap !== null && hasHeap ? new HeapRoad(this.heap) : null
    this.runtime.connect(info, messagePortLink(port, { stayAwake: this.stayAwake }), road, isGuest)
  }

  /** Newcomers, of whom some may take the names of former workers. */
  async openAll(peers: readonly PeerPort[]): Promise<void> {
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
