/** Connected sockets for tests: over TCP on the loopback, and over a Unix socket in a folder of its own. */
import { spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import net from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { RealClock } from '../clock.js'

export const clock = new RealClock()
export const sleep = (ms: number): Promise<void> => new Promise((resolve) => clock.setTimer(ms, resolve))

export async function until(done: () => boolean): Promise<void> {
  const limitMs = clock.now() + 20_000
  while (!done() && clock.now() < limitMs) await sleep(1)
}

/** A folder for Unix sockets; `remove` takes it away. */
export function socketFolder(): { readonly path: string; remove(): void } {
  const path = mkdtempSync(join(tmpdir(), 'pg-'))
  return { path, remove: () => rmSync(path, { recursive: true, force: true }) }
}

/** Of a process that listens there and is killed: nobody listens on it any more. */
export function leaveSocket(path: string): void {
  const script = "require('node:net').createServer().listen(process.argv[1], () => process.kill(process.pid, 'SIGKILL'))"
  const { NODE_OPTIONS: _, ...env } = process.env
  spawnSync(process.execPath, ['-e', script, path], { env })
}

export interface SocketPair {
  readonly a: net.Socket
  readonly b: net.Socket
  dispose(): void
}

export async function socketPair(kind: 'tcp' | 'unix'): Promise<SocketPair> {
  const folder = socketFolder()
  const server = net.createServer()
  server.listen(kind === 'tcp' ? { port: 0, host: '127.0.0.1' } : { path: join(folder.path, 's') })
  await once(server, 'listening')
  const address = server.address() as net.AddressInfo | string
  const a = typeof address === 'string' ? net.connect(address) : net.connect(address.port, '127.0.0.1')
  const [[b]] = (await Promise.all([once(server, 'connection'), once(a, 'connect')])) as [[net.Socket], unknown]
  server.close()
  // Connected sockets do not need it.
  folder.remove()
  return {
    a,
    b,
    dispose() {
      a.destroy()
      b.destroy()
    },
  }
}
