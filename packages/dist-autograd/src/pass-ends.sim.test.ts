/** How a pass ends from outside, what its error names, who may release a context, and root gradients that are given. */
import { describe, expect, test } from '@jest/globals'
import { add, defineFunction, matmul, mul, withAnomalyDetection } from '@postgrad/autograd'
import { type PostgradError, workerOf } from '@postgrad/base'
import { call, currentWorker, expose, type RRef, remote, rref } from '@postgrad/rpc'
import { type Tensor, tensor } from '@postgrad/tensor'
import { distAutograd } from './api.js'
import { pyAdd, pyNested, wholeLeaf } from './programs.suite.js'
import { Cluster, codesOf, overSeeds, withSeed } from './sim-cluster.suite.js'

const SEEDS = 10

const failure = (promise: Promise<unknown>): Promise<PostgradError> =>
  promise.then(
    () => {
      throw new Error('expected a rejection')
    },
    (error) => error,
  )

/** The last error of the chain of causes. */
function innermost(error: unknown): PostgradError {
  let last = error as PostgradError
  while (last.cause !== undefined) last = last.cause as PostgradError
  return last
}

const sleep = (ms: number): Promise<void> => new Promise((resolve) => currentWorker().clock.setTimer(ms, resolve))

describe('DA-53 given root gradients', () => {
  test('a root that is not scalar, with its gradient; beside it a scalar without', () =>
    overSeeds(SEEDS, 2, async () => {
      await distAutograd.context(async (ctx) => {
        const [a, b] = [wholeLeaf([[1, 2]]), wholeLeaf([[3, 4]])]
        const product = await call(1, mul, [a, b])
        await ctx.backward([product, a.sum()], { gradTensors: [tensor([[10, 100]]), null] })
        expect(ctx.gradients().get(a)!.toArray()).toEqual([[31, 401]])
        expect(ctx.gradients().get(b)!.toArray()).toEqual([[10, 200]])
      })
    }))

  test('what does not fit is refused, and nothing has begun', () =>
    overSeeds(1, 2, async () => {
      await distAutograd.context(async (ctx) => {
        const product = mul(wholeLeaf([[1, 2]]), 2)
        const refused = async (gradTensors: (Tensor | null)[]) => (await failure(ctx.backward([product], { gradTensors }))).code
        expect(await refused([tensor([1, 2])])).toBe('ROOT_GRADIENT_MISMATCH')
        expect(await refused([])).toBe('ROOT_GRADIENT_MISMATCH')
        expect(await refused([null])).toBe('ROOT_NOT_SCALAR')
        expect(await refused([7 as unknown as Tensor])).toBe('INVALID_ARGUMENT')
        expect(ctx.passes.size).toBe(0)
      })
    }))

  test('a reference takes one too, at home, and from elsewhere', () =>
    overSeeds(SEEDS, 2, async () => {
      const local = wholeLeaf([[1, 2]])
      await rref(mul(local, 3)).backward(null, { gradient: tensor([[1, 10]]) })
      expect(local.grad!.toArray()).toEqual([[3, 30]])
      await distAutograd.context(async (ctx) => {
        const weight = wholeLeaf([[1, 2]])
        const ref = remote(1, mul, [weight, 3]) as RRef<Tensor>
        await ref.backward(ctx.id, { gradient: tensor([[1, 10]], { requiresGrad: true }) })
        expect(ctx.gradients().get(weight)!.toArray()).toEqual([[3, 30]])
        expect(await failure(ref.backward(ctx.id))).toMatchObject({ code: 'ROOT_NOT_SCALAR' })
        ref.dispose()
      })
    }))
})

describe('DA-54 cancelled passes', () => {
  test('a signal ends the pass on every worker, at whatever moment; the next one is right', () =>
    overSeeds(2 * SEEDS, 3, async (cluster) => {
      await distAutograd.context(async (ctx) => {
        const weight = wholeLeaf([[1, 2]])
        const loss = (await call(1, pyNested, [weight, weight, 1, 3, 0])).sum()
        let cancelled = 0
        let ended = 0
        for (let n = 0; n < 4; n++) {
          const controller = new AbortController()
          const pass = ctx.backward([loss], { retainGraph: true, signal: controller.signal })
          const timer = currentWorker().clock.setTimer(n * 2, () => controller.abort('enough'))
          const error = (await pass.catch((e: unknown) => e)) as PostgradError | undefined
          timer.cancel()
          if (error === undefined) ended++
          else {
            cancelled++
            expect(error).toMatchObject({ code: 'DIST_BACKWARD_CANCELLED', cause: 'enough' })
          }
        }
        expect(cancelled + ended).toBe(4)
        await ctx.backward([loss], { retainGraph: true })
        expect(ctx.gradients().get(weight)!.toArray()).toEqual([[2 * (ended + 1), 2 * (ended + 1)]])
        // A signal that aborts afterwards means nothing.
        const late = new AbortController()
        await ctx.backward([loss], { signal: late.signal })
        late.abort()
        expect(cluster.parts(0).engine.currentBackwardPasses).toBe(0)
      })
    }))

  test('a signal that has aborted before: nothing begins', () =>
    overSeeds(1, 2, async () => {
      await distAutograd.context(async (ctx) => {
        const loss = mul(wholeLeaf([[1]]), 2).sum()
        const error = await failure(ctx.backward([loss], { signal: AbortSignal.abort('no') }))
        expect(error).toMatchObject({ code: 'DIST_BACKWARD_CANCELLED', cause: 'no' })
        await ctx.backward([loss])
      })
    }))

  test('a pass that a served call began ends with the call', async () => {
    let cancelled = 0
    for (let seed = 1; seed <= 3 * SEEDS; seed++) {
      await withSeed(seed, async () => {
        const cluster = new Cluster(seed, 3)
        trained.length = 0
        await cluster.run(0, async () => {
          const training = call(1, train, [2])
          while (cluster.world.steps < 20 + ((seed * 7) % 60)) await sleep(0)
          training.cancel()
          expect(await failure(training)).toMatchObject({ code: 'CALL_CANCELLED' })
        })
        expect(await cluster.leftovers()).toEqual([])
        for (const end of trained) {
          if (end !== 'ended') expect(['DIST_BACKWARD_CANCELLED', 'CALL_CANCELLED', 'CONTEXT_RELEASED']).toContain(end)
          if (end === 'DIST_BACKWARD_CANCELLED') cancelled++
        }
      })
    }
    expect(cancelled).toBeGreaterThan(3)
  })

  test('a pass that nobody awaits and that is cancelled is no unhandled rejection', () =>
    overSeeds(1, 2, async () => {
      const controller = new AbortController()
      await distAutograd.context(async (ctx) => {
        const loss = (await call(1, pyAdd, [wholeLeaf([[1]]), wholeLeaf([[2]])])).sum()
        void ctx.backward([loss], { signal: controller.signal })
        controller.abort()
        await sleep(50)
      })
    }))
})

const trained: string[] = []
/** Passes in a loop, until one fails. */
async function train(other: number): Promise<void> {
  await distAutograd.context(async (ctx) => {
    const loss = (await call(other, pyAdd, [wholeLeaf([[1]]), wholeLeaf([[2]])])).sum()
    for (let n = 0; n < 20; n++) {
      const end = await ctx.backward([loss], { retainGraph: true }).then(
        () => 'ended',
        (error: PostgradError) => error.code,
      )
      trained.push(end)
      if (end !== 'ended') return
    }
  })
}

expose({ train })

describe('DA-55 what an error names', () => {
  const fails = defineFunction({
    name: 'Fails',
    forward: (_ctx: unknown, x: Tensor) => mul(x, 1),
    backward: () => {
      throw new RangeError('thrown on purpose')
    },
  }) as unknown as (x: Tensor) => Tensor
  const throwsText = defineFunction({
    name: 'ThrowsText',
    forward: (_ctx: unknown, x: Tensor) => mul(x, 1),
    backward: () => {
      throw 'a text'
    },
  }) as unknown as (x: Tensor) => Tensor
  const failsThere = (x: Tensor): Tensor => fails(x)
  const throwsTextThere = (x: Tensor): Tensor => throwsText(x)
  expose({ failsThere, throwsTextThere })

  test('the worker and the node, behind the error as it was thrown', () =>
    overSeeds(SEEDS, 3, async () => {
      for (const to of [0, 1, 2]) {
        await distAutograd.context(async (ctx) => {
          const error = await failure(ctx.backward([(await call(to, failsThere, [wholeLeaf([[1]])])).sum()]))
          expect(error).toMatchObject({ name: 'RangeError', message: 'thrown on purpose' })
          expect(innermost(error)).toMatchObject({
            code: 'BACKWARD_FAILED',
            values: { worker: `worker${to}`, workerId: to, node: 'FailsBackward' },
          })
        })
      }
    }))

  test('what is no error becomes the cause of one', () =>
    overSeeds(SEEDS, 2, async () => {
      await distAutograd.context(async (ctx) => {
        const error = await failure(ctx.backward([(await call(1, throwsTextThere, [wholeLeaf([[1]])])).sum()]))
        expect(error).toMatchObject({ code: 'BACKWARD_FAILED', cause: 'a text', values: { worker: 'worker1', node: 'ThrowsTextBackward' } })
      })
    }))

  test('in anomaly mode the line of forward, where the node was recorded', () =>
    overSeeds(SEEDS, 2, async () => {
      await distAutograd.context(async (ctx) => {
        const loss = (await call(1, watchedThere, [wholeLeaf([[1]])])).sum()
        const { values } = innermost(await failure(ctx.backward([loss])))
        expect(values).toMatchObject({ worker: 'worker1', node: 'FailsBackward' })
        expect(values.forward).toMatch(/pass-ends\.sim\.test\.[jt]s:\d+:\d+/)
        expect((values.frames as string[]).length).toBeGreaterThan(0)
      })
    }))
  const watchedThere = (x: Tensor): Tensor => withAnomalyDetection(() => fails(x))
  expose({ watchedThere })

  test('an error that several passes throw is located once each', () =>
    overSeeds(1, 2, async () => {
      await distAutograd.context(async (ctx) => {
        const loss = fails(wholeLeaf([[1]])).sum()
        for (let n = 0; n < 3; n++) expect(codesOf(await failure(ctx.backward([loss], { retainGraph: true })))).toHaveLength(2)
      })
    }))
})

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
        engine.onGradients = (message) => {
          roots.push([id, workerOf(message.pass!)])
          onGradients(message)
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

describe('DA-16 node tasks in the mailbox', () => {
  test('calls go on between them, and of the tasks that wait the last recorded runs first', () =>
    overSeeds(SEEDS, 2, async () => {
      const order: number[] = []
      const noted = (x: Tensor, n: number): Tensor => {
        const y = mul(x, 1)
        ;(y.gradFn as unknown as { registerPreHook(fn: () => undefined): void }).registerPreHook(() => {
          order.push(n)
          return undefined
        })
        return y
      }
      await distAutograd.context(async (ctx) => {
        const weight = wholeLeaf([[1, 2]])
        const branches = [0, 1, 2, 3].map((n) => noted(weight, n))
        const pass = ctx.backward([branches.reduce((a, b) => add(a, b)).sum()])
        await pass
        expect(order).toEqual([3, 2, 1, 0])
      })
      await distAutograd.context(async (ctx) => {
        const first = noted(wholeLeaf([[1, 2]]), -1)
        let x = first
        for (let n = 0; n < 2000; n++) x = add(x, 1)
        order.length = 0
        lastRan = () => order.length > 0
        const pass = ctx.backward([x.sum()])
        const calls = Array.from({ length: 3 }, () => call(0, hasLastRun))
        expect(await Promise.all(calls)).toEqual([false, false, false])
        await pass
        expect(lastRan()).toBe(true)
      })
    }))
  let lastRan = (): boolean => false
  const hasLastRun = (): boolean => lastRan()
  expose({ hasLastRun })
})

describe('DA-17 gradients on their way back', () => {
  test('what has no gradient stays without; zeros are made where a node needs them', () =>
    overSeeds(SEEDS, 2, async (cluster) => {
      const seen: (string | null)[][] = []
      const { engine } = cluster.parts(0)
      const onGradients = engine.onGradients.bind(engine)
      engine.onGradients = (message) => {
        seen.push((message.body[0] as (Tensor | null)[]).map((grad) => grad && JSON.stringify(grad.toArray())))
        onGradients(message)
      }
      await distAutograd.context(async (ctx) => {
        const [a, b, c] = [wholeLeaf([[1]]), wholeLeaf([[2]]), wholeLeaf([[3]])]
        const [double, triple] = (await call(1, bothOf, [a, b, c])) as [Tensor, Tensor]
        expect(triple.requiresGrad).toBe(true)
        await ctx.backward([double.sum()])
        expect(seen).toEqual([['[[2]]', null, null]])
        expect(ctx.gradients().get(a)!.toArray()).toEqual([[2]])
        expect(ctx.gradients().has(c)).toBe(false)
      })
    }))
  /** Of its third argument nothing comes back. */
  const bothOf = (a: Tensor, b: Tensor, _c: Tensor): Tensor[] => [mul(a, 2), mul(b, 3)]
  expose({ bothOf })
})
