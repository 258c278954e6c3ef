/** Every optimizer against PyTorch: 50 steps on a small net; values made by `scripts/golden/optim.py`. */
import { describe, expect, test } from '@jest/globals'
import { Adadelta, Adagrad, Adam, Adamax, AdamW, NAdam, RAdam, RMSprop, Rprop, SGD } from '../index.js'
import { checkClose, golden, type OptimizerClass, Training } from './small-net.suite.js'

const CLASSES: Readonly<Record<string, unknown>> = { SGD, Adam, AdamW, NAdam, RAdam, Adagrad, Adadelta, Adamax, RMSprop, Rprop }
const classOf = (name: string) => CLASSES[name] as OptimizerClass
// √K with K the number of steps: the errors of the steps add up.
const TOLERANCE = { float32: (step: number) => 1e-5 * Math.sqrt(step), float64: () => 1e-12 }

const cases = golden.runs.flatMap((run) =>
  (['float32', 'float64'] as const).map((dtype) => [`${run.optimizer}, ${run.name}, ${dtype}`, run, dtype] as const),
)

describe('50 steps as PyTorch takes them', () => {
  test.each(cases)('%s', (_, run, dtype) => {
    const training = new Training(dtype, classOf(run.optimizer), run.options, run.groups)
    for (let step = 1, at = 0; at < golden.snapshots.length; step++) {
      training.step()
      if (step === golden.snapshots[at]) checkClose(training.values(), run[dtype][at++]!, TOLERANCE[dtype](step), `step ${step}`)
    }
  })
})

describe('saved in the middle and loaded into another one, steps go on with the same bits', () => {
  test.each(golden.runs.map((run) => [`${run.optimizer}, ${run.name}`, run] as const))('%s', (_, run) => {
    const whole = new Training('float32', classOf(run.optimizer), run.options, run.groups)
    for (let step = 0; step < 7; step++) whole.step()
    const [weights, saved] = [whole.net.stateDict(), whole.optimizer.stateDict()]
    // Settings other than those of the run, so that they must come from the state dict.
    const other = new Training('float32', classOf(run.optimizer), { lr: 99 }, run.groups?.map(() => ({})) ?? null)
    other.net.loadStateDict(weights)
    for (let step = 0; step < 3; step++) whole.step()
    // Only now: what was saved is a copy, which the steps of the first one do not change.
    other.optimizer.loadStateDict(saved)
    for (let step = 0; step < 3; step++) other.step()
    expect(other.values()).toEqual(whole.values())
  })
})
