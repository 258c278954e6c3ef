/** How a worker of a host, or the main thread, opens its ends of links: with the transport through the shared heap. */
import type { WorkerRuntime } from '@postgrad/rpc/internal'
import { type Heap, HeapTransport } from '@postgrad/tensor/internal'
import type { Link } from '@postgrad/transport'
import type { LinkEnd } from '../host/worker-host.js'
import { PeerLinks } from '../membership/peer-links.js'
import type { WorkerPeer } from './protocol.js'

/**
 * @param heap null: this worker shares none, and tensors travel with their bytes
 * @param openEnd the host's
 */
export function peerLinks(runtime: WorkerRuntime, heap: Heap | null, openEnd: (end: LinkEnd) => Link): PeerLinks<WorkerPeer> {
  return new PeerLinks(
    runtime,
    ({ end }) => openEnd(end),
    ({ hasHeap }) => (heap !== null && hasHeap ? new HeapTransport(heap) : null),
  )
}
