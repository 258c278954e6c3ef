/** Cases of `golden.sim` and `golden.soak`: 50 steps against PyTorch's DistributedDataParallel over gloo (`scripts/golden/ddp.py`), and against one process on the joined batches. */
import { readFileSync } from 'node:fs'
import { expect } from '@jest/globals'
import { crossEntropy } from '@postgrad/autograd'
import {
  Adam,
  AvgPool2d,
  BatchNorm2d,
  Conv2d,
  Flatten,
  Linear,
  MaxPool2d,
  type Module,
  type Optimizer,
  ReLU,
  Sequential,
  SGD,
  Tanh,
} from '@postgrad/nn'
import { type Tensor, tensor } from '@postgrad/tensor'
import { DistributedDataParallel } from './distributed-data-parallel.js'
import { fp16CompressHook } from './half-hooks.js'
import { overSeeds } from './sim-ranks.suite.js'

interface Values {
  readonly shape: readonly number[]
  readonly values: readonly number[]
}
export interface Case {
  readonly model: 'mlp' | 'cnn'
  readonly optimizer: 'sgd' | 'adam'
  readonly size: number
  readonly counts: readonly number[]
  readonly uneven: 'initial' | 'effective' | null
  /** By rank, of every tenth step. */
  readonly losses: readonly (readonly number[])[]
  readonly state: Readonly<Record<string, Values>>
}
export const golden = JSON.parse(readFileSync(new URL('../../golden/ddp.json', import.meta.url), 'utf8')) as {
  readonly start: Readonly<Record<Case['model'], Readonly<Record<string, Values>>>>
  readonly cases: readonly Case[]
}
export const hooked = JSON.parse(readFileSync(new URL('../../golden/ddp-hooks.json', import.meta.url), 'utf8')) as {
  readonly cases: readonly Pick<Case, 'size' | 'losses' | 'state'>[]
}
const SHOWN = 10
export const TOLERANCE = 1e-9
/** Gradients of float16 have 11 bits, and PyTorch adds with as many. */
const HALF_TOLERANCE = 1e-3

const make = ({ shape, values }: Values): Tensor => tensor(Float64Array.from(values)).reshape(shape).detach()

/** As in the script. */
export function numbers(shape: readonly number[], rank: number, step: number): Tensor {
  const n = shape.reduce((product, extent) => product * extent, 1)
  const data = Float64Array.from({ length: n }, (_, i) => (((i * 7919 + rank * 1299709 + step * 104729) % 2003) - 1001) / 1001)
  return tensor(data).reshape(shape)
}
export const target = (rank: number, step: number): Tensor => tensor(Int32Array.from({ length: 5 }, (_, i) => (rank + step + i) % 3))

export const MODELS = {
  mlp: { shape: [5, 6], layers: () => [new Linear(6, 8), new Tanh(), new Linear(8, 8), new ReLU(), new Linear(8, 3)] },
  cnn: {
    shape: [5, 1, 8, 8],
    layers: () => [
      ...[new Conv2d(1, 3, 3, { padding: 1 }), new BatchNorm2d(3), new ReLU(), new MaxPool2d(2)],
      ...[new Conv2d(3, 4, 3, { padding: 1 }), new ReLU(), new AvgPool2d(2), new Flatten(), new Linear(16, 3)],
    ],
  },
}
export const OPTIMIZERS = {
  sgd: (p: Tensor[]): Optimizer => new SGD(p, { lr: 0.1, momentum: 0.9 }),
  adam: (p: Tensor[]): Optimizer => new Adam(p, { lr: 0.01 }),
}

export function started(model: Case['model']): Sequential {
  const module = new Sequential(...MODELS[model].layers())
  module.to('float64')
  module.loadStateDict(Object.fromEntries(Object.entries(golden.start[model]).map(([name, values]) => [name, make(values)])), {
    strict: false,
  })
  return module
}

export function expectClose(what: string, got: Tensor, want: readonly number[], tolerance: number): void {
  got.dataSync().forEach((value, i) => {
    const isClose = Math.abs(value - want[i]!) <= tolerance * Math.max(1, Math.abs(want[i]!))
    expect(isClose ? what : `${what}[${i}] is ${value}, not ${want[i]}`).toBe(what)
  })
}

export function expectState(module: Module, state: Case['state'], tolerance: number): void {
  const got = module.stateDict()
  for (const [name, { values }] of Object.entries(state)) expectClose(name, got[name]!, values, tolerance)
}

export const nameOf = ({ model, optimizer, size, uneven }: Case): string =>
  `${model}, ${optimizer}, ${size} ranks${uneven === null ? '' : `, uneven inputs, divided by the ${uneven} number`}`

export async function trainsAs(each: Case): Promise<void> {
  const { model, optimizer: name, size, counts, uneven, losses, state } = each
  await overSeeds(
    size,
    async (rank) => {
      const module = started(model)
      const ddp = await DistributedDataParallel.create(module, { firstBucketMb: 1e-3, bucketCapMb: 1e-3 })
      const optimizer = OPTIMIZERS[name](ddp.parameters())
      const run = async (): Promise<void> => {
        for (let step = 0; step < counts[rank]!; step++) {
          optimizer.zeroGrad()
          const loss = crossEntropy(await ddp.forward(numbers(MODELS[model].shape, rank, step)), target(rank, step))
          await ddp.backward(loss)
          optimizer.step()
          if (step % SHOWN === SHOWN - 1) expectClose(`loss ${step}`, loss, [losses[rank]![(step - SHOWN + 1) / SHOWN]!], TOLERANCE)
        }
      }
      await (uneven === null ? run() : ddp.join(run, { divideByInitialWorldSize: uneven === 'initial' }))
      // The running statistics at the end are each rank's own.
      if (rank === 0 || uneven !== null) expectState(module, state, TOLERANCE)
    },
    1,
  )
}

export type HookedCase = (typeof hooked.cases)[number]

export async function trainsInHalves({ size, losses, state }: HookedCase): Promise<void> {
  await overSeeds(
    size,
    async (rank) => {
      const module = started('mlp')
      const ddp = await DistributedDataParallel.create(module, { firstBucketMb: 1e-3, bucketCapMb: 1e-3 })
      ddp.registerCommHook(null, fp16CompressHook)
      const optimizer = OPTIMIZERS.sgd(ddp.parameters())
      for (let step = 0; step < 50; step++) {
        optimizer.zeroGrad()
        const loss = crossEntropy(await ddp.forward(numbers(MODELS.mlp.shape, rank, step)), target(rank, step))
        await ddp.backward(loss)
        optimizer.step()
        if (step % SHOWN === SHOWN - 1) expectClose(`loss ${step}`, loss, [losses[rank]![(step - SHOWN + 1) / SHOWN]!], HALF_TOLERANCE)
      }
      expectState(module, state, HALF_TOLERANCE)
    },
    1,
  )
}
