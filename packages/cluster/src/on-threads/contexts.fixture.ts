/**
 * Many contexts on a running cluster, and what every worker holds before and after. The test makes 2,000, the soak 100,000 by default.
 */
import type { WorkerDebugInfo } from '../admin/protocol.js'
import type { Cluster } from '../main/cluster.js'
import { launch } from '../main/launch.js'
import * as program from './fixtures/contexts.js'

/** More than the tombstones that a worker keeps (4096), so that their set has its full size before the first look. */
export const WARM_UP = 2000
const AT_ONCE = 8
const SETTLE_MS = 5

export interface Measurement {
  readonly before: Readonly<Record<string, WorkerDebugInfo>>
  readonly after: Readonly<Record<string, WorkerDebugInfo>>
  readonly contextsPerSecond: number
}

export async function measureContexts(count: number, warmUp: number): Promise<Measurement> {
  const cluster = await launch(new URL('./fixtures/contexts.js', import.meta.url), { workers: ['a', 'b', 'c'] })
  try {
    await cluster.on('a').run(program.contexts, warmUp, AT_ONCE)
    const before = await settled(cluster)
    const started = performance.now()
    await cluster.on('a').run(program.contexts, count, AT_ONCE)
    const contextsPerSecond = (1000 * count) / (performance.now() - started)
    return { before, after: await settled(cluster), contextsPerSecond }
  } finally {
    await cluster.close()
  }
}

/** What all workers hold once the clean-up messages, which nobody waits for, have arrived and the garbage is collected. */
async function settled(cluster: Cluster): Promise<Record<string, WorkerDebugInfo>> {
  for (let tries = 0; ; tries++) {
    await Promise.all(cluster.workers.map((worker) => cluster.on(worker).run(program.collect)))
    const infos = await cluster.debugInfo()
    if (tries === 100 || Object.values(infos).every((info) => info.autogradContexts === 0 && info.ownerRRefs === 0)) return infos
    await new Promise((resolve) => setTimeout(resolve, SETTLE_MS))
  }
}

/** Whatever is counted, other than memory. */
export function counts(info: WorkerDebugInfo): Record<string, number> {
  const { heapUsedBytes: _heap, arrayBuffersBytes: _buffers, timers: _timers, ...rest } = info
  return rest
}
