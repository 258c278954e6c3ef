/**
 * Processes that join a group by `init` and reach each other by TCP alone, as processes of different machines do: worker0 measures, as on threads. They start
 * when a row first needs them, and sleep while others are measured. Each runs `group-entry.ts`.
 */
import { once } from 'node:events'
import net from 'node:net'
import type { Credentials } from '@postgrad/transport/internal'
import type { Contestant } from '../row.js'
import { Child } from './child.js'
import { credentialsOf, type Proof } from './proofs.js'
import { CLUSTER } from './works.js'

const ENTRY = new URL('./group-entry.js', import.meta.url)

/** A process's first message. */
export interface GroupBoot {
  readonly initMethod: string
  readonly rank: number
  readonly worldSize: number
  readonly cluster: string
  readonly credentials: Credentials | null
}

/** A function of `tensors.ts` or `program.ts`, by name. */
export interface GroupCommand {
  readonly name: string
  readonly args: readonly number[]
}

export class ProcessGroup {
  private readonly size: number
  private readonly proof: Proof
  private started: Promise<readonly Child[]> | null = null

  constructor(size = 2, proof: Proof = 'none') {
    this.size = size
    this.proof = proof
  }

  /** Does `work` on worker0; it gives the seconds. */
  runs(work: { readonly name: string }, ...args: readonly number[]): Contestant {
    return async (n) => {
      this.started ??= this.start()
      const [first] = await this.started
      return first!.ask({ name: work.name, args: [n, ...args] } satisfies GroupCommand)
    }
  }

  /** Seconds until all have come. */
  async startSeconds(): Promise<number> {
    const started = performance.now()
    this.started = this.start()
    await this.started
    return (performance.now() - started) / 1000
  }

  async close(): Promise<void> {
    const started = await this.started
    this.started = null
    if (started === null) return
    await Promise.all(started.map((child) => child.end()))
  }

  private async start(): Promise<readonly Child[]> {
    const names = Array.from({ length: this.size }, (_, rank) => `worker${rank}`)
    const credentials = await credentialsOf(this.proof, CLUSTER, names)
    const initMethod = `tcp://127.0.0.1:${await freePort()}`
    const children = names.map(() => new Child(ENTRY))
    await Promise.all(
      children.map((child, rank) => {
        const boot: GroupBoot = { initMethod, rank, worldSize: this.size, cluster: CLUSTER, credentials: credentials[rank]! }
        return child.ask(boot)
      }),
    )
    return children
  }
}

async function freePort(): Promise<number> {
  const server = net.createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as net.AddressInfo
  server.close()
  return port
}
