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

/** Options of `toHere` and `call`, as of a call. */
export type RRefOptions = CallOptions

/** Options of `rref.backward`. */
export interface RRefBackwardOptions extends RRefOptions {
  /** Keeps the graph for another pass; default `createGraph`. */
  readonly retainGraph?: boolean
  /** Records the pass itself, so that its gradients can be differentiated; default false. */
  readonly createGraph?: boolean
  /** The value's gradient, of the value's shape; default 1, for a scalar. */
  readonly gradient?: Tensor
}

/** The methods of T, with what they take and give. */
export type MethodNames<T> = { [K in keyof T]: T[K] extends (...args: never[]) => unknown ? K : never }[keyof T] & string
export type MethodArgs<T, K extends keyof T> = T[K] extends (...args: infer A) => unknown ? A : never
export type MethodResult<T, K extends keyof T> = T[K] extends (...args: never[]) => infer R ? Awaited<R> : unknown

/** The result of `rpcSync` and `rpcAsync`: an object with the methods of T, which run on the value's owner. */
export type RpcProxy<T> = {
  readonly [K in Exclude<MethodNames<T>, 'then' | 'toJSON'>]: (...args: Sendable<MethodArgs<T, K>>) => Future<MethodResult<T, K>>
}
/** The result of `remote`: an object with the methods of T, whose results stay on the value's owner. */
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
 * A reference to a value that lives on one worker, its owner. The owner keeps the value while any worker holds a reference. `remote` and `rref` make
 * references; calls can send them as arguments. PyTorch: `torch.distributed.rpc.RRef`.
 * @example
 * using model: RRef<Linear> = remote('worker1', Linear, [2, 4])
 * const y = await model.rpcSync().forward(x) // runs on worker1, gives a copy
 * const kept = model.remote().forward(x) // the result stays on worker1
 * await kept.toHere().then((z) => z.shape) // [2, 4]
 */
export abstract class RRef<T = unknown> {
  /** @internal */
  declare readonly [travels]: true
  /** The value's id, the same in every reference to it. */
  readonly rrefId: bigint
  /** @internal */
  readonly context: RRefProtocol

  constructor(rrefId: bigint, context: RRefProtocol) {
    this.rrefId = rrefId
    this.context = context
  }

  /** Whether the value lives on this worker. */
  abstract isOwner(): boolean
  /** The worker on which the value lives. */
  abstract owner(): WorkerInfo

  /**
   * Resolves with the value, after it has been made: the value itself on the owner, a copy on any other worker.
   * Rejects with the error of its creation, RREF_DELETED, WORKER_DIED, RPC_TIMEOUT, CALL_CANCELLED or RPC_SHUT_DOWN.
   */
  abstract toHere(options?: RRefOptions): Future<T>

  /** Returns the value itself, on its owner. @throws RREF_NOT_OWNER, RREF_VALUE_PENDING, or the error of its creation */
  abstract localValue(): T

  /** Whether the owner knows of this reference. */
  abstract confirmedByOwner(): boolean

  /**
   * Releases this reference. When no reference is left, the owner drops the value. The finalizer of the reference releases it at the latest, but a program
   * that makes many references should not wait for that. On the owner it does nothing.
   */
  abstract dispose(): void

  [Symbol.dispose](): void {
    this.dispose()
  }

  /** The owner's name. */
  ownerName(): string {
    return this.owner().name
  }

  /** For `console.log`: the reference without its worker. */
  [Symbol.for('nodejs.util.inspect.custom')](): string {
    return this.toString()
  }

  /**
   * Resolves when the value has been made on its owner, without copying it here. Rejects as `toHere` does. PyTorch: `_get_future`, which resolves after
   * the creation and reports no error.
   */
  created(options: RRefOptions = {}): Future<void> {
    return this.context.awaitCreated(this, options)
  }

  /**
   * Runs a method of the value on its owner. The value's class must be exposed; for a tensor, the methods are its operations.
   * Rejects with the method's error, METHOD_NOT_FOUND, and as `toHere` does. PyTorch: `rref.rpc_async().method(…)`.
   */
  call<K extends MethodNames<T>>(method: K, args: Sendable<MethodArgs<T, K>>, options: RRefOptions = {}): Future<MethodResult<T, K>> {
    return this.context.callMethod(this, method, args, options) as Future<MethodResult<T, K>>
  }

  /** Runs a method of the value as a stream and returns its items, one by one; see `stream`. */
  stream<K extends MethodNames<T>>(
    method: K,
    args: Sendable<MethodArgs<T, K>>,
    options: StreamOptions = {},
  ): RemoteStream<ItemOf<MethodResult<T, K>>> {
    return this.context.streamMethod(this, method, args, options) as RemoteStream<ItemOf<MethodResult<T, K>>>
  }

  /**
   * Runs a backward pass from the tensor that this refers to, on its owner. With a context or its id it runs the distributed pass: every worker gets its
   * gradients in the context. Without one it runs the local pass, into `.grad`; only the owner can do that.
   * Rejects with RREF_NOT_A_TENSOR, CONTEXT_REQUIRED (if this worker is not the owner), CONTEXT_NOT_FOUND, ROOT_NOT_SCALAR, ROOT_REQUIRES_NO_GRAD, as
   * `ctx.backward` does, and as `toHere` does. A deadline or signal of `options` ends the pass too. PyTorch:
   * `rref.backward(dist_autograd_ctx_id, retain_graph)`.
   */
  backward(this: RRef<Tensor>, context: bigint | { readonly id: bigint } | null = null, options: RRefBackwardOptions = {}): Promise<void> {
    return this.context.backward(this, typeof context === 'object' && context !== null ? context.id : context, options)
  }

  /**
   * `await rref.rpcSync().method(…)` is the same as `rref.call('method', […])`. The proxy can be kept and used again. U is T, unless you know more about
   * the value (a class that extends T). PyTorch: `rref.rpc_sync()`.
   */
  rpcSync<U = T>(options: RRefOptions = {}): RpcProxy<U> {
    return this.rpcAsync<U>(options)
  }

  /** The same as `rpcSync`, for a result that you do not await at once. PyTorch: `rref.rpc_async()`. */
  rpcAsync<U = T>(options: RRefOptions = {}): RpcProxy<U> {
    return methodProxy((method, args) => this.context.callMethod(this, method, args, options)) as RpcProxy<U>
  }

  /**
   * `rref.remote().method(…)` runs the method on the value's owner and keeps the result there. It returns the reference to the result at once. Uses of
   * that reference throw an error of the method, and METHOD_NOT_FOUND (PyTorch throws at once for a name that the value's type lacks, since it asks for
   * the type first). The methods throw RREF_DELETED, WORKER_DIED, WIRE_UNSUPPORTED_VALUE. PyTorch: `rref.remote()`.
   */
  remote<U = T>(options: RRefOptions = {}): RemoteProxy<U> {
    return methodProxy((method, args) => this.context.remoteMethod(this, method, args, options)) as RemoteProxy<U>
  }
}

/**
 * A reference on its owner: `localValue()` is the value itself. PyTorch: `OwnerRRef`.
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

  /** True. */
  isOwner(): boolean {
    return true
  }

  /** This worker. */
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

  /** Does nothing: the owner counts the references of others, and drops the value with the last of them and of its own. */
  dispose(): void {}

  override toString(): string {
    return `OwnerRRef(${formatId(this.rrefId)})`
  }
}

/**
 * A reference to a value of another worker. PyTorch: `UserRRef`.
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

  /** False. */
  isOwner(): boolean {
    return false
  }

  /** The worker on which the value lives. */
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

  override toString(): string {
    return `UserRRef(RRefId = ${formatId(this.rrefId)}, ForkId = ${formatId(this.forkId)})`
  }
}

function formatId(id: bigint): string {
  return `GloballyUniqueId(created_on=${id >> 48n}, local_id=${id & 0xffffffffffffn})`
}
