/** PyTorch's RRef tests (`rpc_test.py`, named in brackets). As there, four workers run each body at the same time. */
import { describe, expect, test } from '@jest/globals'
import { call, currentWorker, remote, rref } from '../api/api.js'
import { expose } from '../common/function-registry.js'
import { Cluster, failure, withSeed } from '../worker/sim-cluster.suite.js'
import type { RRef } from './rref.js'

const SIZE = 4
const SEEDS = 4

const make = (n: number) => n
const add = (a: number, b: number) => a + b
/** Gives both up, so that nothing is left. */
const addRRefs = async (a: RRef<number>, b: RRef<number>) => {
  const sum = (await a.toHere()) + (await b.toHere())
  a.dispose()
  b.dispose()
  return sum
}
const addTo = async (a: RRef<number>, n: number) => {
  const sum = (await a.toHere()) + n
  a.dispose()
  return sum
}
const nestedRemote = async (to: number) => {
  using made = remote(to, add, [1, 3])
  return await made.toHere()
}
const nestedRRef = (to: number) => [remote(to, add, [1, 2]), remote(to, add, [1, 3])]
const returnRRef = (to: number) => {
  const made = remote(to, add, [1, 2])
  // Once the result has left.
  currentWorker().clock.defer(() => made.dispose())
  return made
}
const forwardChain = async (to: number, owner: number, ref: RRef<number>, ttl: number): Promise<RRef<unknown>[]> => {
  const current = (to + 1) % SIZE
  if (ttl > 0) return [remote(to, forwardChain as (...args: unknown[]) => unknown, [current, owner, ref, ttl - 1])]
  return [ref]
}
class Counter {
  private n = 0
  increase(by: number): number {
    this.n += by
    return this.n
  }
}
const callOn = (ref: RRef<Counter>, by: number) => ref.localValue().increase(by)
const isConfirmed = (ref: RRef) => {
  const confirmed = ref.confirmedByOwner()
  ref.dispose()
  return confirmed
}
const localRRefs = () => [rref('a'), rref('b')]
const totalOf = async (refs: readonly RRef<string>[]) => {
  const values = await Promise.all(refs.map((ref) => ref.toHere()))
  for (const ref of refs) ref.dispose()
  return values.join('')
}
const disposeIn = (nested: RRef<RRef<unknown>[]>) => {
  for (const ref of nested.localValue()) ref.dispose()
}
const setGlobal = (ref: RRef) => {
  globals.set(currentWorker().info.id, ref)
}
const clearGlobal = () => {
  globals.get(currentWorker().info.id)?.dispose()
  globals.delete(currentWorker().info.id)
}
const globals = new Map<number, RRef>()
const holding = new Map<string, RRef[]>()
const hold = (name: string, ref: RRef) => {
  holding.set(name, [...(holding.get(name) ?? []), ref])
}
class Ring {
  next: RRef<Ring> | null = null
  link(next: RRef<Ring>): void {
    this.next = next
  }
}
expose({ make, add, addRRefs, addTo, nestedRemote, nestedRRef, returnRRef, forwardChain, Counter, callOn, isConfirmed })
expose({ localRRefs, totalOf, disposeIn, setGlobal, clearGlobal, hold, Ring })

/** The body on all four workers at once, under some seeds; nothing may be left. */
async function allRanks(body: (rank: number, next: number, cluster: Cluster) => Promise<void>): Promise<void> {
  for (let seed = 1; seed <= SEEDS; seed++) {
    await withSeed(seed, async () => {
      const cluster = new Cluster(seed, SIZE)
      await cluster.world.run(
        Promise.all(cluster.workers.map(({ info: { id } }) => cluster.workers[id]!.run(() => body(id, (id + 1) % SIZE, cluster)))),
      )
      expect(await cluster.leftovers()).toEqual([])
    })
  }
}

const dispose = (...refs: RRef<never>[] | RRef[]) => {
  for (const ref of refs) ref.dispose()
}

describe('making and fetching', () => {
  test.each(['next', 'self'])(
    'RREF-1 RREF-2 many of them, on %s (builtin_remote_ret, py_udf_remote, multi_remote, remote_self)',
    async (where) => {
      await allRanks(async (rank, next) => {
        const to = where === 'self' ? rank : next
        const made = Array.from({ length: 10 }, (_, n) => remote(to, add, [n, rank]))
        expect(await Promise.all(made.map((ref) => ref.toHere()))).toEqual(made.map((_, n) => n + rank))
        dispose(...made)
      })
    },
  )

  test('RREF-14 as arguments of remote, to the owner and to a third worker (py_rref_args, py_rref_args_user_share, remote_same_worker)', async () => {
    await allRanks(async (rank, next) => {
      for (const to of [next, (rank + 2) % SIZE, rank]) {
        const a = remote(next, make, [rank])
        const b = remote(next, make, [1])
        const c = remote(to, addRRefs, [a, b])
        expect(await c.toHere()).toBe(rank + 1)
        dispose(a, b, c)
      }
    })
  })

  test('RREF-14 as arguments of call (py_rpc_rref_args)', async () => {
    await allRanks(async (rank, next) => {
      const a = remote(next, make, [rank])
      const b = remote(next, make, [2])
      expect(await Promise.all([call(next, addRRefs, [a, b]), call((rank + 2) % SIZE, addRRefs, [a, b])])).toEqual([rank + 2, rank + 2])
      dispose(a, b)
    })
  })

  test.each([1, 0])(
    'RREF-15 a reference to a value of its own as an argument, %i further (self_remote_rref_as_rpc_arg, _as_self_rpc_arg, …_remote_arg)',
    async (further) => {
      await allRanks(async (rank) => {
        const to = (rank + further) % SIZE
        const mine = remote(rank, make, [5])
        const there = remote(to, addTo, [mine, 3])
        expect(await Promise.all([call(to, addTo, [mine, 1]), call(to, addTo, [mine, 2]), there.toHere()])).toEqual([6, 7, 8])
        dispose(mine, there)
      })
    },
  )
})

describe('nested', () => {
  test('RREF-1 a remote inside of a call and of a remote (nested_remote)', async () => {
    await allRanks(async (rank, next) => {
      using made = remote(next, nestedRemote, [(rank + 2) % SIZE])
      expect(await made.toHere()).toBe(4)
      expect(await call(next, nestedRemote, [next])).toBe(4)
    })
  })

  test('RREF-14 a reference to references, 20 of them (nested_rref, nested_rref_stress)', async () => {
    await allRanks(async (rank, next) => {
      const outer = Array.from({ length: 20 }, () => remote(next, nestedRRef, [(rank + 2) % SIZE]))
      for (const nested of outer) {
        const inner = await nested.toHere()
        expect(await Promise.all(inner.map((ref) => ref.toHere()))).toEqual([3, 4])
        await call(next, disposeIn, [nested])
        dispose(...inner, nested)
      }
    })
  })

  test('RREF-14 a reference as a result (rpc_return_rref)', async () => {
    await allRanks(async (rank, next) => {
      const made = await call(next, returnRRef, [(rank + 2) % SIZE])
      expect(await made.toHere()).toBe(3)
      dispose(made)
    })
  })

  test('RREF-11 a chain of eight remotes, each of which forwards the reference (rref_forward_chain)', async () => {
    const cluster = new Cluster(3, SIZE)
    await cluster.run(0, async () => {
      const mine = rref(7)
      let links: RRef<unknown>[] = await forwardChain(1, 0, mine, 8)
      for (let i = 0; i < 8; i++) {
        expect(links).toHaveLength(1)
        links = (await links[0]!.toHere()) as RRef<unknown>[]
      }
      expect(links).toHaveLength(1)
      expect(links[0]).toBe(mine)
      expect(await links[0]!.toHere()).toBe(7)
    })
  })
})

describe('local ones, and what they know', () => {
  test('RREF-2 a value of its own needs nobody (local_rref_no_fork)', async () => {
    await allRanks(async (_, __, cluster) => {
      const mine = rref(35)
      expect([mine.localValue(), await mine.toHere()]).toEqual([35, 35])
      expect(cluster.messages).toBe(0)
    })
  })

  test('RREF-12 handed out in a result, and passed in arguments (return_local_rrefs, pass_local_rrefs)', async () => {
    await allRanks(async (_, next) => {
      const theirs = await call(next, localRRefs)
      expect(theirs.map((ref) => ref.ownerName())).toEqual([`worker${next}`, `worker${next}`])
      expect(await totalOf(theirs)).toBe('ab')
      expect(await call(next, totalOf, [[rref('x'), rref('y')]])).toBe('xy')
    })
  })

  test('RREF-4 the value itself is for the owner (local_value_not_on_owner)', async () => {
    await allRanks(async (_, next) => {
      const there = remote(next, make, [1])
      const error = await failure(Promise.resolve().then(() => there.localValue()))
      expect(error).toMatchObject({ code: 'RREF_NOT_OWNER', values: { owner: `worker${next}` } })
      dispose(there)
    })
  })

  test('RREF-6 its methods, by functions of ours and by call (call_method_on_rref)', async () => {
    await allRanks(async (_, next) => {
      const counter = remote(next, Counter)
      await counter.created()
      expect(await call(next, callOn, [counter, 5])).toBe(5)
      expect(await counter.call('increase', [2])).toBe(7)
      dispose(counter)
    })
  })

  test('RREF-14 what a function gets is confirmed before it runs (user_rrefs_confirmed, user_rrefs_confirmed_remote)', async () => {
    await allRanks(async (rank, next) => {
      const there = remote(next, make, [1])
      const seen = [call((rank + 2) % SIZE, isConfirmed, [there]), call(next, isConfirmed, [there])]
      using remotely = remote((rank + 2) % SIZE, isConfirmed, [there])
      expect(await Promise.all([...seen, remotely.toHere()])).toEqual([true, true, true])
      dispose(there)
    })
  })

  test('RREF-27 its type is asked of nobody: a method is one message and its answer (rref_type_*)', async () => {
    const cluster = new Cluster(1, 2)
    await cluster.run(0, async () => {
      const counter = remote(1, Counter)
      await counter.created()
      const before = cluster.gate(0, 1).sent.length
      await counter.rpcSync().increase(1)
      expect(cluster.gate(0, 1).sent.slice(before)).toEqual(['CALL'])
      dispose(counter)
    })
    expect(await cluster.leftovers()).toEqual([])
  })

  test('RREF-14 it travels in messages and in nothing else (rref_py_pickle_not_supported)', async () => {
    await allRanks(async (_, next) => {
      const there = remote(next, make, [1])
      for (const ref of [there, rref(1)]) {
        expect(() => structuredClone(ref)).toThrow()
        expect(() => JSON.stringify(ref)).toThrow()
      }
      dispose(there)
    })
  })
})

describe('counts and ends', () => {
  test('RREF-26 what is counted, step by step (rref_context_debug_info)', async () => {
    const cluster = new Cluster(1, SIZE)
    await cluster.run(0, async () => {
      const mine = rref([2, 2])
      expect(cluster.info(0)).toMatchObject({ ownerRRefs: 0, forks: 0 })
      await call(1, setGlobal, [mine])
      expect(cluster.info(0)).toMatchObject({ ownerRRefs: 1, forks: 1, pendingUsers: 0 })
      expect(cluster.info(1)).toMatchObject({ userRRefs: 1, pendingUsers: 0 })
      await call(1, clearGlobal)
      await call(1, make, [1])
      expect(cluster.info(0)).toMatchObject({ ownerRRefs: 0, forks: 0 })
      const [two, three] = [remote(1, make, [2]), remote(1, make, [3])]
      await Promise.all([two.toHere(), three.toHere()])
      expect(cluster.info(1)).toMatchObject({ ownerRRefs: 2, forks: 2, pendingUsers: 0 })
      dispose(two, three)
    })
    expect(await cluster.leftovers()).toEqual([])
  })

  test('RPC-31 RREF-3 used after the shutdown (use_rref_after_shutdown)', async () => {
    const cluster = new Cluster(1, 2)
    await cluster.run(0, async () => {
      const there = remote(1, make, [1])
      await there.toHere()
      await currentWorker().close()
      for (const use of [there.toHere(), there.created(), call(1, isConfirmed, [there]), there.rpcAsync<Counter>().increase(1)]) {
        expect(await failure(use)).toMatchObject({ code: 'RPC_SHUT_DOWN' })
      }
      expect(() => remote(1, addTo, [there, 1])).toThrow(expect.objectContaining({ code: 'RPC_SHUT_DOWN' }))
      dispose(there)
    })
  })

  test('RREF-31 RREF-32 a ring of values keeps itself, is seen in the table, and keeps no worker from its end (non_garbage_collected_user_rref_due_to_circular_dependency)', async () => {
    const cluster = new Cluster(1, 3)
    await cluster.run(0, async () => {
      const a = remote(1, Ring)
      const b = remote(2, Ring)
      await Promise.all([a.call('link', [b]), b.call('link', [a])])
      dispose(a, b)
      await call(1, make, [1])
      await call(2, make, [1])
    })
    await cluster.world.drain()
    for (const [id, other] of [
      [1, 2],
      [2, 1],
    ]) {
      const { owned, held } = cluster.workers[id!]!.references()
      expect(owned).toMatchObject([{ type: 'Ring', holders: [{ worker: { id: other } }] }])
      expect(held).toMatchObject([{ owner: { id: other } }])
    }
    await cluster.world.run(Promise.all(cluster.workers.map((worker) => worker.close())))
    expect(cluster.bugs).toEqual([])
  })
})

describe('messages that arrive twice, and in another order', () => {
  // Links keep order and do not lose or repeat; a session sees to it over one that does (RREF-10 of PyTorch's are idempotent and retried).
  const CONTROL = ['RREF_USER_DELETE', 'RREF_FORK_REQUEST', 'RREF_CHILD_ACCEPT', 'RREF_ACK', 'REMOTE_RET', 'RREF_FETCH']

  test.each(CONTROL)('RREF-10 RREF-11 %s twice does what one does; the second is a dead letter or nothing', async (kind) => {
    for (let seed = 1; seed <= SEEDS; seed++) {
      await withSeed(seed, async () => {
        const cluster = new Cluster(seed, 3)
        for (const from of [0, 1, 2]) for (const to of [0, 1, 2]) if (from !== to) cluster.gate(from, to).repeats = (sent) => sent === kind
        await cluster.run(0, async () => {
          const there = remote(1, make, [5])
          expect(await there.toHere()).toBe(5)
          expect(await Promise.all([call(2, addTo, [there, 1]), call(1, addTo, [there, 2])])).toEqual([6, 7])
          await call(2, hold, [`${kind} ${seed}`, there])
          // The third worker's own is not touched by what came twice.
          expect(cluster.info(1)).toMatchObject({ ownerRRefs: 1, forks: 2 })
          dispose(there)
          await call(1, make, [1])
          expect(cluster.info(1)).toMatchObject({ ownerRRefs: 1, forks: 1 })
          const [kept] = holding.get(`${kind} ${seed}`)!
          expect(await cluster.workers[2]!.run(() => kept!.toHere())).toBe(5)
          cluster.workers[2]!.run(() => kept!.dispose())
        })
        await cluster.world.drain()
        const letters = cluster.workers.reduce((sum, { info: { id } }) => sum + cluster.info(id).deadLetters!, 0)
        expect(await cluster.leftovers({ letters })).toEqual([])
      })
    }
  })

  test('RREF-10 the end of a reference does not overtake its creation, however many calls wait before that', async () => {
    for (let seed = 1; seed <= SEEDS; seed++) {
      await withSeed(seed, async () => {
        const cluster = new Cluster(seed, 2)
        await cluster.run(0, async () => {
          const waiting = Array.from({ length: 200 }, (_, n) => call(1, make, [n]))
          const there = remote(1, make, [5])
          const shared = call(1, addTo, [there, 1])
          dispose(there)
          await Promise.all(waiting)
          expect(await shared).toBe(6)
        })
        expect(await cluster.leftovers()).toEqual([])
      })
    }
  })
})
