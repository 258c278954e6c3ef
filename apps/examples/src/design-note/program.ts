/**
 * The two programs of PyTorch's documents on distributed autograd: the one whose graph the design note draws, and the end-to-end one with
 * references and the distributed optimizer, which every worker runs at once.
 */
import { add, call, DistributedOptimizer, distAutograd, expose, rand, remote, reportProgress, type Tensor } from 'postgrad'
import { SGD } from 'postgrad/optim'

const myAdd = (a: Tensor, b: Tensor): Tensor => add(a, b)

/** On worker0: t3 is computed on worker1, and the backward pass finds its way there and back. */
export async function designNote() {
  return distAutograd.context(async (ctx) => {
    const t1 = rand([3, 3], { requiresGrad: true })
    const t2 = rand([3, 3], { requiresGrad: true })
    const t3 = await call('worker1', myAdd, [t1, t2])
    const t4 = rand([3, 3], { requiresGrad: true })
    const loss = t3.mul(t4).sum()
    await ctx.backward([loss])
    const grads = ctx.gradients()
    const values = [t1, t2, t4].map((t) => t.detach())
    return { values, gradients: [t1, t2, t4].map((t) => grads.get(t)!), loss: await loss.item() }
  })
}

const randomTensor = (): Tensor => rand([3, 3], { requiresGrad: true })

/**
 * Two tensors live on the neighbour; the loss is the sum of all their elements, and the optimizer steps them where they live. Gives the loss of each
 * step, and what is left at the end.
 */
export async function endToEnd(neighbour: string, steps: number, lr: number): Promise<number[]> {
  using rref1 = remote(neighbour, randomTensor)
  using rref2 = remote(neighbour, randomTensor)
  using optimizer = new DistributedOptimizer(SGD, [rref1, rref2], { lr })
  const sum = async () => add(await rref1.toHere(), await rref2.toHere()).sum()
  const losses: number[] = []
  for (let step = 0; step < steps; step++) {
    const loss = await distAutograd.context(async (ctx) => {
      const loss = await sum()
      await ctx.backward([loss])
      await optimizer.step(ctx)
      return loss.item()
    })
    losses.push(loss)
    reportProgress({ done: step + 1, total: steps, text: `loss ${loss.toFixed(3)}` })
  }
  return [...losses, await (await sum()).item()]
}

expose({ myAdd, designNote, randomTensor, endToEnd })
