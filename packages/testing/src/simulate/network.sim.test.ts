/** Partitions and slow lines that a test begins and ends itself. */
import { describe, expect, test } from '@jest/globals'
import { call, currentWorker, expose } from '@postgrad/rpc'
import { ones, type Tensor } from '@postgrad/tensor'
import { expectClean } from '../check/expect-clean.js'
import { type SimCluster, simulate } from './simulate.js'

const echo = (value: unknown) => value
const askThere = (to: string, value: string): Promise<unknown> => call(to, echo, [value])
const sizeOf = (tensor: Tensor) => tensor.numel
expose({ 'network.echo': echo, 'network.askThere': askThere, 'network.sizeOf': sizeOf })

const workers = ['worker0', 'worker1', 'worker2']
const after = (sim: SimCluster, ms: number) => new Promise<void>((resolve) => sim.world.clock.setTimer(ms, resolve))
/** How long it took, on the worker's clock. */
const timed = async (make: () => PromiseLike<unknown>): Promise<[unknown, number]> => {
  const { clock } = currentWorker()
  const startMs = clock.now()
  const value = await Promise.resolve(make()).catch(({ code }: { code: string }) => code)
  return [value, clock.now() - startMs]
}

describe('partitions', () => {
  test('TK-22 nothing passes until it is healed, either way; what is within a side goes on; then all of it arrives, once', async () => {
    for (let seed = 0; seed < 20; seed++) {
      const simulation = await simulate({ workers, seed, faults: [] }, async (sim) => {
        const cut = sim.partition('worker0')
        const there = sim.on('worker0').run(timed, () => call('worker1', echo, ['there']))
        const back = sim.on('worker2').run(timed, () => call('worker0', echo, ['back']))
        expect(await sim.on('worker1').run(timed, () => call('worker2', echo, ['within']))).toEqual(['within', 0])
        await after(sim, 1000)
        cut.heal()
        for (const [value, ms] of [await there, await back]) {
          expect(['there', 'back']).toContain(value)
          expect(ms).toBeGreaterThanOrEqual(1000)
          expect(ms).toBeLessThan(4000)
        }
        cut.heal()
      })
      expectClean(simulation)
      expect(simulation.faults.drop).toBeGreaterThan(4)
    }
  })

  test('TK-22 between two of three the way over the third is open; heal() ends them all; a deadline within is met', async () => {
    const simulation = await simulate({ workers, faults: [] }, async (sim) => {
      sim.partition('worker0', 'worker1')
      sim.partition(['worker1'], ['worker2'])
      await sim.on('worker0').run(async () => {
        expect(await call('worker2', echo, ['open'])).toBe('open')
        expect(await timed(() => call('worker1', echo, ['shut'], { timeoutMs: 300 }))).toEqual(['RPC_TIMEOUT', 300])
      })
      sim.heal()
      expect(await sim.on('worker0').run(() => call('worker2', askThere, ['worker1', 'over']))).toBe('over')
    })
    expectClean(simulation, { allow: ['deadLetters'] })
  })

  test('TK-22 one that lasts is a death, on both sides', async () => {
    await simulate({ workers: 2, faults: [] }, async (sim) => {
      sim.partition('worker0', 'worker1')
      const [[one], [other]] = await Promise.all([
        sim.on('worker0').run(timed, () => call('worker1', echo, [1], { timeoutMs: 0 })),
        sim.on('worker1').run(timed, () => call('worker0', echo, [1], { timeoutMs: 0 })),
      ])
      expect([one, other]).toEqual(['WORKER_DIED', 'WORKER_DIED'])
    })
  })
})

describe('slow lines', () => {
  test('TK-23 a message takes the latency and its bytes’ time, one behind the other, in order', async () => {
    for (let seed = 0; seed < 10; seed++) {
      const simulation = await simulate({ workers, seed, faults: [] }, async (sim) => {
        const line = sim.slow('worker0', 'worker1', { latencyMs: 20, bytesPerMs: 1000 })
        await sim.on('worker0').run(async () => {
          const [value, ms] = await timed(() => call('worker1', echo, ['x']))
          expect(value).toBe('x')
          expect(ms).toBeGreaterThanOrEqual(40)
          expect(ms).toBeLessThan(45)
          // Each of 4,000 bytes and a few: the fifth has waited for four others.
          const list = Array.from({ length: 5 }, () => timed(() => call('worker1', sizeOf, [ones([1000])])))
          const all = await Promise.all(list)
          expect(all.map(([size]) => size)).toEqual([1000, 1000, 1000, 1000, 1000])
          for (const [index, [, took]] of all.entries()) {
            expect(took).toBeGreaterThanOrEqual(40 + 4 * (index + 1))
            expect(took).toBeLessThan(42 + 5 * (index + 1))
          }
          expect(await timed(() => call('worker2', echo, ['fast']))).toEqual(['fast', 0])
        })
        line.heal()
        await sim.on('worker0').run(async () => expect(await timed(() => call('worker1', echo, ['again']))).toEqual(['again', 0]))
      })
      expectClean(simulation)
    }
  })

  test('TK-22 links without sessions, and strangers, are refused', async () => {
    await simulate({ workers: 2 }, async (sim) => {
      expect(() => sim.partition('worker0')).toThrow(expect.objectContaining({ code: 'INVALID_ARGUMENT' }))
      expect(() => sim.slow('worker0', 'worker1', {})).toThrow(/Pass { faults: \[\] }/)
    })
    await simulate({ workers: 2, faults: [] }, async (sim) => {
      expect(() => sim.partition('worker7')).toThrow(expect.objectContaining({ code: 'INVALID_ARGUMENT' }))
      expect(() => sim.slow('worker0', undefined, { bytesPerMs: 0 })).toThrow(expect.objectContaining({ code: 'INVALID_ARGUMENT' }))
    })
  })
})
