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

/**
 * A message before it is sent. Until its bytes are made, an interceptor may set the fields of its envelope; the body must not change. The constructors of
 * this file set all fields, since initializers are a call more for each message.
 */
export class OutgoingMessage {
  /** The kind of the message. */
  declare readonly type: MessageType
  /** Pairs a reply with its request: a counter of the requester. 0: no reply is expected. */
  declare requestId: number
  /** The fields of the body, as `MessageBodies` lists them. */
  declare readonly body: readonly unknown[]
  /** Every tensor inside the body, in order of appearance. A tensor that appears twice is sent twice. */
  declare tensors: readonly Tensor[]
  /** For each of `tensors`, whether the receiver's tensor requires a gradient. Set from the tensors; an interceptor may change it. */
  declare requiresGrad: readonly boolean[]
  /** The id of the distributed context, or null. */
  declare context: bigint | null
  /** The id that pairs the send function with the recv function of this message, or null. */
  declare autogradId: bigint | null
  /** The number of the backward pass, or null. */
  declare pass: bigint | null
  /** The time that is left to the call, in ms; null: without a limit. */
  declare deadlineMs: number | null
  /** A plain value for tracing: the chain of an actor's call, and headers. */
  declare trace: unknown
  /** Numbers about the origin of the tensors, or about the pass; distributed autograd knows their layout. */
  declare lineage: readonly number[] | null
  /** @internal It may overtake earlier messages of its lane. */
  declare isUnordered: boolean
  /** @internal The body is an error in place of its own. */
  declare isFailure: boolean
  /** @internal Set by `encode`: settles when the frame has all bytes, since some come from a device's memory; null: it has them. */
  declare late: Promise<unknown> | null
  /** @internal The sender's own note, which wire does not use. */
  declare note: unknown
  /** @internal The body as it is packed, by cells or by msgpackr. */
  declare packed: readonly unknown[]
  /** @internal In order of appearance. */
  declare parts: readonly Part[]
  /** @internal One per tensor. */
  declare places: readonly TensorPlace[]

  constructor(type: MessageType, body: readonly unknown[]) {
    this.type = type
    this.requestId = 0
    this.body = body
    this.tensors = NO_TENSORS
    this.requiresGrad = NO_FLAGS
    this.context = null
    this.autogradId = null
    this.pass = null
    this.deadlineMs = null
    this.trace = null
    this.lineage = null
    this.isUnordered = false
    this.isFailure = false
    this.late = null
    this.note = null
    this.packed = body
    this.parts = NO_PARTS
    this.places = NO_PLACES
  }
}

/** A message while it is read. */
export class ReceivedMessage implements Message {
  declare readonly type: MessageType
  declare requestId: number
  declare body: readonly unknown[]
  declare tensors: readonly Tensor[]
  declare requiresGrad: readonly boolean[]
  declare context: bigint | null
  declare autogradId: bigint | null
  declare pass: bigint | null
  declare deadlineMs: number | null
  declare trace: unknown
  declare lineage: readonly number[] | null

  constructor(type: MessageType) {
    this.type = type
    this.requestId = 0
    this.body = NO_FIELDS
    this.tensors = NO_TENSORS
    this.requiresGrad = NO_FLAGS
    this.context = null
    this.autogradId = null
    this.pass = null
    this.deadlineMs = null
    this.trace = null
    this.lineage = null
  }
}
