/** Passes that are recorded themselves, on every worker, and passes over their gradients. PyTorch's numbers are in `testing`. */
import { describe, expect, test } from '@jest/globals'
import { defineFunction, backward as localBackward, matmul, mul, tanh } from '@postgrad/autograd'
import { PostgradError } from '@postgrad/base'
import { call, expose, type RRef, remote, rref } from '@postgrad/rpc'
import { manualSeed, rand, type Tensor, tensor } from '@postgrad/tensor'
import { MessageType } from '@postgrad/wire/internal'
import { distAutograd } from '../api.js'
import { failure } from './ends.suite.js'
import { wholeLeaf } from './programs.suite.js'
import { overSeeds } from './sim-cluster.suite.js'

const SEEDS = 10

const cube = (x: Tensor): Tensor => mul(mul(x, x), x)
const layer = (x: Tensor, w: Tensor): Tensor => tanh(matmul(x, w))
/** Where the parameter is: the sum of the squares of its gradient, with its history. */
const penaltyHere = (contextId: bigint, ref: RRef<Tensor>): Tensor => {
  const grad = distAutograd.getGradients(contextId).get(ref.localValue())!
  return mul(grad, grad).sum()
}
const timesHere = (ref: RRef<Tensor>, x: Tensor): Tensor => mul(mul(x, ref.localValue()), ref.localValue())
const makeHere = (values: number[][]): Tensor => wholeLeaf(values)
const gradientHere = (contextId: bigint, ref: RRef<Tensor>): unknown =>
  distAutograd.getGradients(contextId).get(ref.localValue())!.toArray()
expose({ 'second.cube': cube, layer, penaltyHere, timesHere, makeHere, gradientHere })

describe('DA-66 createGraph', () => {
  test('gradients have a history, those of a plain pass have none', () =>
    overSeeds(SEEDS, 2, async () => {
      await distAutograd.context(async (ctx) => {
        const t = wholeLeaf([[1, 2]])
        const loss = (await call(1, cube, [t])).sum()
        await ctx.backward([loss], { retainGraph: true })
        expect(ctx.gradients().get(t)!.requiresGrad).toBe(false)
        await ctx.backward([loss], { createGraph: true })
        const twice = ctx.gradients().get(t)!
        expect([twice.requiresGrad, twice.toArray()]).toEqual([true, [[6, 24]]])
        // Of the sum, 3 t² + 3 t², only the second has a history: 6 t.
        await ctx.backward([twice.sum()])
        expect(ctx.gradients().get(t)!.toArray()).toEqual([[12, 36]])
        expect(t.grad).toBeNull()
      })
    }))

  test('as the local engine, over three workers', () => {
    let seed = 0
    return overSeeds(SEEDS, 3, async () => {
      manualSeed(++seed)
      const values = [rand([2, 3]), rand([3, 3]), rand([3, 2])]
      const leaves = () => values.map((value) => value.clone().requiresGrad_()) as [Tensor, Tensor, Tensor]
      const local = leaves()
      const loss = layer(layer(local[0], local[1]), local[2]).sum()
      localBackward(loss, null, { createGraph: true })
      const first = local.map((t) => t.grad!)
      for (const t of local) t.grad = null
      localBackward(first.map((g) => mul(g, g).sum()))
      await distAutograd.context(async (ctx) => {
        const [x, w, v] = leaves()
        const y = await call(2, layer, [await call(1, layer, [x, w]), v])
        await ctx.backward([y.sum()], { createGraph: true })
        const grads = [x, w, v].map((t) => ctx.gradients().get(t)!)
        await ctx.backward(grads.map((g) => mul(g, g).sum()))
        for (const [i, t] of [x, w, v].entries()) {
          const expected = first[i]!.add(local[i]!.grad!).detach().reshape([-1]).toArray() as number[]
          const got = ctx.gradients().get(t)!.detach().reshape([-1]).toArray() as number[]
          for (const [n, value] of expected.entries()) expect(got[n]).toBeCloseTo(value, 5)
        }
      })
    })
  })

  test('a penalty over the gradient of a parameter, made where the parameter is', () =>
    overSeeds(SEEDS, 2, async () => {
      const ref = remote(1, makeHere, [[[1, 2]]])
      await distAutograd.context(async (ctx) => {
        const x = wholeLeaf([[3, 1]])
        // x w²: 2 x w for w, w² for x.
        await ctx.backward([(await call(1, timesHere, [ref, x])).sum()], { createGraph: true })
        expect(await call(1, gradientHere, [ctx.id, ref])).toEqual([[6, 4]])
        // 4 x² w²: 8 x² w for w, 8 x w² for x.
        await ctx.backward([await call(1, penaltyHere, [ctx.id, ref])])
        expect(await call(1, gradientHere, [ctx.id, ref])).toEqual([[6 + 72, 4 + 16]])
        expect(ctx.gradients().get(x)!.toArray()).toEqual([[1 + 24, 4 + 32]])
      })
      ref.dispose()
    }))

  test('of a root on another worker, and of a reference without a context', () =>
    overSeeds(SEEDS, 2, async () => {
      await distAutograd.context(async (ctx) => {
        const t = wholeLeaf([[1, 2]])
        const ref = remote(1, cube, [t]) as RRef<Tensor>
        await ref.backward(ctx.id, { createGraph: true, gradient: tensor([[1, 1]]) })
        await ctx.backward([ctx.gradients().get(t)!.sum()])
        expect(ctx.gradients().get(t)!.toArray()).toEqual([[3 + 6, 12 + 12]])
        ref.dispose()
      })
      const t = wholeLeaf([[2]])
      await rref(cube(t).sum()).backward(null, { createGraph: true })
      expect(t.grad!.requiresGrad).toBe(true)
    }))

  test('passes at once, and one that fails: the others are right', () =>
    overSeeds(2 * SEEDS, 3, async () => {
      await distAutograd.context(async (ctx) => {
        const t = wholeLeaf([[1, 2]])
        const loss = (await call(2, cube, [await call(1, mul, [t, 1])])).sum()
        const cancelled = new AbortController()
        const passes = [1, 2].map(() => ctx.backward([loss], { createGraph: true }))
        const aborted = failure(ctx.backward([loss], { createGraph: true, signal: cancelled.signal }))
        cancelled.abort()
        expect(await aborted).toMatchObject({ code: 'DIST_BACKWARD_CANCELLED' })
        await Promise.all(passes)
        const grad = ctx.gradients().get(t)!
        expect(grad.toArray()).toEqual([[6, 24]])
        await ctx.backward([grad.sum()])
        expect(ctx.gradients().get(t)!.toArray()).toEqual([[6 + 12, 24 + 24]])
      })
    }))

  test('gradients that cannot leave fail the pass, and leave no send function behind', () =>
    overSeeds(SEEDS, 2, async (cluster) => {
      await distAutograd.context(async (ctx) => {
        const t = wholeLeaf([[1, 2]])
        const loss = (await call(1, cube, [t])).sum()
        const worker = cluster.workers[1]!
        const { post } = worker
        worker.post = (to, type, ...rest) => {
          if (type === MessageType.PROPAGATE_GRADIENTS) throw new PostgradError('WIRE_TOO_LARGE', { op: 'encode' })
          post.call(worker, to, type, ...rest)
        }
        const sends = () => cluster.contextOn(1, ctx.id).sendFunctions.size
        const before = sends()
        expect(await failure(ctx.backward([loss], { createGraph: true }))).toMatchObject({ code: 'WIRE_TOO_LARGE' })
        expect(sends()).toBe(before)
        worker.post = post
        await ctx.backward([loss], { createGraph: true })
        const grad = ctx.gradients().get(t)!
        expect(grad.toArray()).toEqual([[3, 12]])
        await ctx.backward([grad.sum()])
        expect(ctx.gradients().get(t)!.toArray()).toEqual([[3 + 6, 12 + 12]])
      })
    }))

  test('a function that cuts the history of its gradient gives one without, which is no root', () =>
    overSeeds(SEEDS, 2, async () => {
      await distAutograd.context(async (ctx) => {
        const t = wholeLeaf([[1, 2]])
        await ctx.backward([(await call(1, onceThere, [t])).sum()], { createGraph: true })
        const grad = ctx.gradients().get(t)!
        expect(grad.requiresGrad).toBe(false)
        expect(await failure(ctx.backward([grad.sum()]))).toMatchObject({ code: 'ROOT_REQUIRES_NO_GRAD' })
      })
    }))
  const once = defineFunction({
    name: 'Once',
    forward: (_ctx: unknown, x: Tensor) => mul(x, 3),
    backward: (_ctx: unknown, grad: Tensor) => mul(grad.detach(), 3),
  }) as unknown as (x: Tensor) => Tensor
  const onceThere = (x: Tensor): Tensor => once(x)
  expose({ onceThere })

  test('in a FAST context: CREATE_GRAPH_NEEDS_SMART', () =>
    overSeeds(1, 2, async () => {
      await distAutograd.context(
        async (ctx) => {
          const loss = (await call(1, cube, [wholeLeaf([[1]])])).sum()
          expect(await failure(ctx.backward([loss], { createGraph: true }))).toMatchObject({ code: 'CREATE_GRAPH_NEEDS_SMART' })
          await ctx.backward([loss])
        },
        { mode: 'fast' },
      )
    }))
})
