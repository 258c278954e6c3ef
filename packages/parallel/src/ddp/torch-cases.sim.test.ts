/**
 * PyTorch's own tests of DistributedDataParallel (`test_c10d_gloo.py`, `distributed_test.py`) that no other file has; the name after the rule is PyTorch's. The others: bucket assignment in
 * `bucket-assignment.test.ts`, reducer and hooks in `reducer*.sim.test.ts`, uneven inputs in `join.sim.test.ts`, contexts in `under-dist-autograd.sim.test.ts`.
 */
import { expect, test } from '@jest/globals'
import { checkpoint, defineFunction, noGrad } from '@postgrad/autograd'
import { distAutograd } from '@postgrad/dist-autograd'
import { Embedding, Linear, Module, ModuleList, parameter, SGD } from '@postgrad/nn'
import { ones, type Tensor, tensor } from '@postgrad/tensor'
import { isSparse, raw, toDense } from '@postgrad/tensor/internal'
import { allReduceHook } from './comm-hooks.js'
import { DistributedDataParallel, type DistributedDataParallelOptions } from './distributed-data-parallel.js'
import { batchOf, grads, lossOf, seeded, values } from './models.suite.js'
import { failure, overSeeds } from './sim-ranks.suite.js'

const SMALL = { firstBucketMb: 1e-4, bucketCapMb: 1e-4 }
type Net = Module & { forward(x: Tensor, ...more: never[]): Tensor }

/** Steps of two ranks, and of one place that adds their halves; gradients of the last step. */
async function parity<M extends Net>(
  make: () => M,
  run: (forward: (x: Tensor) => Tensor | Promise<Tensor>, rank: number, step: number, module: M) => Tensor | Promise<Tensor>,
  options: DistributedDataParallelOptions = {},
  steps = 2,
): Promise<void> {
  const results = await overSeeds(2, async (rank) => {
    const model = await DistributedDataParallel.create(make(), options)
    for (let step = 0; step < steps; step++) {
      model.zeroGrad()
      await model.backward(await run((x) => model.forward(...([x] as never)) as Promise<Tensor>, rank, step, model.module))
    }
    return grads(model)
  })
  const parts: (Tensor | null)[][] = []
  for (const rank of [0, 1]) {
    const alone = make()
    const loss = await run((x) => alone.forward(x), rank, steps - 1, alone)
    loss.backward()
    parts.push(alone.parameters().map(({ grad }) => (grad === null ? null : raw.mul(isSparse(grad) ? toDense(grad) : grad, 0.5))))
  }
  const mean = parts[0]!.map((a, i) => {
    const b = parts[1]![i]!
    return a === null ? b : b === null ? a : raw.add(a, b)
  })
  for (const got of results) expect(got).toEqual(values(mean))
}

class Layers extends Module {
  readonly first = seeded(1, () => new Linear(4, 4))
  readonly second = seeded(2, () => new Linear(4, 4))
  forward(x: Tensor): Tensor {
    return this.second.forward(this.first.forward(x).tanh())
  }
}

const VARIANTS: readonly DistributedDataParallelOptions[] = [
  {},
  { ...SMALL, gradientAsBucketView: true },
  { findUnusedParameters: true },
  { ...SMALL, staticGraph: true },
]

test('DDP-1 multi_dtype_multi_bucket: parameters of two dtypes', async () => {
  class Mixed extends Module {
    readonly single = seeded(1, () => new Linear(4, 4))
    readonly double = seeded(2, () => new Linear(4, 4)).to('float64')
    forward(x: Tensor): Tensor {
      return this.double.forward(this.single.forward(x).to('float64'))
    }
  }
  for (const options of VARIANTS)
    await parity(
      () => new Mixed(),
      async (forward, rank, step) => lossOf(await forward(batchOf(rank, step))),
      options,
    )
})

test('DDP-6 global_local_unused_params_grad: unused everywhere, unused on one rank, each way', async () => {
  class Three extends Module {
    readonly always = seeded(1, () => new Linear(4, 4))
    readonly onOne = seeded(2, () => new Linear(4, 4))
    readonly never = seeded(3, () => new Linear(4, 4))
    forward(x: Tensor, uses: boolean): Tensor {
      const h = this.always.forward(x)
      return uses ? this.onOne.forward(h) : h
    }
  }
  for (const gradientAsBucketView of [false, true]) {
    for (const options of [{ findUnusedParameters: true }, { staticGraph: true }]) {
      await overSeeds(2, async (rank) => {
        const model = await DistributedDataParallel.create(new Three(), { ...options, gradientAsBucketView })
        for (let step = 0; step < 3; step++) {
          model.zeroGrad()
          await model.backward(lossOf(await model.forward(batchOf(0, step), rank === 1)))
          const alone = new Three()
          lossOf(alone.forward(batchOf(0, step), true)).backward()
          expect(model.module.never.weight.grad).toBeNull()
          expect(model.module.onOne.weight.grad!.toArray()).toEqual(raw.mul(alone.onOne.weight.grad!, 0.5).toArray())
        }
        expect(model.stats()).toMatchObject({
          iterations: 3,
          unusedParameters: rank === 0 ? ['onOne.weight', 'onOne.bias', 'never.weight', 'never.bias'] : ['never.weight', 'never.bias'],
        })
      })
    }
  }
})

test('DDP-7 accumulate_gradients_no_sync_allreduce_hook: a hook sees what has added up', async () => {
  const trained = async (rank: number, hooked: boolean) => {
    const model = await DistributedDataParallel.create(new Layers(), SMALL)
    if (hooked) model.registerCommHook(null, allReduceHook)
    for (let step = 0; step < 4; step++) {
      const run = async () => model.backward(lossOf(await model.forward(batchOf(rank, step))))
      await (step % 2 === 0 ? model.noSync(run) : run())
    }
    return grads(model)
  }
  await overSeeds(2, async (rank) => expect(await trained(rank, true)).toEqual(await trained(rank, false)))
})

test('DDP-7 ignored_output(_with_unused_parameters): a forward need not be followed by a backward', async () => {
  for (const options of VARIANTS) {
    await overSeeds(2, async (rank) => {
      const model = await DistributedDataParallel.create(new Layers(), options)
      for (let i = 0; i < 4; i++) await model.forward(batchOf(rank, i))
      for (let i = 0; i < 2; i++) {
        model.zeroGrad()
        await model.backward(lossOf(await model.forward(batchOf(0, i))))
        const alone = new Layers()
        lossOf(alone.forward(batchOf(0, i))).backward()
        expect(grads(model)).toEqual(grads(alone))
      }
    })
  }
})

test('DDP-6 find_unused_parameters_when_unused_parameters_empty: looking for unused ones finds none on one rank', async () => {
  class Branch extends Module {
    readonly a = seeded(1, () => new Linear(4, 4))
    readonly b = seeded(2, () => new Linear(4, 4))
    forward(x: Tensor, both: boolean): Tensor {
      return both ? this.a.forward(x).add(this.b.forward(x)) : this.a.forward(x)
    }
  }
  await overSeeds(2, async (rank) => {
    const model = await DistributedDataParallel.create(new Branch(), { findUnusedParameters: true })
    for (let step = 0; step < 2; step++) await model.backward(lossOf(await model.forward(batchOf(rank, step), rank === 0)))
    for (const p of model.parameters()) expect(p.grad).not.toBeNull()
  })
})

test('DDP-2 save_load_checkpoint: rank 0 saves what all go on from, wrapped or not', async () => {
  const results = await overSeeds(2, async (rank, group) => {
    const model = await DistributedDataParallel.create(new Layers())
    const optimizer = new SGD(model.parameters(), { lr: 0.1, momentum: 0.9 })
    const step = async (number: number) => {
      optimizer.zeroGrad()
      await model.backward(lossOf(await model.forward(batchOf(rank, number))))
      optimizer.step()
    }
    await step(0)
    const saved = [model.stateDict(), optimizer.stateDict()] as const
    const copy = Object.fromEntries(Object.entries(saved[0]).map(([name, t]) => [name, raw.clone(t)]))
    expect(Object.keys(copy)[0]).toBe('module.first.weight')
    await step(1)
    const whole = values(model.parameters())
    model.loadStateDict(copy)
    optimizer.loadStateDict(saved[1])
    const bare = new Layers()
    bare.loadStateDict(Object.fromEntries(Object.entries(copy).map(([name, t]) => [name.slice('module.'.length), t])))
    expect(values(bare.parameters())).toEqual(values(model.parameters()))
    await step(1)
    expect(values(model.parameters())).toEqual(whole)
    expect(group.error).toBeNull()
    return whole
  })
  expect(results[0]).toEqual(results[1])
})

test('DDP-10 sparse_gradients_grad_is_view: views of buckets beside sparse gradients', async () => {
  class Words extends Module {
    readonly table = seeded(1, () => new Embedding(6, 4, { sparse: true }))
    readonly head = seeded(2, () => new Linear(4, 2))
    forward(words: Tensor): Tensor {
      return this.head.forward(this.table.forward(words))
    }
  }
  const words = (rank: number) => tensor([rank, rank + 2], { dtype: 'int32' })
  for (const gradientAsBucketView of [false, true]) {
    await parity(
      () => new Words(),
      async (forward, rank) => lossOf(await forward(words(rank))),
      { ...SMALL, gradientAsBucketView },
      3,
    )
  }
})

test('DDP-8 multiple_nested_unused_params_error: parameters are named with their whole path', async () => {
  class Nested extends Module {
    readonly blocks = new ModuleList([new Layers(), new Layers()])
    readonly lone = parameter(ones([2]))
    forward(x: Tensor): Tensor {
      return this.blocks.at(0)!.first.forward(x)
    }
  }
  await overSeeds(2, async (rank) => {
    const model = await DistributedDataParallel.create(new Nested())
    const error = await failure(model.backward(lossOf(await model.forward(batchOf(rank, 0)))))
    const names = ['blocks.0.second.weight', 'blocks.0.second.bias', 'blocks.1.first.weight', 'blocks.1.second.bias', 'lone']
    for (const name of names) expect(String(error)).toContain(name)
    expect(String(error)).not.toContain('blocks.0.first')
  })
})

test('DDP-6 undefined_grad_parity_unused_parameters: a gradient that is undefined counts as unused', async () => {
  const noGradient = defineFunction({ name: 'noGradient', forward: (_, x: Tensor): Tensor => x.mul(1), backward: () => [null] })
  class Undefined extends Module {
    readonly first = seeded(1, () => new Linear(4, 4))
    readonly second = seeded(2, () => new Linear(4, 4))
    forward(x: Tensor): Tensor {
      return this.second.forward(x).add(noGradient(this.first.forward(x)))
    }
  }
  await parity(
    () => new Undefined(),
    async (forward, rank, step) => lossOf(await forward(batchOf(rank, step))),
    { findUnusedParameters: true },
  )
  await overSeeds(2, async (rank) => {
    const model = await DistributedDataParallel.create(new Undefined())
    await model.backward(lossOf(await model.forward(batchOf(rank, 0))))
    // Where all parameters are used, a gradient that is undefined is 0.
    expect([...model.module.first.weight.grad!.dataSync()].every((x) => x === 0)).toBe(true)
  })
})

test('DDP-6 detect_ddp_is_actually_static: stats say whether staticGraph would do', async () => {
  for (const changes of [false, true]) {
    await overSeeds(2, async (rank) => {
      class Branch extends Module {
        readonly a = seeded(1, () => new Linear(4, 4))
        readonly b = seeded(2, () => new Linear(4, 4))
        forward(x: Tensor, both: boolean): Tensor {
          return both ? this.b.forward(this.a.forward(x)) : this.a.forward(x)
        }
      }
      const model = await DistributedDataParallel.create(new Branch(), { findUnusedParameters: true })
      for (let step = 0; step < 3; step++) await model.backward(lossOf(await model.forward(batchOf(rank, step), changes && step === 2)))
      expect(model.stats().canSetStaticGraph).toBe(!changes)
    })
  }
})

test('DDP-16 logging_data: buckets, iterations and times', async () => {
  await overSeeds(2, async (rank) => {
    const model = await DistributedDataParallel.create(new Layers(), SMALL)
    const all = ['first.weight', 'first.bias', 'second.weight', 'second.bias']
    expect(model.stats()).toEqual({
      iterations: 0,
      buckets: [{ parameters: all, bytes: 160 }],
      hasRebuiltBuckets: false,
      unusedParameters: [],
      canSetStaticGraph: true,
      last: null,
    })
    for (let step = 0; step < 2; step++) await model.backward(lossOf(await model.forward(batchOf(rank, step))))
    const { iterations, buckets, hasRebuiltBuckets, last } = model.stats()
    expect([iterations, hasRebuiltBuckets]).toEqual([2, true])
    expect(buckets.length).toBeGreaterThan(1)
    expect(buckets.reduce((sum, { bytes }) => sum + bytes, 0)).toBe(160)
    expect(buckets.flatMap(({ parameters }) => parameters).toSorted()).toEqual(all.toSorted())
    for (const ms of Object.values(last!)) expect(ms).toBeGreaterThanOrEqual(0)
  })
})

test('DDP-1 ddp_checkpointing_{once,twice,weight_sharing,unused_params}: parts that are computed again', async () => {
  class Checkpointed extends Module {
    readonly first = seeded(1, () => new Linear(4, 4))
    readonly second = seeded(2, () => new Linear(4, 4))
    readonly spare = seeded(3, () => new Linear(4, 4))
    private readonly how: string
    constructor(how: string) {
      super()
      this.how = how
      // One module under two names, which is one parameter.
      if (how === 'weight sharing') (this as { second: Linear }).second = this.first
      if (how !== 'unused') this.spare.requiresGrad_(false)
    }
    forward(x: Tensor): Tensor {
      const layer = (module: Linear, h: Tensor) => checkpoint((input: Tensor) => module.forward(input).tanh(), h)
      const h = layer(this.second, layer(this.first, x))
      return this.how === 'twice' ? layer(this.second, h) : h
    }
  }
  for (const how of ['once', 'twice', 'weight sharing', 'unused']) {
    for (const options of VARIANTS) {
      if (how === 'unused' && options.findUnusedParameters !== true && options.staticGraph !== true) continue
      await parity(
        () => new Checkpointed(how),
        async (forward, rank, step) => lossOf(await forward(batchOf(rank, step))),
        options,
      )
    }
  }
})

test('DDP-6 static_graph_nested_types, output_unused_in_loss: outputs of any shape, of which the loss takes some', async () => {
  class Outputs extends Module {
    readonly a = seeded(1, () => new Linear(4, 4))
    readonly b = seeded(2, () => new Linear(4, 4))
    forward(x: Tensor): { used: [Map<string, Tensor>]; unused: Tensor } {
      return { used: [new Map([['y', this.a.forward(x)]])], unused: this.b.forward(x) }
    }
  }
  for (const options of [{ findUnusedParameters: true }, { staticGraph: true }]) {
    await overSeeds(2, async (rank) => {
      const model = await DistributedDataParallel.create(new Outputs(), options)
      for (let step = 0; step < 2; step++) {
        const { used } = await model.forward(batchOf(rank, step))
        await model.backward(lossOf(used[0].get('y')!))
        expect([model.module.a.weight.grad === null, model.module.b.weight.grad]).toEqual([false, null])
      }
    })
  }
})

test('DDP-7 a forward without gradients in between leaves what was prepared', async () => {
  const results = await overSeeds(2, async (rank) => {
    const model = await DistributedDataParallel.create(new Layers())
    const loss = lossOf(await model.forward(batchOf(rank, 0)))
    await noGrad(() => model.forward(batchOf(rank, 1)))
    await model.backward(loss)
    return grads(model)
  })
  expect(results[0]).toEqual(results[1])
})

test('DDP-31 ddp_comparison under join, with unused parameters and several passes in one context', async () => {
  class Branch extends Module {
    readonly a = seeded(1, () => new Linear(4, 4))
    readonly b = seeded(2, () => new Linear(4, 4))
    forward(x: Tensor, both: boolean): Tensor {
      return both ? this.b.forward(this.a.forward(x)) : this.a.forward(x)
    }
  }
  await overSeeds(2, async (rank) => {
    const model = await DistributedDataParallel.create(new Branch(), { findUnusedParameters: true })
    await model.join(async () => {
      for (let i = 0; i < 1 + 2 * rank; i++) {
        await distAutograd.context(async (ctx) => {
          for (const both of [rank === 1, false]) await ctx.backward([lossOf(await model.forward(batchOf(rank, i), both))])
          const gradients = ctx.gradients()
          // Apart: what a rank without inputs brings to the second pass is 0, not what the first one gave.
          const sums = new Map<Tensor, Tensor>()
          for (const both of [rank === 1, false]) {
            model.zeroGrad()
            await model.backward(lossOf(await model.forward(batchOf(rank, i), both)))
            for (const p of model.parameters()) if (p.grad !== null) sums.set(p, sums.has(p) ? raw.add(sums.get(p)!, p.grad) : p.grad)
          }
          expect([...gradients.keys()].length).toBe(sums.size)
          for (const [p, sum] of sums) expect(farthest(sum.toArray(), gradients.get(p)!.toArray())).toBeLessThan(1e-6)
        })
      }
    })
  })
})

const farthest = (a: unknown, b: unknown): number =>
  Array.isArray(a) ? Math.max(...a.map((each, i) => farthest(each, (b as unknown[])[i]))) : Math.abs((a as number) - (b as number))
