/**
 * Workers as threads of this process: links and control are ports, counters are words of shared memory. `worker-host.ts` says what a host is, `thread-side.ts`
 * is the other end.
 */
import { MessageChannel, type MessagePort, Worker } from 'node:worker_threads'
import { dropUnread, shareCode } from '@postgrad/base/internal'
import type { Link } from '@postgrad/transport'
import { messagePortLink, StayAwake } from '@postgrad/transport/internal'
import { NodeEndpoint } from './node-endpoint.js'
import { SharedCounter } from './shared-counter.js'
import type { HostedWorker, LinkEnd, SpawnOptions, WorkerHost } from './worker-host.js'

/** Everything a thread is born with (`workerData`). */
export interface ThreadBoot {
  readonly boot: object
  readonly control: MessagePort
  readonly beats: SharedArrayBuffer
  readonly taken: SharedArrayBuffer
}

export class ThreadHost implements WorkerHost {
  readonly sharesMemory = true
  private readonly entry: URL
  private readonly stayAwake = new StayAwake()

  /** @param entry what a thread loads first; it finds its side of the host by `threadSide()` */
  constructor(entry: URL) {
    this.entry = entry
  }

  link(): readonly [LinkEnd, LinkEnd] {
    const { port1, port2 } = new MessageChannel()
    return [port1, port2]
  }

  open(end: LinkEnd): Link {
    return messagePortLink(end as MessagePort, { stayAwake: this.stayAwake })
  }

  spawn({ name, boot, ends, stdout, stderr, resourceLimits, env, onExit }: SpawnOptions): HostedWorker {
    const { port1, port2 } = new MessageChannel()
    const [beats, taken] = [new SharedCounter(), new SharedCounter()]
    const workerData: ThreadBoot = { boot, control: port2, beats: beats.memory, taken: taken.memory }
    shareCode()
    const worker = new Worker(this.entry, {
      name,
      workerData,
      transferList: [port2, ...(ends as readonly MessagePort[])],
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
