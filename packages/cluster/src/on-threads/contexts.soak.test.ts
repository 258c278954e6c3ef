/** The measurement of `contexts.fixture.ts` with fifty times the count of `npm test`: `npm run soak -- --contexts 100000`. Prints its figures. */
import { expect, test } from '@jest/globals'
import { counts, measureContexts, WARM_UP } from './contexts.fixture.js'

const COUNT = Number(process.env.POSTGRAD_SOAK_CONTEXTS ?? 100_000)
/** Does not grow with the count: what is kept per context would. */
const GROWTH_BYTES_MAX = 1_000_000

test(`${COUNT} contexts leave nothing behind on any worker`, async () => {
  const { before, after, contextsPerSecond } = await measureContexts(COUNT, WARM_UP)
  const lines = Object.keys(after).map((name) => {
    const [heap, buffers] = (['heapUsedBytes', 'arrayBuffersBytes'] as const).map((key) => `${before[name]![key]} → ${after[name]![key]}`)
    return `${name}: heap ${heap}, buffers ${buffers}, ports ${before[name]!.ports} → ${after[name]!.ports}`
  })
  console.log(`${COUNT} contexts, ${Math.round(contextsPerSecond)} a second; bytes before → after\n${lines.join('\n')}`)
  for (const name of Object.keys(after)) {
    expect({ [name]: counts(after[name]!) }).toEqual({ [name]: counts(before[name]!) })
    expect(after[name]!.heapUsedBytes - before[name]!.heapUsedBytes).toBeLessThan(GROWTH_BYTES_MAX)
    expect(after[name]!.arrayBuffersBytes - before[name]!.arrayBuffersBytes).toBeLessThan(GROWTH_BYTES_MAX)
  }
})
