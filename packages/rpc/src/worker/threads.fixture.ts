/** One worker thread of `threads.real.test.ts`: a runtime with a link to each peer that it was given. */
import { type MessagePort, parentPort, workerData } from 'node:worker_threads'
import { messagePortLink, RealClock } from '@postgrad/transport/internal'
import './threads-programs.fixture.js'
import type { WorkerInfo } from '../common/worker-info.js'
import { WorkerRuntime } from './worker-runtime.js'

export interface ThreadData {
  readonly name: string
  readonly id: number
  readonly peers: readonly { readonly info: WorkerInfo; readonly port: MessagePort }[]
  readonly finalizers: 'release' | 'report'
}

const { name, id, peers, finalizers } = workerData as ThreadData
const runtime = new WorkerRuntime({ name, id, clock: new RealClock(), finalizers })
for (const { info, port } of peers) runtime.connect(info, messagePortLink(port))
parentPort!.postMessage('ready')
