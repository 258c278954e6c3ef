/** A client of a store that has every right to be one, and wants the server's memory or its end. */
import { describe, expect, test } from '@jest/globals'
import type { Holder } from '../budget.js'
import type { Link, LinkReceiver, OnFlushed } from '../link.js'
import { linkClosedError } from '../link-errors.js'
import { memoryLinkPair } from '../memory-link.js'
import { clock, Net, until } from './served.fixture.js'
import { decodeReply, encodeFrame, type StoreReply, type StoreRequest } from './store-protocol.js'
import type { StoreGuard } from './store-server.js'

let clients = 0

/** A client by hand. */
function raw(net: Net, { guard = null, holder }: { guard?: StoreGuard | null; holder?: Holder } = {}) {
  const [near, far] = memoryLinkPair(clock)
  const replies: StoreReply[] = []
  near.open({ onFrame: (frame) => replies.push(decodeReply(frame)), onTurnEnd() {}, onClose() {} })
  net.server!.accept(far, guard, holder)
  const say = (request: StoreRequest) => near.send(encodeFrame(request))
  say({ op: 'hello', version: 1, client: `${clients++}`.padStart(32, '0') })
  return { say, replies, near }
}

/** A link to a client that reads when it is said to; `far` is what the client says. */
function silent() {
  let receiver: LinkReceiver | null = null
  const unread: OnFlushed[] = []
  let closed = false
  const link: Link = {
    get closed() {
      return closed
    },
    open(to) {
      receiver = to
    },
    send(_frame, _order, onFlushed) {
      if (onFlushed) unread.push(onFlushed)
    },
    flush() {},
    poll: () => 0,
    close() {
      closed = true
      for (const onFlushed of unread.splice(0)) onFlushed(false)
    },
  }
  const read = () => {
    for (const onFlushed of unread.splice(0)) onFlushed(true)
  }
  return { link, read, say: (request: StoreRequest) => receiver!.onFrame(encodeFrame(request)) }
}

const at = (address: string, role: string): Holder => ({ identity: `${role} at ${address}`, role })
const RESTRICTED: StoreGuard = { check() {}, isRestricted: true }

describe('a store and a hostile client', () => {
  test('STO-23: a client that reads nothing ends its own link, in the middle of an answer too, and nothing is thrown where nobody catches', async () => {
    const thrown: unknown[] = []
    const note = (error: unknown) => thrown.push(error)
    process.on('unhandledRejection', note)
    const net = new Net()
    let receiver: LinkReceiver | null = null
    let isFull = false
    // As a socket whose peer has left as much unread as its limit is: `send` ends it, and throws.
    const link: Link = {
      closed: false,
      open(to) {
        receiver = to
      },
      send() {
        if (isFull) throw linkClosedError('full', { by: 'peer', detail: 'the other end has left it unread' })
      },
      flush() {},
      poll: () => 0,
      close() {},
    }
    net.server!.accept(link)
    const say = (request: StoreRequest) => receiver!.onFrame(encodeFrame(request))
    say({ op: 'hello', version: 1, client: 'c'.repeat(32) })
    say({ op: 'get', n: 1, key: 'k', timeoutMs: 0 })
    await until(() => net.server!.counts().waits === 1)
    isFull = true
    await net.server!.store.set('k', 'v')
    await new Promise((resolve) => setImmediate(() => setImmediate(resolve)))
    process.removeListener('unhandledRejection', note)
    expect([thrown, net.server!.counts().connected]).toEqual([[], 0])
    net.close()
  })

  test('STO-21: keys of all waits of a client count together, so that no client fills the server with what it waits for', async () => {
    const net = new Net({ limits: { waitKeys: 100 } })
    const { say, replies } = raw(net)
    const keys = (n: number) => Array.from({ length: 40 }, (_, i) => `${n} ${i}`)
    for (let n = 1; n <= 3; n++) say({ op: 'wait', n, keys: keys(n), timeoutMs: 0 })
    await until(() => replies.length === 2)
    expect(replies[1]).toMatchObject({ op: 'error', n: 3, error: { code: 'STORE_LIMIT' } })
    expect(net.server!.counts().waits).toBe(2)
    // Room again when one has ended, and when it was cancelled.
    say({ op: 'cancel', of: 1 })
    say({ op: 'wait', n: 4, keys: keys(4), timeoutMs: 0 })
    await until(() => net.server!.counts().waits === 2)
    for (const key of keys(2)) await net.server!.store.set(key, '')
    await until(() => replies.length === 3)
    say({ op: 'wait', n: 5, keys: keys(5), timeoutMs: 0 })
    await until(() => net.server!.counts().waits === 2)
    expect(replies.slice(2)).toEqual([{ op: 'done', n: 2 }])
    net.close()
  })

  test('STO-25: waits of one identity are for half of its role’s bytes, on however many connections, and others wait meanwhile', async () => {
    const net = new Net({ limits: { waitBytes: 64 * 2 ** 10 } })
    const held = { observer: 0, other: 0, member: 0 }
    const fill = async (who: keyof typeof held, address: string, role: string, guard: StoreGuard | null) => {
      for (let c = 0; c < 12; c++) {
        const { say, replies } = raw(net, { guard, holder: at(address, role) })
        say({ op: 'wait', n: 1, keys: [`${who} ${c}`, `${who} ${c} too`], timeoutMs: 0 })
        say({ op: 'get', n: 2, key: 'there', timeoutMs: 0 })
        await until(() => replies.some((reply) => 'n' in reply && reply.n === 2))
        const refused = replies.find((reply) => reply.op === 'error')
        if (refused === undefined) held[who]++
        else
          expect(refused).toMatchObject({
            n: 1,
            error: { code: 'STORE_LIMIT', values: { what: expect.stringContaining('bytes of waits') } },
          })
      }
    }
    await net.server!.store.set('there', '')
    await fill('observer', '10.0.0.1', 'observer', RESTRICTED)
    const { waitBytes } = net.server!.counts()
    expect(waitBytes).toBeLessThanOrEqual(8 * 2 ** 10)
    await fill('other', '10.0.0.2', 'observer', RESTRICTED)
    await fill('member', '10.0.0.1', 'member', null)
    // An eighth, an eighth and a quarter of 64 KiB, at some 1.6 KiB a wait.
    expect(held).toEqual({ observer: 5, other: 5, member: 10 })
    net.close()
  })

  test('STO-25: a wait gives back what it was counted for, however it ends', async () => {
    const net = new Net()
    const server = net.server!
    const { say, near } = raw(net, { holder: at('10.0.0.1', 'member') })
    const keys = Array.from({ length: 50 }, (_, i) => `k${i}`)
    say({ op: 'wait', n: 1, keys, timeoutMs: 5 })
    say({ op: 'wait', n: 2, keys: keys.slice(0, 2), timeoutMs: 0 })
    say({ op: 'wait', n: 3, keys, timeoutMs: 0 })
    say({ op: 'get', n: 4, key: 'k9', timeoutMs: 0 })
    await until(() => server.counts().waits === 4)
    expect(server.counts().waitBytes).toBe(4 * 1024 + 103 * 256 + 2 * (90 + 90 + 4 + 2 + 100))
    say({ op: 'cancel', of: 3 })
    for (const key of ['k0', 'k1', 'k9']) await server.store.set(key, '')
    await until(() => server.counts().waits === 0)
    await until(() => server.counts().waitBytes === 0)
    say({ op: 'wait', n: 5, keys: ['never'], timeoutMs: 0 })
    await until(() => server.counts().waits === 1)
    near.close()
    await until(() => server.counts().connected === 0)
    await new Promise((resolve) => setImmediate(resolve))
    expect(server.counts()).toMatchObject({ waits: 0, waitBytes: 0, unreadBytes: 0 })
    net.close()
  })

  test('STO-23: what a client leaves unread counts until the network has it, and on several connections together; beyond, its connection ends', async () => {
    const net = new Net({ limits: { unreadBytes: 64 * 2 ** 10 } })
    const server = net.server!
    await server.store.set('k', new Uint8Array(1024))
    const open = (holder: Holder, guard: StoreGuard | null) => {
      const end = silent()
      server.accept(end.link, guard, holder)
      end.say({ op: 'hello', version: 1, client: `${clients++}`.padStart(32, '0') })
      return end
    }
    const ask = async (end: ReturnType<typeof open>, times: number) => {
      for (let n = 1; n <= times && !end.link.closed; n++) {
        end.say({ op: 'get', n, key: 'k', timeoutMs: 0 })
        await null
        await null
      }
      await new Promise((resolve) => setImmediate(resolve))
    }
    const reads = open(at('10.0.0.1', 'observer'), RESTRICTED)
    for (let i = 0; i < 30; i++) {
      await ask(reads, 3)
      reads.read()
    }
    expect([reads.link.closed, server.counts().unreadBytes]).toEqual([false, 0])
    const greedy = [1, 2, 3, 4].map(() => open(at('10.0.0.1', 'observer'), RESTRICTED))
    await ask(greedy[0]!, 2)
    await ask(greedy[1]!, 2)
    expect(greedy.map(({ link }) => link.closed)).toEqual([false, true, false, false])
    expect(server.counts().unreadBytes).toBeLessThanOrEqual(8 * 2 ** 10)
    // Another one of the role, and a member, are answered.
    const others = [open(at('10.0.0.2', 'observer'), RESTRICTED), open(at('10.0.0.1', 'member'), null)]
    for (const other of others) await ask(other, 2)
    expect(others.map(({ link }) => link.closed)).toEqual([false, false])
    net.close()
    expect(server.counts()).toMatchObject({ connected: 0, unreadBytes: 0 })
  })

  test('STO-25: connections and clients of one identity are half of its role’s', async () => {
    const net = new Net({ limits: { clients: 32 } })
    const said = async (holder: Holder, guard: StoreGuard | null, count: number) => {
      const all = Array.from({ length: count }, () => raw(net, { guard, holder }))
      await until(() => all.every(({ replies }) => replies.length > 0))
      return all.filter(({ replies }) => replies[0]!.op === 'welcome').length
    }
    expect(await said(at('10.0.0.1', 'observer'), RESTRICTED, 20)).toBe(4)
    expect(await said(at('10.0.0.2', 'observer'), RESTRICTED, 20)).toBe(4)
    expect(await said(at('10.0.0.1', 'member'), null, 20)).toBe(8)
    expect(await said(at('10.0.0.2', 'member'), null, 20)).toBe(8)
    expect(net.server!.counts().clients).toBe(24)
    net.close()
  })

  test('STO-22: a wait for ever is one, and a time beyond all is no fault of the server', async () => {
    const net = new Net()
    const { near, replies } = raw(net)
    for (const [n, time] of ['1e999', '1e308', '4e9', '0.5'].entries())
      near.send({ header: Buffer.from(`{"op":"get","n":${n + 1},"key":"k","timeoutMs":${time}}`), segments: [] })
    await until(() => replies.length >= 2)
    await new Promise((resolve) => setTimeout(resolve, 5))
    for (const reply of replies) if (reply.op === 'error') expect(reply.error.code).not.toBe('STORE_SERVER_FAILED')
    net.close()
  })
})
