/** Sparse gradients in a context: they stay with the worker that has the table; to another they do not travel as they are, and say so. */
import { expect, test } from '@jest/globals'
import { embedding, mul } from '@postgrad/autograd'
import { call, expose } from '@postgrad/rpc'
import { type SparseTensor, type Tensor, tensor, toDense } from '@postgrad/tensor'
import { distAutograd } from './api.js'
import { codesOf, overSeeds } from './sim-cluster.suite.js'

const ints = (...values: number[]) => tensor(Int32Array.from(values))
const double = (x: Tensor) => mul(x, 2)
const echo = (x: Tensor) => x
expose({ sparseDouble: double, sparseEcho: echo })

const table = () => tensor([1, 2, 3, 4, 5, 6], { requiresGrad: true }).reshape([3, 2]).detach().requiresGrad_()

test('passes through another worker add up in the context, as rows', () =>
  overSeeds(3, 2, async () => {
    await distAutograd.context(async (ctx) => {
      const w = table()
      const doubled = await call(1, double, [embedding(w, ints(1, 2, 1), { sparse: true })])
      await ctx.backward([doubled.sum()], { retainGraph: true })
      await ctx.backward([doubled.sum()])
      const grad = ctx.gradients().get(w) as SparseTensor
      expect([grad.isSparse, grad.nnz]).toEqual([true, 6])
      expect(toDense(grad).toArray()).toEqual([
        [0, 0],
        [8, 8],
        [4, 4],
      ])
      // As a value of a call they are refused: the receiver gets toDense() of them, or their parts.
      const error = await Promise.resolve()
        .then(() => call(1, echo, [grad]))
        .catch((e: unknown) => e)
      expect(codesOf(error)).toContain('SPARSE_TENSOR')
    })
  }))
