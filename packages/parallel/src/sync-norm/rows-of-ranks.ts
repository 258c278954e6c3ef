/**
 * How the ranks of a group exchange rows of numbers of one pass of one layer: each sends its row to all others and adds up, or merges, the rows in the
 * order of ranks. `sync-batch-norm.ts` does so in forward, `sync-norm-nodes.ts` in backward.
 *
 * Note [Tags]
 *
 * Passes begin such exchanges in an order that can depend on time: where a model has branches, a layer of one waits while the other continues, and the reducer's
 * all-reduces begin in between. The collectives of a group must begin in one order on all ranks. So rows travel as `send` and `recv`, whose tag says which layer, which of its
 * forward passes, and which direction: no two that are under way at once have one tag. An exchange that fails breaks the group, as a collective does, since the others
 * would wait in vain.
 */
import { isPostgradError, PostgradError } from '@postgrad/base'
import type { ProcessGroup } from '@postgrad/process-group'
import { RESERVED_TAGS, recvReserved, sendReserved } from '@postgrad/process-group/internal'
import { WorkerSlot } from '@postgrad/rpc/internal'
import { tensor } from '@postgrad/tensor'
import { outsideOfScopes } from '@postgrad/tensor/internal'

/** The row's pass. */
export interface RowKey {
  /** The layer's number in its group. */
  readonly layer: number
  /** The how many-th forward pass of the layer. */
  readonly call: number
  readonly direction: 'forward' | 'backward'
  /** How many channels this rank's layer has: for errors. */
  readonly channels: number
}

/** Passes of so many forwards of one layer have tags of their own. */
const CALLS = 2 ** 20

const tagOf = ({ layer, call, direction }: RowKey): number =>
  RESERVED_TAGS + 2 * (layer * CALLS + (call % CALLS)) + (direction === 'forward' ? 0 : 1)

/** How many layers each group of a worker has. */
const layers = new WorkerSlot('syncBatchNorm', () => new WeakMap<ProcessGroup, number>())

/** The number of a new layer: all ranks make the same ones in one order. */
export function nextLayer(group: ProcessGroup): number {
  const counts = layers.of(group.runtime)
  const number = counts.get(group) ?? 0
  counts.set(group, number + 1)
  return number
}

/**
 * Gives all others this rank's row, and gives those of all ranks, by rank. Rejects with COLLECTIVE_MISMATCH if rows have other lengths, COLLECTIVE_TIMEOUT, GROUP_BROKEN; then
 * the group is broken. Errors say which layer they are of.
 */
export async function rowsOfRanks(group: ProcessGroup, row: Float64Array, key: RowKey): Promise<readonly Float64Array[]> {
  const options = { group, tag: tagOf(key) }
  const rows = Array.from({ length: group.size }, () => row)
  const works: PromiseLike<unknown>[] = []
  // Not made in the caller's memoryScope, which ends before they come.
  outsideOfScopes(() => {
    const own = tensor(row, { device: 'cpu' })
    for (const [rank, globalRank] of group.ranks.entries()) {
      if (rank === group.rank) continue
      const into = tensor(new Float64Array(row.length), { device: 'cpu' })
      works.push(sendReserved(own, globalRank, options))
      works.push(
        recvReserved(into, globalRank, options).then(() => {
          rows[rank] = Float64Array.from(into.dataSync() as Float64Array)
        }),
      )
    }
  })
  try {
    await Promise.all(works)
  } catch (error) {
    const ofLayer = withLayer(error, key)
    group.abort(ofLayer)
    throw ofLayer
  }
  return rows
}

const REMEDIES: Readonly<Record<string, string>> = {
  COLLECTIVE_TIMEOUT: 'All ranks of the group call it, in training mode, and run its backward pass; look at what keeps that rank.',
  COLLECTIVE_MISMATCH:
    'Give the layer as many channels on all ranks, and call its forwards in the same order on all; the group is broken, so make it again.',
}

/** For errors of a send or recv that no program has written. */
function withLayer(error: unknown, { layer, call, direction, channels }: RowKey): unknown {
  if (!isPostgradError(error)) return error
  const { code, message, remedy = '' } = error
  // The remedy, which ends the message, appears once at most.
  const what = message.endsWith(remedy) ? message.slice(0, message.length - remedy.length).trimEnd() : message
  return new PostgradError(code, {
    op: 'SyncBatchNorm',
    remedy: REMEDIES[code] ?? remedy,
    message: `${direction} of layer ${layer} of its group (C = ${channels}), forward number ${call} of it, counted from 0: ${what}`,
    cause: error,
    values: { ...error.values, layer, call, direction, channels },
  })
}
