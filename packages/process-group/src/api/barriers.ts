/** Users call these to let ranks wait. */
import * as algorithms from '../algorithms/barriers.js'
import { barrierFailed } from '../common/errors.js'
import type { CollectiveOptions } from '../group/process-group.js'
import type { Work } from '../group/work.js'
import { groupOf } from './checks.js'
import { attempt } from './reductions.js'

/** Options of `monitoredBarrier`. */
export interface MonitoredBarrierOptions extends CollectiveOptions {
  /** Name all ranks that are missing when the time is over, not the first alone. Default false. */
  readonly waitAllRanks?: boolean
}

/**
 * Ends when all ranks have called it, and all collectives that this rank has called before have ended. PyTorch: `barrier`. @throws (rejects) as `allReduce`
 * @example
 * await allReduce(tensor([1]))
 * await barrier() // no rank continues before all have come here
 */
export function barrier(options: CollectiveOptions = {}): Work<void> {
  return attempt(() =>
    groupOf('barrier', options).start({ op: 'barrier', head: 'barrier', algorithm: algorithms.barrier, isBehindAll: true }, options),
  )
}

/**
 * A barrier that waits for no other collective, in which rank 0 says who is missing: there it fails with COLLECTIVE_TIMEOUT, "rank 2 (worker2) failed to pass monitoredBarrier", elsewhere with
 * GROUP_BROKEN, whose cause that is. PyTorch: `monitored_barrier`.
 * @throws (rejects) as `allReduce`
 * @example await monitoredBarrier({ timeoutMs: 30_000, waitAllRanks: true }) // after 30 s rank 0 names the ranks that are missing
 */
export function monitoredBarrier(options: MonitoredBarrierOptions = {}): Work<void> {
  return attempt(() => {
    const group = groupOf('monitoredBarrier', options, ['waitAllRanks'])
    const { waitAllRanks = false } = options
    const timedOut = (missing: readonly number[], timeoutMs: number, sequence: number) =>
      barrierFailed(group, waitAllRanks ? missing : missing.slice(0, 1), timeoutMs, sequence)
    const spec = { op: 'monitoredBarrier', head: 'monitoredBarrier', algorithm: algorithms.monitoredBarrier }
    return group.start(group.rank === 0 ? { ...spec, timedOut } : spec, options)
  })
}
