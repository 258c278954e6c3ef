/**
 * Second and third derivatives over workers. PyTorch has none for distributed passes; the numbers are those of its local engine: the sums that a pass
 * with createGraph and a pass over its gradients leave.
 */
import { matmul, mean, mul, norm, pow, sub, sum, tanh } from '@postgrad/autograd'
import { type DistAutogradContext, distAutograd } from '@postgrad/dist-autograd'
import { call, expose, type RRef, remote } from '@postgrad/rpc'
import type { Tensor } from '@postgrad/tensor'
import { gradientsOf, leaf, type NumberCase, type Plains, plain, using } from './case.js'
import { makeLeaf, readGradient } from './parameters.js'

export function tanhOfProduct(t1: Tensor, t2: Tensor): Tensor {
  return tanh(matmul(t1, t2))
}

export function times(parameter: RRef<Tensor>, x: Tensor): Tensor {
  return matmul(x, parameter.localValue())
}

export function square(t: Tensor): Tensor {
  return mul(t, t)
}

export async function secondDerivatives(inputs: Plains): Promise<Plains> {
  const [t1, t2] = [leaf(inputs.t1!), leaf(inputs.t2!)]
  return distAutograd.context(async (ctx) => {
    const loss = sum(await call('worker1', tanhOfProduct, [t1, t2]))
    await ctx.backward([loss], { createGraph: true })
    const [g1, g2] = [ctx.gradients().get(t1)!, ctx.gradients().get(t2)!]
    // The penalty is made on other workers, so its own way back crosses them too.
    const [s1, s2] = await Promise.all([call('worker2', square, [g1]), call('worker1', square, [g2])])
    await ctx.backward([sum(s1), sum(s2)])
    return { ...(await gradientsOf(ctx, { t1, t2 })), loss: await plain(loss) }
  })
}

/** A discriminator of two layers, the first on worker1, the second on worker2, and the penalty on the gradient of its input. */
export async function secondDerivativesOfParameters({ x: values, w, v }: Plains): Promise<Plains> {
  const [first, second] = [remote('worker1', makeLeaf, [w!]), remote('worker2', makeLeaf, [v!])]
  const x = leaf(values!)
  return using([first, second], () =>
    distAutograd.context(async (ctx) => {
      const hidden = tanh(await call('worker1', times, [first, x]))
      const loss = sum(pow(await call('worker2', times, [second, hidden]), 2))
      await ctx.backward([loss], { createGraph: true })
      const penalty = mean(pow(sub(norm(ctx.gradients().get(x)!, 2, 1), 1), 2))
      await ctx.backward([penalty])
      const there = { w: await call('worker1', readGradient, [ctx.id, first]), v: await call('worker2', readGradient, [ctx.id, second]) }
      return { ...(await gradientsOf(ctx, { x })), ...there, loss: await plain(loss) }
    }),
  )
}

/** The pass's part of a gradient. */
async function added(ctx: DistAutogradContext, t: Tensor, roots: readonly Tensor[], createGraph: boolean): Promise<Tensor> {
  const before = ctx.gradients().get(t)
  await ctx.backward(roots, { createGraph, retainGraph: true })
  const after = ctx.gradients().get(t)!
  return before === undefined ? after : sub(after, before)
}

export async function thirdDerivatives({ t: values }: Plains): Promise<Plains> {
  const t = leaf(values!)
  return distAutograd.context(async (ctx) => {
    const fourth = await call('worker2', square, [await call('worker1', square, [t])])
    const g1 = await added(ctx, t, [sum(fourth)], true)
    const g2 = await added(ctx, t, [sum(g1)], true)
    const g3 = await added(ctx, t, [sum(g2)], false)
    return { sum: await plain(ctx.gradients().get(t)!), g3: await plain(g3) }
  })
}

expose({ tanhOfProduct, times, square, secondDerivatives, secondDerivativesOfParameters, thirdDerivatives })

export const secondDerivativeCases: readonly NumberCase[] = [
  { name: 'second_derivatives', shows: 'gradients of gradients of an operation elsewhere', main: secondDerivatives },
  { name: 'second_derivatives_of_parameters', shows: 'a gradient penalty over two workers', main: secondDerivativesOfParameters },
  { name: 'third_derivatives', shows: 'three passes, each over the gradients of the one before', main: thirdDerivatives },
]
