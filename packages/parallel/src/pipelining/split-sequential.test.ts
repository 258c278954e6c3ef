/** A Sequential as stages of about equal cost. */
import { expect, test } from '@jest/globals'
import { GELU, Linear, ReLU, Sequential } from '@postgrad/nn'
import { thrown } from '@postgrad/rpc/suite'
import { ones } from '@postgrad/tensor'
import fc from 'fast-check'
import { splitSequential } from './split-sequential.js'

const model = (...widths: number[]) => new Sequential(...widths.slice(1).map((width, i) => new Linear(widths[i]!, width)))
const lengths = (stages: Sequential[]) => stages.map(({ length }) => length)

test('PIP-15 by parameters: the stages are the layers of the model, in order', () => {
  const whole = model(4, 4, 4, 32, 4, 4)
  const stages = splitSequential(whole, 3)
  expect(lengths(stages)).toEqual([2, 1, 2])
  expect(stages.flatMap(({ layers }) => layers)).toEqual(whole.layers)
})

test('PIP-15 by costs: no division has a smaller dearest stage', () => {
  const costs = fc.array(fc.nat(20), { minLength: 2, maxLength: 7 })
  fc.assert(
    fc.property(costs, fc.integer({ min: 1, max: 7 }), (each, wanted) => {
      const count = Math.min(wanted, each.length)
      const stages = splitSequential(new Sequential(...each.map(() => new ReLU())), count, { costs: each })
      const dearest = (sizes: readonly number[]) => {
        const rest = [...each]
        return Math.max(...sizes.map((size) => rest.splice(0, size).reduce((a, b) => a + b, 0)))
      }
      const all = (left: number, n: number): number[][] =>
        n === 1 ? [[left]] : Array.from({ length: left - n + 1 }, (_, i) => all(left - i - 1, n - 1).map((rest) => [i + 1, ...rest])).flat()
      expect(dearest(lengths(stages))).toBe(Math.min(...all(each.length, count).map(dearest)))
    }),
    { numRuns: 60 },
  )
})

test('PIP-15 by time: each layer is run on what the one before gives, the first round not counted, and no gradient is left', () => {
  const whole = new Sequential(new Linear(2, 3), new GELU(), new Linear(3, 2), new GELU())
  // Per layer a round of 100 ms, which compiles, and three others.
  const took = [5, 1, 2, 2].flatMap((ms) => [100, ms + 3, ms, ms + 1])
  let [now, looks] = [0, 0]
  const clock = { now: () => (now += looks++ % 2 === 1 ? took[(looks >> 1) - 1]! : 0) }
  expect(lengths(splitSequential(whole, 2, { sample: ones([4, 2]), clock }))).toEqual([1, 3])
  expect(looks).toBe(2 * took.length)
  expect(whole.parameters().every(({ grad }) => grad === null)).toBe(true)
})

test('PIP-15 what is refused', () => {
  const codes = [
    () => splitSequential(model(2, 2), 2),
    () => splitSequential(model(2, 2), 0),
    () => splitSequential(model(2, 2, 2), 2, { costs: [1] }),
    () => splitSequential(model(2, 2, 2), 2, { costs: [1, Number.NaN] }),
    () => splitSequential(model(2, 2, 2), 2, { sample: ones([1, 2]) }),
    () => splitSequential(new Linear(1, 1) as never, 1),
  ].map((fn) => thrown(fn).code)
  expect(codes).toEqual(codes.map(() => 'INVALID_ARGUMENT'))
})
