/** Passes of one context that run at once: their gradients are summed to the same bits in every order of delivery, on the root and elsewhere. */
import { expect, test } from '@jest/globals'
import { type DistAutogradContext, distAutograd } from '@postgrad/dist-autograd'
import { call, expose, workerLocal } from '@postgrad/rpc'
import { type Tensor, tensor } from '@postgrad/tensor'
import type { TestCluster } from './cluster.js'
import { expectClean } from './expect-clean.js'
import { inlined } from './inlined.js'
import { simulate } from './simulate.js'

const WORKERS = 4
const SEEDS = 40

const weight = workerLocal(() => tensor(1, { requiresGrad: true }))
const weighted = (x: Tensor, by: number): Tensor => x.mul(weight()).mul(by)
/** Over another worker, so that passes overtake each other on their way. */
const weightedThere = async (x: Tensor, by: number): Promise<Tensor> => (await call('worker3', weighted, [x, by])).mul(weight())
const gradientHere = (): number => distAutograd.currentContext()!.gradients().get(weight())!.itemSync()
expose({ overlapWeighted: weighted, overlapWeightedThere: weightedThere, overlapGradient: gradientHere })

type Sums = Record<string, number>

/** Of the root's leaf and of the weights. */
async function sums(ctx: DistAutogradContext, x: Tensor): Promise<Sums> {
  const read = async (worker: string): Promise<[string, number]> => [worker, await call(worker, gradientHere, [])]
  return { x: ctx.gradients().get(x)!.itemSync(), ...Object.fromEntries(await Promise.all(['worker1', 'worker2', 'worker3'].map(read))) }
}

/** Two passes alone, four at once, one alone: what is left of the small numbers depends on the order in which they meet the large ones. */
function program(): Promise<Sums[]> {
  return distAutograd.context(async (ctx) => {
    const x = tensor(1, { requiresGrad: true })
    const losses: Tensor[] = []
    for (const [i, by] of [3, 11, 1e8, 1, -1e8, 5, 7].entries()) losses.push(await call(`worker${1 + (i % 2)}`, weightedThere, [x, by]))
    const read: Sums[] = []
    const pass = (...some: Tensor[]) => Promise.all(some.map((loss) => ctx.backward([loss], { retainGraph: true })))
    const [one, two, ...rest] = losses as [Tensor, Tensor, ...Tensor[]]
    const last = rest.pop()!
    for (const alone of [one, two]) await pass(alone)
    read.push(await sums(ctx, x))
    await pass(...rest)
    read.push(await sums(ctx, x))
    await pass(last)
    read.push(await sums(ctx, x))
    return read
  })
}

const run = (cluster: TestCluster): Promise<Sums[]> => cluster.on('worker0').run(program)

test(`DA-48 passes at once, between passes alone: ${SEEDS} orders of delivery give one sum on every worker, the inlined program's`, async () => {
  const oracle = await inlined({ workers: WORKERS }, run)
  for (let seed = 0; seed < SEEDS; seed++) {
    const simulation = await simulate({ workers: WORKERS, seed }, run)
    expectClean(simulation)
    expect({ seed, read: simulation.result }).toEqual({ seed, read: oracle })
  }
})
