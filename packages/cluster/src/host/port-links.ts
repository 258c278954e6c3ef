/** How a runtime of this process opens its ends of links that are ports, with the road through the shared heap. */
import type { MessagePort } from 'node:worker_threads'
import type { WorkerRuntime } from '@postgrad/rpc/internal'
import { type Heap, HeapRoad } from '@postgrad/tensor/internal'
import { messagePortLink, StayAwake } from '@postgrad/transport/internal'
import type { PeerEnd } from '../membership/members.js'
import { PeerLinks } from '../membership/peer-links.js'

/** Another worker of the process, with a port to it: one channel per pair. */
export interface PeerPort extends PeerEnd<MessagePort> {
  /** Whether it is attached to the heap that the others share. */
  readonly hasHeap: boolean
}

/** @param heap null: this thread shares none, and tensors travel with their bytes */
export function portLinks(runtime: WorkerRuntime, heap: Heap | null): PeerLinks<PeerPort> {
  const stayAwake = new StayAwake()
  return new PeerLinks(
    runtime,
    ({ end }) => messagePortLink(end, { stayAwake }),
    ({ hasHeap }) => (heap !== null && hasHeap ? new HeapRoad(heap) : null),
  )
}
