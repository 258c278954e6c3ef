/**
 * Collectives, optimizers, DistributedDataParallel, pipelines and checkpoints whose tensors are on a device with a memory of its own: the same bits in each order,
 * and the numbers of the cpu.
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, expect, test } from '@jest/globals'
import { distAutograd } from '@postgrad/dist-autograd'
import { Adam, Linear, Module, mseLoss, ReLU, Sequential, SGD } from '@postgrad/nn'
import { Checkpoints, DistributedDataParallel, DistributedOptimizer, Pipeline, PipelineStage, RemoteModule } from '@postgrad/parallel'
import {
  allGather,
  allReduce,
  allToAllSingle,
  broadcast,
  initProcessGroup,
  newGroup,
  recv,
  reduceScatterTensor,
  send,
} from '@postgrad/process-group'
import { Actor, call, currentWorker, expose, type RRef, remote, rref, workerLocal } from '@postgrad/rpc'
import { type DeviceSpec, manualSeed, Generator as RandomSource, randn, type Tensor, tensor, withDevice, zeros } from '@postgrad/tensor'
import { residentDevice } from '@postgrad/tensor/suite'
import { useDevice } from '@postgrad/testing-cases/programs'
import { expectClean } from '../check/expect-clean.js'
import { simulate } from '../simulate/simulate.js'

const WORKERS = 3
const there = residentDevice()
const folder = mkdtempSync(join(tmpdir(), 'postgrad-devices-'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

type Plain = readonly number[]
const plain = async (x: Tensor): Promise<Plain> => [...(await x.detach().data())]
const plains = (tensors: readonly Tensor[]): Promise<Plain[]> => Promise.all(tensors.map(plain))
const id = () => currentWorker().info.id
const mlp = () => new Sequential(new Linear(4, 8), new ReLU(), new Linear(8, 2))

class Held {
  readonly w: Tensor
  constructor(seed: number, spec: string) {
    manualSeed(seed)
    this.w = withDevice(spec as DeviceSpec, () => randn([3, 3], { requiresGrad: true }))
  }
  forward(x: Tensor): Tensor {
    return this.w.matmul(x).tanh()
  }
  weight(): RRef<Tensor> {
    return rref(this.w)
  }
  value(): Promise<Plain> {
    return plain(this.w)
  }
}
class Far extends Module {
  readonly linear: Linear
  constructor(spec: string) {
    super()
    manualSeed(3)
    this.linear = withDevice(spec as DeviceSpec, () => new Linear(4, 2))
  }
  forward(x: Tensor): Tensor {
    return this.linear.forward(x)
  }
}
class Source extends Actor {
  private sum: Tensor | null = null
  add(x: Tensor): void {
    this.sum = this.sum === null ? x.clone() : this.sum.add(x)
  }
  *items(count: number): Generator<Tensor> {
    for (let i = 0; i < count; i++) yield this.sum!.mul(i)
  }
}
const doubled = (x: Tensor) => x.mul(2)
const sumOf = async (a: RRef<Tensor>, b: Tensor) => {
  using held = a
  return (await held.toHere()).add(b)
}
const endOf = (work: PromiseLike<unknown>) =>
  Promise.resolve(work).then(
    () => 'well',
    (error: { code: string }) => error.code,
  )
const broken = () => tensor([1], { device: there }).indexSelect(0, tensor([7], { dtype: 'int32', device: there }))
const kept = tensor([4], { device: there, requiresGrad: true })
const timesKept = (x: Tensor) => kept.mul(x)
const double = () => kept.mul(2)
const last = workerLocal((): { value: Tensor | null } => ({ value: null }))
const keepAndFail = async () => {
  const value = await call('worker2', double)
  last().value = value
  return value.mul(broken())
}
const timesLast = () => last().value!.mul(2)
expose({ Held, Far, Source, doubled, sumOf, timesKept, double, keepAndFail, timesLast })

/** The program of each worker, on a device; its results are plain. */
const SCENARIOS: Readonly<Record<string, (spec: string, run: number) => Promise<unknown>>> = {
  collectives: async () => {
    await initProcessGroup()
    const x = tensor([1.5 + id(), 2, -id()])
    await allReduce(x)
    const y = tensor([id(), 7])
    await broadcast(y, 1)
    const gathered = [zeros([2]), zeros([2]), zeros([2])]
    await allGather(gathered, tensor([id(), id() * 2]))
    const part = zeros([2])
    await reduceScatterTensor(part, tensor([1, 2, 3, 4, 5, 6]).add(id()))
    const turned = zeros([3])
    await allToAllSingle(turned, tensor([10, 20, 30]).add(id()))
    const come = zeros([2])
    if (id() === 0) await send(tensor([3, 4]), 2)
    if (id() === 2) await recv(come, 0)
    const large = zeros([40_000]).add(id() + 0.1)
    await allReduce(large)
    return plains([x, y, ...gathered, part, turned, come, large.sum()])
  },

  'references, an actor and its stream': async () => {
    if (id() !== 0) return null
    const x = tensor([1, 2, 3])
    using reference = remote('worker1', doubled, [x])
    const sum = await call('worker2', sumOf, [reference, x])
    using source = remote('worker1', Source)
    for (const factor of [1, 10, 100]) void source.call('add', [x.mul(factor)])
    const items: Tensor[] = []
    for await (const item of source.stream('items', [4])) items.push(item)
    return plains([await reference.toHere(), sum, ...items])
  },

  'a distributed optimizer': async (spec) => {
    if (id() !== 0) return null
    const parts = [remote('worker1', Held, [1, spec]), remote('worker2', Held, [2, spec])]
    const params = [await parts[0]!.call('weight', []), await parts[1]!.call('weight', [])]
    const optimizer = new DistributedOptimizer(Adam, params, { lr: 0.05 })
    const x = tensor([1, 2, 3, 4, 5, 6, 7, 8, 9]).reshape([3, 3]).mul(0.1)
    const losses: Plain[] = []
    for (let step = 0; step < 3; step++) {
      await distAutograd.context(async (ctx) => {
        const loss = (await parts[1]!.call('forward', [await parts[0]!.call('forward', [x])])).sum()
        losses.push(await plain(loss))
        await ctx.backward([loss])
        await optimizer.step(ctx)
      })
    }
    const weights = [await parts[0]!.call('value', []), await parts[1]!.call('value', [])]
    for (const each of [optimizer, ...params, ...parts]) each.dispose()
    return [losses, weights]
  },

  'data-parallel training': async () => {
    await initProcessGroup()
    manualSeed(1)
    const model = await DistributedDataParallel.create(mlp(), { bucketCapMb: 1e-4 })
    const optimizer = new SGD(model.parameters(), { lr: 0.1, momentum: 0.9 })
    const batch = new RandomSource(id())
    for (let step = 0; step < 3; step++) {
      optimizer.zeroGrad()
      const [x, target] = [randn([5, 4], { generator: batch }), randn([5, 2], { generator: batch })]
      await model.backward(mseLoss(await model.forward(x), target))
      optimizer.step()
    }
    return plains(model.parameters())
  },

  'a pipeline': async () => {
    await initProcessGroup()
    manualSeed(id())
    const part = id() === WORKERS - 1 ? new Linear(4, 2) : new Sequential(new Linear(4, 4), new ReLU())
    const stage = new PipelineStage(part, id(), WORKERS)
    const pipeline = new Pipeline<Tensor, Tensor>(stage, {
      workers: [0, 1, 2],
      schedule: '1F1B',
      microbatches: 4,
      loss: (output, target) => mseLoss(output, target),
    })
    const batch = new RandomSource(5)
    const [x, target] = [randn([8, 4], { generator: batch }), randn([8, 2], { generator: batch })]
    const { losses } = await pipeline.step(id() === 0 ? [x] : [], id() === WORKERS - 1 ? { target } : {})
    return plains([...(losses ?? []), ...part.parameters().map(({ grad }) => grad!)])
  },

  'a checkpoint': async (spec, run) => {
    if (id() !== 0) return null
    manualSeed(1)
    const near = new Linear(4, 4)
    const far = new RemoteModule('worker1', Far, [spec])
    const params = [...near.parameters().map((each) => rref(each)), ...(await far.remoteParameters())]
    const optimizer = new DistributedOptimizer(Adam, params, { lr: 0.1 })
    const step = () =>
      distAutograd.context(async (ctx) => {
        const loss = (await far.forward(near.forward(randn([2, 4])))).sum()
        await ctx.backward([loss])
        await optimizer.step(ctx)
        return plain(loss)
      })
    await step()
    const checkpoints = new Checkpoints(join(folder, String(run)))
    await checkpoints.save(1, { near, far, optimizer })
    const second = await step()
    await step()
    await checkpoints.load({ near, far, optimizer })
    expect(await step()).toEqual(second)
    const end = [second, ...(await plains(near.parameters()))]
    for (const each of [optimizer, ...params, far]) each.dispose()
    return end
  },
}

let runs = 0
async function run(name: string, spec: string, seed: number): Promise<unknown> {
  const number = runs++
  const simulation = await simulate({ workers: WORKERS, seed, world: { overtaking: seed % 2 === 1 } }, (sim) =>
    Promise.all(
      sim.workers.map(({ name: worker }) =>
        sim.on(worker).run(async () => {
          if (spec !== 'cpu') useDevice(spec)
          return await withDevice(spec as DeviceSpec, () => SCENARIOS[name]!(spec, number))
        }),
      ),
    ),
  )
  expectClean(simulation)
  return simulation.result
}

/** Equal but for the last digits: the kernels differ. */
function expectClose(got: unknown, expected: unknown): void {
  if (typeof expected === 'number') expect(got).toBeCloseTo(expected, 4)
  else if (Array.isArray(expected)) for (const [i, each] of expected.entries()) expectClose((got as unknown[])[i], each)
  else expect(got).toEqual(expected)
}

test.each(Object.keys(SCENARIOS))('LATE-6 %s', async (name) => {
  const oracle = await run(name, 'cpu', 1)
  const first = await run(name, there.spec, 1)
  expectClose(first, oracle)
  for (let seed = 2; seed < 6; seed++) expect(await run(name, there.spec, seed)).toEqual(first)
})

/** Programs of which a value fails, as only the device notices. Each says how it ended. */
const FAILING: Readonly<Record<string, readonly [run: () => Promise<unknown>, expected: readonly unknown[]]>> = {
  'a gradient ends its pass, and no other': [
    async () => {
      if (id() !== 0) return null
      const ends: unknown[] = []
      await distAutograd.context(async (ctx) => {
        for (const factor of [broken, () => tensor([2])]) {
          const y = await call('worker1', timesKept, [tensor([3])])
          ends.push(await endOf(ctx.backward([y.mul(factor()).sum()])))
        }
      })
      return ends
    },
    [['INDEX_OUT_OF_RANGE', 'well'], null, null],
  ],
  'a result leaves the lineage whole for later ones': [
    async () => {
      if (id() !== 0) return null
      return await distAutograd.context(async (ctx) => {
        const lost = await endOf(call('worker1', keepAndFail))
        const later = await call('worker1', timesLast)
        return [lost, await endOf(ctx.backward([later.sum()]))]
      })
    },
    [['INDEX_OUT_OF_RANGE', 'well'], null, null],
  ],
  'a collective breaks its group alone': [
    async () => {
      await initProcessGroup()
      const [pair, all] = [await newGroup([0, 1]), await newGroup([0, 1, 2])]
      const ofPair = id() === 2 ? null : await endOf(allReduce(id() === 0 ? broken() : tensor([1]), { group: pair! }))
      // Rank 0 may have its sum before it learns of the failure.
      return [id() === 1 ? ofPair : null, await endOf(allReduce(tensor([1]), { group: all! }))]
    },
    [
      [null, 'well'],
      ['GROUP_BROKEN', 'well'],
      [null, 'well'],
    ],
  ],
}

test.each(Object.keys(FAILING))('LATE-3 %s', async (name) => {
  const [program, expected] = FAILING[name]!
  for (let seed = 1; seed < 5; seed++) {
    const simulation = await simulate({ workers: WORKERS, seed }, (sim) =>
      Promise.all(
        sim.workers.map(({ name: worker }) =>
          sim.on(worker).run(async () => {
            useDevice(there.spec)
            return await withDevice(there.spec as DeviceSpec, program)
          }),
        ),
      ),
    )
    expect(simulation.result).toEqual(expected)
    expectClean(simulation)
  }
})
