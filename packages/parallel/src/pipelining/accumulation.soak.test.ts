/** More programs than `accumulation.sim`. `--accumulations` says how many. */
import { expect, test } from '@jest/globals'
import { accumulationsOf, nothingCompared } from './accumulation-runs.suite.js'

const COUNT = Number(process.env.POSTGRAD_SOAK_ACCUMULATIONS ?? 400)

test('DDP-24, DDP-25, PIP-8, PIP-18: random accumulation gives the gradients of one place, or a typed error', async () => {
  const compared = nothingCompared()
  expect(await accumulationsOf(COUNT, compared)).toEqual([])
  console.log(`${COUNT} programs:`, compared)
  expect(compared.reductions).toBeGreaterThan(COUNT)
})

test('DDP-13, PIP-12: the same while a rank dies: what the others have before is that of one place, and they end', async () => {
  const compared = nothingCompared()
  expect(await accumulationsOf(COUNT, compared, (seed) => 1 + ((97 * seed) % 250))).toEqual([])
  console.log(`${COUNT} programs with a death:`, compared)
  expect(compared.deaths).toBeGreaterThan(COUNT / 4)
  expect(compared.failed).toBeGreaterThan(COUNT / 4)
})
