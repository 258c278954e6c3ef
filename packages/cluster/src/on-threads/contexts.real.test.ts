/** After many contexts every worker holds what it held before. `contexts.soak.test.ts` makes a hundred thousand, within the same bound. */
import { expect, test } from '@jest/globals'
import { counts, measureContexts, WARM_UP } from './contexts.fixture.js'

const COUNT = 1500
/** Less than what 1 KiB kept per context would take. */
const GROWTH_BYTES_MAX = 1_000_000

test(`${COUNT} contexts leave nothing behind on any worker`, async () => {
  const { before, after } = await measureContexts(COUNT, WARM_UP)
  for (const name of ['a', 'b', 'c']) {
    expect({ [name]: counts(after[name]!) }).toEqual({ [name]: counts(before[name]!) })
    expect(counts(after[name]!)).toMatchObject({
      autogradContexts: 0,
      currentBackwardPasses: 0,
      pendingCalls: 0,
      servingCalls: 0,
      ownerRRefs: 0,
      userRRefs: 0,
      forks: 0,
    })
    expect(after[name]!.heapUsedBytes - before[name]!.heapUsedBytes).toBeLessThan(GROWTH_BYTES_MAX)
    expect(after[name]!.arrayBuffersBytes - before[name]!.arrayBuffersBytes).toBeLessThan(GROWTH_BYTES_MAX)
  }
})
