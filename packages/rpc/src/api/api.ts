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
 * The worker that runs this code. @throws RPC_NOT_INITIALIZED outside of any
 * @example
 * currentWorker().info // { name: 'worker0', id: 0 }
 * currentWorker().workers().map(({ name }) => name) // ['worker0', 'worker1']
 */
export function currentWorker(): Worker {
  return currentRuntime()
}

/** The same with all that parts of a worker use. @throws RPC_NOT_INITIALIZED outside of any */
export function currentRuntime(): WorkerRuntime {
  return currentCore() as WorkerRuntime
}

/**
 * Runs an exposed function on another worker (or on this one) and gives its result. Arguments and result travel by value: any structured-clone
 * type, tensors and RRefs, nested. Under a distributed context the call is recorded at both ends.
 * Rejects with the callee's error, UNKNOWN_WORKER, FUNCTION_NOT_EXPOSED, WIRE_UNSUPPORTED_VALUE, WORKER_DIED, MAILBOX_FULL, RPC_TIMEOUT, CALL_CANCELLED, RPC_SHUT_DOWN.
 * It never throws by itself and is never repeated. PyTorch: `rpc_async`.
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
 * The signal of the call that is being served here (of the job, in one of a pool): it aborts when nobody waits for the call any more, because its caller cancelled it, ran out of
 * time, or died. When an actor crashes or is killed it aborts for all that runs of it, also for what it sent to itself. Outside of any call, it is the worker's own, which aborts at its shutdown. A long function looks at `aborted` now and then, or
 * passes it to what it waits for. Listeners of the signal run in the scope of the call. After the call has ended it stays as it is. @throws RPC_NOT_INITIALIZED outside of any worker
 * @example
 * const download = async (url: string) => (await fetch(url, { signal: currentSignal() })).text()
 * expose({ download }) // the download ends when the caller cancels the call, or dies
 */
export function currentSignal(): AbortSignal {
  const job = currentScope().job as { readonly signal: AbortSignal } | null
  return job?.signal ?? currentServing()?.signal ?? currentRuntime().requests.shutdownSignal
}

/**
 * Resolves when a worker has room for a call of this one: fewer than `mailbox.callsMax` (16,384) calls and `mailbox.bytesMax` (64 MiB) wait there. The
 * place is kept until the end of the turn, so call then without awaiting anything else. Needed only by who sends faster than the other works:
 * a call that finds no room is rejected with MAILBOX_FULL.
 * Rejects with UNKNOWN_WORKER, WORKER_DIED, RPC_TIMEOUT, RPC_SHUT_DOWN, CALL_CANCELLED. PyTorch has none: its queues grow.
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
 * Runs an exposed generator function on another worker (or on this one) and gives its items one by one, in order, at most `window` (32) of them ahead
 * of the loop that takes them. Leaving the loop ends the generator there: its `finally` runs, and the loop waits for that. A function may also
 * give an array or anything else that can be gone through. Items are values like results: tensors and RRefs in them, recorded under a distributed
 * context. Errors arrive after the items before them; they are those of `call`, and STREAM_NOT_ITERABLE. @throws RPC_NOT_INITIALIZED
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
 * Counts of the objects and waits of the worker that runs this: see `WorkerRuntime.getDebugInfo`. @throws RPC_NOT_INITIALIZED. PyTorch: `rpc._get_debug_info`.
 * @example
 * const model = remote('worker1', Linear, [2, 4])
 * await model.created()
 * getDebugInfo().userRRefs // 1
 */
export function getDebugInfo(): Record<string, number> {
  return currentRuntime().getDebugInfo()
}

/**
 * PyTorch's name for `call`, to be awaited at once.
 * @example await rpcSync('worker1', addOne, [x]) // [[2, 3], [4, 5]]
 */
export const rpcSync = call
/**
 * PyTorch's name for `call`.
 * @example
 * const future = rpcAsync('worker1', addOne, [x])
 * await future // [[2, 3], [4, 5]]
 */
export const rpcAsync = call

/**
 * Runs an exposed function, or makes an instance of an exposed class, on a worker, and keeps the result there; the reference comes back at once.
 * An error of the function is thrown by each use of the reference; if nothing uses it, the error is a dead letter of that worker. `timeoutMs` is the time in which the owner must know of the reference
 * (RREF_CREATION_TIMEOUT), not that of the function; `signal` cancels the function. @throws UNKNOWN_WORKER, FUNCTION_NOT_EXPOSED, WORKER_DIED, WIRE_UNSUPPORTED_VALUE
 * PyTorch: `rpc.remote`.
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
 * A reference, owned by this worker, to a value of its own. PyTorch: `RRef(value)`.
 * @example
 * const reference = rref(new Linear(2, 4)) // may be sent as an argument
 * reference.isOwner() // true
 */
export function rref<T>(value: T): OwnerRRef<T> {
  return currentRuntime().rrefs.createOwner({ value })
}
