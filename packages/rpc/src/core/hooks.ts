/**
 * The hooks by which the parts of a worker, and other packages, take part in its messages. The core calls them without knowing who has set them; a
 * hook that is not set costs a null check per message.
 */
import type { DeadLetter } from '@postgrad/actor/internal'
import type { DeathCause, PostgradError, WorkerId } from '@postgrad/base'
import type { Scope, ScopePatch } from '@postgrad/base/internal'
import type { Message, OutgoingMessage } from '@postgrad/wire/internal'
import type { WorkerInfo } from '../common/worker-info.js'
import type { Incoming, IncomingCall } from './incoming-call.js'
import type { Peer } from './peer.js'
import type { PendingCall, WaitObserver } from './pending-calls.js'
import type { ServedCall } from './served-call.js'

/** The hooks of another package into the messages of calls, remote calls, fetches and their replies, as of distributed autograd. */
export interface Interceptor {
  /** In the sender's scope, after the message's tensors were found and before its bytes are made. A throw fails the call or the reply. */
  outgoing?(message: OutgoingMessage, to: WorkerInfo, scope: Scope): void
  /** The message of an earlier `outgoing` was not sent after all. Whatever was noted of it is void. */
  unsent?(message: OutgoingMessage): void
  /**
   * At the receiver, as soon as a message is read that has something in its lineage field, whatever becomes of it: it may be refused, or find nobody who
   * waits. In the order in which the peer sent them. Must not throw, and the body is not to be used.
   */
  arrived?(message: Message, from: WorkerInfo): void
  /** At the receiver, before the body is used. A throw becomes the reply of a call, or the error of the future that waited. */
  incoming?(message: Message, from: WorkerInfo): void
  /** Changes the scope in which a call is served. */
  servingScope?(message: Message): ScopePatch
}

/** In place of the number of a message that has not left; equal to none. */
export const NOT_NUMBERED = Number.NaN

/** Values in messages that are counted at both ends: references. Notes are opaque to the core, which hands them back in their time. */
export interface ReferenceHooks {
  /** The id of the value whose method a call is for, if the message names it by its id; that is replaced by the value's reference. */
  subjectOf(message: Message): bigint | null
  /** A message with these references is sent, the one of this number to `to`. */
  sent(notes: readonly unknown[], to: WorkerInfo, message: number): void
  /** The message has its number now: it was sent with `NOT_NUMBERED`, since it waited for a device. */
  numbered(notes: readonly unknown[], message: number): void
  /** The message with these references has its turn. Gives what must be confirmed before they are used: promises of null, or of what went wrong. */
  accept(notes: readonly unknown[], from: WorkerInfo): readonly Promise<unknown>[] | null
  /** Whether others refer to this value of the worker, or are about to. */
  isShared(rrefId: bigint): boolean
  /** The message with these references goes to nobody. */
  discard(notes: readonly unknown[]): void
  /** It is refused: in place of `accept`, so that nothing is asked of their owners. */
  decline(notes: readonly unknown[], from: WorkerInfo): void
  /** Whether a worker has been given this value of the worker: a reference, or its id. */
  isHeld(reference: unknown, by: WorkerId): boolean
  /** Whether each of these references in a message of `from` is to a value that is its own, or that this worker has given to it. */
  areHeld(notes: readonly unknown[], from: WorkerId): boolean
  /** A message that named a value by its id (`subjectOf`) is refused: of an id that nobody has made nothing is kept. */
  forgetSubject(message: Message): void
}

/** The fields of a message about its context and its pass. */
export type ContextHead = Pick<Message, 'type' | 'context' | 'autogradId' | 'pass'>

/** Checks the messages of other workers: the authority, where there is one. */
export interface Gate {
  /** Whether there is something that its role may not do. */
  isRestricted(peer: Peer): boolean
  /** As soon as it is read: whether its sender may say anything about that context. */
  mayBring(message: ContextHead, peer: Peer): boolean
  /** In its turn: why it is refused; null: it is not. */
  refusal(item: Incoming): PostgradError | null
  /** The same of a method of this value, which is about to run for a call. */
  methodRefusal(served: ServedCall | null, value: unknown, method: string): PostgradError | null
}

/** Is notified of what happens at a worker, in the order in which it happens. See `InspectEvent`. */
export interface Observer extends WaitObserver {
  sent(to: string, out: OutgoingMessage): void
  received(item: Incoming): void
  begun(call: IncomingCall): void
  /** A serial actor puts it off. */
  putOff(call: IncomingCall): void
  /** The function has returned, or reached its first await. */
  firstTurnOver(call: IncomingCall): void
  ended(call: IncomingCall, outcome: Outcome): void
  /** It was received and will never begin. */
  notBegun(call: IncomingCall): void
  deadLetter(letter: DeadLetter): void
  death(worker: string, workerId: number, cause: DeathCause): void
  noCredit(
    kind: 'mailbox-full' | 'credit-stall',
    to: string,
    what: string,
    waiting: { readonly calls: number; readonly bytes: number },
  ): void
}

/** How a served call ended: with a value, with an error, or `given-up`, when nobody waited for it any more. */
export type Outcome = 'value' | 'error' | 'given-up'

/** The users' interceptors of calls. */
export interface CallHooks {
  /** A request is about to be sent. Returns `waiting`, wrapped if an interceptor wants to know its outcome. @throws what an interceptor throws */
  outgoing(out: OutgoingMessage, to: WorkerInfo, waiting: PendingCall): PendingCall
  /** Runs a request's function. */
  serve(message: Message, from: WorkerInfo, run: () => unknown): unknown
}

/** Takes the messages of one type, in their turn and in the worker's own scope. `item` is the message as it waited in the mailbox. */
export type Handler = (message: Message, from: WorkerInfo, item: Incoming) => void
