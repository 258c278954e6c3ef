/**
 * The part of a worker for references: it handles their messages, serves their requests, and ends them with their peers. `rref-context.ts` runs the
 * protocol; `actors.ts` makes instances of classes.
 */
import { isWatched, MessageType } from '@postgrad/wire/internal'
import { CALL_SERVING, type CallServing } from '../calls/call-serving.js'
import type { AnyClass } from '../common/function-registry.js'
import type { IncomingCall, Work } from '../core/incoming-call.js'
import { WorkerSlot } from '../core/slots.js'
import type { WorkerCore } from '../core/worker-core.js'
import type { OwnerRRef } from './rref.js'
import { RRefContext } from './rref-context.js'

export const REFERENCES = new WorkerSlot('references', install)

function install(core: WorkerCore): RRefContext {
  const rrefs = new RRefContext(core)
  const { messages } = core
  messages.carry(rrefs.extension)
  messages.references = rrefs
  new ReferenceServing(core, rrefs)
  core.handle(MessageType.RREF_CHILD_ACCEPT, ({ body }, from) => {
    const forkId = body[0] as bigint
    if (!rrefs.onChildAccept(forkId, from.id)) core.letter('unknown-reference', `RREF_CHILD_ACCEPT ${forkId}`, from)
  })
  core.handle(MessageType.RREF_USER_DELETE, ({ body }, from) => {
    const [rrefId, forkId] = body as [bigint, bigint]
    if (!rrefs.onUserDelete(rrefId, forkId, from.id)) core.letter('unknown-reference', `RREF_USER_DELETE ${rrefId}`, from)
  })
  core.handle(MessageType.UNREADABLE, ({ body }, from) => {
    core.idle(from.id)
    rrefs.onUnread(body[0] as number, from.id)
  })
  core.onPeerDeath((peer, error) => rrefs.onPeerDeath(peer, error))
  core.contribute(() => ({ ...rrefs.debugInfo() }))
  return rrefs
}

/** Requests about references. */
class ReferenceServing {
  private readonly core: WorkerCore
  private readonly rrefs: RRefContext
  private readonly serving: CallServing

  constructor(core: WorkerCore, rrefs: RRefContext) {
    this.core = core
    this.rrefs = rrefs
    this.serving = CALL_SERVING.of(core)
    core.messages.handleCalls(MessageType.REMOTE_CALL, (call) => this.onRemoteCall(call))
    core.messages.handleCalls(MessageType.RREF_FETCH, (call) => this.serving.serve(call, this.fetchWork))
    core.handle(MessageType.RREF_FORK_REQUEST, ({ body, requestId }, { id }, { peer }) => {
      const [rrefId, forkId] = body as [bigint, bigint]
      try {
        rrefs.onForkRequest(rrefId, forkId, id)
      } catch (error) {
        core.messages.answerError(peer, requestId, error)
        return
      }
      core.messages.answer(peer, requestId, MessageType.RREF_ACK, [forkId])
    })
  }

  /** The fork is registered and confirmed before the function runs; its value or error goes into the owner's entry. */
  private onRemoteCall(call: IncomingCall): void {
    const { core, rrefs, serving } = this
    const { message, peer, requestId } = call
    const [, , rrefId, forkId] = message.body as [string, readonly unknown[], bigint, bigint]
    const toSelf = peer.link === null
    let owner: OwnerRRef
    try {
      owner = toSelf ? rrefs.lookup(rrefId) : rrefs.admit(rrefId, forkId, peer.info.id)
    } catch (error) {
      // Its maker does not speak of such a value.
      serving.refuse(call)
      core.messages.answerError(peer, requestId, error)
      return
    }
    call.owner = owner
    // The fork of a creation that was cancelled counts all the same, since its end is on its way; but nobody waits for this.
    if (call.givenUp === null) core.messages.answer(peer, requestId, MessageType.REMOTE_RET, [rrefId, forkId, null])
    serving.serve(call, this.remoteWork)
    if (toSelf) rrefs.releaseHold(rrefId)
  }

  private readonly remoteWork: Work = {
    // A remote call's deadline is for its confirmation alone.
    endsAtDeadline: false,
    runsProgram: true,
    run: (call) => {
      const { body } = call.message
      const { target, isClass } = this.core.registry.lookup(body[0] as string, this.core.info.name)
      if (!isClass) return this.serving.callWork.run(call)
      return this.rrefs.construct(target as AnyClass, body[1] as readonly unknown[], call.owner as OwnerRRef, isWatched(call.message))
    },
    done: ({ owner }, value) => (owner as OwnerRRef).setValue(value),
    failed: (call, error) => this.rrefs.failMaking(call.owner as OwnerRRef, call.functionName, error),
  }

  private readonly fetchWork: Work = {
    endsAtDeadline: true,
    runsProgram: false,
    // As long as the one who asks waits, and no default of this worker's.
    run: ({ message }) => {
      const owner = this.rrefs.lookup(message.body[0] as bigint)
      // Nearly always. It leaves in this turn then, without a promise.
      return owner.hasValue ? owner.localValue() : owner.toHere({ timeoutMs: 0 })
    },
    done: (call, value) => this.serving.callWork.done(call, value),
    failed: (call, error) => this.serving.callWork.failed(call, error),
  }
}
