/**
 * The functions that users call: `call`, `stream`, `remote`, `rref` and others. They take a function itself, check arguments and result by
 * its type, and send its exposed name. PyTorch: `rpc_sync`, `rpc_async`, `remote`, `RRef(value)`.
 */
import { Future } from '@postgrad/base'
import { currentScope } from '@postgrad/base/internal'
import type { Sendable } from '@postgrad/wire'
import type { ItemOf, RemoteStream, StreamOptions } from '../calls/stream.js'
import type { CallOptions } from '../common/call-options.js'
import type { AnyClass, AnyFunction } from '../common/function-registry.js'
import type { Target } from '../common/worker-info.js'
import { currentServing } from '../core/served-call.js'
import { currentCore } from '../core/slots.js'
import type { OwnerRRef, RRef } from '../references/rref.js'
import type { WorkerRuntime } from '../worker/worker-runtime.js'
import type { Worker } from './worker.js'

/** A function without parameters needs no arguments. The compiler refuses values that cannot be sent. */
export type Rest<A extends readonly unknown[], Options = CallOptions> = [] extends A
  ? [args?: Sendable<A>, options?: Options]
  : [args: Sendable<A>, options?: Options]

/**
 * Returns the worker that runs this code.
 * @throws RPC_NOT_INITIALIZED if no worker runs this code
 * @example
 * currentWorker().info // { name: 'worker0', id: 0 }
 * currentWorker().workers().map(({ name }) => name) // ['worker0', 'worker1']
 */
export function currentWorker(): Worker {
  return currentRuntime()
}

/**
 * Returns the worker that runs this code, with the members that plugins use. `currentWorker()` returns the same object, typed for programs.
 * @throws RPC_NOT_INITIALIZED if no worker runs this code
 */
export function currentRuntime(): WorkerRuntime {
  return currentCore() as WorkerRuntime
}

/**
 * Runs an exposed function on another worker, or on this one, and resolves with its result. Arguments and result are copied: values that structured clone
 * accepts, tensors and RRefs, also nested. In a distributed context both workers record the call for the backward pass. A call is never repeated.
 *
 * `call` does not throw: the future rejects with the function's error, or with one of the codes below. PyTorch: `rpc_async`.
 * @throws UNKNOWN_WORKER if this worker does not know the worker `to`
 * @throws FUNCTION_NOT_EXPOSED if `fn` is not exposed on this worker, or not on the callee
 * @throws WIRE_UNSUPPORTED_VALUE if an argument or the result cannot be sent
 * @throws MAILBOX_FULL if too many calls of this worker wait at the callee (`MailboxOptions`)
 * @throws NOT_PERMITTED if the callee's rights do not allow the call
 * @throws WORKER_DIED if the callee ends before it replies
 * @throws RPC_TIMEOUT if no reply arrives within `timeoutMs`
 * @throws CALL_CANCELLED if the call is cancelled, by `future.cancel()` or by `signal`
 * @throws RPC_SHUT_DOWN if this worker ends before the reply arrives
 * @throws RPC_NOT_INITIALIZED if no worker runs this code
 * @example
 * const y = await call('worker1', addOne, [x]) // the program has: expose({ addOne })
 * y // [[2, 3], [4, 5]]
 */
export function call<F extends AnyFunction>(to: Target, fn: F, ...[args, options]: Rest<Parameters<F>>): Future<Awaited<ReturnType<F>>> {
  try {
    const { caller, registry } = currentRuntime()
    return caller.call(to, registry.nameOf(fn), (args ?? []) as readonly unknown[], options) as Future<Awaited<ReturnType<F>>>
  } catch (error) {
    return Future.rejected(error)
  }
}

/**
 * Returns the `AbortSignal` of the call that the running code serves, or of the job that it runs in a job pool. The signal aborts when nobody waits for the
 * result any more: the caller cancelled the call, ran out of time, or died. When an actor crashes or is killed, the signals of all its running methods abort.
 *
 * Outside of any call the function returns the worker's own signal, which aborts when the worker shuts down. A long function checks `aborted` from time to
 * time, or passes the signal to the operations that it awaits. Listeners run in the scope of the call. After the call has ended, its signal does not change any more.
 * @throws RPC_NOT_INITIALIZED if no worker and no job runs this code
 * @example
 * const download = async (url: string) => (await fetch(url, { signal: currentSignal() })).text()
 * expose({ download }) // the download ends when the caller cancels the call, or dies
 */
export function currentSignal(): AbortSignal {
  const job = currentScope().job as { readonly signal: AbortSignal } | null
  return job?.signal ?? currentServing()?.signal ?? currentRuntime().requests.shutdownSignal
}

/**
 * Resolves when a worker has room for one more call of this worker: fewer than `mailbox.callsMax` (16,384) calls and less than `mailbox.bytesMax` (64 MiB)
 * of its calls wait there. The room is kept until the end of the turn, so make the call before you await anything else.
 *
 * Only a program that makes calls faster than the other worker serves them needs `ready`. Without it, a call that finds no room fails with MAILBOX_FULL.
 * `ready` does not throw: its future rejects. PyTorch has no counterpart: its queues grow.
 * @throws UNKNOWN_WORKER if this worker does not know the worker `to`
 * @throws WORKER_DIED if that worker ends meanwhile
 * @throws RPC_TIMEOUT if no room becomes free within `timeoutMs`
 * @throws CALL_CANCELLED if the wait is cancelled, by `future.cancel()` or by `signal`
 * @throws RPC_SHUT_DOWN if this worker ends meanwhile
 * @example
 * const results: Future<Tensor>[] = []
 * for (const row of x.unbind(0)) {
 *   await ready('worker1') // worker1 has room for one more call
 *   results.push(call('worker1', addOne, [row]))
 * }
 * await waitAll(results) // [[2, 3], [4, 5]]
 */
export function ready(to: Target, options?: CallOptions): Future<void> {
  try {
    return currentRuntime().ready(to, options)
  } catch (error) {
    return Future.rejected(error)
  }
}

/**
 * Runs an exposed generator function on another worker, or on this one, and returns its items one by one, in order. The callee sends at most `window` (32)
 * items ahead of the loop that takes them. If you leave the loop, the generator ends: its `finally` runs, and the loop waits for that.
 *
 * The function may also return an array or any other iterable. Items are copied like the result of a call: they may contain tensors and RRefs, and a
 * distributed context records them. An error is thrown by the loop, after the items that came before the error. The errors are those of `call` and the one below.
 * @throws STREAM_NOT_ITERABLE if the function's result is not iterable
 * @throws RPC_NOT_INITIALIZED (at once, not in the loop) if no worker runs this code
 * @example
 * function* squares(n: number) { for (let i = 0; i < n; i++) yield i * i }
 * expose({ squares })
 * const items: number[] = []
 * for await (const item of stream('worker1', squares, [4])) items.push(item)
 * items // [0, 1, 4, 9]
 */
export function stream<F extends AnyFunction>(
  to: Target,
  fn: F,
  ...[args, options]: Rest<Parameters<F>, StreamOptions>
): RemoteStream<ItemOf<Awaited<ReturnType<F>>>> {
  return currentRuntime().stream(to, fn, (args ?? []) as readonly unknown[], options) as RemoteStream<ItemOf<Awaited<ReturnType<F>>>>
}

/**
 * Returns the counts of the current worker's objects and waits, by name; see `WorkerRuntime.getDebugInfo`. PyTorch: `rpc._get_debug_info`.
 * @throws RPC_NOT_INITIALIZED if no worker runs this code
 * @example
 * const model = remote('worker1', Linear, [2, 4])
 * await model.created()
 * getDebugInfo().userRRefs // 1
 */
export function getDebugInfo(): Record<string, number> {
  return currentRuntime().getDebugInfo()
}

/**
 * PyTorch's name for `call`, for a result that you await at once.
 * @example await rpcSync('worker1', addOne, [x]) // [[2, 3], [4, 5]]
 */
export const rpcSync = call
/**
 * PyTorch's name for `call`, for a result that you await later.
 * @example
 * const future = rpcAsync('worker1', addOne, [x])
 * await future // [[2, 3], [4, 5]]
 */
export const rpcAsync = call

/**
 * Runs an exposed function, or makes an instance of an exposed class, on a worker, and keeps the result there. Returns the reference to the result at once.
 *
 * If the function fails, each use of the reference fails with the function's error. If nothing uses the reference, the error becomes a dead letter of the
 * owner. `timeoutMs` limits how long the owner may take to confirm the reference, not how long the function may run: later uses of the reference then fail
 * with RREF_CREATION_TIMEOUT. `signal` cancels the function. PyTorch: `rpc.remote`.
 * @throws UNKNOWN_WORKER if this worker does not know the worker `to`
 * @throws FUNCTION_NOT_EXPOSED if the function or class is not exposed on this worker
 * @throws WIRE_UNSUPPORTED_VALUE if an argument cannot be sent
 * @throws MAILBOX_FULL if too many calls of this worker wait there
 * @throws WORKER_DIED if that worker has ended
 * @throws RPC_SHUT_DOWN if this worker has ended
 * @example
 * using model = remote('worker1', Linear, [2, 4]) // the program has: expose({ Linear })
 * const y = await model.rpcSync().forward(x)
 * y.shape // [2, 4]
 */
export function remote<C extends AnyClass>(to: Target, make: C, ...rest: Rest<ConstructorParameters<C>>): RRef<InstanceType<C>>
export function remote<F extends AnyFunction>(to: Target, fn: F, ...rest: Rest<Parameters<F>>): RRef<Awaited<ReturnType<F>>>
export function remote(to: Target, fn: AnyFunction | AnyClass, args: readonly unknown[] = [], options?: CallOptions): RRef {
  return currentRuntime().remote(to, fn, args, options)
}

/**
 * Makes a reference to a value of this worker, which owns the value and the reference. The value is not copied. PyTorch: `RRef(value)`.
 * @throws RPC_NOT_INITIALIZED if no worker runs this code
 * @example
 * const reference = rref(new Linear(2, 4)) // may be sent as an argument
 * reference.isOwner() // true
 */
export function rref<T>(value: T): OwnerRRef<T> {
  return currentRuntime().rrefs.createOwner({ value })
}
