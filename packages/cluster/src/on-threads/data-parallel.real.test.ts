/** Data-parallel training on threads, or over processes (POSTGRAD_TEST_PROCESSES): ranks lend buckets in the shared heap while they compute the next gradients. */
import { expect, test } from '@jest/globals'
import { launcher } from '../clusters.fixture.js'
import { normalizedTogether, type Training, trained } from './fixtures/data-parallel.js'

const launch = launcher()
const PROGRAM = new URL('./fixtures/data-parallel.js', import.meta.url)
const SMALL = { firstBucketMb: 0.01, bucketCapMb: 0.1 }
const TRAININGS: readonly Training[] = [
  { options: SMALL, steps: [6, 6, 6], inContexts: false },
  { options: { ...SMALL, gradientAsBucketView: true }, steps: [4, 4, 4], inContexts: false, isCut: true },
  { options: { ...SMALL, findUnusedParameters: true }, steps: [4, 4, 4], inContexts: true },
  { options: { ...SMALL, staticGraph: true }, steps: [1, 4, 2], inContexts: false, isCut: true },
  { options: SMALL, steps: [3, 0, 4], inContexts: true },
  { options: SMALL, steps: [4, 4, 4], inContexts: false, isCut: true, overlaps: true },
  { options: SMALL, steps: [3, 1, 4], inContexts: true, isCut: true, overlaps: true },
]

test('DDP-1, DDP-20, DDP-31, DDP-53, DDP-56: parameters are those of one place, to the last bit, with uneven inputs too', async () => {
  const cluster = await launch(PROGRAM, { workers: 3 })
  for (const training of TRAININGS) {
    const results = await Promise.all(cluster.workers.map((name) => cluster.on(name).run(trained, training)))
    for (const { here, inOnePlace } of results) expect(here).toEqual(inOnePlace)
  }
  const halves = { options: SMALL, steps: [2, 3, 3], inContexts: false, halves: true }
  const [first, ...others] = await Promise.all(cluster.workers.map((name) => cluster.on(name).run(trained, halves)))
  for (const { here } of others) expect(here).toEqual(first!.here)
  expect(Math.max(...first!.here.flatMap((row, i) => row.map((x, k) => Math.abs(x - first!.inOnePlace[i]![k]!))))).toBeLessThan(1e-3)
  expect(first!.here).not.toEqual(first!.inOnePlace)
  await cluster.close()
})

test('SBN-1, SBN-2: batch norms over all ranks leave what one place has of the joined batch, the same bits on all ranks', async () => {
  const cluster = await launch(PROGRAM, { workers: 3 })
  for (const inContexts of [false, true]) {
    const results = await Promise.all(cluster.workers.map((name) => cluster.on(name).run(normalizedTogether, inContexts)))
    for (const { here, inOnePlace } of results) {
      expect(here).toEqual(results[0]!.here)
      expect(Math.max(...here.flatMap((row, i) => row.map((x, k) => Math.abs(x - inOnePlace[i]![k]!))))).toBeLessThan(1e-10)
    }
  }
  await cluster.close()
})
