/** A request whose answer is a future: of a call that is the value, of the protocol of references the message itself. */
import { Future } from '@postgrad/base'
import type { Message, MessageType } from '@postgrad/wire/internal'
import type { CallOptions } from '../common/call-options.js'
import type { Peer } from '../core/peer.js'
import { OutgoingRequest } from '../core/requests.js'
import type { WorkerCore } from '../core/worker-core.js'

class FutureRequest<T> extends OutgoingRequest {
  private readonly future: Future<T>
  private readonly read: (message: Message) => T

  constructor(peer: Peer, op: string, future: Future<T>, read: (message: Message) => T) {
    super(peer, op)
    this.future = future
    this.read = read
  }

  onReply(message: Message): void {
    this.future.resolve(this.read(message))
  }

  onError(error: unknown): void {
    this.future.reject(error)
  }
}

/** Asks another worker. Does not throw: what keeps the request from leaving is the future's error. `read` takes the answer out of the reply. */
export function ask<T>(
  core: WorkerCore,
  peer: Peer,
  type: MessageType,
  body: readonly unknown[],
  op: string,
  options: CallOptions,
  read: (message: Message) => T,
): Future<T> {
  const future = new Future<T>()
  try {
    const request = new FutureRequest(peer, op, future, read)
    core.requests.start(request, type, body, options)
    future.cancelWith(request)
    if (options.signal !== undefined) future.cancelOn(options.signal)
  } catch (error) {
    future.reject(error)
  }
  return future
}
