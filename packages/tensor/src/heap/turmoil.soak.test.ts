/** `turmoil.fixture.ts` at full length: `npm run soak -- --rounds 10000 turmoil`, with `--seed N` to run one again. */
import { expect, test } from '@jest/globals'
import { turmoil } from './turmoil.fixture.js'

const ROUNDS = Number(process.env.POSTGRAD_SOAK_ROUNDS ?? 10_000)
const seed = Number(process.env.POSTGRAD_SOAK_SEED ?? Math.floor(Math.random() * 2 ** 30))

test(`HEAP-9 ${ROUNDS} rounds of deaths among threads that pass blocks around (seed ${seed})`, async () => {
  const { deaths, operations, milliseconds } = await turmoil({ rounds: ROUNDS, seed })
  console.log(
    `${ROUNDS} rounds, seed ${seed}: ${deaths} deaths, ${operations} operations of those who died, ${Math.round(milliseconds / 1000)} s`,
  )
  expect(deaths).toBeGreaterThan(ROUNDS / 10)
})
