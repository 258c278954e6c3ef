/** Contexts that any worker releases at any moment, nested ones, and many at once; to whom passes belong. */
import { describe, expect, test } from '@jest/globals'
import { matmul, mul } from '@postgrad/autograd'
import { type PostgradError, workerOf } from '@postgrad/base'
import { call, expose, type RRef, remote } from '@postgrad/rpc'
import { type Tensor, tensor } from '@postgrad/tensor'
import { distAutograd } from '../api.js'
import { failure, sleep } from '../engine/ends.suite.js'
import { pyAdd, pyNested, wholeLeaf } from '../engine/programs.suite.js'
import { Cluster, overSeeds, withSeed } from '../engine/sim-cluster.suite.js'

const SEEDS = 10

describe('DA-56 release', () => {
  test.each([
    ['the maker', 0],
    ['another one', 1],
    ['one that the maker does not know', 2],
  ])('by %s: every worker has released it', (_, by) =>
    overSeeds(SEEDS, 4, async (cluster) => {
      await distAutograd.context(async (ctx) => {
        const result = await call(1, pyNested, [wholeLeaf([[1]]), wholeLeaf([[2]]), 1, 4, 0])
        expect(cluster.parts(0).container.find(ctx.id)!.knownWorkerIds.has(2)).toBe(false)
        cluster.workers[by]!.run(() => distAutograd.releaseContext(ctx.id))
        await sleep(100)
        for (const id of [0, 1, 2]) {
          expect(() => cluster.contextOn(id, ctx.id)).toThrow('has been released')
        }
        expect(await failure(ctx.backward([result.sum()]))).toMatchObject({ code: 'CONTEXT_RELEASED' })
        expect(() => distAutograd.releaseContext(ctx.id)).toThrow('has been released')
        expect(() => distAutograd.releaseContext(77n)).toThrow('could not find')
        ctx.release()
      })
    }),
  )

  test('at any moment of forward and backward, by any worker: all that waits ends, and nothing is left', async () => {
    const ends = new Map<string, number>()
    for (let seed = 1; seed <= 80; seed++) {
      await withSeed(seed, async () => {
        const cluster = new Cluster(seed, 3)
        const by = seed % 3
        await cluster.run(0, async () => {
          let id = 0n
          const program = distAutograd.context(async (ctx) => {
            id = ctx.id
            const weight = wholeLeaf([[1, 2]])
            const [chain, sum] = await Promise.all([call(1, pyNested, [weight, weight, 1, 3, 0]), call(2, pyAdd, [weight, weight])])
            await ctx.backward([mul(chain, sum).sum()])
            return ctx.gradients().get(weight)!.toArray()
          })
          const release = (async () => {
            while (cluster.world.steps < (seed * 7) % 97) await sleep(0)
            cluster.parts(by).container.find(id)?.release()
          })()
          const end = await program.then(
            (grads) => {
              expect(grads).toEqual([[8, 16]])
              return 'gradients'
            },
            (error: PostgradError) => {
              expect(error.code).toBe('CONTEXT_RELEASED')
              return error.code
            },
          )
          ends.set(end, (ends.get(end) ?? 0) + 1)
          await release
        })
        expect(await cluster.leftovers()).toEqual([])
      })
    }
    for (const end of ['gradients', 'CONTEXT_RELEASED']) expect(ends.get(end)).toBeGreaterThan(10)
  })
})

describe('DA-57 several contexts on one worker', () => {
  test('nested and concurrent ones, with passes in flight at once, do not mix', () =>
    overSeeds(SEEDS, 3, async (cluster) => {
      const weight = wholeLeaf([[1, 2]])
      const outer = async (factor: number): Promise<void> =>
        distAutograd.context(async (ctx) => {
          const a = await call(1, mul, [weight, factor])
          const [inner] = await Promise.all([
            // Within: another context, over the same parameter, through the same worker.
            distAutograd.context(async (nested) => {
              const b = await call(1, mul, [weight, 100 * factor])
              await Promise.all([nested.backward([b.sum()], { retainGraph: true }), nested.backward([b.sum()], { retainGraph: true })])
              expect(distAutograd.currentContext()).toBe(nested)
              return nested.gradients().get(weight)!.toArray()
            }),
            ctx.backward([a.sum()], { retainGraph: true }),
          ])
          expect(inner).toEqual([[200 * factor, 200 * factor]])
          expect(distAutograd.currentContext()).toBe(ctx)
          await ctx.backward([a.sum()])
          expect(ctx.gradients().get(weight)!.toArray()).toEqual([[2 * factor, 2 * factor]])
        })
      await Promise.all([1, 2, 3].flatMap((factor) => [0, 2].map((id) => cluster.workers[id]!.run(() => outer(factor)))))
    }))

  test('a context of a served call is its own; the caller’s goes on', () =>
    overSeeds(SEEDS, 3, async () => {
      await distAutograd.context(async (ctx) => {
        const weight = wholeLeaf([[1, 2]])
        const y = await call(1, ownContextThere, [weight, ctx.id])
        await ctx.backward([y.sum()])
        expect(ctx.gradients().get(weight)!.toArray()).toEqual([[3, 3]])
      })
    }))
  async function ownContextThere(x: Tensor, callers: bigint): Promise<Tensor> {
    await distAutograd.context(async (ctx) => {
      expect(workerOf(ctx.id)).toBe(1)
      const own = wholeLeaf([[5, 5]])
      await ctx.backward([(await call(2, matmul, [own, tensor([[1], [2]])])).sum()])
      expect(ctx.gradients().get(own)!.toArray()).toEqual([[1, 2]])
    })
    expect(distAutograd.currentContext()!.id).toBe(callers)
    return mul(x, 3)
  }
  expose({ ownContextThere })
})

describe('DA-2 the ids of passes', () => {
  test('name the root, also where it did not make the context', () =>
    overSeeds(SEEDS, 3, async (cluster) => {
      const roots: [worker: number, root: number][] = []
      for (const id of [0, 1, 2]) {
        const { engine } = cluster.parts(id)
        const onGradients = engine.onGradients.bind(engine)
        engine.onGradients = (message, from, context) => {
          roots.push([id, workerOf(message.pass!)])
          onGradients(message, from, context)
        }
      }
      await distAutograd.context(async (ctx) => {
        const weight = wholeLeaf([[1, 2]])
        const loss = (await call(1, pyAdd, [weight, weight])).sum()
        await ctx.backward([loss])
        expect(roots).toEqual([
          [1, 0],
          [0, 0],
        ])
      })
      await distAutograd.context(async (ctx) => {
        roots.length = 0
        const ref = remote(1, sumThere, [wholeLeaf([[1, 2]])]) as RRef<Tensor>
        await ref.backward(ctx.id)
        ref.dispose()
        expect(roots).toEqual([[0, 1]])
      })
    }))
  const sumThere = (x: Tensor): Tensor => x.sum()
  expose({ sumThere })
})
