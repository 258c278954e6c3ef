/** Data-parallel training on threads, or over processes (POSTGRAD_TEST_PROCESSES): buckets that lie in the shared heap and are lent, while the next gradients are computed. */
import { expect, test } from '@jest/globals'
import { launcher } from '../clusters.fixture.js'
import { type Training, trained } from './fixtures/data-parallel.js'

const launch = launcher()
const PROGRAM = new URL('./fixtures/data-parallel.js', import.meta.url)
const SMALL = { firstBucketMb: 0.01, bucketCapMb: 0.1 }
const TRAININGS: readonly Training[] = [
  { options: SMALL, steps: 6, inContexts: false },
  { options: { ...SMALL, gradientAsBucketView: true }, steps: 4, inContexts: false },
  { options: { ...SMALL, findUnusedParameters: true }, steps: 4, inContexts: true },
  { options: SMALL, steps: 4, inContexts: true },
]

test('DDP-1, DDP-31: parameters are those of one place, to the last bit', async () => {
  const cluster = await launch(PROGRAM, { workers: 3 })
  for (const training of TRAININGS) {
    const results = await Promise.all(cluster.workers.map((name) => cluster.on(name).run(trained, training)))
    for (const { here, inOnePlace } of results) expect(here).toEqual(inOnePlace)
  }
  await cluster.close()
})
