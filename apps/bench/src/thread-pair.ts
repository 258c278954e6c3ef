/**
 * Two plain threads with a port between them, as a comparison: one measures, the other answers, the main thread only says when.
 * `raw.ts` and `comlink-peer.ts` define the threads' work; each is the module of its own threads.
 */
import { once } from 'node:events'
import { MessageChannel, type MessagePort, parentPort, Worker, workerData } from 'node:worker_threads'

export interface Command {
  readonly work: 'roundTrip' | 'pipelined'
  readonly n: number
}

interface Boot {
  /** The module that the thread was made for: modules import each other's, and only one is meant. */
  readonly module: string
  readonly role: 'measures' | 'answers'
  readonly port: MessagePort
}

/** As many messages are under way at once when they are pipelined: enough to keep both threads busy. */
export const WINDOW = 256

export class ThreadPair {
  private readonly measuring: Worker
  private readonly answering: Worker

  /** `module`: the URL of the module that calls `inThread`. */
  constructor(module: string) {
    const { port1, port2 } = new MessageChannel()
    const start = (role: Boot['role'], port: MessagePort) =>
      new Worker(new URL(module), { workerData: { module, role, port } satisfies Boot, transferList: [port] })
    this.measuring = start('measures', port1)
    this.answering = start('answers', port2)
  }

  /** One message there and one back, n times; gives the seconds. */
  readonly roundTrip = (n: number): Promise<number> => this.run({ work: 'roundTrip', n })
  /** n messages there and n back, many under way; gives the seconds. */
  readonly pipelined = (n: number): Promise<number> => this.run({ work: 'pipelined', n })

  async close(): Promise<void> {
    await Promise.all([this.measuring.terminate(), this.answering.terminate()])
  }

  private async run(command: Command): Promise<number> {
    this.measuring.postMessage(command)
    const [seconds] = await once(this.measuring, 'message')
    return seconds as number
  }
}

/** The work of `module`'s threads: `answer` once, `measure` per command; it resolves when the work is done. */
export function inThread(
  module: string,
  answer: (port: MessagePort) => void,
  measure: (port: MessagePort) => (command: Command) => Promise<void>,
): void {
  const boot = workerData as Boot | null
  if (boot?.module !== module) return
  if (boot.role === 'answers') {
    answer(boot.port)
    return
  }
  const work = measure(boot.port)
  parentPort!.on('message', async (command: Command) => {
    const started = performance.now()
    await work(command)
    parentPort!.postMessage((performance.now() - started) / 1000)
  })
}
