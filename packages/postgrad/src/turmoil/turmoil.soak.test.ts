/** As in `turmoil.fixture.ts`, many times: `npm run soak -- --terminations 1000 postgrad/dist/turmoil`, with `--seed N` to draw the same again. */
import { expect, test } from '@jest/globals'
import { turmoil } from './turmoil.fixture.js'

const TERMINATIONS = Number(process.env.POSTGRAD_SOAK_TERMINATIONS ?? 1000)
const seed = Number(process.env.POSTGRAD_SOAK_SEED ?? Math.floor(Math.random() * 2 ** 30))

test(`CLU-40 ${TERMINATIONS} workers are terminated under load (seed ${seed})`, async () => {
  const { terminations, restarts, joins, done, failed, milliseconds } = await turmoil({ terminations: TERMINATIONS, seed })
  console.log(
    `seed ${seed}: ${terminations} terminations, ${restarts} restarts, ${joins} guests, ${done} operations done, failed ${JSON.stringify(failed)}, ${Math.round(milliseconds / 1000)} s`,
  )
  expect(terminations).toBeGreaterThanOrEqual(TERMINATIONS)
})
