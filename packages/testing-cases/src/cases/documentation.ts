/** The programs of PyTorch's documents: the design note's example, and the end-to-end example with the distributed optimizer. */
import { add, mul, sum } from '@postgrad/autograd'
import { distAutograd } from '@postgrad/dist-autograd'
import { SGD } from '@postgrad/nn'
import { DistributedOptimizer } from '@postgrad/parallel'
import { call, expose, remote } from '@postgrad/rpc'
import type { Tensor } from '@postgrad/tensor'
import { gradientsOf, leaf, type NumberCase, type Plain, type Plains, plain, using } from './case.js'
import { makeLeaf, readGradient, readParameter } from './parameters.js'

/** worker0 adds on worker1, multiplies at home, sums. */
export function designNote(inputs: Plains): Promise<Plains> {
  return designNoteOn('worker1', inputs)
}

/** The same with another worker: all workers may run it at once, each with its next one. */
export async function designNoteOn(other: string, inputs: Plains): Promise<Plains> {
  return distAutograd.context(async (ctx) => {
    const [t1, t2, t4] = [leaf(inputs.t1!), leaf(inputs.t2!), leaf(inputs.t4!)]
    const t3 = await call(other, add, [t1, t2])
    const loss = sum(mul(t3, t4))
    await ctx.backward([loss])
    return { ...(await gradientsOf(ctx, { t1, t2, t4 })), loss: await plain(loss) }
  })
}

interface Training {
  readonly steps: number
  readonly lr: number
  readonly momentum?: number
  loss(p1: Tensor, p2: Tensor): Tensor
}

/** Two parameters on worker1, made by `remote`; each step in a context of its own. */
async function train({ t1, t2 }: Plains, { steps, lr, momentum = 0, loss: lossOf }: Training): Promise<Plains> {
  const ref1 = remote('worker1', makeLeaf, [t1!])
  const ref2 = remote('worker1', makeLeaf, [t2!])
  const optimizer = new DistributedOptimizer(SGD, [ref1, ref2], { lr, momentum })
  const out: Record<string, Plain> = {}
  return using([ref1, ref2, optimizer], async () => {
    for (let step = 0; step < steps; step++) {
      await distAutograd.context(async (ctx) => {
        const loss = lossOf(await ref1.toHere(), await ref2.toHere())
        await ctx.backward([loss])
        out[`g1_${step}`] = await call('worker1', readGradient, [ctx.id, ref1])
        out[`g2_${step}`] = await call('worker1', readGradient, [ctx.id, ref2])
        await optimizer.step(ctx)
        out[`loss_${step}`] = await plain(loss)
        out[`p1_${step}`] = await call('worker1', readParameter, [ref1])
        out[`p2_${step}`] = await call('worker1', readParameter, [ref2])
      })
    }
    return out
  })
}

export function endToEnd(inputs: Plains): Promise<Plains> {
  return train(inputs, { steps: 1, lr: 0.05, loss: (p1, p2) => sum(add(p1, p2)) })
}

export function endToEndMomentum(inputs: Plains): Promise<Plains> {
  return train(inputs, { steps: 3, lr: 0.05, momentum: 0.9, loss: (p1, p2) => sum(mul(p1, p2)) })
}

expose({ designNote, designNoteOn, endToEnd, endToEndMomentum })

export const documentationCases: readonly NumberCase[] = [
  { name: 'design_note', shows: "the design note's example", main: designNote },
  { name: 'end_to_end', shows: 'the end-to-end example with the distributed optimizer', main: endToEnd },
  { name: 'end_to_end_momentum', shows: 'three steps with momentum, which stays with the owner', main: endToEndMomentum },
]
