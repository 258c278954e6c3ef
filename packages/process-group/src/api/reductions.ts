/** Users call these to add up, or otherwise reduce, the tensors of all ranks. */
import { isTensor, type SparseTensor, type Tensor } from '@postgrad/tensor'
import { argumentText, invalidArgument, isSparse, numelOf, raw } from '@postgrad/tensor/internal'
import { allReduce as allReduceAlgorithm } from '../algorithms/all-reduce.js'
import { checkOp, nameOfOp, type ReduceOp } from '../algorithms/reduce-op.js'
import { reduce as reduceAlgorithm, reduceScatter as reduceScatterAlgorithm } from '../algorithms/reductions.js'
import { allReduceSparse } from '../algorithms/sparse.js'
import type { Algorithm, Place } from '../common/step.js'
import type { CollectiveOptions, ProcessGroup } from '../group/process-group.js'
import { Work } from '../group/work.js'
import {
  checkDense,
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

/** Options of collectives that reduce. */
export interface AllReduceOptions extends CollectiveOptions {
  /** How the tensors are combined; default `ReduceOp.SUM`. */
  readonly op?: ReduceOp
}

/**
 * Writes the reduction of the tensors of all ranks into each of them. All ranks get the same bits: ranks are added in their order. A sparse tensor is not
 * written to; the work resolves to the sum. PyTorch: `all_reduce`.
 * @throws COLLECTIVE_TIMEOUT if a rank does not call it in time; COLLECTIVE_MISMATCH if the ranks call different collectives or tensors; GROUP_BROKEN if a
 * member has died or the group is broken; CALL_CANCELLED if `signal` aborts; DTYPE_MISMATCH or INVALID_ARGUMENT if the arguments do not fit;
 * PROCESS_GROUP_NOT_INITIALIZED without a group. All come from the work, and every collective has them.
 * @example
 * await allReduce(tensor([getRank(), 1])) // [1, 2]
 * await allReduce(tensor([getRank(), 1]), { op: ReduceOp.MAX }) // [1, 1]
 */
export function allReduce<T extends Tensor>(tensor: T, options: AllReduceOptions = {}): Work<T> {
  return attempt(() => {
    const group = groupOf('allReduce', options, ['op'])
    if (isTensor(tensor) && isSparse(tensor)) return sparse(group, tensor, options) as unknown as Work<T>
    checkDense('allReduce', 'the tensor', tensor)
    return reduceAll('allReduce', group, [tensor], tensor, options)
  })
}

/**
 * Reduces several tensors of one dtype at once on all ranks. The tensors must not share elements. PyTorch: `all_reduce_coalesced`.
 * @throws INPLACE_OVERLAP if two tensors share an element; the errors of `allReduce`; both from the work
 * @example
 * const [a, b] = await allReduceCoalesced([tensor([1, 2]), tensor([getRank()])])
 * a! // [2, 4]
 * b! // [1]
 */
export function allReduceCoalesced(tensors: readonly Tensor[], options: AllReduceOptions = {}): Work<readonly Tensor[]> {
  return attempt(() => {
    const group = groupOf('allReduceCoalesced', options, ['op'])
    checkList('allReduceCoalesced', 'the tensors', tensors)
    return reduceAll('allReduceCoalesced', group, tensors, tensors, options)
  })
}

function reduceAll<T>(fn: string, group: ProcessGroup, tensors: readonly Tensor[], value: T, options: AllReduceOptions): Work<T> {
  const { op = 'sum' } = options
  checkOp(fn, op, tensors[0]!.dtype)
  checkOutputsApart(fn, 'the tensors', tensors)
  const name = nameOfOp(op)
  const head = `${fn}(${name}) ${listText(tensors)}`
  return group.start(
    {
      op: fn,
      head,
      *algorithm(place: Place): Algorithm<T> {
        premultiply(op, tensors)
        yield* allReduceAlgorithm(place, fn, name, tensors)
        return value
      },
    },
    options,
  )
}

/** The factor of this rank. */
function premultiply(op: ReduceOp, tensors: readonly Tensor[]): void {
  if (typeof op === 'object') for (const tensor of tensors) raw.mul_(tensor, op.factor)
}

function sparse(group: ProcessGroup, tensor: SparseTensor, options: AllReduceOptions): Work<SparseTensor> {
  const { op = 'sum' } = options
  if (op !== 'sum') throw invalidArgument('allReduce', 'SUM for sparse tensors', argumentText(op), 'Convert it with toDense().')
  const head = `allReduce(sum) sparse ${tensorText(tensor)}`
  return group.start({ op: 'allReduce', head, algorithm: (place) => allReduceSparse(place, tensor) }, options)
}

/**
 * Writes the reduction of the tensors of all ranks into the tensor of rank `dst` (a rank of the default group). The tensors of other ranks do not change.
 * PyTorch: `reduce`.
 * @throws the errors of `allReduce`, from the work
 * @example await reduce(tensor([getRank() + 1]), 0) // rank 0: [3], rank 1: [2]
 */
export function reduce(tensor: Tensor, dst: number, options: AllReduceOptions = {}): Work<Tensor> {
  return attempt(() => {
    const group = groupOf('reduce', options, ['op'])
    checkDense('reduce', 'the tensor', tensor)
    const root = rankIn('reduce', 'dst', group, dst)
    const { op = 'sum' } = options
    if (group.rank === root) checkOutputs('reduce', 'the tensor of dst', [tensor])
    checkOp('reduce', op, tensor.dtype)
    const name = nameOfOp(op)
    return group.start(
      {
        op: 'reduce',
        head: `reduce(${name}, dst ${dst}) ${tensorText(tensor)}`,
        *algorithm(place: Place): Algorithm<Tensor> {
          // Elsewhere than at the root it stays as it is.
          const own = typeof op === 'object' ? raw.mul(tensor, op.factor) : tensor
          if (place.rank === root && own !== tensor) raw.copy_(tensor, own)
          yield* reduceAlgorithm(place, 'reduce', name, root, [place.rank === root ? tensor : own])
          return tensor
        },
      },
      options,
    )
  })
}

/**
 * Reduces, for each rank r, the tensors `inputList[r]` of all ranks, and writes the result into `output` of rank r. PyTorch: `reduce_scatter`.
 * @throws the errors of `allReduce`, from the work
 * @example await reduceScatter(zeros([1]), [tensor([1]), tensor([10])]) // rank 0: [2], rank 1: [20]
 */
export function reduceScatter(output: Tensor, inputList: readonly Tensor[], options: AllReduceOptions = {}): Work<Tensor> {
  return attempt(() => {
    const group = groupOf('reduceScatter', options, ['op'])
    checkDense('reduceScatter', 'the output', output)
    checkPerRank('reduceScatter', 'the inputs', inputList, group, output)
    return scattered('reduceScatter', group, output, inputList, options)
  })
}

/**
 * Reduces one slice of `input` for each rank, and writes the result into `output` of that rank. The slices follow each other in the first dimension of `input`,
 * or are stacked in a new first dimension. PyTorch: `reduce_scatter_tensor`.
 * @throws the errors of `allReduce`, from the work
 * @example await reduceScatterTensor(zeros([1]), tensor([1, 10])) // rank 0: [2], rank 1: [20]
 */
export function reduceScatterTensor(output: Tensor, input: Tensor, options: AllReduceOptions = {}): Work<Tensor> {
  return attempt(() => {
    const group = groupOf('reduceScatterTensor', options, ['op'])
    checkDense('reduceScatterTensor', 'the output', output)
    checkDense('reduceScatterTensor', 'the input', input)
    return scattered('reduceScatterTensor', group, output, slicesOf('reduceScatterTensor', 'the input', input, output, group), options)
  })
}

function scattered(fn: string, group: ProcessGroup, output: Tensor, inputs: readonly Tensor[], options: AllReduceOptions): Work<Tensor> {
  const { op = 'sum' } = options
  checkOutputs(fn, 'the output', [output])
  checkOp(fn, op, output.dtype)
  const name = nameOfOp(op)
  // This rank reads it while it writes: in place is the very same elements.
  const mine = inputs[group.rank]!
  const isCopied = mine.storage === output.storage && !isSameView(mine, output)
  return group.start(
    {
      op: fn,
      head: `${fn}(${name}) ${tensorText(output)}`,
      *algorithm(place: Place): Algorithm<Tensor> {
        const apart = isCopied ? inputs.map((input) => (input === mine ? raw.clone(input) : input)) : inputs
        const own = typeof op === 'object' ? inputs.map((input) => raw.mul(input, op.factor)) : apart
        yield* reduceScatterAlgorithm(place, fn, name, output, own)
        return output
      },
    },
    options,
  )
}

const isSameView = (a: Tensor, b: Tensor): boolean => a.offset === b.offset && a.shape.every((_, d) => a.strides[d] === b.strides[d])

/** A large tensor as one view for each rank, each of the shape of the small one. @throws SHAPE_MISMATCH, DTYPE_MISMATCH */
export function slicesOf(op: string, what: string, large: Tensor, small: Tensor, { size }: ProcessGroup): Tensor[] {
  const extent = small.shape[0] ?? 1
  const isConcatenated = large.shape[0] === size * extent && large.shape.slice(1).join() === small.shape.slice(1).join()
  const isStacked = large.shape.join() === [size, ...small.shape].join()
  if (large.dtype !== small.dtype || !(isConcatenated || isStacked) || numelOf(large.shape) !== size * small.numel) {
    const expected = `${small.dtype} [${[size * extent, ...small.shape.slice(1)].join(', ')}] or [${[size, ...small.shape].join(', ')}] as ${what}`
    throw shapeError(op, expected, tensorText(large))
  }
  return Array.from({ length: size }, (_, rank) => {
    if (isStacked) return raw.select(large, 0, rank)
    const slice = raw.narrow(large, 0, rank * extent, extent)
    return small.shape.length === 0 ? raw.select(slice, 0, 0) : slice
  })
}

/** An error before anything begins is the work's error. */
export function attempt<T>(start: () => Work<T>): Work<T> {
  try {
    return start()
  } catch (error) {
    return Work.rejected(error)
  }
}
