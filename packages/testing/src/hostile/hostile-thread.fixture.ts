/** The thread of the soak: outside of jest, where looking up a global costs nothing, and with a bounded heap of its own. */
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { parentPort, workerData } from 'node:worker_threads'
import { BLOCK, hostileRuns } from './runs.suite.js'

const { first, count, sayEvery } = workerData as { first: number; count: number; sayEvery: number }
setFlagsFromString('--expose-gc')
const collect = runInNewContext('gc') as () => void

/** Of this thread, when what can go has gone. */
const heldBytes = (): number => {
  collect()
  const { heapUsed, arrayBuffers } = process.memoryUsage()
  return heapUsed + arrayBuffers
}

// Code gets warm, and buffers that are kept get made, in the first.
const warm = await hostileRuns(first, 20 * BLOCK)
const before = heldBytes()
let peakBytes = 0
const report = await hostileRuns(first + 20, count - warm.cases, (cases) => {
  const { heapUsed, arrayBuffers } = process.memoryUsage()
  peakBytes = Math.max(peakBytes, heapUsed + arrayBuffers)
  if (cases % sayEvery === 0) parentPort?.postMessage({ cases: cases + warm.cases })
})
const grownBytes = heldBytes() - before
parentPort?.postMessage({
  cases: warm.cases + report.cases,
  problems: [...warm.problems, ...report.problems],
  outcomes: report.outcomes,
  slowestMs: report.slowestMs,
  peakBytes,
  grownBytes,
})
