/** Forged entries in a group's log: any process that reaches the store can write them, and no member may end or stall because of them. */
import { afterEach, describe, expect, test } from '@jest/globals'
import { HashStore } from '@postgrad/transport'
import { Exchange, RealClock } from '@postgrad/transport/internal'
import { makeRuntime } from '../admin/make-runtime.js'
import { Group } from './group.js'
import { GroupLog } from './group-log.js'

const clock = new RealClock()
const ends: (() => unknown)[] = []
afterEach(async () => {
  for (const end of ends.splice(0).reverse()) await end()
})

const SELF = { what: 'joined', id: 0, name: 'worker0', rank: 0, worldSize: 1, addresses: [], visitor: 40_000, role: 'member' } as const
const joined = (id: number, more: object = {}) => JSON.stringify({ ...SELF, id, name: `worker${id}`, ...more })

const FORGED: readonly (readonly [string, string])[] = [
  ['no JSON', '{'],
  ['null', 'null'],
  ['a number', '7'],
  ['an unknown word', JSON.stringify({ what: 'gone', id: 1, detail: '' })],
  ['an id that is none', joined(70_000)],
  ['a name that is none', joined(5, { name: 'a b' })],
  ['a name of 10,000 letters', joined(5, { name: 'a'.repeat(10_000) })],
  ['a role that is none', joined(5, { role: 'a b' })],
  ['a rank beyond the world', joined(5, { rank: 1 })],
  ['addresses that are none', joined(5, { addresses: ['http://example.org'] })],
  ['10,000 addresses', joined(5, { addresses: Array(10_000).fill('unix:/tmp/x') })],
  ['the reader itself', joined(0)],
  ['the reader under another name', joined(0, { name: 'other' })],
  ['another under the reader’s name', joined(6, { name: 'worker0' })],
  ['who is here already', joined(3)],
  ['who is here already, elsewhere', joined(3, { name: 'other', addresses: ['unix:/tmp/elsewhere'] })],
  ['nested 20,000 deep', `${'['.repeat(20_000)}${']'.repeat(20_000)}`],
]

describe('a log of a group with forged entries', () => {
  test('INI-13 none of them ends or stops who reads: what comes behind them is read', async () => {
    const thrown: unknown[] = []
    const note = (error: unknown) => thrown.push(error)
    process.on('unhandledRejection', note)
    ends.push(() => process.removeListener('unhandledRejection', note))
    const store = new HashStore(clock)
    const place = { meeting: { kind: 'file', path: '/none' }, rank: 0, worldSize: 1, round: 0 } as const
    const group = new Group(new GroupLog(store), place, clock, 1000)
    const exchange = new Exchange({ self: { cluster: 'c', name: 'worker0', id: 0 }, credentials: null, clock })
    const runtime = makeRuntime({ name: 'worker0', id: 0 }, 0, clock, { seed: 0, device: null, options: {}, access: null })
    ends.push(
      () => store.close(),
      () => exchange.close(),
      () => runtime.close(),
      () => group.close(),
    )
    await group.come(SELF, 0, 1000)
    await group.begin(runtime, exchange, () => null)
    let place_ = 1
    const append = (text: string) => store.set(`entry/${place_++}`, text)
    const isLinked = async (id: number) => {
      for (let i = 0; i < 500 && runtime.peers.get(id) === undefined; i++) await new Promise<void>((resolve) => clock.defer(resolve))
      return runtime.peers.get(id)?.info.name
    }
    await append(joined(3))
    expect(await isLinked(3)).toBe('worker3')
    for (const [i, [what, text]] of FORGED.entries()) {
      await append(text)
      await append(joined(100 + i))
      expect([what, await isLinked(100 + i)]).toEqual([what, `worker${100 + i}`])
    }
    expect([thrown, runtime.peers.get(3)?.info.name, runtime.peers.get(5)]).toEqual([[], 'worker3', undefined])
  })

  test.each(FORGED.slice(0, 11))('INI-13 whoever comes while the log is damaged (%s) hears so, in one line', async (_what, text) => {
    const store = new HashStore(clock)
    await store.set('entry/0', text)
    const log = new GroupLog(store)
    const error = await log.read({ timeoutMs: 100 }).then(
      () => null,
      (got) => got as Error,
    )
    expect(error).toMatchObject({ code: 'GROUP_LOG_INVALID' })
    expect(error!.message.length).toBeLessThan(500)
    expect(error!.message).not.toContain('\n')
    store.close()
  })
})
