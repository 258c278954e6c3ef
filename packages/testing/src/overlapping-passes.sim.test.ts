/** Passes of one context that run at once: their gradients are summed to the same bits in every order of delivery, on the root and elsewhere. */
import { expect, test } from '@jest/globals'
import { type DistAutogradContext, distAutograd } from '@postgrad/dist-autograd'
import { call, expose, workerLocal } from '@postgrad/rpc'
import { type Tensor, tensor } from '@postgrad/tensor'
import type { TestCluster } from './cluster.js'
import { expectClean } from './expect-clean.js'
import { inlined } from './inlined.js'
import { simulate } from './simulate.js'

const SEEDS = 40

const weight = workerLocal(() => tensor(1, { requiresGrad: true }))
const weighted = (x: Tensor, by: number): Tensor => x.mul(weight()).mul(by)
/** By another worker, so that word of a pass may come before the end of an earlier one. */
const weightedThere = async (x: Tensor, by: number): Promise<Tensor> => await call('worker2', weighted, [x, by])
const gradientHere = (): number => distAutograd.currentContext()!.gradients().get(weight())!.itemSync()
expose({ overlapWeighted: weighted, overlapWeightedThere: weightedThere, overlapGradient: gradientHere })

type Sums = Record<string, number>

/** Of the root's leaf and of both weights. */
async function sums(ctx: DistAutogradContext, x: Tensor): Promise<Sums> {
  const [w1, w2] = await Promise.all(['worker1', 'worker2'].map((worker) => call(worker, gradientHere, [])))
  return { x: ctx.gradients().get(x)!.itemSync(), w1: w1!, w2: w2! }
}

/** One pass alone, four at once, one alone: what is read after each, as added up in which order decides what is left of the 1 and the 3. */
function program(): Promise<Sums[]> {
  return distAutograd.context(async (ctx) => {
    const x = tensor(1, { requiresGrad: true })
    const loss = async (by: number) => (await call('worker1', weighted, [x, by])).add(await call('worker1', weightedThere, [x, by]))
    const losses: Tensor[] = []
    for (const by of [3, 1e8, 1, -1e8, 5, 7]) losses.push(await loss(by))
    const read: Sums[] = []
    const [first, ...rest] = losses as [Tensor, ...Tensor[]]
    const last = rest.pop()!
    await ctx.backward([first], { retainGraph: true })
    read.push(await sums(ctx, x))
    await Promise.all(rest.map((one) => ctx.backward([one], { retainGraph: true })))
    read.push(await sums(ctx, x))
    await ctx.backward([last])
    read.push(await sums(ctx, x))
    return read
  })
}

const run = (cluster: TestCluster): Promise<Sums[]> => cluster.on('worker0').run(program)

test(`DA-48 passes at once, between passes alone: ${SEEDS} orders of delivery give one sum on every worker, the inlined program's`, async () => {
  const oracle = await inlined({ workers: 3 }, run)
  for (let seed = 0; seed < SEEDS; seed++) {
    const simulation = await simulate({ workers: 3, seed }, run)
    expectClean(simulation)
    expect({ seed, read: simulation.result }).toEqual({ seed, read: oracle })
  }
})
