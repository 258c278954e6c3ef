/**
 * The smallest program in which the order of operations is not the same on every run: three branches that continue after awaits use one leaf. It shows why
 * sums follow the dataflow, and neither sequence numbers nor the n-th operation of the n-th call (Note [Causal order] in autograd's `input-order.ts`).
 */
import { expect, test } from '@jest/globals'
import type { Node } from '@postgrad/autograd/internal'
import { distAutograd } from '@postgrad/dist-autograd'
import { installDistAutograd } from '@postgrad/dist-autograd/internal'
import { call, expose } from '@postgrad/rpc'
import { currentRuntime } from '@postgrad/rpc/internal'
import { type Tensor, tensor } from '@postgrad/tensor'
import { expectClean } from '../check/expect-clean.js'
import { explore } from '../explore/explore.js'
import { inlined } from '../inlined/inlined.js'
import { simulate } from '../simulate/simulate.js'

const WORKERS = 4
const SEEDS = 30

const scaled = (x: Tensor, by: number): Tensor => x.mul(by)
const scaledEach = (x: Tensor, by: readonly number[]): Tensor => x.mul(tensor(by))
expose({ causalOrderScaled: scaled, causalOrderScaledEach: scaledEach })

interface Run {
  readonly grad: number
  /** Which branch made its product first, second, third. */
  readonly made: string
  /** Of the products. */
  readonly depths: readonly number[]
}

/** The leaf gets 1e8, 1 and -1e8, from products of equal depth: their sum is 0 or 1, as they are added up. */
function program(): Promise<Run> {
  return distAutograd.context(async (ctx) => {
    const [x, leaf] = [tensor(1, { requiresGrad: true }), tensor(1, { requiresGrad: true })]
    const products = await Promise.all([1e8, 1, -1e8].map(async (by, i) => (await call(1 + i, scaled, [x, by])).mul(leaf)))
    const nodes = products.map((product) => product.gradFn as Node)
    const made = [0, 1, 2].sort((a, b) => nodes[a]!.sequenceNr - nodes[b]!.sequenceNr).join()
    await ctx.backward([products.reduce((a, b) => a.add(b))])
    return { grad: ctx.gradients().get(leaf)!.itemSync(), made, depths: nodes.map(({ depth }) => depth) }
  })
}

async function overSeeds(ordered: boolean): Promise<readonly Run[]> {
  const runs: Run[] = []
  for (let seed = 0; seed < SEEDS; seed++) {
    const simulation = await simulate({ workers: WORKERS, seed }, (sim) =>
      sim.on('worker0').run(() => {
        installDistAutograd(currentRuntime()).engine.ordered = ordered
        return program()
      }),
    )
    expectClean(simulation)
    runs.push(simulation.result)
  }
  return runs
}

const distinct = (values: readonly unknown[]): number => new Set(values.map(String)).size

test(`DA-46 branches behind awaits of their own: ${SEEDS} orders of delivery give one sum, the inlined program's`, async () => {
  const oracle = await inlined({ workers: WORKERS }, (cluster) => cluster.on('worker0').run(program))
  const runs = await overSeeds(true)
  for (const [seed, { grad }] of runs.entries()) expect({ seed, grad }).toEqual({ seed, grad: oracle.grad })
})

test('DA-45 the order in which they were made differs from run to run, their depth does not', async () => {
  const runs = await overSeeds(true)
  expect(distinct(runs.map(({ made }) => made))).toBeGreaterThan(1)
  expect(distinct(runs.map(({ depths }) => depths))).toBe(1)
})

test('summed as they arrive the bits differ: the tests above can fail', async () => {
  expect(distinct((await overSeeds(false)).map(({ grad }) => grad))).toBeGreaterThan(1)
})

/** What the uses of one leaf multiply its two elements by: the two have their terms in different orders. */
const FACTORS = [
  [1e8, 1],
  [1, -1e8],
  [-1e8, 3],
  [3, 1e8],
  [0.1, 0.3],
]

/** Uses of one leaf by calls to two workers, all at once. */
const fan = (uses: number) => (): Promise<string> =>
  distAutograd.context(async (ctx) => {
    const leaf = tensor([1, 1], { requiresGrad: true })
    const products = await Promise.all(FACTORS.slice(0, uses).map((by, i) => call(`worker${1 + (i % 2)}`, scaledEach, [leaf, by])))
    await ctx.backward([products.reduce((a, b) => a.add(b)).sum()])
    return String(ctx.gradients().get(leaf)!.toArray())
  })

test.each([3, 4, 5])('DA-46 %d contributions to one leaf have the inlined program’s sum in all orders of delivery', async (uses) => {
  const main = fan(uses)
  const oracle = await inlined({ workers: 3 }, (cluster) => cluster.on('worker0').run(main))
  const found = await explore({ workers: 3, ordersMax: 30_000, seeds: 0 }, async (sim) => {
    const sum = await sim.on('worker0').run(main)
    expect(sum).toBe(oracle)
    return sum
  })
  process.stdout.write(`      ${uses} contributions: ${found.text}\n`)
  expect(found).toMatchObject({ exhausted: true, outcomes: 1 })
})
