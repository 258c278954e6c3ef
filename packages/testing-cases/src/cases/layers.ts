/** PyTorch's tests with parameters that stay on the workers of their layers: a table with sparse gradients, linear layers in a row (cases 46, 49, 64). */
import { embeddingBag, linear, matmul, sum } from '@postgrad/autograd'
import { distAutograd } from '@postgrad/dist-autograd'
import { call, expose, type RRef, remote } from '@postgrad/rpc'
import { type Tensor, tensor, toDense } from '@postgrad/tensor'
import { gradientsOf, leaf, type NumberCase, type Plain, type Plains, plain, using } from './case.js'
import { makeLeaf, readGradient } from './parameters.js'

const BAG_INDICES = [1, 2, 4, 5, 4, 3, 2, 9]
const BAG_OFFSETS = [0, 4]

/** On the owner of the table. */
export function bagHere(table: RRef<Tensor>, indices: Tensor, offsets: Tensor, perSampleWeights: Tensor): Tensor {
  return embeddingBag(table.localValue(), indices, { offsets, mode: 'sum', sparse: true, perSampleWeights })
}

/** On the owner: the gradient of a table, which must be sparse. */
export async function readSparseGradient(contextId: bigint, ref: RRef<Tensor>): Promise<Plain> {
  const grad = distAutograd.getGradients(contextId).get(ref.localValue())
  if (grad?.isSparse !== true) throw new Error('the table has no sparse gradient in this context')
  return plain(toDense(grad))
}

export function linearHere(weight: RRef<Tensor>, bias: RRef<Tensor>, x: Tensor): Tensor {
  return linear(x, weight.localValue(), bias.localValue())
}

export async function backwardAccumulateGrads(inputs: Plains): Promise<Plains> {
  const [t1, t2] = [leaf(inputs.t1!), leaf(inputs.t2!)]
  return distAutograd.context(async (ctx) => {
    const loss = sum(await call('worker1', matmul, [t1, t2]))
    await ctx.backward([loss], { retainGraph: true })
    await ctx.backward([loss])
    return gradientsOf(ctx, { t1, t2 })
  })
}

export async function embeddingBagSparse({ table, weights: values }: Plains): Promise<Plains> {
  const ref = remote('worker1', makeLeaf, [table!])
  const weights = leaf(values!)
  return using([ref], () =>
    distAutograd.context(async (ctx) => {
      const ints = (list: readonly number[]): Tensor => tensor(Int32Array.from(list))
      const res = await call('worker1', bagHere, [ref, ints(BAG_INDICES), ints(BAG_OFFSETS), weights])
      const loss = sum(res)
      await ctx.backward([loss], { retainGraph: true })
      await ctx.backward([loss])
      const there = await call('worker1', readSparseGradient, [ctx.id, ref])
      return { ...(await gradientsOf(ctx, { weights })), there, res: await plain(res) }
    }),
  )
}

export async function gradientsSynchronizations(inputs: Plains): Promise<Plains> {
  const layers = [1, 2, 3].map((n) => {
    const on = `worker${n}`
    return { n, on, weight: remote(on, makeLeaf, [inputs[`w${n}`]!]), bias: remote(on, makeLeaf, [inputs[`b${n}`]!]) }
  })
  return using(
    layers.flatMap(({ weight, bias }) => [weight, bias]),
    () =>
      distAutograd.context(async (ctx) => {
        let x = leaf(inputs.x!).detach()
        for (const { on, weight, bias } of layers) x = await call(on, linearHere, [weight, bias, x])
        await ctx.backward([sum(x)])
        const out: Record<string, Plain> = { y: await plain(x) }
        for (const { n, on, weight, bias } of layers) {
          out[`w${n}`] = await call(on, readGradient, [ctx.id, weight])
          out[`b${n}`] = await call(on, readGradient, [ctx.id, bias])
        }
        return out
      }),
  )
}

expose({ bagHere, readSparseGradient, linearHere, backwardAccumulateGrads, embeddingBagSparse, gradientsSynchronizations })

export const layerCases: readonly NumberCase[] = [
  { name: 'backward_accumulate_grads', shows: 'case 46, two passes', main: backwardAccumulateGrads },
  { name: 'embedding_bag_with_no_grad_tensors', shows: 'case 49, sparse gradients of two passes', main: embeddingBagSparse },
  { name: 'gradients_synchronizations', shows: 'case 64, three layers on three workers', main: gradientsSynchronizations },
]
