import { readFileSync } from 'node:fs'
import { expect, test } from '@jest/globals'
import { noGrad } from '@postgrad/autograd'
import { distAutograd } from '@postgrad/dist-autograd'
import {
  BatchNorm1d,
  BatchNorm2d,
  type BatchNormModuleOptions,
  Conv2d,
  Flatten,
  Linear,
  MaxPool2d,
  Module,
  ModuleList,
  parameter,
  ReLU,
  Sequential,
  SGD,
  Tanh,
} from '@postgrad/nn'
import { allReduce, initProcessGroup, newGroup, recv } from '@postgrad/process-group'
import { ones, type Tensor, tensor, zeros } from '@postgrad/tensor'
import { raw } from '@postgrad/tensor/internal'
import { DistributedDataParallel } from '../ddp/distributed-data-parallel.js'
import { numbers as formula } from '../ddp/golden.suite.js'
import { seeded } from '../ddp/models.suite.js'
import { expectErrorsOfSurvivors, failure, overSeeds } from '../ddp/sim-ranks.suite.js'
import { convertSyncBatchNorm, SyncBatchNorm } from './sync-batch-norm.js'
import { batchOf, expectClose, numbers, onOneRank, stateOf, trainedTogether } from './sync-norm.suite.js'

const SMALL = { firstBucketMb: 1e-4, bucketCapMb: 1e-4 }
/** By rank. Uneven batches must count by rows, and a rank may have none. */
const ROWS = [
  [4, 4],
  [3, 1, 5],
  [2, 0, 3, 1],
]
const OPTIONS: readonly BatchNormModuleOptions[] = [
  {},
  { momentum: null },
  { affine: false, eps: 1e-3, momentum: 0.3 },
  { trackRunningStats: false },
]

test('SBN-1, SBN-3 outputs, gradients, parameters and running statistics are those of a plain batch norm of the joined batch', async () => {
  for (const [i, rows] of ROWS.entries()) {
    for (const options of i === 1 ? OPTIONS : OPTIONS.slice(0, 1)) {
      for (const places of [[], [3], [2, 3]]) {
        const want = await onOneRank(rows, places, options, 'float64')
        const got = await overSeeds(rows.length, (rank) => trainedTogether(rank, rows, places, options, 'float64', SMALL))
        for (const [rank, { outputs, inputGrads, state, evaluated }] of got.entries()) {
          for (const [step, values] of outputs.entries()) expectClose(values, want.outputs[step]![rank]!)
          for (const [step, values] of inputGrads.entries()) expectClose(values, want.inputGrads[step]![rank]!)
          expectClose(state, want.state)
          expectClose(evaluated, want.evaluated)
          // To the last bit, on all ranks.
          expect(state).toEqual(got[0]!.state)
        }
      }
    }
  }
})

test('SBN-1 values far from 0, and very large ones, lose no more than in one place', async () => {
  const rows = [3, 1, 5]
  const far = (x: Tensor): Tensor => raw.add(x, 1e4)
  const large = (x: Tensor): Tensor => raw.mul(x, 3e20)
  for (const change of [far, large]) {
    const batches = rows.map((count, rank) => change(batchOf(rank, 0, count, [4], 'float32')))
    const joined = raw.cat(batches)
    const got = await overSeeds(3, async (rank) => numbers(await new SyncBatchNorm(4).forward(batches[rank]!)))
    const reference = numbers(new BatchNorm1d(4, { dtype: 'float64' }).forward(raw.to(joined, 'float64')))
    const distance = (values: readonly number[]): number => Math.max(...values.map((value, i) => Math.abs(value - reference[i]!)))
    const inOnePlace = distance(numbers(new BatchNorm1d(4).forward(joined)))
    // Outputs are up to about 2 and are rounded once, to half of 2^-23 of that.
    expect(inOnePlace).toBeLessThan(3e-7)
    expect(distance(got.flat())).toBeLessThan(3e-7)
  }
  // As the two values of a plain batch norm.
  for (const values of await overSeeds(2, async () => numbers(await new SyncBatchNorm(1).forward(tensor([[3e20], [-3e20]])))))
    expect(values).toEqual([1, -1])
})

/** Branches whose layers wait for others at once, begun in one order or the other, and a layer that is used twice. */
class Branches extends Module {
  readonly ins = new ModuleList([0, 1, 2].map(() => new Linear(4, 4)))
  readonly norms: Module
  readonly shared: BatchNorm1d = new BatchNorm1d(4)
  constructor() {
    super()
    this.norms = new ModuleList([0, 1, 2].map(() => new BatchNorm1d(4)))
  }
  async forward(x: Tensor, isTurned: boolean): Promise<Tensor> {
    const norms = [...(this.norms as ModuleList<BatchNorm1d>)]
    const places = isTurned ? [2, 1, 0] : [0, 1, 2]
    const ys: Tensor[] = []
    await Promise.all(
      places.map(async (i) => {
        ys[i] = (await norms[i]!.forward(this.ins.at(i)!.forward(x))).tanh()
      }),
    )
    const [a, b] = await Promise.all([this.shared.forward(ys[0]!), this.shared.forward(ys[1]!.add(ys[2]!))])
    return a!.mul(b!).add(x)
  }
}

test('SBN-2, SBN-4 layers that wait at once do not meet each other, whichever a rank begins first: the same bits in each order of delivery, outside and inside of contexts', async () => {
  const results: unknown[] = []
  for (let seed = 1; seed <= 12; seed++) {
    for (const isInside of [false, true]) {
      const got = await overSeeds(
        3,
        async (rank) => {
          const model = await DistributedDataParallel.create(convertSyncBatchNorm(seeded(5, () => new Branches())), SMALL)
          const found: number[][] = []
          for (let step = 0; step < 3; step++) {
            model.zeroGrad()
            const loss = (await model.forward(batchOf(rank, step, 2 + rank, [4], 'float32'), rank === 1)).square().mean()
            if (isInside)
              await distAutograd.context(async (ctx) => {
                await ctx.backward([loss])
                found.push(...model.parameters().map((p) => numbers(ctx.gradients().get(p)!)))
              })
            else {
              await model.backward(loss)
              found.push(...model.parameters().map(({ grad }) => numbers(grad!)))
            }
          }
          return [...found, stateOf(model)]
        },
        1,
        { timeoutMs: 5_000 },
      )
      for (const each of got) expect(each).toEqual(got[0])
      results.push(got[0])
    }
  }
  // A context adds up contributions in an order of its own.
  for (const [i, each] of results.entries()) expect(each).toEqual(results[i % 2])
})

test('SBN-4 passes over several forwards of one layer may come in any order', async () => {
  await overSeeds(2, async (rank) => {
    const model = await DistributedDataParallel.create(new SyncBatchNorm(4))
    await model.noSync(async () => {
      const xs = [0, 1].map((step) => parameter(batchOf(rank, step, 3, [4], 'float32')))
      const losses: Tensor[] = []
      for (const x of xs) losses.push((await model.forward(x)).square().mul(x).sum())
      const order = rank === 0 ? [0, 1] : [1, 0]
      await Promise.all(order.map((i) => model.backward(losses[i]!)))
      const got = xs.map(({ grad }) => numbers(grad!))
      for (const [i, x] of xs.entries()) {
        x.grad = null
        await model.forward(x).then(async (y) => model.backward(y.square().mul(x).sum()))
        expect(numbers(x.grad!)).toEqual(got[i])
      }
    })
  })
})

test('SBN-2 a pass over a graph that was kept gives the same gradients again, and what needs no gradient of its input sends nothing back', async () => {
  await overSeeds(2, async (rank) => {
    const norm = new SyncBatchNorm(4)
    const model = await DistributedDataParallel.create(norm)
    const x = parameter(batchOf(rank, 0, 3, [4], 'float32'))
    const loss = (await model.forward(x))
      .square()
      .mul(0.5)
      .mul(batchOf(rank, 1, 3, [4], 'float32'))
      .sum()
    await model.noSync(async () => {
      await model.forward(x)
      await model.forward(x)
      await model.backward(loss, { retainGraph: true })
      const first = numbers(x.grad!)
      x.grad = null
      await model.backward(loss)
      expect(numbers(x.grad!)).toEqual(first)
    })
    const bias = norm.bias!
    bias.grad = null
    await model.backward((await model.forward(x.detach())).sum())
    expect(numbers(bias.grad!)).toEqual([3, 3, 3, 3])
  })
})

test('SBN-5 conversion keeps tensors, names, settings and what is shared, at any depth', async () => {
  await overSeeds(2, async (_, group) => {
    const shared = new BatchNorm2d(3, { momentum: null, eps: 1e-3, affine: false })
    class Deep extends Module {
      readonly one = new Sequential(new Linear(4, 4), new BatchNorm1d(4), new Tanh())
      readonly map = new Map([['a', shared]])
      readonly again = shared
    }
    const deep = new Deep()
    deep.one.at(1).eval()
    const before = deep.stateDict()
    const [parameters, buffers, names] = [deep.parameters(), deep.buffers(), deep.namedModules().map(([name]) => name)]
    expect(convertSyncBatchNorm(deep, group)).toBe(deep)
    expect(deep.parameters()).toEqual(parameters)
    for (const [i, each] of deep.parameters().entries()) expect(each).toBe(parameters[i])
    for (const [i, each] of deep.buffers().entries()) expect(each).toBe(buffers[i])
    expect(Object.keys(deep.stateDict())).toEqual(Object.keys(before))
    expect(deep.namedModules().map(([name]) => name)).toEqual(names)
    const [first, second] = [deep.one.at(1) as unknown as SyncBatchNorm, deep.again as unknown as SyncBatchNorm]
    for (const each of [first, second]) expect(each).toBeInstanceOf(SyncBatchNorm)
    expect(deep.map.get('a')).toBe(second)
    expect([first.training, second.training, second.momentum, second.eps, second.weight]).toEqual([false, true, null, 1e-3, null])
    expect(String(second)).toBe('SyncBatchNorm(numFeatures=3, eps=0.001, momentum=null, affine=false, trackRunningStats=true)')
    // A converted one stays.
    expect(convertSyncBatchNorm(first)).toBe(first)
    const one: SyncBatchNorm = convertSyncBatchNorm(new BatchNorm1d(2))
    expect(one).toBeInstanceOf(SyncBatchNorm)
    expect(() => convertSyncBatchNorm(3 as never)).toThrow('a module')
  })
})

test('SBN-6 in eval, and alone in its group, a layer waits for nobody', async () => {
  await overSeeds(2, async (rank) => {
    const norm = new SyncBatchNorm(4)
    const plain = new BatchNorm1d(4)
    const x = batchOf(rank, 0, 3, [4], 'float32')
    if (rank === 0) {
      expect(numbers(await norm.eval().forward(x))).toEqual(numbers(plain.eval().forward(x)))
      const own = new SyncBatchNorm(4, { trackRunningStats: false }).eval()
      expect(numbers(await own.forward(x))).toEqual(numbers(new BatchNorm1d(4).forward(x)))
    }
    const groups = [await newGroup([0]), await newGroup([1])]
    const alone = new SyncBatchNorm(4, { processGroup: groups[rank]! })
    const y = await alone.forward(x.requiresGrad_())
    y.square().sum().backward()
    expect(numbers(y)).toEqual(numbers(new BatchNorm1d(4).forward(x)))
  })
})

test('SBN-7 what cannot be is a typed error', async () => {
  await overSeeds(2, async (rank) => {
    const norm = new SyncBatchNorm(4)
    expect(await failure(norm.forward(ones([4])))).toMatchObject({ code: 'SHAPE_MISMATCH' })
    expect(await failure(norm.forward(ones([2, 3])))).toMatchObject({ code: 'SHAPE_MISMATCH' })
    expect(await failure(norm.forward(ones([2, 4], { dtype: 'float64' })))).toMatchObject({ code: 'DTYPE_MISMATCH' })
    // One row in all, on both ranks alike.
    expect(await failure(norm.forward(zeros([rank, 4])))).toMatchObject({
      code: 'SHAPE_MISMATCH',
      message: expect.stringContaining('more than one value'),
    })
    const y = await norm.forward(batchOf(rank, 0, 2, [4], 'float32').requiresGrad_())
    expect(() => y.sum().backward()).toThrow(expect.objectContaining({ code: 'SYNC_BATCH_NORM_BACKWARD' }))
    expect(() => new SyncBatchNorm(4, { momentun: 1 } as never)).toThrow('momentun')
    expect(() => new SyncBatchNorm(4, { processGroup: 3 as never })).toThrow('a process group')
    await noGrad(() => norm.forward(ones([2, 4])))
    expect((await noGrad(() => norm.forward(ones([2, 4])))).requiresGrad).toBe(false)
  })
})

test('SBN-9 all ranks with empty batches have empty results and gradients of zero, and go on', async () => {
  await overSeeds(2, async (rank) => {
    const norm = new SyncBatchNorm(4)
    const y = await norm.forward(zeros([0, 4], { requiresGrad: true }))
    y.sum().backward()
    expect([y.shape, norm.weight!.grad!.toArray(), norm.bias!.grad!.toArray()]).toEqual([
      [0, 4],
      [0, 0, 0, 0],
      [0, 0, 0, 0],
    ])
    expect([norm.runningMean!.toArray(), norm.numBatchesTracked!.itemSync()]).toEqual([[0, 0, 0, 0], 1])
    expect((await norm.forward(batchOf(rank, 0, 2, [4], 'float32'))).shape[1]).toBe(4)
  })
})

test('SBN-8 a rank that does not come, or has other channels, breaks the group for all', async () => {
  await overSeeds(
    2,
    async (rank) => {
      const norm = new SyncBatchNorm(4)
      if (rank === 0) expect(await failure(norm.forward(ones([2, 4])))).toMatchObject({ code: 'COLLECTIVE_TIMEOUT' })
      else expect(await failure(recv(zeros([1]), 0, { timeoutMs: 1000 }))).toMatchObject({ code: 'GROUP_BROKEN' })
      expect(await failure(norm.forward(ones([2, 4])))).toMatchObject({ code: 'GROUP_BROKEN' })
    },
    1,
    { timeoutMs: 10 },
  )
  await overSeeds(2, async (rank) => {
    const norm = new SyncBatchNorm(4 + rank)
    const error = await failure(norm.forward(ones([2, 4 + rank])))
    expect(['COLLECTIVE_MISMATCH', 'GROUP_BROKEN']).toContain((error as { code: string }).code)
  })
})

const golden = JSON.parse(readFileSync(new URL('../../golden/sync-batch-norm.json', import.meta.url), 'utf8')) as {
  readonly start: Readonly<Record<string, GoldenValues>>
  readonly cases: readonly {
    readonly rows: readonly number[]
    readonly momentum: number | null
    readonly affine: boolean
    readonly losses: readonly number[]
    readonly evaluated: GoldenValues
    readonly state: Readonly<Record<string, GoldenValues>>
  }[]
}
interface GoldenValues {
  readonly shape: readonly number[]
  readonly values: readonly number[]
}

test.each(golden.cases.map((each) => [each.rows.join(', '), each] as const))(
  'SBN-3 30 steps of ranks with %s rows are those of PyTorch with the joined batch',
  async (_, { rows, momentum, affine, losses, evaluated, state }) => {
    const total = rows.reduce((sum, count) => sum + count, 0)
    const shape = [1, 8, 8]
    await overSeeds(rows.length, async (rank) => {
      const net = new Sequential(
        ...[new Conv2d(1, 3, 3, { padding: 1 }), new BatchNorm2d(3, { momentum, affine }), new ReLU(), new MaxPool2d(2)],
        ...[new Conv2d(3, 4, 3, { padding: 1 }), new BatchNorm2d(4, { momentum, affine, eps: 1e-3 }), new Tanh(), new Flatten()],
        ...[new Linear(64, 6), new BatchNorm1d(6, { momentum, affine })],
      )
      net.to('float64')
      const known = new Set(net.namedParameters().map(([name]) => name))
      const start = Object.entries(golden.start).filter(([name]) => known.has(name))
      const made = start.map(([name, each]) => [name, tensor(Float64Array.from(each.values)).reshape(each.shape).detach()] as const)
      net.loadStateDict(Object.fromEntries(made), { strict: false })
      const model = await DistributedDataParallel.create(convertSyncBatchNorm(net), SMALL)
      const optimizer = new SGD(model.parameters(), { lr: 0.05, momentum: 0.9 })
      for (let step = 0; step < 30; step++) {
        optimizer.zeroGrad()
        const y = await model.forward(formula([rows[rank]!, ...shape], rank, step))
        const loss = y
          .sub(formula([rows[rank]!, 6], rank, step + 1000))
          .square()
          .sum()
          .mul(rows.length / (6 * total))
        await model.backward(loss)
        optimizer.step()
        if (step % 5 === 4) {
          const sum = loss.detach().clone()
          await allReduce(sum)
          expectClose(numbers(raw.mul(sum, 1 / rows.length)), [losses[(step - 4) / 5]!], 1e-9)
        }
      }
      const got = net.stateDict()
      expect(Object.keys(got).sort()).toEqual(Object.keys(state).sort())
      for (const [name, { values }] of Object.entries(state)) expectClose(numbers(got[name]!), values, 1e-8)
      net.eval()
      expectClose(numbers(await net.forward(formula([3, ...shape], 9, 9))), evaluated.values, 1e-8)
    })
  },
)

test("DDP-22, SBN-8 with uneven inputs all end when the first rank has none (PyTorch's uneven_inputs_stop_iteration_sync_bn)", async () => {
  await overSeeds(3, async (rank) => {
    const model = await DistributedDataParallel.create(convertSyncBatchNorm(seeded(5, () => new Branches())), SMALL)
    let done = 0
    const error = await failure(
      model.join(
        async () => {
          for (; done < 2 + rank; done++)
            await model.backward((await model.forward(batchOf(rank, done, 3, [4], 'float32'), false)).square().mean())
        },
        { throwOnEarlyTermination: true },
      ),
    )
    expect(error).toMatchObject({ code: 'JOIN_TERMINATED' })
    expect(done).toBe(2)
  })
})

test('SBN-8 when a rank dies in the middle the others have an error, in whatever moment', () =>
  expectErrorsOfSurvivors(40, async (rank) => {
    await initProcessGroup()
    const model = await DistributedDataParallel.create(convertSyncBatchNorm(seeded(5, () => new Branches())), SMALL)
    for (let step = 0; step < 4; step++)
      await model.backward((await model.forward(batchOf(rank, step, 3, [4], 'float32'), rank === 1)).square().mean())
  }))
