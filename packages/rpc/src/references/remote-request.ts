/** `remote` as a request: its caller has the reference at once, and the owner's answer confirms it. See Note [RRef Protocol] in `rref-context.ts`. */
import { PostgradError } from '@postgrad/base'
import { onAbort } from '@postgrad/base/internal'
import { type Message, MessageType, type OutgoingMessage, setWatched } from '@postgrad/wire/internal'
import { checkArgs } from '../common/call-options.js'
import { wrongReply } from '../common/rpc-errors.js'
import type { Peer } from '../core/peer.js'
import { OutgoingRequest } from '../core/requests.js'
import type { WorkerCore } from '../core/worker-core.js'
import type { RemoteOptions } from './caller.js'
import type { OwnerRRef, RRef, UserRRef } from './rref.js'
import type { RRefContext } from './rref-context.js'

/** Keeps what the exposed `name` gives on another worker, or on this one. @throws why the request was not sent */
export function startRemote(
  core: WorkerCore,
  rrefs: RRefContext,
  peer: Peer,
  name: string,
  args: readonly unknown[],
  options: RemoteOptions,
  op: string,
): RRef {
  checkArgs(args, op)
  return peer.link === null
    ? remoteToSelf(core, rrefs, peer, [name, args], options, op)
    : remoteToPeer(core, rrefs, peer, [name, args], options, op)
}

type Called = readonly [name: string, args: readonly unknown[]]

function remoteToPeer(core: WorkerCore, rrefs: RRefContext, peer: Peer, called: Called, options: RemoteOptions, op: string): RRef {
  const { signal, isWatched = false } = options
  const user = rrefs.createUser(peer.info)
  const request = new UserCreation(rrefs, user, peer, op, isWatched)
  core.requests.start(request, MessageType.REMOTE_CALL, [...called, user.rrefId, user.forkId], options)
  rrefs.created(user)
  if (signal !== undefined) rrefs.onEnd(user, cancelOn(core, signal, request))
  return user
}

function remoteToSelf(core: WorkerCore, rrefs: RRefContext, peer: Peer, called: Called, options: RemoteOptions, op: string): RRef {
  const { signal, isWatched = false } = options
  const owner = rrefs.createOwner()
  const request = new OwnerCreation(owner, peer, op, isWatched)
  // The reference's id is also the fork's, as in PyTorch.
  core.requests.start(request, MessageType.REMOTE_CALL, [...called, owner.rrefId, owner.rrefId], options)
  rrefs.hold(owner)
  if (signal !== undefined) {
    const end = cancelOn(core, signal, request)
    owner.waiters.add({ resolve: end, reject: end })
  }
  return owner
}

/** Also after the reference was confirmed: the function may still run. Returns what stops it. It must not hold the reference. */
function cancelOn({ requests }: WorkerCore, signal: AbortSignal, { peer, requestId }: Creation): () => void {
  return onAbort(signal, () => {
    if (!peer.pending.cancel(requestId, signal.reason)) requests.tellCancelled(peer, requestId)
  })
}

abstract class Creation extends OutgoingRequest {
  private readonly isWatched: boolean

  constructor(peer: Peer, op: string, isWatched: boolean) {
    super(peer, op)
    this.isWatched = isWatched
  }

  override mark(out: OutgoingMessage): void {
    if (this.isWatched) setWatched(out)
  }

  override timedOut(): PostgradError {
    const { name, id } = this.peer.info
    return new PostgradError('RREF_CREATION_TIMEOUT', {
      op: this.op,
      message: `RRef creation on worker '${name}' timed out (${Math.round(this.timeoutMs)} ms); the value may or may not exist there`,
      remedy: 'Make it again, or pass a longer { timeoutMs } to remote().',
      values: { worker: name, workerId: id, timeoutMs: this.timeoutMs },
    })
  }
}

class UserCreation extends Creation {
  private readonly rrefs: RRefContext
  private readonly user: UserRRef

  constructor(rrefs: RRefContext, user: UserRRef, peer: Peer, op: string, isWatched: boolean) {
    super(peer, op, isWatched)
    this.rrefs = rrefs
    this.user = user
  }

  onReply({ body: [rrefId, forkId, error] }: Message): void {
    const { rrefs, user } = this
    if (rrefId !== user.rrefId || forkId !== user.forkId) rrefs.failUser(user, wrongReply(this.op, this.peer.info, 'another reference'))
    else if (error === null) rrefs.confirm(user)
    else rrefs.failUser(user, error)
  }

  onError(error: unknown): void {
    this.rrefs.failUser(this.user, error)
  }
}

class OwnerCreation extends Creation {
  private readonly owner: OwnerRRef

  constructor(owner: OwnerRRef, peer: Peer, op: string, isWatched: boolean) {
    super(peer, op, isWatched)
    this.owner = owner
  }

  onReply(): void {}

  onError(error: unknown): void {
    this.owner.setError(error)
  }
}
