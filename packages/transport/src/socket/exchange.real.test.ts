/** Exchanges of two workers in one process, over real sockets: links that survive breaks, services, refusals, limits. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { chownSync, existsSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import net from 'node:net'
import { join } from 'node:path'
import tls from 'node:tls'
import { fileURLToPath } from 'node:url'
import { afterEach, describe, expect, test } from '@jest/globals'
import { EVERY_ORDER, frameOrder, type Link, NO_ORDER, staysBehind } from '../link.js'
import { describeLink, frame, Recorder, text } from '../link.suite.js'
import type { Address } from './address.js'
import { Authority } from './certificates.fixture.js'
import { Bye, ChunkType, controlChunk, HEAD_BYTES } from './chunk.js'
import type { Credentials } from './credentials.js'
import { Exchange, type ExchangeOptions } from './exchange.js'
import type { ListenAddress } from './listener.js'
import type { SocketLimits } from './socket-limits.js'
import { clock, leaveSocket, sleep, socketFolder, until } from './socket-pair.fixture.js'

const TCP: ListenAddress = { kind: 'tcp', host: '127.0.0.1', port: 0 }
const made: { close(): unknown }[] = []

afterEach(async () => {
  // Exchanges first, while the ways between them are open.
  const all = made.splice(0)
  await Promise.all(all.map((one) => one instanceof Exchange && one.close()))
  for (const one of all) await one.close()
})

function exchange(id: number, options: Partial<ExchangeOptions> & { limits?: Partial<SocketLimits> } = {}): Exchange {
  const self = { cluster: 'c', name: `w${id}`, id }
  const one = new Exchange({ self, credentials: null, clock, ...options })
  made.push(one)
  return one
}

const peer = (id: number) => ({ name: `w${id}`, id })

function folder(): string {
  const made_ = socketFolder()
  made.push({ close: made_.remove })
  return made_.path
}

/** Two workers that listen and know each other's addresses. */
async function two(
  kind: 'tcp' | 'unix',
  options: Partial<ExchangeOptions> & { limits?: Partial<SocketLimits> } = {},
): Promise<{ a: Exchange; b: Exchange; ofA: Link; ofB: Link; atA: readonly Address[]; atB: readonly Address[] }> {
  const [a, b] = [exchange(1, options), exchange(2, options)]
  const path = kind === 'unix' ? folder() : ''
  const where = (name: string): ListenAddress => (kind === 'tcp' ? TCP : { kind: 'unix', path: join(path, name) })
  const [atA, atB] = [await a.listen([where('a')]), await b.listen([where('b')])]
  const ofA = a.link(peer(2), () => atB)
  const ofB = b.link(peer(1), async () => atA)
  return { a, b, ofA, ofB, atA, atB }
}

/** A proxy between dialler and listener, which tests cut, stop and continue. */
class FaultyWay {
  readonly pairs: [net.Socket, net.Socket][] = []
  connections = 0
  isOpen = true
  /** In so many pieces that pass, a bit is turned. */
  damages = 0
  private readonly server: net.Server
  private readonly to: Address & { kind: 'tcp' }

  private constructor(to: Address) {
    this.to = to as Address & { kind: 'tcp' }
    this.server = net.createServer((socket) => this.onSocket(socket))
    made.push(this)
  }

  static async to(address: Address): Promise<{ proxy: FaultyWay; address: Address }> {
    const proxy = new FaultyWay(address)
    proxy.server.listen(0, '127.0.0.1')
    await once(proxy.server, 'listening')
    return { proxy, address: { kind: 'tcp', host: '127.0.0.1', port: (proxy.server.address() as net.AddressInfo).port } }
  }

  /** As a broken cable with a reset at both ends. */
  cut(): void {
    for (const pair of this.pairs.splice(0)) for (const socket of pair) socket.resetAndDestroy()
  }

  /** Nothing passes any more, but nothing is cut. */
  stall(): void {
    for (const pair of this.pairs) for (const socket of pair) socket.pause()
  }

  /** Stalled bytes pass again. */
  pass(): void {
    for (const pair of this.pairs) for (const socket of pair) socket.resume()
  }

  close(): void {
    this.isOpen = false
    this.server.close()
    this.cut()
  }

  private onSocket(socket: net.Socket): void {
    this.connections++
    if (!this.isOpen) {
      socket.resetAndDestroy()
      return
    }
    const there = net.connect(this.to.port, this.to.host)
    this.pairs.push([socket, there])
    for (const [from, to] of [
      [socket, there],
      [there, socket],
    ] as const) {
      from.on('error', () => to.destroy())
      from.on('close', () => to.destroy())
      from.on('data', (bytes) => {
        if (this.damages > 0 && bytes.length > 1000) {
          this.damages--
          bytes[bytes.length >> 1]! ^= 0x10
        }
        if (!to.write(bytes)) from.pause()
      })
      to.on('drain', () => from.resume())
    }
  }
}

/** Two workers with a faulty way between them, which the first dials; both ends are open. */
async function overFaultyWay(limits: Partial<SocketLimits> = {}) {
  const [a, b] = [exchange(1, { limits }), exchange(2, { limits })]
  const { proxy, address } = await FaultyWay.to((await b.listen([TCP]))[0]!)
  const [ofA, ofB] = [a.link(peer(2), () => [address]), b.link(peer(1), () => [])]
  const [atA, atB] = [new Recorder(), new Recorder()]
  ofA.open(atA)
  ofB.open(atB)
  return { a, b, proxy, address, ofA, ofB, atA, atB }
}

const numbers = (count: number, prefix = ''): string[] => Array.from({ length: count }, (_, i) => `${prefix}${i}`)

for (const kind of ['tcp', 'unix'] as const) {
  describeLink(`EXC-1 the link of an exchange over ${kind}`, {
    async make() {
      const { a, b, ofA, ofB } = await two(kind)
      return {
        a: ofA,
        b: ofB,
        async dispose() {
          await Promise.all([a.close(), b.close()])
        },
      }
    },
    until,
    turns: () => sleep(5),
    arrivesAtOnce: false,
  })
}

describe('a link of an exchange', () => {
  test.each(['tcp', 'unix'] as const)('SOCK-10 the sockets of an exchange emit no bytes over %s, handshake included', async (kind) => {
    const { a, b, ofA, ofB } = await two(kind)
    let events = 0
    for (const one of [a, b]) {
      const { end } = one as unknown as { end: { track(socket: net.Socket): void } }
      const { track } = end
      // Before anybody else has the socket.
      end.track = (socket) => {
        track(socket)
        const emit = socket.emit.bind(socket) as (...args: unknown[]) => boolean
        Object.assign(socket, {
          emit: (...args: unknown[]) => {
            if (args[0] === 'data') events++
            return emit(...args)
          },
        })
      }
    }
    const [atA, atB] = [new Recorder(), new Recorder()]
    ofA.open(atA)
    ofB.open(atB)
    atB.onEach = () => ofB.send(frame('back', new Uint8Array(300_000)))
    ofA.send(frame('there', new Uint8Array(300_000)))
    await until(() => atA.frames.length === 1)
    expect([atA.texts, atB.texts, events]).toEqual([['back'], ['there'], 0])
  })

  test('EXC-2 nothing is dialled before something is sent; then the other end answers on the same connection', async () => {
    const { a, b, ofA, ofB } = await two('tcp')
    const [atA, atB] = [new Recorder(), new Recorder()]
    ofA.open(atA)
    ofB.open(atB)
    await sleep(30)
    expect([a.counts.attached, b.counts.attached, a.identityOf(2)]).toEqual([0, 0, null])
    const met: string[] = []
    b.onPeerIdentity(({ name, role }) => met.push(`${name} ${role}`))
    ofA.send(frame('ask'))
    atB.onEach = () => ofB.send(frame('answer'))
    await until(() => atA.frames.length === 1)
    expect(atA.texts).toEqual(['answer'])
    expect(a.identityOf(2)).toEqual({ cluster: 'c', name: 'w2', id: 2, role: 'member' })
    expect(met).toEqual(['w1 member'])
  })

  test('EXC-3 both dial at once: one connection stays, nothing is lost or doubled', async () => {
    for (let round = 0; round < 10; round++) {
      const { a, b, ofA, ofB } = await two(round % 2 === 0 ? 'tcp' : 'unix')
      const [atA, atB] = [new Recorder(), new Recorder()]
      ofA.open(atA)
      ofB.open(atB)
      for (let i = 0; i < 200; i++) {
        ofA.send(frame(`${i}`))
        ofB.send(frame(`${i}`))
        if (i % 20 === 0) await sleep(round % 3)
      }
      await until(() => atA.frames.length >= 200 && atB.frames.length >= 200)
      expect([atA.texts, atB.texts]).toEqual([numbers(200), numbers(200)])
      expect([ofA.closed, ofB.closed]).toEqual([false, false])
      await Promise.all([a.close(), b.close()])
    }
  })

  test('EXC-4 a connection that is cut again and again, in the middle of large frames too: nothing is lost or doubled', async () => {
    const { proxy, ofA, ofB, atA, atB } = await overFaultyWay()
    const count = 60
    let cuts = 0
    const cutting = setInterval(() => {
      if (proxy.pairs.length > 0 && cuts < 12) {
        cuts++
        proxy.cut()
      }
    }, 40)
    made.push({ close: () => clearInterval(cutting) })
    for (let i = 0; i < count; i++) {
      ofA.send(frame(`${i}`, new Uint8Array(i % 3 === 0 ? 3_000_000 : 100).fill(i)))
      ofB.send(frame(`${i}`, new Uint8Array(i % 5 === 0 ? 2_000_000 : 10).fill(i)))
      await sleep(5)
    }
    await until(() => atA.frames.length >= count && atB.frames.length >= count)
    clearInterval(cutting)
    expect([atA.texts, atB.texts]).toEqual([numbers(count), numbers(count)])
    expect(cuts).toBeGreaterThan(3)
    for (const at of [atA, atB]) {
      for (const [i, { segments }] of at.frames.entries())
        expect(Buffer.compare(segments[0]!, new Uint8Array(segments[0]!.length).fill(i))).toBe(0)
    }
    expect([ofA.closed, ofB.closed]).toEqual([false, false])
  }, 60_000)

  test('SES-23 EXC-4 frames overtake others on a connection that is cut again and again: all arrive once, in each order that they belong to', async () => {
    const { proxy, ofA, ofB, atA, atB } = await overFaultyWay()
    const count = 90
    const orders = [frameOrder(1), frameOrder(2), frameOrder(3), NO_ORDER, EVERY_ORDER, frameOrder(4)]
    const orderOf = (i: number): number => orders[(i * 7 + (i >> 3)) % orders.length] as number
    const bytesAt = (i: number): number => (i % 6 === 0 ? 4_000_000 : 100)
    let cuts = 0
    const cutting = setInterval(() => {
      if (proxy.pairs.length > 0 && cuts < 8) {
        cuts++
        proxy.cut()
      }
    }, 60)
    made.push({ close: () => clearInterval(cutting) })
    for (let i = 0; i < count; i++) {
      for (const link of [ofA, ofB]) link.send(frame(`${i}`, new Uint8Array(bytesAt(i)).fill(i)), orderOf(i))
      await sleep(3)
    }
    await until(() => atA.frames.length >= count && atB.frames.length >= count)
    clearInterval(cutting)
    expect(cuts).toBeGreaterThan(3)
    let overtaken = 0
    for (const { frames, texts } of [atA, atB]) {
      const come = texts.map(Number)
      expect([...come].sort((x, y) => x - y)).toEqual(numbers(count).map(Number))
      const seen = new Set<number>()
      for (const [at, n] of come.entries()) {
        const passed = numbers(n)
          .map(Number)
          .filter((m) => !seen.has(m))
        expect({ n, shared: passed.filter((m) => staysBehind(orderOf(n), orderOf(m))) }).toEqual({ n, shared: [] })
        expect({ n, overtook: frames[at]!.overtook }).toEqual({ n, overtook: passed.length })
        expect(Buffer.compare(frames[at]!.segments[0]!, new Uint8Array(bytesAt(n)).fill(n))).toBe(0)
        if (passed.length > 0) overtaken++
        seen.add(n)
      }
    }
    expect(overtaken).toBeGreaterThan(0)
    expect([ofA.closed, ofB.closed]).toEqual([false, false])
  }, 60_000)

  test('EXC-5 no connection within the grace: the link ends at both ends, with what each address said', async () => {
    const limits = { graceMs: 700 }
    const { a, b, proxy, address, ofA, atA, atB } = await overFaultyWay(limits)
    ofA.send(frame('x'))
    await until(() => atB.frames.length === 1)
    proxy.isOpen = false
    proxy.cut()
    await until(() => atA.closed !== null && atB.closed !== null)
    expect(atA.closed).toMatchObject({
      by: 'peer',
      detail: expect.stringMatching(/no new connection to w2 \(2\) within 700 ms: tcp:\/\/127/),
    })
    expect(atB.closed).toMatchObject({ by: 'peer', detail: expect.stringContaining('no address is known') })
    // Another link to the same worker may begin.
    proxy.isOpen = true
    const again = a.link(peer(2), () => [address])
    const atB2 = new Recorder()
    b.link(peer(1), () => []).open(atB2)
    again.send(frame('again'))
    await until(() => atB2.frames.length === 1)
    expect(atB2.texts).toEqual(['again'])
  })

  test('EXC-5 a worker that nobody ever listens for: the link ends with the reason', async () => {
    const a = exchange(1, { limits: { graceMs: 200 } })
    const link = a.link(peer(2), () => [{ kind: 'tcp', host: '127.0.0.1', port: 1 }])
    const at = new Recorder()
    link.open(at)
    link.send(frame('x'))
    await until(() => at.closed !== null)
    expect(at.closed?.detail).toBe('no connection to w2 (2) within 200 ms: tcp://127.0.0.1:1: nobody listens there (ECONNREFUSED)')
  })

  test('EXC-6 a way on which nothing passes any more: suspected, then dead, at both ends', async () => {
    const limits = { heartbeatMs: 20, suspectMs: 60, deadMs: 200, graceMs: 10_000 }
    const { a, proxy, ofA, atA, atB } = await overFaultyWay(limits)
    ofA.send(frame('x'))
    await until(() => atB.frames.length === 1)
    const told: unknown[] = []
    a.onPeerHealth((who, health) => told.push([who.id, health]))
    proxy.stall()
    await until(() => atA.closed !== null && atB.closed !== null)
    expect(told[0]).toEqual([2, 'suspected'])
    expect(atA.closed).toMatchObject({ by: 'peer', detail: expect.stringContaining('nothing came from the other end for 200 ms') })
    expect(atB.closed?.by).toBe('peer')
  })

  test('EXC-6 a peer that stands still is told apart from one that is gone: its kernel still takes connections', async () => {
    const limits = { heartbeatMs: 20, suspectMs: 60, deadMs: 300 }
    const details: string[] = []
    const told: string[][] = []
    for (const isGone of [false, true]) {
      const health: string[] = []
      told.push(health)
      const [a, b] = [exchange(1, { limits }), exchange(2)]
      const [at] = await b.listen([TCP])
      const { proxy, address } = await FaultyWay.to(at!)
      // Found by the way first, and by the worker's own address when it is suspected.
      let known: readonly Address[] = [address]
      const link = a.link(peer(2), () => known)
      a.onPeerHealth((_, state) => health.push(state))
      const atA = new Recorder()
      link.open(atA)
      b.link(peer(1), () => []).open(new Recorder())
      link.send(frame('x'))
      await until(() => a.counts.attached === 1)
      known = [isGone ? { kind: 'tcp', host: '127.0.0.1', port: 1 } : at!]
      proxy.stall()
      await until(() => atA.closed !== null)
      details.push(atA.closed?.detail ?? '')
    }
    expect(details).toEqual([
      expect.stringContaining('its process is there and does not answer'),
      expect.stringContaining('nobody listens there'),
    ])
    expect(told).toEqual([['suspected', 'standing-still'], ['suspected']])
  })

  test('EXC-6 a new connection is one to a peer that is well, whatever was said of the former, or is found out about it later', async () => {
    for (const isFoundLater of [false, true]) {
      const [a, b] = [exchange(1, { limits: { heartbeatMs: 20, suspectMs: 60, deadMs: 60_000 } }), exchange(2)]
      const [at] = await b.listen([TCP])
      const { proxy, address } = await FaultyWay.to(at!)
      const way = await FaultyWay.to(at!)
      let found = (): void => {}
      let lookedUp = 0
      // First when it is dialled, then when it is suspected, then when it is dialled again.
      const addresses = (): readonly Address[] | Promise<readonly Address[]> => {
        if (++lookedUp !== 2) return [address]
        if (!isFoundLater) return [way.address]
        return new Promise((resolve) => {
          found = () => resolve([way.address])
        })
      }
      const health: string[] = []
      a.onPeerHealth((_, state) => health.push(state))
      const link = a.link(peer(2), addresses)
      link.open(new Recorder())
      const got = new Recorder()
      const back = b.link(peer(1), () => [])
      back.open(got)
      link.send(frame('x'))
      await until(() => got.frames.length === 1)
      proxy.stall()
      const before = isFoundLater ? ['suspected'] : ['suspected', 'standing-still']
      await until(() => health.length === before.length)
      proxy.cut()
      link.send(frame('y'))
      await until(() => got.frames.length === 2)
      found()
      await until(() => way.proxy.connections === 1)
      await sleep(100)
      expect(health).toEqual([...before, 'well'])
    }
  })

  test('EXC-6 a way that is whole again is no peer that stands still, though the probe is answered before the next tick', async () => {
    const [a, b] = [
      exchange(1, { limits: { heartbeatMs: 300, suspectMs: 600, deadMs: 60_000 } }),
      exchange(2, { limits: { heartbeatMs: 20 } }),
    ]
    const [at] = await b.listen([TCP])
    const { proxy, address } = await FaultyWay.to(at!)
    let found = (): void => {}
    let lookedUp = 0
    const addresses = (): readonly Address[] | Promise<readonly Address[]> => {
      if (++lookedUp !== 2) return [address]
      return new Promise((resolve) => {
        found = () => resolve(at === undefined ? [] : [at])
      })
    }
    const health: string[] = []
    a.onPeerHealth((_, state) => health.push(state))
    const link = a.link(peer(2), addresses)
    link.open(new Recorder())
    b.link(peer(1), () => []).open(new Recorder())
    link.send(frame('x'))
    await until(() => a.counts.attached === 1)
    proxy.stall()
    await until(() => health.length === 1)
    proxy.pass()
    await sleep(50)
    found()
    await until(() => health.length === 2)
    expect(health).toEqual(['suspected', 'well'])
  })

  test('EXC-4 bits that turn on the way: the connection ends, another brings the rest, and nothing damaged is delivered', async () => {
    const { proxy, ofA, atB: got } = await overFaultyWay()
    for (let i = 0; i < 40; i++) {
      if (i % 4 === 0) proxy.damages = 1
      ofA.send(frame(`${i}`, new Uint8Array(i % 2 === 0 ? 400_000 : 3000).fill(i)))
      await until(() => got.frames.length === i + 1)
    }
    expect(got.texts).toEqual(numbers(40))
    for (const [i, { segments }] of got.frames.entries())
      expect(Buffer.compare(segments[0]!, new Uint8Array(segments[0]!.length).fill(i))).toBe(0)
    expect(proxy.connections).toBeGreaterThan(5)
  })

  test.each([
    ['straight over loopback', 'network', false, ChunkType.PLAIN],
    ['through somebody who forwards it', 'network', true, ChunkType.DATA],
    ['straight, where all have one', 'always', false, ChunkType.DATA],
  ] as const)('CHK-5 the bytes of large frames over TCP, %s', async (_, checksums, isForwarded, type) => {
    const [a, b] = [exchange(1, { checksums }), exchange(2, { checksums })]
    const types = new Set<number>()
    for (const one of [a, b]) {
      const { end } = one as unknown as { end: { track(socket: net.Socket): void } }
      const { track } = end
      end.track = (socket) => {
        track(socket)
        const write = socket.write.bind(socket) as (bytes: Uint8Array) => boolean
        // The heads of large frames' bytes are written alone.
        socket.write = (bytes: string | Uint8Array) => {
          if (bytes.length === HEAD_BYTES) types.add((bytes as Uint8Array)[12]!)
          return write(bytes as Uint8Array)
        }
      }
    }
    const [at] = await b.listen([TCP])
    const { proxy, address } = isForwarded ? await FaultyWay.to(at!) : { proxy: null, address: at! }
    const [ofA, ofB] = [a.link(peer(2), () => [address]), b.link(peer(1), () => [])]
    const [atA, atB] = [new Recorder(), new Recorder()]
    ofA.open(atA)
    ofB.open(atB)
    atB.onEach = () => {
      if (atB.frames.length === 1) ofB.send(frame('back', new Uint8Array(300_000).fill(2)))
    }
    ofA.send(frame('there', new Uint8Array(300_000).fill(1)))
    await until(() => atA.frames.length === 1)
    expect([...types]).toEqual([type])
    if (proxy === null) return
    // A bit that turns in a proxy is found.
    proxy.damages = 1
    ofA.send(frame('again', new Uint8Array(300_000).fill(3)))
    await until(() => atB.frames.length === 2)
    expect(atB.frames[1]!.segments[0]!.every((byte) => byte === 3)).toBe(true)
    expect(proxy.connections).toBe(2)
  })

  test('EXC-4 a frame that the other end can never read ends the link, after a few connections', async () => {
    const a = exchange(1)
    const b = exchange(2, { limits: { frameBytesMax: 100_000 } })
    const at = await b.listen([TCP])
    const [ofA, ofB] = [a.link(peer(2), () => at), b.link(peer(1), () => [])]
    const [atA, atB] = [new Recorder(), new Recorder()]
    ofA.open(atA)
    ofB.open(atB)
    ofA.send(frame('fits'))
    ofA.send(frame('does not', new Uint8Array(200_000)))
    await until(() => atA.closed !== null && atB.closed !== null)
    expect(atB.texts).toEqual(['fits'])
    expect(atB.closed?.detail).toMatch(/at most 100000 bytes in a frame.*again and again/)
    expect(atA.closed?.by).toBe('peer')
  })

  test('EXC-10 who comes back in another role is not let in', async () => {
    const b = exchange(2, { limits: { graceMs: 300 } })
    const atB = await b.listen([TCP])
    const got = new Recorder()
    b.link(peer(1), () => []).open(got)
    const first = exchange(1)
    const of1 = first.link(peer(2), () => atB)
    of1.open(new Recorder())
    of1.send(frame('as member'))
    await until(() => got.frames.length === 1)
    for (const socket of (first as unknown as { sockets: Set<net.Socket> }).sockets) socket.destroy()
    first.ended(2, 'killed')
    const second = exchange(1, { self: { cluster: 'c', name: 'w1', id: 1, role: 'observer' }, limits: { graceMs: 200 } })
    const at2 = new Recorder()
    const of2 = second.link(peer(2), () => atB)
    of2.open(at2)
    of2.send(frame('as observer'))
    await until(() => got.closed !== null && at2.closed !== null)
    expect(got.texts).toEqual(['as member'])
    expect(at2.closed?.detail).toContain('this is a link to w1 as member')
  })

  test('EXC-11 a process that only listens ends by itself', async () => {
    const child = spawn(process.execPath, [fileURLToPath(new URL('./listens.fixture.js', import.meta.url))], {
      stdio: ['ignore', 'pipe', 'inherit'],
    })
    made.push({ close: () => child.kill() })
    const [said, [code]] = await Promise.all([once(child.stdout!, 'data'), once(child, 'exit')])
    expect([String(said[0]).startsWith('listening on tcp://127.0.0.1:'), code]).toEqual([true, 0])
  })

  test('EXC-7 a worker that membership learns of later: its connection waits, and nothing of it is lost', async () => {
    const [a, b] = [exchange(1), exchange(2)]
    const atB = await b.listen([TCP])
    const ofA = a.link(peer(2), () => atB)
    ofA.open(new Recorder())
    for (const each of numbers(50)) ofA.send(frame(each))
    await until(() => b.counts.strangers === 1)
    await sleep(30)
    const got = new Recorder()
    b.link(peer(1), () => []).open(got)
    await until(() => got.frames.length === 50)
    expect(got.texts).toEqual(numbers(50))
  })

  test('EXC-7 strangers wait for a time and in a number that are bounded', async () => {
    const limits = { strangersMax: 1, strangerMs: 200, graceMs: 600 }
    const b = exchange(9, { limits })
    const atB = await b.listen([TCP])
    const ends: Recorder[] = []
    for (const id of [1, 2, 3]) {
      const link = exchange(id, { limits }).link({ name: 'w9', id: 9 }, () => atB)
      const at = new Recorder()
      ends.push(at)
      link.open(at)
      link.send(frame('x'))
    }
    await until(() => ends.every((at) => at.closed !== null))
    expect(ends.every((at) => at.closed?.detail.includes('not known here'))).toBe(true)
    await until(() => (b as unknown as { strangers: Set<unknown> }).strangers.size === 0)
  })

  test('EXC-8 ended: at once where there is no connection; behind what was received where there is one', async () => {
    const { a, ofA, ofB, b } = await two('tcp', { limits: { lingerMs: 200 } })
    const [atA, atB] = [new Recorder(), new Recorder()]
    ofA.open(atA)
    ofB.open(atB)
    const other = a.link(peer(7), () => [])
    const at7 = new Recorder()
    other.open(at7)
    a.ended(7, 'its process has ended')
    await until(() => at7.closed !== null)
    expect(at7.closed).toEqual({ by: 'peer', detail: 'its process has ended' })
    ofB.send(frame('last words'))
    await until(() => atA.frames.length === 1)
    a.ended(2, 'its process was killed')
    ofB.send(frame('on the way'))
    await until(() => atA.closed !== null && atB.closed !== null)
    expect(atA.texts).toEqual(['last words', 'on the way'])
    expect(atA.closed).toEqual({ by: 'peer', detail: 'its process was killed' })
    expect(b.identityOf(1)).toBeNull()
  })

  test('EXC-8 ended while the link is paused: what it had sent is read all the same', async () => {
    const { a, ofA, ofB } = await two('tcp', { limits: { lingerMs: 300 } })
    const [atA, atB] = [new Recorder(), new Recorder()]
    ofA.open(atA)
    ofB.open(atB)
    ofB.send(frame('first'))
    await until(() => atA.frames.length === 1)
    ofA.setPaused!(true)
    ofB.send(frame('its last reply'))
    await sleep(30)
    expect(atA.texts).toEqual(['first'])
    a.ended(2, 'its process has ended')
    await until(() => atA.closed !== null)
    expect(atA.texts).toEqual(['first', 'its last reply'])
  })

  test('EXC-9 a worker that was started again under the same id is another: the old link ends, a new one begins', async () => {
    const b = exchange(2, { limits: { graceMs: 2000 } })
    const atB = await b.listen([TCP])
    const first = exchange(1)
    const of1 = first.link(peer(2), () => atB)
    of1.open(new Recorder())
    const old = new Recorder()
    b.link(peer(1), () => []).open(old)
    of1.send(frame('first life'))
    await until(() => old.frames.length === 1)
    // As a kill does: no goodbye.
    for (const socket of (first as unknown as { sockets: Set<net.Socket> }).sockets) socket.destroy()
    first.ended(2, 'killed')
    const second = exchange(1)
    const again = second.link(peer(2), () => atB)
    again.open(new Recorder())
    again.send(frame('second life'))
    await until(() => old.closed !== null)
    expect(old.closed?.by).toBe('peer')
    expect(old.texts).toEqual(['first life'])
    const next = new Recorder()
    b.link(peer(1), () => []).open(next)
    await until(() => next.frames.length === 1)
    expect(next.texts).toEqual(['second life'])
  })

  test('EXC-10 another worker at the address: nothing is sent to it', async () => {
    const [a, c] = [exchange(1, { limits: { graceMs: 200 } }), exchange(3)]
    const atC = await c.listen([TCP])
    const link = a.link(peer(2), () => atC)
    const at = new Recorder()
    link.open(at)
    link.send(frame('secret'))
    await until(() => at.closed !== null)
    expect(at.closed?.detail).toContain('WRONG_PEER')
    expect(c.counts.strangers).toBe(0)
  })

  test('EXC-11 close says goodbye: peers hear of it behind what was sent, and nothing stays open', async () => {
    const { a, b, ofA, ofB } = await two('unix')
    const atB = new Recorder()
    ofA.open(new Recorder())
    ofB.open(atB)
    for (const each of numbers(100)) ofA.send(frame(each))
    ofA.send(frame('large', new Uint8Array(3_000_000)))
    await a.close()
    await until(() => atB.closed !== null)
    expect(atB.frames.length).toBe(101)
    expect(() => a.link(peer(3), () => [])).toThrow(expect.objectContaining({ code: 'EXCHANGE_CLOSED' }))
    await b.close()
    expect([a, b].map((one) => (one as unknown as { sockets: Set<unknown> }).sockets.size)).toEqual([0, 0])
  })
})

describe('services of an exchange', () => {
  test('EXC-12 a connection for a purpose has a link of its own, and both know who is there', async () => {
    const [a, b] = [exchange(1), exchange(2)]
    const served: string[] = []
    b.serve('store', (link, { name }) => {
      served.push(name)
      link.open({
        onFrame: (got) => link.send(frame(`re ${text(got.header)}`)),
        onTurnEnd() {},
        onClose: ({ by }) => served.push(`closed by ${by}`),
      })
    })
    const { link, peer: who } = await a.dial('store', await b.listen([TCP]), { timeoutMs: 5000 })
    expect(who.name).toBe('w2')
    const at = new Recorder()
    link.open(at)
    link.send(frame('x'))
    await until(() => at.frames.length === 1)
    expect(at.texts).toEqual(['re x'])
    link.close()
    await until(() => served.length === 2)
    expect(served).toEqual(['w1', 'closed by peer'])
  })

  test('EXC-13 nobody there, a purpose that nobody serves, another cluster, a wrong key: one line that names the address', async () => {
    const key = (byte: number): Credentials => ({ kind: 'key', role: 'member', keys: { member: new Uint8Array(32).fill(byte) } })
    const a = exchange(1, { credentials: key(1) })
    const b = exchange(2, { credentials: key(2) })
    const atB = await b.listen([TCP])
    const port = (atB[0] as { port: number }).port
    const dial = (one: Exchange, purpose: string, at: readonly Address[]) =>
      one.dial(purpose, at, { timeoutMs: 3000 }).then(
        () => 'connected',
        (error: Error & { code: string }) => `${error.code}: ${error.message}`,
      )
    const nobody: Address[] = [
      { kind: 'tcp', host: '127.0.0.1', port: 1 },
      { kind: 'unix', path: '/nowhere/s' },
    ]
    expect(await dial(a, 'store', nobody)).toMatch(
      /^CONNECT_FAILED: connect: no connection to a worker, for 'store': tcp:\/\/127.0.0.1:1: nobody listens there \(ECONNREFUSED\)/,
    )
    expect(await dial(a, 'store', nobody.slice(1))).toMatch(/unix:\/nowhere\/s: the socket does not exist \(ENOENT\)/)
    expect(await dial(a, 'store', atB)).toMatch(new RegExp(`^AUTH_FAILED: .*tcp://127.0.0.1:${port}: AUTH_FAILED`))
    const sameKey = exchange(3, { credentials: key(2) })
    expect(await dial(sameKey, 'store', atB)).toMatch(/^PURPOSE_UNKNOWN: /)
    const elsewhere = exchange(4, { credentials: key(2), self: { cluster: 'other', name: 'w4', id: 4 } })
    expect(await dial(elsewhere, 'store', atB)).toMatch(/^CLUSTER_MISMATCH: /)
    const older = exchange(5, { credentials: key(2), release: '0.0.1' })
    expect(await dial(older, 'store', atB)).toMatch(/^VERSION_MISMATCH: /)
    const open = exchange(6)
    expect(await dial(open, 'store', atB)).toMatch(/^AUTH_FAILED: /)
    expect(await dial(open, 'store', [{ kind: 'tcp', host: '192.0.2.1', port: 5 }])).toMatch(/^CREDENTIALS_REQUIRED: /)
  })

  test('EXC-13 what listens and never answers is given up in time', async () => {
    const silent = net.createServer((socket) => socket.on('error', () => {}).resume())
    silent.listen(0, '127.0.0.1')
    await once(silent, 'listening')
    made.push(silent)
    const { port } = silent.address() as net.AddressInfo
    const a = exchange(1, { limits: { connectMs: 150 } })
    await expect(a.dial('store', [{ kind: 'tcp', host: '127.0.0.1', port }], { timeoutMs: 5000 })).rejects.toMatchObject({
      code: 'CONNECT_FAILED',
      message: expect.stringMatching(/no answer within 1\d\d ms/),
    })
    const signal = AbortSignal.timeout(50)
    await expect(a.dial('store', [{ kind: 'tcp', host: '127.0.0.1', port }], { timeoutMs: 5000, signal })).rejects.toMatchObject({
      name: 'TimeoutError',
    })
  })

  test('EXC-14 listening: a port that is taken, a range, a path that a killed process left, an address of others without credentials', async () => {
    const [a, b] = [exchange(1), exchange(2)]
    const [first] = await a.listen([TCP])
    const { port } = first as { port: number }
    await expect(b.listen([{ kind: 'tcp', host: '127.0.0.1', port }])).rejects.toMatchObject({ code: 'ADDRESS_IN_USE' })
    const [inRange] = await b.listen([{ kind: 'tcp', host: '127.0.0.1', port: [port, Math.min(65535, port + 20)], advertise: 'localhost' }])
    expect(inRange).toMatchObject({ kind: 'tcp', host: 'localhost' })
    expect((inRange as { port: number }).port).toBeGreaterThan(port)
    await expect(b.listen([{ kind: 'tcp', host: '0.0.0.0', port: 0 }])).rejects.toMatchObject({ code: 'CREDENTIALS_REQUIRED' })
    const path = join(folder(), 'left')
    const left = new net.Server()
    left.listen(path)
    await once(left, 'listening')
    await expect(b.listen([{ kind: 'unix', path }])).rejects.toMatchObject({ code: 'ADDRESS_IN_USE' })
    left.close()
    leaveSocket(path)
    expect(await b.listen([{ kind: 'unix', path }])).toEqual([{ kind: 'unix', path }])
    await b.close()
    expect(existsSync(path)).toBe(false)
  })

  test('EXC-14 what is at the path of a socket and is none, or is of another user, stays there: ADDRESS_IN_USE', async () => {
    const a = exchange(1)
    const place = folder()
    const file = join(place, 'weights.bin')
    writeFileSync(file, 'a week of work')
    await expect(a.listen([{ kind: 'unix', path: file }])).rejects.toMatchObject({
      code: 'ADDRESS_IN_USE',
      message: expect.stringContaining('is not a socket'),
    })
    expect(readFileSync(file, 'utf8')).toBe('a week of work')
    const left = join(place, 'left')
    leaveSocket(left)
    symlinkSync(left, join(place, 'link'))
    await expect(a.listen([{ kind: 'unix', path: join(place, 'link') }])).rejects.toMatchObject({ code: 'ADDRESS_IN_USE' })
    if (process.getuid?.() !== 0) return
    chownSync(left, 65_534, 65_534)
    await expect(a.listen([{ kind: 'unix', path: left }])).rejects.toMatchObject({ message: expect.stringContaining('another user') })
    expect(existsSync(left)).toBe(true)
  })

  test('EXC-14 an error names the address that is wrong: the one to advertise, or one of IPv6 in brackets', async () => {
    const credentials: Credentials = { kind: 'key', role: 'member', keys: { member: new Uint8Array(32).fill(1) } }
    const a = exchange(1, { credentials })
    await expect(a.listen([{ kind: 'tcp', host: '127.0.0.1', port: 0, advertise: 'node1:29500' }])).rejects.toMatchObject({
      code: 'ADDRESS_INVALID',
      message: expect.stringMatching(/^address: .* got "node1:29500"\. Write it without a port/),
    })
    // For documentation: no machine has it.
    await expect(a.listen([{ kind: 'tcp', host: '2001:db8::1', port: 29_500 }])).rejects.toMatchObject({
      code: 'ADDRESS_INVALID',
      message: expect.stringContaining('got tcp://[2001:db8::1]:29500 ('),
    })
  })

  test('EXC-15 who does not say who he is: too much, too slow, too many', async () => {
    const limits = { handshakeMs: 250, halfOpenMax: 5, halfOpenPerAddressMax: 3 }
    const b = exchange(2, { limits })
    b.serve('store', (link) => link.open(new Recorder()))
    const at = await b.listen([TCP])
    const { port } = at[0] as { port: number }
    const closed: number[] = []
    const guests = Array.from({ length: 6 }, (_, i) => {
      const socket = net.connect(port, '127.0.0.1')
      socket.on('error', () => {})
      socket.on('close', () => closed.push(i))
      return socket
    })
    // Three are let in, and three are not, at once.
    await until(() => closed.length === 3)
    expect([...closed].sort()).toEqual([3, 4, 5])
    // One drips a byte at a time.
    const dripping = setInterval(() => guests[0]!.write('x'), 20)
    await until(() => closed.length === 6)
    clearInterval(dripping)
    // The others are served all the time, and now.
    const { link } = await exchange(1).dial('store', at, { timeoutMs: 2000 })
    expect(link.closed).toBe(false)
  })

  test('EXC-16 garbage of any kind harms nobody else', async () => {
    const { a, ofA, ofB, atB } = await two('tcp')
    const got = new Recorder()
    ofA.open(new Recorder())
    ofB.open(got)
    const { port } = atB[0] as { port: number }
    let seed = 20_261_124
    const random = () => {
      seed = (Math.imul(seed, 1_103_515_245) + 12_345) >>> 0
      return seed
    }
    for (let i = 0; i < 60; i++) {
      const socket = net.connect(port, '127.0.0.1')
      socket.on('error', () => {})
      socket.write(Buffer.from(Array.from({ length: random() % 3000 }, () => random() >>> 24)))
      if (i % 3 === 0) socket.destroySoon()
      made.push({ close: () => socket.destroy() })
      ofA.send(frame(`${i}`))
      await sleep(1)
    }
    await until(() => got.frames.length === 60)
    expect(got.texts).toEqual(numbers(60))
    expect(a.identityOf(2)?.name).toBe('w2')
  })
})

describe('an exchange with TLS', () => {
  const authority = new Authority('ours')
  const of = (name: string, role = 'member', cluster = 'c', by = authority) => by.credentials(`postgrad:${cluster}/${name}?role=${role}`)

  test('EXC-17 certificates at both ends: the role is that of the certificate, and large frames and breaks pass', async () => {
    for (const kind of ['tcp', 'unix'] as const) {
      const a = exchange(1, { credentials: of('w1', 'observer') })
      const b = exchange(2, { credentials: of('w2') })
      const [atB] = await b.listen([kind === 'tcp' ? TCP : { kind: 'unix', path: join(folder(), 'b') }])
      const { proxy, address } = kind === 'tcp' ? await FaultyWay.to(atB!) : { proxy: null, address: atB! }
      const [got, back] = [new Recorder(), new Recorder()]
      const ofA = a.link(peer(2), () => [address])
      const ofB = b.link(peer(1), () => [])
      ofA.open(back)
      ofB.open(got)
      got.onEach = () => ofB.send(frame('re'))
      ofA.send(frame('0', new Uint8Array(3_000_000).fill(7)))
      await until(() => back.frames.length === 1)
      proxy?.cut()
      let flushed = 0
      const count = (isFlushed: boolean): void => void (isFlushed && flushed++)
      for (let i = 1; i < 20; i++) ofA.send(frame(`${i}`, new Uint8Array(300_000).fill(i)), EVERY_ORDER, count)
      await until(() => back.frames.length === 20)
      expect(got.texts).toEqual(numbers(20))
      // A little, too.
      ofA.send(frame('20', new Uint8Array(5000)), EVERY_ORDER, count)
      await until(() => flushed === 20 && got.frames.length === 21)
      expect([flushed, got.texts]).toEqual([20, numbers(21)])
      expect(Buffer.compare(got.frames[0]!.segments[0]!, new Uint8Array(3_000_000).fill(7))).toBe(0)
      expect(b.identityOf(1)).toEqual({ cluster: 'c', name: 'w1', id: 1, role: 'observer' })
    }
  })

  test('EXC-17 a certificate of another authority, of another worker, of another cluster, or none: refused, with a reason', async () => {
    const b = exchange(2, { credentials: of('w2') })
    b.serve('store', (link) => link.open(new Recorder()))
    const at = await b.listen([TCP])
    const dial = (one: Exchange) =>
      one.dial('store', at, { timeoutMs: 3000 }).then(
        () => 'connected',
        (error: Error & { code: string }) => `${error.code}: ${error.message}`,
      )
    expect(await dial(exchange(1, { credentials: of('w1') }))).toBe('connected')
    expect(await dial(exchange(3, { credentials: of('w3', 'member', 'c', new Authority('ours')) }))).toMatch(/^AUTH_FAILED: .*TLS refused/)
    expect(await dial(exchange(4, { credentials: of('w1') }))).toMatch(/^AUTH_FAILED: /)
    expect(await dial(exchange(5, { credentials: of('w5', 'member', 'other') }))).toMatch(/^AUTH_FAILED: /)
    expect(await dial(exchange(6, { credentials: null }))).toMatch(/^(CONNECT_FAILED|AUTH_FAILED): /)
  })

  /** An alert, or a socket that was closed before it could be read. */
  const REFUSED = /^(ERR_SSL_TLSV1\w*_ALERT_\w+|ECONNRESET|EPIPE)$/

  interface RawEnd {
    ended: string
    isReused: boolean
    session?: Buffer
  }

  /** Connects as no dialler of ours does, says goodbye, and waits until the other end closes. @returns how it ended, and the session that might be resumed */
  function dialRaw(port: number, options: tls.ConnectionOptions): Promise<RawEnd> {
    return new Promise((resolve) => {
      const socket = tls.connect({ port, host: '127.0.0.1', rejectUnauthorized: false, ...options })
      const got: RawEnd = { ended: 'closed', isReused: false }
      socket.on('secureConnect', () => {
        got.isReused = socket.isSessionReused()
        socket.write(controlChunk(ChunkType.BYE, Buffer.from([Bye.CLOSED]), 0))
      })
      socket.on('session', (session) => {
        got.session = session
      })
      socket.on('error', (error: NodeJS.ErrnoException) => {
        got.ended = error.code ?? error.message
      })
      socket.on('close', () => resolve(got))
      socket.resume()
    })
  }

  test('EXC-17 all connections of an exchange are checked alike: no certificate, another authority, an older TLS, before and behind good ones', async () => {
    const b = exchange(2, { credentials: of('w2') })
    b.serve('store', (link) => link.open(new Recorder()))
    const at = await b.listen([TCP])
    const { port } = at[0] as { port: number }
    const { ca, cert, key } = of('w1')
    const other = of('w1', 'member', 'c', new Authority('ours'))
    for (let round = 0; round < 2; round++) {
      expect((await dialRaw(port, { ca })).ended).toMatch(REFUSED)
      // It takes the listener for what it is, and would be let in by its name.
      const forged = exchange(1, { credentials: { kind: 'tls', ca, cert: other.cert, key: other.key } })
      await expect(forged.dial('store', at, { timeoutMs: 5000 })).rejects.toMatchObject({
        code: expect.stringMatching(/^(CONNECT_FAILED|AUTH_FAILED)$/),
      })
      expect((await dialRaw(port, { ca, cert, key, maxVersion: 'TLSv1.2' })).ended).toMatch(REFUSED)
      const { peer: who } = await exchange(1, { credentials: { kind: 'tls', ca, cert, key } }).dial('store', at, { timeoutMs: 5000 })
      expect(who.name).toBe('w2')
    }
  })

  test('EXC-17 no session is resumed: each connection shows its certificate', async () => {
    const b = exchange(2, { credentials: of('w2') })
    const [at] = await b.listen([TCP])
    const { port } = at as { port: number }
    const { ca, cert, key } = of('w1')
    const { ended, session } = await dialRaw(port, { ca, cert, key })
    expect([ended, session === undefined]).toEqual(['closed', false])
    const resuming = session === undefined ? {} : { session }
    expect(await dialRaw(port, { ca, cert, key, ...resuming })).toMatchObject({ ended: 'closed', isReused: false })
    expect(await dialRaw(port, { ca, ...resuming })).toMatchObject({ ended: expect.stringMatching(REFUSED), isReused: false })
  })

  test('EXC-17 a dialler takes no certificate of another authority, and no older TLS', async () => {
    const other = of('w2', 'member', 'c', new Authority('ours'))
    const ours = of('w2')
    for (const options of [
      { cert: other.cert, key: other.key },
      { cert: ours.cert, key: ours.key, maxVersion: 'TLSv1.2' },
    ] as const) {
      let connections = 0
      const server = tls.createServer(options, () => connections++)
      server.on('tlsClientError', () => {})
      server.listen(0, '127.0.0.1')
      await once(server, 'listening')
      made.push(server)
      const { port } = server.address() as net.AddressInfo
      const dialled = exchange(1, { credentials: of('w1') }).dial('store', [{ kind: 'tcp', host: '127.0.0.1', port }], { timeoutMs: 3000 })
      await expect(dialled).rejects.toMatchObject({ code: 'AUTH_FAILED' })
      expect(connections).toBe(0)
    }
  })

  test('EXC-17 many at once: each connection is the one that it was dialled as', async () => {
    const b = exchange(99, { credentials: of('w99') })
    b.serve('store', (link, { name }) => {
      link.open(new Recorder())
      link.send(frame(name))
    })
    for (const where of [TCP, { kind: 'unix', path: join(folder(), 'b') } as const]) {
      const at = await b.listen([where])
      const ids = Array.from({ length: 12 }, (_, i) => i + 1)
      const names = ids.map(async (id) => {
        const { link } = await exchange(id, { credentials: of(`w${id}`) }).dial('store', at, { timeoutMs: 10_000 })
        const got = new Recorder()
        link.open(got)
        await until(() => got.frames.length === 1)
        return got.texts[0]
      })
      expect(await Promise.all(names)).toEqual(ids.map((id) => `w${id}`))
    }
  })

  test('EXC-17 a key of another certificate is refused at once, and not shown', () => {
    const credentials = { ...of('w1'), key: of('w1').key }
    expect(() => exchange(1, { credentials })).toThrow(
      expect.objectContaining({ code: 'CREDENTIALS_INVALID', message: expect.not.stringContaining('PRIVATE') }),
    )
  })
})
