/**
 * The result of a call that is under way: a promise with PyTorch's words. It settles with the callee's value, the callee's error, the
 * callee's death, or its deadline; it never stays pending for ever. PyTorch: `torch.futures.Future`.
 */
export class Future<T> extends Promise<T> {
  private readonly settle: (value: unknown) => void
  private readonly fail: (error: unknown) => void
  private settled = false

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

  /** The agent's side: the first of `resolve` and `reject` counts. */
  resolve(value: T): void {
    this.settled = true
    this.settle(value)
  }

  reject(error: unknown): void {
    this.settled = true
    this.fail(error)
  }
}

// `await` takes a promise as it is only if its constructor is Promise; any other costs two more promises and two more turns of the microtask
// queue, per call. The same property makes `then` return plain promises, which need no `resolve` of ours.
Object.defineProperty(Future.prototype, 'constructor', { value: Promise, configurable: true, writable: true })
