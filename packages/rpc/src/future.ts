/**
 * The result of a call that is under way: a promise with PyTorch's words. It settles with the callee's value, the callee's error, the
 * callee's death, or its deadline; it never stays pending for ever. PyTorch: `torch.futures.Future`.
 */
export class Future<T> implements Promise<T> {
  readonly [Symbol.toStringTag] = 'Future'
  private readonly promise: Promise<T>
  // Not typed by T, which keeps Future<T> assignable to Future<unknown>.
  private settle!: (value: unknown) => void
  private fail!: (error: unknown) => void
  private settled = false

  constructor() {
    this.promise = new Promise<T>((resolve, reject) => {
      this.settle = resolve as (value: unknown) => void
      this.fail = reject
    })
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
    return this.promise
  }

  // biome-ignore lint/suspicious/noThenProperty: a Future is awaited like any promise
  then<A = T, B = never>(
    onValue?: ((value: T) => A | PromiseLike<A>) | null,
    onError?: ((error: unknown) => B | PromiseLike<B>) | null,
  ): Promise<A | B> {
    return this.promise.then(onValue, onError)
  }

  catch<B = never>(onError?: ((error: unknown) => B | PromiseLike<B>) | null): Promise<T | B> {
    return this.promise.catch(onError)
  }

  finally(onSettled?: (() => void) | null): Promise<T> {
    return this.promise.finally(onSettled)
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
