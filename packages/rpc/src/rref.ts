/**
 * References to values that live on one worker, their owner, and are counted there. `RRefContext` runs the protocol; what users hold
 * stands here. PyTorch: `torch.distributed.rpc.RRef` (`OwnerRRef`, `UserRRef`).
 */
import { PostgradError } from '@postgrad/base'
import { Future } from './future.js'
import type { WorkerInfo } from './worker-info.js'

export interface RRefOptions {
  /** Time for the whole exchange in ms; default the worker's `rpcTimeoutMs`; 0 is no limit. */
  readonly timeoutMs?: number
}

/** The methods of T, with what they take and give. */
export type MethodNames<T> = { [K in keyof T]: T[K] extends (...args: never[]) => unknown ? K : never }[keyof T] & string
export type MethodArgs<T, K extends keyof T> = T[K] extends (...args: infer A) => unknown ? A : never
export type MethodResult<T, K extends keyof T> = T[K] extends (...args: never[]) => infer R ? Awaited<R> : never

/** What references need of the protocol of their worker (`RRefContext`). */
export interface RRefProtocol {
  readonly self: WorkerInfo
  fetch<T>(user: UserRRef<T>, options: RRefOptions): Future<T>
  callMethod(rref: RRef, method: string, args: readonly unknown[], options: RRefOptions): Future<unknown>
  disposeUser(user: UserRRef): void
  disposeOwner(rref: OwnerRRef): void
}

export abstract class RRef<T = unknown> {
  readonly rrefId: bigint
  /** @internal */
  readonly context: RRefProtocol

  constructor(rrefId: bigint, context: RRefProtocol) {
    this.rrefId = rrefId
    this.context = context
  }

  abstract isOwner(): boolean
  abstract owner(): WorkerInfo

  /**
   * The value: a copy of it on a user, the value itself on the owner. Waits until it has been made.
   * Rejects with the error of its creation, RREF_DELETED, WORKER_DIED or RPC_TIMEOUT.
   */
  abstract toHere(options?: RRefOptions): Future<T>

  /** The value itself, on its owner. @throws RREF_NOT_OWNER, RREF_VALUE_PENDING, or the error of its creation */
  abstract localValue(): T

  /** Whether the owner knows of this reference. */
  abstract confirmedByOwner(): boolean

  /**
   * Gives this reference up. When the owner has no reference left, it drops the value. The finalizer does it at the latest; a
   * program that makes many should not wait for that.
   */
  abstract dispose(): void

  [Symbol.dispose](): void {
    this.dispose()
  }

  ownerName(): string {
    return this.owner().name
  }

  /** Runs a method of the value on its owner. The value's class must be exposed. PyTorch: `rref.rpc_async().method(…)`. */
  call<K extends MethodNames<T>>(method: K, args: MethodArgs<T, K>, options: RRefOptions = {}): Future<MethodResult<T, K>> {
    return this.context.callMethod(this, method, args, options) as Future<MethodResult<T, K>>
  }
}

export class OwnerRRef<T = unknown> extends RRef<T> {
  private state: 'pending' | 'value' | 'error' = 'pending'
  private held: T | undefined
  private error: unknown
  private waiters: Future<T>[] = []

  isOwner(): boolean {
    return true
  }

  owner(): WorkerInfo {
    return this.context.self
  }

  confirmedByOwner(): boolean {
    return true
  }

  setValue(value: T): void {
    if (this.state !== 'pending') return
    this.state = 'value'
    this.held = value
    for (const waiter of this.waiters.splice(0)) waiter.resolve(value)
  }

  setError(error: unknown): void {
    if (this.state !== 'pending') return
    this.state = 'error'
    this.error = error
    for (const waiter of this.waiters.splice(0)) waiter.reject(error)
  }

  toHere(_options: RRefOptions = {}): Future<T> {
    const future = new Future<T>()
    if (this.state === 'value') future.resolve(this.held as T)
    else if (this.state === 'error') future.reject(this.error)
    else this.waiters.push(future)
    return future
  }

  localValue(): T {
    if (this.state === 'value') return this.held as T
    if (this.state === 'error') throw this.error
    throw new PostgradError('RREF_VALUE_PENDING', {
      op: 'localValue',
      message: `the value of ${this} is still being made`,
      remedy: 'Await toHere(), which on the owner gives the value itself.',
    })
  }

  dispose(): void {
    this.context.disposeOwner(this)
  }

  override toString(): string {
    return `OwnerRRef(${formatId(this.rrefId)})`
  }
}

export class UserRRef<T = unknown> extends RRef<T> {
  readonly forkId: bigint
  private readonly ownerInfo: WorkerInfo
  /** Changed by RRefContext alone. @internal */
  confirmed: boolean
  /** @internal */
  deleted = false
  /** Set when creation failed or timed out, or the owner died. @internal */
  failure: unknown = null
  /** References made from this one that their receivers have not accepted yet: until then it must live (G2). @internal */
  children = 0

  constructor(rrefId: bigint, forkId: bigint, ownerInfo: WorkerInfo, context: RRefProtocol, confirmed: boolean) {
    super(rrefId, context)
    this.forkId = forkId
    this.ownerInfo = ownerInfo
    this.confirmed = confirmed
  }

  isOwner(): boolean {
    return false
  }

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
