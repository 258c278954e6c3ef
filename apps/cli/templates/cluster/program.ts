/** The program that every worker loads. Three workers hold a third of the data each, and the fourth learns a straight line through all of it. */
import { call, currentWorker, distAutograd, expose, Generator, mseLoss, stack, type Tensor, tensor, workerLocal, zeros } from 'postgrad'
import { SGD } from 'postgrad/optim'

export const KEEPERS = ['keeper1', 'keeper2', 'keeper3']

/** Points near y = 3x − 2, which no other worker sees. */
const data = workerLocal(() => {
  const random = new Generator(KEEPERS.indexOf(currentWorker().info.name))
  const xs = Array.from({ length: 100 }, () => 2 * random.uniform() - 1)
  return { xs: tensor(xs), ys: tensor(xs.map((x) => 3 * x - 2 + 0.1 * (random.uniform() - 0.5))) }
})

/** On a keeper: how far the line is from this keeper's points. */
const lossHere = (slope: Tensor, offset: Tensor): Tensor => mseLoss(data().xs.mul(slope).add(offset), data().ys)

/** On the learner: each step asks all keepers at once, and one backward pass runs through all of them. */
export async function main(steps: number) {
  const slope = zeros([], { requiresGrad: true })
  const offset = zeros([], { requiresGrad: true })
  const optimizer = new SGD([slope, offset], { lr: 0.3 })
  const losses: number[] = []
  for (let step = 0; step < steps; step++) {
    await distAutograd.context(async (ctx) => {
      const parts = await Promise.all(KEEPERS.map((name) => call(name, lossHere, [slope, offset])))
      const loss = stack(parts).mean()
      await ctx.backward([loss])
      optimizer.step(ctx.gradients())
      losses.push(await loss.item())
    })
  }
  return { losses, slope: slope.detach(), offset: offset.detach() }
}

expose({ lossHere, main })
