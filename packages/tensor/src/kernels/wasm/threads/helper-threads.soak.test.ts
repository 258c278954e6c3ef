/** `deaths.fixture.ts` at full length: `npm run soak -- --rounds 200 helper-threads`, with `--seed N` to run one again. */
import { expect, test } from '@jest/globals'
import { deaths } from './deaths.fixture.js'

const ROUNDS = Number(process.env.POSTGRAD_SOAK_ROUNDS ?? 200)
const seed = Number(process.env.POSTGRAD_SOAK_SEED ?? Math.floor(Math.random() * 2 ** 30))

test(`${ROUNDS} rounds of helpers and workers that are terminated in the middle of kernels (seed ${seed})`, async () => {
  const { helpersEnded, workersEnded } = await deaths({ rounds: ROUNDS, seed })
  console.log(`${ROUNDS} rounds, seed ${seed}: ${helpersEnded} helpers and ${workersEnded} workers were terminated`)
  expect(Math.min(helpersEnded, workersEnded)).toBeGreaterThan(ROUNDS / 4)
})
