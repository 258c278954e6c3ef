/** Gradients that are gathered over several batches, in random programs: each is that of one place, or a typed error. `accumulation.soak` has more, and those in which a rank dies. */
import { expect, test } from '@jest/globals'
import { accumulationsOf, nothingCompared } from './accumulation-runs.suite.js'

test('DDP-24, DDP-25, PIP-8, PIP-18: random accumulation gives the gradients of one place, or a typed error', async () => {
  const compared = nothingCompared()
  expect(await accumulationsOf(14, compared)).toEqual([])
  expect(compared.reductions).toBeGreaterThan(20)
  for (const each of [compared.alone, compared.refused, compared.mistakes, compared.steps]) expect(each).toBeGreaterThan(0)
})

test('DDP-13, PIP-12: the same while a rank dies: what the others have before is that of one place, and they end', async () => {
  const compared = nothingCompared()
  expect(await accumulationsOf(6, compared, (seed) => 30 * seed)).toEqual([])
  expect(compared.reductions).toBeGreaterThan(0)
})
