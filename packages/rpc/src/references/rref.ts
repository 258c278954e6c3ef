/**
 * The classes of references that users hold. The value lives on one worker, its owner, which counts its references. `RRefContext`
 * runs the protocol. PyTorch: `torch.distributed.rpc.RRef` (`OwnerRRef`, `UserRRef`).
 */
import { Future, PostgradError } from '@postgrad/base'
import type { Tensor } from '@postgrad/tensor'
import type { Sendable } from '@postgrad/wire'
import type { travels } from '@postgrad/wire/internal'
import type { ItemOf, RemoteStream, StreamOptions } from '../calls/stream.js'
import { type CallOptions, checkCallOptions } from '../common/call-options.js'
import type { WorkerInfo } from '../common/worker-info.js'
import { methodProxy } from './rref-proxy.js'

/** Options of the methods of a reference: those of a call. */
export type RRefOptions = CallOptions

/** Options of `rref.backward`: those of a call, and those of the pass. */
export interface RRefBackwardOptions extends RRefOptions {
  /** Keeps the graph, so that another pass can use it; default the value of `createGraph`. */
  readonly retainGraph?: boolean
  /** Records the pass itself, so that a further pass can differentiate its gradients; default false. */
  readonly createGraph?: boolean
  /** The gradient of the referenced tensor, with that tensor's shape; may be left out for a scalar: then 1. */
  readonly gradient?: Tensor
}

/** The methods of T, with what they take and give. */
export type MethodNames<T> = { [K in keyof T]: T[K] extends (...args: never[]) => unknown ? K : never }[keyof T] & string
export type MethodArgs<T, K extends keyof T> = T[K] extends (...args: infer A) => unknown ? A : never
export type MethodResult<T, K extends keyof T> = T[K] extends (...args: never[]) => infer R ? Awaited<R> : unknown

/** The result of `rpcSync` and `rpcAsync`: an object with the methods of T. Each runs on the value's owner and returns a `Future` of its result. */
export type RpcProxy<T> = {
  readonly [K in Exclude<MethodNames<T>, 'then' | 'toJSON'>]: (...args: Sendable<MethodArgs<T, K>>) => Future<MethodResult<T, K>>
}
/** The result of `rref.remote`: an object with the methods of T. Each runs on the value's owner and returns an `RRef` to its result, which stays there. */
export type RemoteProxy<T> = {
  readonly [K in Exclude<MethodNames<T>, 'then' | 'toJSON'>]: (...args: Sendable<MethodArgs<T, K>>) => RRef<MethodResult<T, K>>
}

/** The part of their worker's protocol (`RRefContext`) that references use. */
export interface RRefProtocol {
  readonly self: WorkerInfo
  fetch<T>(user: UserRRef<T>, options: RRefOptions): Future<T>
  /** The value or error of an owned reference that is still being made. */
  awaitValue<T>(owner: OwnerRRef<T>, options: RRefOptions): Future<T>
  callMethod(rref: RRef, method: string, args: readonly unknown[], options: RRefOptions): Future<unknown>
  remoteMethod(rref: RRef, method: string, args: readonly unknown[], options: RRefOptions): RRef
  awaitCreated(rref: RRef, options: RRefOptions): Future<void>
  backward(rref: RRef<Tensor>, contextId: bigint | null, options: RRefBackwardOptions): Promise<void>
  streamMethod(rref: RRef, method: string, args: readonly unknown[], options: StreamOptions): RemoteStream<unknown>
  disposeUser(user: UserRRef): void
}

/** A wait for the value of an owned reference. */
export interface ValueWaiter {
  resolve(value: unknown): void
  reject(error: unknown): void
}

/**
 * A reference to a value that lives on one worker, its owner. The owner keeps the value while any worker holds a reference to it. `remote` and `rref` make
 * references; calls can take and return them. A function that receives a reference has one of its own, and disposes of it: `using account = received`.
 * PyTorch: `torch.distributed.rpc.RRef`.
 * @example
 * using model: RRef<Linear> = remote('worker1', Linear, [2, 4])
 * const y = await model.rpcSync().forward(x) // runs on worker1, gives a copy
 * const kept = model.remote().forward(x) // the result stays on worker1
 * await kept.toHere().then((z) => z.shape) // [2, 4]
 */
export abstract class RRef<T = unknown> {
  /** @internal */
  declare readonly [travels]: true
  /** The id of this reference and of all its copies on other workers. Two calls of `rref(x)` make two references, with two ids. */
  readonly rrefId: bigint
  /** @internal */
  readonly context: RRefProtocol

  constructor(rrefId: bigint, context: RRefProtocol) {
    this.rrefId = rrefId
    this.context = context
  }

  /** Returns whether the value lives on this worker. */
  abstract isOwner(): boolean
  /** Returns the name and id of the worker on which the value lives. */
  abstract owner(): WorkerInfo

  /**
   * Resolves with the value, as soon as it has been made: the value itself on the owner, a copy on any other worker. Also rejects with the error of the
   * function that makes the value. PyTorch: `to_here`.
   * @throws RREF_DELETED if this reference was disposed
   * @throws RREF_CREATION_TIMEOUT if the owner did not confirm the reference in time (`remote`)
   * @throws WORKER_DIED if the owner ends
   * @throws RPC_TIMEOUT if the value does not arrive within `timeoutMs`
   * @throws CALL_CANCELLED if the fetch is cancelled
   * @throws RPC_SHUT_DOWN if this worker ends
   */
  abstract toHere(options?: RRefOptions): Future<T>

  /**
   * Returns the value itself, on its owner. Also throws the error of the function that makes the value. PyTorch: `local_value`.
   * @throws RREF_NOT_OWNER if the value lives on another worker
   * @throws RREF_VALUE_PENDING if the value is still being made
   */
  abstract localValue(): T

  /** Returns whether the owner has confirmed this reference; always true on the owner. PyTorch: `confirmed_by_owner`. */
  abstract confirmedByOwner(): boolean

  /**
   * Gives this reference up; `using` does so at the end of a block. When no reference is left, the owner drops the value. The garbage collector also gives
   * references up, but late: a program that makes many references should dispose of them. On the owner the method does nothing. PyTorch: `del rref`.
   */
  abstract dispose(): void

  [Symbol.dispose](): void {
    this.dispose()
  }

  /** Returns the name of the worker on which the value lives. PyTorch: `owner_name`. */
  ownerName(): string {
    return this.owner().name
  }

  /** For `console.log`: the reference without its worker. */
  [Symbol.for('nodejs.util.inspect.custom')](): string {
    return this.toString()
  }

  /**
   * Resolves when the value has been made on its owner. Nothing is copied. Rejects as `toHere` does, also with the error of the function that makes the
   * value. PyTorch: `_get_future`, which reports no error.
   */
  created(options: RRefOptions = {}): Future<void> {
    return this.context.awaitCreated(this, options)
  }

  /**
   * Runs a method of the value on its owner, and resolves with the result. The value's class must be exposed; a tensor has its operations as methods.
   * Rejects with the method's error, as `call` does, and as `toHere` does. PyTorch: `rref.rpc_async().method(…)`.
   * @throws METHOD_NOT_FOUND if the value has no such method, or if its class is not exposed
   */
  call<K extends MethodNames<T>>(method: K, args: Sendable<MethodArgs<T, K>>, options: RRefOptions = {}): Future<MethodResult<T, K>> {
    return this.context.callMethod(this, method, args, options) as Future<MethodResult<T, K>>
  }

  /** Runs a generator method of the value on its owner, and returns its items one by one; see `stream`. PyTorch has no counterpart. */
  stream<K extends MethodNames<T>>(
    method: K,
    args: Sendable<MethodArgs<T, K>>,
    options: StreamOptions = {},
  ): RemoteStream<ItemOf<MethodResult<T, K>>> {
    return this.context.streamMethod(this, method, args, options) as RemoteStream<ItemOf<MethodResult<T, K>>>
  }

  /**
   * Runs a backward pass from the referenced tensor, on its owner. With a context or its id it runs the distributed pass, and every worker gets its
   * gradients in the context. Without a context it runs the local pass, into `.grad`; only the owner can do that. `timeoutMs` and `signal` also end the pass.
   * PyTorch: `rref.backward(dist_autograd_ctx_id, retain_graph)`.
   *
   * Also rejects as `ctx.backward` and as `toHere` do.
   * @throws RREF_NOT_A_TENSOR if the value is not a tensor
   * @throws CONTEXT_REQUIRED if no context is given and the value lives on another worker
   * @throws CONTEXT_NOT_FOUND if the owner does not know the context
   * @throws ROOT_NOT_SCALAR if the tensor is not a scalar and no `gradient` is given
   * @throws ROOT_REQUIRES_NO_GRAD if the tensor requires no gradient
   */
  backward(this: RRef<Tensor>, context: bigint | { readonly id: bigint } | null = null, options: RRefBackwardOptions = {}): Promise<void> {
    return this.context.backward(this, typeof context === 'object' && context !== null ? context.id : context, options)
  }

  /**
   * Returns a proxy with the methods of the value: `await rref.rpcSync().method(…)` is the same as `await rref.call('method', […])`. You can keep the proxy
   * and use it again. Pass U if you know that the value is of a class that extends T. PyTorch: `rref.rpc_sync()`.
   */
  rpcSync<U = T>(options: RRefOptions = {}): RpcProxy<U> {
    return this.rpcAsync<U>(options)
  }

  /** Does the same as `rpcSync`; the name says that you await the result later. PyTorch: `rref.rpc_async()`. */
  rpcAsync<U = T>(options: RRefOptions = {}): RpcProxy<U> {
    return methodProxy((method, args) => this.context.callMethod(this, method, args, options)) as RpcProxy<U>
  }

  /**
   * Returns a proxy whose methods keep their results on the owner: `rref.remote().method(…)` runs the method there, and returns a reference to the result at
   * once. If the method fails, or does not exist (METHOD_NOT_FOUND), each use of that reference fails.
   *
   * The proxy's methods throw RREF_DELETED if this reference was disposed, and as `remote` does. PyTorch: `rref.remote()`, which throws at once for a
   * method that does not exist, since it asks for the value's type first.
   */
  remote<U = T>(options: RRefOptions = {}): RemoteProxy<U> {
    return methodProxy((method, args) => this.context.remoteMethod(this, method, args, options)) as RemoteProxy<U>
  }
}

/**
 * A reference on the worker that owns the value: `localValue()` returns the value itself. PyTorch: `OwnerRRef`.
 * @example
 * const owner: OwnerRRef<Tensor> = rref(tensor([1, 2]))
 * owner.localValue() // [1, 2]
 */
export class OwnerRRef<T = unknown> extends RRef<T> {
  private state: 'pending' | 'value' | 'error' = 'pending'
  private held: T | undefined
  private error: unknown
  /** Its value is an instance that `remote` of a class made here. @internal */
  isActor = false
  /** Called once, when a use meets the error of its creation. @internal */
  onErrorMet: (() => void) | null = null
  /** In the order in which they came. @internal */
  readonly waiters = new Set<ValueWaiter>()

  /** Returns true. */
  isOwner(): boolean {
    return true
  }

  /** Returns the name and id of this worker. */
  owner(): WorkerInfo {
    return this.context.self
  }

  confirmedByOwner(): boolean {
    return true
  }

  /** Whether the value has been made, so that `localValue` returns it. */
  get hasValue(): boolean {
    return this.state === 'value'
  }

  /** Whether the value is still being made. */
  get isPending(): boolean {
    return this.state === 'pending'
  }

  /** Whether the value could not be made. */
  get hasFailed(): boolean {
    return this.state === 'error'
  }

  /** The first of `setValue` and `setError` counts. @internal */
  setValue(value: T): void {
    if (this.state !== 'pending') return
    this.state = 'value'
    this.held = value
    for (const waiter of this.waiters) waiter.resolve(value)
    this.waiters.clear()
  }

  /** @internal */
  setError(error: unknown): void {
    if (this.state !== 'pending') return
    this.state = 'error'
    this.error = error
    for (const waiter of this.waiters) waiter.reject(error)
    this.waiters.clear()
  }

  /** The error of its creation, for a use that gets it. @internal */
  meetError(): unknown {
    this.onErrorMet?.()
    this.onErrorMet = null
    return this.error
  }

  toHere(options: RRefOptions = {}): Future<T> {
    try {
      checkCallOptions('toHere', options)
    } catch (error) {
      return Future.rejected(error)
    }
    if (this.state === 'pending') return this.context.awaitValue(this, options)
    if (this.state === 'error') return Future.rejected(this.meetError())
    const future = new Future<T>()
    future.resolve(this.held as T)
    return future
  }

  localValue(): T {
    if (this.state === 'value') return this.held as T
    if (this.state === 'error') throw this.meetError()
    throw new PostgradError('RREF_VALUE_PENDING', {
      op: 'localValue',
      message: `the value of ${this} is still being made`,
      remedy: 'Await toHere(), which on the owner gives the value itself.',
    })
  }

  /** Does nothing. The owner drops the value when no other worker refers to it, and no reference on the owner itself is left. */
  dispose(): void {}

  /** Returns a text with the value's id, as PyTorch prints it. */
  override toString(): string {
    return `OwnerRRef(${formatId(this.rrefId)})`
  }
}

/**
 * A reference to a value of another worker: `toHere()` fetches a copy of the value. PyTorch: `UserRRef`.
 * @example
 * using model = remote('worker1', Linear, [2, 4])
 * model instanceof UserRRef // true
 * model.owner().name // 'worker1'
 */
export class UserRRef<T = unknown> extends RRef<T> {
  /** The id of this reference; other references to the same value have other ids. */
  readonly forkId: bigint
  private readonly ownerInfo: WorkerInfo
  /** Changed by RRefContext alone. @internal */
  confirmed: boolean
  /** @internal */
  deleted = false
  /** Set when creation or confirmation failed, or the owner died: whatever uses it meets this. @internal */
  failure: unknown = null
  /** The owner was notified of the end, or need not be because it never counted this reference. @internal */
  ended = false
  /** References made from this one that their receivers have not accepted yet: until then it must live (G2). @internal */
  children = 0
  /** When it was made, or came here, on its worker's clock. @internal */
  sinceMs = 0

  constructor(rrefId: bigint, forkId: bigint, ownerInfo: WorkerInfo, context: RRefProtocol, confirmed: boolean) {
    super(rrefId, context)
    this.forkId = forkId
    this.ownerInfo = ownerInfo
    this.confirmed = confirmed
  }

  /** Returns false. */
  isOwner(): boolean {
    return false
  }

  /** Returns the name and id of the worker on which the value lives. */
  owner(): WorkerInfo {
    return this.ownerInfo
  }

  confirmedByOwner(): boolean {
    return this.confirmed
  }

  toHere(options: RRefOptions = {}): Future<T> {
    return this.context.fetch(this, options)
  }

  localValue(): T {
    throw new PostgradError('RREF_NOT_OWNER', {
      op: 'localValue',
      message: `${this} is owned by worker '${this.ownerInfo.name}', and this is worker '${this.context.self.name}'`,
      remedy: 'Use await toHere() for a copy, or call a function on the owner.',
      values: { owner: this.ownerInfo.name, worker: this.context.self.name },
    })
  }

  dispose(): void {
    this.context.disposeUser(this)
  }

  /** Returns a text with the ids of the value and of this reference, as PyTorch prints them. */
  override toString(): string {
    return `UserRRef(RRefId = ${formatId(this.rrefId)}, ForkId = ${formatId(this.forkId)})`
  }
}

function formatId(id: bigint): string {
  return `GloballyUniqueId(created_on=${id >> 48n}, local_id=${id & 0xffffffffffffn})`
}
