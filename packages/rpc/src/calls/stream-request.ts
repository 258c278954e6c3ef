/**
 * A stream as a request of its caller: begins the stream and connects its `RemoteStream` (credits, waits, its end) to the worker. The callee's side
 * is `stream-serving.ts`.
 */
import type { PostgradError } from '@postgrad/base'
import { callCancelled, onAbort, outOfTime, timeLimit } from '@postgrad/base/internal'
import { type Message, MessageType } from '@postgrad/wire/internal'
import { STREAM_CALL } from '../common/built-in-names.js'
import { checkArgs } from '../common/call-options.js'
import type { Peer } from '../core/peer.js'
import { OutgoingRequest } from '../core/requests.js'
import type { WorkerCore } from '../core/worker-core.js'
import { checkWindow, RemoteStream, STREAM_WINDOW, type StreamItem, type StreamOptions, type StreamPort } from './stream.js'

/** Streams the items that the exposed function `name` gives on another worker. */
export function startStream(
  core: WorkerCore,
  peer: Peer,
  name: string,
  args: readonly unknown[],
  options: StreamOptions,
  op: string,
): RemoteStream<unknown> {
  const { timeoutMs, window = STREAM_WINDOW, signal } = options
  const stream = new RemoteStream<unknown>(window)
  try {
    const request = new StreamRequest(core, peer, op, stream, timeoutMs)
    checkArgs(args, op)
    checkWindow(op, window)
    timeLimit(op, timeoutMs ?? core.rpcTimeoutMs)
    const limit = signal === undefined ? { timeoutMs: 0 } : { timeoutMs: 0, signal }
    core.requests.start(request, MessageType.CALL, [STREAM_CALL, [name, args, window]], limit)
    if (signal !== undefined) request.ended = onAbort(signal, () => request.cancel(signal.reason))
    stream.begin(request)
  } catch (error) {
    stream.onError(error)
  }
  return stream
}

class StreamRequest extends OutgoingRequest implements StreamPort {
  /** Also when it has ended, and nothing waits to be taken. */
  ended: () => void = () => {}
  private readonly core: WorkerCore
  private readonly stream: RemoteStream<unknown>
  /** For an item. */
  private readonly itemTimeoutMs: number | undefined

  constructor(core: WorkerCore, peer: Peer, op: string, stream: RemoteStream<unknown>, itemTimeoutMs: number | undefined) {
    super(peer, op)
    this.core = core
    this.stream = stream
    this.itemTimeoutMs = itemTimeoutMs
  }

  onItem(item: StreamItem): boolean {
    return this.stream.onItem(item)
  }

  onReply(message: Message): void {
    this.stream.onReply(message)
  }

  onError(error: unknown, ofCleanUp?: boolean): void {
    this.stream.onError(error, ofCleanUp)
  }

  onCancelled(error: unknown): void {
    this.stream.onCancelled(error)
  }

  /** The stream as a whole has the time left to the call that it is part of. */
  override timedOut(): PostgradError {
    return outOfTime(this.op, 'this stream, which is part of it, was ended', { timeoutMs: 0 })
  }

  // --- what the stream asks for

  override cancel(reason: unknown): boolean {
    const wasWaiting = super.cancel(reason)
    if (!wasWaiting) this.stream.onCancelled(callCancelled(this.op, this.peer.info, reason))
    return wasWaiting
  }

  taken(items: number): void {
    this.core.messages.progress.taken(this.peer, this.requestId, items)
  }

  stop(): void {
    this.core.messages.postIfReachable(this.peer.info.id, MessageType.CALL_CANCEL, [this.requestId, true])
  }

  wait(fail: (error: unknown) => void): () => void {
    const what = `the next item of a stream from worker '${this.peer.info.name}'`
    return this.core.requests.waitFor(fail, { timeoutMs: this.itemTimeoutMs, op: this.op, what, isCancelled: true })
  }

  discard({ received }: StreamItem): void {
    if (received !== null) this.core.messages.references.discard(received as readonly unknown[])
  }
}
