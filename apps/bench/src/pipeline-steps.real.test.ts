/** What the rows of pipelines measure, small. */
import { expect, test } from '@jest/globals'
import { launch } from 'postgrad'
import { pipelineSteps } from './pipeline-steps.js'

test.each([true, false])('figures of a pipeline of two workers; the heap watched: %s', async (watchesHeap) => {
  await using cluster = await launch(new URL('./pipeline-steps.js', import.meta.url), { workers: ['worker0', 'worker1'] })
  const sizes = { workers: ['worker0', 'worker1'], microbatches: 2, rows: 64, width: 64, layers: 2, watchesHeap }
  const { bubble, peakBytes } = await cluster.on('worker0').run(pipelineSteps, 2, { ...sizes, schedule: 'ZBVZeroBubble' })
  expect(bubble).toBeGreaterThan(0)
  expect(bubble).toBeLessThan(1)
  // An activation is of 16 KiB.
  expect(peakBytes > 4 * 16_384).toBe(watchesHeap)
})
