/** A thread's own side of its host (`thread-host.ts`). */
import { type MessagePort, workerData } from 'node:worker_threads'
import { messagePortLink, StayAwake } from '@postgrad/transport/internal'
import { NodeEndpoint } from './node-endpoint.js'
import { SharedCounter } from './shared-counter.js'
import type { ThreadBoot } from './thread-host.js'
import { threadUsage } from './usage.js'
import type { WorkerSide } from './worker-host.js'

/** To be called once, by what `ThreadHost` starts. */
export function threadSide(): WorkerSide {
  const { boot, control, beats, taken } = workerData as ThreadBoot
  const stayAwake = new StayAwake()
  return {
    boot,
    control: new NodeEndpoint(control),
    beats: new SharedCounter(beats),
    taken: new SharedCounter(taken),
    usage: threadUsage,
    open: (end) => messagePortLink(end as MessagePort, { stayAwake }),
  }
}
