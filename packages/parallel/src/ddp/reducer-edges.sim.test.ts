/** Rare and wrong programs: none may make replicas differ silently, and no rank waits in vain. */
import { expect, test } from '@jest/globals'
import { distAutograd } from '@postgrad/dist-autograd'
import { Embedding, Linear, Module, parameter, SGD } from '@postgrad/nn'
import { allReduce, destroyProcessGroup } from '@postgrad/process-group'
import { call, currentWorker, expose } from '@postgrad/rpc'
import { ones, type Tensor, tensor } from '@postgrad/tensor'
import { raw } from '@postgrad/tensor/internal'
import { allReduceHook } from './comm-hooks.js'
import { DistributedDataParallel } from './distributed-data-parallel.js'
import { join } from './join.js'
import { batchOf, grads, lossOf, seeded, values } from './models.suite.js'
import { failure, overSeeds } from './sim-ranks.suite.js'
import { ZeroRedundancyOptimizer } from './zero-redundancy-optimizer.js'

/** On another worker. */
function doubled(x: Tensor): Tensor {
  return x.mul(2)
}
expose({ doubled })

/** Its second layer takes what another worker makes of the first one's outputs. */
class Far extends Module {
  private readonly two = new Two()
  async forward(x: Tensor): Promise<Tensor> {
    const other = currentWorker().info.id === 0 ? 'worker1' : 'worker0'
    return this.two.forward(await call(other, doubled, [this.two.forward(x, 'a')]), 'b')
  }
}

const SMALL = { firstBucketMb: 1e-4, bucketCapMb: 1e-4 }

/** Two layers, of which a pass may leave one out. */
class Two extends Module {
  readonly a = seeded(1, () => new Linear(4, 4))
  readonly b = seeded(2, () => new Linear(4, 4))
  forward(x: Tensor, which: 'both' | 'a' | 'b' = 'both'): Tensor {
    const h = which === 'b' ? x : this.a.forward(x)
    return which === 'a' ? h : this.b.forward(h)
  }
}

/** Of one place: the mean over two ranks of what each has gathered. */
function meanGrads(make: () => Two, gather: (module: Two, rank: number) => void): unknown {
  const parts = [0, 1].map((rank) => {
    const module = make()
    gather(module, rank)
    return module.parameters().map(({ grad }) => (grad === null ? null : raw.mul(grad, 0.5)))
  })
  return values(parts[0]!.map((part, i) => (part === null ? null : raw.add(part, parts[1]![i]!))))
}

test('DDP-6, DDP-7 what only passes of noSync have used is reduced with the next', async () => {
  for (const options of [{ findUnusedParameters: true }, { staticGraph: true }]) {
    const results = await overSeeds(2, async (rank) => {
      const model = await DistributedDataParallel.create(new Two(), options)
      await model.noSync(async () => model.backward(lossOf(await model.forward(batchOf(rank, 0), 'both'))))
      await model.backward(lossOf(await model.forward(batchOf(rank, 1), 'a')))
      return grads(model)
    })
    const expected = meanGrads(
      () => new Two(),
      (module, rank) => {
        lossOf(module.forward(batchOf(rank, 0), 'both')).backward()
        lossOf(module.forward(batchOf(rank, 1), 'a')).backward()
      },
    )
    for (const got of results) expect(got).toEqual(expected)
  }
})

test('DDP-8 a pass that no forward has prepared is refused: its gradients would be of this rank alone', async () => {
  await overSeeds(2, async (rank) => {
    const model = await DistributedDataParallel.create(new Two())
    const past = model.module.forward(batchOf(rank, 0))
    expect(await failure(model.backward(lossOf(past)))).toMatchObject({
      code: 'DDP_FORWARD_MISSING',
      message: expect.stringContaining('`await model.forward(…)`'),
    })
    const loss = lossOf(await model.forward(batchOf(rank, 0)))
    await model.backward(loss, { retainGraph: true })
    expect(await failure(model.backward(loss))).toMatchObject({ code: 'DDP_FORWARD_MISSING' })
    expect(model.module.a.weight.grad).not.toBeNull()
    // The module itself allows it.
    lossOf(model.module.forward(batchOf(rank, 0))).backward()
    await model.noSync(async () => model.backward(lossOf(model.module.forward(batchOf(rank, 0)))))
    // A forward of noSync may be followed by a pass outside.
    const alone = await model.noSync(async () => model.forward(batchOf(rank, 0)))
    await model.backward(lossOf(alone))
  })
})

test('DDP-7 after several forward passes each backward pass is reduced', async () => {
  for (const options of [SMALL, { ...SMALL, gradientAsBucketView: true }, { ...SMALL, findUnusedParameters: true }]) {
    for (const togethers of [true, false]) {
      const results = await overSeeds(2, async (rank) => {
        const model = await DistributedDataParallel.create(new Two(), options)
        for (const first of [0, 2]) {
          model.zeroGrad()
          const losses: Tensor[] = []
          for (const step of [first, first + 1]) losses.push(lossOf(await model.forward(batchOf(rank, step))))
          if (togethers) await model.backward(losses)
          else for (const loss of losses) await model.backward(loss)
        }
        return grads(model)
      })
      expect(results[1]).toEqual(results[0])
      const expected = meanGrads(
        () => new Two(),
        (module, rank) => {
          for (const step of [2, 3]) lossOf(module.forward(batchOf(rank, step))).backward()
        },
      ) as number[][]
      expect(farthest(results[0], expected)).toBeLessThan(1e-6)
    }
  }
})

const farthest = (a: unknown, b: unknown): number =>
  Array.isArray(a) ? Math.max(...a.map((each, i) => farthest(each, (b as unknown[])[i]))) : Math.abs((a as number) - (b as number))

test('DDP-8 a pass that reaches none of the parameters is refused', async () => {
  await overSeeds(2, async (rank) => {
    const model = await DistributedDataParallel.create(new Two())
    await model.forward(batchOf(rank, 0))
    const other = parameter(ones([2]))
    const error = { code: 'DDP_REDUCTION_UNFINISHED', values: { parameters: ['a.weight', 'a.bias', 'b.weight', 'b.bias'] } }
    expect(await failure(model.backward(other.sum()))).toMatchObject(error)
    // Nothing has been reduced, so that the next forward begins anew.
    await model.backward(lossOf(await model.forward(batchOf(rank, 0))))
  })
})

test('DDP-8 what breaks off a pass is the cause of what the next forward says', async () => {
  await overSeeds(2, async (rank) => {
    const model = await DistributedDataParallel.create(new Two(), SMALL)
    const y = await model.forward(batchOf(rank, 0))
    const handle = model.module.a.weight.registerHook(() => {
      throw new Error('not finite')
    })
    expect(await failure(model.backward(lossOf(y)))).toMatchObject({ message: expect.stringContaining('not finite') })
    handle.remove()
    const refused = await failure(model.forward(batchOf(rank, 1)))
    expect(refused).toMatchObject({ code: 'DDP_REDUCTION_UNFINISHED', cause: { message: expect.stringContaining('not finite') } })
    expect(String(refused)).toContain('The pass has failed')
    expect(String(refused)).toContain('dispose')
    // Here both have failed alike, so that the group is as it was.
    model.dispose()
    const again = await DistributedDataParallel.create(model.module)
    await again.backward(lossOf(await again.forward(batchOf(rank, 1))))
  })
})

test('DDP-11 a sparse gradient is reduced in the order of the buckets, behind the hooks of those before it', async () => {
  class Mixed extends Module {
    readonly table = seeded(1, () => new Embedding(6, 4, { sparse: true }))
    readonly head = seeded(2, () => new Linear(4, 2))
    readonly wide = seeded(3, () => new Linear(4, 4))
    forward(words: Tensor): Tensor {
      return this.head.forward(this.wide.forward(this.table.forward(words)).tanh())
    }
  }
  const words = (rank: number): Tensor => tensor([rank, 2, 3], { dtype: 'int32' })
  const trained = async (rank: number, hooks: boolean): Promise<unknown> => {
    const model = await DistributedDataParallel.create(new Mixed(), SMALL)
    if (hooks) {
      model.registerCommHook(null, async (_, bucket) => {
        // Ranks are not equally fast between two collectives of a hook.
        for (let i = 0; i < 3 * rank; i++) await null
        await allReduce(ones([1]))
        return allReduceHook(null, bucket)
      })
    }
    for (let step = 0; step < 2; step++) {
      model.zeroGrad()
      await model.backward(lossOf(await model.forward(words(rank))))
    }
    return grads(model)
  }
  await overSeeds(2, async (rank) => expect(await trained(rank, true)).toEqual(await trained(rank, false)))
})

test('DDP-12 a model that was disposed is refused, in whatever is called', async () => {
  await overSeeds(1, async (rank) => {
    const model = await DistributedDataParallel.create(new Two())
    const loss = lossOf(await model.forward(batchOf(rank, 0)))
    model.dispose()
    const disposed = { code: 'DDP_DISPOSED' }
    expect(await failure(model.forward(batchOf(rank, 0)))).toMatchObject(disposed)
    expect(await failure(model.backward(loss))).toMatchObject(disposed)
    expect(await failure(model.join(() => {}))).toMatchObject(disposed)
    expect(await failure(model.noSync(() => {}))).toMatchObject(disposed)
    expect(() => model.registerCommHook(null, (_, { buffer }) => buffer)).toThrow('was disposed')
    model.dispose()
    lossOf(model.module.forward(batchOf(rank, 0))).backward()
  })
})

test('DDP-15 parameters that require a gradient only since, or have taken the place of others, are named', async () => {
  await overSeeds(2, async (rank) => {
    const module = new Two()
    module.b.weight.requiresGrad_(false)
    const model = await DistributedDataParallel.create(module)
    await model.backward(lossOf(await model.forward(batchOf(rank, 0))))
    module.b.weight.requiresGrad_(true)
    const changed = { code: 'DDP_PARAMETERS_CHANGED', values: { parameters: ['b.weight'] } }
    expect(await failure(model.forward(batchOf(rank, 0)))).toMatchObject(changed)
    module.b.weight.requiresGrad_(false)
    await model.backward(lossOf(await model.forward(batchOf(rank, 0))))
    module.to('float64')
    expect(await failure(model.forward(batchOf(rank, 0).to('float64')))).toMatchObject({ code: 'DDP_PARAMETERS_CHANGED' })
  })
})

test('DDP-15 a parameter that is frozen since counts as unused, and is named where all must be used', async () => {
  for (const findUnusedParameters of [true, false]) {
    await overSeeds(2, async (rank) => {
      const model = await DistributedDataParallel.create(new Two(), { findUnusedParameters })
      model.module.b.weight.requiresGrad_(false)
      const pass = model.backward(lossOf(await model.forward(batchOf(rank, 0))))
      if (findUnusedParameters) await pass
      else expect(await failure(pass)).toMatchObject({ code: 'DDP_REDUCTION_UNFINISHED', values: { parameters: ['b.weight'] } })
      expect(model.module.b.weight.grad).toBeNull()
    })
  }
})

test('DDP-2 without a default group create fails in the words of a collective', async () => {
  await overSeeds(1, async () => {
    destroyProcessGroup()
    expect(await failure(DistributedDataParallel.create(new Two()))).toMatchObject({
      code: 'PROCESS_GROUP_NOT_INITIALIZED',
      op: 'DistributedDataParallel',
      message: expect.stringContaining('the default process group has not been initialized on this worker'),
      remedy: expect.stringContaining('or pass a process group.'),
    })
  })
})

test('DDP-2 options that differ from rank to rank are named on all ranks', async () => {
  await overSeeds(3, async (rank) => {
    const options = { findUnusedParameters: rank === 2, bucketCapMb: 25 }
    const error = await failure(DistributedDataParallel.create(new Two(), options))
    expect(error).toMatchObject({
      code: 'DDP_MODEL_MISMATCH',
      values: { rank: 2, option: 'findUnusedParameters', expected: false, got: true },
    })
    const caps = await failure(DistributedDataParallel.create(new Two(), { bucketCapMb: 1 + rank }))
    expect(caps).toMatchObject({ values: { rank: 1, option: 'bucketCapMb', expected: 1, got: 2 } })
    const text = await failure(DistributedDataParallel.create(new Two(), { staticGraph: 'yes' as never }))
    expect(text).toMatchObject({ code: 'INVALID_ARGUMENT', message: expect.stringContaining('staticGraph') })
  })
})

test('DDP-2, DDP-23, DDP-53 calls as in PyTorch are refused with the call that is meant here', async () => {
  await overSeeds(1, async () => {
    const told = (remedy: string) => expect.objectContaining({ code: 'INVALID_ARGUMENT', message: expect.stringContaining(remedy) })
    const Wrapped = DistributedDataParallel as unknown as new (module: Module) => Module
    expect(() => new Wrapped(new Two())).toThrow(told('`await DistributedDataParallel.create(model)`'))

    const Zero = ZeroRedundancyOptimizer as unknown as new (...args: unknown[]) => unknown
    const params = new Two().parameters()
    for (const given of [{ optimizerClass: SGD, lr: 0.1 }, undefined, () => new SGD(params, { lr: 0.1 })])
      expect(() => new Zero(params, given, { lr: 0.1 })).toThrow(
        told('new ZeroRedundancyOptimizer(model.parameters(), Adam, { lr: 0.01 })'),
      )

    const model = await DistributedDataParallel.create(new Two())
    for (const given of [model, undefined]) expect(await failure(join(given as never, () => {}))).toEqual(told('join([model], fn)'))
    for (const given of [new SGD(params, { lr: 0.1 }), null])
      expect(await failure(join([model, given as never], () => {}))).toEqual(told('DistributedDataParallel or ZeroRedundancyOptimizer'))
  })
})

test('DDP-8 two passes that meet in one model are refused', async () => {
  await overSeeds(2, async (rank) => {
    const model = await DistributedDataParallel.create(new Two(), SMALL)
    const [first, second] = [await model.forward(batchOf(rank, 0)), await model.forward(batchOf(rank, 1))]
    const passes = await Promise.allSettled([model.backward(lossOf(first)), model.backward(lossOf(second))])
    expect(passes[1]).toMatchObject({ status: 'rejected', reason: { code: 'DDP_REDUCTION_UNFINISHED' } })
  })
})

test('DDP-10 a table that is used as a dense matrix too has its gradient reduced', async () => {
  class Tied extends Module {
    readonly table = seeded(1, () => new Embedding(6, 4, { sparse: true }))
    forward(words: Tensor): Tensor {
      return this.table.forward(words).matmul(this.table.weight.transpose(0, 1))
    }
  }
  const words = (rank: number): Tensor => tensor([rank, 2, 3], { dtype: 'int32' })
  const results = await overSeeds(2, async (rank) => {
    const model = await DistributedDataParallel.create(new Tied())
    await model.backward(lossOf(await model.forward(words(rank))))
    return grads(model)
  })
  const parts = [0, 1].map((rank) => {
    const alone = new Tied()
    lossOf(alone.forward(words(rank))).backward()
    return raw.mul(alone.table.weight.grad!, 0.5)
  })
  for (const got of results) expect(got).toEqual([raw.add(parts[0]!, parts[1]!).toArray()])
})

test('DDP-6 outputs are looked through to any depth, but not the module or what else hangs on them', async () => {
  class Wrapped extends Module {
    readonly two = new Two()
    // biome-ignore lint/suspicious/noExplicitAny: any shape of outputs
    forward(x: Tensor): any {
      return { model: this, results: [new Map([['y', new Set([{ y: this.two.forward(x, 'a') }])]])], self: this.two.b }
    }
  }
  await overSeeds(2, async (rank) => {
    const model = await DistributedDataParallel.create(new Wrapped(), { findUnusedParameters: true })
    const { results } = await model.forward(batchOf(rank, 0))
    await model.backward(lossOf([...results[0].get('y')][0].y))
    expect(model.module.two.b.weight.grad).toBeNull()
  })
})

test('DDP-23 one object is in one join at a time', async () => {
  await overSeeds(1, async () => {
    const model = await DistributedDataParallel.create(new Two())
    const error = await model.join(() => failure(join([model], () => {})))
    expect(error).toMatchObject({ code: 'INVALID_ARGUMENT', message: expect.stringContaining('join') })
  })
})

test('DDP-33 in a context a parameter whose graph leads to another worker is not taken to be unused', async () => {
  // Both ranks send the first layer's output to rank 0, and continue with its answer.
  const echoed = await overSeeds(2, async (rank) => {
    const model = await DistributedDataParallel.create(new Far(), { findUnusedParameters: true })
    return distAutograd.context(async (ctx) => {
      await ctx.backward([lossOf(await model.forward(batchOf(rank, 0)))])
      return values(model.parameters().map((p) => ctx.gradients().get(p) ?? null))
    })
  })
  expect(echoed[0]).toEqual(echoed[1])
})

test('DDP-6 a rank whose pass leads to no parameter of the model takes part with zeros', async () => {
  for (const options of [{ findUnusedParameters: true }, { staticGraph: true }]) {
    await overSeeds(2, async (rank) => {
      const model = await DistributedDataParallel.create(new Two(), options)
      const other = parameter(ones([2]))
      for (let step = 0; step < 2; step++) {
        model.zeroGrad()
        const y = await model.forward(batchOf(0, step))
        await model.backward(rank === 0 ? lossOf(y) : other.sum())
        const alone = new Two()
        lossOf(alone.forward(batchOf(0, step))).backward()
        expect(grads(model)).toEqual(values(alone.parameters().map(({ grad }) => raw.mul(grad!, 0.5))))
      }
    })
  }
})

test('DDP-8 with staticGraph a parameter that is unused of a sudden is named', async () => {
  await overSeeds(2, async (rank) => {
    const model = await DistributedDataParallel.create(new Two(), { staticGraph: true })
    await model.backward(lossOf(await model.forward(batchOf(rank, 0))))
    expect(await failure(model.backward(lossOf(await model.forward(batchOf(rank, 1), 'a'))))).toMatchObject({
      code: 'DDP_GRAPH_CHANGED',
      message: expect.stringContaining('was used in the first iteration and is unused now'),
      values: { parameter: 'b.weight', number: 2 },
    })
    // Nothing was reduced.
    await model.backward(lossOf(await model.forward(batchOf(rank, 2))))
  })
})

test('DDP-6, DDP-8 gradients of noSync that are dropped are not reduced, and with staticGraph such passes use what the first one used', async () => {
  await overSeeds(2, async (rank) => {
    const model = await DistributedDataParallel.create(new Two(), { findUnusedParameters: true })
    await model.noSync(async () => model.backward(lossOf(await model.forward(batchOf(rank, 0)))))
    model.zeroGrad()
    await model.backward(lossOf(await model.forward(batchOf(rank, 1), 'a')))
    expect(model.module.b.weight.grad).toBeNull()

    const fixed = await DistributedDataParallel.create(new Two(), { staticGraph: true })
    await fixed.backward(lossOf(await fixed.forward(batchOf(rank, 0), 'a')))
    await fixed.noSync(async () => fixed.backward(lossOf(await fixed.forward(batchOf(rank, 1)))))
    expect(await failure(fixed.backward(lossOf(await fixed.forward(batchOf(rank, 2), 'a'))))).toMatchObject({
      code: 'DDP_GRAPH_CHANGED',
      values: { parameter: 'b.weight' },
    })
  })
})
