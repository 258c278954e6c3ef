/** How a pass begins and ends from outside, and what its error names: root gradients, signals, cancelled calls, unreadable messages. */
import { describe, expect, test } from '@jest/globals'
import { defineFunction, mul, sqrt, withAnomalyDetection } from '@postgrad/autograd'
import { PostgradError } from '@postgrad/base'
import { call, currentSignal, currentWorker, expose, type RRef, remote, rref } from '@postgrad/rpc'
import { type Tensor, tensor } from '@postgrad/tensor'
import { MessageType, requestHead } from '@postgrad/wire/internal'
import { distAutograd } from '../api.js'
import { failure, innermost, sleep } from './ends.suite.js'
import { pyAdd, pyNested, wholeLeaf } from './programs.suite.js'
import { Cluster, codesOf, overSeeds, withSeed } from './sim-cluster.suite.js'

const SEEDS = 10

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

  test('a pass that begins when its call has been cancelled does not', () =>
    overSeeds(SEEDS, 2, async (cluster) => {
      begunLate.length = 0
      for (const reason of [undefined, 'enough', new PostgradError('GRAPH_FREED', { op: 'test' })]) {
        const training = call(1, trainLate)
        await sleep(20)
        training.cancel(reason)
        expect(await failure(training)).toMatchObject({ code: 'CALL_CANCELLED' })
        await sleep(50)
      }
      expect(begunLate.map(({ code }) => code)).toEqual(Array(3).fill('DIST_BACKWARD_CANCELLED'))
      expect(cluster.parts(1).engine.currentBackwardPasses).toBe(0)
    }))

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

const begunLate: PostgradError[] = []
/** A pass that begins when nobody waits for it any more. */
async function trainLate(): Promise<void> {
  await distAutograd.context(async (ctx) => {
    const signal = currentSignal()
    await new Promise((resolve) => signal.addEventListener('abort', resolve))
    begunLate.push(await failure(ctx.backward([mul(wholeLeaf([[1]]), 2).sum()])))
  })
}

expose({ train, trainLate })

describe('DA-55 what an error names', () => {
  let onPurpose: Error | null = null
  const frozen = Object.freeze(new RangeError('frozen'))
  const ring = new RangeError('one', { cause: new RangeError('two') })
  Object.assign(ring.cause as Error, { cause: ring })
  const fails = defineFunction({
    name: 'Fails',
    forward: (_ctx: unknown, x: Tensor) => mul(x, 1),
    backward: () => {
      throw onPurpose ?? new RangeError('thrown on purpose')
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

  test('DA-69 anomaly mode goes with the calls of a context, over any number of workers; without it no line is known', () =>
    overSeeds(SEEDS, 3, async () => {
      const forwardOf = () =>
        distAutograd.context(async (ctx) => {
          const loss = (await call(1, failsFurtherOn, [wholeLeaf([[1]])])).sum()
          return innermost(await failure(ctx.backward([loss]))).values
        })
      const watched = await withAnomalyDetection(forwardOf)
      expect(watched).toMatchObject({ worker: 'worker2', node: 'FailsBackward' })
      expect(watched.forward).toMatch(/pass-ends\.sim\.test\.[jt]s:\d+:\d+/)
      const plain = await forwardOf()
      expect(plain).toMatchObject({ worker: 'worker2', node: 'FailsBackward' })
      expect(plain.forward ?? null).toBeNull()
    }))

  test('DA-69 anomaly mode finds NaN in the backward pass of another worker', () =>
    overSeeds(SEEDS, 2, async () => {
      await withAnomalyDetection(() =>
        distAutograd.context(async (ctx) => {
          const loss = (await call(1, rootThere, [wholeLeaf([[0]])])).sum()
          const error = await failure(ctx.backward([loss]))
          expect(error).toMatchObject({ code: 'BACKWARD_NAN', values: { worker: 'worker1', workerId: 1 } })
          expect(error.values.forward).toMatch(/pass-ends\.sim\.test\.[jt]s:\d+:\d+/)
        }),
      )
    }))

  test('DA-69 anomaly mode names SendRpcBackward where NaN comes back to the worker that sent the tensor', () =>
    overSeeds(SEEDS, 2, async () => {
      await withAnomalyDetection(() =>
        distAutograd.context(async (ctx) => {
          const y = await call(1, rootThere, [wholeLeaf([[1]])])
          y.registerHook((grad) => mul(grad, Number.NaN))
          const error = await failure(ctx.backward([y.sum()]))
          expect(error).toMatchObject({ code: 'BACKWARD_NAN', values: { worker: 'worker1', node: 'SendRpcBackward' } })
        }),
      )
    }))
  const failsFurtherOn = async (x: Tensor): Promise<Tensor> => await call(2, failsThere, [x])
  /** The root of 0, times 0: infinite times 0 in backward. */
  const rootThere = (x: Tensor): Tensor => mul(sqrt(x), 0)
  expose({ failsFurtherOn, rootThere })

  test('an error that nothing can be added to, or whose causes are a ring, is the cause of one', () =>
    overSeeds(SEEDS, 2, async () => {
      await distAutograd.context(async (ctx) => {
        for (const thrown of [frozen, ring]) {
          const loss = fails(mul(wholeLeaf([[1]]), 2))
          onPurpose = thrown
          const error = await failure(ctx.backward([loss.sum()]))
          onPurpose = null
          expect(error).toMatchObject({ code: 'BACKWARD_FAILED', cause: thrown })
        }
      })
    }))

  test('an error that several passes throw is located once each', () =>
    overSeeds(1, 2, async () => {
      await distAutograd.context(async (ctx) => {
        const loss = fails(wholeLeaf([[1]])).sum()
        for (let n = 0; n < 3; n++) expect(codesOf(await failure(ctx.backward([loss], { retainGraph: true })))).toHaveLength(2)
      })
    }))
})

describe('DA-65 what cannot be read', () => {
  test.each([
    ['gradients, for a worker', MessageType.PROPAGATE_GRADIENTS, 1],
    ['gradients, for the root', MessageType.PROPAGATE_GRADIENTS, 0],
    ['a report', MessageType.PASS_REPORT, 0],
  ])('%s: the pass fails at once, and the next one is right', (_, type, at) =>
    overSeeds(SEEDS, 3, async (cluster) => {
      const { codec } = cluster.workers[at]!
      const decode = codec.decode.bind(codec)
      let damaged = 0
      await distAutograd.context(async (ctx) => {
        const weight = wholeLeaf([[1, 2]])
        const loss = (await call(1, pyNested, [weight, weight, 1, 3, 0])).sum()
        codec.decode = (frame, ...rest) => {
          if (requestHead(frame)!.type === type && damaged++ === 0) throw new PostgradError('WIRE_CORRUPT', { op: 'decode' })
          return decode(frame, ...rest)
        }
        const beganMs = cluster.world.nowMs
        const error = await failure(ctx.backward([loss], { retainGraph: true }))
        expect(error).toMatchObject({ code: 'PASS_UNREADABLE', values: { worker: `worker${at}` }, cause: { code: 'WIRE_CORRUPT' } })
        expect(cluster.world.nowMs - beganMs).toBeLessThan(10_000)
        await ctx.backward([loss])
        expect(ctx.gradients().get(weight)!.toArray()).toEqual([[2, 2]])
      })
    }),
  )
})
