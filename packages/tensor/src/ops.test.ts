/** The reference backend against PyTorch's numbers; the other backends call the same suite from beside their kernels. */
import { expect, test } from '@jest/globals'
import { device } from './device.js'
import { goldenCases, opsSuite } from './ops.suite.js'
import * as raw from './raw/index.js'

opsSuite('reference', () => device('reference'), { tolerance: { float32: 1e-6, float64: 1e-13 } })

test('the golden set covers every raw operation', () => {
  const covered = new Set(goldenCases().map((c) => c.op))
  // These make no elements: zerosOf is tested in tensor.test.ts, detach as a method.
  expect(Object.keys(raw).filter((op) => !covered.has(op))).toEqual(['detach', 'zerosOf'])
})
