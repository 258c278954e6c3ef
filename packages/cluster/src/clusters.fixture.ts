/** Clusters for tests: closes what a test has launched after it, also when it fails, so that no thread and no slot of the heap outlives it. */
import { afterEach, beforeEach, expect } from '@jest/globals'
import { heapStats } from '@postgrad/tensor/internal'
import { sharedHeap } from './host/shared-heap.js'
import type { Cluster } from './main/cluster.js'
import { launch as realLaunch } from './main/launch.js'

/**
 * Called once at the top of a test file.
 * @param processes over so many processes the workers are spread, where there are that many; default POSTGRAD_TEST_PROCESSES of the environment, or none
 */
export function launcher(processes = Number(process.env.POSTGRAD_TEST_PROCESSES ?? 0)): typeof realLaunch {
  const open = new Set<Cluster>()
  let before: readonly number[] = []
  beforeEach(() => {
    before = slots()
  })
  afterEach(async () => {
    await Promise.all([...open].map((cluster) => cluster.close({ timeoutMs: 0 })))
    open.clear()
    expect(slots()).toEqual(before)
  })
  return async (program, options) => {
    const spread = processes === 0 ? {} : { processes: Math.min(processes, countOf(options.workers)) }
    const cluster = await realLaunch(program, { ...spread, ...options })
    open.add(cluster)
    return cluster
  }
}

/** Of the heap, in use. */
function slots(): readonly number[] {
  const heap = sharedHeap()
  return heap === null ? [] : [...heapStats(heap).heldBytes.keys()]
}

/** Of workers that are none the launch itself speaks. */
function countOf(workers: readonly string[] | number): number {
  const count = typeof workers === 'number' ? workers : Object(workers).length
  return Math.max(count, 1)
}
