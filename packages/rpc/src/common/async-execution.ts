/** `asyncExecution`: functions that answer after they return, so that callers can share a result. */
import { PostgradError } from '@postgrad/base'
import { isThenable } from '@postgrad/base/internal'

// Functions of this thread, as their names are: no state of any worker.
// biome-ignore lint/suspicious/noExplicitAny: functions of any signature
const marked = new WeakSet<(...args: any[]) => any>()

/**
 * Marks a function or method that answers its calls later, when the `Future` or promise that it returns is done. Returns the function itself, so it is also
 * a decorator: `@asyncExecution add(…) {…}`, inside of any other decorator. PyTorch: `rpc.functions.async_execution`.
 *
 * Any exposed function may return a promise; its caller then receives the promise's value. The mark adds two things:
 *
 * - The compiler and the run time check that the function returns a promise, so that a forgotten `return` does not answer undefined. If the function returns
 *   something else, the call fails with ASYNC_EXECUTION_NO_FUTURE.
 * - A serial actor takes its next call as soon as the method has returned, before the promise is done. So the promise may wait for later calls.
 *
 * This makes PyTorch's batch RPC possible: many callers share one future, each call adds to the batch, and the last call of a batch computes for all.
 * @throws NOT_CALLABLE if `fn` is not a function
 * @example
 * const addTwo = asyncExecution((a: Tensor) => call('worker1', addOne, [a]).then((b) => b.add(1)))
 * expose({ addTwo })
 * await call('worker0', addTwo, [x]) // [[3, 4], [5, 6]]
 */
// biome-ignore lint/suspicious/noExplicitAny: functions of any signature; a constraint on their result would decide what their callbacks' types are
export function asyncExecution<F extends (this: any, ...args: any[]) => any>(
  fn: F & (ReturnType<F> extends PromiseLike<unknown> ? unknown : never),
  _context?: object,
): F {
  if (typeof fn !== 'function') {
    throw new PostgradError('NOT_CALLABLE', {
      op: 'asyncExecution',
      expected: 'a function or a method',
      got: fn === null ? 'null' : typeof fn,
      remedy: 'Mark the function itself: expose({ name: asyncExecution(fn) }).',
    })
  }
  marked.add(fn)
  return fn
}

// biome-ignore lint/suspicious/noExplicitAny: functions of any signature
export function isAsyncExecution(fn: (...args: any[]) => any): boolean {
  return marked.has(fn)
}

/** Checks what a marked function returned. @throws ASYNC_EXECUTION_NO_FUTURE */
export function checkFuture<T>(name: string, returned: T): T {
  if (isThenable(returned)) return returned
  throw new PostgradError('ASYNC_EXECUTION_NO_FUTURE', {
    op: name,
    expected: 'a Future, since the function is marked with asyncExecution',
    got: returned === null ? 'null' : Array.isArray(returned) ? 'an array' : typeof returned,
    remedy: 'Return the Future (or promise) that all of its callers wait for, or remove the mark.',
    values: { function: name },
  })
}
