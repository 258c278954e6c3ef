/** Checks of users' arguments, before a collective begins: which group, which rank, which tensors. The words are PyTorch's where it has some. */
import { PostgradError } from '@postgrad/base'
import type { Tensor } from '@postgrad/tensor'
import {
  argumentText,
  checkOptions,
  checkTensor,
  invalidArgument,
  isListOf,
  isSparse,
  isTensor,
  markShared,
  shapeText,
} from '@postgrad/tensor/internal'
import { notInitialized } from '../common/errors.js'
import { type CollectiveOptions, ProcessGroup } from '../group/process-group.js'
import { currentProcessGroups } from '../group/process-groups.js'
import { firstOverlap } from './overlap.js'

const OPTIONS = ['group', 'timeoutMs', 'signal', 'asyncOp'] as const

/** The group that is meant; `known`: options that not all collectives have. @throws PROCESS_GROUP_NOT_INITIALIZED, INVALID_ARGUMENT, and as `ProcessGroup.check` */
export function groupOf<O extends CollectiveOptions>(op: string, options: O, known: readonly (keyof O & string)[] = []): ProcessGroup {
  if ((options as unknown) instanceof ProcessGroup) {
    throw invalidArgument(op, 'an object with options', 'a process group', 'Write { group } for it.')
  }
  checkOptions(op, options, [...known, ...OPTIONS])
  const group = groupOrDefault(op, options.group)
  group.check(op)
  return group
}

/** @throws PROCESS_GROUP_NOT_INITIALIZED, INVALID_ARGUMENT */
export function groupOrDefault(op: string, group: ProcessGroup | undefined): ProcessGroup {
  const groups = currentProcessGroups()
  if (group === undefined) {
    if (groups.defaultGroup === null) throw notInitialized(op)
    return groups.defaultGroup
  }
  if (group instanceof ProcessGroup && group.runtime === groups.runtime) return group
  throw invalidArgument(
    op,
    'a process group of this worker as { group }',
    argumentText(group),
    'Each member has a handle of its own: pass what newGroup() gave here.',
  )
}

/** The rank within the group of a rank of the default group. @throws INVALID_ARGUMENT */
export function rankIn(op: string, what: string, group: ProcessGroup, globalRank: unknown): number {
  const rank = group.ranks.indexOf(globalRank as number)
  if (rank >= 0) return rank
  throw invalidArgument(
    op,
    `one of the ranks ${group.ranks.join(', ')} as ${what}`,
    argumentText(globalRank),
    'Ranks are those of the default group.',
  )
}

/** @throws INVALID_ARGUMENT, SPARSE_TENSOR, TENSOR_CLOSED */
export function checkDense(op: string, what: string, x: unknown): asserts x is Tensor {
  checkTensor(op, what, x)
  if (x.isClosed) {
    throw new PostgradError('TENSOR_CLOSED', {
      op,
      expected: `a tensor that is open as ${what}`,
      got: 'one that was closed, or whose storage was, through another view or at the end of a memoryScope',
      remedy: 'Close it after the work has ended.',
    })
  }
  if (isSparse(x)) {
    throw new PostgradError('SPARSE_TENSOR', {
      op,
      expected: `a dense tensor as ${what}`,
      got: argumentText(x),
      remedy: 'Only allReduce takes sparse tensors, of which it gives the sum; convert it with toDense().',
    })
  }
}

/** Checks outputs, each for itself, as the last check of a call: from then on none is a gradient of this rank alone. @throws INPLACE_OVERLAP when several elements are one memory cell */
export function checkOutputs(op: string, what: string, outputs: readonly Tensor[]): void {
  checkExpanded(op, what, outputs)
  for (const each of outputs) markShared(each)
}

function checkExpanded(op: string, what: string, outputs: readonly Tensor[]): void {
  for (const { shape, strides } of outputs) {
    if (!shape.some((extent, d) => extent > 1 && strides[d] === 0)) continue
    throw new PostgradError('INPLACE_OVERLAP', {
      op,
      expected: `elements that lie in different places in ${what}`,
      got: `shape ${shapeText(shape)} with strides ${shapeText(strides)}`,
      remedy: 'It was expanded: clone() it first.',
    })
  }
}

/** The same of outputs that get different values: also no two of them may have an element in common. @throws INPLACE_OVERLAP */
export function checkOutputsApart(op: string, what: string, outputs: readonly Tensor[]): void {
  checkExpanded(op, what, outputs)
  const common = firstOverlap(outputs)
  if (common === null) {
    for (const each of outputs) markShared(each)
    return
  }
  const [a, b] = common
  throw new PostgradError('INPLACE_OVERLAP', {
    op,
    expected: `tensors that share no element as ${what}`,
    got: `numbers ${a} and ${b}, ${outputs[a] === outputs[b] ? 'which are one tensor' : 'which are views of the same elements'}`,
    remedy: 'Pass each tensor once, and clone() one of two views that overlap.',
    values: { first: a, second: b },
  })
}

/** @throws INVALID_ARGUMENT unless they are tensors of one dtype, and at least one */
export function checkList(op: string, what: string, list: unknown): asserts list is readonly Tensor[] {
  if (!Array.isArray(list) || list.length === 0) throw invalidArgument(op, `a non-empty array of tensors as ${what}`, argumentText(list))
  for (const each of list) checkDense(op, `each of ${what}`, each)
  const [first] = list as readonly Tensor[]
  const other = (list as readonly Tensor[]).find(({ dtype }) => dtype !== first!.dtype)
  if (other !== undefined) throw invalidArgument(op, `tensors of one dtype as ${what}`, `${first!.dtype} and ${other.dtype}`)
}

/** One tensor for each rank, each of the shape and dtype of `like`. @throws INVALID_ARGUMENT, SHAPE_MISMATCH, DTYPE_MISMATCH */
export function checkPerRank(
  op: string,
  what: string,
  list: unknown,
  group: ProcessGroup,
  like: Tensor,
): asserts list is readonly Tensor[] {
  checkCount(op, what, list, group)
  for (const each of list as readonly Tensor[]) checkLike(op, `each of ${what}`, each, like)
}

/** @throws INVALID_ARGUMENT unless it has a tensor for each rank, all of one dtype */
export function checkCount(op: string, what: string, list: unknown, group: ProcessGroup): asserts list is readonly Tensor[] {
  if (!Array.isArray(list) || list.length !== group.size || !isListOf(list, isTensor)) {
    const got = Array.isArray(list) ? `${list.length} of them` : argumentText(list)
    throw invalidArgument(op, `${group.size} tensors as ${what}, one for each rank`, got)
  }
  checkList(op, what, list)
}

/** @throws SHAPE_MISMATCH, DTYPE_MISMATCH */
export function checkLike(op: string, what: string, x: Tensor, like: Tensor): void {
  if (x.dtype !== like.dtype) {
    throw new PostgradError('DTYPE_MISMATCH', { op, expected: `${like.dtype} for ${what}`, got: x.dtype, remedy: 'All are of one dtype.' })
  }
  if (x.shape.length === like.shape.length && x.shape.every((extent, d) => extent === like.shape[d])) return
  throw shapeError(op, `shape ${shapeText(like.shape)} for ${what}`, shapeText(x.shape))
}

export function shapeError(op: string, expected: string, got: string): PostgradError {
  return new PostgradError('SHAPE_MISMATCH', { op, expected, got, remedy: 'Reshape it, or make one of that shape.' })
}

/** float32 [2, 3] */
export function tensorText({ dtype, shape }: Tensor): string {
  return `${dtype} ${shapeText(shape)}`
}

export function listText(list: readonly Tensor[]): string {
  return list.map(tensorText).join(', ')
}
