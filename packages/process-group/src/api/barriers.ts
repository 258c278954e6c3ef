/** Users call these to let ranks wait. */
import * as algorithms from '../algorithms/barriers.js'
import { barrierFailed } from '../common/errors.js'
import type { CollectiveOptions } from '../group/process-group.js'
import type { Work } from '../group/work.js'
import { groupOf } from './checks.js'
import { attempt } from './reductions.js'

/** Options of `monitoredBarrier`. */
export interface MonitoredBarrierOptions extends CollectiveOptions {
  /** Whether the error names all missing ranks, and not only the first one; default false. */
  readonly waitAllRanks?: boolean
}

/**
 * Waits until all ranks have called it, and until the earlier collectives of this rank have ended. PyTorch: `barrier`.
 * @throws the errors of `allReduce`, from the work
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
 * A barrier in which rank 0 finds out which ranks are missing. It does not wait for other collectives. If a rank does not arrive in time, the work of rank 0
 * fails with COLLECTIVE_TIMEOUT ("rank 2 (worker2) failed to pass monitoredBarrier"), and that of the other ranks with GROUP_BROKEN, whose cause is that error.
 * PyTorch: `monitored_barrier`.
 * @throws the errors of `allReduce`, from the work
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
