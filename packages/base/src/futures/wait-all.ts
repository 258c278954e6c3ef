/**
 * Waits for several futures: for all of them, failed or not, for all values or the first error, or for every call that a function
 * makes. PyTorch: `torch.futures.collect_all`, `wait_all`, and `_wait_all` of `torch.distributed.rpc`.
 */
import { currentScope, withScope } from '../scope.js'
import { callCancelled } from './cancelling.js'
import { Future } from './future.js'

type Awaitables = readonly PromiseLike<unknown>[]

/**
 * Waits until all futures are done, failed or not. Resolves with the futures in an array: read each with `value()`, which throws the error of a failed one.
 * Promises are allowed, and become futures. An error of one does not reject the result. PyTorch: `torch.futures.collect_all`.
 * @example
 * const failing = Promise.reject(new Error('no data'))
 * const [first, second] = await collectAll([Promise.resolve(1), failing])
 * first.value() // 1
 * second.done // true
 */
export function collectAll<const P extends Awaitables>(futures: P): Future<{ -readonly [K in keyof P]: Future<Awaited<P[K]>> }> {
  const parts = futures.map(toFuture)
  const result = future(Promise.allSettled(parts).then(() => parts as { -readonly [K in keyof P]: Future<Awaited<P[K]>> }))
  result.cancelWith({ cancel: (reason) => cancelEach(parts, reason) })
  return result
}

/**
 * Waits for several futures, and resolves with their values in an array. If one fails, rejects with its error at once. `cancel` cancels the futures that are
 * not done. PyTorch: `torch.futures.wait_all`.
 *
 * With a function: runs it, waits for every call that it makes with `call`, `rpcAsync` or the methods of a reference, awaited or not, and resolves with the
 * function's result. If a call fails, rejects with the first error. If the function itself throws, rejects without waiting for the calls.
 * @example
 * const [a, b] = await waitAll([call('worker0', addOne, [x]), call('worker1', addOne, [x])])
 * a.add(b) // [[4, 6], [8, 10]]
 */
export function waitAll<const P extends Awaitables>(futures: P): Future<{ -readonly [K in keyof P]: Awaited<P[K]> }>
export function waitAll<T>(body: () => T | PromiseLike<T>): Future<Awaited<T>>
export function waitAll(what: Awaitables | (() => unknown)): Future<unknown> {
  if (typeof what !== 'function') return all(Promise.all(what), what)
  const made: Future<unknown>[] = []
  return all(runAndWait(what, made), made)
}

/** One future for all: `cancel` cancels the `parts` made by then, and rejects it even if it waits for more. */
function all(promise: Promise<unknown>, parts: Awaitables): Future<unknown> {
  const result = future(promise)
  result.cancelWith({
    cancel: (reason) => {
      cancelEach(parts, reason)
      result.reject(callCancelled('waitAll', null, reason))
    },
  })
  return result
}

async function runAndWait(body: () => unknown, made: Future<unknown>[]): Promise<unknown> {
  const value = await withScope({ collected: made }, body)
  // Calls may make calls, in callbacks that belong to the body.
  for (let seen = 0; seen < made.length; ) {
    const from = seen
    seen = made.length
    await Promise.all(made.slice(from))
  }
  return value
}

/** Notes a call for the `waitAll` around it, if there is one. Its error is waited for there, so it is handled. */
export function collect(made: Future<unknown>): void {
  const collected = currentScope().collected as Future<unknown>[] | null
  if (collected === null) return
  collected.push(made)
  made.catch(() => {})
}

function toFuture(promise: PromiseLike<unknown>): Future<unknown> {
  return promise instanceof Future ? promise : future(promise)
}

function cancelEach(parts: Awaitables, reason: unknown): void {
  for (const part of parts) if (part instanceof Future) part.cancel(reason)
}

/** A promise as a future. */
function future<T>(promise: PromiseLike<T>): Future<T> {
  const result = new Future<T>()
  promise.then(
    (value) => result.resolve(value),
    (error) => result.reject(error),
  )
  return result
}
