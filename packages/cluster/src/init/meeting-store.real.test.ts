/** The store by which a group meets, over a real socket, with a restricted peer that asks too much of it. */
import { afterEach, expect, test } from '@jest/globals'
import { type Credentials, decodeReply, Exchange, encodeFrame, RealClock } from '@postgrad/transport/internal'
import { freePort } from './init.fixture.js'
import { placeOf } from './init-method.js'
import { meet } from './meeting-store.js'

const clock = new RealClock()
const KEYS = { member: new Uint8Array(32).fill(0xa5), observer: new Uint8Array(32).fill(0x5b) }
const ends: (() => unknown)[] = []
afterEach(async () => {
  for (const end of ends.splice(0).reverse()) await end()
})

test('SEC-6 INI-15 an observer is known by its role and its address, on each of its connections: what it asks for beyond its rate waits', async () => {
  const port = await freePort()
  const as = (role: string): Credentials => ({ kind: 'key', role, keys: KEYS })
  const meeting = await meet({
    place: placeOf({ initMethod: `tcp://127.0.0.1:${port}`, rank: 0 }, {}),
    self: { cluster: 'c', name: 'worker0', id: 40_000, role: 'member' },
    credentials: as('member'),
    bind: undefined,
    timeoutMs: 5000,
    clock,
    limits: {},
    storeFile: undefined,
    rights: { observer: {} },
    onGone: () => {},
    onRefused: () => {},
  })
  ends.push(() => meeting.close())
  /** How many of so many requests are answered on a new connection. */
  const ask = async (id: number, role: string, times: number) => {
    const exchange = new Exchange({ self: { cluster: 'c', name: `w${id}`, id }, credentials: as(role), clock })
    ends.push(() => exchange.close())
    const { link } = await exchange.dial('store', [{ kind: 'tcp', host: '127.0.0.1', port }], { timeoutMs: 5000 })
    let answers = 0
    link.open({ onFrame: (frame) => void (decodeReply(frame).op === 'yes' && answers++), onTurnEnd() {}, onClose() {} })
    link.send(encodeFrame({ op: 'hello', version: 1, client: `${id}`.padStart(32, '0') }))
    for (let n = 1; n <= times; n++) link.send(encodeFrame({ op: 'check', n, keys: ['postgrad/0/entry/0'] }))
    return () => answers
  }
  const until = async (is: () => boolean): Promise<void> => {
    while (!is()) await new Promise((resolve) => setTimeout(resolve, 2))
  }
  const first = await ask(40_001, 'observer', 2000)
  await until(() => first() >= 500)
  const second = await ask(40_002, 'observer', 500)
  const member = await ask(40_003, 'member', 2500)
  await until(() => member() === 2500)
  // What both have had together is less than what one has asked for.
  expect(first() + second()).toBeLessThan(1500)
})
