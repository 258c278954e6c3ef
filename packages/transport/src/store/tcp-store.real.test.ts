/** A store that a server keeps, over real sockets: the contract, and a server that is restarted at the same address. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { expect, test } from '@jest/globals'
import { RealClock } from '../clock.js'
import type { Address } from '../socket/address.js'
import { Exchange } from '../socket/exchange.js'
import type { ListenAddress } from '../socket/listener.js'
import { describeStore } from './store.suite.js'
import { StoreServer, type StoreServerOptions } from './store-server.js'
import { TcpStore } from './tcp-store.js'

const clock = new RealClock()

const exchangeOf = (id: number): Exchange => new Exchange({ self: { cluster: 'c', name: `w${id}`, id }, credentials: null, clock })

/** One worker that serves a store, and two that use it. */
class Sockets {
  readonly folder = mkdtempSync(join(tmpdir(), 'pg-'))
  readonly exchanges = [exchangeOf(1), exchangeOf(2)]
  readonly stores: TcpStore[] = []
  addresses: readonly Address[] = []
  server: StoreServer | null = null
  private serving: Exchange | null = null

  async start(at: ListenAddress, options: Partial<StoreServerOptions> = {}): Promise<void> {
    this.server = new StoreServer({ clock, ...options })
    this.serving = exchangeOf(0)
    this.serving.serve('store', (link) => this.server!.accept(link))
    this.addresses = await this.serving.listen([at])
  }

  async stop(): Promise<void> {
    this.server?.stop()
    await this.serving?.close()
  }

  client(i: number): TcpStore {
    const store = new TcpStore({
      clock,
      graceMs: 30_000,
      connect: async () => (await this.exchanges[i]!.dial('store', this.addresses, { timeoutMs: 5000 })).link,
    })
    this.stores.push(store)
    return store
  }

  async end(): Promise<void> {
    for (const store of this.stores) store.close()
    this.server?.close()
    await Promise.all([...this.exchanges, this.serving!].map((one) => one.close()))
    rmSync(this.folder, { recursive: true })
  }
}

const at = (kind: 'tcp' | 'unix', sockets: Sockets): ListenAddress =>
  kind === 'tcp' ? { kind, host: '127.0.0.1', port: 0 } : { kind, path: join(sockets.folder, 'socket') }

for (const kind of ['tcp', 'unix'] as const) {
  describeStore(`TcpStore over ${kind}`, {
    async run(body) {
      const sockets = new Sockets()
      try {
        await sockets.start(at(kind, sockets))
        const close = () => sockets.server!.close()
        await body({ a: sockets.client(0), b: sockets.client(1), sleep: (ms) => sleep(ms), close })
      } finally {
        await sockets.end()
      }
    },
  })

  test(`STO-19: over ${kind}, a server that is started again at its address while clients add`, async () => {
    const sockets = new Sockets()
    try {
      const file = join(sockets.folder, 'store')
      await sockets.start(at(kind, sockets), { file })
      const clients = [0, 1].map((i) => sockets.client(i))
      const wait = clients[0]!.getText('end')
      const sums: number[] = []
      const adding = clients.map(async (client) => {
        for (let round = 0; round < 30; round++) {
          sums.push(...(await Promise.all(Array.from({ length: 10 }, () => client.add('n', 1)))))
          await sleep(2)
        }
      })
      await sleep(20)
      await sockets.stop()
      await sockets.start(sockets.addresses[0]!, { file })
      await Promise.all(adding)
      expect(sums.sort((a, b) => a - b)).toEqual(Array.from({ length: 600 }, (_, i) => i + 1))
      await clients[1]!.set('end', 'now')
      expect(await wait).toBe('now')
    } finally {
      await sockets.end()
    }
  })
}
