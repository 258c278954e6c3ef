/**
 * The protocol between workers, in one file: every kind of message, its purpose, the lane it waits in and the fields of its body.
 * Numbers are part of the wire format and never change their meaning. PyTorch: `torch/csrc/distributed/rpc/message.h`.
 */
import { types } from 'node:util'
import { Lane, type MessageLane, WORKER_ID_MAX } from '@postgrad/base/internal'
import { isTensor, type Tensor } from '@postgrad/tensor'

export const MessageType = {
  /** Run a function that the receiver exposes; answered by RESULT or EXCEPTION. */
  CALL: 0x00,
  /** The value of a call, or of what an RRef refers to. */
  RESULT: 0x01,
  /** The error of a call or another request. Its flag `ofCleanUp` marks an error that a generator's `finally` threw after the caller had left the stream. */
  EXCEPTION: 0x02,
  /** Run a function and keep its value as an RRef; answered by REMOTE_RET. */
  REMOTE_CALL: 0x03,
  /** The owner has the RRef of a REMOTE_CALL, or its function failed. */
  REMOTE_RET: 0x04,
  /** Send the value that an RRef refers to; answered by RESULT or EXCEPTION. */
  RREF_FETCH: 0x05,
  /** A user has given its reference (its fork of the RRef) up. */
  RREF_USER_DELETE: 0x06,
  /** A user announces a reference that it has received to the owner; answered by RREF_ACK. */
  RREF_FORK_REQUEST: 0x07,
  /** To the sender of a reference: the owner knows the receiver's new reference, so the sender may give its own up. */
  RREF_CHILD_ACCEPT: 0x08,
  /** The owner has noted a user's reference. */
  RREF_ACK: 0x09,
  /** The caller no longer waits for a call, a remote call or a fetch: it was cancelled, or is out of time. For a stream: the caller wants no more items. */
  CALL_CANCEL: 0x0b,
  /** One item of a stream. RESULT or EXCEPTION follows after the last item. */
  STREAM_ITEM: 0x0c,
  /** About the group: a worker leaves, or the group ends; see rpc's `group-protocol.ts`. Arrives after the calls that were sent earlier. */
  GROUP_UPDATE: 0x0f,
  /**
   * The gradients of the tensors of one earlier message, sent back to its sender. Context, autograd id and pass are in the envelope. `how` is a sum of 1, which
   * keeps the graph, and 2, which records the pass.
   */
  PROPAGATE_GRADIENTS: 0x10,
  /** A worker's counts of a pass (received, sent, missing), sent to the worker with the root. */
  PASS_REPORT: 0x11,
  /** The error of a worker's part of a pass, sent to the worker with the root. */
  PASS_ERROR: 0x12,
  /** The worker with the root aborts a pass. */
  PASS_ABORT: 0x13,
  /** A context is released. */
  CLEANUP_CONTEXT: 0x14,
  /** The worker with the root has seen a pass end without an error, so the gradients of the pass stay. Sent before the next pass. */
  PASS_COMMIT: 0x15,
  /** A part of a lineage that is too long for one message; it goes ahead of that message. The numbers and the message's context are in the envelope. */
  LINEAGE: 0x16,
  /** An actor that the receiver watches has ended. */
  ACTOR_DOWN: 0x20,
  /** The sender no longer watches an actor of the receiver. */
  ACTOR_UNWATCH: 0x21,
  /** The sender could not read the receiver's message with this number, so the references in that message have reached no code. */
  UNREADABLE: 0x22,
  /**
   * How many messages of the receiver the sender has read and begun to serve, in totals. Messages read: the receiver may free their blocks. Calls begun, with
   * their bytes, fetches begun, and items of streams taken: the receiver has room for more.
   */
  PROGRESS: 0x23,
  /** On which device of the receiver tensors of the sender's devices arrive; replies and gradients take the inverse way. */
  DEVICE_MAP: 0x24,
  /** From one rank of a process group to another: a part of a collective, a tensor of `send`, or that the rank stops; see process-group's `protocol.ts`. */
  COLLECTIVE: 0x30,
} as const

export type MessageType = (typeof MessageType)[keyof typeof MessageType]

/** The name of a kind of message. */
export type MessageName = keyof typeof MessageType

/** The fields of each message's body, by the number of its `MessageType`. */
export interface MessageBodies {
  [MessageType.CALL]: readonly [functionName: string, args: readonly unknown[]]
  [MessageType.RESULT]: readonly [value: unknown]
  [MessageType.EXCEPTION]: readonly [error: unknown, ofCleanUp: boolean]
  [MessageType.REMOTE_CALL]: readonly [functionName: string, args: readonly unknown[], rrefId: bigint, forkId: bigint]
  [MessageType.REMOTE_RET]: readonly [rrefId: bigint, forkId: bigint, error: unknown | null]
  [MessageType.RREF_FETCH]: readonly [rrefId: bigint]
  [MessageType.RREF_USER_DELETE]: readonly [rrefId: bigint, forkId: bigint]
  [MessageType.RREF_FORK_REQUEST]: readonly [rrefId: bigint, forkId: bigint]
  [MessageType.RREF_CHILD_ACCEPT]: readonly [forkId: bigint]
  [MessageType.RREF_ACK]: readonly [forkId: bigint]
  [MessageType.CALL_CANCEL]: readonly [requestId: number, isAwaited: boolean]
  [MessageType.STREAM_ITEM]: readonly [value: unknown]
  [MessageType.GROUP_UPDATE]: readonly [what: number, data: unknown, error: unknown | null]
  [MessageType.PROPAGATE_GRADIENTS]: readonly [grads: readonly (Tensor | null)[], how: number]
  [MessageType.PASS_REPORT]: readonly [
    version: number,
    received: number,
    sent: readonly (readonly [workerId: number, count: number])[],
    missingCount: number,
    missingSample: readonly (readonly [autogradId: bigint, to: number, what: string])[],
  ]
  [MessageType.PASS_ERROR]: readonly [error: unknown]
  [MessageType.PASS_ABORT]: readonly [error: unknown]
  [MessageType.CLEANUP_CONTEXT]: readonly []
  [MessageType.PASS_COMMIT]: readonly []
  [MessageType.LINEAGE]: readonly []
  [MessageType.ACTOR_DOWN]: readonly [watchId: number, normal: boolean, reason: unknown | null]
  [MessageType.ACTOR_UNWATCH]: readonly [watchId: number]
  [MessageType.UNREADABLE]: readonly [message: number]
  [MessageType.PROGRESS]: readonly [
    read: number,
    begun: number,
    bytes: number,
    fetchesBegun: number,
    fetchBytes: number,
    streams: readonly (readonly [requestId: number, items: number])[],
  ]
  [MessageType.DEVICE_MAP]: readonly [devices: readonly (readonly [sender: string, receiver: string])[]]
  [MessageType.COLLECTIVE]: readonly [
    group: bigint,
    what: number,
    sequence: number,
    step: number,
    head: string,
    values: readonly unknown[],
    error: unknown | null,
  ]
}

/** How a field is written and checked. */
export interface FieldKind {
  readonly expected: string
  /** On the decoded field. */
  check(value: unknown): boolean
  /** The field goes through the error codec whatever was thrown; null stays null where `check` allows it. */
  readonly isError?: true
  /** Tensors may be in it, so a device's failure may be sent in place of the message. */
  readonly carriesTensors?: true
}

const isCount = (value: unknown): boolean => typeof value === 'number' && Number.isSafeInteger(value) && value >= 0
const isId = (value: unknown): boolean => typeof value === 'bigint' && value >= 0n && value < 1n << 64n
const isWorkerCount = (value: unknown): boolean =>
  Array.isArray(value) && value.length === 2 && isCount(value[0]) && value[0] <= WORKER_ID_MAX && isCount(value[1])
const isItemCount = (value: unknown): boolean => Array.isArray(value) && value.length === 2 && value.every(isCount)
const isEachOnce = (counts: readonly (readonly [number, number])[]): boolean => new Set(counts.map(([id]) => id)).size === counts.length

const name: FieldKind = { expected: 'a string', check: (value) => typeof value === 'string' }
const values: FieldKind = { carriesTensors: true, expected: 'an array', check: Array.isArray }
const anything: FieldKind = { carriesTensors: true, expected: 'a value', check: () => true }
const id: FieldKind = { expected: 'an id of 64 bits', check: isId }
const count: FieldKind = { expected: 'an integer ≥ 0', check: isCount }
const counts: FieldKind = {
  expected: 'an array of [worker, count], each worker once',
  check: (value) => Array.isArray(value) && value.every(isWorkerCount) && isEachOnce(value),
}
const items: FieldKind = {
  expected: 'an array of [request, items], each request once',
  check: (value) => Array.isArray(value) && value.every(isItemCount) && isEachOnce(value),
}
const sends: FieldKind = {
  expected: 'an array of [autograd id, worker, what it was]',
  check: (value) => Array.isArray(value) && value.every(isSend),
}
/** More than a machine has. */
const DEVICES_MAX = 256
const devicePairs: FieldKind = {
  expected: `at most ${DEVICES_MAX} pairs of names of devices`,
  check: (value) =>
    Array.isArray(value) &&
    value.length <= DEVICES_MAX &&
    value.every((pair) => Array.isArray(pair) && pair.length === 2 && pair.every((spec) => typeof spec === 'string')),
}
/** Bits, see PROPAGATE_GRADIENTS. */
const how: FieldKind = { expected: 'an integer from 0 to 3', check: (value) => isCount(value) && (value as number) <= 3 }
const flag: FieldKind = { expected: 'a boolean', check: (value) => typeof value === 'boolean' }
const error: FieldKind = { expected: 'an error', check: (value) => types.isNativeError(value), isError: true }
const errorOrNull: FieldKind = {
  expected: 'an error or null',
  check: (value) => value === null || types.isNativeError(value),
  isError: true,
}
const grads: FieldKind = {
  carriesTensors: true,
  expected: 'an array of tensors and nulls',
  check: (value) => Array.isArray(value) && value.every((grad) => grad === null || isTensor(grad)),
}

export type FieldSpec = readonly [name: string, kind: FieldKind]

/** The ids that a message is nothing without. */
export type HeadId = 'context' | 'autogradId' | 'pass'

const NO_IDS: readonly HeadId[] = Object.freeze([])
const PASS: readonly HeadId[] = Object.freeze(['context', 'pass'])

/** One field for each element of a body. */
type FieldsOf<Body extends readonly unknown[]> = { readonly [I in keyof Body]: FieldSpec }

export interface MessageSpec<Fields extends readonly FieldSpec[] = readonly FieldSpec[]> {
  readonly name: MessageName
  readonly lane: MessageLane
  /** Which field is the RRef that the message is about: no message overtakes an earlier one about the same RRef. */
  readonly rrefField: number | null
  readonly fields: Fields
  /** Its head must have these. */
  readonly ids: readonly HeadId[]
  /** The reply to it, if not EXCEPTION; null: it gets none. */
  readonly reply: MessageType | null
}

const { control, gradient, call } = Lane

/** Total by type: a message without a row, or a row whose fields are not as many as the body's, does not compile. */
export const MESSAGE_TABLE: { readonly [T in MessageType]: MessageSpec<FieldsOf<MessageBodies[T]>> } = {
  [MessageType.CALL]: row(
    'CALL',
    call,
    null,
    [
      ['functionName', name],
      ['args', values],
    ],
    { reply: MessageType.RESULT },
  ),
  [MessageType.RESULT]: row('RESULT', control, null, [['value', anything]]),
  [MessageType.EXCEPTION]: row('EXCEPTION', control, null, [
    ['error', error],
    ['ofCleanUp', flag],
  ]),
  [MessageType.REMOTE_CALL]: row(
    'REMOTE_CALL',
    call,
    2,
    [
      ['functionName', name],
      ['args', values],
      ['rrefId', id],
      ['forkId', id],
    ],
    { reply: MessageType.REMOTE_RET },
  ),
  [MessageType.REMOTE_RET]: row('REMOTE_RET', control, 0, [
    ['rrefId', id],
    ['forkId', id],
    ['error', errorOrNull],
  ]),
  [MessageType.RREF_FETCH]: row('RREF_FETCH', control, 0, [['rrefId', id]], { reply: MessageType.RESULT }),
  [MessageType.RREF_USER_DELETE]: row('RREF_USER_DELETE', control, 0, [
    ['rrefId', id],
    ['forkId', id],
  ]),
  [MessageType.RREF_FORK_REQUEST]: row(
    'RREF_FORK_REQUEST',
    control,
    0,
    [
      ['rrefId', id],
      ['forkId', id],
    ],
    { reply: MessageType.RREF_ACK },
  ),
  [MessageType.RREF_CHILD_ACCEPT]: row('RREF_CHILD_ACCEPT', control, null, [['forkId', id]]),
  [MessageType.RREF_ACK]: row('RREF_ACK', control, null, [['forkId', id]]),
  [MessageType.CALL_CANCEL]: row('CALL_CANCEL', control, null, [
    ['requestId', count],
    ['isAwaited', flag],
  ]),
  [MessageType.STREAM_ITEM]: row('STREAM_ITEM', control, null, [['value', anything]]),
  [MessageType.GROUP_UPDATE]: row('GROUP_UPDATE', call, null, [
    ['what', count],
    ['data', anything],
    ['error', errorOrNull],
  ]),
  [MessageType.PROPAGATE_GRADIENTS]: row(
    'PROPAGATE_GRADIENTS',
    gradient,
    null,
    [
      ['grads', grads],
      ['how', how],
    ],
    { ids: ['context', 'autogradId', 'pass'] },
  ),
  [MessageType.PASS_REPORT]: row(
    'PASS_REPORT',
    control,
    null,
    [
      ['version', count],
      ['received', count],
      ['sent', counts],
      ['missingCount', count],
      ['missingSample', sends],
    ],
    { ids: PASS },
  ),
  [MessageType.PASS_ERROR]: row('PASS_ERROR', control, null, [['error', error]], { ids: ['context'] }),
  [MessageType.PASS_ABORT]: row('PASS_ABORT', control, null, [['error', error]], { ids: PASS }),
  [MessageType.CLEANUP_CONTEXT]: row('CLEANUP_CONTEXT', control, null, [], { ids: ['context'] }),
  [MessageType.PASS_COMMIT]: row('PASS_COMMIT', control, null, [], { ids: PASS }),
  [MessageType.LINEAGE]: row('LINEAGE', control, null, [], { ids: ['context'] }),
  [MessageType.ACTOR_DOWN]: row('ACTOR_DOWN', control, null, [
    ['watchId', count],
    ['normal', flag],
    ['reason', errorOrNull],
  ]),
  [MessageType.ACTOR_UNWATCH]: row('ACTOR_UNWATCH', control, null, [['watchId', count]]),
  [MessageType.UNREADABLE]: row('UNREADABLE', control, null, [['message', count]]),
  [MessageType.PROGRESS]: row('PROGRESS', control, null, [
    ['read', count],
    ['begun', count],
    ['bytes', count],
    ['fetchesBegun', count],
    ['fetchBytes', count],
    ['streams', items],
  ]),
  [MessageType.DEVICE_MAP]: row('DEVICE_MAP', control, null, [['devices', devicePairs]]),
  [MessageType.COLLECTIVE]: row('COLLECTIVE', gradient, null, [
    ['group', id],
    ['what', count],
    ['sequence', count],
    ['step', count],
    ['head', name],
    ['values', values],
    ['error', errorOrNull],
  ]),
}

function row<const Fields extends readonly FieldSpec[]>(
  name: MessageName,
  lane: MessageLane,
  rrefField: number | null,
  fields: Fields,
  { ids = NO_IDS, reply = null }: Partial<Pick<MessageSpec, 'ids' | 'reply'>> = {},
): MessageSpec<Fields> {
  return { name, lane, rrefField, fields, ids, reply }
}

/** The row of a number from the wire; undefined if no message has it. */
export function specOf(type: unknown): MessageSpec | undefined {
  return typeof type === 'number' ? SPECS[type] : undefined
}

// The table once more as a plain array by number, for the way of every message.
const SPECS: readonly (MessageSpec | undefined)[] = Object.entries(MESSAGE_TABLE).reduce<(MessageSpec | undefined)[]>(
  (specs, [type, spec]) => {
    specs[Number(type)] = spec
    return specs
  },
  [],
)

function isSend(value: unknown): boolean {
  return Array.isArray(value) && value.length === 3 && isId(value[0]) && isCount(value[1]) && typeof value[2] === 'string'
}
