/** Sparse gradients in a context: as rows they stay with the worker that has the table, and as rows they travel to it. */
import { expect, test } from '@jest/globals'
import { add, embedding, embeddingBag, mul } from '@postgrad/autograd'
import { call, expose } from '@postgrad/rpc'
import { type SparseTensor, type Tensor, tensor, toDense } from '@postgrad/tensor'
import { distAutograd } from '../api.js'
import { overSeeds } from './sim-cluster.suite.js'

const ints = (...values: number[]) => tensor(Int32Array.from(values))
const double = (x: Tensor) => mul(x, 2)
const echo = (x: Tensor) => x
expose({ sparseDouble: double, sparseEcho: echo })

const table = () => tensor([1, 2, 3, 4, 5, 6], { requiresGrad: true }).reshape([3, 2]).detach().requiresGrad_()

test('DA-58 passes through another worker add up in the context, as rows', () =>
  overSeeds(3, 2, async () => {
    await distAutograd.context(async (ctx) => {
      const w = table()
      const doubled = await call(1, double, [embedding(w, ints(1, 2, 1), { sparse: true })])
      await ctx.backward([doubled.sum()], { retainGraph: true })
      await ctx.backward([doubled.sum()])
      const grad = ctx.gradients().get(w) as SparseTensor
      expect([grad.isSparse, grad.nnz]).toEqual([true, 2])
      expect(toDense(grad).toArray()).toEqual([
        [0, 0],
        [8, 8],
        [4, 4],
      ])
      // As a value of a call and of its result they stay what they are.
      const back = (await call(1, echo, [grad])) as SparseTensor
      expect([back.isSparse, back.isCoalesced, back.nnz, back.requiresGrad]).toEqual([true, grad.isCoalesced, 2, false])
      expect(toDense(back).toArray()).toEqual(toDense(grad).toArray())
    })
  }))

const lookUp = (w: Tensor, indices: Tensor): Tensor => embedding(w, indices, { sparse: true })
const lookUpBag = (w: Tensor, indices: Tensor): Tensor => embeddingBag(w, indices, { offsets: ints(0, 2), mode: 'sum', sparse: true })
/** A dense and a sparse contribution to one gradient. */
const lookUpAndSum = (w: Tensor, indices: Tensor): Tensor => add(embedding(w, indices, { sparse: true }).sum(), mul(w, 2).sum())
expose({ lookUp, lookUpBag, lookUpAndSum })

test('DA-58 the gradient of a table that was sent comes back as rows', () =>
  overSeeds(3, 3, async () => {
    await distAutograd.context(async (ctx) => {
      const w = table()
      const [first, second] = await Promise.all([call(1, lookUp, [w, ints(1, 2, 1)]), call(2, lookUpBag, [w, ints(0, 2, 2)])])
      await ctx.backward([add(first.sum(), second.sum())])
      const grad = ctx.gradients().get(w) as SparseTensor
      expect([grad.isSparse, grad.nnz]).toEqual([true, 3])
      expect(toDense(grad).toArray()).toEqual([
        [1, 1],
        [2, 2],
        [3, 3],
      ])
    })
  }))

test('DA-58 a sparse and a dense contribution become a dense gradient', () =>
  overSeeds(3, 2, async () => {
    await distAutograd.context(async (ctx) => {
      const w = table()
      await ctx.backward([await call(1, lookUpAndSum, [w, ints(0, 0)])])
      const grad = ctx.gradients().get(w)!
      expect(grad.isSparse).toBe(false)
      expect(grad.toArray()).toEqual([
        [4, 4],
        [2, 2],
        [2, 2],
      ])
    })
  }))
