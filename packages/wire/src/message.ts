/**
 * A message in its two decoded forms: what a worker is about to send (`OutgoingMessage`, whose envelope can still be set) and what it
 * received (`Message`). The encoded form is a frame; `codec.ts` goes from one to the other.
 */
import type { Tensor } from '@postgrad/tensor'
import type { MessageType } from './message-type.js'

/** A message as the worker that received it sees it. */
export interface Message {
  readonly type: MessageType
  /** Pairs a reply with its request: a counter of the requester. 0: no reply. */
  readonly requestId: number
  /** The fields that `MESSAGE_TABLE` names for the type, with tensors, RRefs and errors in place. */
  readonly body: readonly unknown[]
  /** Every tensor inside the body, in order of appearance. They are leaves without autograd metadata; an interceptor attaches history. */
  readonly tensors: readonly Tensor[]
  /** Per tensor, whether the sender's required a gradient. */
  readonly requiresGrad: readonly boolean[]
  /** The distributed context. */
  readonly context: bigint | null
  /** Pairs the send with the recv function. */
  readonly autogradId: bigint | null
  /** The number of the backward pass. */
  readonly pass: bigint | null
  /** Time left when the message was sent, in ms. */
  readonly deadlineMs: number | null
  /** For tracing; a plain value without tensors, see `trace-field.ts`. */
  readonly trace: unknown
  /** Numbers about the tensors' origin, or about the pass: distributed autograd knows their layout (`lineage-field.ts`). */
  readonly lineage: readonly number[] | null
}

/** Bytes of a body that are not packed: a tensor, or a typed array or buffer as bytes. */
export type Part = Tensor | Uint8Array

/** A tensor's place among the packed values: [null, tag, ...shape]. The tag takes the requires-grad bit when the message is encoded. */
export type TensorPlace = unknown[]

// Shared by all messages without tensors, frozen so that sharing is safe.
const NO_TENSORS: readonly Tensor[] = Object.freeze([])
const NO_FLAGS: readonly boolean[] = Object.freeze([])
const NO_FIELDS: readonly unknown[] = Object.freeze([])
const NO_PARTS: readonly Part[] = Object.freeze([])
const NO_PLACES: readonly TensorPlace[] = Object.freeze([])

/** A message before it is sent. Until its bytes are made, an interceptor may set the fields of its envelope; the body must not change. */
export class OutgoingMessage {
  /** The kind of the message. */
  readonly type: MessageType
  /** Pairs a reply with its request: a counter of the requester. 0: no reply is expected. */
  requestId = 0
  /** The fields of the body, as `MessageBodies` lists them. */
  readonly body: readonly unknown[]
  /** Every tensor inside the body, in order of appearance. A tensor that appears twice is sent twice. */
  tensors: readonly Tensor[] = NO_TENSORS
  /** For each of `tensors`, whether the receiver's tensor requires a gradient. Set from the tensors; an interceptor may change it. */
  requiresGrad: readonly boolean[] = NO_FLAGS
  /** The id of the distributed context, or null. */
  context: bigint | null = null
  /** The id that pairs the send function with the recv function of this message, or null. */
  autogradId: bigint | null = null
  /** The number of the backward pass, or null. */
  pass: bigint | null = null
  /** The time that is left to the call, in ms; null: without a limit. */
  deadlineMs: number | null = null
  /** A plain value for tracing: the chain of an actor's call, and headers. */
  trace: unknown = null
  /** Numbers about the origin of the tensors, or about the pass; distributed autograd knows their layout. */
  lineage: readonly number[] | null = null
  /** @internal It may overtake earlier messages of its lane. */
  isUnordered = false
  /** @internal The sender's own note, which wire does not use. */
  note: unknown = null
  /** @internal The body as msgpackr takes it. */
  packed: readonly unknown[]
  /** @internal In order of appearance. */
  parts: readonly Part[] = NO_PARTS
  /** @internal One per tensor. */
  places: readonly TensorPlace[] = NO_PLACES

  constructor(type: MessageType, body: readonly unknown[]) {
    this.type = type
    this.body = body
    this.packed = body
  }
}

/** A message while it is read. */
export class ReceivedMessage implements Message {
  readonly type: MessageType
  requestId = 0
  body: readonly unknown[] = NO_FIELDS
  tensors: readonly Tensor[] = NO_TENSORS
  requiresGrad: readonly boolean[] = NO_FLAGS
  context: bigint | null = null
  autogradId: bigint | null = null
  pass: bigint | null = null
  deadlineMs: number | null = null
  trace: unknown = null
  lineage: readonly number[] | null = null

  constructor(type: MessageType) {
    this.type = type
  }
}
