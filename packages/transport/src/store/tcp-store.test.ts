/** A store that a server keeps, under the contract, over links in memory; with cut links, restarted servers, and ends that lie. */
import { existsSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { describe, expect, test } from '@jest/globals'
import { PostgradError } from '@postgrad/base'
import type { Frame, Link } from '../link.js'
import { memoryLinkPair } from '../memory-link.js'
import { FileStore } from './file-store.js'
import { HashStore } from './hash-store.js'
import { numbersFrom, randomOperations } from './operations.fixture.js'
import { PrefixStore } from './prefix-store.js'
import { clock, failure, inFolder, Net, until } from './served.fixture.js'
import type { Store } from './store.js'
import { describeStore, type StoreFixture } from './store.suite.js'
import { StoreServer } from './store-server.js'
import { TcpStore } from './tcp-store.js'

function fixture(user: (store: Store) => Store, prefix: string, ofServer: boolean): StoreFixture {
  return {
    fullKey: (key) => `${prefix}${key}`,
    async run(body) {
      const net = new Net()
      const server = net.server!
      // The server's own program is a user like others.
      const [a, b] = [net.client(), ofServer ? server.store : net.client()]
      await body({ a: user(a), b: user(b), sleep: (ms) => sleep(ms), close: () => server.close() })
      expect(server.counts().waits).toBe(0)
      net.close()
    },
  }
}

describeStore(
  'TcpStore',
  fixture((store) => store, '', false),
)
describeStore(
  'TcpStore and its server',
  fixture((store) => store, '', true),
)
describeStore(
  'PrefixStore of a TcpStore',
  fixture((store) => new PrefixStore('group', store), 'group/', false),
)

const sortedSums = (sums: number[]) => [...sums].sort((x, y) => x - y)
const upTo = (n: number) => Array.from({ length: n }, (_, i) => i + 1)

describe('TcpStore', () => {
  test('STO-18: requests that a cut took go over the next link, and changes are done once, in their order', async () => {
    for (let seed = 1; seed <= 5; seed++) {
      const random = numbersFrom(seed)
      const net = new Net()
      const clients = [net.client(), net.client(), net.client()]
      let isOver = false
      const cutting = (async () => {
        while (!isOver) {
          await sleep(random(4))
          const cable = net.cables.findLast(({ closed }) => !closed)
          // Half of the time requests are done and their answers lost.
          if (cable !== undefined && random(2) === 0) {
            cable.isDeaf = true
            await sleep(random(3))
          }
          cable?.cut()
        }
      })()
      const sums: number[] = []
      await Promise.all(
        clients.map(async (client, c) => {
          for (let round = 0; round < 5; round++) {
            sums.push(...(await Promise.all(upTo(20).map(() => client.add('n', 1)))))
            const key = `k${c}`
            const order = [client.set(key, `${round}`), client.compareSet(key, `${round}`, 'x'), client.getText(key)]
            expect([seed, (await Promise.all(order))[2]]).toEqual([seed, 'x'])
            expect([seed, await Promise.all([client.deleteKey(key), client.check([key])])]).toEqual([seed, [true, false]])
            const token = `t${c} ${round}`
            expect([seed, Buffer.from(await client.compareSet(token, '', 'mine')).toString()]).toEqual([seed, 'mine'])
          }
        }),
      )
      isOver = true
      await cutting
      expect([seed, sortedSums(sums)]).toEqual([seed, upTo(300)])
      net.close()
    }
  })

  test('STO-19: a server that is started again with its file goes on; nothing is lost and nothing done twice', async () => {
    for (let seed = 1; seed <= 5; seed++) {
      await inFolder(async (path) => {
        const random = numbersFrom(seed)
        const net = new Net({ file: path })
        const clients = [net.client(), net.client(), net.client()]
        const waits = clients.map((client) => client.getText('end', { timeoutMs: 0 }))
        let isOver = false
        const restarting = (async () => {
          while (!isOver) {
            await sleep(5 + random(10))
            if (random(2) === 0) for (const cable of net.cables) cable.isDeaf = true
            await sleep(random(3))
            net.stop()
            for (const cable of net.cables) cable.cut()
            await sleep(random(10))
            net.start({ file: path })
          }
        })()
        const sums: number[] = []
        await Promise.all(
          clients.map(async (client) => {
            for (let round = 0; round < 4; round++) sums.push(...(await Promise.all(upTo(20).map(() => client.add('n', 1)))))
          }),
        )
        isOver = true
        await restarting
        expect([seed, sortedSums(sums)]).toEqual([seed, upTo(240)])
        await clients[0]!.set('end', 'now')
        expect(await Promise.all(waits)).toEqual(['now', 'now', 'now'])
        net.close()
        expect(await new StoreServerOf(path).text('n')).toBe('240')
      })
    }
  })

  test('STO-19: operations at random, with cuts and restarts, leave what a Map would have', async () => {
    for (let seed = 1; seed <= 5; seed++) {
      await inFolder(async (path) => {
        const net = new Net({ file: path })
        await randomOperations(seed, [net.client(), net.client()], 150, async (_, random) => {
          const what = random(12)
          if (what < 2) for (const cable of net.cables) cable.cut()
          if (what === 2) {
            net.stop()
            net.start({ file: path })
          }
        })
        net.close()
      })
    }
  })

  test('STO-19: without a file a server that was started again has lost everything, and says so', async () => {
    const net = new Net()
    const client = net.client()
    await client.set('k', 'v')
    const waits = failure(client.get('x'))
    net.stop()
    net.start()
    const error = await waits
    expect(error).toMatchObject({ code: 'STORE_CLOSED', op: 'get' })
    expect(error?.message).toContain('with a file it keeps that')
    expect((await failure(client.set('k', 'v')))?.code).toBe('STORE_CLOSED')
    net.close()
  })

  test('STO-18: a server that is away for too long closes the store, with why', async () => {
    const net = new Net()
    net.stop()
    const early = net.client({ connectMs: 30 })
    expect(await failure(early.set('k', 'v'))).toMatchObject({
      code: 'STORE_CLOSED',
      op: 'set',
      message: expect.stringContaining('not there for 30 ms'),
      remedy: 'Look at the process that keeps the store, rank 0.',
      cause: { message: 'connection refused' },
    })
    net.start()
    const patient = net.client({ graceMs: 30 })
    await patient.set('k', 'v')
    const waits = [failure(patient.get('x', { timeoutMs: 0 })), failure(patient.add('n', 1))]
    net.stop()
    for (const error of await Promise.all(waits))
      expect(error).toMatchObject({ code: 'STORE_CLOSED', cause: { message: 'connection refused' } })
    net.close()
  })

  test('STO-18: who is refused does not ask again; a dial that never ends is given up, and what comes of it later is closed', async () => {
    let tries = 0
    const refused = new TcpStore({
      clock,
      connect: async () => {
        tries++
        throw new PostgradError('AUTH_FAILED', { op: 'dial', message: 'another key' })
      },
    })
    expect(await failure(refused.numKeys())).toMatchObject({ code: 'STORE_CLOSED', cause: { code: 'AUTH_FAILED' } })
    expect(tries).toBe(1)
    const [near, far] = memoryLinkPair(clock)
    let arrive: (link: Link) => void = () => {}
    const slow = new TcpStore({ clock, connectMs: 10, connect: () => new Promise((resolve) => (arrive = resolve)) })
    expect((await failure(slow.numKeys()))?.code).toBe('STORE_CLOSED')
    arrive(near)
    await until(() => near.closed)
    far.close()
  })

  test('STO-10: a server that does not answer ends a wait a second late, and the store when it owes an answer', async () => {
    const net = new Net()
    const client = net.client({ answerMs: 50 })
    await client.set('k', 'v')
    net.cables[0]!.isDeaf = true
    expect(await failure(client.get('x', { timeoutMs: 5 }))).toMatchObject({
      code: 'STORE_TIMEOUT',
      values: { missing: ['x'], timeoutMs: 5, answered: false },
    })
    expect(await failure(client.add('n', 1))).toMatchObject({
      code: 'STORE_CLOSED',
      message: expect.stringContaining('not answered for 50 ms'),
    })
    net.close()
  })

  test('STO-10: the remedy of a store that the program itself has closed does not send it to rank 0', async () => {
    const net = new Net()
    const client = net.client()
    client.close()
    expect(await failure(client.get('k'))).toMatchObject({ code: 'STORE_CLOSED', remedy: 'Close a store after its last use.' })
    net.close()
  })

  test('STO-20: a client that is gone waits no more, and is forgotten after a while, or at once when it says goodbye', async () => {
    const net = new Net({ rememberMs: 30 })
    const server = net.server!
    const [crashing, leaving, staying] = [net.client({ graceMs: 5 }), net.client(), net.client()]
    const waits = [crashing, leaving, staying].map((client) => failure(client.get('x')))
    await Promise.all([crashing, leaving, staying].map((client) => client.add('n', 1)))
    await until(() => server.counts().waits === 3)
    leaving.close()
    expect((await waits[1])?.code).toBe('STORE_CLOSED')
    await until(() => server.counts().clients === 2)
    expect(server.counts()).toMatchObject({ connected: 2, waits: 2, told: 2 })
    // A process that was killed closes its sockets and says nothing; the server learns no more.
    const connect = net.connect
    Object.assign(net, { connect: () => Promise.reject(new Error('dead')) })
    Object.assign(crashing, { connect: () => Promise.reject(new Error('dead')) })
    net.cables[0]!.cut()
    await until(() => server.counts().waits === 1)
    await until(() => server.counts().clients === 1)
    expect(server.counts()).toMatchObject({ connected: 1, told: 1 })
    Object.assign(net, { connect })
    expect((await waits[0])?.code).toBe('STORE_CLOSED')
    net.close()
  })

  test('STO-6: a wait that is cancelled is cancelled at the server', async () => {
    const net = new Net()
    const client = net.client()
    const controller = new AbortController()
    const waits = [failure(client.get('x', { signal: controller.signal })), failure(client.wait(['x', 'y'], { signal: controller.signal }))]
    await until(() => net.server!.counts().waits === 2)
    controller.abort('enough')
    for (const error of await Promise.all(waits)) expect(error).toMatchObject({ code: 'STORE_CANCELLED', cause: 'enough' })
    await until(() => net.server!.counts().waits === 0)
    // Before it was ever sent, too.
    net.stop()
    const away = net.client()
    const unsent = failure(away.get('x', { signal: new AbortController().signal, timeoutMs: 0 }))
    away.close()
    expect((await unsent)?.code).toBe('STORE_CLOSED')
    net.close()
  })

  test('STO-4: a wait goes on over links and restarts, and its time is counted once', () =>
    inFolder(async (path) => {
      const net = new Net({ file: path })
      const client = net.client()
      const wait = failure(client.wait(['x', 'y'], { timeoutMs: 300 }))
      await client.set('y', '1')
      net.stop()
      await sleep(50)
      net.start({ file: path })
      expect(await wait).toMatchObject({ code: 'STORE_TIMEOUT', values: { missing: ['x'], timeoutMs: 300 } })
      net.close()
    }))

  test('STO-21: what a server does not bear is refused, and what is there stays', async () => {
    const limits = { keys: 3, keyBytes: 10, valueBytes: 100, bytes: 150, waits: 2, clients: 2 }
    const net = new Net({ limits })
    const client = net.client()
    const limited = async (tried: Promise<unknown>, what: string) =>
      expect(await failure(tried)).toMatchObject({ code: 'STORE_LIMIT', values: { what } })
    await limited(client.set('k'.repeat(11), ''), 'bytes in a key')
    await limited(client.set('k', 'v'.repeat(101)), 'bytes in a value')
    await client.set('one', 'v'.repeat(90))
    await limited(client.compareSet('two', '', 'v'.repeat(90)), 'bytes in the store')
    await client.set('one', 'w'.repeat(80))
    await Promise.all([client.add('two', 1), client.add('three', 1)])
    await limited(client.add('four', 1), 'keys in the store')
    await client.set('two', 'again')
    expect([await client.deleteKey('three'), await client.add('four', 1)]).toEqual([true, 1])
    const waits = [failure(client.get('x')), failure(client.wait(['y']))]
    await limited(client.get('z'), 'waits of a client at a time')
    await limited(client.check(['k'.repeat(300_000)]), 'bytes of keys in a request')
    // The server's own program is held to it too.
    await limited(net.server!.store.set('k', 'v'.repeat(101)), 'bytes in a value')
    expect(await net.client().numKeys()).toBe(3)
    expect(await failure(net.client().numKeys())).toMatchObject({ code: 'STORE_CLOSED', cause: { code: 'STORE_LIMIT' } })
    net.close()
    await Promise.all(waits)
  })

  test('STO-19: a file has one server, which knows no other program’s, and is written anew when most of it is past', () =>
    inFolder(async (path) => {
      const net = new Net({ file: path })
      const client = net.client()
      expect(() => new StoreServer({ clock, file: path })).toThrow(
        expect.objectContaining({ code: 'STORE_LOCKED', message: expect.stringMatching(/\.lock' is held by process \d+ on /) }),
      )
      const users = new FileStore(path, { lockMs: 5 })
      expect((await failure(users.set('k', 'v')))?.code).toBe('STORE_LOCKED')
      users.close()
      for (let i = 0; i < 100; i++) await client.set('large', `${i}`.padEnd(100_000))
      expect(statSync(path).size).toBeLessThan(2_000_000)
      expect(await client.add('n', 1)).toBe(1)
      net.stop()
      net.start({ file: path, sync: true })
      expect([(await client.getText('large')).trim(), await client.add('n', 1)]).toEqual(['99', 2])
      net.close()
      // A part that a killed server left is cut off, damage is not.
      const whole = readFileSync(path)
      writeFileSync(path, whole.subarray(0, -1))
      expect(await new StoreServerOf(path).text('n')).toBe('1')
      whole[40]! ^= 1
      writeFileSync(path, whole)
      expect(() => new StoreServer({ clock, file: path })).toThrow(expect.objectContaining({ code: 'STORE_FILE_DAMAGED' }))
      expect(readFileSync(path).equals(whole)).toBe(true)
    }))

  test('STO-19: a user’s file with the name of the new one stays, and the store goes on without it; what a killed server has left there is replaced', () =>
    inFolder(async (path) => {
      writeFileSync(`${path}.new`, 'a week of work')
      const net = new Net({ file: path })
      const client = net.client()
      for (let i = 0; i < 30; i++) await client.set('large', `${i}`.padEnd(100_000))
      expect(readFileSync(`${path}.new`, 'utf8')).toBe('a week of work')
      expect(statSync(path).size).toBeGreaterThan(2_000_000)
      writeFileSync(`${path}.new`, readFileSync(path).subarray(0, 50_000))
      for (let i = 0; i < 100; i++) await client.set('large', `${i}`.padEnd(100_000))
      expect([existsSync(`${path}.new`), statSync(path).size < 2_000_000]).toEqual([false, true])
      net.close()
    }))

  test('STO-19: a store that others serve, or that has keys beside a file, is refused', () =>
    inFolder(async (path) => {
      const store = new HashStore(clock)
      const server = new StoreServer({ clock, store })
      expect(() => new StoreServer({ clock, store })).toThrow(expect.objectContaining({ code: 'INVALID_ARGUMENT' }))
      server.close()
      // It was passed in, so it stays.
      await store.set('k', 'v')
      expect(() => new StoreServer({ clock, store, file: path })).toThrow(expect.objectContaining({ code: 'INVALID_ARGUMENT' }))
      const again = new StoreServer({ clock, store })
      expect(again.counts()).toMatchObject({ keys: 1, bytes: 2 })
      again.close()
      store.close()
    }))

  test('STO-22: a server takes what the protocol says and nothing else, and goes on with the others', async () => {
    const net = new Net({ rememberMs: 5 })
    const good = net.client()
    await good.set('k', 'v')
    for (let seed = 1; seed <= 400; seed++) {
      const random = numbersFrom(seed)
      const [near, far] = memoryLinkPair(clock)
      const replies: string[] = []
      near.open({ onFrame: ({ header }) => replies.push(Buffer.from(header).toString()), onTurnEnd() {}, onClose() {} })
      net.server!.accept(far)
      if (random(4) > 0) near.send(frame({ op: 'hello', version: 1, client: seed.toString(16).padStart(32, '0') }))
      for (let i = 0; i <= random(4); i++) if (!near.closed) near.send(forged(random))
      await new Promise((resolve) => setImmediate(() => setImmediate(resolve)))
      for (const reply of replies) expect([seed, JSON.parse(reply).op]).toEqual([seed, expect.any(String)])
      const refused = replies.map((reply) => JSON.parse(reply)).find(({ op }) => op === 'refused')
      if (refused !== undefined) {
        expect([seed, refused.error.code]).toEqual([seed, expect.stringMatching(/^(STORE_FRAME_INVALID|VERSION_MISMATCH|STORE_LIMIT)$/)])
        await until(() => near.closed)
      }
      near.close()
      expect([seed, await good.getText('k')]).toEqual([seed, 'v'])
    }
    net.close()
  })

  test('STO-22: a client whose server says what no store says is closed, and nothing is thrown', async () => {
    for (let seed = 1; seed <= 400; seed++) {
      const random = numbersFrom(seed)
      const [near, far] = memoryLinkPair(clock)
      const client = new TcpStore({ clock, connect: async () => near, connectMs: 50, graceMs: 1 })
      far.open({ onFrame() {}, onTurnEnd() {}, onClose() {} })
      if (random(4) > 0) far.send(frame({ op: 'welcome', version: 1, store: '0'.repeat(32) }))
      const asked = [client.numKeys(), client.get('k', { timeoutMs: 10 }), client.add('n', 1), client.check(['k'])].map(failure)
      await new Promise(setImmediate)
      for (let i = 0; i <= random(4); i++) if (!far.closed) far.send(forged(random))
      await new Promise((resolve) => setImmediate(() => setImmediate(resolve)))
      far.close()
      client.close()
      for (const error of await Promise.all(asked)) {
        if (error !== null) expect([seed, error.code]).toEqual([seed, expect.stringMatching(/^[A-Z_]+$/)])
      }
      near.close()
    }
  })
})

/** A server on a file, for one look. */
class StoreServerOf {
  private readonly path: string

  constructor(path: string) {
    this.path = path
  }

  async text(key: string): Promise<string> {
    const server = new StoreServer({ clock, file: this.path })
    try {
      return await server.store.getText(key, { timeoutMs: 1 })
    } finally {
      server.close()
    }
  }
}

const frame = (head: unknown, segments: Uint8Array[] = []): Frame => ({ header: new TextEncoder().encode(JSON.stringify(head)), segments })

/** A frame with something wrong in it, or everything. */
function forged(random: (n: number) => number): Frame {
  const one = <T>(list: readonly T[]): T => list[random(list.length)]!
  const odd = [0, 1, -1, 2 ** 53, 1e300, 1.5, '', 'k', '__proto__', null, true, [], ['k'], [[]], {}, { code: 'X' }, 'x'.repeat(70_000)]
  const number = () => (random(3) === 0 ? one(odd) : 1 + random(5))
  const heads: Record<string, unknown>[] = [
    { op: 'hello', version: one([1, 2, 0]), client: one(['0'.repeat(32), 'x']) },
    { op: 'set', n: number(), done: number(), key: 'f' },
    { op: 'add', n: number(), done: number(), key: 'n', amount: one(odd) },
    { op: 'compareSet', n: number(), done: number(), key: 'f' },
    { op: 'deleteKey', n: number(), done: number(), key: one(odd) },
    { op: 'get', n: number(), key: 'none', timeoutMs: one(odd) },
    { op: 'wait', n: number(), keys: one(odd), timeoutMs: 1 },
    { op: 'check', n: number(), keys: one(odd) },
    { op: 'numKeys', n: number() },
    { op: 'cancel', of: number() },
    { op: 'bye' },
    { op: 'welcome', version: one([1, 2]), store: one(['0'.repeat(32), '1'.repeat(32), 1]) },
    { op: 'refused', error: { code: one(['X', 'x', 1]), op: 'x', message: '', remedy: '', values: one(odd) } },
    { op: 'closed' },
    { op: 'done', n: number() },
    { op: 'value', n: number() },
    { op: 'number', n: number(), number: one(odd) },
    { op: 'yes', n: number(), yes: one(odd) },
    { op: 'error', n: number(), error: one([...odd, { code: 'X', op: 'x', message: 'm', remedy: 'r', values: { timeoutMs: 1 } }]) },
    { op: one(['constructor', 'toString', '__proto__', 'eval']), n: 1 },
  ]
  const head = { ...one(heads) }
  const change = random(5)
  if (change === 0) head[one(['n', 'done', 'op', 'key', 'extra'])] = one(odd)
  if (change === 1) delete head[one(Object.keys(head))]
  const segments = Array.from({ length: random(4) }, () => Uint8Array.from({ length: random(20) }, () => random(256)))
  const built = frame(random(20) === 0 ? one(odd) : head, segments)
  if (random(6) === 0) built.header[random(built.header.length)]! ^= 1 << random(8)
  if (random(40) === 0) return { header: new Uint8Array(300_000).fill(91), segments }
  return built
}
