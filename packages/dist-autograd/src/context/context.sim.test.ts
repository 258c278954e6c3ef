/** Ids, current context, release on all workers (cases 1, 2, 15 to 18 and 20 of the reference). */
import { describe, expect, test } from '@jest/globals'
import { add, matmul } from '@postgrad/autograd'
import { isPostgradError } from '@postgrad/base'
import { LOCAL_ID_MAX } from '@postgrad/base/internal'
import { call, type Future } from '@postgrad/rpc'
import { ones, rand } from '@postgrad/tensor'
import { distAutograd } from '../api.js'
import { nothing, pyAdd, pyNested } from '../engine/programs.suite.js'
import { Cluster, overSeeds, withSeed } from '../engine/sim-cluster.suite.js'
import { currentContext } from './context-scope.js'
import { TOMBSTONES_MIN } from './dist-autograd-container.js'
import type { DistAutogradContext } from './dist-autograd-context.js'

const SEEDS = 10

describe('DA-1 ids', () => {
  test('200 contexts have ids of their worker, and are gone afterwards', () =>
    overSeeds(1, 3, async (cluster) => {
      for (const id of [0, 2]) {
        const { container } = cluster.parts(id)
        expect(container.maxId).toBe((BigInt(id) << 48n) + BigInt(LOCAL_ID_MAX))
        await cluster.workers[id]!.run(async () => {
          for (let n = 0; n < 200; n++) {
            let contextId = 0n
            await distAutograd.context((ctx) => {
              contextId = ctx.id
              expect(container.retrieve(contextId).id).toBe(contextId)
              expect(contextId >> 48n).toBe(BigInt(id))
            })
            expect(() => container.retrieve(contextId)).toThrow(`autograd context ${contextId} has been released`)
          }
        })
      }
    }))

  test('a context without a function, or of a mode that there is not, is told what to write', () =>
    overSeeds(1, 1, async () => {
      for (const made of [distAutograd.context(undefined as never), distAutograd.context(() => 1, { mode: 'clever' as never })]) {
        const error = await made.catch((e: unknown) => e)
        expect(error).toMatchObject({ code: 'INVALID_ARGUMENT', op: 'context', remedy: expect.stringMatching(/./) })
      }
    }))

  test('DA-5 an id that nobody gave is not found', () =>
    overSeeds(1, 2, async (cluster) => {
      for (const contextId of [100n, (1n << 48n) + 5n, null as unknown as bigint]) {
        const error = catching(() => cluster.contextOn(0, contextId))
        expect(isPostgradError(error, 'CONTEXT_NOT_FOUND')).toBe(true)
      }
      const notAnId = catching(() => cluster.parts(0).container.retrieve('7' as unknown as bigint)) as Error
      expect(notAnId.message).toContain('(a bigint), got string')
    }))

  test('DA-5 a call of a context that its callee would have made, and has not, is refused there', () =>
    overSeeds(SEEDS, 2, async (cluster) => {
      cluster.workers[0]!.intercept({
        outgoing: (message) => {
          message.context = (1n << 48n) + 5n
        },
      })
      const error = await call(1, nothing).catch((e: unknown) => e)
      expect(isPostgradError(error, 'CONTEXT_NOT_FOUND')).toBe(true)
      expect(cluster.parts(1).container.size).toBe(0)
    }))
})

describe('DA-3 the current context', () => {
  test('DA-4 a nested context is one of its own', () =>
    overSeeds(1, 1, async () => {
      await distAutograd.context(async (outer) => {
        await distAutograd.context(async (inner) => {
          expect(inner.id).not.toBe(outer.id)
          expect(currentContext()).toBe(inner)
        })
        expect(currentContext()).toBe(outer)
        expect(outer.released).toBe(false)
      })
      expect(currentContext()).toBeNull()
    }))

  test('programs that interleave have their own', () =>
    overSeeds(SEEDS, 2, async () => {
      const one = async () => {
        const seen = await distAutograd.context(async (ctx) => {
          for (let n = 0; n < 5; n++) {
            await call(1, nothing)
            expect(currentContext()).toBe(ctx)
          }
          return ctx.id
        })
        return seen
      }
      expect(new Set(await Promise.all([one(), one(), one()])).size).toBe(3)
    }))

  test('it is released when its function throws, at once or later, and the error comes through', () =>
    overSeeds(SEEDS, 2, async (cluster) => {
      const ids: bigint[] = []
      const at = async (fn: (ctx: DistAutogradContext) => Promise<void>) =>
        await distAutograd
          .context(async (ctx) => {
            ids.push(ctx.id)
            await fn(ctx)
          })
          .catch((error: Error) => error.message)
      expect(
        await at(() => {
          throw new Error('at once')
        }),
      ).toBe('at once')
      expect(
        await at(async () => {
          await call(1, nothing)
          throw new Error('later')
        }),
      ).toBe('later')
      for (const id of ids) expect(cluster.parts(0).container.find(id)).toBeUndefined()
    }))
})

describe('DA-10 release', () => {
  test.each([
    ['tensors that require grad', async () => void (await Promise.all([1, 2, 3].map((to) => call(to, add, [leaf(), leaf()]))))],
    ['tensors that require none', async () => void (await Promise.all([1, 2, 3].map((to) => call(to, add, [rand([3, 3]), rand([3, 3])]))))],
    ['no tensors', async () => void (await Promise.all([1, 2, 3].map((to) => call(to, nothing))))],
    ['nested calls', async () => void (await call(1, pyNested, [leaf(), leaf(), 1, 4, 1]))],
  ])('reaches every worker of the context: %s', (_, body) =>
    overSeeds(SEEDS, 4, async (cluster) => {
      let id = 0n
      await distAutograd.context(async (ctx) => {
        id = ctx.id
        await body()
        for (const worker of [0, 1, 2, 3]) expect(cluster.contextOn(worker, id).id).toBe(id)
      })
      await waitUntil(cluster, () => cluster.workers.every((_worker, index) => cluster.parts(index).container.size === 0))
      for (const worker of [0, 1, 2, 3]) {
        expect(
          isPostgradError(
            catching(() => cluster.contextOn(worker, id)),
            'CONTEXT_RELEASED',
          ),
        ).toBe(true)
      }
    }),
  )

  test('an error in a call breaks nothing else (case 20)', () =>
    overSeeds(SEEDS, 2, async () => {
      await distAutograd.context(async () => {
        const error = await call(1, matmul, [rand([3, 3], { requiresGrad: true }), rand([6, 6], { requiresGrad: true })]).catch(
          (e: unknown) => e,
        )
        expect(isPostgradError(error)).toBe(true)
        expect((await call(1, pyAdd, [ones([2]), ones([2])])).toArray()).toEqual([2, 2])
      })
    }))

  test('DA-11 a reply that comes after the release: with a graph it is refused, without it is delivered', async () => {
    const seen = new Set<string>()
    await overSeeds(SEEDS, 2, async () => {
      let graph: Future<unknown> | undefined
      let plain: Future<unknown> | undefined
      await distAutograd.context(() => {
        graph = call(1, pyAdd, [leaf(), leaf()])
        plain = call(1, nothing)
      })
      const outcome = (one: Future<unknown>) => one.then(() => 'delivered').catch((error: { code?: string }) => error.code)
      seen.add((await Promise.all([outcome(graph!), outcome(plain!)])).join(', '))
    })
    expect([...seen]).toEqual(['CONTEXT_RELEASED, delivered'])
  })

  test('DA-11 calls in a released context are refused here and elsewhere', () =>
    overSeeds(SEEDS, 2, async () => {
      let late: (() => Promise<unknown>) | undefined
      await distAutograd.context(async () => {
        const { AsyncResource } = await import('node:async_hooks')
        const resource = new AsyncResource('late')
        late = () => resource.runInAsyncScope(async () => await call(1, nothing))
      })
      const error = await late!().catch((e: unknown) => e)
      expect(isPostgradError(error, 'CONTEXT_RELEASED')).toBe(true)
    }))

  test('DA-11 tombstones are bounded', () =>
    withSeed(1, async () => {
      const cluster = new Cluster(1, 2)
      const { container } = cluster.parts(0)
      for (let n = 0n; n < 2n * BigInt(TOMBSTONES_MIN) + 1n; n++) {
        container.getOrCreate((1n << 48n) + n, 'smart', 'test')
        container.release((1n << 48n) + n)
      }
      expect(
        isPostgradError(
          catching(() => container.retrieve(1n << 48n)),
          'CONTEXT_NOT_FOUND',
        ),
      ).toBe(true)
      expect(
        isPostgradError(
          catching(() => container.retrieve((1n << 48n) + BigInt(TOMBSTONES_MIN))),
          'CONTEXT_RELEASED',
        ),
      ).toBe(true)
      expect(() => container.getOrCreate((1n << 48n) + BigInt(TOMBSTONES_MIN), 'smart', 'test')).toThrow('has been released')
    }))

  test('DA-30 after 300 contexts nothing is left', () =>
    overSeeds(2, 3, async () => {
      for (let n = 0; n < 100; n++) {
        await distAutograd.context(async (ctx) => {
          const loss = (await call(1, pyNested, [leaf(), leaf(), 1, 3, 0])).sum()
          await ctx.backward([loss])
        })
      }
    }))
})

function leaf() {
  return rand([3, 3], { requiresGrad: true })
}

function catching(fn: () => unknown): unknown {
  try {
    return fn()
  } catch (error) {
    return error
  }
}

async function waitUntil({ world }: Cluster, condition: () => boolean): Promise<void> {
  for (let n = 0; n < 1000 && !condition(); n++) await new Promise<void>((resolve) => world.clock.setTimer(1, resolve))
  expect(condition()).toBe(true)
}
