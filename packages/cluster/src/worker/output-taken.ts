/**
 * Waits until the main thread has taken the text that this worker has printed, so that the text comes before the result of the run that printed it.
 * Node sends a thread's output over a port of its own, which has no order with the port of the results. `worker.ts` uses it.
 */
import { clearTimeout, setTimeout } from '@postgrad/base/internal'

/** A reader of the output who waits does not hold back a result for longer. */
const LIMIT_MS = 1000

/** Resolves at once if all text has been taken. */
export async function outputTaken(): Promise<void> {
  const waiting = [process.stdout, process.stderr].filter((stream) => stream.writableLength > 0)
  if (waiting.length === 0) return
  await new Promise<void>((resolve) => {
    let left = waiting.length
    const timer = setTimeout(resolve, LIMIT_MS)
    for (const stream of waiting) {
      // Node calls back when the text before this empty one is taken.
      stream.write('', () => {
        if (--left > 0) return
        clearTimeout(timer)
        resolve()
      })
    }
  })
}
