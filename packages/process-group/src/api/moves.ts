/** Users call these to send tensors from rank to rank. */
import type { Tensor } from '@postgrad/tensor'
import { argumentText, invalidArgument, markShared, raw } from '@postgrad/tensor/internal'
import * as algorithms from '../algorithms/moves.js'
import type { Algorithm, Place } from '../common/step.js'
import type { CollectiveOptions, ProcessGroup } from '../group/process-group.js'
import type { Work } from '../group/work.js'
import {
  checkCount,
  checkDense,
  checkLike,
  checkList,
  checkOutputs,
  checkOutputsApart,
  checkPerRank,
  groupOf,
  listText,
  rankIn,
  shapeError,
  tensorText,
} from './checks.js'
import { attempt, slicesOf } from './reductions.js'

/** Options of `gather`. */
export interface GatherOptions extends CollectiveOptions {
  /** The rank that receives the tensors, as a rank of the default group; default the first rank of the group. */
  readonly dst?: number
  /** On `dst` only: one tensor for each rank, into which the tensors are written. */
  readonly gatherList?: readonly Tensor[]
}

/** Options of `scatter`. */
export interface ScatterOptions extends CollectiveOptions {
  /** The rank that sends the tensors, as a rank of the default group; default the first rank of the group. */
  readonly src?: number
  /** On `src` only: one tensor for each rank. */
  readonly scatterList?: readonly Tensor[]
}

/** Options of `allToAllSingle`. */
export interface AllToAllOptions extends CollectiveOptions {
  /** How many rows of the input go to each rank; default equal parts. */
  readonly inputSplits?: readonly number[]
  /** How many rows of the output come from each rank; default equal parts. */
  readonly outputSplits?: readonly number[]
}

/**
 * Writes the tensor of rank `src` (a rank of the default group) into the tensors of all other ranks. PyTorch: `broadcast`.
 * @throws the errors of `allReduce`, from the work
 * @example await broadcast(getRank() === 0 ? tensor([1, 2]) : zeros([2]), 0) // [1, 2]
 */
export function broadcast(tensor: Tensor, src: number, options: CollectiveOptions = {}): Work<Tensor> {
  return attempt(() => {
    const group = groupOf('broadcast', options)
    checkDense('broadcast', 'the tensor', tensor)
    const root = rankIn('broadcast', 'src', group, src)
    if (group.rank !== root) checkOutputs('broadcast', 'the tensor', [tensor])
    else markShared(tensor)
    return begin(group, 'broadcast', `broadcast(src ${src}) ${tensorText(tensor)}`, tensor, options, (place) =>
      algorithms.broadcast(place, 'broadcast', root, [tensor]),
    )
  })
}

/**
 * Broadcasts several tensors at once; their dtypes may differ. PyTorch: `_broadcast_coalesced`.
 * @throws the errors of `allReduce`, from the work
 * @example
 * const model = new Linear(2, 1)
 * await broadcastCoalesced(model.parameters().map((p) => p.detach()), 0) // all ranks have the parameters of rank 0
 */
export function broadcastCoalesced(tensors: readonly Tensor[], src: number, options: CollectiveOptions = {}): Work<readonly Tensor[]> {
  return attempt(() => {
    const group = groupOf('broadcastCoalesced', options)
    if (!Array.isArray(tensors)) throw invalidArgument('broadcastCoalesced', 'an array of tensors', argumentText(tensors))
    for (const tensor of tensors) checkDense('broadcastCoalesced', 'each of the tensors', tensor)
    const root = rankIn('broadcastCoalesced', 'src', group, src)
    if (group.rank !== root) checkOutputs('broadcastCoalesced', 'the tensors', tensors)
    else for (const tensor of tensors) markShared(tensor)
    return begin(group, 'broadcastCoalesced', `broadcastCoalesced(src ${src}) ${listText(tensors)}`, tensors, options, (place) =>
      algorithms.broadcast(place, 'broadcastCoalesced', root, tensors),
    )
  })
}

/**
 * Writes the tensor of each rank r into `tensorList[r]` of all ranks. PyTorch: `all_gather`.
 * @throws the errors of `allReduce`, from the work
 * @example
 * const list = [zeros([1]), zeros([1])] // one for each rank
 * await allGather(list, tensor([getRank() + 5])) // [[5], [6]]
 */
export function allGather(tensorList: readonly Tensor[], tensor: Tensor, options: CollectiveOptions = {}): Work<readonly Tensor[]> {
  return attempt(() => {
    const group = groupOf('allGather', options)
    checkDense('allGather', 'the tensor', tensor)
    checkPerRank('allGather', 'the outputs', tensorList, group, tensor)
    checkOutputsApart('allGather', 'the outputs', tensorList)
    const outs = tensorList.map((out) => [out])
    return begin(group, 'allGather', `allGather ${tensorText(tensor)}`, tensorList, options, (place) =>
      algorithms.allGather(place, 'allGather', outs, [tensor]),
    )
  })
}

/**
 * Gathers the tensors of all ranks into one tensor: one after the other in the first dimension, or stacked in a new first dimension, as the shape of `output`
 * says. PyTorch: `all_gather_into_tensor`.
 * @throws the errors of `allReduce`, from the work
 * @example
 * await allGatherIntoTensor(zeros([4]), tensor([getRank(), 9])) // [0, 9, 1, 9]
 * await allGatherIntoTensor(zeros([2, 2]), tensor([getRank(), 9])) // [[0, 9], [1, 9]]
 */
export function allGatherIntoTensor(output: Tensor, input: Tensor, options: CollectiveOptions = {}): Work<Tensor> {
  return attempt(() => {
    const group = groupOf('allGatherIntoTensor', options)
    checkDense('allGatherIntoTensor', 'the output', output)
    checkOutputs('allGatherIntoTensor', 'the output', [output])
    checkDense('allGatherIntoTensor', 'the input', input)
    const outs = slicesOf('allGatherIntoTensor', 'the output', output, input, group).map((slice) => [slice])
    return begin(group, 'allGatherIntoTensor', `allGatherIntoTensor ${tensorText(input)}`, output, options, (place) =>
      algorithms.allGather(place, 'allGatherIntoTensor', outs, [input]),
    )
  })
}

/**
 * Gathers several tensors at once: tensor i of rank r is written into `lists[r][i]`. PyTorch: `all_gather_coalesced`.
 * @throws the errors of `allReduce`, from the work
 * @example
 * const lists = [0, 1].map(() => [zeros([1]), zeros([2])]) // for each rank, one for each tensor
 * await allGatherCoalesced(lists, [tensor([getRank()]), ones([2])])
 * lists[1]![0]! // [1]
 */
export function allGatherCoalesced(
  lists: readonly (readonly Tensor[])[],
  tensors: readonly Tensor[],
  options: CollectiveOptions = {},
): Work<readonly (readonly Tensor[])[]> {
  return attempt(() => {
    const group = groupOf('allGatherCoalesced', options)
    checkList('allGatherCoalesced', 'the tensors', tensors)
    if (
      !Array.isArray(lists) ||
      lists.length !== group.size ||
      lists.some((list) => !Array.isArray(list) || list.length !== tensors.length)
    ) {
      throw invalidArgument('allGatherCoalesced', `${group.size} lists of ${tensors.length} tensors as the outputs`, argumentText(lists))
    }
    for (const list of lists) {
      for (const [i, out] of list.entries()) {
        checkDense('allGatherCoalesced', 'each of the outputs', out)
        checkLike('allGatherCoalesced', `output ${i}`, out, tensors[i]!)
      }
    }
    checkOutputsApart('allGatherCoalesced', 'the outputs', lists.flat())
    return begin(group, 'allGatherCoalesced', `allGatherCoalesced ${listText(tensors)}`, lists, options, (place) =>
      algorithms.allGather(place, 'allGatherCoalesced', lists, tensors),
    )
  })
}

/**
 * Writes the tensor of each rank r into `gatherList[r]` of rank `dst`. The work resolves to that list there, and to null on other ranks. PyTorch: `gather`.
 * @throws the errors of `allReduce`, from the work
 * @example
 * const gatherList = getRank() === 0 ? [zeros([1]), zeros([1])] : undefined
 * await gather(tensor([getRank() + 5]), { dst: 0, gatherList }) // rank 0: [[5], [6]], rank 1: null
 */
export function gather(tensor: Tensor, options: GatherOptions = {}): Work<readonly Tensor[] | null> {
  return attempt(() => {
    const group = groupOf('gather', options, ['dst', 'gatherList'])
    const { dst = group.ranks[0]!, gatherList = null } = options
    const root = checkAtRoot('gather', group, tensor, ['dst', dst], ['gatherList', gatherList])
    checkOutputsApart('gather', 'gatherList', gatherList ?? [])
    return begin(group, 'gather', `gather(dst ${dst}) ${tensorText(tensor)}`, gatherList, options, (place) =>
      algorithms.gather(place, 'gather', root, gatherList, tensor),
    )
  })
}

/**
 * Writes `scatterList[r]` of rank `src` into the tensor of each rank r. PyTorch: `scatter`.
 * @throws the errors of `allReduce`, from the work
 * @example
 * const scatterList = getRank() === 0 ? [tensor([5]), tensor([6])] : undefined
 * await scatter(zeros([1]), { src: 0, scatterList }) // rank 0: [5], rank 1: [6]
 */
export function scatter(tensor: Tensor, options: ScatterOptions = {}): Work<Tensor> {
  return attempt(() => {
    const group = groupOf('scatter', options, ['src', 'scatterList'])
    const { src = group.ranks[0]!, scatterList = null } = options
    const root = checkAtRoot('scatter', group, tensor, ['src', src], ['scatterList', scatterList])
    checkOutputs('scatter', 'the tensor', [tensor])
    return begin(group, 'scatter', `scatter(src ${src}) ${tensorText(tensor)}`, tensor, options, (place) =>
      algorithms.scatter(place, 'scatter', root, tensor, scatterList),
    )
  })
}

/**
 * Sends `inputs[r]` to each rank r, and writes the tensor from rank r into `outputs[r]`. Shapes may differ between pairs of ranks, but sender and receiver must
 * agree. PyTorch: `all_to_all`.
 * @throws the errors of `allReduce`, from the work
 * @example
 * const rank = getRank()
 * await allToAll([zeros([1]), zeros([1])], [tensor([rank * 10]), tensor([rank * 10 + 1])]) // rank 0: [[0], [10]], rank 1: [[1], [11]]
 */
export function allToAll(outputs: readonly Tensor[], inputs: readonly Tensor[], options: CollectiveOptions = {}): Work<readonly Tensor[]> {
  return attempt(() => {
    const group = groupOf('allToAll', options)
    checkCount('allToAll', 'the outputs', outputs, group)
    checkOutputsApart('allToAll', 'the outputs', outputs)
    checkCount('allToAll', 'the inputs', inputs, group)
    checkLike('allToAll', 'the output of this rank', outputs[group.rank]!, inputs[group.rank]!)
    return begin(group, 'allToAll', `allToAll ${inputs[0]!.dtype}`, outputs, options, (place) =>
      algorithms.allToAll(place, 'allToAll', outputs, inputs),
    )
  })
}

/**
 * Exchanges rows of one tensor between all ranks: equal parts of the first dimension, or as many rows as the splits say. PyTorch: `all_to_all_single`.
 * @throws the errors of `allReduce`, from the work
 * @example await allToAllSingle(zeros([2]), tensor([getRank() * 10, getRank() * 10 + 1])) // rank 0: [0, 10], rank 1: [1, 11]
 */
export function allToAllSingle(output: Tensor, input: Tensor, options: AllToAllOptions = {}): Work<Tensor> {
  return attempt(() => {
    const group = groupOf('allToAllSingle', options, ['inputSplits', 'outputSplits'])
    checkDense('allToAllSingle', 'the output', output)
    checkOutputs('allToAllSingle', 'the output', [output])
    checkDense('allToAllSingle', 'the input', input)
    const outs = partsOf('outputSplits', output, options.outputSplits, group.size)
    const ins = partsOf('inputSplits', input, options.inputSplits, group.size)
    checkLike('allToAllSingle', 'the rows from this rank', outs[group.rank]!, ins[group.rank]!)
    const head = `allToAllSingle ${input.dtype} [${['*', ...input.shape.slice(1)].join(', ')}]`
    return begin(group, 'allToAllSingle', head, output, options, (place) => algorithms.allToAll(place, 'allToAllSingle', outs, ins))
  })
}

/** @throws INVALID_ARGUMENT, SHAPE_MISMATCH */
function partsOf(option: string, x: Tensor, splits: readonly number[] | undefined, size: number): Tensor[] {
  const rows = x.shape[0] ?? 0
  if (x.shape.length === 0) throw shapeError('allToAllSingle', 'a tensor with rows', '[]')
  if (splits === undefined && rows % size !== 0) {
    throw shapeError('allToAllSingle', `a number of rows that ${size} ranks divide, or { ${option} }`, `${rows} rows`)
  }
  const counts = splits ?? new Array<number>(size).fill(rows / size)
  const isRight =
    Array.isArray(counts) &&
    counts.length === size &&
    [...counts].every((count) => Number.isSafeInteger(count) && count >= 0) &&
    counts.reduce((sum, count) => sum + count, 0) === rows
  if (!isRight)
    throw invalidArgument('allToAllSingle', `${size} numbers of rows whose sum is ${rows} as { ${option} }`, argumentText(splits))
  let start = 0
  return counts.map((count) => {
    start += count
    return raw.narrow(x, 0, start - count, count)
  })
}

/** Gives the rank of the root, which alone has a list: a tensor for each rank, like `tensor`. @throws INVALID_ARGUMENT, SHAPE_MISMATCH, DTYPE_MISMATCH */
function checkAtRoot(
  op: string,
  group: ProcessGroup,
  tensor: Tensor,
  [rootName, globalRank]: readonly [name: string, rank: number],
  [listName, list]: readonly [name: string, list: readonly Tensor[] | null],
): number {
  checkDense(op, 'the tensor', tensor)
  const root = rankIn(op, rootName, group, globalRank)
  if (group.rank === root) checkPerRank(op, `${listName} on ${rootName}`, list, group, tensor)
  else if (list !== null) throw invalidArgument(op, `no ${listName} on others than ${rootName}`, argumentText(list), 'Leave it out there.')
  return root
}

/** A collective whose work gives `value`. */
function begin<T>(
  group: ProcessGroup,
  op: string,
  head: string,
  value: T,
  options: CollectiveOptions,
  algorithm: (place: Place) => Algorithm<void>,
): Work<T> {
  const spec = {
    ...{ op, head },
    *algorithm(place: Place): Algorithm<T> {
      yield* algorithm(place)
      return value
    },
  }
  return group.start(spec, options)
}
