/** Clusters for tests: whatever a test launches is closed behind it, also when it fails, so that no thread outlives it. */
import { afterEach } from '@jest/globals'
import type { Cluster } from './main/cluster.js'
import { launch as realLaunch } from './main/launch.js'

/** Called once at the top of a test file. */
export function launcher(): typeof realLaunch {
  const open = new Set<Cluster>()
  afterEach(async () => {
    await Promise.all([...open].map((cluster) => cluster.close({ timeoutMs: 0 })))
    open.clear()
  })
  return async (program, options) => {
    const cluster = await realLaunch(program, options)
    open.add(cluster)
    return cluster
  }
}
