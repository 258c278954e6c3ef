/** The same call by comlink, between two threads: what a JavaScript programmer would use today. */
import { once } from 'node:events'
import { MessageChannel, type MessagePort, parentPort, Worker, workerData } from 'node:worker_threads'
import { expose, wrap } from 'comlink'
import nodeEndpoint from 'comlink/dist/esm/node-adapter.mjs'

interface Boot {
  readonly comlink: 'calls' | 'serves'
  readonly port: MessagePort
}

type Command = { readonly work: 'roundTrip' | 'pipelined'; readonly n: number }

const WINDOW = 256

const service = { noop: () => null }

export class ComlinkPair {
  private readonly workers: readonly Worker[]

  constructor() {
    const { port1, port2 } = new MessageChannel()
    const start = (comlink: Boot['comlink'], port: MessagePort) =>
      new Worker(new URL(import.meta.url), { workerData: { comlink, port }, transferList: [port] })
    this.workers = [start('calls', port1), start('serves', port2)]
  }

  readonly roundTrip = (n: number): Promise<number> => this.run({ work: 'roundTrip', n })
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

const boot = workerData as Boot | null
if (boot?.comlink === 'serves') expose(service, nodeEndpoint(boot.port))
if (boot?.comlink === 'calls') {
  const remote = wrap<typeof service>(nodeEndpoint(boot.port))
  parentPort!.on('message', async ({ work, n }: Command) => {
    const started = performance.now()
    if (work === 'roundTrip') for (let i = 0; i < n; i++) await remote.noop()
    else for (let i = 0; i < n; i += WINDOW) await Promise.all(Array.from({ length: Math.min(WINDOW, n - i) }, () => remote.noop()))
    parentPort!.postMessage((performance.now() - started) / 1000)
  })
}
