/**
 * The RRef protocol of one worker: which values it owns and who refers to them, which references it holds, and what is unsettled.
 *
 * Note [RRef Protocol]. PyTorch's, over links that keep order and lose nothing (so no message is retried). The rules are in SPEC.md.
 * G1: the owner learns of the end of every user. G2: a reference outlives the references made from it until their receivers have accepted.
 *   user → owner, `remote`     REMOTE_CALL{rrefId, forkId} registers the fork before the function runs; REMOTE_RET confirms it.
 *   owner → user, in a message the fork is registered before the message is sent; the receiver is confirmed at once.
 *   user A → user C            A keeps its own (children + 1). C sends RREF_FORK_REQUEST to the owner, which answers RREF_ACK; then C sends
 *                              RREF_CHILD_ACCEPT to A. A function runs on C only when all of its references are confirmed.
 *   user → owner, in a message A keeps its own until the owner answers RREF_CHILD_ACCEPT; the owner uses its OwnerRRef.
 *   end of a user              RREF_USER_DELETE, once it is confirmed and has no unaccepted children.
 * When a worker dies, its forks end on every owner, and what it owned fails with WORKER_DIED on every user.
 *
 * Note [When a fork counts]. At the sender it counts when its message was sent, so a refused message (a value that cannot be sent, a dead
 * worker) leaves no trace. At the receiver it counts when the message has its turn in the mailbox, in the worker's own scope and after
 * earlier messages of the sender. If nobody gets the message (a late reply), its forks are disposed at once. If it never has its turn
 * because the receiver shuts down, they end with the receiver, whose death its peers see.
 */
import { Future, isPostgradError, type PostgradError, type WorkerId, workerOf } from '@postgrad/base'
import { Tombstones } from '@postgrad/base/internal'
import { type Message, MessageType, type ValueExtension } from '@postgrad/wire/internal'
import { METHOD_CALL } from '../common/built-in-names.js'
import type { AnyClass } from '../common/function-registry.js'
import type { WorkerInfo } from '../common/worker-info.js'
import type { ReferenceHooks } from '../core/hooks.js'
import type { CodecEnv } from '../core/peer.js'
import type { WorkerCore } from '../core/worker-core.js'
import type { Caller } from './caller.js'
import { OwnerRRef, RRef, type RRefOptions, type RRefProtocol, UserRRef } from './rref.js'
import {
  countsOf,
  type Holder,
  Owned,
  type PendingChild,
  type ReceivedFork,
  type SentFork,
  stackOfProgram,
  type TrackedUser,
  tablesOf,
} from './rref-entries.js'
import { deleted, foreign, invalid, noAutograd } from './rref-errors.js'
import { RRefOperations } from './rref-operations.js'
import type { References } from './rref-table.js'
import { type PlainFork, RREF_TAG, readFork } from './rref-wire.js'
import { UnseenFailures } from './unseen-failures.js'

/** So many ids of dropped values of other makers are remembered at least: what is later waits for a value that never comes, until its deadline. */
export const TOMBSTONES_MIN = 4096

export class RRefContext implements ReferenceHooks {
  /** Makes the calls of references. */
  caller!: Caller
  /** The programs' operations on them. */
  readonly operations: RRefProtocol
  private readonly core: WorkerCore
  readonly owned = new Map<bigint, Owned>()
  /** Values that other workers made here and nobody refers to any more. Those that this worker made need none: it alone gives their ids. */
  private readonly tombstones = new Tombstones(TOMBSTONES_MIN)
  readonly pendingUsers = new Map<bigint, UserRRef>()
  readonly pendingChildren = new Map<bigint, PendingChild>()
  /** Live user references by fork id, for the table and for the death of an owner; weak, so that the finalizer can see their end. */
  readonly users = new Map<bigint, TrackedUser>()
  /** Where references were made, if the worker keeps that: 2 µs each. */
  private readonly stacks: WeakMap<RRef, string> | null
  private readonly finalizer: FinalizationRegistry<TrackedUser>
  /** References that ended without `dispose`. */
  finalized = 0
  private readonly unseen: UnseenFailures
  /** Makes an instance of a class that `remote` keeps here; the actors of the worker say how. */
  construct: (target: AnyClass, args: readonly unknown[], owner: OwnerRRef, isWatched: boolean) => unknown = (target, args) =>
    new target(...args)
  /** Called when nobody elsewhere refers to a value any more. */
  onReleased: (rref: OwnerRRef) => void = () => {}
  /** Runs `rref.backward`; set by the package that knows of gradients. */
  runBackward: RRefProtocol['backward'] = () => Promise.reject(noAutograd())

  constructor(core: WorkerCore) {
    const { finalizers = 'release', referenceStacks = false } = core.options
    this.core = core
    this.operations = new RRefOperations(core, this)
    this.unseen = new UnseenFailures(core)
    this.stacks = referenceStacks ? new WeakMap() : null
    this.finalizer = new FinalizationRegistry((user) => {
      this.finalized++
      if (finalizers === 'release') this.releaseCollected(user)
    })
  }

  get self(): WorkerInfo {
    return this.core.info
  }

  debugInfo(): ReturnType<typeof countsOf> {
    return countsOf(this)
  }

  /** The tables as they are now. */
  references(): References {
    return tablesOf(this, this.core, this.stacks)
  }

  private noteStack<R extends RRef>(rref: R): R {
    this.stacks?.set(rref, stackOfProgram())
    return rref
  }

  // --- making references

  /** A reference to a value of this worker; it enters the owner's table when it is shared. */
  createOwner<T>(value?: { readonly value: T }): OwnerRRef<T> {
    const rref = this.noteStack(new OwnerRRef<T>(this.core.ids.take(), this.operations))
    if (value !== undefined) rref.setValue(value.value)
    return rref
  }

  /** The reference that `remote` returns on a user. It counts from `created` on. */
  createUser<T>(owner: WorkerInfo): UserRRef<T> {
    return this.noteStack(new UserRRef<T>(this.core.ids.take(), this.core.ids.take(), owner, this.operations, false))
  }

  /** The REMOTE_CALL of this reference was sent. */
  created(user: UserRRef): void {
    this.pendingUsers.set(user.forkId, user)
    this.track(user)
  }

  /** `fn`, which must not hold the reference, runs when that has been disposed, was collected, or has failed. */
  onEnd(user: UserRRef, fn: () => void): void {
    this.users.get(user.forkId)!.onEnd = fn
  }

  /**
   * The owner's side of `remote`: the entry exists from here on, its value follows. Others may have spoken of it before.
   * @throws RREF_INVALID, RREF_DELETED
   */
  admit(rrefId: bigint, forkId: bigint, user: number): OwnerRRef {
    // Both are ids that the user has taken for this, so nothing of others can be meant.
    if (workerOf(rrefId) !== user || workerOf(forkId) !== user || this.owned.get(rrefId)?.admitted) throw invalid('remote', rrefId)
    const owned = this.ownedOf(rrefId)
    owned.admitted = true
    owned.mentions = null
    owned.forks.set(forkId, this.holder(user))
    return owned.rref
  }

  /** Keeps an owned value while a message to this worker itself is under way. */
  hold(rref: OwnerRRef): void {
    this.register(rref, rref.rrefId, this.self.id, 0)
  }

  releaseHold(rrefId: bigint): void {
    this.dropFork(rrefId, rrefId)
  }

  /** `what` could not make the value: uses of the reference meet this error, and if there is none it becomes a dead letter (RREF-37). */
  failMaking(rref: OwnerRRef, what: string, error: unknown): void {
    const { rrefId } = rref
    this.unseen.add(rref, what, error, workerOf(rrefId) === this.self.id || this.isShared(rrefId))
  }

  confirm(user: UserRRef): void {
    user.confirmed = true
    this.pendingUsers.delete(user.forkId)
    this.end(user)
  }

  /** The creation or confirmation of a user failed, or its owner died: whatever uses it from now on gets this error. It counts no more. */
  failUser(user: UserRRef, error: unknown): void {
    user.failure ??= error
    this.pendingUsers.delete(user.forkId)
    this.untrack(user)
    this.end(user)
  }

  // --- using references; `rref-operations.ts` has what programs do with them

  /** The owner's side of a fetch, which arrives after the message that made the user's fork known. @throws RREF_DELETED */
  lookup(rrefId: bigint): OwnerRRef {
    const owned = this.owned.get(rrefId)
    if (owned === undefined) throw deleted('toHere', rrefId)
    return owned.rref
  }

  /**
   * A user names the value whose method it calls by its id, as a fetch does (RREF-33): the user counts already, and a fork would cost one more message, and
   * if the call ends later also a post and a wake-up. Returns the id, and replaces it by the value's reference; null for all other messages.
   */
  subjectOf(message: Message): bigint | null {
    const { type, body } = message
    if (type !== MessageType.CALL || body[0] !== METHOD_CALL) return null
    const args = body[1] as unknown[]
    const rrefId = args[0]
    if (typeof rrefId !== 'bigint') return null
    const rref = this.receiveOwned(rrefId)
    this.mention(rref, message)
    args[0] = rref
    return rrefId
  }

  /** Why this reference cannot be used; null: it can. */
  unusable(user: UserRRef, op: string): unknown {
    if (user.deleted) return deleted(op, user.rrefId)
    const death = this.core.deathOf(user.owner().id)
    // The death is asked for again, since the owner's name may live on by now.
    return isPostgradError(user.failure, 'WORKER_DIED') ? (death ?? user.failure) : (user.failure ?? death)
  }

  /** Asks the owner of a reference, which lives until the reply, and the value with it. The error of a reference that has failed comes before others. Does not throw. */
  ask<T>(
    user: UserRRef,
    type: MessageType,
    body: readonly unknown[],
    op: string,
    options: RRefOptions,
    read: (message: Message) => T,
  ): Future<T> {
    const errorOf = (error: unknown): unknown => user.failure ?? error
    try {
      return this.core.requests.ask(this.core.peers.resolve(user.owner().id), type, body, op, options, read, errorOf)
    } catch (error) {
      return Future.rejected(errorOf(error))
    }
  }

  // --- ending references

  disposeUser(user: UserRRef): void {
    if (user.deleted) return
    user.deleted = true
    this.untrack(user)
    this.end(user)
  }

  /** Disposes of every reference that this worker has to a value of another; its program may use none any more. */
  releaseAll(): void {
    for (const tracked of [...this.users.values()]) {
      const user = tracked.ref.deref()
      // Messages do not depend on the collector: a collected reference was confirmed and had no children.
      if (user !== undefined) this.disposeUser(user)
      else this.releaseCollected(tracked)
    }
  }

  /** For a reference that no program can reach any more; once. */
  private releaseCollected({ rrefId, forkId, owner }: TrackedUser): void {
    if (this.forget(forkId)) this.core.messages.postIfReachable(owner, MessageType.RREF_USER_DELETE, [rrefId, forkId])
  }

  /** Notifies the owner once, when the reference has been disposed or has failed, is not on its way to the owner, and no child needs it (G1, G2). */
  private end(user: UserRRef): void {
    const isOver = user.failure !== null || (user.deleted && user.confirmed)
    if (!isOver || user.ended || user.children > 0) return
    user.ended = true
    this.core.messages.postIfReachable(user.owner().id, MessageType.RREF_USER_DELETE, [user.rrefId, user.forkId])
  }

  // --- messages

  /** Returns whether there was such a fork of that worker. */
  onUserDelete(rrefId: bigint, forkId: bigint, from: number): boolean {
    const owned = this.owned.get(rrefId)
    if (owned?.forks.get(forkId)?.worker === from) {
      this.dropFork(rrefId, forkId)
      return true
    }
    // Its maker gives up what it never made (its REMOTE_CALL, which would be here by now, could not be read): nobody else gets a value either.
    if (owned !== undefined && !owned.admitted && workerOf(rrefId) === from) this.neverMade(owned, deleted('toHere', rrefId))
    return false
  }

  /** @throws RREF_DELETED, WORKER_DIED: the value has gone or will never be made; RREF_INVALID */
  onForkRequest(rrefId: bigint, forkId: bigint, from: number): void {
    const { forks } = this.ownedOf(rrefId)
    if ((forks.get(forkId)?.worker ?? from) !== from) throw invalid('sharing an RRef', rrefId)
    forks.set(forkId, this.holder(from))
  }

  /** Returns whether such a child of that worker was waited for. */
  onChildAccept(forkId: bigint, from: number): boolean {
    const child = this.pendingChildren.get(forkId)
    if (child === undefined || child.receiver !== from) return false
    this.pendingChildren.delete(forkId)
    child.parent.children--
    this.end(child.parent)
    return true
  }

  /** Nobody got the references of that message: they never were. */
  onUnread(message: number, by: number): void {
    for (const [forkId, child] of [...this.pendingChildren]) {
      if (child.receiver === by && child.message === message) this.onChildAccept(forkId, by)
    }
    for (const [rrefId, { forks }] of [...this.owned]) {
      for (const [forkId, holder] of [...forks]) {
        if (holder.worker === by && holder.message === message) this.dropFork(rrefId, forkId)
      }
    }
  }

  onPeerDeath(peer: WorkerInfo, error: PostgradError): void {
    for (const [rrefId, owned] of [...this.owned]) {
      for (const [forkId, holder] of [...owned.forks]) if (holder.worker === peer.id) this.dropFork(rrefId, forkId)
      if (!owned.admitted && workerOf(rrefId) === peer.id) this.neverMade(owned, error)
    }
    for (const [forkId, child] of [...this.pendingChildren]) if (child.receiver === peer.id) this.onChildAccept(forkId, peer.id)
    for (const { ref, forkId, owner } of [...this.users.values()]) {
      if (owner !== peer.id) continue
      const user = ref.deref()
      if (user !== undefined) this.failUser(user, error)
      else this.forget(forkId)
    }
  }

  // --- references inside messages; see Note [When a fork counts]

  readonly extension: ValueExtension = {
    tag: RREF_TAG,
    matches: (value) => value instanceof RRef,
    encode: (value, env) => this.fork(value as RRef, env as CodecEnv),
    decode: (plain, env) => this.unfork(plain, env as CodecEnv),
  }

  private fork(rref: RRef, env: CodecEnv): PlainFork {
    const op = 'sending an RRef'
    if (rref.context !== this.operations) throw foreign(op, rref.rrefId, this.self.name)
    const problem = rref instanceof UserRRef ? this.unusable(rref, op) : null
    if (problem !== null) throw problem
    const forkId = this.core.ids.take()
    env.sending ??= []
    env.sending.push({ rref, forkId })
    return [rref.owner().id, rref.rrefId, forkId, this.self.id]
  }

  /** A message with these references was sent, the one of this number to `to`. */
  sent(forks: readonly SentFork[], to: WorkerInfo, message: number): void {
    for (const { rref, forkId } of forks) {
      if (rref instanceof OwnerRRef) {
        this.register(rref, forkId, to.id, message)
      } else {
        const parent = rref as UserRRef
        parent.children++
        this.pendingChildren.set(forkId, { parent, receiver: to.id, message })
      }
    }
  }

  numbered(forks: readonly SentFork[], message: number): void {
    for (const { rref, forkId } of forks) {
      const sent = rref instanceof OwnerRRef ? this.owned.get(rref.rrefId)?.forks.get(forkId) : this.pendingChildren.get(forkId)
      // A peer that has died has no entry.
      if (sent !== undefined) sent.message = message
    }
  }

  /** Makes the reference; it counts from `accept` on. An error of it does not spoil the message, whose references must all be answered. */
  private unfork(plain: unknown, env: CodecEnv): RRef {
    const { owner, rrefId, forkId, parent } = readFork(plain, env.peer)
    const rref = owner === this.self.id ? this.receiveOwned(rrefId) : this.receiveUser(owner, rrefId, forkId, parent === owner)
    const fork: ReceivedFork = { rref, forkId }
    if (rref instanceof OwnerRRef) this.mention(rref, fork)
    env.received ??= []
    env.received.push(fork)
    return rref
  }

  private receiveOwned(rrefId: bigint): OwnerRRef {
    try {
      return this.ownedOf(rrefId).rref
    } catch (error) {
      const rref = new OwnerRRef(rrefId, this.operations)
      rref.setError(error)
      return rref
    }
  }

  private receiveUser(owner: number, rrefId: bigint, forkId: bigint, confirmed: boolean): UserRRef {
    let info: WorkerInfo
    let failure: unknown = null
    try {
      info = this.core.resolve(owner)
    } catch (error) {
      // The owner is not a peer of this worker, and cannot be asked.
      info = { name: `worker id ${owner}`, id: owner }
      failure = error
    }
    const user = new UserRRef(rrefId, forkId, info, this.operations, confirmed)
    user.failure = failure
    return user
  }

  /**
   * The message with these references has its turn. Gives, for each that the owner must confirm first, a promise of null or of what went
   * wrong; it never rejects. Null: all are confirmed.
   */
  accept(forks: readonly ReceivedFork[], from: WorkerInfo): Promise<unknown>[] | null {
    let unconfirmed: Promise<unknown>[] | null = null
    for (const { rref, forkId } of forks) {
      if (rref instanceof UserRRef && !rref.confirmed) {
        unconfirmed ??= []
        unconfirmed.push(this.requestFork(rref, from))
      } else if (rref instanceof UserRRef) {
        this.track(rref)
      } else {
        if (from.id === this.self.id) this.dropFork(rref.rrefId, forkId)
        this.sendAccept(forkId, from)
      }
    }
    return unconfirmed
  }

  /** No deadline of its own: it ends with the owner's answer, the owner's death or this worker's shutdown. */
  private async requestFork(user: UserRRef, from: WorkerInfo): Promise<unknown> {
    const { rrefId, forkId, failure } = user
    if (failure === null) {
      this.pendingUsers.set(forkId, user)
      this.track(user)
      try {
        const op = 'sharing an RRef'
        const { body } = await this.ask(user, MessageType.RREF_FORK_REQUEST, [rrefId, forkId], op, { timeoutMs: 0 }, itself)
        if (body[0] !== forkId) throw invalid(op, rrefId)
        this.confirm(user)
      } catch (error) {
        user.ended = true
        this.failUser(user, error)
      }
    }
    this.sendAccept(forkId, from)
    return user.failure
  }

  private sendAccept(forkId: bigint, parent: WorkerInfo): void {
    if (parent.id === this.self.id) this.onChildAccept(forkId, this.self.id)
    else this.core.messages.postIfReachable(parent.id, MessageType.RREF_CHILD_ACCEPT, [forkId])
  }

  /** The message with these references goes to nobody. */
  discard(forks: readonly ReceivedFork[]): void {
    for (const fork of forks) {
      if (fork.rref instanceof UserRRef) this.disposeUser(fork.rref)
      else this.forgetUnmade(fork.rref, fork)
    }
  }

  decline(forks: readonly ReceivedFork[], from: WorkerInfo): void {
    for (const { rref, forkId } of forks) {
      // A fork that its owner has sent counts there. The owner knows nothing of any other, and the sender waits for this.
      if (!(rref instanceof UserRRef && rref.confirmed)) this.sendAccept(forkId, from)
    }
    this.discard(forks)
  }

  isHeld(reference: unknown, by: WorkerId): boolean {
    const rrefId = reference instanceof OwnerRRef ? reference.rrefId : reference
    if (typeof rrefId !== 'bigint') return false
    for (const { worker } of this.owned.get(rrefId)?.forks.values() ?? []) if (worker === by) return true
    return false
  }

  areHeld(forks: readonly ReceivedFork[], from: WorkerId): boolean {
    return forks.every(({ rref }) => (rref instanceof UserRRef ? rref.owner().id === from : this.isHeld(rref, from)))
  }

  forgetSubject(message: Message): void {
    const { type, body } = message
    if (type === MessageType.CALL && body[0] === METHOD_CALL) this.forgetUnmade((body[1] as readonly unknown[])[0], message)
  }

  /** `by` speaks of a value whose REMOTE_CALL may still come, also in this mailbox, where replies go ahead of it. */
  private mention(rref: OwnerRRef, by: object): void {
    const owned = this.owned.get(rref.rrefId)
    if (owned?.rref !== rref || owned.admitted) return
    owned.mentions ??= new Set()
    owned.mentions.add(by)
  }

  /** `by` goes to nobody. If no other message speaks of the value, it is forgotten, unless it was made or is referred to. */
  private forgetUnmade(rref: unknown, by: object): void {
    if (!(rref instanceof OwnerRRef)) return
    const owned = this.owned.get(rref.rrefId)
    if (owned?.rref !== rref || owned.admitted) return
    owned.mentions?.delete(by)
    if ((owned.mentions?.size ?? 0) > 0 || owned.forks.size > 0 || rref.waiters.size > 0) return
    this.owned.delete(rref.rrefId)
    rref.setError(deleted('RRef', rref.rrefId))
  }

  // --- tables

  /** The entry of an id that another worker speaks of. @throws RREF_DELETED, WORKER_DIED (its maker), UNKNOWN_WORKER */
  private ownedOf(rrefId: bigint): Owned {
    const known = this.owned.get(rrefId)
    if (known !== undefined) return known
    const maker = workerOf(rrefId)
    // A value that this worker made itself is in the table before anybody else can know of it.
    if (maker === this.self.id || this.tombstones.has(rrefId)) throw deleted('RRef', rrefId)
    this.core.resolve(maker)
    const death = this.core.deathOf(maker)
    if (death !== null) throw death
    const owned = new Owned(new OwnerRRef(rrefId, this.operations), false, this.core.clock.now())
    this.owned.set(rrefId, owned)
    return owned
  }

  /** Whether others refer to this value, or are about to. */
  isShared(rrefId: bigint): boolean {
    return this.owned.has(rrefId)
  }

  private register(rref: OwnerRRef, forkId: bigint, holder: number, message: number): void {
    let owned = this.owned.get(rref.rrefId)
    if (owned === undefined) {
      owned = new Owned(rref, true, this.core.clock.now())
      this.owned.set(rref.rrefId, owned)
      this.tombstones.delete(rref.rrefId)
    }
    owned.forks.set(forkId, this.holder(holder, message))
  }

  private holder(worker: number, message = 0): Holder {
    return { worker, message, sinceMs: this.core.clock.now() }
  }

  private dropFork(rrefId: bigint, forkId: bigint): void {
    const owned = this.owned.get(rrefId)
    if (owned === undefined) return
    owned.forks.delete(forkId)
    if (owned.forks.size === 0 && owned.admitted) this.drop(owned)
  }

  private drop({ rref }: Owned): void {
    const { rrefId } = rref
    this.owned.delete(rrefId)
    if (workerOf(rrefId) !== this.self.id) {
      this.tombstones.add(rrefId)
      this.unseen.tell(rrefId)
    }
    this.onReleased(rref)
  }

  private neverMade(owned: Owned, error: unknown): void {
    owned.admitted = true
    owned.mentions = null
    owned.rref.setError(error)
    if (owned.forks.size === 0) this.drop(owned)
  }

  private track(user: UserRRef): void {
    user.sinceMs = this.core.clock.now()
    const { rrefId, forkId } = user
    const tracked: TrackedUser = { ref: new WeakRef(user), rrefId, forkId, owner: user.owner().id, onEnd: null }
    this.users.set(forkId, tracked)
    this.finalizer.register(user, tracked, user)
  }

  private untrack(user: UserRRef): void {
    this.forget(user.forkId)
    this.finalizer.unregister(user)
  }

  /** Returns whether it was known. */
  private forget(forkId: bigint): boolean {
    const tracked = this.users.get(forkId)
    if (tracked === undefined) return false
    this.users.delete(forkId)
    tracked.onEnd?.()
    return true
  }
}

const itself = (message: Message) => message
