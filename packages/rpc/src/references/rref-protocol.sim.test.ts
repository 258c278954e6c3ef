/** The RRef protocol, row by row: who counts what, who notifies whom, in which order. */
import { describe, expect, test } from '@jest/globals'
import { call, currentRuntime, remote, rref } from '../api/api.js'
import { expose } from '../common/function-registry.js'
import { Cluster, failure, overSeeds, runWithCrash, withSeed } from '../worker/sim-cluster.suite.js'
import { OwnerRRef, type RRef, UserRRef } from './rref.js'
import { TOMBSTONES_MIN } from './rref-context.js'

const sleep = (ms: number): Promise<void> => {
  const { clock } = currentRuntime()
  return new Promise((resolve) => {
    clock.setTimer(ms, resolve)
  })
}
const make = (value: unknown) => value
const makeLater = async (value: unknown, ms: number) => {
  await sleep(ms)
  return value
}
const log: string[] = []
/** Inspects a reference that a function was given, and gives it up. */
const inspect = async (ref: RRef) => {
  const confirmed = ref.confirmedByOwner()
  const value = await ref.toHere()
  ref.dispose()
  return { confirmed, value, isOwner: ref.isOwner() }
}
const inspectAll = async (refs: readonly RRef[]) => Promise.all(refs.map((ref) => inspect(ref)))
const dispose = (ref: RRef) => ref.dispose()
const held = new Map<string, RRef>()
const hold = (name: string, ref: RRef) => {
  held.set(name, ref)
}
const heldOf = (name: string) => held.get(name)!
const useHeld = (name: string) => held.get(name)!.toHere()
const drop = (name: string) => {
  held.get(name)!.dispose()
  held.delete(name)
}
/** Passes a reference on through the workers; the last one fetches. */
const passOn = async (ref: RRef, to: readonly string[]): Promise<unknown> => {
  try {
    const [next, ...rest] = to
    return next === undefined ? await ref.toHere() : await call(next, passOn, [ref, rest])
  } finally {
    ref.dispose()
  }
}
const giveMine = (value: unknown) => rref(value)
/** Makes a value on another worker and returns the reference at once. */
const makeAt = (to: string, value: unknown) => {
  const made = remote(to, make, [value])
  // Once the result has left.
  currentRuntime().clock.defer(() => made.dispose())
  return made
}
const same = (ref: RRef, rrefId: bigint) =>
  ref instanceof OwnerRRef && ref.rrefId === rrefId && currentRuntime().rrefs.lookup(rrefId) === ref
const isHeld = (name: string, ref: RRef) => held.get(name) === ref
const note = (text: string, ref: RRef) => {
  log.push(text)
  ref.dispose()
}
expose({ make, makeLater, inspect, inspectAll, dispose, hold, heldOf, useHeld, drop, passOn, giveMine, makeAt, same, isHeld, note })

describe('the rows of the protocol', () => {
  test('RREF-1: user → owner, remote: the fork is registered and confirmed before the function has run', async () => {
    await overSeeds(5, 2, async (cluster) => {
      const made = remote('worker1', makeLater, ['v', 50])
      while (!made.confirmedByOwner()) await sleep(1)
      expect(cluster.world.nowMs).toBeLessThan(20)
      expect(cluster.info(1)).toMatchObject({ ownerRRefs: 1, forks: 1, servingCalls: 1 })
      made.dispose()
      expect(cluster.gate(0, 1).sent).toEqual(['REMOTE_CALL', 'RREF_USER_DELETE'])
      await sleep(60)
      expect(cluster.gate(1, 0).sent).toEqual(['REMOTE_RET'])
    })
  })

  test('RREF-12: owner → user: the fork is registered before the message leaves, and the receiver is confirmed at once', async () => {
    await overSeeds(5, 2, async (cluster) => {
      const mine = rref('mine')
      cluster.gate(0, 1).shut()
      const answer = call('worker1', inspect, [mine])
      expect(cluster.info(0)).toMatchObject({ ownerRRefs: 1, forks: 1 })
      cluster.gate(0, 1).unshut()
      expect(await answer).toEqual({ confirmed: true, value: 'mine', isOwner: false })
      await sleep(1)
      expect(cluster.info(0)).toMatchObject({ ownerRRefs: 0, forks: 0 })
      expect(cluster.gate(1, 0).sent.sort()).toEqual(['RESULT', 'RREF_FETCH', 'RREF_USER_DELETE'])

      const theirs = await call('worker1', giveMine, ['theirs'])
      expect(theirs).toBeInstanceOf(UserRRef)
      expect(theirs.confirmedByOwner()).toBe(true)
      expect(await theirs.toHere()).toBe('theirs')
      theirs.dispose()
    })
  })

  test('RREF-13: user → owner: the owner uses its own reference; the user is kept until the owner has accepted', async () => {
    await overSeeds(5, 2, async (cluster) => {
      const made = remote('worker1', make, ['v'])
      await made.toHere()
      cluster.gate(1, 0).shut()
      const answer = call('worker1', same, [made, made.rrefId])
      made.dispose()
      await sleep(1)
      expect(cluster.info(0)).toMatchObject({ pendingChildren: 1 })
      expect(cluster.gate(0, 1).sent).not.toContain('RREF_USER_DELETE')
      cluster.gate(1, 0).unshut()
      expect(await answer).toBe(true)
      await sleep(1)
      expect(cluster.gate(1, 0).sent).toEqual(['REMOTE_RET', 'RESULT', 'RREF_CHILD_ACCEPT', 'RESULT'])
      expect(cluster.gate(0, 1).sent.at(-1)).toBe('RREF_USER_DELETE')
    })
  })

  test('RREF-14: user → user: C asks the owner, its function runs only when all references are confirmed, then A is told', async () => {
    await overSeeds(20, 4, async (cluster) => {
      const one = remote('worker1', make, ['one'])
      const two = remote('worker3', make, ['two'])
      cluster.gate(1, 2).shut()
      const answer = call('worker2', inspectAll, [[one, two, one]])
      one.dispose()
      await sleep(5)
      expect(cluster.info(2)).toMatchObject({ pendingUsers: 2, servingCalls: 1 })
      expect(cluster.info(0)).toMatchObject({ pendingChildren: 2 })
      expect(cluster.gate(0, 1).sent).toEqual(['REMOTE_CALL'])
      cluster.gate(1, 2).unshut()
      const seen = { confirmed: true, isOwner: false }
      expect(await answer).toEqual([
        { ...seen, value: 'one' },
        { ...seen, value: 'two' },
        { ...seen, value: 'one' },
      ])
      two.dispose()
      await sleep(1)
      expect(cluster.gate(2, 1).sent.slice(0, 2)).toEqual(['RREF_FORK_REQUEST', 'RREF_FORK_REQUEST'])
      expect(cluster.gate(2, 0).sent.filter((type) => type === 'RREF_CHILD_ACCEPT').length).toBe(3)
    })
  })

  test('RREF-14: remote with references: its function waits for them, the reference comes back at once', async () => {
    await overSeeds(10, 3, async () => {
      const given = remote('worker1', make, ['given'])
      const made = remote('worker2', inspect, [given])
      expect(await made.toHere()).toEqual({ confirmed: true, value: 'given', isOwner: false })
      given.dispose()
      made.dispose()
    })
  })

  test('RREF-14: in a result: the value is there at once, confirmed or not, and can be used and passed on at once', async () => {
    const confirmed = new Set<boolean>()
    await overSeeds(30, 4, async () => {
      const ref = await call('worker1', makeAt, ['worker2', 'v'])
      confirmed.add(ref.confirmedByOwner())
      const further = call('worker3', passOn, [ref, ['worker0', 'worker2', 'worker1']])
      const here = ref.toHere()
      ref.dispose()
      expect(await Promise.all([here, further])).toEqual(['v', 'v'])
    })
    expect(confirmed).toContain(false)
  })

  test('RREF-15: to oneself: an owner gets its own reference back, a user another fork', async () => {
    await overSeeds(10, 2, async (cluster) => {
      const mine = rref('mine')
      held.set('mine', mine)
      expect(await call('worker0', isHeld, ['mine', mine])).toBe(true)
      expect(cluster.info(0)).toMatchObject({ ownerRRefs: 0, forks: 0 })
      const theirs = remote('worker1', make, ['theirs'])
      const seen = await call('worker0', inspect, [theirs])
      expect(seen).toEqual({ confirmed: true, value: 'theirs', isOwner: false })
      theirs.dispose()
    })
  })

  test('RREF-11: a chain of sharing over any workers, each giving its own up at once', async () => {
    await overSeeds(30, 4, async (_, seed) => {
      const path = Array.from({ length: 12 }, (_, i) => `worker${(seed + i * i + (i >> 1)) % 4}`)
      const made = remote('worker1', makeLater, ['end', 3])
      const end = call(path[0]!, passOn, [made, path.slice(1)])
      made.dispose()
      expect(await end).toBe('end')
    })
  })

  test('RREF-11: a parent is not disposed before its child has accepted, also when creation is still unconfirmed', async () => {
    await overSeeds(20, 3, async (cluster) => {
      cluster.gate(0, 1).shut()
      const made = remote('worker1', make, ['v'])
      const answer = call('worker2', inspect, [made])
      made.dispose()
      await sleep(3)
      // worker2 has spoken of it to the owner before the owner knows of its creation.
      expect(cluster.info(1)).toMatchObject({ ownerRRefs: 1, forks: 1 })
      expect(cluster.gate(0, 1).sent).toEqual(['REMOTE_CALL'])
      cluster.gate(0, 1).unshut()
      expect(await answer).toEqual({ confirmed: true, value: 'v', isOwner: false })
      await sleep(1)
      expect(cluster.gate(0, 1).sent).toEqual(['REMOTE_CALL', 'RREF_USER_DELETE'])
    })
  })

  test('RREF-10: the owner is told of every end, once', async () => {
    await overSeeds(10, 3, async (cluster) => {
      const made = remote('worker1', make, ['v'])
      await Promise.all([1, 2, 3].map(() => call('worker2', inspect, [made])))
      made.dispose()
      await sleep(1)
      expect([...cluster.gate(0, 1).sent, ...cluster.gate(2, 1).sent].filter((type) => type === 'RREF_USER_DELETE').length).toBe(4)
    })
  })
})

describe('before the value has been made, and after it has gone', () => {
  test('RREF-18: who hears of a value before its owner does waits for it: fetches, methods, the owner itself', async () => {
    await overSeeds(20, 3, async (cluster) => {
      cluster.gate(0, 1).shut()
      const made = remote('worker1', make, ['v'])
      const fetched = call('worker2', inspect, [made])
      const passedToOwner = call('worker2', passOn, [made, ['worker1']])
      await sleep(5)
      cluster.gate(0, 1).unshut()
      made.dispose()
      expect(await Promise.all([fetched, passedToOwner])).toEqual([{ confirmed: true, value: 'v', isOwner: false }, 'v'])
    })
  })

  test('RREF-18: a value that is spoken of and disposed before it is made is still made, once, for who waits', async () => {
    await overSeeds(20, 3, async (cluster) => {
      cluster.gate(0, 1).shut()
      const made = remote('worker1', make, ['v'])
      await call('worker2', hold, ['x', made])
      const waits = call('worker2', useHeld, ['x'])
      await call('worker2', drop, ['x'])
      await sleep(2)
      // Nobody is counted any more, and REMOTE_CALL has not arrived: it stays.
      expect(cluster.info(1)).toMatchObject({ ownerRRefs: 1, forks: 0 })
      cluster.gate(0, 1).unshut()
      expect(await waits).toBe('v')
      expect(await made.toHere()).toBe('v')
      made.dispose()
    })
  })

  test('RREF-18, RREF-22: a value that is spoken of and disposed goes when its maker dies before it was heard', async () => {
    for (let seed = 1; seed <= 10; seed++) {
      await withSeed(seed, async () => {
        const cluster = new Cluster(seed, 3)
        await cluster.run(2, async () => {
          cluster.gate(0, 1).shut()
          await cluster.workers[0]!.run(async () => {
            await call('worker2', hold, ['x', remote('worker1', make, ['v'])])
          })
          drop('x')
          await sleep(5)
          expect(cluster.info(1)).toMatchObject({ ownerRRefs: 1, forks: 0 })
          cluster.world.crash('worker0')
          await sleep(5)
          expect(cluster.info(1)).toMatchObject({ ownerRRefs: 0, forks: 0 })
        })
        expect(await cluster.leftovers({ except: [0] })).toEqual([])
      })
    }
  })

  test('RREF-19: who asks for a value that has gone is told so; it never comes back to life', async () => {
    const cluster = new Cluster(1, 3)
    await cluster.run(0, async () => {
      const { rrefs } = cluster.workers[1]!
      const made = remote('worker1', make, ['v'])
      await made.toHere()
      made.dispose()
      await sleep(1)
      expect(cluster.info(1)).toMatchObject({ ownerRRefs: 0 })
      expect(() => rrefs.lookup(made.rrefId)).toThrow(expect.objectContaining({ code: 'RREF_DELETED' }))
      expect(() => rrefs.onForkRequest(made.rrefId, 77n, 2)).toThrow(expect.objectContaining({ code: 'RREF_DELETED' }))
      // One that worker1 would have made itself.
      expect(() => rrefs.onForkRequest((1n << 48n) + 5n, 77n, 2)).toThrow(expect.objectContaining({ code: 'RREF_DELETED' }))
      // One of a worker that is nobody's peer.
      expect(() => rrefs.onForkRequest((9n << 48n) + 5n, 77n, 2)).toThrow(expect.objectContaining({ code: 'UNKNOWN_WORKER' }))
    })
    expect(await cluster.leftovers()).toEqual([])
  })

  test('RREF-19: the last TOMBSTONES_MIN are remembered, and at most twice as many', async () => {
    const cluster = new Cluster(1, 2)
    const ids: bigint[] = []
    const { rrefs } = cluster.workers[1]!
    for (let i = 0; i < 2 * TOMBSTONES_MIN + 10; i++) {
      ids.push(BigInt(1000 + i))
      rrefs.admit(ids[i]!, 5n, 0)
      rrefs.onUserDelete(ids[i]!, 5n, 0)
    }
    const isRemembered = (id: bigint) => {
      try {
        rrefs.onForkRequest(id, 6n, 0)
        rrefs.admit(id, 6n, 0)
        rrefs.onUserDelete(id, 6n, 0)
        return false
      } catch {
        return true
      }
    }
    expect(isRemembered(ids.at(-1)!)).toBe(true)
    expect(isRemembered(ids.at(-TOMBSTONES_MIN)!)).toBe(true)
    expect(isRemembered(ids[9]!)).toBe(false)
    expect(rrefs.debugInfo().ownerRRefs).toBe(0)
  })

  test("RREF-10: the end of a fork that is not there, or is another worker's, is a dead letter and changes nothing", async () => {
    const cluster = new Cluster(1, 3)
    await cluster.run(0, async () => {
      const made = remote('worker1', make, ['v'])
      await made.toHere()
      const { rrefs } = cluster.workers[1]!
      expect(rrefs.onUserDelete(made.rrefId, 99n, 0)).toBe(false)
      expect(rrefs.onUserDelete(12345n, 1n, 0)).toBe(false)
      expect(rrefs.onUserDelete(made.rrefId, (made as UserRRef).forkId, 2)).toBe(false)
      rrefs.onChildAccept(99n, 0)
      expect(await made.toHere()).toBe('v')
      made.dispose()
    })
    expect(await cluster.leftovers()).toEqual([])
  })
})

describe('messages that go to nobody', () => {
  test('RREF-16: a message that is refused leaves no fork behind, whatever it carried', async () => {
    await overSeeds(1, 3, async (cluster) => {
      const mine = rref('mine')
      const theirs = remote('worker1', make, ['theirs'])
      await theirs.toHere()
      const before = cluster.info(0)
      for (const to of ['worker1', 'worker2', 'worker0']) {
        await failure(call(to, make, [[mine, theirs, () => 1]]))
        await failure(call(to, make, [[mine, theirs, 'x'.repeat(9e6)]]))
        await failure(call(to, make, [[mine, theirs]], { timeoutMs: -1 }))
      }
      expect(cluster.info(0)).toEqual(before)
      theirs.dispose()
    })
  })

  test('RREF-35: a reference of another worker, or of another cluster, is refused, and its own go on', async () => {
    const other = new Cluster(1, 2)
    const foreign = await other.run(0, async () => {
      const made = remote('worker1', make, ['of the other'])
      await made.created()
      return made
    })
    await overSeeds(1, 2, async (cluster) => {
      const theirs = remote('worker1', make, ['of this one'])
      await theirs.created()
      const mine = rref('mine')
      expect(foreign.rrefId).toBe(theirs.rrefId) // else it would be found missing
      const before = cluster.info(0)
      const alone = await failure(call('worker1', inspect, [foreign]))
      const besides = await failure(call('worker1', inspectAll, [[mine, foreign]]))
      const ofAnother = await cluster.workers[1]!.run(() => failure(call('worker0', inspect, [mine])))
      for (const error of [alone, besides, ofAnother]) expect(error).toMatchObject({ code: 'INVALID_ARGUMENT', op: 'sending an RRef' })
      expect(cluster.info(0)).toEqual(before)
      theirs.dispose()
    })
    await other.run(0, async () => {
      expect(await foreign.toHere()).toBe('of the other')
      foreign.dispose()
    })
    expect(await other.leftovers()).toEqual([])
  })

  test('RREF-16: an interceptor that throws, on the way out or in, leaves none either; nor does a result that cannot leave', async () => {
    await overSeeds(3, 3, async (cluster) => {
      const flags = { out: false, in: false }
      cluster.workers[0]!.intercept({
        outgoing: () => {
          if (flags.out) throw new Error('out')
        },
      })
      cluster.workers[2]!.intercept({
        incoming: () => {
          if (flags.in) throw new Error('in')
        },
      })
      const mine = rref('mine')
      const theirs = remote('worker1', make, ['theirs'])
      await theirs.toHere()
      flags.out = true
      expect(await failure(call('worker2', make, [[mine, theirs]]))).toMatchObject({ message: 'out' })
      expect(() => remote('worker2', make, [[mine, theirs]])).toThrow('out')
      flags.out = false
      flags.in = true
      expect(await failure(call('worker2', make, [[mine, theirs]]))).toMatchObject({ message: 'in' })
      const failed = remote('worker2', make, [[mine, theirs]])
      await sleep(1)
      flags.in = false
      expect(await failure(failed.toHere())).toMatchObject({ message: 'in' })
      failed.dispose()
      await failure(call('worker2', returnsBadly, [mine]))
      theirs.dispose()
    })
  })

  test('RREF-17: references in a reply that comes too late, or meets an interceptor that throws, are disposed', async () => {
    const cluster = new Cluster(1, 3)
    await cluster.run(0, async () => {
      const late = failure(call('worker1', giveLater, [20], { timeoutMs: 5 }))
      await sleep(1)
      cluster.gate(0, 1).shut()
      expect(await late).toMatchObject({ code: 'RPC_TIMEOUT' })
      await sleep(50)
      cluster.gate(0, 1).unshut()
      const flags = { in: true }
      currentRuntime().intercept({
        incoming: () => {
          if (flags.in) throw new Error('in')
        },
      })
      expect(await failure(call('worker1', giveLater, [0]))).toMatchObject({ message: 'in' })
      flags.in = false
    })
    expect(await cluster.leftovers({ letters: 1 })).toEqual([])
  })

  test('RREF-17: a message to a worker that shuts down before its turn ends with that worker', async () => {
    const cluster = new Cluster(1, 3)
    await cluster.run(0, async () => {
      const mine = rref('mine')
      const theirs = remote('worker1', make, ['theirs'])
      await theirs.toHere()
      const lost = failure(call('worker2', inspectAll, [[mine, theirs]]))
      theirs.dispose()
      await cluster.workers[2]!.close()
      expect(await lost).toMatchObject({ code: 'WORKER_DIED' })
    })
    expect(await cluster.leftovers({ except: [2] })).toEqual([])
  })
})

const returnsBadly = (ref: RRef) => {
  try {
    return [rref('mine'), ref, () => 1]
  } finally {
    ref.dispose()
  }
}
const giveLater = async (ms: number) => {
  await sleep(ms)
  return rref('late')
}
expose({ returnsBadly, giveLater })

describe('deaths', () => {
  test('RREF-20: a user dies: its forks end, and what only it referred to goes', async () => {
    await withSeed('1..10', async () => {
      for (let seed = 1; seed <= 10; seed++) {
        const cluster = new Cluster(seed, 3)
        await cluster.run(0, async () => {
          const mine = rref('mine')
          await call('worker1', hold, ['a', mine])
          await call('worker2', hold, ['b', mine])
          const theirs = remote('worker2', make, ['theirs'])
          await call('worker1', hold, ['c', theirs])
          theirs.dispose()
          await sleep(1)
          expect([cluster.info(0).forks, cluster.info(2).forks]).toEqual([2, 1])
          cluster.world.crash('worker1')
          await sleep(1)
          expect([cluster.info(0).forks, cluster.info(2).forks, cluster.info(2).ownerRRefs]).toEqual([1, 0, 0])
          await call('worker2', drop, ['b'])
        })
        expect(await cluster.leftovers({ except: [1] })).toEqual([])
      }
    })
  })

  test('RREF-20: a maker dies before its REMOTE_CALL has arrived: who heard of the value gets WORKER_DIED, at once', async () => {
    const cluster = new Cluster(1, 4)
    await cluster.run(3, async () => {
      // worker0 makes on worker1 and shares with worker2; its REMOTE_CALL never leaves.
      cluster.gate(0, 1).shut()
      const told = cluster.workers[0]!.run(async () => {
        const made = remote('worker1', make, ['v'])
        await call('worker2', hold, ['x', made])
      })
      await told
      const waits = call('worker2', useHeld, ['x'])
      await sleep(5)
      expect(cluster.info(1)).toMatchObject({ ownerRRefs: 1, forks: 1 })
      const beganMs = cluster.world.nowMs
      cluster.world.crash('worker0')
      expect(await failure(waits)).toMatchObject({ code: 'WORKER_DIED', values: { worker: 'worker0' } })
      expect(cluster.world.nowMs - beganMs).toBeLessThan(1)
      await call('worker2', drop, ['x'])
    })
    expect(await cluster.leftovers({ except: [0] })).toEqual([])
  })

  test('RREF-20: and who hears of it only after that death as well', async () => {
    const cluster = new Cluster(1, 4)
    await cluster.run(3, async () => {
      cluster.gate(0, 1).shut()
      cluster.gate(2, 1).shut()
      const told = cluster.workers[0]!.run(async () => failure(call('worker2', inspect, [remote('worker1', make, ['v'])])))
      told.catch(() => {})
      await sleep(5)
      cluster.world.crash('worker0')
      await sleep(5)
      cluster.gate(2, 1).unshut()
      await sleep(5)
      expect(cluster.info(1)).toMatchObject({ ownerRRefs: 0, forks: 0 })
      expect(cluster.info(2)).toMatchObject({ servingCalls: 0, pendingUsers: 0, userRRefs: 0 })
    })
    // The answer to worker0.
    expect(await cluster.leftovers({ except: [0], letters: 1 })).toEqual([])
  })

  test('RREF-20: a reference that came in a result has the death of its maker as the error of every use, though its owner lives', async () => {
    const cluster = new Cluster(1, 4)
    await cluster.run(2, async () => {
      cluster.gate(0, 1).shut()
      cluster.gate(2, 1).shut()
      const made = await call('worker0', makeAt, ['worker1', 'v'])
      cluster.world.crash('worker0')
      await sleep(5)
      cluster.gate(2, 1).unshut()
      await sleep(5)
      for (const use of [made.toHere(), made.created()]) {
        expect(await failure(use)).toMatchObject({ code: 'WORKER_DIED', values: { worker: 'worker0' } })
      }
      made.dispose()
    })
    expect(await cluster.leftovers({ except: [0] })).toEqual([])
  })

  test('RREF-21: an owner dies: every use of its references ends with WORKER_DIED at once, and they are gone from the tables', async () => {
    await withSeed('1..10', async () => {
      for (let seed = 1; seed <= 10; seed++) {
        const cluster = new Cluster(seed, 3)
        await cluster.run(0, async () => {
          const made = remote('worker1', makeLater, ['v', 1000])
          const unconfirmed = remote('worker1', makeLater, ['w', 1000])
          const uses = [made.toHere(), unconfirmed.toHere(), call('worker1', inspect, [made]), call('worker2', inspect, [made])].map(
            (use) => failure(use),
          )
          await sleep(0)
          cluster.world.crash('worker1')
          for (const error of await Promise.all(uses)) expect(error).toMatchObject({ code: 'WORKER_DIED', values: { worker: 'worker1' } })
          expect(await failure(made.toHere())).toMatchObject({ code: 'WORKER_DIED' })
          expect(await failure(call('worker2', inspect, [made]))).toMatchObject({ code: 'WORKER_DIED' })
          made.dispose()
          unconfirmed.dispose()
        })
        expect(await cluster.leftovers({ except: [1], letters: cluster.info(0).deadLetters! + cluster.info(2).deadLetters! })).toEqual([])
      }
    })
  })

  test('RREF-22: a parent dies before its child is confirmed: the child works or is told that the value has gone, and nothing is left', async () => {
    const outcomes = new Set<string>()
    for (let seed = 1; seed <= 40; seed++) {
      await withSeed(seed, async () => {
        const cluster = new Cluster(seed, 4)
        await cluster.run(3, async () => {
          // worker0 holds a reference that worker1 owns and made, and shares it with worker2.
          const owned = await cluster.workers[1]!.run(async () => rref('v'))
          await cluster.workers[1]!.run(() => call('worker0', hold, ['p', owned]))
          cluster.gate(2, 1).shut()
          const shared = cluster.workers[0]!.run(() => call('worker2', hold, ['q', heldOf('p')]))
          shared.catch(() => {})
          await sleep(2)
          cluster.world.crash('worker0')
          if (seed % 2 === 0) await sleep(2)
          cluster.gate(2, 1).unshut()
          await sleep(2)
          if (held.has('q')) {
            outcomes.add(String(await call('worker2', useHeld, ['q']).catch((error) => error.code)))
            await call('worker2', drop, ['q'])
          } else {
            outcomes.add('not run')
          }
          held.clear()
        })
        expect(
          await cluster.leftovers({ except: [0], letters: [1, 2, 3].reduce((n, id) => n + cluster.info(id).deadLetters!, 0) }),
        ).toEqual([])
      })
    }
    expect(outcomes).toEqual(new Set(['v', 'not run']))
  })

  test('RREF-23: a receiver dies before it has accepted: the parent is free to end', async () => {
    const cluster = new Cluster(1, 3)
    await cluster.run(0, async () => {
      const made = remote('worker1', make, ['v'])
      cluster.gate(2, 0).shut()
      const lost = failure(call('worker2', inspect, [made]))
      made.dispose()
      await sleep(2)
      expect(cluster.info(0)).toMatchObject({ pendingChildren: 1 })
      // Nobody else can accept for it.
      for (let id = 0n; id < 50n; id++) cluster.workers[0]!.rrefs.onChildAccept(id, 1)
      expect(cluster.info(0)).toMatchObject({ pendingChildren: 1 })
      cluster.world.crash('worker2')
      expect(await lost).toMatchObject({ code: 'WORKER_DIED' })
      await sleep(1)
      expect(cluster.gate(0, 1).sent.at(-1)).toBe('RREF_USER_DELETE')
    })
    expect(await cluster.leftovers({ except: [2] })).toEqual([])
  })

  test('RREF-26: at whatever step a worker dies, a program of sharing ends, and its survivors hold nothing', async () => {
    const program = async () => {
      const made = remote('worker1', make, ['v'])
      const mine = rref('mine')
      const settled = await Promise.allSettled([
        call('worker2', passOn, [made, ['worker1', 'worker2', 'worker0']]),
        call('worker1', passOn, [mine, ['worker2']]),
        call('worker2', inspectAll, [[made, mine]]),
        made.toHere(),
      ])
      made.dispose()
      return settled
    }
    for (const victim of [1, 2]) {
      for (let seed = 1; seed <= 6; seed++) {
        for (let step = 0; ; step++) {
          const crashed = await withSeed(`${seed}, worker${victim} dies at step ${step}`, async () => {
            const cluster = new Cluster(seed, 3)
            const ended = await runWithCrash(cluster, cluster.workers[0]!.run(program), `worker${victim}`, step)
            expect(ended.outcome).toBe('value')
            expect(cluster.world.nowMs).toBeLessThan(1)
            for (const result of ended.value!) {
              if (result.status === 'fulfilled') continue
              // Of the victim, or of a value that went with it.
              expect(['WORKER_DIED', 'RREF_DELETED']).toContain(result.reason.code)
              if (result.reason.code === 'WORKER_DIED') expect(result.reason.values.worker).toBe(`worker${victim}`)
            }
            await cluster.world.drain()
            const letters = cluster.workers.reduce((n, w) => n + (w.info.id === victim ? 0 : w.debugInfo().deadLetters!), 0)
            expect(await cluster.leftovers({ except: [victim], letters })).toEqual([])
            return ended.crashed
          })
          if (!crashed) break
        }
      }
    }
  })
})
