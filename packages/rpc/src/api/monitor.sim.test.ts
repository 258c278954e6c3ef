/** Monitors, links, and stopping actors from elsewhere. */
import { describe, expect, test } from '@jest/globals'
import type { Down } from '../actors/watches.js'
import { expose } from '../common/function-registry.js'
import type { RRef } from '../references/rref.js'
import { Cluster, failure, runWithCrash, thrown, withSeed } from '../worker/sim-cluster.suite.js'
import { Actor } from './actor.js'
import type { ActorHandle } from './actor-handle.js'
import { call, currentWorker, remote, rref } from './api.js'
import { link, monitor, stopActor, unlink } from './monitor.js'
import { supervise } from './supervise.js'
import { workerLocal } from './worker-local.js'

const SEEDS = 20

const sleep = (ms: number): Promise<void> => {
  const { clock } = currentWorker()
  return new Promise((resolve) => {
    clock.setTimer(ms, resolve)
  })
}

const stops = workerLocal((): string[] => [])
const readStops = (): string[] => stops()

class Plain {
  private readonly n = 1
  get(): number {
    return this.n
  }
}

class Fragile extends Actor {
  private readonly name: string
  constructor(name: string) {
    super()
    this.name = name
    if (name === 'unborn') throw new TypeError('never born')
  }
  breakSoon(): void {
    this.send(this.fails, [])
  }
  private fails(): never {
    throw new RangeError(`${this.name} broke`)
  }
  async slow(ms: number): Promise<string> {
    await sleep(ms)
    return this.name
  }
  ping(): string {
    return this.name
  }
  protected override async onStop(): Promise<void> {
    await sleep(3)
    stops().push(this.name)
  }
}

/** Watches from here until it ends, after `ms` milliseconds. */
const watchFor = async (ref: RRef<Fragile>, ms: number): Promise<Down> => {
  using actor = ref
  await sleep(ms)
  return await monitor(actor).down
}
const makeValue = () => 5
/** No program exposes it. */
class Hidden {}
/** An actor that is there after a while. */
const makeLate = async (ms: number): Promise<Fragile> => {
  await sleep(ms)
  return new Fragile('late')
}
/** From a handle that was sent: its call is made in the turn of the stop. */
const stopThenCall = async (handle: ActorHandle<Fragile>): Promise<string> => {
  const [, after] = await Promise.all([stopActor(handle), failure(handle.call('ping', []))])
  return (after as unknown as { code: string }).code
}
/** Ends by what no message can carry. */
class Odd extends Actor {
  breakSoon(): void {
    this.send(this.fails, [])
  }
  private fails(): never {
    throw { toString: () => 'odd', act: () => {} }
  }
}

expose({ stopThenCall, Odd, Plain, Fragile, makeLate, watchFor, readStops, makeValue })

async function seeds(size: number, main: (cluster: Cluster) => Promise<void>, options: { letters?: number; except?: number[] } = {}) {
  for (let seed = 1; seed <= SEEDS; seed++) {
    await withSeed(seed, async () => {
      const cluster = new Cluster(seed, size)
      await cluster.run(0, async () => {
        await main(cluster)
        // Their onStop takes a while.
        await sleep(20)
      })
      expect(await cluster.leftovers(options)).toEqual([])
      for (const { info, watches, actors } of cluster.workers) {
        if (!options.except?.includes(info.id)) expect([watches.debugInfo(), actors.count]).toEqual([{ monitors: 0, watchers: 0 }, 0])
      }
    })
  }
}

/** Counts how often it resolves. */
function counted(down: Promise<Down>): { times: number; down: Promise<Down> } {
  const count = { times: 0, down }
  void down.then(() => count.times++)
  return count
}

describe('monitors', () => {
  test('MON-1 a crash is told once to each who watches, with its reason', () =>
    seeds(3, async () => {
      using actor = remote('worker1', Fragile, ['a'])
      const own = counted(monitor(actor).down)
      const other = call('worker2', watchFor, [actor, 0])
      await sleep(20)
      await actor.call('breakSoon', [])
      for (const { normal, reason } of [await own.down, await other]) {
        expect(normal).toBe(false)
        expect(reason).toMatchObject({ name: 'RangeError', message: 'a broke' })
      }
      expect(own.times).toBe(1)
    }))

  test('MON-1 of an actor of this worker, and of one that another worker made here', () =>
    seeds(2, async () => {
      const own = remote('worker0', Fragile, ['own'])
      const watched = monitor(own)
      await own.call('breakSoon', [])
      expect((await watched.down).reason).toMatchObject({ message: 'own broke' })
      const plain = monitor(rref(new Plain()))
      await sleep(1)
      plain.dispose()
    }))

  test('MON-2 an end that was before is told at once: a crash, a stop, a constructor that failed, a reference whose value has gone', () =>
    seeds(
      3,
      async () => {
        using crashed = remote('worker1', Fragile, ['c'])
        await crashed.call('breakSoon', [])
        await failure(crashed.call('slow', [5]).then(() => crashed.call('ping', [])))
        expect(await monitor(crashed).down).toMatchObject({ normal: false, reason: { message: 'c broke' } })
        using stopped = remote('worker1', Fragile, ['s'])
        await stopActor(stopped)
        expect(await monitor(stopped).down).toEqual({ normal: true, reason: null })
        using unborn = remote('worker1', Fragile, ['unborn'])
        expect(await monitor(unborn).down).toMatchObject({ normal: false, reason: { name: 'TypeError', message: 'never born' } })
        const disposed = remote('worker1', Fragile, ['d'])
        disposed.dispose()
        expect(await monitor(disposed).down).toMatchObject({ normal: false, reason: { code: 'RREF_DELETED' } })
      },
      { letters: 1 },
    ))

  test('MON-3 the end with the last reference is normal; a monitor keeps nothing alive', () =>
    seeds(3, async () => {
      for (const make of [() => remote('worker1', Fragile, ['f']), () => remote('worker1', Plain, [])]) {
        const actor = make()
        const watched = counted(monitor(actor).down)
        await sleep(5)
        expect(watched.times).toBe(0)
        actor.dispose()
        expect(await watched.down).toEqual({ normal: true, reason: null })
      }
    }))

  test('MON-4 nothing is told after dispose, and the owner forgets it', () =>
    seeds(2, async ({ workers }) => {
      using actor = remote('worker1', Fragile, ['a'])
      const early = monitor(actor)
      const told = counted(early.down)
      early.dispose()
      early.dispose()
      const late = monitor(actor)
      const lateTold = counted(late.down)
      await sleep(10)
      expect(workers[1]!.debugInfo().watchers).toBe(1)
      late.dispose()
      await sleep(10)
      expect(workers[1]!.debugInfo().watchers).toBe(0)
      await stopActor(actor)
      await sleep(10)
      expect([told.times, lateTold.times]).toEqual([0, 0])
    }))

  test('MON-5 a worker that dies takes its actors with it; who watches the worker, before or after, hears of it too', () =>
    seeds(
      3,
      async ({ world, workers }) => {
        const actor = remote('worker1', Fragile, ['a'])
        const watched = [counted(monitor(actor).down), counted(monitor('worker1').down)]
        const far = call('worker2', watchFor, [actor, 0])
        await sleep(10)
        world.crash('worker1')
        for (const { normal, reason } of [...(await Promise.all(watched.map(({ down }) => down))), await far, await monitor(1).down]) {
          expect(normal).toBe(false)
          expect(reason).toMatchObject({ code: 'WORKER_DIED', values: { worker: 'worker1' } })
        }
        expect(watched.map(({ times }) => times)).toEqual([1, 1])
        expect(await monitor(actor).down).toMatchObject({ normal: false, reason: { code: 'WORKER_DIED' } })
        expect(workers[2]!.debugInfo().monitors).toBe(0)
      },
      { except: [1] },
    ))

  test('MON-5 wherever the owner dies, a monitor is told once', async () => {
    for (let step = 0; step < 40; step++) {
      await withSeed(`step ${step}`, async () => {
        const cluster = new Cluster(step + 1, 2)
        const worker = cluster.workers[0]!
        let times = 0
        const main = worker.run(async () => {
          using actor = remote('worker1', Fragile, ['a'])
          const { down } = monitor(actor)
          void down.then(() => times++)
          // Made before the death, or not at all: both are an end.
          actor.call('breakSoon', []).catch(() => {})
          return await down
        })
        const { outcome, value } = await runWithCrash(cluster, main, 'worker1', step)
        expect(outcome).toBe('value')
        expect(value!.normal).toBe(false)
        await cluster.world.drain()
        expect(times).toBe(1)
        expect(worker.debugInfo().monitors).toBe(0)
      })
    }
  })

  test('MON-6 when the watcher shuts down it is told RPC_SHUT_DOWN; when it dies it is forgotten', () =>
    seeds(
      3,
      async ({ world, workers }) => {
        using actor = remote('worker1', Fragile, ['a'])
        call('worker2', watchFor, [actor, 0]).catch(() => {})
        await sleep(10)
        expect(workers[1]!.debugInfo().watchers).toBe(1)
        world.crash('worker2')
        await sleep(10)
        expect(workers[1]!.debugInfo().watchers).toBe(0)
        const cluster = new Cluster(1, 1)
        const down = cluster.workers[0]!.run(() => monitor(remote('worker0', Fragile, ['b'])).down)
        await cluster.workers[0]!.close()
        expect(await down).toMatchObject({ normal: false, reason: { code: 'RPC_SHUT_DOWN' } })
      },
      { except: [2] },
    ))

  test('MON-6 a watcher that dies before what it watches is made is forgotten', () =>
    seeds(
      3,
      async ({ world, workers }) => {
        using actor = remote('worker1', makeLate, [30])
        call('worker2', watchFor, [actor, 0]).catch(() => {})
        await sleep(10)
        world.crash('worker2')
        await sleep(50)
        expect(workers[1]!.debugInfo().watchers).toBe(0)
        expect(await actor.call('ping', [])).toBe('late')
        await stopActor(actor)
      },
      { except: [2] },
    ))

  test('MON-1 each who watches is told, also when no message can carry what ended it', () =>
    seeds(2, async () => {
      using actor = remote('worker1', Odd, [])
      const downs = [monitor(actor), monitor(actor)]
      await actor.call('breakSoon', [])
      for (const { down } of downs) expect(await down).toMatchObject({ normal: false, reason: expect.anything() })
    }))

  test('MON-7 what is no actor is said so; what is no worker is thrown', () =>
    seeds(2, async () => {
      using value = remote('worker1', makeValue)
      expect(await monitor(value).down).toMatchObject({ normal: false, reason: { code: 'NOT_AN_ACTOR' } })
      expect((await failure(stopActor(value))).code).toBe('NOT_AN_ACTOR')
      for (const none of [null, {}]) {
        using own = rref(none as object)
        expect(await monitor(own).down).toMatchObject({ normal: false, reason: { code: 'NOT_AN_ACTOR' } })
      }
      for (const nobody of ['nobody', 3, {}, null]) {
        expect(thrown(() => monitor(nobody as never))).toMatchObject({ code: 'UNKNOWN_WORKER', op: 'monitor' })
      }
    }))

  test('MON-7 the error has the function that was called, and what the reference is to', () =>
    seeds(2, async () => {
      using value = remote('worker1', makeValue)
      for (const [ref, got] of [
        [rref(new Hidden()), 'an instance of Hidden'],
        [rref(null as unknown as object), 'null'],
        [value, 'a number'],
      ] as const) {
        const { reason } = await monitor(ref).down
        for (const [op, error] of [
          ['monitor', reason],
          ['stopActor', await failure(stopActor(ref))],
          ['link', await failure(link(ref, ref))],
        ] as const) {
          expect(error).toMatchObject({
            op,
            message: `${op}: expected a reference to an instance of an exposed class, got a reference to ${got}. Make the actor with remote(to, Class, args), and expose the class.`,
          })
        }
      }
      expect((await failure(stopActor(new Hidden() as never))).message).toContain('got an instance of Hidden')
    }))

  test('MON-5 a worker that dies while a watch waits for room in its mailbox is told as well', async () => {
    for (let seed = 1; seed <= SEEDS; seed++) {
      await withSeed(seed, async () => {
        const cluster = new Cluster(seed, 2, { mailboxOf: () => ({ callsMax: 2 }) })
        await cluster.run(0, async () => {
          const actor = remote('worker1', Fragile, ['a'])
          await actor.created()
          cluster.gate(0, 1).shut()
          const calls = Array.from({ length: 3 }, () => actor.call('ping', []).catch(({ code }: { code: string }) => code))
          const watched = monitor(actor)
          await sleep(5)
          cluster.world.crash('worker1')
          expect((await watched.down).reason).toMatchObject({ code: 'WORKER_DIED' })
          expect(await Promise.all(calls)).toContain('MAILBOX_FULL')
        })
      })
    }
  })

  test('MON-1 a full mailbox delays the watch and loses nothing', async () => {
    for (let seed = 1; seed <= SEEDS; seed++) {
      await withSeed(seed, async () => {
        const cluster = new Cluster(seed, 2, { mailboxOf: () => ({ callsMax: 4 }) })
        await cluster.run(0, async () => {
          using actor = remote('worker1', Fragile, ['a'])
          await actor.created()
          const calls = Array.from({ length: 8 }, () => actor.call('slow', [5]).catch(({ code }: { code: string }) => code))
          const watched = monitor(actor)
          expect(await Promise.all(calls)).toContain('MAILBOX_FULL')
          await stopActor(actor)
          expect(await watched.down).toEqual({ normal: true, reason: null })
        })
        expect(await cluster.leftovers()).toEqual([])
      })
    }
  })
})

describe('links', () => {
  test('LNK-1 when one crashes the other does, over workers; a third in the chain as well', () =>
    seeds(4, async () => {
      const actors = ['a', 'b', 'c'].map((name, i) => remote(`worker${i + 1}`, Fragile, [name]))
      const [a, b, c] = actors as [RRef<Fragile>, RRef<Fragile>, RRef<Fragile>]
      await link(a, b)
      await link(b, c)
      const downs = actors.map((actor) => monitor(actor).down)
      await b.call('breakSoon', [])
      expect((await downs[1]!).reason).toMatchObject({ message: 'b broke' })
      for (const at of [0, 2]) expect((await downs[at]!).reason).toMatchObject({ code: 'LINKED_ACTOR_DOWN', cause: { message: 'b broke' } })
      expect(await failure(a.call('ping', []))).toMatchObject({ code: 'ACTOR_STOPPED' })
      for (const actor of actors) actor.dispose()
    }))

  test('LNK-2 a normal end of one is nothing to the other; one that has crashed before takes the other at once', () =>
    seeds(3, async ({ workers }) => {
      using a = remote('worker1', Fragile, ['a'])
      using b = remote('worker2', Fragile, ['b'])
      await link(a, b)
      await stopActor(a)
      await sleep(20)
      expect(await b.call('ping', [])).toBe('b')
      // Neither watches any more.
      for (const { watches } of workers.slice(1)) expect(watches.debugInfo()).toEqual({ monitors: 0, watchers: 0 })
      using c = remote('worker1', Fragile, ['c'])
      const down = monitor(c).down
      await sleep(10)
      await c.call('breakSoon', [])
      await down
      await link(b, c)
      await sleep(20)
      expect((await failure(b.call('ping', []))).cause).toMatchObject({ code: 'LINKED_ACTOR_DOWN' })
    }))

  test('LNK-4 a link with a value that is not an actor is refused at the caller, and the actor lives on', () =>
    seeds(3, async () => {
      using actor = remote('worker1', Fragile, ['a'])
      using near = rref(new Fragile('near'))
      using far = remote('worker2', makeValue)
      using own = rref(new Hidden())
      for (const value of [far, own])
        for (const living of [actor, near]) {
          expect(await failure(link(living, value as never))).toMatchObject({ code: 'NOT_AN_ACTOR', op: 'link' })
          expect(await failure(link(value as never, living))).toMatchObject({ code: 'NOT_AN_ACTOR', op: 'link' })
          await sleep(20)
          expect(await living.call('ping', [])).toBe(living === near ? 'near' : 'a')
        }
      await stopActor(near)
    }))

  test('LNK-3 unlink in the turn of its link undoes it, also of an actor that is still being made', () =>
    seeds(3, async ({ workers }) => {
      for (const make of [() => remote('worker1', Fragile, ['a']), () => remote('worker1', makeLate, [3])]) {
        using a = make()
        using b = remote('worker2', Fragile, ['b'])
        await Promise.all([link(a, b), unlink(a, b)])
        await sleep(20)
        for (const { watches } of workers) expect(watches.debugInfo()).toEqual({ monitors: 0, watchers: 0 })
      }
    }))

  test("LNK-1 a worker's death is a crash of what was on it", () =>
    seeds(
      3,
      async ({ world }) => {
        using a = remote('worker1', Fragile, ['a'])
        using b = remote('worker2', Fragile, ['b'])
        await link(a, b)
        const { down } = monitor(b)
        await sleep(10)
        world.crash('worker1')
        expect((await down).reason).toMatchObject({ code: 'LINKED_ACTOR_DOWN', cause: { code: 'WORKER_DIED' } })
      },
      { except: [1] },
    ))
})

describe('stopActor', () => {
  test('ACT-13 what was called before is done, onStop runs, then it resolves', () =>
    seeds(2, async () => {
      using actor = remote('worker1', Fragile, ['a'])
      const slow = actor.call('slow', [30])
      await stopActor(actor)
      expect(await slow).toBe('a')
      expect(await call('worker1', readStops)).toEqual(['a'])
      await stopActor(actor)
      expect(await failure(actor.call('ping', []))).toMatchObject({ code: 'ACTOR_STOPPED' })
    }))

  test('ACT-13 what is called after stopActor in the same turn is refused, however it is called and whatever stands for the actor', async () => {
    const actorOf = { there: () => remote('worker1', Fragile, ['a']), late: () => remote('worker1', makeLate, [5]) }
    for (const make of Object.values(actorOf)) {
      await seeds(2, async () => {
        using actor = make() as RRef<Fragile>
        const before = actor.call('slow', [3])
        const stopped = stopActor(actor)
        using kept = actor.remote<Fragile>().ping()
        const after = [kept.toHere(), actor.call('ping', []), actor.rpcAsync<Fragile>().ping()]
        expect(await before).not.toBe('')
        for (const call of after) expect(await failure(call)).toMatchObject({ code: 'ACTOR_STOPPED' })
        await stopped
      })
    }
  })

  test('ACT-13 so it is of a handle, at its home and where it was sent', () =>
    seeds(3, async () => {
      await using supervision = await supervise({
        intensity: 3,
        children: [{ name: 'fragile', actor: Fragile, args: ['a'], worker: 'worker1' }],
      })
      const handle = supervision.actor('fragile')
      const stopped = stopActor(handle)
      const after = failure(handle.call('ping', []))
      await stopped
      expect(await after).toMatchObject({ code: 'ACTOR_STOPPED' })
      await handle.ready()
      expect(await call('worker2', stopThenCall, [handle])).toBe('ACTOR_STOPPED')
    }))

  test('ACT-16 after `shutdownMs` it is ended whatever it does; 0 ends it at once; who waits for it meets ACTOR_STOPPED', () =>
    seeds(2, async () => {
      for (const shutdownMs of [20, 0]) {
        using actor = remote('worker1', Fragile, ['a'])
        const slow = failure(actor.call('slow', [10_000]))
        const { down } = monitor(actor)
        await sleep(10)
        await stopActor(actor, { shutdownMs })
        expect(await slow).toMatchObject({ code: 'ACTOR_STOPPED' })
        expect(await down).toMatchObject({ normal: false, reason: { code: 'ACTOR_KILLED' } })
        expect(await call('worker1', readStops)).toEqual([])
      }
      await sleep(10_000)
    }))
})
