/**
 * A hostile observer reaches the store by which a group meets, over real sockets. Its writes are refused, the identity that it claims is checked
 * against the one that it has proven, and the workers of the group keep serving each other all the time. Rule INI-15.
 */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, describe, expect, test } from '@jest/globals'
import { expose } from '@postgrad/rpc'
import { PrefixStore, type Store } from '@postgrad/transport'
import { type Credentials, Exchange, type Identity, parseAddress, RealClock, StoreServer, TcpStore } from '@postgrad/transport/internal'
import { type ScriptEnd, script } from '../script.fixture.js'
import { type Arrival, GroupLog } from './group-log.js'
import { RawPeer } from './hostile.fixture.js'
import { freePort, MEMBER as PROGRAM, read } from './init.fixture.js'
import { init } from './init.js'

const clock = new RealClock()
const KEYS = { member: new Uint8Array(32).fill(0xa5), observer: new Uint8Array(32).fill(0x5b) }
const MEMBER: Credentials = { kind: 'key', role: 'member', keys: KEYS }
const OBSERVER: Credentials = { kind: 'key', role: 'observer', keys: { observer: KEYS.observer } }
const RIGHTS = { observer: { call: ['add'] } }
const NO = 'NOT_PERMITTED'

let taken = 0
/** The program exposes it: a thief of a worker's name would get its calls. */
const add = (): number => ++taken
expose({ add })

const ends: (() => unknown)[] = []
afterEach(async () => {
  for (const end of ends.splice(0).reverse()) await end()
})

const sleep = (ms: number): Promise<void> => new Promise((resolve) => clock.setTimer(ms, resolve))
const codeOf = (promise: Promise<unknown>): Promise<string> =>
  promise.then(
    () => 'done',
    (error) => error.code,
  )

class Scene {
  readonly port: number
  readonly method: string
  private readonly keyFile: string

  private constructor(port: number, keyFile: string) {
    this.port = port
    this.method = `tcp://127.0.0.1:${port}`
    this.keyFile = keyFile
  }

  static async set(): Promise<Scene> {
    const folder = mkdtempSync(join(tmpdir(), 'pg-'))
    ends.push(() => rmSync(folder, { recursive: true, force: true }))
    const keyFile = join(folder, 'key')
    const lines = Object.entries(KEYS).map(([role, key]) => `${role} = ${Buffer.from(key).toString('base64')}\n`)
    writeFileSync(keyFile, lines.join(''), { mode: 0o600 })
    return new Scene(await freePort(), keyFile)
  }

  /** A process of a group of no fixed size: rank 0, or one that takes any. */
  start(name: string, more: object = {}): Promise<ScriptEnd> {
    const rank = name === 'worker0' ? 0 : null
    const options = {
      name,
      rank,
      worldSize: null,
      keyFile: this.keyFile,
      role: 'member',
      rights: RIGHTS,
      connection: { graceMs: 2000 },
      ...more,
    }
    return script(PROGRAM, 'served', this.method, '', '', JSON.stringify(options))
  }

  /** A client of the store that says that it is this. */
  visit(self: Omit<Identity, 'cluster'>, credentials: Credentials): { store: Store; log: GroupLog; close: () => Promise<void> } {
    const exchange = new Exchange({ self: { cluster: 'postgrad', ...self }, credentials, clock })
    const at = [{ kind: 'tcp', host: '127.0.0.1', port: this.port } as const]
    const store = new TcpStore({ clock, connect: async () => (await exchange.dial('store', at, { timeoutMs: 5000 })).link })
    const close = async () => {
      store.close()
      await exchange.close()
    }
    ends.push(close)
    return { store, log: new GroupLog(new PrefixStore('postgrad/0', store)), close }
  }
}

const asTester = (scene: Scene) => scene.visit({ name: 'tester', id: 50_000, role: 'member' }, MEMBER)
const asObserver = (scene: Scene) => scene.visit({ name: 'hostile', id: 50_001, role: 'observer' }, OBSERVER)

/** Both have called each other some more, by the time that this resolves. */
async function goesOn(store: Store): Promise<void> {
  const count = async (name: string) => Number(await store.getText(`calls/${name}`, { timeoutMs: 15_000 }))
  for (const name of ['worker0', 'worker1']) {
    const before = await count(name)
    while ((await count(name)) < before + 10) await sleep(5)
  }
}

async function stop(store: Store, processes: readonly Promise<ScriptEnd>[]): Promise<void> {
  await goesOn(store)
  await store.set('stop', '')
  const said = (await Promise.all(processes)).map(read)
  expect(said.map(({ code, err, lines }) => [code, err, lines])).toEqual(
    ['worker0', 'worker1'].map((name) => [0, '', [{ name, failures: [] }]]),
  )
}

describe('SEC-13 INI-15 an observer at the store of a group', () => {
  test('writes neither deaths nor arrivals, sets and deletes nothing, and the workers go on', async () => {
    const scene = await Scene.set()
    const processes = [scene.start('worker0'), scene.start('worker1')]
    const tester = asTester(scene)
    await goesOn(tester.store)
    const { store, log } = asObserver(scene)
    const [first, second] = [await log.read({ timeoutMs: 1000 }), await log.read({ timeoutMs: 1000 })] as [Arrival, Arrival]
    expect([first.name, second.name, second.role]).toEqual(['worker0', 'worker1', 'member'])
    const forged = [
      { what: 'died', id: second.id, detail: '' },
      { what: 'left', id: second.id, detail: '' },
      second,
      { ...second, id: 9, addresses: [] },
      { ...second, id: 9, rank: 9, name: 'other', visitor: 50_001, role: 'observer' },
      { ...second, id: 9, rank: 9, name: 'hostile', visitor: 50_001, role: 'observer' },
    ]
    const inGroup = new PrefixStore('postgrad/0', store)
    const codes: string[] = []
    for (const entry of forged) codes.push(await codeOf(inGroup.compareSet('entry/2', '', JSON.stringify(entry))))
    for (const key of ['entry/2', 'entry/1', 'rank/1', 'next-rank']) {
      codes.push(await codeOf(inGroup.set(key, JSON.stringify(forged[0]))), await codeOf(inGroup.deleteKey(key)))
    }
    codes.push(
      await codeOf(inGroup.add('rank/1', 1)),
      await codeOf(inGroup.add('successors', 1)),
      await codeOf(inGroup.add('next-rank', 100)),
    )
    codes.push(await codeOf(inGroup.compareSet('entry/1', JSON.stringify(second), '')))
    for (const key of ['stop', 'begin'])
      codes.push(await codeOf(store.set(key, '')), await codeOf(store.deleteKey(key)), await codeOf(store.get(key)))
    expect(codes).toEqual(codes.map(() => NO))
    await stop(tester.store, processes)
  })

  test('that says that it is a worker of another role neither hides its end, nor brings it about, nor takes its connections', async () => {
    const scene = await Scene.set()
    const processes = [scene.start('worker0'), scene.start('worker1')]
    const tester = asTester(scene)
    await goesOn(tester.store)
    const log = new GroupLog(new PrefixStore('postgrad/0', tester.store))
    const [first, second] = [await log.read({ timeoutMs: 1000 }), await log.read({ timeoutMs: 1000 })] as [Arrival, Arrival]
    // As worker1 dials rank 0's store; half of graceMs later rank 0 would report its end.
    const posing = { name: second.name, id: second.visitor, role: 'observer' }
    const posed = scene.visit(posing, OBSERVER)
    const died = { what: 'died', id: second.id, detail: '' }
    expect(await codeOf(posed.store.compareSet('postgrad/0/entry/2', '', JSON.stringify(died)))).toBe(NO)
    expect(await codeOf(posed.store.compareSet('postgrad/0/entry/2', '', JSON.stringify({ ...died, what: 'left' })))).toBe(NO)
    await posed.close()
    const at = first.addresses.map(parseAddress)[0]!
    const identity = { cluster: 'postgrad', name: second.name, id: second.id, role: 'observer' }
    const peer = await RawPeer.as(at, identity, OBSERVER, { name: first.name, id: first.id })
    while (!peer.closed) await sleep(5)
    expect(peer.bye).toBe('this is a link to worker1 as member')
    // Its end would be in the log half of graceMs after it.
    expect(await codeOf(log.read({ timeoutMs: 1500 }))).toBe('STORE_TIMEOUT')
    await stop(tester.store, processes)
  })

  test('that has taken the name of a worker before that one came is put out when it comes, keeps nobody out, and gets none of its calls', async () => {
    const scene = await Scene.set()
    const first = scene.start('worker0')
    const tester = asTester(scene)
    const log = new GroupLog(new PrefixStore('postgrad/0', tester.store))
    await log.read({ timeoutMs: 15_000 })
    taken = 0
    const thief = await init({ initMethod: scene.method, name: 'worker1', credentials: OBSERVER, connection: { graceMs: 2000 } })
    ends.push(() => thief.close())
    expect(await log.read({ timeoutMs: 1000 })).toMatchObject({ what: 'joined', id: 1, name: 'worker1', role: 'observer' })
    const second = scene.start('worker1')
    const entries = [await log.read({ timeoutMs: 15_000 }), await log.read({ timeoutMs: 15_000 })]
    expect(entries).toMatchObject([
      { what: 'died', id: 1 },
      { what: 'joined', id: 2, name: 'worker1', role: 'member' },
    ])
    await goesOn(tester.store)
    expect([taken, thief.worker.workers().filter(({ id }) => id !== 1)]).toEqual([0, []])
    await stop(tester.store, [first, second])
  })

  test('that dials as a worker which is not there yet waits, and is turned away when that one comes', async () => {
    const scene = await Scene.set()
    const processes = [scene.start('worker0')]
    const tester = asTester(scene)
    const log = new GroupLog(new PrefixStore('postgrad/0', tester.store))
    const arrival = (await log.read({ timeoutMs: 15_000 })) as Arrival
    const at = arrival.addresses.map(parseAddress)[0]!
    // The next that comes has rank 1, and the id 1.
    const identity = { cluster: 'postgrad', name: 'worker1', id: 1, role: 'observer' }
    const peer = await RawPeer.as(at, identity, OBSERVER, { name: 'worker0', id: 0 })
    processes.push(scene.start('worker1'))
    while (!peer.closed) await sleep(5)
    expect(peer.bye).toBe('this is a link to worker1 as member')
    expect(peer.got).not.toContain('frame')
    await stop(tester.store, processes)
  })
})

describe('SEC-13 INI-15 an observer in the place of whoever serves the store', () => {
  test('is not believed by a worker that knows what its role may', async () => {
    const scene = await Scene.set()
    const exchange = new Exchange({ self: { cluster: 'postgrad', name: 'worker0', id: 40_000 }, credentials: OBSERVER, clock })
    const server = new StoreServer({ clock })
    ends.push(
      () => exchange.close(),
      () => server.close(),
    )
    let clients = 0
    exchange.serve('store', (link) => {
      clients++
      server.accept(link)
    })
    await exchange.listen([{ kind: 'tcp', host: '127.0.0.1', port: scene.port }])
    const { lines } = read(await scene.start('worker1', { timeoutMs: 4000 }))
    expect(lines).toMatchObject([{ failed: { code: 'AUTH_FAILED', message: expect.stringContaining("'worker0' as 'observer'") } }])
    expect([clients, server.counts().keys]).toEqual([1, 0])
  })
})
