/** A client of a store that has every right to be one, and wants the server's memory or its end. */
import { describe, expect, test } from '@jest/globals'
import type { Link, LinkReceiver } from '../link.js'
import { linkClosedError } from '../link-errors.js'
import { memoryLinkPair } from '../memory-link.js'
import { clock, Net, until } from './served.fixture.js'
import { decodeReply, encodeFrame, type StoreReply, type StoreRequest } from './store-protocol.js'

const CLIENT = 'c'.repeat(32)

/** A client by hand. */
function raw(net: Net) {
  const [near, far] = memoryLinkPair(clock)
  const replies: StoreReply[] = []
  near.open({ onFrame: (frame) => replies.push(decodeReply(frame)), onTurnEnd() {}, onClose() {} })
  net.server!.accept(far)
  const say = (request: StoreRequest) => near.send(encodeFrame(request))
  say({ op: 'hello', version: 1, client: CLIENT })
  return { say, replies, near }
}

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
    say({ op: 'hello', version: 1, client: CLIENT })
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
