/** SMART passes that fail, and workers that die meanwhile. */
import { describe, expect, test } from '@jest/globals'
import { add, defineFunction, mul } from '@postgrad/autograd'
import type { PostgradError } from '@postgrad/base'
import { call, currentWorker, expose } from '@postgrad/rpc'
import type { Tensor } from '@postgrad/tensor'
import { MessageType } from '@postgrad/wire/internal'
import { distAutograd } from '../api.js'
import { wholeLeaf } from './programs.suite.js'
import { Cluster, codesOf, overSeeds, runWithCrash, withSeed } from './sim-cluster.suite.js'

/** `npm run soak -- --seeds 1000 smart-failure` takes more. */
const SEEDS = Number(process.env.POSTGRAD_SOAK_SEEDS ?? 8)

const state = { failOn: -1 }
const failsBackward = defineFunction({
  name: 'FailsBackward',
  forward: (_ctx: unknown, x: Tensor) => mul(x, 1),
  backward: (_ctx: unknown, grad: Tensor) => {
    if (currentWorker().info.id === state.failOn) throw new TypeError('on purpose')
    return grad
  },
}) as unknown as (x: Tensor) => Tensor

const weights = new Map<number, Tensor>()
function weightOf(id: number): Tensor {
  const weight = weights.get(id) ?? wholeLeaf([[id, 1]])
  weights.set(id, weight)
  return weight
}
const weigh = (x: Tensor): Tensor => mul(x, weightOf(currentWorker().info.id))
/** In backward the gradient for the other worker leaves first, then this worker may fail. */
const spread = async (x: Tensor, to: number): Promise<Tensor> => add(await call(to, weigh, [x]), failsBackward(mul(x, 1)))
expose({ weigh, spread })

describe('DA-39 aborts', () => {
  test('each worker that takes part hears of it once, from the root, and nobody else does', () =>
    overSeeds(SEEDS, 5, async (cluster) => {
      await distAutograd.context(async (ctx) => {
        const x = wholeLeaf([[1, 2]])
        // Worker 4 knows the context and takes no part in the pass.
        const [part] = await Promise.all([call(1, spread, [x, 2]), call(4, weigh, [x])])
        const loss = add(part, await call(3, weigh, [x])).sum()
        const heard: string[] = []
        for (const worker of cluster.workers) {
          const post = worker.post.bind(worker)
          worker.post = (to, type, body, envelope) => {
            if (type === MessageType.PASS_ABORT) heard.push(`${worker.info.id}→${to}`)
            post(to, type, body, envelope)
          }
        }
        state.failOn = 1
        await expect(ctx.backward([loss], { retainGraph: true })).rejects.toThrow('on purpose')
        await until(cluster, 1000)
        expect(heard.sort()).toEqual(['0→1', '0→2', '0→3'])
      })
    }))

  test('a pass that overtakes the word of an abort counts nothing of the aborted one, however often', () =>
    overSeeds(3 * SEEDS, 3, async (cluster) => {
      weights.clear()
      await distAutograd.context(async (ctx) => {
        const x = wholeLeaf([[1, 2]])
        const loss = (await call(1, spread, [x, 2])).sum()
        const gradientThere = () => cluster.contextOn(2, ctx.id).gradients().get(weightOf(2))!.toArray()
        for (let round = 1; round <= 3; round++) {
          state.failOn = 1
          for (let n = 0; n < 3; n++) await expect(ctx.backward([loss], { retainGraph: true })).rejects.toThrow('on purpose')
          state.failOn = -1
          await ctx.backward([loss], { retainGraph: true })
          expect(gradientThere()).toEqual([[round, 2 * round]])
        }
        await until(cluster, 1000)
        expect(ctx.passes.abortsUnderWay.size).toBe(0)
        expect(ctx.gradients().get(x)!.toArray()).toEqual([[9, 6]])
      })
    }))

  test('the plan of a pass does not grow with the aborts before it, however the passes ended', () =>
    overSeeds(2, 3, async (cluster) => {
      weights.clear()
      const plans: number[] = []
      await distAutograd.context(async (ctx) => {
        const x = wholeLeaf([[1, 2]])
        const loss = (await call(1, spread, [x, 2])).sum()
        const worker = cluster.workers[0]!
        const post = worker.post.bind(worker)
        worker.post = (to, type, body, envelope) => {
          if (type === MessageType.PROPAGATE_GRADIENTS) plans.push(envelope!.lineage!.length)
          post(to, type, body, envelope)
        }
        for (let n = 0; n < 200; n++) {
          const cancel = new AbortController()
          state.failOn = n % 2 === 0 ? 1 : -1
          const pass = ctx.backward([loss], { retainGraph: true, signal: cancel.signal })
          if (n % 2 === 1) cancel.abort(new Error('changed my mind'))
          await expect(pass).rejects.toThrow()
          // The abort and its answer.
          if (n % 10 === 9) await until(cluster, 10 * n + 100)
        }
        state.failOn = -1
        await ctx.backward([loss])
        expect(ctx.gradients().get(x)!.toArray()).toEqual([[3, 2]])
      })
      // Those of the last ten at most.
      expect(Math.max(...plans)).toBeLessThanOrEqual(plans[0]! + 10)
      expect(plans[plans.length - 1]).toBe(plans[0])
    }))

  test('passes at once, of which some fail: the others give their gradients, and only theirs', () =>
    overSeeds(SEEDS, 4, async () => {
      weights.clear()
      await distAutograd.context(async (ctx) => {
        const x = wholeLeaf([[1, 2]])
        const [bad, good] = await Promise.all([call(1, spread, [x, 2]), call(3, weigh, [x])])
        state.failOn = 1
        const passes = [bad, good, bad, good].map((root) => ctx.backward([root.sum()], { retainGraph: true }))
        expect((await Promise.allSettled(passes)).map(({ status }) => status)).toEqual(['rejected', 'fulfilled', 'rejected', 'fulfilled'])
        state.failOn = -1
        await ctx.backward([add(bad, good).sum()])
        // 3·[3, 1], and [2, 1] + [1, 1] of the last.
        expect(ctx.gradients().get(x)!.toArray()).toEqual([[12, 5]])
      })
    }))
})

describe('DA-40 workers that die', () => {
  test('a worker without a part may be dead before the pass', () =>
    overSeedsWithDead(4, 3, async (crash) => {
      weights.clear()
      await distAutograd.context(async (ctx) => {
        const x = wholeLeaf([[1, 2]])
        const [y, unused] = await Promise.all([call(1, spread, [x, 2]), call(3, weigh, [x])])
        await crash()
        await ctx.backward([y.sum()], { retainGraph: true })
        expect(ctx.gradients().get(x)!.toArray()).toEqual([[3, 2]])
        const error = (await ctx.backward([add(y, unused).sum()]).catch((e: unknown) => e)) as PostgradError
        expect([error.code, error.message.includes('worker3')]).toEqual(['WORKER_DIED', true])
        expect(ctx.gradients().get(x)!.toArray()).toEqual([[3, 2]])
      })
    }))

  test.each([
    [2, true],
    [3, false],
  ])('worker %i dies at step k, for all k: it takes part: %s', async (victim, takesPart) => {
    const outcomes = new Set<string>()
    for (let seed = 1; seed <= 3; seed++) {
      for (let step = 0, over = false; !over; step++) {
        await withSeed(`${seed}, step ${step}`, async () => {
          const cluster = new Cluster(seed, 4)
          let begun = false
          const main = async () => {
            const x = wholeLeaf([[1, 2]])
            return await distAutograd.context(async (ctx) => {
              const [y] = await Promise.all([call(1, spread, [x, 2]), call(3, weigh, [x])])
              begun = true
              await ctx.backward([y.sum()])
              return ctx.gradients().get(x)!.toArray()
            })
          }
          weights.clear()
          const result = await runWithCrash(cluster, cluster.workers[0]!.run(main), `worker${victim}`, step)
          if (result.outcome === 'pending') throw new Error('the promise of the root does not settle')
          if (result.outcome === 'error' && !codesOf(result.error).includes('WORKER_DIED')) throw result.error
          if (begun) outcomes.add(result.outcome)
          if (begun && !takesPart) expect(result.outcome).toBe('value')
          const left = await cluster.leftovers({ except: [victim] })
          if (left.length > 0) throw new Error(`left over: ${left.join('; ')}`)
          over = !result.crashed
        })
      }
    }
    expect([...outcomes].sort()).toEqual(takesPart ? ['error', 'value'] : ['value'])
  })
})

/** For worker `to`, which may fail in backward. */
const passTo = (x: Tensor, to: number): Promise<Tensor> => call(to, failsBackward, [x])
expose({ failsBackward, passTo })

test.each([
  ['its end', -1],
  ['its failure', 1],
])('DA-82 a worker that does not know the root of a pass yet tells it of %s as soon as it knows it', async (_what, failOn) => {
  for (let seed = 1; seed <= 5; seed++) {
    await withSeed(seed, async () => {
      const cluster = new Cluster(seed, 3, { apart: [[0, 1]] })
      await cluster.run(0, () =>
        distAutograd.context(async (ctx) => {
          const x = wholeLeaf([[1, 2]])
          const loss = (await call(2, passTo, [x, 1])).sum()
          state.failOn = failOn
          let end = 'none'
          const passed = ctx.backward([loss], { timeoutMs: 5000 }).then(
            () => {
              end = 'ended'
            },
            (error: Error) => {
              end = error.message
            },
          )
          await until(cluster, 1000)
          expect(end).toBe('none')
          cluster.link(cluster.workers[0]!, cluster.workers[1]!)
          await passed
          expect(end).toBe(failOn === 1 ? 'on purpose' : 'ended')
          expect(ctx.gradients().get(x)?.toArray()).toEqual(failOn === 1 ? undefined : [[1, 1]])
        }),
      )
      expect(await cluster.leftovers()).toEqual([])
    })
  }
})

test('DA-80 the word that a pass has ended is a dead letter where it has not come to its end, and changes nothing', () =>
  overSeeds(5, 3, async (cluster) => {
    await distAutograd.context(async (ctx) => {
      weights.clear()
      const x = wholeLeaf([[1, 2]])
      const loss = add(await call(1, weigh, [x]), await call(2, weigh, [await call(1, weigh, [x])])).sum()
      cluster.gate(2, 0).shut()
      const passed = ctx.backward([loss])
      await until(cluster, 10)
      const [pass] = ctx.passes.values()
      cluster.workers[0]!.post(1, MessageType.PASS_COMMIT, [], { context: ctx.contextId, pass: pass!.id })
      await until(cluster, 10)
      expect(cluster.workers[1]!.letters.last().map(({ what }) => what)).toEqual(['PASS_COMMIT: the pass has not come to its end here'])
      cluster.gate(2, 0).unshut()
      await passed
      // Both ways by worker 1, whose weight is [1, 1]; that of worker 2 is [2, 1].
      expect(ctx.gradients().get(x)!.toArray()).toEqual([[3, 2]])
    })
  }))

/** In virtual time: whatever was under way has arrived. */
function until({ workers }: Cluster, ms: number): Promise<void> {
  return new Promise((resolve) => workers[0]!.clock.setTimer(ms, resolve))
}

/** Runs `main` as worker 0; `crash` ends worker `victim` and waits until all know of it. */
async function overSeedsWithDead(size: number, victim: number, main: (crash: () => Promise<void>) => Promise<void>): Promise<void> {
  for (let seed = 1; seed <= SEEDS; seed++) {
    await withSeed(seed, async () => {
      const cluster = new Cluster(seed, size)
      const crash = async () => {
        cluster.world.crash(`worker${victim}`)
        await until(cluster, 1000)
      }
      await cluster.run(0, () => main(crash))
      const left = await cluster.leftovers({ except: [victim] })
      if (left.length > 0) throw new Error(`left over: ${left.join('; ')}`)
    })
  }
}
