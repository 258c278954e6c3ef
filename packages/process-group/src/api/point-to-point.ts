/** Users call these to send a tensor to one other rank. */
import assert from 'node:assert'
import type { Tensor } from '@postgrad/tensor'
import { argumentText, invalidArgument } from '@postgrad/tensor/internal'
import { flat, release, tensorsOf } from '../algorithms/parts.js'
import { settle } from '../algorithms/room.js'
import { directMismatch } from '../common/errors.js'
import type { CollectiveOptions, ProcessGroup } from '../group/process-group.js'
import type { Work } from '../group/work.js'
import { checkDense, checkOutputs, groupOf, rankIn, tensorText } from './checks.js'
import { attempt } from './reductions.js'

/** From here on tags are of what this library sends itself. */
export const RESERVED_TAGS = 2 ** 52

/** Options of `send` and `recv`. */
export interface TagOptions extends CollectiveOptions {
  /** The tag of the message, an integer ≥ 0 and below 2^52. A `recv` gets only messages with its own tag. Default 0. */
  readonly tag?: number
}

/**
 * Sends the tensor to rank `dst` (a rank of the default group). The work ends as soon as the tensor has left: later writes to the tensor do not reach the
 * receiver. If 1,024 tensors or 64 MiB of this rank wait at the receiver, the tensor leaves when the receiver takes some of them. PyTorch: `send`, `isend`.
 * @throws COLLECTIVE_TIMEOUT, GROUP_BROKEN, CALL_CANCELLED, INVALID_ARGUMENT or PROCESS_GROUP_NOT_INITIALIZED, from the work
 * @example
 * if (getRank() === 0) await send(tensor([1, 2]), 1, { tag: 7 })
 * else await recv(zeros([2]), 0, { tag: 7 })
 */
export function send(tensor: Tensor, dst: number, options: TagOptions = {}): Work<void> {
  return sendBy(tagOf, tensor, dst, options)
}

/** As `send`, with tags from RESERVED_TAGS on, which no program's `recv` can mean. */
export function sendReserved(tensor: Tensor, dst: number, options: TagOptions): Work<void> {
  return sendBy(reservedTagOf, tensor, dst, options)
}

function sendBy(tagOf: TagOf, tensor: Tensor, dst: number, options: TagOptions): Work<void> {
  return attempt(() => {
    const group = groupOf('send', options, ['tag'])
    checkDense('send', 'the tensor', tensor)
    const to = otherRank('send', 'dst', group, dst)
    return group.direct.send('send', to, { tag: tagOf('send', options), head: tensorText(tensor), values: [flat(tensor)] }, options)
  })
}

/**
 * Receives the next tensor that rank `src` (a rank of the default group; undefined: any rank) has sent with this tag, and writes it into `tensor`. The work
 * resolves to the rank that sent it. Shapes and dtypes must be the same. PyTorch: `recv`, `irecv`.
 * @throws COLLECTIVE_MISMATCH if another shape or dtype arrives; COLLECTIVE_TIMEOUT, GROUP_BROKEN, CALL_CANCELLED, INVALID_ARGUMENT or
 * PROCESS_GROUP_NOT_INITIALIZED; all from the work
 * @example
 * const received = zeros([2])
 * if (getRank() === 0) await send(tensor([1, 2]), 1)
 * else await recv(received, 0)
 * received // rank 0: [0, 0], rank 1: [1, 2]
 */
export function recv(tensor: Tensor, src?: number, options: TagOptions = {}): Work<number> {
  return recvBy(tagOf, tensor, src, options)
}

/** As `recv`, of what `sendReserved` has sent. */
export function recvReserved(tensor: Tensor, src: number, options: TagOptions): Work<number> {
  return recvBy(reservedTagOf, tensor, src, options)
}

function recvBy(tagOf: TagOf, tensor: Tensor, src: number | undefined, options: TagOptions): Work<number> {
  return attempt(() => {
    const group = groupOf('recv', options, ['tag'])
    checkDense('recv', 'the tensor', tensor)
    checkOutputs('recv', 'the tensor', [tensor])
    const from = src === undefined || src === null ? null : otherRank('recv', 'src', group, src)
    const tag = tagOf('recv', options)
    const expected = tensorText(tensor)
    return group.direct.receive('recv', from, tag, options, (rank, head, values) => {
      if (head !== expected) {
        throw directMismatch(group, { rank, tag, sent: head, received: expected })
      }
      const parts = tensorsOf(values, [tensor], rank)
      settle('recv', tensor, parts[0]!)
      release(parts)
      return group.ranks[rank]!
    })
  })
}

/**
 * The same as `send`, which also returns its work at once. PyTorch: `isend`.
 * @throws the errors of `send`, from the work
 * @example
 * const work = getRank() === 0 ? isend(tensor([1, 2]), 1) : irecv(zeros([2]), 0)
 * await work
 */
export function isend(tensor: Tensor, dst: number, options: TagOptions = {}): Work<void> {
  return send(tensor, dst, options)
}

/**
 * The same as `recv`, which also returns its work at once. PyTorch: `irecv`.
 * @throws the errors of `recv`, from the work
 * @example
 * const received = zeros([2])
 * const work = getRank() === 0 ? isend(tensor([1, 2]), 1) : irecv(received, 0)
 * await work // other work may come before this line
 * received // rank 0: [0, 0], rank 1: [1, 2]
 */
export function irecv(tensor: Tensor, src?: number, options: TagOptions = {}): Work<number> {
  return recv(tensor, src, options)
}

/**
 * One operation for `batchIsendIrecv`: `isend` or `irecv`, with its tensor and the other rank. PyTorch: `P2POp`.
 * @example
 * const next = (getRank() + 1) % getWorldSize()
 * const previous = (getRank() + getWorldSize() - 1) % getWorldSize()
 * const ring = [new P2POp(isend, tensor([getRank()]), next), new P2POp(irecv, zeros([1]), previous)]
 * await Promise.all(batchIsendIrecv(ring))
 */
export class P2POp {
  /** `isend` or `irecv`. */
  readonly op: typeof isend | typeof irecv
  /** The tensor to send, or to receive into. */
  readonly tensor: Tensor
  /** The other rank, as a rank of the default group. */
  readonly peer: number
  readonly options: TagOptions

  /** @param op `isend` or `irecv` @throws INVALID_ARGUMENT */
  constructor(op: typeof isend | typeof irecv, tensor: Tensor, peer: number, options: TagOptions = {}) {
    if (op !== isend && op !== irecv) throw invalidArgument('P2POp', 'isend or irecv as op', argumentText(op))
    this.op = op
    this.tensor = tensor
    this.peer = peer
    this.options = options
  }
}

/**
 * Begins all operations in order, and returns their works. All must be of one group. PyTorch: `batch_isend_irecv`.
 * @throws INVALID_ARGUMENT if the operations are not of one group
 * @example
 * const other = 1 - getRank() // of 2 ranks
 * const received = zeros([1])
 * const works = batchIsendIrecv([new P2POp(isend, tensor([getRank()]), other), new P2POp(irecv, received, other)])
 * await Promise.all(works)
 * received // rank 0: [1], rank 1: [0]
 */
export function batchIsendIrecv(ops: readonly P2POp[]): Work<unknown>[] {
  if (!Array.isArray(ops) || ops.length === 0 || ![...ops].every((op) => op instanceof P2POp)) {
    throw invalidArgument(
      'batchIsendIrecv',
      'a non-empty array of P2POp',
      argumentText(ops),
      'Write [new P2POp(isend, x, 1), new P2POp(irecv, y, 1)].',
    )
  }
  const [first] = ops as readonly P2POp[]
  if (ops.some((op) => op.options.group !== first!.options.group))
    throw invalidArgument('batchIsendIrecv', 'operations of one group', 'of several')
  return ops.map(({ op, tensor, peer, options }) => op(tensor, peer, options) as Work<unknown>)
}

function otherRank(op: string, what: string, group: ProcessGroup, globalRank: number): number {
  const rank = rankIn(op, what, group, globalRank)
  if (rank === group.rank)
    throw invalidArgument(op, `another rank as ${what}`, `${globalRank}, which is this one`, 'A rank has its own tensors.')
  return rank
}

type TagOf = (op: string, options: TagOptions) => number

const tagOf: TagOf = (op, { tag = 0 }) => {
  if (Number.isSafeInteger(tag) && tag >= 0 && tag < RESERVED_TAGS) return tag
  throw invalidArgument(op, 'an integer ≥ 0 and below 2^52 as { tag }', argumentText(tag))
}

const reservedTagOf: TagOf = (_, { tag }) => {
  assert(tag !== undefined && Number.isSafeInteger(tag) && tag >= RESERVED_TAGS, 'a tag that is reserved')
  return tag
}
