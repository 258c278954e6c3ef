/**
 * The RRef protocol of one worker: which values it owns and who refers to them, which references it holds, and what is unsettled.
 *
 * Note [RRef Protocol]. PyTorch's, over links that keep order and do not lose (so no message is retried).
 * G1: the owner is told of the end of every user. G2: a reference outlives the references made from it until their receivers have accepted.
 *   user → owner, `remote`     REMOTE_CALL{rrefId, forkId} registers the fork before the function runs; REMOTE_RET confirms it.
 *   owner → user, in a message the fork is registered before the message leaves; the receiver is confirmed at once.
 *   user A → user C            A keeps its own (children + 1). C sends RREF_FORK_REQUEST to the owner, which answers RREF_ACK; then C sends
 *                              RREF_CHILD_ACCEPT to A. A function runs on C only when all of its references are confirmed.
 *   user → owner, in a message A keeps its own until the owner answers RREF_CHILD_ACCEPT; the owner uses its OwnerRRef.
 *   end of a user              RREF_USER_DELETE, once it is confirmed and has no unaccepted children.
 * When a worker dies, its forks end on every owner, and what it owned fails with WORKER_DIED on every user.
 */
import { PostgradError, workerOf } from '@postgrad/base'
import type { IdCounter } from '@postgrad/base/internal'
import { type Message, MessageType, type ValueExtension } from '@postgrad/wire/internal'
import { Future } from './future.js'
import { OwnerRRef, RRef, type RRefOptions, type RRefProtocol, UserRRef } from './rref.js'
import type { WorkerInfo } from './worker-info.js'

/** What the protocol needs of its worker. */
export interface RRefHost {
  readonly info: WorkerInfo
  readonly ids: IdCounter
  infoOf(id: number): WorkerInfo
  deathOf(id: number): PostgradError | null
  post(to: number, type: MessageType, body: readonly unknown[]): void
  request(
    to: number,
    type: MessageType,
    body: readonly unknown[],
    options: { timeoutMs?: number; op: string; intercepted: boolean },
  ): Future<Message>
  callByName(to: number, name: string, args: readonly unknown[], options: RRefOptions): Future<unknown>
}

/** Passed through the codec: who is at the other end, and, when decoding, the references that wait for confirmation. */
export interface CodecEnv {
  readonly peer: WorkerInfo
  unconfirmed: Promise<void>[] | null
}

/** The tag under which references travel. */
const RREF_TAG = 0x20
/** The built-in function behind `rref.call`. */
export const METHOD_CALL = 'postgrad.callMethod'

export class RRefContext implements RRefProtocol {
  private readonly host: RRefHost
  private readonly owners = new Map<bigint, OwnerRRef>()
  /** Forks of each owned value: fork id → the worker that holds it. */
  private readonly forks = new Map<bigint, Map<bigint, number>>()
  private readonly pendingUsers = new Map<bigint, UserRRef>()
  private readonly pendingChildren = new Map<bigint, { parent: UserRRef; receiver: number }>()
  /** Live user references by fork id, for the table and for the death of an owner; weak, so that the finalizer can see their end. */
  private readonly users = new Map<bigint, WeakRef<UserRRef>>()
  private readonly finalizer: FinalizationRegistry<{ rrefId: bigint; forkId: bigint; owner: number }>
  /** References that ended without `dispose`. */
  finalized = 0

  constructor(host: RRefHost, finalizers: 'release' | 'report') {
    this.host = host
    this.finalizer = new FinalizationRegistry(({ rrefId, forkId, owner }) => {
      this.finalized++
      if (finalizers === 'report') return
      this.users.delete(forkId)
      this.sendDelete(owner, rrefId, forkId)
    })
  }

  get self(): WorkerInfo {
    return this.host.info
  }

  /** PyTorch's keys (`rref_context_debug_info`), in camelCase. */
  debugInfo(): { ownerRRefs: number; userRRefs: number; forks: number; pendingUsers: number; pendingChildren: number } {
    let forks = 0
    for (const of of this.forks.values()) forks += of.size
    return {
      ownerRRefs: this.owners.size,
      userRRefs: this.users.size,
      forks,
      pendingUsers: this.pendingUsers.size,
      pendingChildren: this.pendingChildren.size,
    }
  }

  // --- making references

  /** A reference to a value of this worker; it enters the owner's table when it is shared. */
  createOwner<T>(value?: { readonly value: T }): OwnerRRef<T> {
    const rref = new OwnerRRef<T>(this.host.ids.take(), this)
    if (value !== undefined) rref.setValue(value.value)
    return rref
  }

  /** The reference that `remote` returns on a user, not yet confirmed. */
  createUser<T>(owner: WorkerInfo): UserRRef<T> {
    const user = new UserRRef<T>(this.host.ids.take(), this.host.ids.take(), owner, this, false)
    this.pendingUsers.set(user.forkId, user)
    this.track(user)
    return user
  }

  /** The owner's side of `remote`: the entry exists from here on, its value follows. A fetch may have been here first. */
  admit(rrefId: bigint, forkId: bigint, user: number): OwnerRRef {
    const owner = this.getOrCreateOwner(rrefId)
    this.addFork(rrefId, forkId, user)
    return owner
  }

  /** Keeps an owned value while a message to this worker itself is under way. */
  hold(rref: OwnerRRef): void {
    this.owners.set(rref.rrefId, rref)
    this.addFork(rref.rrefId, rref.rrefId, this.self.id)
  }

  releaseHold(rrefId: bigint): void {
    this.dropFork(rrefId, rrefId)
  }

  confirm(user: UserRRef): void {
    user.confirmed = true
    this.pendingUsers.delete(user.forkId)
    if (user.deleted) this.finishDelete(user)
  }

  /** The creation or confirmation of a user failed: whatever uses it from now on gets this error. */
  failUser(user: UserRRef, error: unknown): void {
    user.failure ??= error
    this.pendingUsers.delete(user.forkId)
  }

  // --- using references

  fetch<T>(user: UserRRef<T>, options: RRefOptions): Future<T> {
    const problem = this.unusable(user, 'toHere')
    if (problem !== null) return Future.rejected(problem)
    const future = new Future<T>()
    const reply = this.host.request(user.owner().id, MessageType.RREF_FETCH, [user.rrefId], { ...options, op: 'toHere', intercepted: true })
    // The reference is named here so that it lives until the reply, and the owner's value with it.
    reply.then(
      (message) => future.resolve(message.body[0] as T),
      (error) => future.reject(user.failure ?? error),
    )
    return future
  }

  /** The owner's side of a fetch. */
  lookup(rrefId: bigint): OwnerRRef {
    const known = this.owners.get(rrefId)
    if (known !== undefined) return known
    // A value that this worker made itself is in the table before anybody else can know of it.
    if (workerOf(rrefId) === this.self.id) throw deleted('RRef', rrefId)
    return this.getOrCreateOwner(rrefId)
  }

  callMethod(rref: RRef, method: string, args: readonly unknown[], options: RRefOptions): Future<unknown> {
    const problem = rref instanceof UserRRef ? this.unusable(rref, `call of '${method}'`) : null
    if (problem !== null) return Future.rejected(problem)
    return this.host.callByName(rref.owner().id, METHOD_CALL, [rref, method, args], options)
  }

  // --- ending references

  disposeUser(user: UserRRef): void {
    if (user.deleted) return
    user.deleted = true
    this.finalizer.unregister(user)
    this.users.delete(user.forkId)
    this.finishDelete(user)
  }

  /** The owner gives up its own handle: the value stays as long as other workers refer to it. */
  disposeOwner(rref: OwnerRRef): void {
    if (!this.forks.has(rref.rrefId)) this.owners.delete(rref.rrefId)
  }

  private finishDelete(user: UserRRef): void {
    if (user.children > 0 || (!user.confirmed && user.failure === null)) return
    this.sendDelete(user.owner().id, user.rrefId, user.forkId)
  }

  private sendDelete(owner: number, rrefId: bigint, forkId: bigint): void {
    // A dead owner has nothing left to count.
    if (this.host.deathOf(owner) === null) this.host.post(owner, MessageType.RREF_USER_DELETE, [rrefId, forkId])
  }

  // --- messages

  onUserDelete(rrefId: bigint, forkId: bigint): void {
    this.dropFork(rrefId, forkId)
  }

  onForkRequest(rrefId: bigint, forkId: bigint, from: number): void {
    this.getOrCreateOwner(rrefId)
    this.addFork(rrefId, forkId, from)
  }

  onChildAccept(forkId: bigint): void {
    const child = this.pendingChildren.get(forkId)
    if (child === undefined) return
    this.pendingChildren.delete(forkId)
    child.parent.children--
    if (child.parent.deleted) this.finishDelete(child.parent)
  }

  onPeerDeath(peer: WorkerInfo, error: PostgradError): void {
    for (const [rrefId, forks] of [...this.forks]) {
      for (const [forkId, holder] of [...forks]) if (holder === peer.id) this.dropFork(rrefId, forkId)
    }
    for (const [forkId, child] of [...this.pendingChildren]) if (child.receiver === peer.id) this.onChildAccept(forkId)
    for (const [forkId, weak] of [...this.users]) {
      const user = weak.deref()
      if (user === undefined || user.owner().id === peer.id) this.users.delete(forkId)
      if (user?.owner().id === peer.id) this.failUser(user, error)
    }
  }

  // --- references inside messages

  readonly extension: ValueExtension = {
    tag: RREF_TAG,
    matches: (value) => value instanceof RRef,
    encode: (value, env) => this.fork(value as RRef, (env as CodecEnv).peer),
    decode: (plain, env) => this.unfork(plain as readonly [number, bigint, bigint, number], env as CodecEnv),
  }

  private fork(rref: RRef, to: WorkerInfo): readonly [owner: number, rrefId: bigint, forkId: bigint, parent: number] {
    const forkId = this.host.ids.take()
    if (rref instanceof OwnerRRef) {
      this.owners.set(rref.rrefId, rref)
      this.addFork(rref.rrefId, forkId, to.id)
    } else {
      const user = rref as UserRRef
      const problem = this.unusable(user, 'sending an RRef')
      if (problem !== null) throw problem
      user.children++
      this.pendingChildren.set(forkId, { parent: user, receiver: to.id })
    }
    return [rref.owner().id, rref.rrefId, forkId, this.self.id]
  }

  private unfork([ownerId, rrefId, forkId, parent]: readonly [number, bigint, bigint, number], env: CodecEnv): RRef {
    if (ownerId === this.self.id) {
      const owner = this.lookup(rrefId)
      if (parent === this.self.id) this.dropFork(rrefId, forkId)
      else this.host.post(parent, MessageType.RREF_CHILD_ACCEPT, [forkId])
      return owner
    }
    const fromOwner = parent === ownerId
    const user = new UserRRef(rrefId, forkId, this.host.infoOf(ownerId), this, fromOwner)
    this.track(user)
    if (!fromOwner) {
      this.pendingUsers.set(forkId, user)
      const confirmed = this.host
        .request(ownerId, MessageType.RREF_FORK_REQUEST, [rrefId, forkId], { op: 'sharing an RRef', intercepted: false })
        .then(
          () => this.confirm(user),
          (error) => this.failUser(user, error),
        )
      env.unconfirmed ??= []
      env.unconfirmed.push(
        confirmed.then(() => {
          if (parent === this.self.id) this.onChildAccept(forkId)
          else if (this.host.deathOf(parent) === null) this.host.post(parent, MessageType.RREF_CHILD_ACCEPT, [forkId])
        }),
      )
    }
    return user
  }

  // --- tables

  private getOrCreateOwner(rrefId: bigint): OwnerRRef {
    let owner = this.owners.get(rrefId)
    if (owner === undefined) {
      owner = new OwnerRRef(rrefId, this)
      this.owners.set(rrefId, owner)
    }
    return owner
  }

  private addFork(rrefId: bigint, forkId: bigint, holder: number): void {
    let forks = this.forks.get(rrefId)
    if (forks === undefined) {
      forks = new Map()
      this.forks.set(rrefId, forks)
    }
    forks.set(forkId, holder)
  }

  private dropFork(rrefId: bigint, forkId: bigint): void {
    const forks = this.forks.get(rrefId)
    if (forks === undefined) return
    forks.delete(forkId)
    if (forks.size > 0) return
    this.forks.delete(rrefId)
    this.owners.delete(rrefId)
  }

  private track(user: UserRRef): void {
    this.users.set(user.forkId, new WeakRef(user))
    this.finalizer.register(user, { rrefId: user.rrefId, forkId: user.forkId, owner: user.owner().id }, user)
  }

  private unusable(user: UserRRef, op: string): unknown {
    if (user.deleted) return deleted(op, user.rrefId)
    return user.failure ?? this.host.deathOf(user.owner().id)
  }
}

function deleted(op: string, rrefId: bigint): PostgradError {
  return new PostgradError('RREF_DELETED', {
    op,
    message: `RRef ${rrefId} has been deleted`,
    remedy: 'Keep the RRef until its last use; dispose() and the end of a using block are final.',
    values: { rrefId: rrefId.toString() },
  })
}
