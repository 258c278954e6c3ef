/**
 * What a package above may do to the messages of calls, remote calls, fetches and their replies. Distributed autograd is one
 * interceptor; rpc never names it.
 */
import type { ScopePatch } from '@postgrad/base/internal'
import type { Message, OutgoingMessage } from '@postgrad/wire/internal'
import type { WorkerInfo } from './worker-info.js'

export interface Interceptor {
  /** In the sender's scope, after the message's tensors were found and before its bytes are made. A throw fails the call or the reply. */
  outgoing?(message: OutgoingMessage, to: WorkerInfo): void
  /** The message of an earlier `outgoing` has not left: its bytes could not be made. What was noted of it is void. */
  unsent?(message: OutgoingMessage): void
  /**
   * At the receiver, as soon as a message is read that has something in its lineage room, whatever becomes of it: it may be refused, or find nobody who
   * waits. In the order in which the peer sent them. Must not throw, and the body is not to be used.
   */
  arrived?(message: Message, from: WorkerInfo): void
  /** At the receiver, before the body is used. A throw becomes the reply of a call, or the error of the future that waited. */
  incoming?(message: Message, from: WorkerInfo): void
  /** Changes the scope in which a call is served. */
  servingScope?(message: Message): ScopePatch
}
