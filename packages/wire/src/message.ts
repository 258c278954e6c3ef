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
const NO_PARTS: readonly Part[] = Object.freeze([])
const NO_PLACES: readonly TensorPlace[] = Object.freeze([])

/** A message that `Codec.prepare` has looked through. The envelope may be set until it is encoded; the body may not be changed. */
export class OutgoingMessage {
  readonly type: MessageType
  requestId = 0
  /** As it was given. */
  readonly body: readonly unknown[]
  /** Every tensor inside the body, in order of appearance; one that appears twice is sent twice. */
  tensors: readonly Tensor[] = NO_TENSORS
  /** Per tensor; what the tensors say unless an interceptor says otherwise. */
  requiresGrad: readonly boolean[] = NO_FLAGS
  context: bigint | null = null
  autogradId: bigint | null = null
  pass: bigint | null = null
  deadlineMs: number | null = null
  trace: unknown = null
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

export class ReceivedMessage implements Message {
  readonly type: MessageType
  readonly requestId: number
  readonly body: readonly unknown[]
  readonly tensors: readonly Tensor[]
  readonly requiresGrad: readonly boolean[]
  context: bigint | null = null
  autogradId: bigint | null = null
  pass: bigint | null = null
  deadlineMs: number | null = null
  trace: unknown = null
  lineage: readonly number[] | null = null

  constructor(
    type: MessageType,
    requestId: number,
    body: readonly unknown[],
    tensors: readonly Tensor[] | null,
    requiresGrad: readonly boolean[] | null,
  ) {
    this.type = type
    this.requestId = requestId
    this.body = body
    this.tensors = tensors ?? NO_TENSORS
    this.requiresGrad = requiresGrad ?? NO_FLAGS
  }
}
