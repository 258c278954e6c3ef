/** Backward passes at workers with full mailboxes: passes need no room. */
import { describe, expect, test } from '@jest/globals'
import { distAutograd } from '@postgrad/dist-autograd'
import { call, currentWorker, expose, getDebugInfo, ready, remote, stream } from '@postgrad/rpc'
import { ones, type Tensor } from '@postgrad/tensor'
import { expectClean } from '../check/expect-clean.js'
import { expectSound } from '../check/expect-sound.js'
import { explore } from '../explore/explore.js'
import { type SimCluster, simulate } from '../simulate/simulate.js'

const SEEDS = 20
const WINDOW = 2
const STEPS = 40

const scale = (t: Tensor, by: number): Tensor => t.mul(by)
/** Through another worker, so that the gradient comes by two. */
const scaleVia = (t: Tensor, by: number, via: string): Promise<Tensor> => call(via, scale, [t, by])
const wait = (ms: number) => {
  const { clock } = currentWorker()
  return new Promise<void>((resolve) => {
    clock.setTimer(ms, resolve)
  })
}
expose({ scale, scaleVia, wait })

/** As many calls as leave, and twice as many that do not. */
async function flood(to: string): Promise<{ served: number; refused: number }> {
  const ended = await Promise.allSettled(Array.from({ length: 3 * WINDOW }, () => call(to, wait, [5])))
  const refused = ended.filter((end) => end.status === 'rejected' && (end.reason as { code: string }).code === 'MAILBOX_FULL').length
  return { served: ended.filter(({ status }) => status === 'fulfilled').length, refused }
}

test('MB-17, MB-18: a pass of many more gradients than calls may wait ends, beside floods from everywhere', async () => {
  let refusedInAll = 0
  for (let seed = 1; seed <= SEEDS; seed++) {
    const run = await simulate({ workers: 3, seed, mailbox: { callsMax: WINDOW } }, (sim) =>
      sim.on('worker0').run(() =>
        distAutograd.context(async (ctx) => {
          const x = ones([2], { requiresGrad: true })
          const parts: Tensor[] = []
          for (let i = 0; i < STEPS; i++) parts.push(await call('worker1', i % 2 === 0 ? scale : scaleVia, [x, i, 'worker2']))
          const loss = parts.reduce((sum, part) => sum.add(part)).sum()
          const floods = [flood('worker1'), flood('worker2'), flood('worker0')]
          for (const from of ['worker1', 'worker2'] as const)
            floods.push(sim.on(from).run(flood, from === 'worker1' ? 'worker2' : 'worker1'))
          await ctx.backward([loss])
          for (const { served, refused } of await Promise.all(floods)) {
            expect(served + refused).toBe(3 * WINDOW)
            refusedInAll += refused
          }
          return [...ctx.gradients().get(x)!.dataSync()]
        }),
      ),
    )
    const sum = (STEPS * (STEPS - 1)) / 2
    expect(run.result).toEqual([sum, sum])
    expectClean(run)
  }
  expect(refusedInAll).toBeGreaterThan(SEEDS)
})

test('CRE-3: a refused call leaves no send behind: the pass of its context is complete without it', async () => {
  for (let seed = 1; seed <= SEEDS; seed++) {
    const run = await simulate({ workers: 2, seed, mailbox: { callsMax: WINDOW } }, (sim) =>
      sim.on('worker0').run(() =>
        distAutograd.context(async (ctx) => {
          const x = ones([2], { requiresGrad: true })
          const y = await call('worker1', scale, [x, 3])
          await ready('worker1')
          const fill = Array.from({ length: WINDOW }, () => call('worker1', wait, [1]).catch((error: { code: string }) => error.code))
          const refused = await call('worker1', scale, [x, 5]).catch((error: { code: string }) => error.code)
          expect(refused).toBe('MAILBOX_FULL')
          await Promise.all(fill)
          await ctx.backward([y.sum()])
          return [...ctx.gradients().get(x)!.dataSync()]
        }),
      ),
    )
    expect(run.result).toEqual([3, 3])
    expectClean(run)
  }
})

test('CRE-4, CRE-7: whatever becomes of the words of credit on their way, everybody who waits for room gets it', async () => {
  for (let seed = 1; seed <= SEEDS; seed++) {
    const run = await simulate(
      {
        workers: 2,
        seed,
        mailbox: { callsMax: 4 },
        faults: (['drop', 'duplicate', 'delay'] as const).map((does) => ({
          match: { kind: 'PROGRESS', probability: 0.3 },
          do: does,
          ...(does === 'delay' ? { delayMs: 7 } : {}),
        })),
      },
      (sim) =>
        sim.on('worker0').run(async () => {
          const calls: PromiseLike<void>[] = []
          for (let i = 0; i < 60; i++) {
            await ready('worker1')
            calls.push(call('worker1', wait, [1]))
          }
          await Promise.all(calls)
          return getDebugInfo()['agent.clientActiveCalls']
        }),
    )
    expect(run.result).toBe(0)
    expectClean(run)
  }
})

/** Calls as they find room, fetches, and a stream, all between the same two workers at once. */
async function everythingAtOnce(sim: SimCluster, calls: number, items: number): Promise<readonly number[]> {
  return sim.on('worker0').run(async () => {
    using made = remote('worker1', count, [0])
    const called = (async () => {
      let sum = 0
      for (let i = 1; i <= calls; i++) {
        await ready('worker1')
        sum += await call('worker1', count, [i])
      }
      return sum
    })()
    const streamed = (async () => {
      let sum = 0
      await ready('worker1')
      for await (const item of stream('worker1', upTo, [items], { window: 2 })) sum += item
      return sum
    })()
    return Promise.all([called, streamed, made.toHere()])
  })
}
const count = (n: number): number => n
function* upTo(n: number): Generator<number> {
  for (let i = 1; i <= n; i++) yield i
}
expose({ count, upTo })

describe('CRE-14 one word of progress for calls, fetches and streams', () => {
  test('under every order of delivery all of them come to their end', async () => {
    const found = await explore({ workers: 2, mailbox: { callsMax: 2 }, ordersMax: 20_000 }, async (sim) => everythingAtOnce(sim, 2, 3))
    process.stdout.write(`      calls, a fetch and a stream at once: ${found.text}\n`)
    expect(found).toMatchObject({ outcomes: 1, exhausted: true })
  })

  test('under lost, repeated and late words, and all places are given back', async () => {
    for (let seed = 1; seed <= SEEDS; seed++) {
      const faults = (['drop', 'duplicate', 'delay'] as const).map((does) => ({
        match: { kind: 'PROGRESS' as const, probability: 0.3 },
        do: does,
        ...(does === 'delay' ? { delayMs: 7 } : {}),
      }))
      const run = await simulate({ workers: 2, seed, mailbox: { callsMax: 2 }, faults }, (sim) => everythingAtOnce(sim, 20, 30))
      expect({ seed, result: run.result }).toEqual({ seed, result: [210, 465, 0] })
      expectSound(run)
    }
  })
})
