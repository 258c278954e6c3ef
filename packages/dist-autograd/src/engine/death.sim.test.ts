/** A worker dies at every step of a forward and backward pass: every promise settles, the error names the dead, nothing is left over. */
import { describe, expect, test } from '@jest/globals'
import { mul } from '@postgrad/autograd'
import { call, expose } from '@postgrad/rpc'
import type { Tensor } from '@postgrad/tensor'
import { distAutograd } from '../api.js'
import { pyNested, wholeLeaf } from './programs.suite.js'
import { Cluster, codesOf, runWithCrash, withSeed } from './sim-cluster.suite.js'

const SEEDS = 3
/** More steps than the program takes: the sweep ends with the first crash that comes too late. */
const STEPS_MAX = 400

/** Worker 0 → 1 → 2 and back, at once a call to worker 2, then a pass through them all. */
async function main(): Promise<unknown> {
  const weight = wholeLeaf([[1, 2]])
  return await distAutograd.context(async (ctx) => {
    const [chain, square] = await Promise.all([call(1, pyNested, [weight, weight, 1, 3, 0]), call(2, squared, [weight])])
    await ctx.backward([mul(chain, square).sum()])
    return ctx.gradients().get(weight)!.toArray()
  })
}
/** Worker 2 is known to worker 1 alone, which is the way by which a release would reach it. */
async function chainOnly(): Promise<void> {
  const weight = wholeLeaf([[1, 2]])
  await distAutograd.context(async (ctx) => {
    const chain = await call(1, pyNested, [weight, weight, 1, 3, 0])
    await ctx.backward([chain.sum()])
  })
}
const squared = (x: Tensor): Tensor => mul(x, x)
expose({ squared })

describe('DA-27 a worker dies at step k, for all k', () => {
  test.each([1, 2])('worker %i, and the root lives', async (victim) => {
    let failures = 0
    for (let seed = 1; seed <= SEEDS; seed++) {
      for (let step = 0; step < STEPS_MAX; step++) {
        const over = await withSeed(`${seed}, step ${step}`, async () => {
          const cluster = new Cluster(seed, 3)
          const result = await runWithCrash(cluster, cluster.workers[0]!.run(main), `worker${victim}`, step)
          if (result.outcome === 'pending') throw new Error('the promise of the root does not settle')
          if (result.outcome === 'error') {
            failures++
            if (!codesOf(result.error).includes('WORKER_DIED')) throw result.error
            if (!String((result.error as Error).message).includes(`worker${victim}`))
              throw new Error('the error does not name the dead worker', { cause: result.error })
          }
          const left = await cluster.leftovers({ except: [victim] })
          if (left.length > 0) throw new Error(`left over: ${left.join('; ')}`)
          return !result.crashed
        })
        if (over) break
        if (step === STEPS_MAX - 1) throw new Error('the program takes more steps than the sweep')
      }
    }
    expect(failures).toBeGreaterThan(20)
  })

  test('DA-12, DA-28 the root itself: the others release what it made', async () => {
    for (let seed = 1; seed <= SEEDS; seed++) {
      for (let step = 0; step < STEPS_MAX; step++) {
        const over = await withSeed(`${seed}, step ${step}`, async () => {
          const cluster = new Cluster(seed, 3)
          const result = await runWithCrash(cluster, cluster.workers[0]!.run(main), 'worker0', step)
          const left = await cluster.leftovers({ except: [0] })
          if (left.length > 0) throw new Error(`left over: ${left.join('; ')}`)
          return !result.crashed
        })
        if (over) break
      }
    }
  })

  test('DA-31 the link of a chain: its end is released all the same', async () => {
    let crashes = 0
    for (let seed = 1; seed <= SEEDS; seed++) {
      for (let step = 0; step < STEPS_MAX; step++) {
        const over = await withSeed(`${seed}, step ${step}`, async () => {
          const cluster = new Cluster(seed, 3)
          const result = await runWithCrash(cluster, cluster.workers[0]!.run(chainOnly), 'worker1', step)
          if (result.crashed) crashes++
          const left = await cluster.leftovers({ except: [1] })
          if (left.length > 0) throw new Error(`left over: ${left.join('; ')}`)
          return !result.crashed
        })
        if (over) break
      }
    }
    expect(crashes).toBeGreaterThan(20)
  })

  test('a backward in a context that knows a dead worker says so at once', async () => {
    for (let seed = 1; seed <= 10; seed++) {
      await withSeed(seed, async () => {
        const cluster = new Cluster(seed, 3)
        const error = await cluster.run(0, () =>
          distAutograd.context(async (ctx) => {
            const result = await call(1, pyNested, [wholeLeaf([[1]]), wholeLeaf([[2]]), 1, 3, 0])
            cluster.world.crash('worker1')
            return await ctx.backward([result.sum()]).catch((e: unknown) => e)
          }),
        )
        expect(codesOf(error)).toContain('WORKER_DIED')
        expect((error as Error).message).toContain('worker1')
      })
    }
  })

  test('DA-28 a root that had ended its pass: what the others gathered in it stays', async () => {
    for (let seed = 1; seed <= 10; seed++) {
      await withSeed(seed, async () => {
        const cluster = new Cluster(seed, 3)
        const worker2 = () => [...cluster.parts(2).container.values()][0]!.gradients().size
        const [before, after] = await cluster.run(0, () =>
          distAutograd.context(async () => {
            // Worker 1 is the root, the gradient is on worker 2.
            await call(1, backwardThere, [])
            // A dying worker's messages may be lost; this call comes after the notice of the pass.
            await call(1, visit, [])
            const size = worker2()
            cluster.world.crash('worker1')
            await call(2, squared, [wholeLeaf([[1]])])
            return [size, worker2()]
          }),
        )
        await cluster.world.drain()
        expect([before, after]).toEqual([1, 1])
      })
    }
  })
})

const weightThere = wholeLeaf([[1, 2]])
const weighted = (x: Tensor): Tensor => mul(x, weightThere)
async function backwardThere(): Promise<void> {
  await distAutograd.currentContext()!.backward([(await call(2, weighted, [wholeLeaf([[1, 1]])])).sum()])
}
const visit = (): Promise<Tensor> => call(2, squared, [wholeLeaf([[1]])])
expose({ weighted, backwardThere, visit })
