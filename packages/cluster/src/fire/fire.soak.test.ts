/** All of training under fire: `npm run soak -- --rounds 500 fire`; `--seed 7` for another plan. Prints counts of errors and strikes. */
import { expect, test } from '@jest/globals'
import { fire } from './fire.fixture.js'

const ROUNDS = Number(process.env.POSTGRAD_SOAK_ROUNDS ?? 500)
const SEED = Number(process.env.POSTGRAD_SOAK_SEED ?? 1)

test(`INI-10: ${ROUNDS} rounds of training under fire, seed ${SEED}`, async () => {
  const lines: string[] = []
  const isTold = process.env.POSTGRAD_SOAK_TOLD === '1'
  const result = await fire({
    rounds: ROUNDS,
    seed: SEED,
    onRound: (line) => (isTold ? console.error(line) : lines.push(line)),
  }).catch((error) => {
    console.log(lines.slice(-5).join('\n'))
    throw error
  })
  console.log(JSON.stringify(result, null, 1))
  expect(result.rounds).toBe(ROUNDS)
  expect(result.right).toBeGreaterThan(ROUNDS / 4)
})
