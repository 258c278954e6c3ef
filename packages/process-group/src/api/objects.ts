/** Users call these to send values other than tensors from rank to rank: all that can be arguments of calls, also with tensors and references inside. All get copies. */
import { argumentText, invalidArgument } from '@postgrad/tensor/internal'
import * as algorithms from '../algorithms/objects.js'
import type { Algorithm } from '../common/step.js'
import type { CollectiveOptions } from '../group/process-group.js'
import type { Work } from '../group/work.js'
import { groupOf, rankIn } from './checks.js'
import { attempt } from './reductions.js'

/** Options of `gatherObject`. */
export interface GatherObjectOptions extends CollectiveOptions {
  /** The rank that receives the values, as a rank of the default group; default the first rank of the group. */
  readonly dst?: number
}

/** Options of `broadcastObjectList` and `scatterObjectList`. */
export interface FromRankOptions extends CollectiveOptions {
  /** The rank that sends the values, as a rank of the default group; default the first rank of the group. */
  readonly src?: number
}

/**
 * Returns the values of all ranks, in the order of the ranks, on each rank. PyTorch: `all_gather_object`.
 * @throws WIRE_UNSUPPORTED_VALUE if the value cannot be sent; the errors of `allReduce`; both from the work
 * @example await allGatherObject({ rank: getRank() }) // [{ rank: 0 }, { rank: 1 }]
 */
export function allGatherObject<T>(value: T, options: CollectiveOptions = {}): Work<T[]> {
  return attempt(() => {
    const group = groupOf('allGatherObject', options)
    const spec = { op: 'allGatherObject', head: 'allGatherObject' }
    return group.start({ ...spec, algorithm: (place) => algorithms.allGatherValues(place, value) as Algorithm<T[]> }, options)
  })
}

/**
 * Returns the values of all ranks, in the order of the ranks, on rank `dst`; null on other ranks. PyTorch: `gather_object`.
 * @throws the errors of `allGatherObject`, from the work
 * @example await gatherObject(`loss of rank ${getRank()}`, { dst: 0 }) // rank 0: ['loss of rank 0', 'loss of rank 1'], rank 1: null
 */
export function gatherObject<T>(value: T, options: GatherObjectOptions = {}): Work<T[] | null> {
  return attempt(() => {
    const group = groupOf('gatherObject', options, ['dst'])
    const { dst = group.ranks[0]! } = options
    const root = rankIn('gatherObject', 'dst', group, dst)
    const spec = { op: 'gatherObject', head: `gatherObject(dst ${dst})` }
    return group.start({ ...spec, algorithm: (place) => algorithms.gatherValues(place, root, value) as Algorithm<T[] | null> }, options)
  })
}

/**
 * Writes the values in the list of rank `src` into the lists of all other ranks, which have the same length. PyTorch: `broadcast_object_list`.
 * @throws the errors of `allGatherObject`, from the work
 * @example
 * const list = getRank() === 0 ? ['run7', 3] : ['', 0]
 * await broadcastObjectList(list, { src: 0 }) // ['run7', 3]
 */
export function broadcastObjectList<T>(list: T[], options: FromRankOptions = {}): Work<T[]> {
  return attempt(() => {
    const group = groupOf('broadcastObjectList', options, ['src'])
    const { src = group.ranks[0]! } = options
    const root = rankIn('broadcastObjectList', 'src', group, src)
    if (!Array.isArray(list) || list.length === 0) throw invalidArgument('broadcastObjectList', 'a non-empty array', argumentText(list))
    const head = `broadcastObjectList(src ${src}) of ${list.length}`
    return group.start(
      {
        op: 'broadcastObjectList',
        head,
        *algorithm(place): Algorithm<T[]> {
          const values = yield* algorithms.broadcastValues(place, root, [...list])
          if (place.rank !== root) for (let i = 0; i < list.length; i++) list[i] = values[i] as T
          return list
        },
      },
      options,
    )
  })
}

/**
 * Sends each rank r the value `list[r]` of rank `src`; other ranks pass null. PyTorch: `scatter_object_list`.
 * @throws the errors of `allGatherObject`, from the work
 * @example await scatterObjectList(getRank() === 0 ? ['a', 'b'] : null, { src: 0 }) // rank 0: 'a', rank 1: 'b'
 */
export function scatterObjectList<T>(list: readonly T[] | null, options: FromRankOptions = {}): Work<T> {
  return attempt(() => {
    const group = groupOf('scatterObjectList', options, ['src'])
    const { src = group.ranks[0]! } = options
    const root = rankIn('scatterObjectList', 'src', group, src)
    if (group.rank === root && (!Array.isArray(list) || list.length !== group.size)) {
      throw invalidArgument(
        'scatterObjectList',
        `${group.size} values on src, one for each rank`,
        Array.isArray(list) ? `${list.length}` : argumentText(list),
      )
    }
    const values = group.rank === root ? [...list!] : null
    const spec = { op: 'scatterObjectList', head: `scatterObjectList(src ${src})` }
    return group.start({ ...spec, algorithm: (place) => algorithms.scatterValues(place, root, values) as Algorithm<T> }, options)
  })
}
