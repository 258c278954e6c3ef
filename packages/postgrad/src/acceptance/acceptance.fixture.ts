/** The leak check on threads. It waits for notices that are still under way when a case returns. */
import { setTimeout } from 'node:timers/promises'
import { expectClean, leaks } from '@postgrad/testing'
import type { Cluster } from '../index.js'

/** Notices arrive within a few turns; a leak stays. */
const CLEAN_WITHIN_MS = 5000
const LOOK_AGAIN_MS = 2

/** Waits until nothing is left on any worker. Rejects with NOT_CLEAN when something stays. */
export async function untilClean(cluster: Cluster): Promise<void> {
  const endMs = performance.now() + CLEAN_WITHIN_MS
  let debugInfo = await cluster.debugInfo()
  while (leaks(debugInfo).length > 0 && performance.now() < endMs) {
    await setTimeout(LOOK_AGAIN_MS)
    debugInfo = await cluster.debugInfo()
  }
  expectClean({ debugInfo })
}

/** Where the same cases run on real workers: what is added to the options of `launch`. */
export const PLACES = [
  ['threads', {}],
  ['processes', { processes: 2 }],
] as const
