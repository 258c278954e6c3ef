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
 * `new Future<T>()` is one that `setResult` or `setException` ends, for functions marked with `asyncExecution`. `then` is the promise's: its callback
 * gets the value, and it gives a plain promise; PyTorch's callback, which gets the future, is `addDoneCallback`. It cannot be sent: send its value.
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

  /** A future that has failed already. */
  static rejected<T>(error: unknown): Future<T> {
    const future = new Future<T>()
    future.reject(error)
    return future
  }

  /** True once there is a value or an error. */
  get done(): boolean {
    return this.state !== 'pending'
  }

  /** PyTorch's name for awaiting it; may be called any number of times. */
  wait(): Promise<T> {
    return this
  }

  /** The value of a future that is done, without waiting. @throws its error; FUTURE_NOT_DONE */
  value(): T {
    if (this.state === 'value') return this.outcome as T
    if (this.state === 'error') throw this.outcome
    throw new PostgradError('FUTURE_NOT_DONE', {
      op: 'value',
      message: 'the future is not done yet',
      remedy: 'Await it, or check done first.',
    })
  }

  /** Ends it with a value, which must not be a promise. @throws FUTURE_COMPLETED, INVALID_ARGUMENT. PyTorch: `set_result`. */
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

  /** Ends it with an error, which everybody who waits for it gets, each time. @throws FUTURE_COMPLETED. PyTorch: `set_exception`. */
  setException(error: unknown): void {
    this.checkPending('setException')
    this.reject(error)
  }

  /**
   * Runs `fn` with this future once it is done, after the code that is running, in the scope of this call. Callbacks run in the order in which they were
   * added. If one throws, that is an unhandled rejection, and the others still run. PyTorch: `add_done_callback`.
   * @throws INVALID_ARGUMENT for a value that is not a function
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
   * Gives the call up: it ends here with CALL_CANCELLED, whose `cause` is `reason`, and the callee is notified. If the function has not begun there, it does not run. If it has, its
   * `currentSignal()` aborts, and the calls that it has made in turn are cancelled. Returns false if the call had ended already.
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
