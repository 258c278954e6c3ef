/** Users call these to make groups, to ask about them, and to end them. */
import { isPostgradError, PostgradError } from '@postgrad/base'
import { checkTime } from '@postgrad/base/internal'
import type { WorkerInfo } from '@postgrad/rpc'
import { argumentText, checkOptions, invalidArgument } from '@postgrad/tensor/internal'
import { formDefault, formSubgroups } from '../group/form.js'
import type { CollectiveOptions, DebugLevel, ProcessGroup } from '../group/process-group.js'
import { currentProcessGroups, type ProcessGroups } from '../group/process-groups.js'
import { GROUP_TIMEOUT_MS } from '../group/wait-for.js'
import { groupOf, groupOrDefault } from './checks.js'

/** Options of `initProcessGroup`. */
export interface ProcessGroupOptions {
  /** The name under which the members meet. With different names, several groups of the same workers can be made at the same time. Default 'default'. */
  readonly name?: string
  /** The names of the members, in the order of their ranks. Default: all workers, in the order of their ids. */
  readonly ranks?: readonly string[]
  /** The deadline of this call, and the default deadline of the group's collectives, in ms. Default 30 minutes, as in gloo; 0: without a limit. */
  readonly timeoutMs?: number
  /** How much the group checks and reports; default 'off'. PyTorch: `TORCH_DISTRIBUTED_DEBUG`. */
  readonly debug?: DebugLevel
  /**
   * After how many ms of waiting in an operation of the group, or of a group made from it, the first waiting rank prints one line. The line names the ranks for
   * which it waits. Default 10,000; 0 turns this off. A simulation prints nothing.
   */
  readonly warnAfterMs?: number
}

/** Options of `newGroup`, `newSubgroups` and `newSubgroupsByEnumeration`. */
export interface NewGroupOptions extends CollectiveOptions {
  /** The default deadline of the new group's collectives, in ms; default that of the default group; 0: without a limit. */
  readonly groupTimeoutMs?: number
}

/** How long a rank waits before it is said. */
const WARN_AFTER_MS = 10_000
/** What PyTorch's programs pass. */
const NO_BACKEND =
  'There is one backend, and the workers have met already: rank and world size follow from { ranks }, their names. Write initProcessGroup({ timeoutMs: 10_000 }).'
const DEBUG_LEVELS: readonly DebugLevel[] = ['off', 'info', 'detail']

/**
 * Makes the default group of this worker. All other members must call it, too. PyTorch: `init_process_group`.
 * @throws PROCESS_GROUP_EXISTS if this worker has a default group; GROUP_TIMEOUT with the names of the missing members if the deadline passes; WORKER_DIED if a
 * member died; COLLECTIVE_MISMATCH if the members pass different options; UNKNOWN_WORKER if the cluster does not have a member; INVALID_ARGUMENT or
 * TIMEOUT_INVALID if an option is invalid
 * @example
 * const group = await initProcessGroup({ timeoutMs: 10_000 }) // all workers call it
 * group.size // 2
 */
export async function initProcessGroup(options: ProcessGroupOptions = {}): Promise<ProcessGroup> {
  const op = 'initProcessGroup'
  checkOptions(op, options, ['name', 'ranks', 'timeoutMs', 'debug', 'warnAfterMs'], NO_BACKEND)
  const { name = 'default', ranks, timeoutMs = GROUP_TIMEOUT_MS, debug = 'off', warnAfterMs = WARN_AFTER_MS } = options
  if (typeof name !== 'string' || name === '') throw invalidArgument(op, 'a non-empty string as { name }', argumentText(name))
  if (!DEBUG_LEVELS.includes(debug)) throw invalidArgument(op, "'off', 'info' or 'detail' as { debug }", argumentText(debug))
  checkTime(op, timeoutMs, '0 for no limit')
  checkTime(op, warnAfterMs, '0 for never')
  const groups = groupsHere(op)
  const workers = membersOf(groups, ranks)
  return groups.initialize(() => formDefault(groups, name, workers, timeoutMs, debug, warnAfterMs))
}

const ON_WORKERS = 'as in await Promise.all(cluster.workers.map(({ name }) => cluster.on(name).run(main))), where main calls it'

/** @throws RPC_NOT_INITIALIZED */
function groupsHere(op: string): ProcessGroups {
  try {
    return currentProcessGroups()
  } catch (error) {
    if (!isPostgradError(error, 'RPC_NOT_INITIALIZED')) throw error
    throw new PostgradError('RPC_NOT_INITIALIZED', {
      op,
      message: 'no worker is current here, and ranks are workers',
      remedy: `Call it on every worker, ${ON_WORKERS}; after init, in member.run(main).`,
      cause: error,
    })
  }
}

/** @throws UNKNOWN_WORKER, INVALID_ARGUMENT */
function membersOf({ runtime }: ProcessGroups, names: readonly string[] | undefined): WorkerInfo[] {
  const op = 'initProcessGroup'
  if (names === undefined) {
    const workers = runtime.workers().sort((a, b) => a.id - b.id)
    // The main thread is linked with the workers, and none of them.
    if (workers.some(({ id }) => id === runtime.info.id)) return workers
    throw invalidArgument(
      op,
      'a call on each worker',
      `one on '${runtime.info.name}', which is not a rank`,
      `Call it on the workers, ${ON_WORKERS}.`,
    )
  }
  if (!Array.isArray(names) || names.length === 0) throw invalidArgument(op, 'the names of workers as { ranks }', argumentText(names))
  const workers = names.map((name) => runtime.resolve(name, op))
  if (new Set(workers.map(({ id }) => id)).size < workers.length)
    throw invalidArgument(op, 'each worker once in { ranks }', names.join(', '))
  if (!workers.some(({ id }) => id === runtime.info.id)) {
    throw invalidArgument(
      op,
      `worker '${runtime.info.name}', which calls it, among { ranks }`,
      names.join(', '),
      'Only members call it, and every member does.',
    )
  }
  return workers
}

/**
 * Makes a group of some ranks of the default group. All ranks of the default group must call it, in the same order. A rank that is not a member gets a handle
 * whose rank is -1. PyTorch: `new_group`.
 * @param ranks ranks of the default group; default all
 * @throws the errors of `allReduce`
 * @example
 * const group = await newGroup([0, 2]) // all 3 ranks call it
 * group.rank // rank 0: 0, rank 1: -1, rank 2: 1
 */
export async function newGroup(ranks?: readonly number[], options: NewGroupOptions = {}): Promise<ProcessGroup> {
  const op = 'newGroup'
  const parent = groupOf(op, { ...options, group: undefined } as NewGroupOptions, ['groupTimeoutMs'])
  const [group] = await form(op, parent, [ranks === undefined ? [...parent.ranks] : checkRanks(op, ranks, parent.size)], options)
  return group!
}

/** The result of `newSubgroups`. */
export interface Subgroups {
  /** The group of this rank; null if this rank is in none of them. */
  readonly current: ProcessGroup | null
  /** All groups, in order. This rank is a member of at most one of them. */
  readonly all: readonly ProcessGroup[]
}

/**
 * Divides the default group into groups of `size` consecutive ranks. All ranks of the default group must call it. PyTorch: `new_subgroups`.
 * @throws INVALID_ARGUMENT if `size` does not divide the number of ranks; the errors of `allReduce`
 * @example
 * const { current } = await newSubgroups(2) // of 4 ranks: 0 and 1, 2 and 3
 * current?.ranks // rank 0: [0, 1], rank 1: [0, 1], rank 2: [2, 3], rank 3: [2, 3]
 */
export async function newSubgroups(size: number, options: NewGroupOptions = {}): Promise<Subgroups> {
  const op = 'newSubgroups'
  const parent = groupOf(op, { ...options, group: undefined } as NewGroupOptions, ['groupTimeoutMs'])
  if (!Number.isSafeInteger(size) || size < 1) throw invalidArgument(op, 'an integer ≥ 1 as the size', argumentText(size))
  if (size > parent.size) throw invalidArgument(op, `a size that does not exceed the world size, ${parent.size}`, size)
  if (parent.size % size !== 0) throw invalidArgument(op, `a size by which the world size, ${parent.size}, is divisible`, size)
  const lists = Array.from({ length: parent.size / size }, (_, i) => Array.from({ length: size }, (__, j) => i * size + j))
  return subgroups(await form(op, parent, lists, options))
}

/**
 * Makes one group for each list of ranks of the default group. All ranks of the default group must call it. PyTorch: `new_subgroups_by_enumeration`.
 * @throws INVALID_ARGUMENT if a rank is in two lists; the errors of `allReduce`
 * @example
 * const { current } = await newSubgroupsByEnumeration([[0, 2], [1, 3]])
 * current?.ranks // rank 0: [0, 2], rank 1: [1, 3], rank 2: [0, 2], rank 3: [1, 3]
 */
export async function newSubgroupsByEnumeration(lists: readonly (readonly number[])[], options: NewGroupOptions = {}): Promise<Subgroups> {
  const op = 'newSubgroupsByEnumeration'
  const parent = groupOf(op, { ...options, group: undefined } as NewGroupOptions, ['groupTimeoutMs'])
  if (!Array.isArray(lists) || lists.length === 0) throw invalidArgument(op, 'a non-empty array of arrays of ranks', argumentText(lists))
  const checked = lists.map((ranks) => checkRanks(op, ranks, parent.size))
  const seen = new Set<number>()
  for (const rank of checked.flat()) {
    if (seen.has(rank)) throw invalidArgument(op, 'each rank in one subgroup at most', `rank ${rank} in two`)
    seen.add(rank)
  }
  return subgroups(await form(op, parent, checked, options))
}

function subgroups(all: readonly ProcessGroup[]): Subgroups {
  return { current: all.find(({ rank }) => rank >= 0) ?? null, all }
}

function form(op: string, parent: ProcessGroup, lists: readonly (readonly number[])[], options: NewGroupOptions): Promise<ProcessGroup[]> {
  const { groupTimeoutMs = parent.timeoutMs } = options
  checkTime(op, groupTimeoutMs, '0 for no limit')
  if (options.group !== undefined) throw invalidArgument(op, 'no { group }', 'one', 'It is always a part of the default group.')
  return formSubgroups(currentProcessGroups(), parent, op, lists, groupTimeoutMs, options)
}

/** As PyTorch does it, sorted. @throws INVALID_ARGUMENT */
function checkRanks(op: string, ranks: readonly number[], size: number): number[] {
  if (!Array.isArray(ranks) || ranks.length === 0) throw invalidArgument(op, 'a non-empty array of ranks', argumentText(ranks))
  for (const rank of ranks) {
    if (!Number.isSafeInteger(rank) || rank < 0 || rank >= size) {
      throw invalidArgument(op, `ranks of the default group, from 0 to ${size - 1}`, argumentText(rank))
    }
  }
  if (new Set(ranks).size < ranks.length) throw invalidArgument(op, 'each rank once', ranks.join(', '))
  return [...ranks].sort((a, b) => a - b)
}

/**
 * Ends a group on this worker. Without an argument, or for the default group, it ends all groups. Operations of this worker that are under way fail with
 * PROCESS_GROUP_DESTROYED. Members that wait for this rank fail with GROUP_BROKEN. PyTorch: `destroy_process_group`.
 * @throws PROCESS_GROUP_NOT_INITIALIZED if this worker has no default group
 * @example
 * await barrier()
 * destroyProcessGroup()
 * isInitialized() // false
 */
export function destroyProcessGroup(group?: ProcessGroup): void {
  const one = groupOrDefault('destroyProcessGroup', group)
  const groups = currentProcessGroups()
  for (const each of group === undefined || one === groups.defaultGroup ? groups.values() : [one]) each.destroy()
}

/**
 * Whether this worker has a default group. PyTorch: `is_initialized`.
 * @example if (!isInitialized()) await initProcessGroup()
 */
export function isInitialized(): boolean {
  return currentProcessGroups().defaultGroup !== null
}

/**
 * This worker's rank in `group` (default: the default group); -1 if this worker is not a member. PyTorch: `get_rank`.
 * @throws PROCESS_GROUP_NOT_INITIALIZED if this worker has no default group
 * @example getRank() // rank 0: 0, rank 1: 1
 */
export function getRank(group?: ProcessGroup): number {
  return groupOrDefault('getRank', group).rank
}

/**
 * The number of ranks in `group` (default: the default group); -1 if this worker is not a member. PyTorch: `get_world_size`.
 * @throws PROCESS_GROUP_NOT_INITIALIZED if this worker has no default group
 * @example getWorldSize() // 2
 */
export function getWorldSize(group?: ProcessGroup): number {
  const { rank, size } = groupOrDefault('getWorldSize', group)
  return rank < 0 ? -1 : size
}

/**
 * Converts a rank of `group` to the rank of the same worker in the default group. PyTorch: `get_global_rank`.
 * @throws INVALID_ARGUMENT if the group does not have that rank
 * @example
 * const group = await newGroup([1, 2]) // 2 of 3 ranks
 * group.rank // rank 0: -1, rank 1: 0, rank 2: 1
 * getGlobalRank(group, 0) // 1
 */
export function getGlobalRank(group: ProcessGroup, groupRank: number): number {
  const rank = groupOrDefault('getGlobalRank', group).ranks[groupRank]
  if (rank === undefined)
    throw invalidArgument('getGlobalRank', `a rank of the group, from 0 to ${group.size - 1}`, argumentText(groupRank))
  return rank
}

/**
 * Converts a rank of the default group to the rank of the same worker in `group`. PyTorch: `get_group_rank`.
 * @throws INVALID_ARGUMENT if that worker is not a member of the group
 * @example
 * const group = await newGroup([1, 2]) // 2 of 3 ranks
 * group.rank // rank 0: -1, rank 1: 0, rank 2: 1
 * getGroupRank(group, 2) // 1
 */
export function getGroupRank(group: ProcessGroup, globalRank: number): number {
  const rank = groupOrDefault('getGroupRank', group).ranks.indexOf(globalRank)
  if (rank < 0) throw invalidArgument('getGroupRank', `a member of the group, one of ${group.ranks.join(', ')}`, argumentText(globalRank))
  return rank
}
