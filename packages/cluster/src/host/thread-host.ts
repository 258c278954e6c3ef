/**
 * Workers as threads of this process: links and control are ports, counters are words of shared memory, and each has a slot of the shared heap.
 * `worker-host.ts` says what a host is, `thread-side.ts` is the other end.
 */
import { MessageChannel, type MessagePort, Worker } from 'node:worker_threads'
import type { WorkerId } from '@postgrad/base'
import { dropUnread, shareCode, shareInspected } from '@postgrad/base/internal'
import type { WorkerInfo } from '@postgrad/rpc'
import type { Heap, HeapHandle } from '@postgrad/tensor/internal'
import { StayAwake } from '@postgrad/transport/internal'
import { NodeEndpoint } from './node-endpoint.js'
import { openPort, PortEnd, portsOf } from './port-end.js'
import { SharedCounter } from './shared-counter.js'
import type { HostedWorker, LinkEnd, OpenedLink, SpawnOptions, WorkerHost } from './worker-host.js'

/** Everything a thread is born with (`workerData`). */
export interface ThreadBoot {
  readonly boot: object
  readonly control: MessagePort
  readonly beats: SharedArrayBuffer
  readonly taken: SharedArrayBuffer
  /** The worker's slot; null when there is none left, then its tensors are managed. */
  readonly heap: HeapHandle | null
}

export class ThreadHost implements WorkerHost {
  private readonly entry: URL
  private readonly heap: Heap | null
  private readonly stayAwake = new StayAwake()
  /** In the heap; null where there was none left. */
  private readonly slots = new Map<WorkerId, HeapHandle | null>()

  /**
   * @param entry what a thread loads first; it finds its side of the host by `threadSide()`
   * @param heap this thread's, which the workers join; null: every tensor is managed
   */
  constructor(entry: URL, heap: Heap | null) {
    this.entry = entry
    this.heap = heap
  }

  admit({ id }: WorkerInfo): void {
    if (!this.slots.has(id)) this.slots.set(id, this.heap?.handle() ?? null)
  }

  /** One that was not admitted is this thread. */
  link(a: WorkerInfo, b: WorkerInfo): readonly [LinkEnd, LinkEnd] {
    const sharesHeap = this.heap !== null && [a, b].every(({ id }) => this.slots.get(id) !== null)
    const { port1, port2 } = new MessageChannel()
    return [new PortEnd(port1, sharesHeap), new PortEnd(port2, sharesHeap)]
  }

  open(end: LinkEnd): OpenedLink {
    return openPort(end as PortEnd, this.heap, this.stayAwake)
  }

  release(id: WorkerId): void {
    const slot = this.slots.get(id) ?? null
    this.slots.delete(id)
    // However a worker ends, what it held goes back, and its slot is free for another.
    if (slot !== null) this.heap!.reclaim(slot)
  }

  async close(): Promise<void> {}

  spawn({ worker: info, boot, ends, stdout, stderr, resourceLimits, env, onExit }: SpawnOptions): HostedWorker {
    const { port1, port2 } = new MessageChannel()
    const [beats, taken] = [new SharedCounter(), new SharedCounter()]
    const heap = this.slots.get(info.id) ?? null
    const workerData: ThreadBoot = { boot, control: port2, beats: beats.memory, taken: taken.memory, heap }
    shareCode()
    shareInspected()
    const isText = runsText()
    const worker = new Worker(isText ? `import(${JSON.stringify(this.entry.href)})` : this.entry, {
      eval: isText,
      name: info.name,
      workerData,
      transferList: [port2, ...portsOf(ends)],
      stdout: stdout !== undefined,
      stderr: stderr !== undefined,
      ...(resourceLimits === undefined ? {} : { resourceLimits }),
      ...(env === undefined ? {} : { env }),
    })
    dropUnread(worker)
    if (stdout !== undefined) worker.stdout.setEncoding('utf8').on('data', stdout)
    if (stderr !== undefined) worker.stderr.setEncoding('utf8').on('data', stderr)
    const control = new NodeEndpoint(port1)
    let thrown: unknown
    worker.on('error', (error) => {
      thrown = error
    })
    worker.once('exit', (exitCode) => {
      // What it posted before may still lie in the port.
      control.drain()
      control.close()
      onExit({ exitCode, thrown })
    })
    const kill = async (): Promise<void> => {
      await worker.terminate()
    }
    return { control, beats, taken, kill }
  }
}

/** Whether this process has a flag that a thread inherits and that Node allows for text alone. */
const runsText = (): boolean => [...process.execArgv, process.env.NODE_OPTIONS ?? ''].some((flag) => flag.includes('--input-type'))
