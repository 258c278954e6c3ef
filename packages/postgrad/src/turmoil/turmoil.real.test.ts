/** Terminations of random workers under load. `turmoil.soak.test.ts` has a thousand. */
import { expect, test } from '@jest/globals'
import { turmoil } from './turmoil.fixture.js'

const TERMINATIONS = 3
/** Some twenty workers are started, which takes a busy machine minutes. */
const PATIENCE_MS = 600_000
const seed = Number(process.env.POSTGRAD_SOAK_SEED ?? Math.floor(Math.random() * 2 ** 30))

test(
  `CLU-40 ${TERMINATIONS} workers are terminated under load: no promise hangs, nothing is left, every survivor is right (seed ${seed})`,
  async () => {
    const { terminations, done, failed } = await turmoil({ terminations: TERMINATIONS, seed })
    expect(terminations).toBeGreaterThanOrEqual(TERMINATIONS)
    expect(done).toBeGreaterThan(2 * TERMINATIONS)
    expect(Object.keys(failed).some((code) => code.startsWith('WORKER_DIED'))).toBe(true)
  },
  PATIENCE_MS,
)
