/**
 * The users' handle of a supervised actor: it leads to the instance that runs now. On the supervising worker the handle knows that instance, from `supervise.ts`. On another worker
 * it asks the supervising one by name, each time (`actor-register-host.ts`). Rules ACS-2 and ACS-13 in SPEC.md.
 */
import assert from 'node:assert'
import { Future, PostgradError } from '@postgrad/base'
import { callCancelled, checkSignal, isSignal, onAbort, timeLimit } from '@postgrad/base/internal'
import { setDeadline } from '@postgrad/transport/internal'
import type { Sendable } from '@postgrad/wire'
import type { travels } from '@postgrad/wire/internal'
import { WHEREIS } from '../actors/actor-register-host.js'
import { registerValueType } from '../common/value-types.js'
import type { WorkerInfo } from '../common/worker-info.js'
import { LEADER_GRACE_MS } from '../groups/group-errors.js'
import type { MethodArgs, MethodNames, MethodResult, RemoteProxy, RpcProxy, RRef, RRefOptions } from '../references/rref.js'
import { currentRuntime } from './api.js'

/** The worker that knows the running actor, and its name there. */
export interface HandleAddress {
  readonly home: WorkerInfo
  readonly key: string
}

/** Why no more of an actor will run. */
export interface Gone {
  readonly why: string
  readonly remedy: string
  readonly cause: unknown
  /** Else it may be brought back by hand, or with others. */
  readonly isForGood: boolean
}

interface Waiter<T> {
  resolve(rref: RRef<T>): void
  reject(error?: unknown): void
}

/**
 * A handle of a supervised actor. It always leads to the instance that runs now, also after a restart.
 *
 * You can send a handle to other workers. There, `call` and `ready` ask the supervising worker each time which instance runs; for many calls, await
 * `ready()` once and use its reference. `current`, `isRunning`, `rpcSync`, `rpcAsync` and `remote` work on the supervising worker alone.
 * @example
 * await using supervision = await supervise({ children: [{ name: 'policy', actor: Linear, args: [2, 4], worker: 'worker1' }] })
 * const policy: ActorHandle<Linear> = supervision.actor('policy') // leads to the actor that runs, also after a restart
 * const y = await policy.call('forward', [x])
 * y.shape // [2, 4]
 */
export class ActorHandle<T> {
  /** @internal */
  declare readonly [travels]: true
  /** The actor's name in its supervision. */
  readonly name: string
  private readonly address: HandleAddress
  /** It was sent here. */
  private readonly isFar: boolean
  /** No more of it will run. */
  private gone: Gone | null = null
  private readonly what: string
  private rref: RRef<T> | null = null
  private readonly waiting = new Set<Waiter<T>>()

  /** @internal */
  constructor(name: string, what: string, address: HandleAddress, isFar = false) {
    this.name = name
    this.what = what
    this.address = address
    this.isFar = isFar
  }

  /**
   * The reference to the instance that runs now. It does not follow a restart.
   * @throws ACTOR_NOT_RUNNING if no instance runs now
   * @throws HANDLE_NOT_LOCAL if the handle was sent from another worker
   */
  get current(): RRef<T> {
    this.checkLocal()
    if (this.rref !== null) return this.rref
    throw this.notRunning()
  }

  /**
   * Whether an instance runs now.
   * @throws HANDLE_NOT_LOCAL if the handle was sent from another worker
   */
  get isRunning(): boolean {
    this.checkLocal()
    return this.rref !== null
  }

  /**
   * Waits until an instance runs, and resolves with the reference to it. `timeoutMs` defaults to the worker's `rpcTimeoutMs` (60,000).
   * @throws ACTOR_NOT_RUNNING, with the reason as its cause: at once if the actor is not being made again, else after `timeoutMs`
   * @throws CALL_CANCELLED if `signal` aborts
   * @throws UNKNOWN_ACTOR if the handle was sent, and the actor was removed or its supervision has ended
   * @throws WORKER_DIED if the handle was sent, and the supervising worker ends
   * @throws RPC_TIMEOUT if the handle was sent, and the supervising worker does not answer
   */
  async ready({ timeoutMs, signal }: RRefOptions = {}): Promise<RRef<T>> {
    const worker = currentRuntime()
    const limitMs = timeLimit('ready', timeoutMs ?? worker.rpcTimeoutMs)
    checkSignal(signal, 'ready', this.address.home)
    if (this.isFar) return await this.askUntilReady(limitMs, signal)
    if (this.rref !== null) return this.rref
    if (this.gone !== null) throw this.notRunning()
    return await new Promise((resolve, reject) => {
      const end = () => {
        timer?.cancel()
        unlisten()
        this.waiting.delete(waiter)
      }
      const waiter: Waiter<T> = {
        resolve: (rref) => {
          end()
          resolve(rref)
        },
        reject: (error = this.notRunning(true)) => {
          end()
          reject(error)
        },
      }
      const timer = setDeadline(worker.clock, limitMs, () => waiter.reject())
      const cancel = () => waiter.reject(callCancelled('ready', null, signal!.reason))
      const unlisten = signal === undefined ? () => {} : onAbort(signal, cancel)
      this.waiting.add(waiter)
    })
  }

  /** The reference to the one that runs now, also of a handle that was sent. @throws (rejects) ACTOR_NOT_RUNNING, and as a call @internal */
  async reference(options: RRefOptions = {}): Promise<RRef<T>> {
    return this.isFar ? await this.ask(null, options) : this.current
  }

  /** The home worker counts the time and knows why none runs. If it does not answer, the call's deadline ends the wait. */
  private askUntilReady(limitMs: number, signal: AbortSignal | undefined): Promise<RRef<T>> {
    return this.ask(toOption(limitMs), { timeoutMs: toOption(limitMs + LEADER_GRACE_MS), ...(signal && { signal }) })
  }

  private ask(waitMs: number | null, options: RRefOptions): Promise<RRef<T>> {
    const { home, key } = this.address
    return currentRuntime().caller.call(home, WHEREIS, [key, waitMs], options) as Promise<unknown> as Promise<RRef<T>>
  }

  /**
   * Runs a method of the instance that runs now, as `RRef.call` does. If the instance ends before it answers, the caller does not know whether the method ran.
   * @throws ACTOR_NOT_RUNNING if no instance runs now
   * @throws ACTOR_STOPPED if the instance ends before it answers
   * @throws WORKER_DIED if the instance's worker ends before it answers
   */
  call<K extends MethodNames<T>>(method: K, args: Sendable<MethodArgs<T, K>>, options?: RRefOptions): Future<MethodResult<T, K>> {
    if (this.isFar) return this.callFar(method, args, options)
    return this.rref === null ? Future.rejected(this.notRunning()) : this.rref.call(method, args, options)
  }

  /** Two calls in one time limit: find the running actor, call it. */
  private callFar<K extends MethodNames<T>>(
    method: K,
    args: Sendable<MethodArgs<T, K>>,
    options: RRefOptions = {},
  ): Future<MethodResult<T, K>> {
    const future = new Future<MethodResult<T, K>>()
    const controller = new AbortController()
    future.cancelWith({ cancel: (reason) => controller.abort(reason) })
    const both = async () => {
      const { clock, rpcTimeoutMs } = currentRuntime()
      const limitMs = timeLimit('call', options.timeoutMs ?? rpcTimeoutMs)
      checkSignal(options.signal, 'call', this.address.home)
      const { signal } = controller
      const startMs = clock.now()
      const rref = await this.reference({ timeoutMs: toOption(limitMs), signal })
      try {
        return await rref.call(method, args, { timeoutMs: toOption(Math.max(1, limitMs - (clock.now() - startMs))), signal })
      } finally {
        rref.dispose()
      }
    }
    both().then(
      (value) => future.resolve(value),
      (error) => future.reject(error),
    )
    if (!future.done && isSignal(options.signal)) future.cancelOn(options.signal)
    return future
  }

  /**
   * Returns the proxy of `RRef.rpcSync` for the instance that runs now. The proxy does not follow a restart.
   * @throws ACTOR_NOT_RUNNING if no instance runs now
   * @throws HANDLE_NOT_LOCAL if the handle was sent from another worker
   */
  rpcSync(options?: RRefOptions): RpcProxy<T> {
    return this.current.rpcSync(options)
  }

  /**
   * Returns the proxy of `RRef.rpcAsync` for the instance that runs now. The proxy does not follow a restart.
   * @throws ACTOR_NOT_RUNNING if no instance runs now
   * @throws HANDLE_NOT_LOCAL if the handle was sent from another worker
   */
  rpcAsync(options?: RRefOptions): RpcProxy<T> {
    return this.current.rpcAsync(options)
  }

  /**
   * Returns the proxy of `RRef.remote` for the instance that runs now. The proxy does not follow a restart.
   * @throws ACTOR_NOT_RUNNING if no instance runs now
   * @throws HANDLE_NOT_LOCAL if the handle was sent from another worker
   */
  remote(options?: RRefOptions): RemoteProxy<T> {
    return this.current.remote(options)
  }

  /** @internal */
  begin(rref: RRef): void {
    this.rref = rref as RRef<T>
    this.gone = null
    for (const { resolve } of [...this.waiting]) resolve(this.rref)
  }

  /** @internal */
  end(): void {
    this.rref = null
  }

  /** @internal */
  over(gone: Gone): void {
    if (this.gone?.isForGood !== true) this.gone = gone
    for (const { reject } of [...this.waiting]) reject()
  }

  /** Whether this is the worker that supervises it, or was when the handle was made. @internal */
  get isLocal(): boolean {
    return !this.isFar
  }

  /** @internal */
  toPlain(): readonly unknown[] {
    const { home, key } = this.address
    return [home.name, home.id, key, this.name, this.what]
  }

  private checkLocal(): void {
    if (!this.isFar) return
    throw new PostgradError('HANDLE_NOT_LOCAL', {
      op: this.name,
      message: `this handle of '${this.name}' was sent here; worker '${this.address.home.name}', which supervises it, knows which actor runs`,
      remedy: 'Await its ready() for the reference, or use its call().',
      values: { child: this.name, worker: this.address.home.name },
    })
  }

  /** `hasWaited`: `ready` has, in vain. */
  private notRunning(hasWaited = false): PostgradError {
    const { gone } = this
    const remedy = hasWaited ? "Pass a longer { timeoutMs }, or look at the supervision's exited." : 'Await its ready() first.'
    return new PostgradError('ACTOR_NOT_RUNNING', {
      op: this.name,
      message:
        gone === null
          ? `the actor '${this.name}' (${this.what}) has ended and is being made again`
          : `no ${this.what} runs as '${this.name}': ${gone.why}`,
      remedy: gone === null ? remedy : gone.remedy,
      values: { child: this.name, actor: this.what },
      ...(gone?.cause === undefined || gone.cause === null ? {} : { cause: gone.cause }),
    })
  }
}

/** There, 0 means no limit. */
function toOption(limitMs: number): number {
  return limitMs === Number.POSITIVE_INFINITY ? 0 : limitMs
}

registerValueType<ActorHandle<unknown>>({
  name: 'ActorHandle',
  type: ActorHandle,
  encode: (handle) => handle.toPlain(),
  decode: (plain) => {
    // An assertion that fails here makes the message unreadable.
    assert(Array.isArray(plain) && plain.length === 5)
    const [home, id, key, name, what] = plain as readonly unknown[]
    for (const text of [home, key, name, what]) assert(typeof text === 'string')
    assert(typeof id === 'number')
    return new ActorHandle(name as string, what as string, { home: { name: home as string, id }, key: key as string }, true)
  },
})
