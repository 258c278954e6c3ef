/** The catchers of `npm run mutate` pass on sources that are not broken; the other suites have tests of their own. */
import { expect, test } from '@jest/globals'
import { CATCHERS } from './mutants.suite.js'

const SEEDS = 60

test(`TK-47, DA-25 ${SEEDS} runs of PyTorch's cases under weather, with a pass that fails among them: the inlined program's bits, and every checker is content`, async () => {
  const catcher = await CATCHERS['sound-cases']!()
  for (let seed = 0; seed < SEEDS; seed++) expect(await catcher(seed)).toBe(undefined)
})

test('TK-47, SES-14 20 pairs of lives: nothing of a former conversation is delivered in the next', async () => {
  const catcher = await CATCHERS['session-lives']!()
  for (let seed = 0; seed < 20; seed++) expect(await catcher(seed)).toBe(undefined)
})
