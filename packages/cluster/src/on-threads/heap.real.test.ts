/** The workers of a cluster share the launching thread's heap (HEAP.md), which gets a worker's blocks back when its thread ends in any way. */
import { afterEach, expect, test } from '@jest/globals'
import { heapStats, threadHeap, verifyHeap } from '@postgrad/tensor/internal'
import { launcher } from '../clusters.fixture.js'
import * as heaps from './fixtures/heaps.js'

const launch = launcher()
const PROGRAM = new URL('./fixtures/heaps.js', import.meta.url)
const MEBIBYTE = 2 ** 20

/** Of the workers, by slot. */
function heldByWorkers(): ReadonlyMap<number, number> {
  const heap = threadHeap()
  const { heldBytes } = heapStats(heap)
  return new Map([...heldBytes].filter(([slot]) => slot !== heap.slot))
}

afterEach(() => {
  expect(heldByWorkers()).toEqual(new Map())
  const heap = threadHeap()
  expect(verifyHeap(heap.words, [{ slot: heap.slot, held: heap.audit() }])).toEqual([])
})

test('HEAP-2 each worker has a slot of one heap, and its large tensors lie there', async () => {
  const cluster = await launch(PROGRAM, { workers: 3 })
  const answers = await Promise.all(cluster.workers.map((worker) => cluster.on(worker).run(heaps.hold, 5)))
  expect(answers.map(({ kinds }) => kinds)).toEqual(answers.map(() => Array(5).fill('heap')))
  expect(new Set(answers.map(({ slot }) => slot)).size).toBe(3)
  const held = heldByWorkers()
  for (const { slot, heldBytes } of answers) {
    expect(heldBytes).toBeGreaterThanOrEqual(5 * MEBIBYTE)
    expect(held.get(slot)).toBe(heldBytes)
  }
  await cluster.close()
})

test('HEAP-7 what a worker held goes back when it dies; the others keep theirs', async () => {
  const cluster = await launch(PROGRAM, { workers: ['victim', 'bystander'] })
  const victim = await cluster.on('victim').run(heaps.hold, 3)
  const bystander = await cluster.on('bystander').run(heaps.hold, 2)
  await expect(cluster.on('victim').run(heaps.endNow)).rejects.toMatchObject({ code: 'WORKER_DIED' })
  const held = heldByWorkers()
  expect(held.has(victim.slot)).toBe(false)
  expect(held.get(bystander.slot)).toBe(bystander.heldBytes)
  await cluster.close()
})
