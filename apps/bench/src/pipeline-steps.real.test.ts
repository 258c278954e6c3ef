/** The rows of pipelines, at a small size. */
import { expect, test } from '@jest/globals'
import { launch } from 'postgrad'
import { pipelineSteps } from './pipeline-steps.js'

test('figures of a pipeline of two workers', async () => {
  await using cluster = await launch(new URL('./pipeline-steps.js', import.meta.url), { workers: ['worker0', 'worker1'] })
  const sizes = { workers: ['worker0', 'worker1'], microbatches: 2, rows: 64, width: 64, layers: 2 }
  const { bubble, planned, peakBytes } = await cluster
    .on('worker0')
    .run(pipelineSteps, 1, { ...sizes, schedule: 'ZBVZeroBubble', watchesHeap: true })
  for (const share of [bubble, planned]) expect(share > 0 && share < 1).toBe(true)
  // An activation is of 16 KiB.
  expect(peakBytes).toBeGreaterThan(4 * 16_384)
})
