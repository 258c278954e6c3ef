/** The small net of `scripts/golden/optim.py`, as the tests of optimizers and schedulers train it, and PyTorch's values. */
import { readFileSync } from 'node:fs'
import { type DType, type Tensor, tensor } from '@postgrad/tensor'
import { Linear, mseLoss, type OptimizerBase, type ParamState, Sequential, Tanh, vectorToParameters } from '../index.js'

export interface Run {
  readonly optimizer: string
  readonly name: string
  readonly options: object
  /** Settings per linear layer. */
  readonly groups: readonly object[] | null
  /** All parameters one after the other, after each of `snapshots` steps. */
  readonly float32: readonly (readonly number[])[]
  readonly float64: readonly (readonly number[])[]
}

export interface Schedule {
  readonly scheduler: string
  readonly name: string
  readonly options: Readonly<Record<string, unknown>>
  readonly optimizer: string
  readonly settings: object
  /** Per group, at first and after each step. */
  readonly lr: readonly (readonly number[])[]
  /** Likewise; null where it does not change. */
  readonly momentum: readonly (readonly number[])[] | null
  /** All parameters at the end, float64. */
  readonly end: readonly number[]
}

interface Golden {
  readonly snapshots: readonly number[]
  readonly start: readonly number[]
  readonly x: readonly number[]
  readonly y: readonly number[]
  /** For ReduceLROnPlateau, at each step. */
  readonly metrics: readonly number[]
  readonly runs: readonly Run[]
  readonly schedules: readonly Schedule[]
}

export const golden = JSON.parse(readFileSync(new URL('../../golden/optim.json', import.meta.url), 'utf8')) as Golden

export type AnyOptimizer = OptimizerBase<object, ParamState>
export type OptimizerClass = new (params: Iterable<unknown>, options: object) => AnyOptimizer

/** The net as PyTorch's began, its optimizer, and a step of both. */
export class Training {
  readonly net: Sequential
  readonly optimizer: AnyOptimizer
  private readonly x: Tensor
  private readonly y: Tensor

  /** @param groups settings per linear layer; null: one group */
  constructor(dtype: DType, Class: OptimizerClass, options: object, groups: readonly object[] | null, weights = golden.start) {
    const layers = [new Linear(2, 3, { dtype }), new Linear(3, 1, { dtype })] as const
    this.net = new Sequential(layers[0], new Tanh(), layers[1])
    vectorToParameters(tensor(Float64Array.from(weights)), this.net.parameters())
    const params = groups?.map((settings, i) => ({ ...settings, params: [...layers[i]!.parameters()] })) ?? this.net.parameters()
    this.optimizer = new Class(params, options)
    this.x = tensor(Float64Array.from(golden.x), { dtype }).reshape([4, 2])
    this.y = tensor(Float64Array.from(golden.y), { dtype }).reshape([4, 1])
  }

  step(): void {
    this.optimizer.step(() => {
      this.optimizer.zeroGrad()
      const loss = mseLoss(this.net.forward(this.x), this.y)
      loss.backward()
      return loss
    })
  }

  /** So many steps, and the parameters after them. */
  stepped(steps: number): number[] {
    for (let step = 0; step < steps; step++) this.step()
    return this.values()
  }

  values(): number[] {
    return [...this.net.parameters()].flatMap((p) => [...p.dataSync()])
  }
}

/** Throws unless each value is within `tolerance`, relative for what is greater than 1. */
export function checkClose(got: readonly number[], expected: readonly number[], tolerance: number, what: string): void {
  if (got.length !== expected.length) throw new Error(`${what}: expected ${expected.length} values, got ${got.length}`)
  for (const [i, value] of got.entries()) {
    const error = Math.abs(value - expected[i]!) / Math.max(1, Math.abs(expected[i]!))
    if (!(error <= tolerance)) throw new Error(`${what}, element ${i}: PyTorch has ${expected[i]}, got ${value}`)
  }
}
