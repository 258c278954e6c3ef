/**
 * Serves the requests of other workers: runs each function in a scope of its own, once all references in the request are confirmed, and answers.
 * Calls, remote calls and fetches (`references.ts` adds these two) all go through `serve`, and differ in their `Work`.
 * PyTorch: `torch/csrc/distributed/rpc/request_callback_impl.cpp`.
 */
import type { PostgradError } from '@postgrad/base'
import { inOwnScope, inScope, isThenable, Scope, type ScopePatch } from '@postgrad/base/internal'
import { chainOf, MessageType } from '@postgrad/wire/internal'
import { runExposed } from '../common/function-registry.js'
import { timedOut } from '../common/rpc-errors.js'
import type { Outcome } from '../core/hooks.js'
import type { IncomingCall, Work } from '../core/incoming-call.js'
import { nameOf } from '../core/message-path.js'
import { ROUNDING_MS } from '../core/pending-calls.js'
import { WorkerSlot } from '../core/slots.js'
import type { WorkerCore } from '../core/worker-core.js'

export class CallServing {
  /** Calls that have begun and not been answered. */
  count = 0
  private readonly core: WorkerCore

  constructor(core: WorkerCore) {
    this.core = core
    core.messages.handleCalls(MessageType.CALL, (call) => this.serve(call, this.callWork))
    core.contribute(() => ({ servingCalls: this.count }))
  }

  readonly callWork: Work = {
    endsAtDeadline: true,
    runsProgram: true,
    run: ({ message: { body } }) => {
      const { registry, info } = this.core
      return runExposed(registry.lookup(body[0] as string, info.name), body[1] as readonly unknown[])
    },
    done: ({ peer, requestId }, value) => this.core.messages.answer(peer, requestId, MessageType.RESULT, [value]),
    failed: ({ peer, requestId, outlet }, error) => this.core.messages.answerError(peer, requestId, error, outlet?.isOfCleanUp(error)),
  }

  /** The call's end, now or later, runs in its own scope. */
  serve(call: IncomingCall, work: Work): void {
    const { clock, messages, requests } = this.core
    const { message, peer, expiresMs, unconfirmed, givenUp } = call
    call.work = work
    if (expiresMs !== Number.POSITIVE_INFINITY && clock.now() > expiresMs) {
      this.drop(call, 'expired', timedOut(String(message.body[0]), peer.info, message.deadlineMs ?? 0, false))
      return
    }
    if (givenUp !== null) {
      this.drop(call, 'cancelled', givenUp)
      return
    }
    let scope: Scope
    try {
      for (const interceptor of messages.interceptors) interceptor.incoming?.(message, peer.info)
      scope = this.scopeOf(call)
    } catch (error) {
      this.refuse(call)
      work.failed(call, error)
      return
    }
    this.count++
    call.state = 'running'
    if (unconfirmed !== null) inScope(scope, () => this.startConfirmed(call, unconfirmed))
    else if (work.runsProgram || requests.around !== null) inOwnScope(scope, this.start, call)
    else inScope(scope, this.start, call)
  }

  private scopeOf(call: IncomingCall): Scope {
    const { message, expiresMs } = call
    const patch: ScopePatch = { deadlineMs: expiresMs, serving: call, chain: chainOf(message) }
    for (const interceptor of this.core.messages.interceptors) {
      if (interceptor.servingScope !== undefined) Object.assign(patch, interceptor.servingScope(message))
    }
    return new Scope(patch, this.core.scope)
  }

  /** The call is not run; the code that refuses it answers it. */
  refuse(call: IncomingCall): void {
    const { peer, received, requestId } = call
    call.refuse()
    this.core.messages.notBegun(call)
    if (received !== null) this.core.messages.references.discard(received)
    peer.served.take(requestId)
  }

  /** The call is not run, and its caller has given up. Others who share the reference it was to make get the error. */
  private drop(call: IncomingCall, reason: 'cancelled' | 'expired', error: PostgradError): void {
    const { type, message, peer, owner, requestId } = call
    peer.served.take(requestId)
    owner?.setError(error)
    this.core.messages.discardCall(call, reason, `${nameOf(type)} ${String(message.body[0])}`)
    call.end(false)
  }

  private async startConfirmed(call: IncomingCall, unconfirmed: readonly Promise<unknown>[]): Promise<void> {
    const problem = (await Promise.all(unconfirmed)).find((failure) => failure !== null)
    const { givenUp } = call
    if (givenUp !== null) {
      this.ended()
      this.drop(call, 'cancelled', givenUp)
      return
    }
    if (problem === undefined) {
      this.start(call)
      return
    }
    this.core.messages.notBegun(call)
    if (call.received !== null) this.core.messages.references.discard(call.received)
    this.abandon(call, problem)
  }

  private readonly start = (call: IncomingCall): void => {
    const { messages, requests } = this.core
    const { observer } = this.core
    const work = call.work!
    if (observer !== null) observer.begun(call)
    let value: unknown
    try {
      const { around } = requests
      value = around === null ? work.run(call) : around.serve(call.message, call.peer.info, () => work.run(call))
      if (call.state !== 'waiting') {
        messages.progress.begun(call)
        if (this.core.observer !== null) this.core.observer.firstTurnOver(call)
      }
      // A promise is taken as it is; of anything else with a `then`, at most one of the two calls is believed.
      if (isThenable(value)) value = Promise.resolve(value)
    } catch (error) {
      this.abandon(call, error)
      return
    }
    if (value instanceof Promise) {
      value.then(
        (later) => this.finish(call, later),
        (error) => this.abandon(call, error),
      )
    } else {
      this.finish(call, value)
    }
  }

  private finish(call: IncomingCall, value: unknown): void {
    if (this.end(call, 'value')) call.work!.done(call, value)
  }

  private abandon(call: IncomingCall, error: unknown): void {
    if (this.end(call, 'error') && !this.isTooLate(call)) call.work!.failed(call, error)
    if (call.crash !== null) this.core.requests.giveUp([call], call.crash)
  }

  /**
   * Whether the caller has timed out before this error could arrive. A served call waits no longer than its caller does, so both give up at the
   * same moment, and the answer would be a dead letter.
   */
  private isTooLate({ work, expiresMs }: IncomingCall): boolean {
    return work!.endsAtDeadline && expiresMs !== Number.POSITIVE_INFINITY && this.core.clock.now() > expiresMs - ROUNDING_MS
  }

  /** Whether anybody waits for the outcome. */
  private end(call: IncomingCall, outcome: Outcome): boolean {
    this.ended()
    const { peer, received, requestId, givenUp, state } = call
    const { messages, observer } = this.core
    messages.progress.begun(call)
    if (state === 'refused' && received !== null) messages.references.discard(received)
    // It may have waited for a value that nobody has made.
    if (outcome === 'error') messages.references.forgetSubject(call.message)
    peer.served.take(requestId)
    if (peer.link?.closed) this.core.peers.forgetTheDead()
    if (observer !== null) observer.ended(call, givenUp === null ? outcome : 'given-up')
    call.end()
    return givenUp === null
  }

  private ended(): void {
    this.count--
    if (this.count === 0) this.core.activity.changed()
  }
}

export const CALL_SERVING = new WorkerSlot('callServing', (core) => new CallServing(core))
