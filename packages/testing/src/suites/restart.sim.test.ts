/** Crash and restart in the simulation: a name lives again under a fresh id, and errors about its former life say so. */
import { describe, expect, test } from '@jest/globals'
import type { PostgradError } from '@postgrad/base'
import { call, expose, type RRef, remote, type UserRRef, type WorkerInfo } from '@postgrad/rpc'
import { currentRuntime } from '@postgrad/rpc/internal'
import { MessageType } from '@postgrad/wire/internal'
import { expectClean } from '../check/expect-clean.js'
import { type SimCluster, simulate } from '../simulate/simulate.js'

let counters = new Map<number, number>()

/** State of a worker's life: counted by its id. */
const countUp = (): number => {
  const { id } = currentRuntime().info
  const count = (counters.get(id) ?? 0) + 1
  counters.set(id, count)
  return count
}
const echo = (value: unknown) => value
const whoAmI = (): WorkerInfo => currentRuntime().info
const fetchIt = (ref: RRef) => ref.toHere()
const never = () => new Promise<never>(() => {})
const askBack = (to: string) => call(to, whoAmI)
expose({ countUp, echo, whoAmI, fetchIt, never, askBack })

async function failure(promise: PromiseLike<unknown>): Promise<PostgradError> {
  try {
    await promise
  } catch (error) {
    return error as PostgradError
  }
  throw new Error('expected a rejection, got a value')
}

const sleep = (ms: number) => new Promise<void>((resolve) => currentRuntime().clock.setTimer(ms, resolve))
const seeds = Array.from({ length: 30 }, (_, seed) => seed)
const workers = ['worker0', 'worker1', 'worker2']

/** Calls the name until somebody new answers to it. */
async function heardOf(name: string, formerId: number): Promise<void> {
  for (;;) {
    const info = await call(name, whoAmI).catch(() => null)
    if (info !== null && info.id !== formerId) return
    await sleep(1)
  }
}

describe('restart', () => {
  test.each([false, true])(
    'RPC-41 the name lives on under an id that nobody had, without state, linked to all (sessions: %p)',
    async (faults) => {
      for (const seed of seeds) {
        counters = new Map()
        const simulation = await simulate({ workers, seed, ...(faults ? { faults: [] } : {}) }, async (sim) => {
          const all = sim.workers
          await sim.on('worker0').run(async () => {
            expect(await call('worker1', countUp)).toBe(1)
            expect(await call('worker1', countUp)).toBe(2)
          })
          sim.crash('worker1')
          const again = sim.restart('worker1')
          expect(again.info).toEqual({ name: 'worker1', id: 3 })
          expect(sim.on('worker1').runtime).toBe(again.runtime)
          await sim.on('worker0').run(async () => {
            await heardOf('worker1', 1)
            expect(await call('worker1', countUp)).toBe(1)
            expect(await call('worker1', askBack, ['worker2'])).toEqual(all[2])
          })
          await sim.on('worker2').run(() => heardOf('worker1', 1))
          expect(await again.run(() => call('worker0', askBack, ['worker1']))).toEqual(again.info)
          expect(sim.workers.map(({ id }) => id)).toEqual([0, 3, 2])
          expect(currentNames(sim)).toEqual([workers, workers, workers])
        })
        expectClean(simulation)
      }
    },
  )

  test('RPC-42 a call, a reference and its child that are about the former life fail with WORKER_DIED and say who has the name', async () => {
    for (const seed of seeds) {
      const simulation = await simulate({ workers, seed }, (sim) =>
        sim.on('worker0').run(async () => {
          const old = currentRuntime().resolve('worker1')
          const held = remote('worker1', echo, [1])
          await held.toHere()
          const waits = failure(call('worker1', never))
          const { info } = sim.restart('worker1')
          expect(await waits).toMatchObject({ code: 'WORKER_DIED', values: { workerId: 1 } })
          await heardOf('worker1', old.id)
          const says = { code: 'WORKER_DIED', values: { worker: 'worker1', workerId: 1, restartedAs: info.id } }
          expect(await failure(call(old, echo, [1]))).toMatchObject(says)
          expect(await failure(call(old.id, echo, [1]))).toMatchObject(says)
          expect(await failure(held.toHere())).toMatchObject(says)
          expect(await failure(call('worker2', fetchIt, [held]))).toMatchObject(says)
          // The new worker itself is asked about what its former life owned.
          expect(await failure(call('worker1', fetchIt, [held]))).toMatchObject(says)
          held.dispose()
        }),
      )
      expectClean(simulation)
    }
  })

  test('RPC-41 a worker that begins is told of all who died before: what is about them is a death to it, and no riddle', async () => {
    for (const seed of seeds) {
      await simulate({ workers, seed }, async (sim) => {
        const [, one, two] = sim.workers
        sim.crash('worker2')
        const again = sim.restart('worker1')
        await again.run(async () => {
          const ofSelf = await failure(call(one as WorkerInfo, echo, [1]))
          expect(ofSelf).toMatchObject({ code: 'WORKER_DIED', values: { workerId: 1, restartedAs: again.info.id } })
          const ofOther = await failure(call(two as WorkerInfo, echo, [1]))
          expect(ofOther).toMatchObject({ code: 'WORKER_DIED', values: { workerId: 2 } })
          expect(ofOther.values).not.toHaveProperty('restartedAs')
          expect(await failure(call('worker2', echo, [1]))).toMatchObject({ code: 'WORKER_DIED', values: { workerId: 2 } })
          expect(await failure(call(77, echo, [1]))).toMatchObject({ code: 'UNKNOWN_WORKER' })
        })
      })
    }
  })

  test('RPC-41 a name can be restarted many times, also before everybody has heard of the life before', async () => {
    for (const seed of seeds) {
      const simulation = await simulate({ workers, seed, faults: [] }, async (sim) => {
        for (let life = 0; life < 4; life++) sim.restart('worker1')
        const { info } = sim.on('worker1')
        expect(info.id).toBe(6)
        for (const name of ['worker0', 'worker2']) {
          await sim.on(name).run(async () => {
            while ((await call('worker1', whoAmI).catch(() => null))?.id !== info.id) await sleep(1)
            expect(currentRuntime().deathOf(5)).toMatchObject({ values: { restartedAs: 6 } })
          })
        }
        // Two at once: each knows the other's new life.
        sim.restart('worker0')
        sim.restart('worker2')
        await sim.on('worker0').run(() => heardOf('worker2', 2))
        await sim.on('worker0').run(async () => expect((await call('worker2', whoAmI)).id).toBe(8))
        await sim.on('worker2').run(async () => expect((await call('worker0', whoAmI)).id).toBe(7))
      })
      expectClean(simulation)
    }
  })

  test('TK-21 what a test runs on a worker that crashes ends in WORKER_DIED, as under launch, and nothing is begun on the dead', async () => {
    await simulate({ workers: 2, faults: [] }, async (sim) => {
      const former = sim.on('worker1')
      const running = former.run(() => call('worker0', never, [], { timeoutMs: 0 }))
      const done = former.run(() => 'ended before')
      // Nobody waits for this one: no rejection is left unhandled.
      void former.run(never)
      await sim.on('worker0').run(() => sleep(5))
      sim.restart('worker1')
      expect(await failure(running)).toMatchObject({ code: 'WORKER_DIED', values: { worker: 'worker1', workerId: 1 } })
      expect(await done).toBe('ended before')
      let begun = false
      expect(await failure(former.run(() => (begun = true)))).toMatchObject({ code: 'WORKER_DIED', values: { workerId: 1 } })
      expect(begun).toBe(false)
      expect(await sim.on('worker1').run(() => call('worker0', whoAmI))).toMatchObject({ id: 0 })
    })
  })

  test('RPC-41 a reply to the former life reaches nobody, though a call of the new one has the same number', async () => {
    const slow = async () => await sleep(50)
    expose({ slow })
    const simulation = await simulate({ workers: 2, faults: [] }, async (sim) => {
      sim.on('worker1').run(() => void call('worker0', slow).catch(() => {}))
      await sim.on('worker0').run(() => sleep(10))
      const again = sim.restart('worker1')
      const error = await again.run(() => failure(call('worker0', never, [], { timeoutMs: 500 })))
      expect(error).toMatchObject({ code: 'RPC_TIMEOUT' })
      expect(again.debugInfo().deadLetters).toBe(0)
    })
    expectClean(simulation, { allow: ['servingCalls'] })
  })

  test('RPC-41 what is said to the new life about the former is a dead letter: a deletion, an acceptance, a reply', async () => {
    const simulation = await simulate({ workers: 2 }, async (sim) => {
      const held = sim.on('worker0').runtime.run(() => remote('worker1', echo, [1])) as UserRRef
      await held.toHere()
      const again = sim.restart('worker1')
      await sim.on('worker0').run(() => heardOf('worker1', 1))
      const { runtime } = sim.on('worker0')
      // As a worker would that takes the one life for the other.
      runtime.post(again.info.id, MessageType.RREF_USER_DELETE, [held.rrefId, held.forkId])
      runtime.post(again.info.id, MessageType.RREF_CHILD_ACCEPT, [held.forkId])
      runtime.post(again.info.id, MessageType.RREF_ACK, [held.forkId])
      runtime.post(again.info.id, MessageType.RESULT, [1])
      held.dispose()
    })
    expect(simulation.debugInfo.worker1?.deadLetters).toBe(4)
    expectClean(simulation, { allow: ['deadLetters'] })
  })

  test('RPC-41 a seed gives the same run, with crashes and restarts in it', async () => {
    for (const seed of seeds.slice(0, 10)) {
      const run = () =>
        simulate({ workers, seed, faults: [{ match: { kind: 'CALL', every: 5 }, do: 'restart', delayMs: 3, times: 3 }] }, (sim) =>
          sim.on('worker0').run(async () => {
            const got: unknown[] = []
            for (let i = 0; i < 30; i++) got.push(await call(`worker${1 + (i % 2)}`, countUp).catch(({ code }: PostgradError) => code))
            await sleep(10)
            return got
          }),
        )
      counters = new Map()
      const first = await run()
      counters = new Map()
      const second = await run()
      expect(second.result).toEqual(first.result)
      expect(second.trace.hash).toBe(first.trace.hash)
      expect(first.faults.restart).toBeGreaterThan(0)
      expect(first.result).toContain('WORKER_DIED')
    }
  })
})

function currentNames(sim: SimCluster): string[][] {
  return sim.workers.map(({ name }) =>
    sim
      .on(name)
      .runtime.workers()
      .map((info) => info.name)
      .sort(),
  )
}
