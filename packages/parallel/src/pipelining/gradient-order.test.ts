/** Gradients of micro-batches whose backward passes run in any order. */
import { expect, test } from '@jest/globals'
import { tensor } from '@postgrad/tensor'
import fc from 'fast-check'
import { GradientOrder } from './gradient-order.js'

test('PIP-8 sums are those of ascending micro-batches, whatever comes when, also where some bring nothing', () => {
  // Floating-point sums of these depend on their order.
  const values = [1e8, 1, -1e8, 3, 1e-3, 7]
  const order = fc.shuffledSubarray([...values.keys()], { minLength: values.length })
  fc.assert(
    fc.property(order, fc.shuffledSubarray([...values.keys()]), (microbatches, empty) => {
      const leaf = tensor(0, { requiresGrad: true })
      const gradients = new GradientOrder({ microbatches: values.length })
      for (const microbatch of microbatches) {
        if (!empty.includes(microbatch))
          gradients.sinkOf(microbatch, new Set(), () => {}).accumulate(leaf, tensor(values[microbatch]!), true)
        gradients.ended(microbatch)
      }
      const given = values.filter((_, i) => !empty.includes(i))
      expect(leaf.grad?.itemSync() ?? null).toBe(given.length === 0 ? null : given.reduce((sum, value) => Math.fround(sum + value), 0))
    }),
    { numRuns: 100 },
  )
})
