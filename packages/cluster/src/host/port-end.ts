/** The end of a link between two threads of one process: a port, and whether both threads have a slot of the heap. */
import type { MessagePort } from 'node:worker_threads'
import { type Heap, HeapTransport } from '@postgrad/tensor/internal'
import { messagePortLink, type StayAwake } from '@postgrad/transport/internal'
import type { LinkEnd, OpenedLink } from './worker-host.js'

/** A copy that arrives at another thread has only the fields. */
export class PortEnd implements LinkEnd {
  readonly port: MessagePort
  readonly sharesHeap: boolean

  constructor(port: MessagePort, sharesHeap: boolean) {
    this.port = port
    this.sharesHeap = sharesHeap
  }

  close(): void {
    this.port.close()
  }
}

/** What goes with a message that has these ends in it. */
export function portsOf(ends: readonly LinkEnd[]): MessagePort[] {
  return ends.map((end) => (end as PortEnd).port)
}

/** @param heap this thread's */
export function openPort({ port, sharesHeap }: Pick<PortEnd, 'port' | 'sharesHeap'>, heap: Heap | null, stayAwake: StayAwake): OpenedLink {
  return { link: messagePortLink(port, { stayAwake }), transport: sharesHeap && heap !== null ? new HeapTransport(heap) : null }
}
