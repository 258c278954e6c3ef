/** What visitors of a group's store may do there, on a server's table, without connections. */
import { describe, expect, test } from '@jest/globals'
import { isPostgradError } from '@postgrad/base'
import { RealClock, StoreServer } from '@postgrad/transport/internal'
import type { Arrival, GroupEntry } from './group-log.js'
import { MeetingGuard } from './meeting-guard.js'
import type { Visitor } from './presence.js'

const clock = new RealClock()
const bytes = (text: string) => new TextEncoder().encode(text)
const text = (value: Uint8Array) => new TextDecoder().decode(value)
const RIGHTS = { observer: { call: ['act'] }, keeper: { stores: true } }

const MEMBER: Visitor = { name: 'worker1', id: 40_001, role: 'member' }
const OTHER: Visitor = { name: 'worker2', id: 40_002, role: 'member' }
const WATCHER: Visitor = { name: 'watcher', id: 40_003, role: 'observer' }
const KEEPER: Visitor = { name: 'keeper', id: 40_004, role: 'keeper' }

function setUp(worldSize: number | null = 4) {
  const server = new StoreServer({ clock })
  const { table } = server
  const guard = new MeetingGuard({ table, prefix: 'postgrad/0/', worldSize, rights: RIGHTS })
  const as = (visitor: Visitor) => {
    const { check } = guard.of(visitor)
    const head = (key: string) => ({ n: 1, done: 1, key })
    const at = (key: string) => `postgrad/0/${key}`
    return {
      add(key: string, amount = 1): number {
        check({ op: 'add', ...head(at(key)), amount }, [])
        return table.add(at(key), amount)
      },
      set(key: string, value: string): void {
        check({ op: 'set', ...head(key) }, [bytes(value)])
        table.set(key, value)
      },
      deleteKey(key: string): boolean {
        check({ op: 'deleteKey', ...head(key) }, [])
        return table.deleteKey(key)
      },
      put(place: number | string, entry: GroupEntry | string, expected = ''): string {
        const value = typeof entry === 'string' ? entry : JSON.stringify(entry)
        check({ op: 'compareSet', ...head(at(`entry/${place}`)) }, [bytes(expected), bytes(value)])
        return text(table.compareSet(at(`entry/${place}`), expected, value))
      },
      /** At the first place that is free, as `GroupLog`. */
      append(entry: GroupEntry): void {
        for (let place = 0; this.put(place, entry) !== JSON.stringify(entry); place++);
      },
      get: (key: string) => check({ op: 'get', n: 1, key, timeoutMs: 0 }, []),
      wait: (...keys: string[]) => check({ op: 'wait', n: 1, keys, timeoutMs: 0 }, []),
      look: (...keys: string[]) => check({ op: 'check', n: 1, keys }, []),
      numKeys: () => check({ op: 'numKeys', n: 1 }, []),
      /** What joining does. */
      join(rank: number | null, more: Partial<Arrival> = {}): Arrival {
        const place = rank ?? this.add('next-rank')
        const before = this.add(`rank/${place}`) - 1
        const id = before === 0 ? place : (worldSize ?? 2 ** 14) - 1 + this.add('successors')
        const entry = { ...arrivalOf(visitor, place, id, worldSize), ...more }
        this.append(entry)
        return entry
      },
    }
  }
  const log = (): string[] => {
    const entries: string[] = []
    for (let i = 0; table.valueOf(`postgrad/0/entry/${i}`) !== undefined; i++) {
      const { what, id } = JSON.parse(text(table.valueOf(`postgrad/0/entry/${i}`)!)) as GroupEntry
      entries.push(`${what} ${id}`)
    }
    return entries
  }
  /** As rank 0 does, without a check. */
  const served = (entry: GroupEntry) => table.set(`postgrad/0/entry/${log().length}`, JSON.stringify(entry))
  return { as, guard, log, served, table, server }
}

function arrivalOf({ name, id: visitor, role }: Visitor, rank: number, id = rank, worldSize: number | null = 4): Arrival {
  return { what: 'joined', id, name, rank, worldSize, addresses: [], visitor, role }
}

function codeOf(fn: () => unknown): string {
  try {
    fn()
    return 'done'
  } catch (error) {
    return isPostgradError(error) ? error.code : String(error)
  }
}

const NO = 'NOT_PERMITTED'

describe('INI-15 whoever visits the store of a group', () => {
  test.each([MEMBER, WATCHER])('joins and leaves: %j', (visitor) => {
    const { as, log } = setUp()
    const one = as(visitor)
    const { id } = one.join(1)
    one.get('postgrad/0/entry/17')
    one.append({ what: 'left', id, detail: '' })
    expect(log()).toEqual(['joined 1', 'left 1'])
  })

  test.each([MEMBER, WATCHER])('says of itself alone that it has come or left, and of nobody that he has died: %j', (visitor) => {
    const { as, log } = setUp()
    as(OTHER).join(2)
    const one = as(visitor)
    one.add('rank/1')
    const own = arrivalOf(visitor, 1)
    const forged: GroupEntry[] = [
      { ...own, name: 'worker3' },
      { ...own, visitor: 40_009 },
      { ...own, role: 'keeper' },
      { what: 'died', id: 2, detail: '' },
      { what: 'died', id: 1, detail: '' },
      { what: 'left', id: 2, detail: '' },
      { what: 'left', id: 1, detail: 'it is not there yet' },
    ]
    for (const entry of forged) expect([entry, codeOf(() => one.put(1, entry))]).toEqual([entry, NO])
    one.append(own)
    expect(codeOf(() => one.put(2, { what: 'died', id: 1, detail: '' }))).toBe(NO)
    one.append({ what: 'left', id: 1, detail: '' })
    expect(codeOf(() => one.put(3, { what: 'left', id: 1, detail: 'again' }))).toBe(NO)
    expect(log()).toEqual(['joined 2', 'joined 1', 'left 1'])
  })

  test.each([MEMBER, WATCHER])('changes no entry that is there, leaves no hole, and puts nothing that is no entry: %j', (visitor) => {
    const { as, log, table } = setUp()
    as(OTHER).join(2)
    const one = as(visitor)
    one.add('rank/1')
    const own = arrivalOf(visitor, 1)
    const there = text(table.valueOf('postgrad/0/entry/0')!)
    const tries: (() => unknown)[] = [
      () => one.put(0, own, there),
      () => one.set('postgrad/0/entry/0', JSON.stringify(own)),
      () => one.set('postgrad/0/entry/1', JSON.stringify(own)),
      () => one.deleteKey('postgrad/0/entry/0'),
      () => one.add('entry/1'),
      () => one.put(2, own),
      () => one.put(1, 'x'),
      () => one.put(1, ''),
      () => one.put(1, '{"what":"joined"}'),
    ]
    for (const [i, attempt] of tries.entries()) expect([i, codeOf(attempt)]).toEqual([i, NO])
    // The old entry stays, and the client gets it, valid or not.
    expect([one.put(0, own), one.put(0, 'x'), log()]).toEqual([there, there, ['joined 2']])
  })

  test('in a role that is not restricted uses the rest of the store as it likes', () => {
    const { as, table } = setUp()
    const one = as(MEMBER)
    one.set('key', 'value')
    one.set('postgrad/7/entry/0', 'of another group')
    one.wait('key')
    one.look('key', 'postgrad/0/entry/0')
    one.numKeys()
    expect([one.deleteKey('key'), table.numKeys()]).toEqual([true, 1])
  })
})

describe('INI-15 whoever is in a restricted role', () => {
  test('has nothing else done in the store, unless it has the right to stores: then all that is the program’s', () => {
    const { as, table } = setUp()
    table.set('key', 'value')
    const tries = (visitor: Visitor, key: string): string[] => {
      const one = as(visitor)
      const all = [() => one.set(key, 'x'), () => one.deleteKey(key), () => one.get(key), () => one.wait(key), () => one.look(key)]
      return all.map(codeOf)
    }
    expect(tries(WATCHER, 'key')).toEqual([NO, NO, NO, NO, NO])
    expect(tries(KEEPER, 'key')).toEqual(['done', 'done', 'done', 'done', 'done'])
    expect([codeOf(() => as(WATCHER).numKeys()), codeOf(() => as(KEEPER).numKeys())]).toEqual([NO, 'done'])
    for (const visitor of [WATCHER, KEEPER]) {
      for (const key of ['postgrad/0/rank/1', 'postgrad/0/next-rank', 'postgrad/1/entry/0', 'postgrad/', 'postgrad/0/entry/00'])
        expect([key, tries(visitor, key)]).toEqual([key, [NO, NO, NO, NO, NO]])
      expect(codeOf(() => as(visitor).wait('postgrad/0/entry/0', 'postgrad/0/rank/1'))).toBe(NO)
    }
  })

  test.each([4, null])('counts itself once, at a rank of its own (world size %s)', (worldSize) => {
    const { as } = setUp(worldSize)
    const one = as(WATCHER)
    const refused = (...keys: [string, number?][]) => keys.map(([key, amount]) => codeOf(() => one.add(key, amount)))
    expect(refused(['rank/0'], ['rank/1', 2], ['rank/1', -1], ['rank/01'], ['rank/9999'], ['rank/x'], ['other'], ['successors'])).toEqual(
      Array(8).fill(NO),
    )
    if (worldSize === null) {
      expect(refused(['rank/1'])).toEqual([NO])
      expect(one.add('next-rank')).toBe(1)
    }
    expect(refused(['next-rank'])).toEqual([NO])
    expect(one.add('rank/1')).toBe(1)
    expect(refused(['rank/1'], ['rank/2'], ['successors'])).toEqual([NO, NO, NO])
    // Another visitor of the same role, after it.
    const second = as({ ...WATCHER, id: 40_010 })
    if (worldSize === null) {
      expect([second.add('next-rank'), codeOf(() => second.add('rank/1'))]).toEqual([2, NO])
    } else {
      expect([second.add('rank/1'), second.add('successors')]).toEqual([2, 1])
      expect(codeOf(() => second.add('successors'))).toBe(NO)
    }
  })

  test('comes at the rank and with the id that it was given, in the world that there is', () => {
    const { as, log } = setUp()
    const one = as(WATCHER)
    const own = arrivalOf(WATCHER, 1)
    expect(codeOf(() => one.put(0, own))).toBe(NO)
    one.add('rank/1')
    for (const wrong of [
      { id: 2 },
      { id: 4 },
      { rank: 2 },
      { worldSize: 5 },
      { worldSize: null },
      { addresses: Array(60).fill('tcp://host.example:1000') },
    ])
      expect([wrong, codeOf(() => one.put(0, { ...own, ...wrong }))]).toEqual([wrong, NO])
    one.append(own)
    expect([codeOf(() => one.put(1, own)), log()]).toEqual([NO, ['joined 1']])
    one.append({ what: 'left', id: 1, detail: '' })
    expect([codeOf(() => one.put(2, own)), log()]).toEqual([NO, ['joined 1', 'left 1']])
  })

  test('takes the rank of one of its role that has died, with an id that is new', () => {
    const { as, log, served } = setUp()
    as(WATCHER).join(1)
    const second = as({ ...WATCHER, id: 40_010 })
    expect(codeOf(() => second.join(1))).toBe(NO)
    served({ what: 'died', id: 1, detail: '' })
    as({ ...WATCHER, id: 40_011 }).join(1)
    expect(log()).toEqual(['joined 1', 'died 1', 'joined 5'])
  })

  test.each(['lives', 'has died', 'has not come yet'])('does not take the name or rank of another that %s', (how) => {
    const { as, log, served } = setUp()
    const other = as(MEMBER)
    if (how === 'has not come yet') other.add('rank/1')
    else other.join(1)
    if (how === 'has died') served({ what: 'died', id: 1, detail: '' })
    const before = log()
    const sameRank = as(WATCHER)
    expect(codeOf(() => sameRank.join(1))).toBe(NO)
    if (how !== 'has not come yet') expect(codeOf(() => as({ ...WATCHER, name: MEMBER.name }).join(2))).toBe(NO)
    expect(log()).toEqual(before)
  })

  test('that took the name of another first is put out when that one comes', () => {
    const { as, log } = setUp()
    as({ ...WATCHER, name: MEMBER.name }).join(2)
    as(KEEPER).join(3)
    as(MEMBER).join(1)
    expect(log()).toEqual(['joined 2', 'joined 3', 'died 2', 'joined 1'])
  })

  test('that took the rank of another first is put out when that one wants it, which then comes with an id of its own', () => {
    const { as, log } = setUp()
    as(WATCHER).join(1)
    const { id, rank } = as(MEMBER).join(1)
    expect([id, rank, log()]).toEqual([4, 1, ['joined 1', 'died 1', 'joined 4']])
    expect(codeOf(() => as({ ...WATCHER, id: 40_010 }).join(1))).toBe(NO)
  })

  test('that has counted itself at a rank and not come does not come there any more when another wants it', () => {
    const { as, log } = setUp()
    const early = as(WATCHER)
    early.add('rank/1')
    as(MEMBER).add('rank/1')
    expect(codeOf(() => early.append(arrivalOf(WATCHER, 1)))).toBe(NO)
    expect(log()).toEqual([])
  })

  test('puts nobody out of those that are not restricted, and none of its own role', () => {
    const { as, log } = setUp()
    as(MEMBER).join(1)
    as(WATCHER).join(2)
    as(OTHER).add('rank/1')
    expect(codeOf(() => as({ ...KEEPER, name: WATCHER.name }).join(3))).toBe(NO)
    expect(log()).toEqual(['joined 1', 'joined 2'])
  })

  test('writes no more, together with all others of such roles, than a part of the store has room for', () => {
    const { as, table } = setUp(null)
    let last = ''
    let visits = 0
    for (; last !== 'STORE_LIMIT' && visits < 20_000; visits++)
      last = codeOf(() => as({ ...WATCHER, id: 40_000 + visits }).add('next-rank'))
    expect([visits, last, table.numKeys()]).toEqual([16_385, 'STORE_LIMIT', 1])
    as(MEMBER).join(null)
    expect(table.numKeys()).toBe(3)
  })

  test('writes half of that at most as one identity, and another one of its role still joins', () => {
    const { guard, table } = setUp(null)
    const of = (address: string, id: number) => {
      const { check } = guard.of({ ...WATCHER, id }, { identity: `observer at ${address}`, role: 'observer' })
      return codeOf(() => {
        check({ op: 'add', n: 1, done: 1, key: 'postgrad/0/next-rank', amount: 1 }, [])
        table.add('postgrad/0/next-rank', 1)
      })
    }
    let visits = 0
    while (visits < 20_000 && of('10.0.0.1', 40_000 + visits) !== 'STORE_LIMIT') visits++
    expect([visits, of('10.0.0.2', 60_000)]).toEqual([8192, 'done'])
  })

  test('hears of itself alone why', () => {
    const { as } = setUp()
    let error: unknown
    try {
      as(WATCHER).set('a\nkey', '')
    } catch (caught) {
      error = caught
    }
    expect(error).toMatchObject({ code: NO, op: 'set', values: { caller: 'watcher', role: 'observer', key: 'a\nkey' } })
    const { message } = error as Error
    expect([message.includes('\n'), message.includes('keeper'), message.length < 400]).toEqual([false, false, true])
  })
})
