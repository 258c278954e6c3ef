/**
 * A stream at its caller: an async iterator over results that arrive one by one, of which at most a window is sent ahead.
 * The callee's side is `stream-serving.ts`. The rules STR-1 to STR-10 are in SPEC.md. PyTorch has no counterpart.
 *
 *   caller                          callee
 *   CALL postgrad.stream ─────────→ runs the generator while there is room
 *        ←─────────── STREAM_ITEM   one per item; takes one of the room
 *   PROGRESS [… n] ───────────────→ n items in all were taken here: the window begins there
 *   CALL_CANCEL, awaited ─────────→ (break) no more are wanted: its `return()` is called
 *        ←─── RESULT or EXCEPTION   after the last item
 * Everything else (death, deadline, cancellation, shutdown) is as of any call, which this one is until its RESULT.
 */

import { Future, PostgradError } from '@postgrad/base'
import type { Message } from '@postgrad/wire/internal'
import type { CallOptions } from '../common/call-options.js'

export const STREAM_WINDOW = 32
/** A generator that never waits runs so far without letting its worker do anything else. */
export const STREAM_WINDOW_MAX = 16_384

/** Options of `stream`: those of a call, except that `timeoutMs` counts for each item, and how many items are sent ahead. */
export interface StreamOptions extends Omit<CallOptions, 'timeoutMs'> {
  /**
   * How long the reader waits for each item, in ms; default the worker's `rpcTimeoutMs` (60,000). 0: without a limit. The stream as a whole has no deadline,
   * unless the code that reads it serves a call with a deadline.
   */
  readonly timeoutMs?: number
  /** How many items the callee may send before the reader takes them, from 1 to 16,384; default 32. */
  readonly window?: number
}

/** The items of a function's result, if that can be streamed. */
export type ItemOf<R> = R extends AsyncIterable<infer T> | Iterable<infer T> ? T : unknown

/** A stream's way to its worker. */
export interface StreamPort {
  /** So many items in all were taken. */
  taken(items: number): void
  /** No more are wanted. */
  stop(): void
  /** Ends the call at both ends. */
  cancel(reason: unknown): void
  /** Waits for an item; the function that is returned ends the wait. @throws RPC_TIMEOUT, CALL_CANCELLED, RPC_SHUT_DOWN */
  wait(fail: (error: unknown) => void): () => void
  /** Nobody gets this item: references in it are disposed. */
  discard(item: StreamItem): void
  /** It has ended, in whatever way, and nothing waits to be taken. */
  ended(): void
}

export interface StreamItem {
  readonly value: unknown
  /** References in it; the worker's own form. */
  readonly received: unknown
}

interface Waiter {
  /** For an item, not for the end. */
  readonly isNext: boolean
  readonly settle: (step: IteratorResult<unknown, unknown>) => void
  readonly fail: (error: unknown) => void
  readonly end: () => void
}

/**
 * The items of a stream, in order. Read a stream once, with `for await`; leaving the loop in any way ends the stream. If you call `next` yourself, end the
 * stream with `return()`, with `await using`, or by aborting its `signal`. The stream throws its error once, after the items that came before the error.
 * @example
 * const rows = (a: Tensor) => a.unbind(0)
 * expose({ rows })
 * const sums: number[] = []
 * const stream1: RemoteStream<Tensor> = stream('worker1', rows, [x])
 * for await (const row of stream1) sums.push(await row.sum().item())
 * sums // [3, 7]
 */
export class RemoteStream<T> implements AsyncIterableIterator<T>, AsyncDisposable {
  private port: StreamPort | null = null
  private readonly window: number
  private readonly items: StreamItem[] = []
  private readonly waiters: Waiter[] = []
  private taken = 0
  /** So many of these the callee knows. */
  private told = 0
  private state: 'open' | 'closing' | 'ended' = 'open'
  /** Thrown by the next `next`. */
  private error: { readonly thrown: unknown } | null = null
  private result: unknown

  constructor(window: number) {
    this.window = window
  }

  /** One that has failed already. @internal */
  static failed(error: unknown): RemoteStream<unknown> {
    const stream = new RemoteStream<unknown>(1)
    stream.onError(error)
    return stream
  }

  [Symbol.asyncIterator](): this {
    return this
  }

  /**
   * Resolves with the next item, or with the end of the stream. After the last item it rejects with the generator's error, if there is one, and as `call` does.
   * @throws RPC_TIMEOUT if the item does not arrive within `timeoutMs`
   */
  next(): Promise<IteratorResult<T, unknown>> {
    const item = this.items.shift()
    if (item !== undefined) {
      this.count()
      if (this.state === 'ended' && this.items.length === 0) this.port?.ended()
      return Promise.resolve({ done: false, value: item.value as T })
    }
    if (this.state !== 'ended') return this.wait(true) as Promise<IteratorResult<T, unknown>>
    return this.last() as Promise<IteratorResult<T, unknown>>
  }

  /** Ends the generator on the callee, and discards the items that wait. Resolves when its `finally` has run; rejects with an error of `finally`. */
  async return(value?: unknown): Promise<IteratorResult<T, unknown>> {
    this.drop()
    if (this.state === 'ended') this.port?.ended()
    if (this.state === 'open') {
      this.state = 'closing'
      this.port!.stop()
    }
    if (this.state === 'closing') await this.wait(false)
    else if (this.error !== null) this.error = null
    return { done: true, value }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.return()
  }

  // --- the worker's side

  /** Whether items are still wanted. @internal */
  get isOpen(): boolean {
    return this.state === 'open'
  }

  /** @internal */
  begin(port: StreamPort): void {
    this.port = port
  }

  /** False, and without effect: more items wait than its callee may have sent (STR-2). @internal */
  onItem(item: StreamItem): boolean {
    if (this.state !== 'open') {
      this.port!.discard(item)
      return true
    }
    if (this.items.length >= this.window) return false
    const waiter = this.waiters.shift()
    if (waiter === undefined) {
      this.items.push(item)
      return true
    }
    waiter.end()
    this.count()
    waiter.settle({ done: false, value: item.value })
    return true
  }

  /** @internal */
  onReply(message: Pick<Message, 'body'>): void {
    this.result = message.body[0]
    this.finish()
  }

  /** Once the loop is left, what the generator threw by itself is as an item that nobody took (STR-3), unless a `next` waits: the two crossed. @internal */
  onError(thrown: unknown, ofCleanUp?: boolean): void {
    if (this.state !== 'closing' || ofCleanUp !== false || this.waiters[0]?.isNext === true) this.error = { thrown }
    this.finish()
  }

  /** At once: what waits to be taken is discarded, also when the generator had ended. @internal */
  onCancelled(thrown: unknown): void {
    this.drop()
    this.onError(thrown)
  }

  private finish(): void {
    this.state = 'ended'
    if (this.items.length === 0) this.port?.ended()
    for (const waiter of this.waiters.splice(0)) {
      waiter.end()
      this.last().then(waiter.settle, waiter.fail)
    }
  }

  /** The error, once, then the end for ever. */
  private last(): Promise<IteratorResult<unknown, unknown>> {
    const { error, result } = this
    this.error = null
    this.result = undefined
    return error === null ? Promise.resolve({ done: true, value: result }) : Future.rejected(error.thrown)
  }

  private wait(isNext: boolean): Promise<IteratorResult<unknown, unknown>> {
    const future = new Future<IteratorResult<unknown, unknown>>()
    let end: () => void
    const giveUp = (error: unknown) => {
      const at = this.waiters.indexOf(waiter)
      if (at >= 0) this.waiters.splice(at, 1)
      future.reject(error)
      this.port!.cancel(error)
      // The error has been thrown.
      this.error = null
    }
    const waiter: Waiter = { isNext, settle: (item) => future.resolve(item), fail: (error) => future.reject(error), end: () => end() }
    try {
      end = this.port!.wait(giveUp)
      this.waiters.push(waiter)
    } catch (error) {
      giveUp(error)
    }
    return future
  }

  /** One more was taken; the callee is notified every half window. */
  private count(): void {
    this.taken++
    if (this.state !== 'open' || (this.taken - this.told) * 2 < this.window) return
    this.told = this.taken
    this.port!.taken(this.taken)
  }

  private drop(): void {
    for (const item of this.items.splice(0)) this.port!.discard(item)
  }
}

export function isWindow(window: unknown): window is number {
  return typeof window === 'number' && Number.isSafeInteger(window) && window >= 1 && window <= STREAM_WINDOW_MAX
}

/** @throws INVALID_ARGUMENT */
export function checkWindow(op: string, window: number): number {
  if (isWindow(window)) return window
  throw new PostgradError('INVALID_ARGUMENT', {
    op,
    expected: `a window of 1 to ${STREAM_WINDOW_MAX} items`,
    got: String(window),
    remedy: `Leave it out for ${STREAM_WINDOW}.`,
  })
}
