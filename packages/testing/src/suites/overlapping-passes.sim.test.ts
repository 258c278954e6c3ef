/** Passes of one context that run at once: their gradients are summed to the same bits in every order of delivery, on the root and elsewhere. */
import { expect, test } from '@jest/globals'
import { type DistAutogradContext, distAutograd } from '@postgrad/dist-autograd'
import { call, expose, workerLocal } from '@postgrad/rpc'
import { type Tensor, tensor } from '@postgrad/tensor'
import { expectClean } from '../check/expect-clean.js'
import { explore } from '../explore/explore.js'
import { inlined } from '../inlined/inlined.js'
import type { TestCluster } from '../simulate/cluster.js'
import { simulate } from '../simulate/simulate.js'

const WORKERS = 4
/** `npm run soak -- --seeds 10000 overlapping` takes more. */
const SEEDS = Number(process.env.POSTGRAD_SOAK_SEEDS ?? 120)
/** Of the larger program. */
const LARGE_SEEDS = Math.ceil(SEEDS / 6)

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

test(`DA-48 passes at once, between passes alone: ${LARGE_SEEDS} orders of delivery give one sum on every worker, the inlined program's`, async () => {
  const oracle = await inlined({ workers: WORKERS }, run)
  for (let seed = 0; seed < LARGE_SEEDS; seed++) {
    const simulation = await simulate({ workers: WORKERS, seed }, run)
    expectClean(simulation)
    expect({ seed, read: simulation.result }).toEqual({ seed, read: oracle })
  }
})

/** The sum of 1e8 - 1e8 + 1 depends on its order (float32). */
const LARGE_AND_SMALL = [1e8, -1e8, 1] as const

const same = (x: Tensor): Tensor => x
const scaledWeight = (by: number): Tensor => weight().mul(by)
const backwardHere = async (y: Tensor): Promise<void> => distAutograd.currentContext()!.backward([y.sum()])
expose({ overlapSame: same, overlapScaled: scaledWeight, overlapBackward: backwardHere })

/** Each pass is begun without awaiting the one before: whether they overlap is the machine's choice. */
const begunAtOnce = (): Promise<Sums> =>
  distAutograd.context(async (ctx) => {
    const x = tensor(1, { requiresGrad: true })
    const y = await call('worker1', same, [x])
    const passes: Promise<void>[] = []
    for (const by of LARGE_AND_SMALL) {
      passes.push(ctx.backward([y.mul(by)], { retainGraph: true }))
      await call('worker2', same, [tensor(0)])
    }
    await Promise.all(passes)
    return { x: ctx.gradients().get(x)!.itemSync() }
  })

/** One after the other, each awaited, with another worker as root of each: the leaf's worker learns of their ends in any order. */
const ofSeveralRoots = (): Promise<Sums> =>
  distAutograd.context(async () => {
    for (const [i, by] of LARGE_AND_SMALL.entries()) await call(`worker${1 + i}`, backwardHere, [await call('worker4', scaledWeight, [by])])
    return { weight: await call('worker4', gradientHere, []) }
  })

/** Two workers begin passes at once over a leaf of a third, and the maker of the context does so as well. */
const atOnceFromSeveral = (): Promise<Sums> =>
  distAutograd.context(async (ctx) => {
    const make = async (by: number) => await call('worker2', scaledWeight, [by])
    const [large, less, small] = [await make(1e8), await make(-1e8), await make(1)]
    await Promise.all([call('worker1', backwardHere, [large]), ctx.backward([less.sum()]), call('worker1', backwardHere, [small])])
    return { weight: await call('worker2', gradientHere, []) }
  })

test.each([
  ['begun without awaiting each other', 3, begunAtOnce],
  ['of several roots, one after the other', 5, ofSeveralRoots],
  ['of several roots, at once', 3, atOnceFromSeveral],
] as const)(`DA-48 passes %s: the inlined program’s sum in ${SEEDS} orders of delivery`, async (_, workers, main) => {
  const oracle = await inlined({ workers }, (cluster) => cluster.on('worker0').run(main))
  for (let seed = 0; seed < SEEDS; seed++) {
    const simulation = await simulate({ workers, seed }, (cluster) => cluster.on('worker0').run(main))
    expect({ seed, sums: simulation.result }).toEqual({ seed, sums: oracle })
  }
})

/** Three passes that are begun without awaiting each other, over one worker. */
const threeAtOnce = (): Promise<Sums> =>
  distAutograd.context(async (ctx) => {
    const y = await call('worker1', scaledWeight, [3])
    const passes = [1e8, -1e8, 1].map((by) => ctx.backward([y.mul(by)], { retainGraph: true }))
    await Promise.all(passes)
    return { weight: await call('worker1', gradientHere, []) }
  })

/** Three roots take turns over a leaf of the maker of the context. */
const rootsTakeTurns = (): Promise<Sums> =>
  distAutograd.context(async (ctx) => {
    const x = tensor(1, { requiresGrad: true })
    for (const [i, by] of LARGE_AND_SMALL.entries()) {
      if (i === 1) await ctx.backward([(await call('worker1', same, [x])).mul(by)])
      else await call(`worker${1 + (i % 2)}`, backwardHere, [x.mul(by)])
    }
    return { x: ctx.gradients().get(x)!.itemSync() }
  })

test.each([
  ['three of one root, at once, over one worker', 2, threeAtOnce, 'seeded'],
  ['of three roots in turn', 3, rootsTakeTurns, 'seeded'],
  ['of two roots, at once', 3, atOnceFromSeveral, 'alone'],
] as const)('DA-48 all orders of passes %s have the inlined program’s sum', async (name, workers, main, arrival) => {
  const oracle = await inlined({ workers }, (cluster) => cluster.on('worker0').run(main))
  const found = await explore({ workers, ordersMax: 30_000, seeds: 0, world: { arrival } }, async (sim) => {
    const sums = await sim.on('worker0').run(main)
    expect(sums).toEqual(oracle)
    return sums
  })
  process.stdout.write(`      ${name}: ${found.text}\n`)
  expect(found).toMatchObject({ exhausted: true, outcomes: 1 })
})
