/** Hostile inputs to every reader, some thousands of the millions of the soak; and those that once broke a promise. */
import { describe, expect, test } from '@jest/globals'
import { MESSAGE_TABLE } from '@postgrad/wire/internal'
import { CORPUS, inputOf } from './corpus.suite.js'
import { hostileRuns, makeTargets } from './runs.suite.js'

const CASES = 8_000

describe('hostile inputs', () => {
  test(`SEC-10 ${CASES} to every reader: typed errors, memory within bounds, and each reader goes on`, async () => {
    const { cases, problems, outcomes, messages } = await hostileRuns(1, CASES)
    expect([cases, problems]).toEqual([CASES, []])
    // Every type of message got through as it should be, and was found out as it should not.
    for (const { name } of Object.values(MESSAGE_TABLE)) {
      for (const end of ['taken', 'refused']) expect([name, end, messages.get(`${name} ${end}`)]).toEqual([name, end, expect.any(Number)])
    }
    // Nothing is refused, or taken, whatever it is.
    for (const { name } of makeTargets())
      expect([...outcomes.keys()].filter((key) => key.startsWith(`${name}: `)).length).toBeGreaterThan(1)
  })

  test.each(CORPUS.map((entry) => [`${entry.target}: ${entry.why}`, entry] as const))('SEC-10 kept, %s', async (_, entry) => {
    const target = makeTargets().find(({ name }) => name === entry.target)!
    expect(await target.feed(inputOf(entry))).toMatch(entry.outcome)
    await target.check?.()
  })
})
