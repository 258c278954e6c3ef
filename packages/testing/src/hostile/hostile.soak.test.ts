/**
 * Hostile inputs, millions: `npm run soak -- --hostile 5000000 testing/dist/hostile`. POSTGRAD_SOAK_FIRST moves the first seed; each seed is a thousand cases.
 * Prints the rate, and inputs that broke a promise, with their seeds and as entries of the corpus.
 */
import { Worker } from 'node:worker_threads'
import { expect, test } from '@jest/globals'

const CASES = Number(process.env.POSTGRAD_SOAK_HOSTILE ?? 5_000_000)
const FIRST = Number(process.env.POSTGRAD_SOAK_FIRST ?? 1)
const SAY_EVERY = 250_000
/** No case takes long: a thread that says nothing for so long hangs. */
const QUIET_MS_MAX = 600_000
/** All readers together may have so much at once, and keep so much. */
const PEAK_BYTES_MAX = 512 * 2 ** 20
const GROWN_BYTES_MAX = 32 * 2 ** 20

interface Said {
  readonly cases: number
  readonly problems?: readonly string[]
  readonly outcomes?: ReadonlyMap<string, number>
  readonly slowestMs?: number
  readonly peakBytes?: number
  readonly grownBytes?: number
}

const megabytes = (bytes: number): string => `${(bytes / 2 ** 20).toFixed(1)} MiB`

function soak(): Promise<Said> {
  const worker = new Worker(new URL('./hostile-thread.fixture.js', import.meta.url), {
    workerData: { first: FIRST, count: CASES, sayEvery: SAY_EVERY },
    resourceLimits: { maxOldGenerationSizeMb: 512 },
  })
  const startMs = performance.now()
  return new Promise((resolve, reject) => {
    let timer: NodeJS.Timeout
    const hear = (): void => {
      clearTimeout(timer)
      timer = setTimeout(() => reject(new Error(`nothing for ${QUIET_MS_MAX} ms: one of the inputs makes its reader hang`)), QUIET_MS_MAX)
    }
    hear()
    const over = (end: () => void): void => {
      clearTimeout(timer)
      void worker.terminate().then(end)
    }
    worker.on('message', (said: Said) => {
      hear()
      const seconds = (performance.now() - startMs) / 1000
      console.log(`${said.cases} cases in ${seconds.toFixed(1)} s, ${Math.round(said.cases / seconds)} a second`)
      if (said.problems !== undefined) over(() => resolve(said))
    })
    worker.on('error', (error) => over(() => reject(error)))
  })
}

test(`SEC-10 ${CASES} hostile inputs from seed ${FIRST}: typed errors, memory within bounds, no reader hangs or stops`, async () => {
  const { cases, problems, outcomes, slowestMs, peakBytes, grownBytes } = await soak()
  const lines = [...outcomes!].sort(([a], [b]) => (a < b ? -1 : 1)).map(([what, count]) => `  ${what}: ${count}`)
  console.log(
    `${lines.join('\n')}\nslowest thousand ${Math.round(slowestMs!)} ms; at most ${megabytes(peakBytes!)} at once, ${megabytes(grownBytes!)} stayed`,
  )
  expect([cases, problems]).toEqual([CASES, []])
  expect(peakBytes).toBeLessThan(PEAK_BYTES_MAX)
  expect(grownBytes).toBeLessThan(GROWN_BYTES_MAX)
})
