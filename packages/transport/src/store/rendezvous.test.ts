/** Workers that find each other: all of a known number, or some who come and go; over each kind of store. */
import { setTimeout as sleep } from 'node:timers/promises'
import { describe, expect, test } from '@jest/globals'
import { FileStore } from './file-store.js'
import { HashStore } from './hash-store.js'
import { joinMembers, leaveMembers, type MemberEvent, members } from './members.js'
import { numbersFrom } from './operations.fixture.js'
import { type RendezvousOptions, rendezvous } from './rendezvous.js'
import { clock, failure, inFolder, Net, until } from './served.fixture.js'
import type { Store } from './store.js'

const stores: { [name: string]: (body: (user: () => Store) => Promise<void>) => Promise<void> } = {
  async HashStore(body) {
    const store = new HashStore(clock)
    await body(() => store)
    expect(store.waiting).toBe(0)
    store.close()
  },
  FileStore: (body) =>
    inFolder(async (path) => {
      const opened: FileStore[] = []
      await body(() => {
        const store = new FileStore(path)
        opened.push(store)
        return store
      })
      for (const store of opened) store.close()
    }),
  async TcpStore(body) {
    const net = new Net()
    await body(() => net.client())
    await until(() => net.server!.counts().waits === 0)
    net.close()
  },
}

const member = (i: number, more: Partial<RendezvousOptions> = {}): RendezvousOptions => ({
  name: `worker${i}`,
  rank: i,
  worldSize: 3,
  addresses: [`tcp://127.0.0.1:${7000 + i}`, `unix:/run/${i}`],
  clock,
  ...more,
})

const WITHOUT_RANK = { rank: undefined } as unknown as Partial<RendezvousOptions>

for (const [name, run] of Object.entries(stores)) {
  describe(`rendezvous over ${name}`, () => {
    test('RDV-1: all who have come have the same list, in the order of ranks', () =>
      run(async (user) => {
        const all = [2, 0, 1].map((i) => rendezvous(user(), member(i)))
        const lists = await Promise.all(all)
        expect(lists.map(({ rank }) => rank)).toEqual([2, 0, 1])
        for (const { members: list, round } of lists) {
          expect([list.map(({ name, rank, id }) => [name, rank, id]), round]).toEqual([[0, 1, 2].map((i) => [`worker${i}`, i, i]), 0])
          expect(list[1]!.addresses).toEqual(['tcp://127.0.0.1:7001', 'unix:/run/1'])
        }
      }))

    test('RDV-2: without ranks they go by arrival', () =>
      run(async (user) => {
        const first = rendezvous(user(), member(5, WITHOUT_RANK))
        await sleep(20)
        const rest = [7, 6].map((i) => rendezvous(user(), member(i, WITHOUT_RANK)))
        const lists = await Promise.all([first, ...rest])
        expect(lists[0]!.rank).toBe(0)
        expect(lists.map(({ rank }) => rank).sort()).toEqual([0, 1, 2])
        for (const { members: list } of lists) expect(list).toEqual(lists[0]!.members)
        expect(lists.map(({ rank, members: list }) => list[rank]!.name).sort()).toEqual(['worker5', 'worker6', 'worker7'])
      }))

    test('RDV-6: who joins a group without a size sees those who are there, and listeners hear all in one order', () =>
      run(async (user) => {
        const controller = new AbortController()
        const heard: MemberEvent[][] = [[], []]
        const listening = heard.map(async (events) => {
          for await (const event of members(user(), { signal: controller.signal })) events.push(event)
        })
        const joins = await Promise.all([1, 2, 3, 4].map((i) => joinMembers(user(), { name: `m${i}`, addresses: [`unix:/run/${i}`] })))
        expect(joins.map(({ self }) => self.id).sort()).toEqual([0, 1, 2, 3])
        for (const { self, members: list } of joins) expect(list.map(({ id }) => id)).toEqual([0, 1, 2, 3].slice(0, self.id + 1))
        expect(await failure(joinMembers(user(), { name: 'm2', addresses: ['unix:/run/x'] }))).toMatchObject({
          code: 'RENDEZVOUS_CONFLICT',
          message: expect.stringContaining('unix:/run/x'),
        })
        const gone = joins[1]!.self
        expect(await Promise.all([leaveMembers(user(), gone.id), leaveMembers(user(), 77)])).toEqual([true, false])
        expect(await leaveMembers(user(), gone.id)).toBe(false)
        const again = await joinMembers(user(), { name: 'm2', addresses: [] })
        expect([again.self.id, again.members.map(({ name }) => name).sort()]).toEqual([4, ['m1', 'm2', 'm3', 'm4']])
        const [one, two] = heard
        await until(() => one!.length === 6 && two!.length === 6)
        controller.abort()
        await Promise.all(listening)
        expect(one).toEqual(two)
        expect(one!.slice(4)).toEqual([{ leave: gone }, { join: again.self }])
      }))
  })
}

describe('rendezvous', () => {
  const inStore = async (body: (store: HashStore) => Promise<void>) => {
    const store = new HashStore(clock)
    await body(store)
    expect(store.waiting).toBe(0)
    store.close()
  }

  test('RDV-3: a name or rank twice, sizes that differ, one too many: a conflict that names both, and the others go on', () =>
    inStore(async (store) => {
      const first = rendezvous(store, member(0))
      const conflict = async (options: RendezvousOptions, ...words: string[]) => {
        const error = await failure(rendezvous(store, options))
        expect(error).toMatchObject({ code: 'RENDEZVOUS_CONFLICT', values: { name: options.name, round: 0, cluster: 'default' } })
        for (const word of words) expect(error?.message).toContain(word)
      }
      await conflict(member(1, { name: 'worker0' }), 'tcp://127.0.0.1:7000', 'tcp://127.0.0.1:7001')
      await conflict(member(0, { name: 'twin' }), 'rank 0', "'twin'", "'worker0'")
      await conflict(member(1, { worldSize: 4 }), '3 workers', '4 workers')
      await conflict(member(1, WITHOUT_RANK), 'ranks of their own', 'ranks by arrival')
      // What was refused has left nothing: the same name comes with another rank.
      const rest = [rendezvous(store, member(1, { name: 'twin' })), rendezvous(store, member(2))]
      expect((await first).members.map(({ name }) => name)).toEqual(['worker0', 'twin', 'worker2'])
      await Promise.all(rest)
      await conflict(member(1), 'rank 1')
      // As if the same worker came again after a crash: it needs a new round.
      await conflict(member(0), 'tcp://127.0.0.1:7000', '{ round }')
      const arrivals = [1, 2, 3].map((i) => rendezvous(store, member(i, { ...WITHOUT_RANK, cluster: 'b' })))
      await Promise.all(arrivals)
      const late = await failure(rendezvous(store, member(4, { ...WITHOUT_RANK, cluster: 'b' })))
      expect(late).toMatchObject({ code: 'RENDEZVOUS_CONFLICT', message: expect.stringContaining("'worker4' after all of them") })
    }))

  test('RDV-4: rounds and clusters do not meet', () =>
    inStore(async (store) => {
      const groups = [{}, { round: 1 }, { cluster: 'a/0' }, { cluster: 'a', round: 0 }]
      const lists = await Promise.all(
        groups.flatMap((group, g) => [0, 1, 2].map((i) => rendezvous(store, member(i, { ...group, name: `g${g}w${i}` })))),
      )
      lists.forEach(({ members: list, round }, at) => {
        const g = Math.floor(at / 3)
        expect([list.map(({ name }) => name), round]).toEqual([[0, 1, 2].map((i) => `g${g}w${i}`), groups[g]!.round ?? 0])
      })
    }))

  test('RDV-5: who waits too long hears which ranks never came, and where; it may come again', () =>
    inStore(async (store) => {
      const where = 'tcp://10.0.0.1:29500'
      const waits = [0, 2].map((i) => failure(rendezvous(store, member(i, { timeoutMs: 30, where }))))
      for (const error of await Promise.all(waits)) {
        expect(error).toMatchObject({
          code: 'RENDEZVOUS_TIMEOUT',
          values: { missing: [1], worldSize: 3, round: 0, cluster: 'default', timeoutMs: 30, where },
          cause: { code: 'STORE_TIMEOUT' },
        })
        expect(error?.message).toContain(where)
      }
      const controller = new AbortController()
      const cancelled = failure(rendezvous(store, member(1, { signal: controller.signal })))
      await sleep(5)
      controller.abort()
      expect((await cancelled)?.code).toBe('STORE_CANCELLED')
      const lists = await Promise.all([0, 1, 2].map((i) => rendezvous(store, member(i, { timeoutMs: 0 }))))
      expect(lists[0]!.members.length).toBe(3)
    }))

  test('RDV-3: options that are none, and words in the store that are nobody’s', () =>
    inStore(async (store) => {
      const wrong: unknown[] = [
        { worldSize: 0 },
        { worldSize: 1.5 },
        { worldSize: undefined },
        { rank: 3 },
        { rank: -1 },
        { name: '' },
        { name: 3 },
        { cluster: '' },
        { round: -1 },
        { addresses: ['127.0.0.1:80'] },
        { addresses: 'tcp://a:1' },
      ]
      for (const more of wrong) expect((await failure(rendezvous(store, member(0, more as object))))?.code).toBe('INVALID_ARGUMENT')
      expect((await failure(rendezvous(store, member(0, { timeoutMs: -1 }))))?.code).toBe('TIMEOUT_INVALID')
      expect((await failure(joinMembers(store, { name: '', addresses: [] })))?.code).toBe('INVALID_ARGUMENT')
      await store.set('rendezvous/default/0/name/worker0', 'nonsense')
      expect((await failure(rendezvous(store, member(0))))?.code).toBe('STORE_VALUE_INVALID')
      await store.set('members/default/0/0', '7')
      expect((await failure(joinMembers(store, { name: 'a', addresses: [] })))?.code).toBe('STORE_VALUE_INVALID')
    }))

  test('RDV-2: many at once, in random turns, have one list', async () => {
    for (let seed = 1; seed <= 5; seed++) {
      const random = numbersFrom(seed)
      await inStore(async (store) => {
        const lists = await Promise.all(
          Array.from({ length: 30 }, async (_, i) => {
            await sleep(random(5))
            return rendezvous(store, member(i, { ...WITHOUT_RANK, worldSize: 30 }))
          }),
        )
        expect([seed, new Set(lists.map(({ rank }) => rank)).size]).toEqual([seed, 30])
        for (const { members: list } of lists) expect([seed, list]).toEqual([seed, lists[0]!.members])
      })
    }
  })
})
