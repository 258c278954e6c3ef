/**
 * The result of a call that is under way: a promise with PyTorch's words. It settles with the callee's value, the callee's error, the
 * callee's death, its deadline, or its cancellation; it never stays pending for ever. PyTorch: `torch.futures.Future`.
 */
import { callCancelled } from './served-call.js'

/** What ends a future early. */
export interface Canceller {
  /** Must reject the future. */
  cancel(reason: unknown): void
}

export class Future<T> extends Promise<T> {
  private readonly settle: (value: unknown) => void
  private readonly fail: (error: unknown) => void
  private settled = false
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
    return this.settled
  }

  /** PyTorch's name for awaiting it; may be called any number of times. */
  wait(): Promise<T> {
    return this
  }

  /**
   * Gives the call up: it ends here with CALL_CANCELLED, whose `cause` is `reason`, and the callee is told. What has not begun there is not run;
   * what has finds its `currentSignal()` aborted, and the calls that it has made in turn are cancelled. Returns false when it had ended already.
   */
  cancel(reason?: unknown): boolean {
    if (this.settled) return false
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
    signal.addEventListener('abort', abort, { once: true })
    this.listen(() => signal.removeEventListener('abort', abort))
  }

  private listen(listener: () => void): void {
    if (this.settled) listener()
    else if (this.listeners === null) this.listeners = [listener]
    else this.listeners.push(listener)
  }

  /** The agent's side: the first of `resolve` and `reject` counts. */
  resolve(value: T): void {
    this.settled = true
    this.settle(value)
    if (this.listeners !== null) this.ended()
  }

  reject(error: unknown): void {
    this.settled = true
    this.fail(error)
    if (this.listeners !== null) this.ended()
  }

  private ended(): void {
    const listeners = this.listeners!
    this.listeners = null
    this.canceller = null
    for (const listener of listeners) listener()
  }
}

// `await` takes a promise as it is only if its constructor is Promise; any other costs two more promises and two more turns of the microtask
// queue, per call. The same property makes `then` return plain promises, which need no `resolve` of ours.
Object.defineProperty(Future.prototype, 'constructor', { value: Promise, configurable: true, writable: true })
