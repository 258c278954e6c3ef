/**
 * The result of a call that is under way, or of work that a program will do: a promise with PyTorch's names. A call's future settles with the
 * callee's value, the callee's error, the callee's death, its deadline, or its cancellation; it never stays pending for ever. The rules FUT-1 to
 * FUT-8 are in rpc's SPEC.md; `wait-all.ts` waits for several. PyTorch: `torch.futures.Future`.
 */
import { rejectTraced } from '../await-stack.js'
import { PostgradError } from '../errors.js'
import { onAbort } from './abort-listeners.js'
import { callCancelled, isEndedElsewhere } from './cancelling.js'

/** Ends a future early. */
export interface Canceller {
  /** Must end the future, soon. */
  cancel(reason: unknown): void
}

/**
 * A promise with PyTorch's methods; calls return one. `new Future<T>()` makes a future that your program ends with `setResult` or `setException`, for
 * instance in a function marked with `asyncExecution`. A future cannot be sent to another worker: send its value. PyTorch: `torch.futures.Future`.
 *
 * `then` is the promise's method: its callback receives the value, and it returns a plain promise. For PyTorch's `then`, whose callback receives the future,
 * use `addDoneCallback`.
 * @example
 * const future = new Future<number>()
 * setTimeout(() => future.setResult(3), 10)
 * future.done // false
 * await future // 3
 */
export class Future<T> extends Promise<T> {
  private readonly settle: (value: unknown) => void
  private readonly fail: (error: unknown) => void
  private state: 'pending' | 'value' | 'error' = 'pending'
  private outcome: unknown
  private canceller: Canceller | null = null
  /** Run at the end, at once. Null: nobody asked. */
  private listeners: (() => void)[] | null = null

  constructor() {
    let settle!: (value: unknown) => void
    let fail!: (error: unknown) => void
    super((resolve, reject) => {
      settle = resolve as (value: unknown) => void
      fail = reject
    })
    this.settle = settle
    this.fail = fail
  }

  /** Makes a future that has failed with `error`. */
  static rejected<T>(error: unknown): Future<T> {
    const future = new Future<T>()
    future.reject(error)
    return future
  }

  /** Whether the future has its value or its error. PyTorch: `done()`. */
  get done(): boolean {
    return this.state !== 'pending'
  }

  /** Returns the future itself, to be awaited: PyTorch's name for `await future`. */
  wait(): Promise<T> {
    return this
  }

  /**
   * Returns the value of a future that is done, without waiting. If the future has failed, throws its error. PyTorch: `value()`.
   * @throws FUTURE_NOT_DONE if the future is not done
   */
  value(): T {
    if (this.state === 'value') return this.outcome as T
    if (this.state === 'error') throw this.outcome
    throw new PostgradError('FUTURE_NOT_DONE', {
      op: 'value',
      message: 'the future is not done yet',
      remedy: 'Await it, or check done first.',
    })
  }

  /**
   * Ends the future with a value. PyTorch: `set_result`.
   * @throws FUTURE_COMPLETED if the future is done already
   * @throws INVALID_ARGUMENT if `value` is a promise
   */
  setResult(value: T): void {
    this.checkPending('setResult')
    if (isThenable(value)) {
      throw new PostgradError('INVALID_ARGUMENT', {
        op: 'setResult',
        expected: 'a value',
        got: 'a promise',
        remedy: 'Await it first: promise.then((value) => future.setResult(value), (error) => future.setException(error)).',
      })
    }
    this.resolve(value)
  }

  /**
   * Ends the future with an error: each `await` of the future throws it. PyTorch: `set_exception`.
   * @throws FUTURE_COMPLETED if the future is done already
   */
  setException(error: unknown): void {
    this.checkPending('setException')
    this.reject(error)
  }

  /**
   * Runs `fn` with this future when the future is done, after the code that is running then. `fn` runs with the worker and context of the code that added it.
   * Callbacks run in the order in which they were added. If one throws, that is an unhandled rejection, and the others still run. PyTorch:
   * `add_done_callback`.
   * @throws INVALID_ARGUMENT if `fn` is not a function
   */
  addDoneCallback(fn: (future: Future<T>) => void): void {
    if (typeof fn !== 'function') {
      throw new PostgradError('INVALID_ARGUMENT', {
        op: 'addDoneCallback',
        expected: 'a function',
        got: fn === null ? 'null' : typeof fn,
        remedy: 'Pass a function that takes the future.',
      })
    }
    const run = () => fn(this)
    void this.then(run, run)
  }

  /**
   * Cancels the call: the future fails with CALL_CANCELLED, whose `cause` is `reason`, and the callee is notified. If the function has not begun on the callee,
   * it does not run. If it has begun, its `currentSignal()` aborts, and the calls that it has made are cancelled too. Returns false if the future was done
   * already. PyTorch has no counterpart.
   */
  cancel(reason?: unknown): boolean {
    if (this.done) return false
    if (this.canceller !== null) this.canceller.cancel(reason)
    else this.reject(callCancelled('cancel', null, reason))
    return true
  }

  /** What `cancel` does. @internal */
  cancelWith(canceller: Canceller): void {
    this.canceller = canceller
  }

  /** Cancels when `signal` aborts, with its reason. @internal */
  cancelOn(signal: AbortSignal): void {
    const abort = () => this.cancel(signal.reason)
    if (signal.aborted) {
      abort()
      return
    }
    this.listen(onAbort(signal, abort))
  }

  private listen(listener: () => void): void {
    if (this.done) listener()
    else if (this.listeners === null) this.listeners = [listener]
    else this.listeners.push(listener)
  }

  /** The agent's side: the first of `resolve` and `reject` counts. @internal */
  resolve(value: T): void {
    if (this.state !== 'pending') return
    this.state = 'value'
    this.outcome = value
    this.settle(value)
    if (this.listeners !== null) this.ended()
  }

  /** @internal */
  reject(error: unknown): void {
    if (this.state !== 'pending') return
    this.state = 'error'
    this.outcome = error
    rejectTraced(this, this.settle, this.fail, error, () => {
      // A future that ends from outside may never be awaited; its error must not end the process.
      if (isEndedElsewhere(error)) this.catch(() => {})
    })
    if (this.listeners !== null) this.ended()
  }

  private ended(): void {
    const listeners = this.listeners!
    this.listeners = null
    for (const listener of listeners) listener()
  }

  private checkPending(op: string): void {
    if (this.state === 'pending') return
    throw new PostgradError('FUTURE_COMPLETED', {
      op,
      message: 'a Future can only be marked completed once',
      remedy: 'Check done first, or make one future for each result.',
    })
  }
}

// `await` takes a promise as it is only if its constructor is Promise; any other costs two more promises and two more turns of the microtask
// queue, per call. The same property makes `then` return plain promises, which need no `resolve` of ours.
Object.defineProperty(Future.prototype, 'constructor', { value: Promise, configurable: true, writable: true })

/** Whether `await` waits for it: also a promise of another realm, or an object with only a `then`. */
export function isThenable<T>(value: T | PromiseLike<T>): value is PromiseLike<T> {
  return typeof value === 'object' && value !== null && typeof (value as { then?: unknown }).then === 'function'
}
