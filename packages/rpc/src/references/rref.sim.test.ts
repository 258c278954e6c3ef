/** References as programs use them: making, fetching, calling methods, giving up. */
import { inspect } from 'node:util'
import { describe, expect, test } from '@jest/globals'
import { call, currentRuntime, remote, rref } from '../api/api.js'
import { expose, FunctionRegistry } from '../common/function-registry.js'
import { Cluster, failure, overSeeds, thrown } from '../worker/sim-cluster.suite.js'
import { OwnerRRef, type RRef, UserRRef } from './rref.js'

const sleep = (ms: number): Promise<void> => {
  const { clock } = currentRuntime()
  return new Promise((resolve) => {
    clock.setTimer(ms, resolve)
  })
}
const make = (value: unknown) => value
const makeLater = async (value: unknown) => {
  await sleep(20)
  return value
}
const fails = (): unknown => {
  throw new RangeError('no value')
}
const failsLater = async (): Promise<unknown> => {
  await sleep(20)
  throw new RangeError('no value')
}

class Counter {
  n: number
  /** A method as a field. */
  readonly twice = () => 2 * this.n
  readonly label = 'text'
  private readonly secret = 7
  constructor(n: number) {
    this.n = n
  }
  add(m: number): number {
    this.n += m
    return this.n
  }
  async addLater(m: number): Promise<number> {
    await sleep(5)
    return this.add(m)
  }
  fails(): never {
    throw new TypeError('a method')
  }
  self(): this {
    return this
  }
  get open(): number {
    return this.secret
  }
  toString(): string {
    return 'Counter'
  }
  #hidden(): number {
    return this.n
  }
  peek(): number {
    return this.#hidden()
  }
}
class Doubler extends Counter {
  override add(m: number): number {
    return super.add(2 * m)
  }
}
class Unexposed {
  add(): number {
    return 1
  }
}
const makeUnexposed = () => new Unexposed()
const makeDoubler = () => new Doubler(1)
const plainWithMethod = () => ({ add: 1 })
const log: string[] = []
class Log {
  note(text: string): void {
    log.push(text)
  }
}
const note = (text: string) => {
  log.push(text)
}
expose({ make, makeLater, fails, failsLater, Counter, makeUnexposed, makeDoubler, plainWithMethod, Log, note })

describe('making a reference', () => {
  test('RREF-1: remote gives it back at once; its owner confirms it; the value stays there and toHere gives copies', async () => {
    await overSeeds(10, 2, async (cluster) => {
      const made = remote('worker1', make, [{ list: [1] }])
      expect(made).toBeInstanceOf(UserRRef)
      expect([made.isOwner(), made.owner(), made.ownerName(), made.confirmedByOwner()]).toEqual([
        false,
        { name: 'worker1', id: 1 },
        'worker1',
        false,
      ])
      const [one, two] = await Promise.all([made.toHere(), made.toHere()])
      expect([one, two]).toEqual([{ list: [1] }, { list: [1] }])
      expect(one).not.toBe(two)
      expect(made.confirmedByOwner()).toBe(true)
      expect(cluster.info(1)).toMatchObject({ ownerRRefs: 1, forks: 1 })
      expect(cluster.info(0)).toMatchObject({ userRRefs: 1, pendingUsers: 0, ownerRRefs: 0 })
      expect(String(made)).toBe(
        'UserRRef(RRefId = GloballyUniqueId(created_on=0, local_id=0), ForkId = GloballyUniqueId(created_on=0, local_id=1))',
      )
      made.dispose()
    })
  })

  test("RREF-2: remote to oneself, and rref(value), give the owner's reference: the value itself", async () => {
    await overSeeds(5, 1, async (cluster) => {
      const value = { list: [1] }
      const mine = rref(value)
      expect(mine).toBeInstanceOf(OwnerRRef)
      expect([mine.isOwner(), mine.owner(), mine.confirmedByOwner()]).toEqual([true, { name: 'worker0', id: 0 }, true])
      expect(mine.localValue()).toBe(value)
      expect(await mine.toHere()).toBe(value)
      expect(String(mine)).toBe('OwnerRRef(GloballyUniqueId(created_on=0, local_id=0))')
      expect(inspect({ mine })).toBe(`{ mine: ${mine} }`)

      const made = remote('worker0', make, [value]) as unknown as OwnerRRef<typeof value>
      expect(made.isOwner()).toBe(true)
      const here = await made.toHere()
      expect(here).toEqual(value)
      expect(here).not.toBe(value)
      expect(made.localValue()).toBe(here)
      expect(await remote('worker0', makeLater, [5]).toHere()).toBe(5)
      expect(cluster.info(0)).toMatchObject({ ownerRRefs: 0, forks: 0 })
    })
  })

  test('RREF-3: toHere waits until the value has been made', async () => {
    await overSeeds(5, 2, async (cluster) => {
      for (const to of ['worker1', 'worker0']) {
        const made = remote(to, makeLater, ['late'])
        const beganMs = cluster.world.nowMs
        expect(await Promise.all([made.toHere(), made.toHere({ timeoutMs: 0 }), made.toHere({ timeoutMs: 100 })])).toEqual([
          'late',
          'late',
          'late',
        ])
        expect(cluster.world.nowMs - beganMs).toBeGreaterThanOrEqual(20)
        if (made instanceof OwnerRRef) expect(made.waiters.size).toBe(0)
        made.dispose()
      }
    })
  })

  test('RREF-4: localValue is for the owner, when the value is there', async () => {
    await overSeeds(3, 2, async () => {
      const made = remote('worker1', make, [1])
      expect(thrown(() => made.localValue())).toMatchObject({ code: 'RREF_NOT_OWNER', values: { owner: 'worker1', worker: 'worker0' } })
      made.dispose()
      const pending = remote('worker0', makeLater, [1])
      expect(thrown(() => pending.localValue()).code).toBe('RREF_VALUE_PENDING')
      await sleep(1)
      expect(thrown(() => pending.localValue()).code).toBe('RREF_VALUE_PENDING')
      await pending.toHere()
      expect(pending.localValue()).toBe(1)
    })
  })

  test('RREF-5: an error of its creation is thrown by every use, each time, on owner and user', async () => {
    await overSeeds(5, 2, async () => {
      for (const fn of [fails, failsLater]) {
        const user = remote('worker1', fn)
        const owner = remote('worker0', fn)
        for (const ref of [user, owner, user, owner]) expect(await failure(ref.toHere())).toMatchObject({ message: 'no value' })
        expect(await failure(user.toHere())).toBeInstanceOf(RangeError)
        expect(thrown(() => owner.localValue())).toBeInstanceOf(RangeError)
        expect(await failure((user as unknown as RRef<Counter>).call('add', [1]))).toBeInstanceOf(RangeError)
        expect(user.confirmedByOwner()).toBe(true)
        user.dispose()
      }
    })
  })

  test('RREF-8: remote that cannot leave throws, and leaves nothing behind', async () => {
    await overSeeds(1, 2, async (cluster) => {
      const held = remote('worker1', make, [1])
      await held.toHere()
      const mine = rref(1)
      const bad: [string, unknown[]][] = [
        ['worker1', [held, mine, () => 1]],
        ['worker0', [held, mine, Symbol('x')]],
        ['nobody', [held, mine]],
      ]
      for (const [to, args] of bad) {
        expect(() => remote(to, make as (...args: unknown[]) => unknown, args)).toThrow()
        await failure(call(to, make as (...args: unknown[]) => unknown, args))
      }
      expect(cluster.info(0)).toMatchObject({ userRRefs: 1, pendingUsers: 0, pendingChildren: 0, ownerRRefs: 0, forks: 0 })
      held.dispose()
      expect(cluster.gate(0, 1).sent).toEqual(['REMOTE_CALL', 'RREF_FETCH', 'RREF_USER_DELETE'])
    })
  })
})

describe('methods of the value', () => {
  test('RREF-6: run on the owner, with its state; also fields that hold functions, inherited and overridden ones', async () => {
    await overSeeds(
      5,
      2,
      async () => {
        for (const to of ['worker1', 'worker0']) {
          const counter = remote(to, Counter, [10])
          expect(await counter.call('add', [5])).toBe(15)
          expect(await counter.call('addLater', [5])).toBe(20)
          expect(await counter.call('twice', [])).toBe(40)
          expect(await counter.call('peek', [])).toBe(20)
          expect(await failure(counter.call('fails', []))).toBeInstanceOf(TypeError)
          expect(await failure(counter.call('self', []))).toMatchObject({ code: 'WIRE_UNSUPPORTED_VALUE' })
          const doubler = remote(to, makeDoubler) as RRef<Doubler>
          expect(await doubler.call('add', [5])).toBe(11)
          counter.dispose()
          doubler.dispose()
        }
      },
      {},
    )
  })

  test('RREF-6: what every object has, what is no method and what is private is no method of it', async () => {
    await overSeeds(1, 2, async () => {
      for (const to of ['worker1', 'worker0']) {
        const counter = remote(to, Counter, [1]) as unknown as RRef<Record<string, () => unknown>>
        for (const name of [
          'constructor',
          'toString',
          '__proto__',
          'hasOwnProperty',
          'valueOf',
          '__defineGetter__',
          'label',
          'n',
          'open',
          'hidden',
          '#hidden',
          'nothing',
          '',
        ]) {
          expect(await failure(counter.call(name, []))).toMatchObject({ code: 'METHOD_NOT_FOUND', values: { method: name } })
        }
        counter.dispose()
      }
    })
  })

  test('RREF-6: the error about what is no method says whether it is a getter, a field or nothing, and what to do', async () => {
    await overSeeds(1, 2, async () => {
      const counter = remote('worker1', Counter, [1]) as unknown as RRef<Record<string, () => unknown>>
      const said = async (name: string) => (await failure(counter.call(name, []))).message
      expect(await said('open')).toContain(
        'got a getter of an instance of Counter. Add a method that returns it, as in read() { return this.open }',
      )
      expect(await said('n')).toContain('got a field of an instance of Counter. Add a method that returns it')
      expect(await said('nothing')).toContain('got an instance of Counter. Check the name of the method.')
      counter.dispose()
      expect(await failure(counter.call('add', []))).toMatchObject({
        code: 'RREF_DELETED',
        remedy: expect.stringContaining('await ref.toHere() before'),
      })
    })
    await overSeeds(1, 2, async () => {
      const ref = remote('worker1', makeUnexposed, []) as RRef<unknown> as RRef<Record<string, () => unknown>>
      expect((await failure(ref.call('add', []))).remedy).toContain('Expose the class')
      ref.dispose()
    })
  })

  test('RREF-6: of a value whose class is not exposed nothing can be called', async () => {
    await overSeeds(1, 2, async () => {
      for (const fn of [makeUnexposed, plainWithMethod]) {
        const ref = remote('worker1', fn as () => unknown) as RRef<Unexposed>
        expect(await failure(ref.call('add', []))).toMatchObject({ code: 'METHOD_NOT_FOUND' })
        ref.dispose()
      }
      for (const value of [5, 'text', null, [1], new Map([[1, 2]])]) {
        const ref = remote('worker1', make, [value]) as unknown as RRef<Record<string, () => unknown>>
        for (const name of ['push', 'get', 'toFixed', 'slice', 'length'])
          expect(await failure(ref.call(name, []))).toMatchObject({ code: 'METHOD_NOT_FOUND' })
        ref.dispose()
      }
    })
  })

  test('RREF-6: the function behind it is no way around: it takes a reference, a name and arguments', async () => {
    await overSeeds(1, 2, async () => {
      const registry = currentRuntime().registry
      const { target } = registry.lookup('postgrad.callMethod', 'worker0')
      const raw = target as (...args: unknown[]) => Promise<unknown>
      const counter = remote('worker1', Counter, [1])
      for (const args of [
        [],
        [null, 'add', [1]],
        [{}, 'add', [1]],
        [counter, 5, [1]],
        [counter, 'add', { length: 1 }],
        [counter, ['add'], []],
      ]) {
        expect(await failure(call('worker1', raw, args))).toMatchObject({ code: 'METHOD_NOT_FOUND' })
      }
      expect(await call('worker1', raw, [counter, 'add', [1]])).toBe(2)
      counter.dispose()
    })
  })

  test('RREF-6: calls of methods and of functions keep their order; each waits for the value to be made', async () => {
    for (const to of ['worker1', 'worker0']) {
      await overSeeds(5, 2, async () => {
        log.length = 0
        const ref = remote(to, Log)
        await ref.toHere().catch(() => {})
        const calls: PromiseLike<unknown>[] = []
        for (let i = 0; i < 10; i++) calls.push(i % 3 === 0 ? call(to, note, [`${i}`]) : ref.call('note', [`${i}`]))
        await Promise.all(calls)
        expect(log).toEqual(Array.from({ length: 10 }, (_, i) => `${i}`))
        ref.dispose()
      })
    }
  })

  test('RREF-6: have deadlines like calls', async () => {
    const cluster = new Cluster(1, 2)
    await cluster.run(0, async () => {
      const counter = remote('worker1', Counter, [1])
      const error = await failure(counter.call('addLater', [1], { timeoutMs: 2 }))
      expect(error).toMatchObject({ code: 'RPC_TIMEOUT', op: "call of 'addLater'" })
      await sleep(20)
      expect(await counter.call('add', [0])).toBe(2)
      counter.dispose()
    })
    expect(await cluster.leftovers()).toEqual([])
  })
})

describe('giving a reference up', () => {
  test('RREF-7: is final and may be said twice; every use of a deleted one fails', async () => {
    await overSeeds(3, 3, async (cluster) => {
      const made = remote('worker1', Counter, [1])
      await made.toHere().catch(() => {})
      made.dispose()
      made.dispose()
      made[Symbol.dispose]()
      const uses = [
        made.toHere(),
        made.call('add', [1]),
        call('worker1', make, [made]),
        call('worker2', make, [made]),
        call('worker0', make, [made]),
      ]
      for (const use of uses) expect(await failure(use)).toMatchObject({ code: 'RREF_DELETED' })
      expect(thrown(() => remote('worker1', make, [made])).code).toBe('RREF_DELETED')
      expect(cluster.gate(0, 1).sent).toEqual(['REMOTE_CALL', 'RREF_FETCH', 'RREF_USER_DELETE'])
    })
  })

  test('RREF-7: a fetch that was under way is answered', async () => {
    await overSeeds(10, 2, async () => {
      const made = remote('worker1', makeLater, ['made'])
      const value = made.toHere()
      made.dispose()
      expect(await value).toBe('made')
    })
  })

  test('RREF-7: `using` gives it up at the end of the block', async () => {
    await overSeeds(1, 2, async () => {
      using made = remote('worker1', make, [1])
      expect(await made.toHere()).toBe(1)
    })
  })

  test('RREF-7: on the owner it does nothing: others keep the value, and so does who holds the reference', async () => {
    await overSeeds(3, 2, async (cluster) => {
      const mine = rref('value')
      const theirs = (await call('worker1', keep, [mine])) as number
      mine.dispose()
      expect(mine.localValue()).toBe('value')
      expect(cluster.info(0)).toMatchObject({ ownerRRefs: 1, forks: 1 })
      expect(await call('worker1', useKept, [theirs])).toBe('value')
      await call('worker1', dropKept, [theirs])
      await sleep(1)
      expect(cluster.info(0)).toMatchObject({ ownerRRefs: 0, forks: 0 })
      expect(mine.localValue()).toBe('value')
    })
  })
})

const kept: RRef[] = []
const keep = (ref: RRef) => kept.push(ref) - 1
const useKept = (at: number) => kept[at]!.toHere()
const dropKept = (at: number) => kept[at]!.dispose()
expose({ keep, useKept, dropKept })

describe('registries of their own', () => {
  test('RREF-6: a method is looked for among what the owner exposes', async () => {
    const registryOf = (id: number) => {
      const registry = new FunctionRegistry()
      registry.expose(id === 1 ? { makeCounter } : { makeCounter, Counter })
      return registry
    }
    await overSeeds(
      1,
      3,
      async () => {
        const there = remote('worker1', makeCounter)
        expect(await failure(there.call('add', [1]))).toMatchObject({ code: 'METHOD_NOT_FOUND' })
        const elsewhere = remote('worker2', makeCounter)
        expect(await elsewhere.call('add', [1])).toBe(2)
        there.dispose()
        elsewhere.dispose()
      },
      { registryOf },
    )
  })
})

const makeCounter = () => new Counter(1)
