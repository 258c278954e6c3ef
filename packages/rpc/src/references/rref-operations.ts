/** The operations of programs on references: fetch a value, wait for it, call its methods. `rref-context.ts` counts holders. */
import { Future } from '@postgrad/base'
import { callCancelled, checkSignal } from '@postgrad/base/internal'
import type { Tensor } from '@postgrad/tensor'
import { type Message, MessageType } from '@postgrad/wire/internal'
import { RemoteStream, type StreamOptions } from '../calls/stream.js'
import { METHOD_CALL, VALUE_READY } from '../common/built-in-names.js'
import { checkCallOptions } from '../common/call-options.js'
import type { WorkerInfo } from '../common/worker-info.js'
import type { WorkerCore } from '../core/worker-core.js'
import type { Caller } from './caller.js'
import {
  type OwnerRRef,
  type RRef,
  type RRefBackwardOptions,
  type RRefOptions,
  type RRefProtocol,
  UserRRef,
  type ValueWaiter,
} from './rref.js'

const BACKWARD_OPTIONS = ['retainGraph', 'createGraph', 'gradient', 'timeoutMs', 'signal', 'ordered'] as const

/** See `RRefContext`. */
interface Counting {
  readonly caller: Caller
  readonly runBackward: RRefProtocol['backward']
  unusable(user: UserRRef, op: string): unknown
  ask<T>(
    user: UserRRef,
    type: MessageType,
    body: readonly unknown[],
    op: string,
    options: RRefOptions,
    read: (message: Message) => T,
  ): Future<T>
  disposeUser(user: UserRRef): void
}

export class RRefOperations implements RRefProtocol {
  private readonly core: WorkerCore
  private readonly rrefs: Counting

  constructor(core: WorkerCore, rrefs: Counting) {
    this.core = core
    this.rrefs = rrefs
  }

  get self(): WorkerInfo {
    return this.core.info
  }

  fetch<T>(user: UserRRef<T>, options: RRefOptions): Future<T> {
    try {
      checkCallOptions('toHere', options)
    } catch (error) {
      return Future.rejected(error)
    }
    const problem = this.rrefs.unusable(user, 'toHere')
    if (problem !== null) return Future.rejected(problem)
    return this.rrefs.ask(user, MessageType.RREF_FETCH, [user.rrefId], 'toHere', options, ({ body }) => body[0] as T)
  }

  awaitValue<T>(owner: OwnerRRef<T>, options: RRefOptions): Future<T> {
    const future = new Future<T>()
    const waiter: ValueWaiter = {
      resolve: (value) => {
        end()
        future.resolve(value as T)
      },
      reject: (error) => {
        end()
        owner.meetError()
        future.reject(error)
      },
    }
    const fail = (error: unknown) => {
      owner.waiters.delete(waiter)
      future.reject(error)
    }
    let end: () => void
    try {
      checkSignal(options.signal, 'toHere', this.self)
      end = this.core.requests.waitFor(fail, {
        timeoutMs: options.timeoutMs,
        op: 'toHere',
        what: `the value of ${owner}`,
        rrefId: owner.rrefId,
      })
    } catch (error) {
      return Future.rejected(error)
    }
    owner.waiters.add(waiter)
    future.cancelWith({
      cancel: (reason) => {
        end()
        fail(callCancelled('toHere', this.self, reason))
      },
    })
    if (options.signal !== undefined) future.cancelOn(options.signal)
    return future
  }

  awaitCreated(rref: RRef, options: RRefOptions): Future<void> {
    const problem = rref instanceof UserRRef ? this.rrefs.unusable(rref, 'created') : null
    if (problem !== null) return Future.rejected(problem)
    return this.rrefs.caller.call(rref.owner(), VALUE_READY, [rref], options, 'created') as Future<void>
  }

  callMethod(rref: RRef, method: string, args: readonly unknown[], options: RRefOptions): Future<unknown> {
    const op = `call of '${method}'`
    const problem = rref instanceof UserRRef ? this.rrefs.unusable(rref, op) : null
    if (problem !== null) return Future.rejected(problem)
    const subject = rref instanceof UserRRef ? rref.rrefId : rref
    return this.rrefs.caller.call(rref.owner(), METHOD_CALL, [subject, method, args], options, op)
  }

  /** @throws what makes the reference unusable, and as `remote` does */
  remoteMethod(rref: RRef, method: string, args: readonly unknown[], options: RRefOptions): RRef {
    const op = `remote call of '${method}'`
    const problem = rref instanceof UserRRef ? this.rrefs.unusable(rref, op) : null
    if (problem !== null) throw problem
    return this.rrefs.caller.remote(rref.owner(), METHOD_CALL, [rref, method, args], options, op)
  }

  streamMethod(rref: RRef, method: string, args: readonly unknown[], options: StreamOptions): RemoteStream<unknown> {
    const op = `stream of '${method}'`
    const problem = rref instanceof UserRRef ? this.rrefs.unusable(rref, op) : null
    if (problem !== null) return RemoteStream.failed(problem)
    return this.rrefs.caller.stream(rref.owner(), METHOD_CALL, [rref, method, args], options, op)
  }

  async backward(rref: RRef<Tensor>, contextId: bigint | null, options: RRefBackwardOptions): Promise<void> {
    checkCallOptions('rref.backward', options, BACKWARD_OPTIONS)
    await this.rrefs.runBackward(rref, contextId, options)
  }

  disposeUser(user: UserRRef): void {
    this.rrefs.disposeUser(user)
  }
}
