/** Clipping over all workers against clipping in one place; the last numbers are PyTorch's (scripts/golden/dist_optim.py). */
import { describe, expect, test } from '@jest/globals'
import { mul } from '@postgrad/autograd'
import { type DistAutogradContext, distAutograd } from '@postgrad/dist-autograd'
import { clipGradNorm_, clipGradValue_, SGD } from '@postgrad/nn'
import { call, expose, type RRef, rref } from '@postgrad/rpc'
import { rand, type Tensor, tensor, zeros } from '@postgrad/tensor'
import { type ClipPart, clipGradNorm, clipGradValue, clipNormOver } from './clip-grad.js'
import { DistributedOptimizer } from './distributed-optimizer.js'
import { failure, overSeeds } from './sim-workers.suite.js'

class Weight {
  readonly w: Tensor
  constructor(size: number) {
    this.w = zeros([size], { requiresGrad: true })
  }
  ref(): RRef<Tensor> {
    return rref(this.w)
  }
  times(x: Tensor): Tensor {
    return mul(this.w, x).sum()
  }
  grad(contextId: bigint): unknown {
    return distAutograd.getGradients(contextId).get(this.w)?.toArray() ?? null
  }
}
expose({ ClipWeight: Weight })

const remake = (size: number): RRef<Weight> => rref(new Weight(size))
expose({ 'clip.remake': remake })

const SIZES = [3, 1, 5, 2]

/** Weights on workers 1, 2, 0 and 1 whose gradients are `grads`, null for none, and how each is clipped. */
async function gradients(
  grads: readonly (readonly number[] | null)[],
  body: (ctx: DistAutogradContext, params: RRef<Tensor>[], read: () => Promise<unknown[]>) => Promise<void>,
) {
  const modules = await Promise.all([1, 2, 0, 1].map((to, i) => call(to, remake, [SIZES[i]!])))
  const params = await Promise.all(modules.map((module) => module.call('ref', [])))
  await distAutograd.context(async (ctx) => {
    const losses = await Promise.all(
      modules.flatMap((module, i) => (grads[i] === null ? [] : [module.call('times', [tensor([...grads[i]!])])])),
    )
    await ctx.backward(losses)
    await body(ctx, params, () => Promise.all(modules.map((module) => module.call('grad', [ctx.id]))))
  })
}

function local(grads: readonly (readonly number[] | null)[]): Tensor[] {
  return grads.map((grad, i) => {
    const p = zeros([SIZES[i]!], { requiresGrad: true })
    p.grad = grad === null ? null : tensor([...grad])
    return p
  })
}

describe('OPT-12 clipping', () => {
  test.each([1, 2, 3, 0.5, Number.POSITIVE_INFINITY])(
    'OPT-12 norm type %s: the bits of one place, by references and by an optimizer',
    (normType) =>
      overSeeds(
        3,
        async () => {
          const grads = SIZES.map((size, i) => (i === 1 ? null : (rand([size]).toArray() as number[])))
          for (const maxNorm of [0.5, 100]) {
            for (const by of ['references', 'optimizer'] as const) {
              await gradients(grads, async (ctx, params, read) => {
                const here = local(grads)
                const expected = clipGradNorm_(here, maxNorm, { normType })
                const optimizer = new DistributedOptimizer(SGD, params, { lr: 1 })
                const norm =
                  by === 'optimizer'
                    ? await optimizer.clipGradNorm(ctx, maxNorm, { normType })
                    : await clipGradNorm(ctx, params, maxNorm, { normType })
                expect(norm.toArray()).toEqual(expected.toArray())
                expect(await read()).toEqual(here.map(({ grad }) => grad?.toArray() ?? null))
                optimizer.dispose()
              })
            }
          }
        },
        3,
      ),
  )

  test('OPT-12 no gradient anywhere: 0; by value; a norm that is not finite', () =>
    overSeeds(3, async () => {
      await gradients([[1, 1, 1], null, null, null], async (_, params) => {
        await distAutograd.context(async (empty) => {
          expect((await clipGradNorm(empty, params, 1)).toArray()).toBe(0)
          expect((await clipGradNorm(empty, [], 1)).toArray()).toBe(0)
        })
      })
      const grads = [[3, -4, Number.NaN], [Number.POSITIVE_INFINITY], null, [0.5, -0.5]]
      await gradients(grads, async (ctx, params, read) => {
        const before = await read()
        const error = await failure(clipGradNorm(ctx.id, params, 1, { errorIfNonfinite: true }))
        expect(error.code).toBe('GRAD_NOT_FINITE')
        expect(await read()).toEqual(before)
        const optimizer = new DistributedOptimizer(SGD, params, { lr: 1 })
        for (const clip of [() => clipGradValue(ctx, params, 2), () => optimizer.clipGradValue(ctx, 1)]) await clip()
        const here = local(grads)
        clipGradValue_(here, 1)
        expect(await read()).toEqual(here.map(({ grad }) => grad?.toArray() ?? null))
        optimizer.dispose()
      })
    }))

  test('OPT-12 what cannot be: bounds that are none, a context that is not, an owner that died', () =>
    overSeeds(3, async (workers) => {
      await gradients([[1, 1, 1], [2], null, null], async (ctx, params, read) => {
        for (const clip of [
          () => clipGradNorm(ctx, params, Number.NaN),
          () => clipGradNorm(ctx, params, -1),
          () => clipGradNorm(ctx, params, 1, { normType: 0 }),
          () => clipGradValue(ctx, params, -1),
        ]) {
          expect((await failure(clip())).code).toBe('INVALID_ARGUMENT')
        }
        expect((await failure(clipGradNorm(99n, params, 1))).code).toBe('CONTEXT_NOT_FOUND')
        expect(await read()).toEqual([[1, 1, 1], [2], null, null])
        await workers[2]!.close()
        expect(await failure(clipGradNorm(ctx, params, 1))).toMatchObject({
          code: 'GRAD_CLIP_FAILED',
          cause: { code: 'WORKER_DIED' },
          values: { owners: ['worker2'], scaled: [] },
        })
      })
    }))

  test('OPT-12 an owner fails: nothing is scaled while the norm is computed, then the error says who has scaled', async () => {
    const part = (name: string, fails?: 'shares' | 'scale'): ClipPart => {
      const unless = async <T>(round: string, value: T): Promise<T> => {
        if (fails === round) throw new RangeError(`no ${round}`)
        return value
      }
      return {
        owner: { name, id: 0 },
        places: [name === 'a' ? 0 : 1],
        shares: () => unless('shares', [tensor(3)]),
        scale: () => unless('scale', undefined),
        clamp: () => unless('clamp', undefined),
      }
    }
    expect(await failure(clipNormOver([part('a', 'shares'), part('b')], 1n, 1, {}))).toMatchObject({
      code: 'GRAD_CLIP_FAILED',
      message: "clipGradNorm: the gradients on 'a' could not be measured: no shares. See the cause. No gradient was changed.",
      values: { owners: ['a'], scaled: [] },
    })
    expect(await failure(clipNormOver([part('a', 'scale'), part('b')], 1n, 1, {}))).toMatchObject({
      code: 'GRAD_CLIP_FAILED',
      message: expect.stringContaining("the gradients on 'a' could not be clipped: no scale. See the cause. Other owners may have"),
      values: { owners: ['a'], scaled: ['b'] },
    })
  })
})
