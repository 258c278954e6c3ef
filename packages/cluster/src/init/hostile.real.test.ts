/**
 * A worker is attacked over real sockets while it serves another: before the handshake, during it, and by hostile peers that have a key. Whatever they do,
 * the calls of the honest worker succeed all the time, no error is uncaught, and memory stays within the limits.
 */
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import net from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals'
import { call, expose, type RoleRights, type WorkerInfo } from '@postgrad/rpc'
import type { WorkerRuntime } from '@postgrad/rpc/internal'
import { Heap, HeapRoom, HeapTransport } from '@postgrad/tensor/internal'
import type { Frame, Link } from '@postgrad/transport'
import { type Address, ChunkType, type Credentials, Exchange, HEAD_BYTES, RealClock, type SocketLimits } from '@postgrad/transport/internal'
import { WIRE_VERSION } from '@postgrad/wire/internal'
import { makeRuntime } from '../admin/make-runtime.js'
import { RawPeer, raw } from './hostile.fixture.js'

const clock = new RealClock()
const MEMORY_BYTES_MAX = 128 * 2 ** 20
const LIMITS: Partial<SocketLimits> = {
  frameBytesMax: 2 ** 20,
  keptBytesMax: 8 * 2 ** 20,
  queuedBytesMax: 8 * 2 ** 20,
  handshakeMs: 400,
  halfOpenMax: 40,
  halfOpenPerAddressMax: 20,
  connectionsPerAddressMax: 60,
  strangersMax: 10,
  strangerMs: 300,
  graceMs: 5000,
  lingerMs: 100,
}
const KEYS = { member: new Uint8Array(32).fill(0xa5), observer: new Uint8Array(32).fill(0x5b) }
const MEMBER: Credentials = { kind: 'key', role: 'member', keys: KEYS }
const OBSERVER: Credentials = { kind: 'key', role: 'observer', keys: { observer: KEYS.observer } }
const RIGHTS: Readonly<Record<string, RoleRights>> = { observer: { call: ['hostile.act'] } }
const [RESULT, EXCEPTION] = [0x01, 0x02]
const VICTIM = { name: 'victim', id: 0 }
const HONEST = { name: 'honest', id: 1 }
const HOSTILE = { name: 'hostile', id: 2 }

let steps = 0
const act = (x: number): number => x + 1
const step = (): number => ++steps
const hold = (): Promise<number> => new Promise((resolve) => clock.setTimer(200, () => resolve(1)))
expose({ 'hostile.act': act, 'hostile.step': step, 'hostile.hold': hold })

const ends: (() => unknown)[] = []
const uncaught: unknown[] = []
const note = (error: unknown) => uncaught.push(error)

beforeEach(() => {
  steps = 0
  uncaught.length = 0
  process.on('uncaughtException', note)
  process.on('unhandledRejection', note)
})

afterEach(async () => {
  for (const end of ends.splice(0).reverse()) await end()
  process.removeListener('uncaughtException', note)
  process.removeListener('unhandledRejection', note)
})

const sleep = (ms: number): Promise<void> => new Promise((resolve) => clock.setTimer(ms, resolve))
async function until(done: () => boolean, what: string): Promise<void> {
  const limitMs = clock.now() + 15_000
  while (!done()) {
    if (clock.now() > limitMs) throw new Error(`never: ${what}`)
    await sleep(2)
  }
}

class Worker {
  readonly info: WorkerInfo
  readonly exchange: Exchange
  readonly runtime: WorkerRuntime

  constructor(info: WorkerInfo, credentials: Credentials, limits: Partial<SocketLimits> = LIMITS) {
    this.info = info
    this.exchange = new Exchange({ self: { cluster: 'c', ...info }, credentials, clock, limits })
    const { exchange } = this
    const boot = {
      seed: 0,
      device: null,
      options: { rpcTimeoutMs: 10_000, mailbox: { callsMax: 500, bytesMax: 2 ** 20 } },
      access: { roles: {}, rights: RIGHTS },
    }
    this.runtime = makeRuntime(info, 0, clock, boot, { roleOf: (peer) => exchange.identityOf(peer.id)?.role ?? 'member' })
    exchange.onPeerIdentity((peer) => {
      if (this.runtime.peers.get(peer.id) !== undefined) this.runtime.setPeerRole(peer.id, peer.role)
    })
    ends.push(() => exchange.close())
    ends.push(() => this.runtime.close())
  }

  meet(peer: WorkerInfo, at: readonly Address[] = []): void {
    this.runtime.connect(
      peer,
      this.exchange.link(peer, () => at),
      new HeapTransport(Heap.create({ reservedBytes: 2 ** 20 }), new HeapRoom()),
      false,
    )
  }

  ask<T>(fn: () => T): Promise<Awaited<T>> {
    return this.runtime.run(fn) as Promise<Awaited<T>>
  }
}

/** The victim listens on TCP and a Unix socket, and the honest worker, which came by the latter, calls it all the time. */
async function attacked() {
  const folder = mkdtempSync(join(tmpdir(), 'pg-'))
  ends.push(() => rmSync(folder, { recursive: true, force: true }))
  const victim = new Worker(VICTIM, MEMBER)
  const [tcp, unix] = (await victim.exchange.listen([
    { kind: 'tcp', host: '127.0.0.1', port: 0 },
    { kind: 'unix', path: join(folder, 'victim') },
  ])) as [Address, Address]
  const honest = new Worker(HONEST, MEMBER)
  victim.meet(HONEST)
  honest.meet(VICTIM, [unix])
  expect(await honest.ask(() => call('victim', act, [1]))).toBe(2)
  const held = (): number => {
    const { heapUsed, arrayBuffers } = process.memoryUsage()
    return heapUsed + arrayBuffers
  }
  const before = held()
  let peakBytes = 0
  let isOver = false
  let served = 0
  const failures: unknown[] = []
  const serving = (async () => {
    while (!isOver) {
      const got = await honest.ask(() => call('victim', act, [served])).catch((error) => error)
      if (got === served + 1) served++
      else failures.push(got)
      peakBytes = Math.max(peakBytes, held() - before)
      await sleep(2)
    }
  })()
  /** What an attack has come to. It has lasted for some calls at least. */
  const end = async (): Promise<void> => {
    const first = served
    await until(() => served >= first + 10 || failures.length > 0, 'ten calls behind the attack')
    isOver = true
    await serving
    expect([failures, uncaught]).toEqual([[], []])
    expect(peakBytes).toBeLessThan(MEMORY_BYTES_MAX)
  }
  return { victim, honest, tcp, unix, end }
}

const memberAs = (info: WorkerInfo) => ({ cluster: 'c', ...info, role: 'member' })
const observerAs = (info: WorkerInfo) => ({ cluster: 'c', ...info, role: 'observer' })

/** A peer that has a link of its own, and posts frames by hand. */
async function posting(victim: Worker, at: Address, credentials: Credentials = MEMBER): Promise<{ link: Link; got: Frame[] }> {
  const exchange = new Exchange({
    self: { cluster: 'c', ...HOSTILE },
    credentials,
    clock,
    limits: { ...LIMITS, frameBytesMax: 2 ** 26, keptBytesMax: 2 ** 27 },
  })
  ends.push(() => exchange.close())
  victim.meet(HOSTILE)
  const link = exchange.link(VICTIM, () => [at])
  const got: Frame[] = []
  link.open({ onFrame: (frame) => got.push(frame), onTurnEnd() {}, onClose() {} })
  return { link, got }
}

/** LARGE: a frame of one segment. */
function announcementOf(bytes: number): Buffer {
  const body = Buffer.alloc(12)
  body.writeUInt32LE(1, 4)
  body.writeUInt32LE(bytes, 8)
  return body
}

/** CALL of a function with the packed values, as the wire says. */
function callFrame(name: string, packed: readonly number[], requestId = 5): Frame {
  // The type, a flag: the body is packed, no lineage; the request id; the body in a list.
  const head = [0x00, 0x20, 0, 0, ...new Uint8Array(Float64Array.of(requestId).buffer)]
  const value = [...head, 0x91, 0x92, 0xa0 + name.length, ...Buffer.from(name), ...packed]
  return { header: Uint8Array.of(value.length & 255, value.length >> 8, 0, WIRE_VERSION, ...value), segments: [] }
}

describe('a worker that is attacked', () => {
  test('SEC-5 SEC-10 half-open connections that drip, more than may be: closed in time, and honest workers come and are served meanwhile', async () => {
    const { victim, tcp, unix, end } = await attacked()
    const sockets: net.Socket[] = []
    for (let i = 0; i < 120; i++) sockets.push(await raw(tcp))
    const dripping = setInterval(() => {
      for (const socket of sockets) if (!socket.destroyed) socket.write('x')
    }, 20)
    ends.push(() => clearInterval(dripping))
    await until(() => sockets.filter(({ destroyed }) => destroyed).length >= 100, 'those that are too many are closed at once')
    const late = new Worker({ name: 'late', id: 3 }, MEMBER)
    victim.meet(late.info)
    late.meet(VICTIM, [unix])
    expect(await late.ask(() => call('victim', act, [7]))).toBe(8)
    await until(() => sockets.every(({ destroyed }) => destroyed), 'those that say nothing are closed in time')
    clearInterval(dripping)
    // And their address has room again.
    const again = await RawPeer.as(tcp, memberAs({ name: 'again', id: 4 }), MEMBER, VICTIM)
    expect(again.closed).toBe(false)
    again.socket.destroy()
    await end()
  })

  test('SEC-5 SEC-10 floods of connections from one address, as fast as they go: bounded, and none of them stays', async () => {
    const { unix, tcp, end } = await attacked()
    let [opened, left] = [0, 0]
    for (let round = 0; round < 15; round++) {
      const sockets = Array.from({ length: 40 }, () => net.connect((tcp as { port: number }).port, '127.0.0.1'))
      for (const socket of sockets) {
        socket.on('error', () => {})
        socket.on('connect', () => opened++)
        socket.on('close', () => left++)
      }
      await sleep(5)
      if (round % 2 === 0) for (const socket of sockets) socket.destroy()
    }
    await until(() => left === 600, 'all of them are closed')
    expect(opened).toBeGreaterThan(100)
    const { socket } = await RawPeer.as(unix, memberAs({ name: 'again', id: 4 }), MEMBER, VICTIM)
    socket.destroy()
    await end()
  })

  test('SEC-6 SEC-10 PINGs without end, and answers that nobody reads: few answers, and they are not hoarded', async () => {
    const { tcp, end } = await attacked()
    const peer = await RawPeer.as(tcp, memberAs(HOSTILE), MEMBER, VICTIM)
    const before = peer.bytesGot
    let sent = 0
    peer.socket.pause()
    for (let i = 0; i < 100; i++) {
      for (let k = 0; k < 500; k++, sent += HEAD_BYTES) peer.control(ChunkType.PING)
      await sleep(1)
    }
    await until(() => peer.socket.writableLength === 0 || peer.closed, 'all of them are written')
    peer.socket.resume()
    await sleep(50)
    expect(sent).toBe(800_000)
    expect(peer.bytesGot - before).toBeLessThan(sent / 10)
    peer.socket.destroy()
    await end()
  })

  test('SEC-10 garbage before the handshake, in it and behind it ends that connection alone', async () => {
    const { tcp, end } = await attacked()
    let state = 20_261_124
    const byte = (): number => {
      state = (Math.imul(state, 1_103_515_245) + 12_345) >>> 0
      return state >>> 24
    }
    const garbage = (length: number): Buffer => Buffer.from(Array.from({ length }, byte))
    for (let i = 0; i < 60; i++) {
      if (i % 3 < 2) {
        const socket = await raw(tcp)
        socket.write(garbage(1 + (byte() << 3)))
        await once(socket, 'close')
        continue
      }
      const peer = await RawPeer.as(tcp, memberAs({ name: `hostile${i}`, id: 100 + i }), MEMBER, VICTIM)
      if (byte() < 128) peer.control((2 + (byte() % 8)) as ChunkType, garbage(byte()))
      peer.socket.write(garbage(1 + (byte() << 3)))
      await until(() => peer.closed, 'its connection is ended')
      peer.socket.destroy()
    }
    await end()
  })

  test('SEC-2 SEC-7 SEC-10 a recorded connection, sent again: refused at the proof, and nothing runs twice', async () => {
    const { victim, tcp, end } = await attacked()
    const recorded: Buffer[] = []
    const way = net.createServer((socket) => {
      const there = net.connect((tcp as { port: number }).port, '127.0.0.1')
      socket.on('data', (bytes) => recorded.push(bytes))
      socket.on('error', () => there.destroy())
      socket.on('close', () => there.destroy())
      there.on('error', () => socket.destroy())
      there.on('close', () => socket.destroy())
      socket.pipe(there).pipe(socket)
    })
    way.listen(0, '127.0.0.1')
    await once(way, 'listening')
    ends.push(() => way.close())
    const other = new Worker(HOSTILE, MEMBER)
    victim.meet(HOSTILE)
    other.meet(VICTIM, [{ kind: 'tcp', host: '127.0.0.1', port: (way.address() as net.AddressInfo).port }])
    expect(await other.ask(() => call('victim', step, []))).toBe(1)
    for (const pieces of [recorded, [Buffer.concat(recorded)], recorded.slice(0, 2), recorded.slice(1)]) {
      const socket = await raw(tcp)
      for (const piece of [...pieces]) {
        if (!socket.destroyed) socket.write(piece)
        await sleep(5)
      }
      if (!socket.destroyed) await once(socket, 'close')
    }
    expect([steps, await other.ask(() => call('victim', step, []))]).toEqual([1, 2])
    await end()
  })

  test('SEC-2 SEC-4 SEC-9 SEC-10 forged names, ids and roles: refused, and the worker whose they are is served on in its role', async () => {
    const { victim, unix, end } = await attacked()
    const forged: [string, () => Promise<RawPeer>, RegExp][] = [
      [
        'a role without its key',
        () => RawPeer.as(unix, memberAs(HONEST), { kind: 'key', role: 'member', keys: { member: KEYS.observer } }, VICTIM),
        /AUTH_FAILED|proof|closed/,
      ],
      ['another cluster', () => RawPeer.as(unix, { ...memberAs(HONEST), cluster: 'd' }, MEMBER, VICTIM), /another cluster/],
      ['the victim itself', () => RawPeer.as(unix, memberAs(VICTIM), MEMBER, VICTIM), /./],
      ['no credentials', () => RawPeer.as(unix, memberAs(HONEST), null, VICTIM), /./],
    ]
    for (const [what, peer, why] of forged) {
      const end_ = await peer().then(
        () => 'connected',
        (error: Error) => error.message,
      )
      expect([what, end_]).toEqual([what, expect.stringMatching(why)])
      expect([what, end_]).not.toEqual([what, 'connected'])
    }
    // These have a key. The role decides, where a name is taken; and a name that nobody knows waits for a while.
    const turnedAway = await Promise.all([
      RawPeer.as(unix, observerAs(HONEST), OBSERVER, VICTIM),
      RawPeer.as(unix, memberAs({ name: 'other', id: HONEST.id }), MEMBER, VICTIM),
      RawPeer.as(unix, memberAs({ name: HONEST.name, id: 77 }), MEMBER, VICTIM),
    ])
    await until(() => turnedAway.every(({ closed }) => closed), 'all of them are turned away')
    expect(turnedAway.map(({ bye }) => bye)).toEqual([
      'this is a link to honest as member',
      'this is a link to honest as member',
      'the worker is not known here',
    ])
    expect(victim.exchange.identityOf(HONEST.id)).toEqual(memberAs(HONEST))
    expect(victim.runtime.peerRole(HONEST.id)).toBe('member')
    await end()
  })

  test('SEC-8 SEC-9 a peer that exceeds its role: what is listed is done, all else NOT_PERMITTED, over and over', async () => {
    const { victim, tcp, end } = await attacked()
    const observer = new Worker(HOSTILE, OBSERVER)
    victim.meet(HOSTILE)
    observer.meet(VICTIM, [tcp])
    const code = (promise: Promise<unknown>) => promise.then(String, (error: Error & { code: string }) => error.code)
    for (let i = 0; i < 50; i++) {
      expect(await code(observer.ask(() => call('victim', act, [i])))).toBe(`${i + 1}`)
      expect(await code(observer.ask(() => call('victim', step, [])))).toBe('NOT_PERMITTED')
    }
    expect([steps, victim.runtime.peerRole(HOSTILE.id)]).toEqual([0, 'observer'])
    await end()
  })

  test('SEC-8 names that every object has, and others that were not exposed, are answered, and nothing runs', async () => {
    const { victim, tcp, end } = await attacked()
    const { link, got } = await posting(victim, tcp)
    const names = ['constructor', '__proto__', 'toString', 'eval', 'hostile', 'valueOf', 'postgrad.']
    for (const [i, name] of names.entries()) link.send(callFrame(name, [0x90], 10 + i))
    const exceptions = () => got.filter(({ header }) => header[4] === EXCEPTION)
    await until(() => exceptions().length === names.length, 'an answer to each')
    expect(steps).toBe(0)
    await end()
  })

  test('SEC-7 SEC-10 names of blocks of a shared heap, and other forged messages, from a socket: dead letters', async () => {
    const { victim, tcp, end } = await attacked()
    const { link } = await posting(victim, tcp)
    const before = victim.runtime.deadLetters().counts.unreadable ?? 0
    const frames = (): Frame[] => [
      // [null, 0x18 (a block), five words, extent]
      callFrame('hostile.act', [0x91, 0x98, 0xc0, 0x18, 0x00, 0x00, 0x00, 0x00, 0x00, 0x01]),
      callFrame('hostile.act', [0xdd, 0xff, 0xff, 0xff, 0xff]),
      { header: Uint8Array.of(0xff, 0xff, 0xff, WIRE_VERSION), segments: [] },
      { header: new Uint8Array(0), segments: [] },
      { header: new Uint8Array(10_000).fill(0x91), segments: [new Uint8Array(9000)] },
    ]
    for (let round = 0; round < 20; round++) for (const frame of frames()) link.send(frame)
    await until(() => (victim.runtime.deadLetters().counts.unreadable ?? 0) - before === 100, 'all of them are dead letters')
    expect(victim.runtime.deadLetters().last.some(({ what }) => what.includes('does not share'))).toBe(true)
    await end()
  })

  test('SEC-6 SEC-10 a member that floods beyond its budget: frames that are too large end its connection, calls that are too many are refused', async () => {
    const { victim, tcp, end } = await attacked()
    const { link, got } = await posting(victim, tcp)
    // Each of them 8 KiB, to a function that takes its time: 8 MiB, where 1 MiB may wait.
    const padding = [0x91, 0xda, 0x20, 0x00, ...new Array<number>(8192).fill(0x61)]
    for (let i = 0; i < 1000; i++) {
      link.send(callFrame('hostile.hold', padding, i))
      if (i % 100 === 0) await sleep(1)
    }
    const answers = () => got.filter(({ header }) => header[4] === RESULT || header[4] === EXCEPTION).length
    await until(() => answers() === 1000, 'each is answered, or refused')
    // It comes again, and sends the same: each time its connection ends at the announcement.
    link.send({ header: new Uint8Array(64), segments: [new Uint8Array(4 * 2 ** 20)] })
    const announcing = await RawPeer.as(tcp, memberAs(HOSTILE), MEMBER, VICTIM)
    announcing.control(ChunkType.LARGE, announcementOf(4 * 2 ** 20))
    await until(() => announcing.closed, 'it is ended')
    await sleep(300)
    expect(victim.runtime.deadLetters().counts.unreadable ?? 0).toBe(0)
    await end()
  })

  test('SEC-6 SEC-10 an observer that is refused as fast as it sends: what waits is bounded, it is read slowly, and a member is served meanwhile', async () => {
    const { victim, tcp, end } = await attacked()
    const { link, got } = await posting(victim, tcp, OBSERVER)
    const { mailbox } = victim.runtime.pump
    const { inflow } = victim.runtime.peers.resolve(HOSTILE.id)
    let deepest = 0
    for (let sent = 0; sent < 20_000; sent += 250) {
      for (let i = 0; i < 250; i++) link.send(callFrame('hostile.step', [0x90], (sent + i) & 0x7fff))
      await sleep(1)
      deepest = Math.max(deepest, mailbox.size)
    }
    const answers = () => got.filter(({ header }) => header[4] === EXCEPTION).length
    await until(() => inflow!.pauses > 0, 'it is not read for a while')
    // A window of 500 calls, and what goes beyond.
    expect(deepest).toBeLessThan(500 + 1024 + 100)
    expect([steps, answers() < 10_000]).toEqual([0, true])
    await end()
  })

  test('SEC-6 SEC-10 announcements of large frames whose bytes never come, on as many connections as there may be', async () => {
    const { tcp, end } = await attacked()
    const peers: RawPeer[] = []
    for (let i = 0; i < 50; i++) {
      try {
        const peer = await RawPeer.as(tcp, memberAs({ name: `hostile${i}`, id: 100 + i }), MEMBER, VICTIM)
        peer.control(ChunkType.LARGE, announcementOf(2 ** 20))
        peers.push(peer)
      } catch {
        // It was one too many.
      }
    }
    await until(() => peers.every(({ closed }) => closed), 'strangers do not stay')
    await end()
  })
})
