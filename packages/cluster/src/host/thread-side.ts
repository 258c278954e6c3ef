/** A thread's own side of its host (`thread-host.ts`). */
import { workerData } from 'node:worker_threads'
import { attachThreadHeap } from '@postgrad/tensor/internal'
import { StayAwake } from '@postgrad/transport/internal'
import { NodeEndpoint } from './node-endpoint.js'
import { openPort, type PortEnd } from './port-end.js'
import { SharedCounter } from './shared-counter.js'
import type { ThreadBoot } from './thread-host.js'
import { threadUsage } from './usage.js'
import type { WorkerSide } from './worker-host.js'

/** To be called once, by what `ThreadHost` starts. */
export function threadSide(): WorkerSide {
  const { boot, control, beats, taken, heap: slot } = workerData as ThreadBoot
  // First: kernels bind to the heap that they meet.
  const heap = slot === null ? null : attachThreadHeap(slot)
  const stayAwake = new StayAwake()
  return {
    boot,
    control: new NodeEndpoint(control),
    beats: new SharedCounter(beats),
    taken: new SharedCounter(taken),
    heap,
    stayAwake,
    usage: threadUsage,
    open: (end) => openPort(end as PortEnd, heap, stayAwake),
  }
}
