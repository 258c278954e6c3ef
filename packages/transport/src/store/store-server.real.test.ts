/** A store's server on a thread that is ended in the middle, and started again with its file. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { MessageChannel, Worker } from 'node:worker_threads'
import { expect, test } from '@jest/globals'
import { RealClock } from '../clock.js'
import type { Link } from '../link.js'
import { messagePortLink } from '../message-port-link.js'
import { numbersFrom } from './operations.fixture.js'
import { TcpStore } from './tcp-store.js'

const PROGRAM = fileURLToPath(new URL('./store-server.fixture.js', import.meta.url))
const threads = process.platform === 'linux' ? test : test.skip // Elsewhere the lock of a thread that was ended is its process's.

threads(
  'STO-19: a server that is ended while three clients add loses nothing and does nothing twice',
  async () => {
    const seed = Math.trunc(performance.timeOrigin) % 100_000
    const random = numbersFrom(seed)
    const clock = new RealClock()
    const folder = mkdtempSync(join(tmpdir(), 'postgrad-store-'))
    const start = async (): Promise<Worker> => {
      const worker = new Worker(PROGRAM, { workerData: { path: join(folder, 'store') } })
      await new Promise((resolve, reject) => worker.once('message', resolve).once('error', reject))
      return worker
    }
    let server: Worker | null = await start()
    const connect = async (): Promise<Link> => {
      if (server === null) throw new Error('connection refused')
      const { port1, port2 } = new MessageChannel()
      server.postMessage(port2, [port2])
      return messagePortLink(port1)
    }
    const clients = [1, 2, 3].map(() => new TcpStore({ clock, connect, graceMs: 30_000 }))
    let isOver = false
    const ending = (async () => {
      for (let round = 0; !isOver && round < 5; round++) {
        await sleep(20 + random(60))
        const ended = server!
        server = null
        await ended.terminate()
        server = await start()
      }
    })()
    const sums: number[] = []
    try {
      await Promise.all(
        clients.map(async (client) => {
          for (let round = 0; round < 40; round++) {
            sums.push(...(await Promise.all(Array.from({ length: 10 }, () => client.add('n', 1)))))
            await sleep(1)
          }
        }),
      )
      isOver = true
      await ending
      expect([seed, sums.sort((a, b) => a - b)]).toEqual([seed, Array.from({ length: 1200 }, (_, i) => i + 1)])
      expect(await clients[0]!.getText('n')).toBe('1200')
    } finally {
      for (const client of clients) client.close()
      await server?.terminate()
      rmSync(folder, { recursive: true })
    }
  },
  120_000,
)
