/** The training in the tests of SyncBatchNorm: a small net on ranks with parts of a batch, and the same net in one place with the whole batch. */
import { expect } from '@jest/globals'
import { BatchNorm1d, BatchNorm2d, type BatchNormModuleOptions, Linear, Module, SGD } from '@postgrad/nn'
import { type DType, Generator, randn, type Tensor } from '@postgrad/tensor'
import { raw } from '@postgrad/tensor/internal'
import { DistributedDataParallel, type DistributedDataParallelOptions } from '../ddp/distributed-data-parallel.js'
import { seeded } from '../ddp/models.suite.js'
import { convertSyncBatchNorm } from './sync-batch-norm.js'

const STEPS = 3
const WIDTH = 4
const SETTINGS = { lr: 0.1, momentum: 0.9 }

export const numbers = (t: Tensor): number[] => [...raw.reshape(t, [t.numel]).dataSync()].map(Number)

export function expectClose(got: readonly number[], want: readonly number[], tolerance = 1e-10): void {
  expect(got.length).toBe(want.length)
  const far = got.filter((value, i) => !(Math.abs(value - want[i]!) <= tolerance * Math.max(1, Math.abs(want[i]!))))
  expect(far).toEqual([])
}

/** Parameters and buffers. */
export const stateOf = (module: Module): number[] => Object.values(module.stateDict()).flatMap(numbers)

/** [rows, …shape]: that of a rank in a step. */
export const batchOf = (rank: number, step: number, rows: number, shape: readonly number[], dtype: DType): Tensor =>
  raw.to(randn([rows, ...shape], { generator: new Generator(1000 * step + rank + 1) }), dtype)

/** A layer over the channels, a norm, and one that makes the norm's gradients differ from element to element. */
class Net extends Module {
  readonly first: Linear
  readonly norm: Module & { forward(x: Tensor): Tensor | Promise<Tensor> }
  constructor(places: readonly number[], options: BatchNormModuleOptions, dtype: DType) {
    super()
    this.first = new Linear(places.at(-1) ?? WIDTH, places.at(-1) ?? WIDTH, { dtype })
    this.norm = places.length === 2 ? new BatchNorm2d(WIDTH, { ...options, dtype }) : new BatchNorm1d(WIDTH, { ...options, dtype })
  }
  async forward(x: Tensor): Promise<Tensor> {
    const y = await this.norm.forward(this.first.forward(x))
    return y.tanh().mul(y.add(0.3))
  }
}

export const makeNet = (places: readonly number[], options: BatchNormModuleOptions, dtype: DType): Net =>
  seeded(7, () => new Net(places, options, dtype))

export interface Trained {
  /** By step. */
  readonly outputs: number[][]
  readonly inputGrads: number[][]
  readonly state: number[]
  readonly evaluated: number[]
}

/** On one rank of several. The sum of all ranks' losses is as many times the joined batch's loss as there are ranks. */
export async function trainedTogether(
  rank: number,
  rows: readonly number[],
  places: readonly number[],
  options: BatchNormModuleOptions,
  dtype: DType,
  settings: DistributedDataParallelOptions = {},
): Promise<Trained> {
  const module = convertSyncBatchNorm(makeNet(places, options, dtype))
  using model = await DistributedDataParallel.create(module, settings)
  const optimizer = new SGD(model.parameters(), SETTINGS)
  const [outputs, inputGrads]: [number[][], number[][]] = [[], []]
  const shape = [WIDTH, ...places]
  const total = rows.reduce((sum, count) => sum + count, 0)
  for (let step = 0; step < STEPS; step++) {
    optimizer.zeroGrad()
    const x = batchOf(rank, step, rows[rank]!, shape, dtype).requiresGrad_()
    const y = await model.forward(x)
    outputs.push(numbers(y))
    await model.backward(
      y
        .square()
        .sum()
        .mul(rows.length / total),
    )
    inputGrads.push(numbers(raw.mul(x.grad!, 1 / rows.length)))
    optimizer.step()
  }
  const state = stateOf(module)
  return { outputs, inputGrads, state, evaluated: numbers(await module.eval().forward(batchOf(9, 9, 3, shape, dtype))) }
}

/** In one place, with plain batch norms; outputs and gradients of inputs by step, then rank. */
export function onOneRank(
  rows: readonly number[],
  places: readonly number[],
  options: BatchNormModuleOptions,
  dtype: DType,
): Promise<{ readonly outputs: number[][][]; readonly inputGrads: number[][][]; readonly state: number[]; readonly evaluated: number[] }> {
  return inOnePlace(makeNet(places, options, dtype), rows, [WIDTH, ...places], dtype)
}

async function inOnePlace(module: Net, rows: readonly number[], shape: readonly number[], dtype: DType) {
  const optimizer = new SGD(module.parameters(), SETTINGS)
  const [outputs, inputGrads]: [number[][][], number[][][]] = [[], []]
  const total = rows.reduce((sum, count) => sum + count, 0)
  const parts = (t: Tensor): number[][] => {
    let at = 0
    return rows.map((count) => {
      at += count
      return numbers(raw.contiguous(raw.narrow(t, 0, at - count, count)))
    })
  }
  for (let step = 0; step < STEPS; step++) {
    optimizer.zeroGrad()
    const x = raw.cat(rows.map((count, rank) => batchOf(rank, step, count, shape, dtype))).requiresGrad_()
    const y = await module.forward(x)
    outputs.push(parts(y))
    y.square()
      .sum()
      .mul(1 / total)
      .backward()
    inputGrads.push(parts(x.grad!))
    optimizer.step()
  }
  return { outputs, inputGrads, state: stateOf(module), evaluated: numbers(await module.eval().forward(batchOf(9, 9, 3, shape, dtype))) }
}
