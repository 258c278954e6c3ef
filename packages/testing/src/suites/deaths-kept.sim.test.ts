/** Workers that die and are started again for as long as a cluster lives: what survivors keep of the dead. */
import { expect, test } from '@jest/globals'
import { call, currentSignal, expose, remote, stream } from '@postgrad/rpc'
import { simulate } from '../simulate/simulate.js'

const addOne = (x: number): number => x + 1
function* count() {
  for (let i = 0; i < 100; i++) yield i
}
const never = (): Promise<void> => new Promise(() => {})
/** Calls, streams and references of every kind, some of which the death of `to` cuts short. */
const mixed = async (to: string): Promise<void> => {
  expect(await call(to, addOne, [1])).toBe(2)
  using ref = remote(to, addOne, [1])
  expect(await ref.toHere()).toBe(2)
  for await (const item of stream(to, count)) if (item === 3) break
  remote(to, addOne, [2])
  call(to, never).catch(() => {})
  stream(to, count)
    .next()
    .catch(() => {})
}
const untilAborted = (): Promise<void> => {
  const signal = currentSignal()
  return new Promise((resolve) => signal.addEventListener('abort', () => resolve()))
}
const calledByTheDead = async (to: string): Promise<void> => {
  call(to, untilAborted).catch(() => {})
  await call(to, addOne, [1])
}
expose({ addOne, count, never, mixed, untilAborted, calledByTheDead })

const LIVES = 8

/** Whose deadlines a worker looks through: those of its peers, and its own waits. */
const watched = (runtime: object): number =>
  (runtime as { requests: { deadlines: { watched: readonly unknown[] } } }).requests.deadlines.watched.length

test('RPC-57 nothing but the death stays of a dead peer', async () => {
  await simulate({ workers: 3, seed: 1, rpcTimeoutMs: 0 }, async (sim) => {
    const others = ['worker0', 'worker2'].map((name) => sim.on(name).runtime)
    for (let life = 0; life < LIVES; life++) {
      for (const { info } of others) {
        await sim.on(info).run(mixed, 'worker1')
        // A call that is served for the dead keeps them until it ends; without one nothing does.
        if (life % 2 === 1) await sim.on('worker1').run(calledByTheDead, info.name)
      }
      const { id } = sim.on('worker1').info
      sim.crash('worker1')
      sim.restart('worker1')
      await sim.ready('worker1')
      for (const runtime of others) {
        expect([...runtime.peers].map(({ info }) => info.name).sort()).toEqual(['worker0', 'worker1', 'worker2'])
        expect(runtime.deathOf(id)).toMatchObject({ values: { worker: 'worker1', restartedAs: sim.on('worker1').info.id } })
        expect(watched(runtime)).toBe(1 + 3)
        await sim.on(runtime.info).run(async () => {
          for (let i = 0; i < 100; i++) await call(id, addOne, [1]).catch(() => {})
          expect(watched(runtime)).toBe(1 + 3)
          await expect(call(id, addOne, [1])).rejects.toMatchObject({ code: 'WORKER_DIED', op: 'addOne' })
          await expect(call({ name: 'other', id }, addOne, [1])).rejects.toMatchObject({ code: 'UNKNOWN_WORKER' })
        })
      }
    }
  })
})
