/**
 * The raw limit: two threads and a MessagePort between them, nothing else. One thread measures, the other answers; the main thread only
 * says when.
 */
import { once } from 'node:events'
import { MessageChannel, type MessagePort, parentPort, Worker, workerData } from 'node:worker_threads'

interface Boot {
  readonly role: 'measures' | 'answers'
  readonly port: MessagePort
}

type Command = { readonly work: 'roundTrip' | 'pipelined'; readonly n: number }

/** As many messages are under way at once when they are pipelined: enough to keep both threads busy. */
const WINDOW = 256

export class RawPair {
  private readonly workers: readonly Worker[]

  constructor() {
    const { port1, port2 } = new MessageChannel()
    const start = (role: Boot['role'], port: MessagePort) =>
      new Worker(new URL(import.meta.url), { workerData: { role, port }, transferList: [port] })
    this.workers = [start('measures', port1), start('answers', port2)]
  }

  /** One message there and one back, n times. */
  readonly roundTrip = (n: number): Promise<number> => this.run({ work: 'roundTrip', n })
  /** n messages there and n back, one post each, many under way. */
  readonly pipelined = (n: number): Promise<number> => this.run({ work: 'pipelined', n })

  async close(): Promise<void> {
    await Promise.all(this.workers.map((worker) => worker.terminate()))
  }

  private async run(command: Command): Promise<number> {
    this.workers[0]!.postMessage(command)
    const [seconds] = await once(this.workers[0]!, 'message')
    return seconds as number
  }
}

function measures(port: MessagePort): void {
  parentPort!.on('message', ({ work, n }: Command) => {
    let sent = 0
    let received = 0
    const started = performance.now()
    const send = () => {
      sent++
      port.postMessage(sent)
    }
    port.removeAllListeners('message')
    port.on('message', () => {
      received++
      if (received === n) parentPort!.postMessage((performance.now() - started) / 1000)
      else if (sent < n) send()
    })
    for (let i = 0; i < (work === 'roundTrip' ? 1 : Math.min(n, WINDOW)); i++) send()
  })
}

const boot = workerData as Boot | null
if (boot?.role === 'measures') measures(boot.port)
if (boot?.role === 'answers') boot.port.on('message', (value) => boot.port.postMessage(value))
