/**
 * A stream at its callee: runs the generator while the caller has room for items, and sends each in a message of its own, through the same
 * interceptors as results. The caller's side, with the messages of both, is `stream.ts`.
 */
import { PostgradError } from '@postgrad/base'
import { currentScope, inScope, isThenable, type Scope } from '@postgrad/base/internal'
import { MessageType } from '@postgrad/wire/internal'
import { STREAM_CALL } from '../common/built-in-names.js'
import { runExposed } from '../common/function-registry.js'
import { wrongReply } from '../common/rpc-errors.js'
import type { Incoming } from '../core/incoming-call.js'
import type { Peer } from '../core/peer.js'
import { currentServing, type Outlet, type ServedCall } from '../core/served-call.js'
import { currentCore } from '../core/slots.js'
import type { WorkerCore } from '../core/worker-core.js'
import { isWindow, STREAM_WINDOW_MAX } from './stream.js'

type AnyIterator = AsyncIterator<unknown, unknown> | Iterator<unknown, unknown>

/** How much a stream may still send, and its end. It exists before its generator, which an actor may give later. */
class StreamOutlet implements Outlet {
  stopped = false
  readonly ended: Promise<void>
  /** The caller's answer: the generator's result or error, or the actor's end. */
  readonly outcome: Promise<unknown>
  private readonly window: number
  /** Items, and how many of them the caller has taken as far as it has said. */
  private sent = 0
  private taken = 0
  /** The scope of the call. */
  private readonly scope: Scope
  private iterator: AnyIterator | null = null
  private wake: (() => void) | null = null
  private closing: Promise<unknown> | null = null
  private cleanUpError: { readonly thrown: unknown } | null = null
  private resolve!: (value: unknown) => void
  private reject!: (error: unknown) => void
  private settle!: () => void

  constructor(scope: Scope, window: number) {
    this.scope = scope
    this.window = window
    this.outcome = new Promise((resolve, reject) => {
      this.resolve = resolve
      this.reject = reject
    })
    this.ended = new Promise((resolve) => {
      this.settle = resolve
    })
  }

  onTaken(items: number): boolean {
    if (items > this.sent) return false
    if (items > this.taken) this.taken = items
    this.wake?.()
    return true
  }

  /** The caller wants no more items. By its signal the generator may end a wait between two items. */
  stop(): void {
    this.stopped = true
    void this.close().catch(() => {})
    this.wake?.()
  }

  fail(error: PostgradError): void {
    this.reject(error)
    this.stop()
  }

  begin(iterator: AnyIterator): void {
    this.iterator = iterator
    if (this.stopped) this.stop()
  }

  isOfCleanUp(error: unknown): boolean {
    return this.cleanUpError?.thrown === error
  }

  /** Settles with the run. */
  end(run: Promise<unknown>): void {
    void run.then(this.resolve, this.reject).then(this.settle)
  }

  /** Takes the room for one item; false once it is stopped. */
  async take(): Promise<boolean> {
    while (this.sent - this.taken >= this.window && !this.stopped) {
      await new Promise<void>((resolve) => {
        this.wake = resolve
      })
      this.wake = null
    }
    this.sent++
    return !this.stopped
  }

  async next(): Promise<IteratorResult<unknown, unknown>> {
    return this.iterator!.next()
  }

  /** Runs the generator's `finally`, once; one that has ended does not notice. */
  close(): Promise<unknown> {
    const { iterator } = this
    if (iterator === null) return Promise.resolve()
    this.closing ??= inScope(this.scope, async () => iterator.return?.())
    return this.closing
  }

  /** The same after the caller has left the loop, where the caller's `break` throws what `finally` throws. */
  async cleanUp(): Promise<undefined> {
    try {
      await this.close()
    } catch (error) {
      this.cleanUpError = { thrown: error }
      throw error
    }
  }
}

/** Runs in the scope of the call. Its result is the generator's. */
export function serveStream(name: unknown, args: unknown, window: unknown): Promise<unknown> {
  const core = currentCore()
  const served = currentServing()
  // These come from another worker, and may be anything.
  if (served === null || typeof name !== 'string' || !Array.isArray(args) || !isWindow(window)) {
    throw new PostgradError('INVALID_ARGUMENT', {
      op: STREAM_CALL,
      expected: `a name, arguments and a window of 1 to ${STREAM_WINDOW_MAX} items`,
      got: 'something else',
      remedy: 'Use stream(to, fn, args).',
    })
  }
  const outlet = new StreamOutlet(currentScope(), window)
  served.outlet = outlet
  if (served.isStopped) outlet.stop()
  outlet.end(run(core, served, outlet, name, () => runExposed(core.registry.lookup(name, core.info.name), args)))
  return outlet.outcome
}

async function run(core: WorkerCore, served: ServedCall, outlet: StreamOutlet, name: string, begin: () => unknown): Promise<unknown> {
  outlet.begin(iteratorOf(name, await begin()))
  try {
    while (await outlet.take()) {
      const step = await outlet.next()
      // A stop may come between two lines: `cleanUp` then reports how the generator ended.
      if (outlet.stopped) break
      if (step.done === true) return step.value
      const value = isThenable(step.value) ? await step.value : step.value
      if (outlet.stopped) break
      send(core, served, name, value)
    }
  } catch (error) {
    // The generator ended by itself: after the end of the loop only a `next` that was asked for before it wants this, which the caller knows.
    if (outlet.stopped) {
      await outlet.cleanUp()
      throw error
    }
    // The first error is the one that counts.
    await outlet.close().catch(() => {})
    throw error
  }
  return outlet.cleanUp()
}

function send({ peers, messages }: WorkerCore, { caller, requestId }: ServedCall, op: string, value: unknown): void {
  messages.sendFor(peers.resolve(caller.id), requestId, MessageType.STREAM_ITEM, [value], op)
}

/** @throws STREAM_NOT_ITERABLE */
export function iteratorOf(name: string, value: unknown): AnyIterator {
  if (typeof value === 'object' && value !== null) {
    const { [Symbol.asyncIterator]: later, [Symbol.iterator]: now } = value as Partial<AsyncIterable<unknown> & Iterable<unknown>>
    if (later !== undefined) return later.call(value)
    if (now !== undefined) return now.call(value)
  }
  throw new PostgradError('STREAM_NOT_ITERABLE', {
    op: name,
    expected: 'a generator, or another iterable object',
    got: value === null ? 'null' : typeof value,
    remedy: 'Write async function* to stream its items, or use call() for one result.',
    values: { function: name },
  })
}

/** Installs the handlers of a worker for the items of its streams. */
export function installStreams(core: WorkerCore): void {
  core.handle(MessageType.STREAM_ITEM, (_message, _from, item) => onItem(core, item))
  core.messages.handleUnreadable(MessageType.STREAM_ITEM, ({ peer, head, error }) => failStream(core, peer, head.requestId, error))
}

function onItem(core: WorkerCore, { message, peer, received }: Incoming): void {
  const { references, interceptors } = core.messages
  const stream = peer.pending.peek(message.requestId)
  if (stream?.onItem === undefined) {
    // It crossed the end of its stream, as items do.
    core.idle(peer.info.id)
    if (received !== null) references.discard(received)
    return
  }
  try {
    for (const interceptor of interceptors) interceptor.incoming?.(message, peer.info)
  } catch (error) {
    if (received !== null) references.discard(received)
    failStream(core, peer, message.requestId, error)
    return
  }
  if (stream.onItem({ value: message.body[0], received })) return
  core.messages.discard({ peer, received }, 'invalid', 'STREAM_ITEM: more than its stream has room for')
  failStream(core, peer, message.requestId, wrongReply(stream.op, peer.info, 'more items than were asked for'))
}

/** Ends a stream at both ends with the error of an item: no item may follow a missing one. */
function failStream({ requests }: WorkerCore, peer: Peer, requestId: number, error: unknown): void {
  const stream = peer.pending.take(requestId)
  if (stream === undefined) return
  stream.onError(error, false)
  requests.tellCancelled(peer, requestId)
}
