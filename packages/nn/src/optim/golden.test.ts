/** Every optimizer against PyTorch: 50 steps on a small net; values made by `scripts/golden/optim.py`. */
import { readFileSync } from 'node:fs'
import { describe, expect, test } from '@jest/globals'
import { type DType, type Tensor, tensor } from '@postgrad/tensor'
import {
  Adadelta,
  Adagrad,
  Adam,
  Adamax,
  AdamW,
  Linear,
  mseLoss,
  NAdam,
  type OptimizerBase,
  type ParamState,
  RAdam,
  RMSprop,
  Rprop,
  Sequential,
  SGD,
  Tanh,
  vectorToParameters,
} from '../index.js'

interface Run {
  readonly optimizer: string
  readonly name: string
  readonly options: object
  /** Settings per linear layer. */
  readonly groups: readonly object[] | null
  /** All parameters one after the other, after each of `snapshots` steps. */
  readonly float32: readonly (readonly number[])[]
  readonly float64: readonly (readonly number[])[]
}
interface Golden {
  readonly snapshots: readonly number[]
  readonly start: readonly number[]
  readonly x: readonly number[]
  readonly y: readonly number[]
  readonly runs: readonly Run[]
}

const golden = JSON.parse(readFileSync(new URL('../../golden/optim.json', import.meta.url), 'utf8')) as Golden
// √K with K the number of steps: the errors of the steps add up.
const TOLERANCE = { float32: (step: number) => 1e-5 * Math.sqrt(step), float64: () => 1e-12 }
type Float = keyof typeof TOLERANCE

type AnyOptimizer = OptimizerBase<object, ParamState>
type OptimizerClass = new (params: Iterable<unknown>, options: object) => AnyOptimizer
const CLASSES: Readonly<Record<string, unknown>> = { SGD, Adam, AdamW, NAdam, RAdam, Adagrad, Adadelta, Adamax, RMSprop, Rprop }

/** A net that begins as PyTorch's did, its optimizer, and a step of both. */
class Training {
  readonly net: Sequential
  readonly optimizer: AnyOptimizer
  private readonly x: Tensor
  private readonly y: Tensor

  constructor(run: Run, dtype: DType, options = run.options) {
    const layers = [new Linear(2, 3, { dtype }), new Linear(3, 1, { dtype })] as const
    this.net = new Sequential(layers[0], new Tanh(), layers[1])
    vectorToParameters(tensor(Float64Array.from(golden.start)), this.net.parameters())
    const Class = CLASSES[run.optimizer] as OptimizerClass
    const groups = run.groups?.map((settings, i) => ({ ...settings, params: [...layers[i]!.parameters()] }))
    this.optimizer = new Class(groups ?? this.net.parameters(), options)
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

  values(): number[] {
    return [...this.net.parameters()].flatMap((p) => [...p.dataSync()])
  }
}

const cases = golden.runs.flatMap((run) =>
  (['float32', 'float64'] as const).map((dtype) => [`${run.optimizer}, ${run.name}, ${dtype}`, run, dtype] as const),
)

describe('50 steps as PyTorch takes them', () => {
  test.each(cases)('%s', (_, run, dtype: Float) => {
    const training = new Training(run, dtype)
    for (let step = 1, at = 0; at < golden.snapshots.length; step++) {
      training.step()
      if (step !== golden.snapshots[at]) continue
      const expected = run[dtype][at++]!
      for (const [i, value] of training.values().entries()) {
        const error = Math.abs(value - expected[i]!) / Math.max(1, Math.abs(expected[i]!))
        if (!(error <= TOLERANCE[dtype](step))) throw new Error(`step ${step}, element ${i}: PyTorch has ${expected[i]}, got ${value}`)
      }
    }
  })
})

describe('saved in the middle and loaded into another one, steps go on with the same bits', () => {
  test.each(golden.runs.map((run) => [`${run.optimizer}, ${run.name}`, run] as const))('%s', (_, run) => {
    const whole = new Training(run, 'float32')
    for (let step = 0; step < 7; step++) whole.step()
    const [weights, saved] = [whole.net.stateDict(), whole.optimizer.stateDict()]
    // Settings other than those of the run, so that they must come from the state dict.
    const other = new Training({ ...run, groups: run.groups?.map(() => ({})) ?? null }, 'float32', { lr: 99 })
    other.net.loadStateDict(weights)
    for (let step = 0; step < 3; step++) whole.step()
    // Only now: what was saved is a copy, which the steps of the first one do not change.
    other.optimizer.loadStateDict(saved)
    for (let step = 0; step < 3; step++) other.step()
    expect(other.values()).toEqual(whole.values())
  })
})
