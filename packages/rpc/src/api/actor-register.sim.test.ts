/** Actors by name from any worker, and handles of supervised actors that travel: both find the running actor. */
import { describe, expect, test } from '@jest/globals'
import { expose } from '../common/function-registry.js'
import { LEADER_GRACE_MS } from '../groups/group-errors.js'
import type { RRef } from '../references/rref.js'
import { Cluster, failure, thrown, withSeed } from '../worker/sim-cluster.suite.js'
import { Actor } from './actor.js'
import type { ActorHandle } from './actor-handle.js'
import { registerActor, unregisterActor, whereis } from './actor-register.js'
import { call, currentRuntime, remote, rref } from './api.js'
import { link, monitor, stopActor, unlink } from './monitor.js'
import { supervise } from './supervise.js'
import { workerLocal } from './worker-local.js'

const SEEDS = 15

const sleep = (ms: number): Promise<void> => {
  const { clock } = currentRuntime()
  return new Promise((resolve) => {
    clock.setTimer(ms, resolve)
  })
}

class Part extends Actor {
  private n = 0
  count(): number {
    return ++this.n
  }
  crash(): void {
    this.send(this.fails, [])
  }
  async hold(ms: number): Promise<void> {
    await sleep(ms)
  }
  finish(): void {
    this.stop()
  }
  private fails(): never {
    throw new RangeError('it broke')
  }
}

const held = workerLocal(() => ({ handle: null as ActorHandle<Part> | null, ref: null as RRef<Part> | null }))
/** Asks by name. */
const countAt = async (worker: string, name: string): Promise<number> => {
  using part = await whereis<Part>(worker, name)
  return await part.call('count', [])
}
const keep = (handle: ActorHandle<Part>): void => {
  held().handle = handle
}
const keepRef = (ref: RRef<Part>): void => {
  held().ref = ref
}
const forget = (): void => {
  held().ref?.dispose()
}
const countByHandle = async (): Promise<number> => await held().handle!.call('count', [])
const countWhenReady = async (timeoutMs: number): Promise<number> => {
  using part = await held().handle!.ready({ timeoutMs })
  return await part.call('count', [])
}
const codeOfCurrent = (): string => {
  try {
    return String(held().handle!.current)
  } catch (error) {
    return (error as { readonly code: string }).code
  }
}
/** Passes the handle on, and there uses it. */
const passOn = async (to: readonly string[], handle: ActorHandle<Part>): Promise<number> => {
  const [next, ...rest] = to
  return next === undefined ? await handle.call('count', []) : await call(next, passOn, [rest, handle])
}
const holdByHandle = async (ms: number, timeoutMs: number): Promise<void> => await held().handle!.call('hold', [ms], { timeoutMs })
const cancelHold = async (): Promise<string> => {
  const hold = held().handle!.call('hold', [10_000])
  await sleep(5)
  hold.cancel('enough')
  return await hold.then(
    () => 'done',
    (error: { readonly code: string; readonly cause: unknown }) => `${error.code} ${error.cause}`,
  )
}
/** How a call by it, and its `ready` while none runs, end by a signal. */
const abortReadyAndCall = async (): Promise<string[]> => {
  const handle = held().handle!
  const ends: string[] = []
  for (const [begin, why] of [
    [(signal: AbortSignal) => handle.call('hold', [10_000], { signal }), 'no call'],
    [(signal: AbortSignal) => handle.ready({ signal }), 'no start'],
  ] as const) {
    const controller = new AbortController()
    const ended = failure(begin(controller.signal))
    await sleep(5)
    controller.abort(why)
    const { code, cause } = await ended
    ends.push(`${code} ${cause}`)
    if (why === 'no call') await stopActor(handle)
    await sleep(5)
  }
  return ends
}
/** Watches by the handle three times and stops watching: before it is known who runs, before it is known that none does, and later. Counts the ends. */
const watchInVain = async (): Promise<number> => {
  let told = 0
  const watch = () => {
    const made = monitor(held().handle!)
    void made.down.then(() => told++)
    return made
  }
  watch().dispose()
  const late = watch()
  await sleep(10)
  late.dispose()
  await stopActor(held().handle!)
  await sleep(10)
  watch().dispose()
  await sleep(10)
  return told
}
const watchByHandle = async (): Promise<string> => {
  const { reason, normal } = await monitor(held().handle!).down
  return normal ? 'normal' : String((reason as Error).message)
}
const stopByHandle = async (): Promise<void> => await stopActor(held().handle!)
const linkToHandle = async (ref: RRef<Part>, unlinks: boolean): Promise<void> => {
  using own = ref
  await link(own, held().handle!)
  if (unlinks) await unlink(own, held().handle!)
}

expose({
  Part,
  countAt,
  keep,
  keepRef,
  forget,
  countByHandle,
  countWhenReady,
  codeOfCurrent,
  passOn,
  holdByHandle,
  cancelHold,
  abortReadyAndCall,
  watchInVain,
  watchByHandle,
  stopByHandle,
  linkToHandle,
})

async function seeds(size: number, main: (cluster: Cluster) => Promise<void>, { letters = 0, except = [] as number[] } = {}) {
  for (let seed = 1; seed <= SEEDS; seed++) {
    await withSeed(seed, async () => {
      const cluster = new Cluster(seed, size)
      await cluster.run(0, () => main(cluster))
      expect(await cluster.leftovers({ letters, except })).toEqual([])
      for (const { info, watches, actors } of cluster.workers) {
        if (!except.includes(info.id)) expect([watches.debugInfo(), actors.count]).toEqual([{ monitors: 0, watchers: 0 }, 0])
      }
    })
  }
}

const child = { name: 'p', actor: Part, worker: 'worker1' } as const

describe('names', () => {
  test('NAM-1 an actor that is registered is found by its name from any worker, until it is taken away', () =>
    seeds(3, async () => {
      using part = remote('worker1', Part, [])
      registerActor('counter', part)
      expect(await call('worker2', countAt, ['worker0', 'counter'])).toBe(1)
      expect(await call('worker1', countAt, ['worker0', 'counter'])).toBe(2)
      expect(await countAt('worker0', 'counter')).toBe(3)
      expect(thrown(() => registerActor('counter', part)).code).toBe('ACTOR_NAME_TAKEN')
      expect(thrown(() => registerActor('other', {} as RRef)).code).toBe('NOT_AN_ACTOR')
      for (const name of ['', 'a/b', 5 as never]) expect(thrown(() => registerActor(name, part)).code).toBe('INVALID_ARGUMENT')
      expect(thrown(() => unregisterActor('a/b')).message).toContain("Write unregisterActor('agent').")
      expect((await failure(whereis('worker1', ''))).message).toContain("Write whereis(worker, 'agent').")
      expect(await failure(whereis('worker1', 'counter'))).toMatchObject({
        code: 'UNKNOWN_ACTOR',
        values: { name: 'counter', worker: 'worker1' },
      })
      expect([unregisterActor('counter'), unregisterActor('counter')]).toEqual([true, false])
      expect((await failure(call('worker2', countAt, ['worker0', 'counter']))).code).toBe('UNKNOWN_ACTOR')
      expect((await failure(whereis('nobody', 'counter'))).code).toBe('UNKNOWN_WORKER')
    }))

  test('NAM-2 the name of a supervised actor goes with the one that runs', () =>
    seeds(3, async () => {
      await using supervision = await supervise({ intensity: 5, children: [child] })
      const handle = supervision.actor('p')
      registerActor('counter', handle)
      expect([await call('worker2', countAt, ['worker0', 'counter']), await call('worker2', countAt, ['worker0', 'counter'])]).toEqual([
        1, 2,
      ])
      await handle.call('crash', [])
      await sleep(20)
      await handle.ready()
      expect(await call('worker2', countAt, ['worker0', 'counter'])).toBe(1)
      await supervision.stop()
      expect((await failure(call('worker2', countAt, ['worker0', 'counter']))).code).toBe('ACTOR_NOT_RUNNING')
    }))
})

describe('handles that travel', () => {
  test('ACS-13 a handle that was sent finds the one that runs, over restarts and over any number of workers', () =>
    seeds(4, async () => {
      await using supervision = await supervise({ intensity: 5, children: [child] })
      const handle = supervision.actor('p')
      await call('worker2', keep, [handle])
      expect(await call('worker2', countByHandle)).toBe(1)
      expect(await passOn(['worker3', 'worker2', 'worker1', 'worker0', 'worker3'], handle)).toBe(2)
      await handle.call('crash', [])
      await sleep(20)
      await handle.ready()
      expect(await call('worker2', countByHandle)).toBe(1)
      expect(await call('worker2', countWhenReady, [100])).toBe(2)
      expect(await call('worker2', codeOfCurrent)).toBe('HANDLE_NOT_LOCAL')
    }))

  test('ACS-13 `ready` of one waits for the next start; it says at once why none will come, also when its supervision has ended', () =>
    seeds(3, async () => {
      const supervision = await supervise({ minBackoffMs: 100, children: [child, { ...child, name: 'x', restart: 'temporary' }] })
      await call('worker2', keep, [supervision.actor('p')])
      await supervision.actor('p').call('crash', [])
      await sleep(20)
      expect((await failure(call('worker2', countByHandle))).code).toBe('ACTOR_NOT_RUNNING')
      expect((await failure(call('worker2', countWhenReady, [10]))).code).toBe('ACTOR_NOT_RUNNING')
      const cancelled = call('worker2', countWhenReady, [10_000])
      await sleep(5)
      cancelled.cancel()
      await failure(cancelled)
      expect(await call('worker2', countWhenReady, [0])).toBe(1)
      const { clock } = currentRuntime()
      await call('worker2', keep, [supervision.actor('x')])
      await supervision.actor('x').call('finish', [])
      await sleep(20)
      const startMs = clock.now()
      expect((await failure(call('worker2', countWhenReady, [10_000]))).message).toContain("'temporary' as it is, it is not made again")
      await supervision.stop()
      expect((await failure(call('worker2', countWhenReady, [10_000]))).code).toBe('UNKNOWN_ACTOR')
      expect(clock.now() - startMs).toBeLessThan(50)
    }))

  test('ACS-13 one whose actor was removed, or whose supervision has ended, says so by the name of the actor', () =>
    seeds(3, async () => {
      const supervision = await supervise({ children: [child, { ...child, name: 'q' }] })
      const ends = { p: () => supervision.remove('p'), q: () => supervision.stop() }
      for (const name of ['p', 'q'] as const) {
        await call('worker2', keep, [supervision.actor(name)])
        await ends[name]()
        for (const error of [await failure(call('worker2', countByHandle)), await failure(call('worker2', countWhenReady, [10]))]) {
          expect(error).toMatchObject({ code: 'UNKNOWN_ACTOR', op: name, values: { name, worker: 'worker0' } })
          expect(error.message).toContain(`worker 'worker0' no longer supervises an actor '${name}'`)
        }
      }
    }))

  test('ACS-13 a call by one has one deadline, and can be cancelled; with its home it fails', () =>
    seeds(
      3,
      async ({ workers, world }) => {
        const supervision = await supervise({ children: [child] })
        await call('worker2', keep, [supervision.actor('p')])
        const { clock } = currentRuntime()
        const startMs = clock.now()
        expect((await failure(call('worker2', holdByHandle, [10_000, 50]))).code).toBe('RPC_TIMEOUT')
        expect(clock.now() - startMs).toBeLessThan(80)
        expect(await call('worker2', cancelHold)).toBe('CALL_CANCELLED enough')
        await sleep(10_000)
        await supervision.stop()
        await workers[2]!.run(async () => {
          const other = await workers[1]!.run(() => supervise({ children: [{ ...child, worker: 'worker0' }] }))
          await workers[1]!.run(() => call('worker2', keep, [other.actor('p')]))
          world.crash('worker1')
          await workers[2]!.run(() => sleep(20))
          expect((await failure(countByHandle())).code).toBe('WORKER_DIED')
        })
      },
      { except: [1] },
    ))

  test('ACS-13 a signal ends what waits by one, a call and `ready`', () =>
    seeds(3, async () => {
      await using supervision = await supervise({ intensity: 5, minBackoffMs: 100, children: [child] })
      await call('worker2', keep, [supervision.actor('p')])
      expect(await call('worker2', abortReadyAndCall)).toEqual(['CALL_CANCELLED no call', 'CALL_CANCELLED no start'])
    }))

  test('ACS-13 `ready` with a deadline ends, though the worker that supervises is silent', async () => {
    const cluster = new Cluster(1, 2)
    await cluster.run(0, async () => {
      const supervision = await supervise({ children: [child] })
      await call('worker1', keep, [supervision.actor('p')])
      await cluster.workers[1]!.run(async () => {
        cluster.gate(1, 0).shut()
        const { clock } = currentRuntime()
        const startMs = clock.now()
        const ready = failure(held().handle!.ready({ timeoutMs: 50 }))
        const ended = await Promise.race([ready, sleep(5000).then(() => null)])
        expect(ended).toMatchObject({ code: 'RPC_TIMEOUT' })
        expect(clock.now() - startMs).toBeLessThan(50 + LEADER_GRACE_MS + 20)
        cluster.gate(1, 0).unshut()
      })
      await supervision.stop()
    })
  })
})

describe('handles where a reference is asked for', () => {
  test('MON-8 monitor, stopActor: the one that runs now, by a handle here or one that was sent', () =>
    seeds(3, async () => {
      await using supervision = await supervise({ intensity: 9, children: [child] })
      const handle = supervision.actor('p')
      await call('worker2', keep, [handle])
      const downs = [monitor(handle).down.then(({ reason }) => (reason as Error).message), call('worker2', watchByHandle)]
      await sleep(10)
      await handle.call('crash', [])
      expect(await Promise.all(downs)).toEqual(['it broke', 'it broke'])
      await sleep(10)
      await handle.ready()
      const lives: boolean[] = []
      for (let i = 0; i < 3; i++) {
        const { down } = monitor(await handle.ready())
        await (i === 1 ? stopActor(handle) : call('worker2', stopByHandle))
        lives.push((await down).normal)
        await sleep(20)
      }
      expect(lives).toEqual([true, true, true])
      await handle.ready()
      const unheard = monitor(handle)
      unheard.dispose()
      await supervision.stop()
      expect(thrown(() => monitor(handle)).code).toBe('ACTOR_NOT_RUNNING')
      for (const wrong of [{}, null, 5]) {
        expect((await failure(stopActor(wrong as never))).code).toBe('NOT_AN_ACTOR')
        expect((await failure(link(wrong as never, handle))).code).toBe('NOT_AN_ACTOR')
      }
      expect((await failure(stopActor(handle))).code).toBe('ACTOR_NOT_RUNNING')
      expect(await call('worker2', watchByHandle)).toContain("worker 'worker0' no longer supervises an actor 'p'")
    }))

  test('MON-4, MON-8 of a handle that was sent nothing is told after dispose', () =>
    seeds(3, async ({ workers }) => {
      const supervision = await supervise({ minBackoffMs: 1000, children: [child] })
      await call('worker2', keep, [supervision.actor('p')])
      expect(await call('worker2', watchInVain)).toBe(0)
      expect(workers[2]!.debugInfo().monitors).toBe(0)
      await supervision.stop()
    }))

  test('LNK-3 unlink: what one came to is nothing to the other any more; links of handles are those of the ones that run', () =>
    seeds(
      3,
      async () => {
        await using supervision = await supervise({ intensity: 9, children: [child] })
        const handle = supervision.actor('p')
        await call('worker2', keep, [handle])
        for (const unlinks of [true, false]) {
          using other = remote('worker2', Part, [])
          const { down } = monitor(other)
          await call('worker2', linkToHandle, [other, unlinks])
          if (unlinks) await unlink(other, handle)
          await handle.call('crash', [])
          await sleep(20)
          await handle.ready()
          if (unlinks) {
            expect(await other.call('count', [])).toBe(1)
            await other.call('crash', [])
            await sleep(20)
            expect(handle.isRunning).toBe(true)
          }
          expect(await down).toMatchObject({ normal: false, reason: unlinks ? { message: 'it broke' } : { code: 'LINKED_ACTOR_DOWN' } })
        }
        using own = rref(new Part())
        const { ended } = currentRuntime().actors.cellOf(own, own.localValue(), 'monitor')
        let listeners = 0
        const listen = ended.then.bind(ended)
        const counting = (...args: Parameters<typeof listen>) => {
          listeners++
          return listen(...args)
        }
        Object.defineProperty(ended, 'then', { value: counting })
        using a = remote('worker1', Part, [])
        for (let n = 0; n < 5; n++) {
          await link(own, a)
          await unlink(own, a)
        }
        expect(listeners).toBe(1)
        await stopActor(own)
        using b = remote('worker2', Part, [])
        await link(a, b)
        await link(a, b)
        await unlink(b, a)
        await unlink(b, a)
        await a.call('crash', [])
        await sleep(20)
        expect(await b.call('count', [])).toBe(1)
      },
      { letters: 1 },
    ))
})
