/**
 * Makes groups. For the default group its members meet by rpc's `meet`, which has deadlines, notices deaths and names the missing. For every other one
 * all ranks of the default group call a collective, members or not. In both ways rank 0 gives the id.
 */
import { isPostgradError, PostgradError } from '@postgrad/base'
import type { WorkerInfo } from '@postgrad/rpc'
import { meet } from '@postgrad/rpc/internal'
import { invalid } from '../algorithms/parts.js'
import { collectiveTimedOut, neverMet, notMet } from '../common/errors.js'
import { type Algorithm, exchange, type Place } from '../common/step.js'
import type { CollectiveOptions, DebugLevel, ProcessGroup } from './process-group.js'
import type { ProcessGroups } from './process-groups.js'

/** A member's terms in the meeting. */
interface Proposal {
  readonly id: bigint
  /** See `heapAmong`. */
  readonly heap: number
  readonly ranks: readonly number[]
  readonly debug: DebugLevel
}

/** Members by rank. @throws (rejects) as rpc's `meet`, COLLECTIVE_MISMATCH */
export async function formDefault(
  groups: ProcessGroups,
  name: string,
  workers: readonly WorkerInfo[],
  timeoutMs: number,
  debug: DebugLevel,
  warnAfterMs: number,
): Promise<ProcessGroup> {
  const ids = workers.map(({ id }) => id)
  const own: Proposal = { id: groups.runtime.ids.take(), heap: groups.heapAmong(ids), ranks: ids, debug }
  return groups.whileForming(async () => {
    const proposals = await meet(own, workers, { op: 'initProcessGroup', round: name, timeoutMs, warnAfterMs }).catch((error: unknown) => {
      if (isPostgradError(error, 'PROGRAM_OVER')) throw neverMet({ name, workers }, Number(error.values.workerId))
      throw isPostgradError(error, 'GROUP_TIMEOUT') ? notMet(name, error) : error
    })
    const of = ({ name: worker }: WorkerInfo): Proposal => proposals.get(worker)!
    const first = of(workers[0]!)
    const other = workers.find((worker) => termsOf(of(worker)) !== termsOf(first))
    if (other !== undefined) throw disagreed(name, workers[0]!, first, other, of(other))
    const heaps = workers.map((worker) => of(worker).heap)
    const group = groups.add({ id: first.id, name, workers, ranks: workers.map((_, rank) => rank), timeoutMs, debug, warnAfterMs, heaps })
    groups.defaultGroup = group
    return group
  })
}

const termsOf = ({ ranks, debug }: Proposal): string =>
  `the workers ${ranks.join(', ')} as ranks 0 to ${ranks.length - 1}, debug '${debug}'`

function disagreed(name: string, a: WorkerInfo, first: Proposal, b: WorkerInfo, other: Proposal): PostgradError {
  return new PostgradError('COLLECTIVE_MISMATCH', {
    op: 'initProcessGroup',
    message: `group '${name}' is not the same on all workers: '${a.name}' says ${termsOf(first)}, '${b.name}' says ${termsOf(other)}`,
    remedy: 'All members pass the same { ranks }, in the same order, and the same { debug }.',
    values: { group: name, workers: [a.name, b.name] },
  })
}

/** One group for each list of ranks of the default group. Where this worker is not a member, its handle has rank -1. */
export function formSubgroups(
  groups: ProcessGroups,
  parent: ProcessGroup,
  op: string,
  lists: readonly (readonly number[])[],
  timeoutMs: number,
  options: CollectiveOptions,
): Promise<ProcessGroup[]> {
  const head = `${op} ${lists.map((ranks) => `[${ranks.join(', ')}]`).join(' ')}`
  return groups.whileForming(async () => {
    const number = parent.collectives.next
    const heaps = lists.map((ranks) => groups.heapAmong(ranks.map((rank) => parent.workers[rank]!.id)))
    const make = (): bigint[] => lists.map(() => groups.runtime.ids.take())
    const timedOut = (missing: readonly number[], limitMs: number, sequence: number) =>
      collectiveTimedOut(op, parent, { sequence, head, missing, isThrough: false, timeoutMs: limitMs, recent: [], remedy: ALL_CALL_IT })
    const agreed = await parent.start({ op, head, algorithm: (place) => agree(place, make, heaps), timedOut }, options)
    return lists.map((ranks, i) => {
      const workers = ranks.map((rank) => parent.workers[rank]!)
      const name = `${parent.name}/${number}${lists.length === 1 ? '' : `.${i}`}`
      const heapOf = (rank: number): number => agreed.heaps[rank]![i]!
      const { debug, warnAfterMs } = parent
      return groups.add({ id: agreed.ids[i]!, name, workers, ranks, timeoutMs, debug, warnAfterMs, heaps: ranks.map(heapOf) })
    })
  })
}

const ALL_CALL_IT =
  'All ranks of the default group must call it, also ranks that will not be members. Find out why the missing ranks did not.'

interface Agreed {
  readonly ids: readonly bigint[]
  /** By rank, then by group. */
  readonly heaps: readonly (readonly number[])[]
}

/** All say in which heap they are; rank 0 gives the ids. */
function* agree(place: Place, make: () => bigint[], own: readonly number[]): Algorithm<Agreed> {
  const made = place.rank === 0 ? make() : null
  const came = yield exchange(place, () => [own, made])
  const said = Array.from({ length: place.size }, (_, rank) => (rank === place.rank ? [own, made] : (came[rank] ?? [])))
  const ids: unknown = said[0]![1]
  if (!Array.isArray(ids) || ids.length !== own.length) throw invalid('the ids of groups')
  const isHeaps = (list: unknown): list is number[] => Array.isArray(list) && list.length === own.length && list.every(Number.isSafeInteger)
  if (!said.every(([heaps]) => isHeaps(heaps))) throw invalid('the heaps of groups')
  return { ids, heaps: said.map(([heaps]) => heaps as number[]) }
}
