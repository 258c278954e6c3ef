/**
 * Malicious peers that are authenticated: they hold a key, speak the protocol, and pose as other workers. Honest workers continue, and the cost of
 * an attack is bounded. The victim and the honest workers are exchanges of this process.
 */
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import net from 'node:net'
import { join } from 'node:path'
import tls from 'node:tls'
import { afterEach, describe, expect, test } from '@jest/globals'
import { frame, Recorder } from '../link.suite.js'
import { SessionKind, sessionFrame } from '../session/session-frame.js'
import type { Address } from './address.js'
import { Authority } from './certificates.fixture.js'
import { ChunkType } from './chunk.js'
import { type Established, establish } from './connection.js'
import type { Credentials, Identity, KeyCredentials } from './credentials.js'
import { Exchange } from './exchange.js'
import { readResume } from './peer-link.js'
import { SOCKET_LIMITS, type SocketLimits } from './socket-limits.js'
import type { SocketLink } from './socket-link.js'
import { clock, sleep, socketFolder, until } from './socket-pair.fixture.js'

const key = (byte: number) => new Uint8Array(32).fill(byte)
const KEYS = { member: key(1), observer: key(2) }
const of = (role: 'member' | 'observer'): KeyCredentials => ({
  kind: 'key',
  role,
  keys: role === 'member' ? KEYS : { observer: KEYS.observer },
})
const words = (...numbers: number[]): Buffer => {
  const body = Buffer.alloc(4 * numbers.length)
  for (const [i, n] of numbers.entries()) body.writeUInt32LE(n, 4 * i)
  return body
}
const peer = (id: number) => ({ name: `w${id}`, id })

const made: { close(): unknown }[] = []
afterEach(async () => {
  for (const one of made.splice(0).reverse()) await one.close()
})

function exchange(id: number, limits: Partial<SocketLimits> = {}): Exchange {
  const one = new Exchange({ self: { cluster: 'c', ...peer(id) }, credentials: of('member'), clock, limits: { lingerMs: 100, ...limits } })
  made.push(one)
  return one
}

/** Two members that are linked, and a way between them that can be cut. */
async function linked(limits: Partial<SocketLimits> = {}) {
  const folder = socketFolder()
  made.push({ close: folder.remove })
  const at: Address = { kind: 'unix', path: join(folder.path, 'victim') }
  const [honest, victim] = [exchange(1, limits), exchange(2, limits)]
  await victim.listen([at])
  let isOpen = true
  const through: net.Socket[] = []
  const way = net.createServer((socket) => {
    if (!isOpen) {
      socket.destroy()
      return
    }
    const there = net.connect(at.path)
    for (const [from, to] of [[socket, there] as const, [there, socket] as const]) {
      from.on('error', () => to.destroy())
      from.on('close', () => to.destroy())
      from.pipe(to)
      through.push(from)
    }
  })
  const wayAt: Address = { kind: 'unix', path: join(folder.path, 'way') }
  way.listen(wayAt.path)
  made.push({ close: () => way.close() })
  const got = new Recorder()
  const ofVictim = victim.link(peer(1), () => [])
  ofVictim.open(got)
  const ofHonest = honest.link(peer(2), () => [wayAt])
  ofHonest.open(new Recorder())
  ofHonest.send(frame('first'))
  await until(() => got.frames.length === 1)
  const cut = (): void => {
    isOpen = false
    for (const socket of through.splice(0)) socket.destroy()
  }
  const heal = (): void => {
    isOpen = true
  }
  return { at, victim, got, ofHonest, cut, heal }
}

/** A connection for a session of the worker that it claims to be, after its handshake. */
function posing(
  at: Address & { kind: 'unix' },
  self: Identity,
  credentials: KeyCredentials,
  onControl: (link: SocketLink, type: ChunkType, body: Buffer) => void = () => {},
): Promise<Established> {
  const socket = net.connect(at.path)
  made.push({ close: () => socket.destroy() })
  const random = (bytes: number) => Uint8Array.from({ length: bytes }, (_, i) => 7 * i)
  return new Promise((resolve, reject) => {
    establish(socket, {
      clock,
      limits: SOCKET_LIMITS,
      timeoutMs: 2000,
      checksums: 'always',
      place: undefined,
      handshake: { side: 'dialler', self, credentials, random, wants: peer(2) },
      onDone: (established) => {
        const { link } = established
        link.hook({ onControl: (type, body) => onControl(link, type, body) })
        resolve(established)
      },
      onFailed: reject,
    })
  })
}

describe('a peer that poses as another', () => {
  test('EXC-18 whoever has proven another role does not take over the session of a worker, whose name, id and life it says', async () => {
    const { at, victim, got, ofHonest, cut, heal } = await linked()
    expect(victim.identityOf(1)?.role).toBe('member')
    cut()
    let isAttached = false
    // The victim says in its RESUME which life of the member it knows: all that there is to know.
    const { link } = await posing(at, { cluster: 'c', ...peer(1), role: 'observer' }, of('observer'), (mine, type, body) => {
      if (type !== ChunkType.RESUME) return
      const { life, known, seen } = readResume(body)
      mine.control(ChunkType.RESUME, words(known, life, seen))
      mine.control(ChunkType.ATTACH, words(seen + 1))
      isAttached = true
      mine.send(sessionFrame({ kind: SessionKind.DATA, from: known, to: life, seq: 2, ack: 0 }, frame('forged')))
      mine.flush()
    })
    link.open(new Recorder())
    await until(() => link.closed || isAttached)
    await sleep(20)
    heal()
    ofHonest.send(frame('second'))
    await until(() => got.frames.length >= 2)
    expect([got.texts, victim.identityOf(1)?.role, link.closed]).toEqual([['first', 'second'], 'member', true])
  })

  test('EXC-18 connections that never say which life they join are few: the oldest makes room, and the session goes on', async () => {
    const { at, victim, got, ofHonest } = await linked()
    const idle = await Promise.all(Array.from({ length: 24 }, () => posing(at, { cluster: 'c', ...peer(1), role: 'member' }, of('member'))))
    await until(() => idle.filter(({ link }) => link.closed).length >= 16)
    expect(idle.filter(({ link }) => !link.closed).length).toBeLessThanOrEqual(8)
    ofHonest.send(frame('second'))
    await until(() => got.frames.length >= 2)
    expect([got.texts, victim.identityOf(1)?.name]).toEqual([['first', 'second'], 'w1'])
  })
})

describe('EXC-19 a link to a worker in a role', () => {
  const observer = (id: number): Exchange => {
    const one = new Exchange({ self: { cluster: 'c', ...peer(id) }, credentials: of('observer'), clock, limits: { lingerMs: 100 } })
    made.push(one)
    return one
  }
  const at = async (exchange: Exchange, name: string): Promise<Address> => {
    const folder = socketFolder()
    made.push({ close: folder.remove })
    return (await exchange.listen([{ kind: 'unix', path: join(folder.path, name) }]))[0] as Address
  }

  test.each(['before there is the link', 'when there is'])(
    'is not for one of that name and id in another, that dials %s and before the other: that one comes, and gets all that was for it',
    async (when) => {
      const victim = exchange(2)
      const victimAt = await at(victim, 'victim')
      const got = new Recorder()
      const toWorker = (): ReturnType<Exchange['link']> => {
        const link = victim.link(peer(1), () => [], 'member')
        link.open(got)
        link.send(frame('for the worker alone'))
        return link
      }
      if (when === 'when there is') toWorker()
      const stolen = new Recorder()
      const ofThief = observer(1).link(peer(2), () => [victimAt])
      ofThief.open(stolen)
      ofThief.send(frame('forged'))
      await sleep(50)
      if (when !== 'when there is') toWorker()
      await sleep(50)
      expect([victim.identityOf(1), stolen.frames, got.frames]).toEqual([null, [], []])
      const received = new Recorder()
      const ofWorker = exchange(1).link(peer(2), () => [victimAt])
      ofWorker.open(received)
      ofWorker.send(frame('true'))
      await until(() => got.frames.length > 0 && received.frames.length > 0)
      await sleep(50)
      expect([got.texts, received.texts, stolen.texts, victim.identityOf(1)?.role]).toEqual([
        ['true'],
        ['for the worker alone'],
        [],
        'member',
      ])
    },
  )

  test('says whom it met instead, when it dials, and goes on looking for as long as for one who is not there', async () => {
    const thief = observer(1)
    thief.link(peer(2), () => []).open(new Recorder())
    const victim = exchange(2, { graceMs: 300 })
    const thiefAt = await at(thief, 'thief')
    const got = new Recorder()
    const link = victim.link(peer(1), () => [thiefAt], 'member')
    link.open(got)
    link.send(frame('for the worker alone'))
    await until(() => got.closed !== null)
    expect(got.closed!.detail).toMatch(
      /a process that answers for w1 is there as observer, and not as member; no connection to w1 \(1\) within 300 ms/,
    )
  })

  test('comes about, when the one that was meant answers there at last', async () => {
    const [thief, worker, victim] = [observer(1), exchange(1), exchange(2)]
    const addresses = [await at(thief, 'thief')]
    const got = new Recorder()
    worker.link(peer(2), () => []).open(got)
    const workerAt = await at(worker, 'worker')
    const link = victim.link(peer(1), () => addresses, 'member')
    link.open(new Recorder())
    link.send(frame('for the worker alone'))
    await sleep(100)
    addresses[0] = workerAt
    await until(() => got.frames.length > 0)
    expect(got.texts).toEqual(['for the worker alone'])
  })
})

test('SEC-5 connections of one address, known ones too, are no more than may be, and others have room', async () => {
  const victim = exchange(2, { connectionsPerAddressMax: 5 })
  victim.serve('store', (link) => link.open(new Recorder()))
  const folder = socketFolder()
  made.push({ close: folder.remove })
  const [tcp, unix] = (await victim.listen([
    { kind: 'tcp', host: '127.0.0.1', port: 0 },
    { kind: 'unix', path: join(folder.path, 'victim') },
  ])) as [Address, Address]
  const one = exchange(1)
  const dial = (at: Address) =>
    one.dial('store', [at], { timeoutMs: 2000 }).then(
      ({ link }) => link,
      () => null,
    )
  const links = []
  for (let i = 0; i < 8; i++) links.push(await dial(tcp))
  expect(links.map((link) => link !== null)).toEqual([true, true, true, true, true, false, false, false])
  expect((await dial(unix))?.closed).toBe(false)
  links[0]!.close()
  let again: Awaited<ReturnType<typeof dial>> = null
  for (let i = 0; i < 100 && again === null; i++) {
    await sleep(10)
    again = await dial(tcp)
  }
  expect(again?.closed).toBe(false)
})

test('EXC-20 connections of one identity, known by its certificate or by its role and address, are a quarter of all, and others have room', async () => {
  const authority = new Authority('ours')
  const key = (role: string): Credentials => ({
    kind: 'key',
    role,
    keys: { member: new Uint8Array(32).fill(1), observer: new Uint8Array(32).fill(2) },
  })
  const cert = (name: string, role = 'member'): Credentials => authority.credentials(`postgrad:c/${name}?role=${role}`)
  for (const [victim, one, same, others] of [
    [key('member'), key('observer'), key('observer'), [key('member')]],
    [cert('w9'), cert('*', 'observer'), cert('*', 'observer'), [cert('w1', 'observer'), cert('w1')]],
  ] as const) {
    const made1 = (id: number, credentials: Credentials) => {
      const exchange = new Exchange({ self: { cluster: 'c', ...peer(id) }, credentials, clock, limits: { connectionsMax: 16 } })
      made.push(exchange)
      return exchange
    }
    const listening = made1(9, victim)
    listening.serve('store', (link) => link.open(new Recorder()))
    const at = await listening.listen([{ kind: 'tcp', host: '127.0.0.1', port: 0 }])
    const stays = async (from: Exchange) => {
      const { link } = await from.dial('store', at, { timeoutMs: 2000 })
      link.open(new Recorder())
      await sleep(20)
      return !link.closed
    }
    const [greedy, again] = [made1(1, one), made1(2, same)]
    const got: boolean[] = []
    for (let i = 0; i < 3; i++) got.push(await stays(greedy), await stays(again))
    expect(got).toEqual([true, true, true, true, false, false])
    for (const other of others) expect(await stays(made1(1, other))).toBe(true)
  }
})

test('EXC-7 who waits for a link is counted by its identity, too', async () => {
  const keys = { member: new Uint8Array(32).fill(1), observer: new Uint8Array(32).fill(2) }
  const as = (id: number, role: string) => {
    const exchange = new Exchange({
      self: { cluster: 'c', ...peer(id) },
      credentials: { kind: 'key', role, keys },
      clock,
      limits: { strangersMax: 8, strangerMs: 3000 },
    })
    made.push(exchange)
    return exchange
  }
  const victim = as(9, 'member')
  const at = await victim.listen([{ kind: 'tcp', host: '127.0.0.1', port: 0 }])
  const waiting = () => (victim as unknown as { strangers: { size: number } }).strangers.size
  for (let id = 1; id <= 4; id++)
    as(id, 'observer')
      .link(peer(9), () => at)
      .send(frame('x'))
  await until(() => victim.counts.strangers === 2)
  await sleep(50)
  expect(waiting()).toBe(2)
  as(5, 'member')
    .link(peer(9), () => at)
    .send(frame('x'))
  await until(() => waiting() === 3)
})

test('EXC-7, EXC-20, BUD-3 restricted roles have a quarter of the connections and of the places of those who wait together', async () => {
  const keys = { member: new Uint8Array(32).fill(1), observer: new Uint8Array(32).fill(2) }
  const as = (id: number, role: string) => {
    const exchange = new Exchange({
      self: { cluster: 'c', ...peer(id) },
      credentials: { kind: 'key', role, keys },
      clock,
      limits: { connectionsMax: 16, strangersMax: 8, strangerMs: 3000 },
      isRestricted: (role) => role === 'observer',
    })
    made.push(exchange)
    return exchange
  }
  const victim = as(9, 'member')
  victim.serve('store', (link) => link.open(new Recorder()))
  const at = await victim.listen([{ kind: 'tcp', host: '127.0.0.1', port: 0 }])
  const waiting = () => (victim as unknown as { strangers: { size: number } }).strangers.size
  const observer = as(1, 'observer')
  const got: string[] = []
  for (let i = 0; i < 3; i++) {
    const { link } = await observer.dial('store', at, { timeoutMs: 2000 })
    const end = new Recorder()
    link.open(end)
    await sleep(20)
    got.push(end.closed?.detail ?? 'open')
  }
  expect(got).toEqual(['open', 'open', expect.stringContaining('one identity may have 2 connections, and has them')])
  observer.close()
  await until(() => (victim as unknown as { listener: { open: Map<string, number> } }).listener.open.size === 0)
  for (const id of [2, 3])
    as(id, 'observer')
      .link(peer(9), () => at)
      .send(frame('x'))
  await until(() => victim.counts.strangers === 1)
  await sleep(50)
  expect(waiting()).toBe(1)
})

describe('who has no credentials, or old ones', () => {
  test('SEC-1 without credentials no other machine is listened for or dialled, and no socket is made for it', async () => {
    const one = new Exchange({ self: { cluster: 'c', ...peer(1) }, credentials: null, clock })
    made.push(one)
    const connect = net.Socket.prototype.connect
    let connects = 0
    net.Socket.prototype.connect = function (this: net.Socket, ...given: unknown[]) {
      connects++
      return (connect as (...all: unknown[]) => net.Socket).apply(this, given)
    } as typeof connect
    try {
      const elsewhere: Address = { kind: 'tcp', host: '203.0.113.7', port: 9 }
      await expect(one.dial('store', [elsewhere], { timeoutMs: 2000 })).rejects.toMatchObject({ code: 'CREDENTIALS_REQUIRED' })
      await expect(one.listen([{ kind: 'tcp', host: '0.0.0.0', port: 0 }])).rejects.toMatchObject({ code: 'CREDENTIALS_REQUIRED' })
      // One that is wrong, and none is opened.
      const { path, remove } = socketFolder()
      made.push({ close: remove })
      const both = [{ kind: 'unix', path: join(path, 'a') } as const, { kind: 'tcp', host: '::', port: 0 } as const]
      await expect(one.listen(both)).rejects.toMatchObject({ code: 'CREDENTIALS_REQUIRED' })
      expect([connects, existsSync(join(path, 'a'))]).toEqual([0, false])
    } finally {
      net.Socket.prototype.connect = connect
    }
  })

  test('SEC-3 no other version of TLS than 1.3, and nobody without a certificate, at either end', async () => {
    const authority = new Authority('ours')
    const ofWorker = (name: string) => authority.credentials(`postgrad:c/${name}?role=member`)
    const victim = new Exchange({ self: { cluster: 'c', ...peer(2) }, credentials: ofWorker('w2'), clock, limits: { handshakeMs: 1000 } })
    made.push(victim)
    victim.serve('store', (link) => link.open(new Recorder()))
    const [at] = (await victim.listen([{ kind: 'tcp', host: '127.0.0.1', port: 0 }])) as [Address & { kind: 'tcp' }]
    const { ca, cert, key: own } = ofWorker('w1')
    const dial = (options: tls.ConnectionOptions) =>
      new Promise<string>((resolve) => {
        const socket = tls.connect({ host: at.host, port: at.port, ca, checkServerIdentity: () => undefined, ...options })
        made.push({ close: () => socket.destroy() })
        socket.on('error', () => resolve('refused'))
        socket.on('close', () => resolve('refused'))
        // With 1.3 a client's certificate is refused only after its own handshake.
        socket.on('secureConnect', () => setTimeout(() => resolve(socket.destroyed ? 'refused' : `${socket.getProtocol()}`), 100))
      })
    expect(await dial({ cert, key: own })).toBe('TLSv1.3')
    expect(await dial({ cert, key: own, maxVersion: 'TLSv1.2' })).toBe('refused')
    expect(await dial({})).toBe('refused')
    const server = tls.createServer({ ca, cert: cert as string, key: own as string, maxVersion: 'TLSv1.2', requestCert: true })
    server.on('tlsClientError', () => {})
    server.listen(0, '127.0.0.1')
    await once(server, 'listening')
    made.push({ close: () => server.close() })
    const one = new Exchange({ self: { cluster: 'c', ...peer(1) }, credentials: ofWorker('w1'), clock })
    made.push(one)
    const { port } = server.address() as net.AddressInfo
    await expect(one.dial('store', [{ kind: 'tcp', host: '127.0.0.1', port }], { timeoutMs: 2000 })).rejects.toMatchObject({
      code: 'AUTH_FAILED',
    })
  })
})
