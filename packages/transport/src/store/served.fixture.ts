/** A store's server and its clients in one thread, over links that tests cut. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { RealClock } from '../clock.js'
import { ForwardingLink } from '../forwarding-link.js'
import type { Link, LinkReceiver } from '../link.js'
import { memoryLinkPair } from '../memory-link.js'
import { type StoreGuard, StoreServer, type StoreServerOptions } from './store-server.js'
import { TcpStore, type TcpStoreOptions } from './tcp-store.js'

export const clock = new RealClock()

export async function inFolder(body: (path: string) => Promise<void>): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), 'postgrad-store-'))
  try {
    await body(join(folder, 'store'))
  } finally {
    rmSync(folder, { recursive: true })
  }
}

/** A client's end of a link, which loses what is under way when it is cut. */
class Cable extends ForwardingLink {
  private receiver: LinkReceiver | null = null
  private isCut = false
  /** Incoming frames are lost, and this end does not know: a request is done, and its answer lost. */
  isDeaf = false

  override open(receiver: LinkReceiver): void {
    this.receiver = receiver
    this.link.open({
      onFrame: (frame) => {
        if (!this.isCut && !this.isDeaf) receiver.onFrame(frame)
      },
      onTurnEnd: () => receiver.onTurnEnd(),
      onClose: (reason) => {
        if (!this.isCut) receiver.onClose(reason)
      },
    })
  }

  override send(...sent: Parameters<Link['send']>): void {
    if (!this.isCut) this.link.send(...sent)
  }

  override get closed(): boolean {
    return this.isCut || this.link.closed
  }

  cut(): void {
    if (this.closed) return
    this.isCut = true
    this.link.close()
    clock.defer(() => this.receiver?.onClose({ by: 'peer', detail: 'the cable was cut' }))
  }
}

/** A server that may be away, and cables to it. */
export class Net {
  server: StoreServer | null = null
  readonly cables: Cable[] = []
  readonly clients: TcpStore[] = []
  /** Of connections that are made from now on. */
  guard: StoreGuard | null = null

  constructor(options: Partial<StoreServerOptions> = {}) {
    this.start(options)
  }

  start(options: Partial<StoreServerOptions> = {}): StoreServer {
    this.server = new StoreServer({ clock, ...options })
    return this.server
  }

  readonly connect = async (): Promise<Link> => {
    if (this.server === null) throw new Error('connection refused')
    const [near, far] = memoryLinkPair(clock)
    this.server.accept(far, this.guard)
    const cable = new Cable(near)
    this.cables.push(cable)
    return cable
  }

  client(options: Partial<TcpStoreOptions> = {}): TcpStore {
    const client = new TcpStore({ clock, connect: this.connect, ...options })
    this.clients.push(client)
    return client
  }

  /** Like a killed process: it sends no goodbye. */
  stop(): void {
    this.server?.stop()
    this.server = null
  }

  close(): void {
    for (const client of this.clients) client.close()
    this.server?.close()
    this.server = null
  }
}

export const failure = (promise: Promise<unknown>) =>
  promise.then(
    () => null,
    (error) => error as Error & { code: string; values: Record<string, unknown> },
  )

export const until = async (is: () => boolean): Promise<void> => {
  while (!is()) await new Promise((resolve) => setTimeout(resolve, 1))
}
