/**
 * The RRef protocol of one worker: which values it owns and who refers to them, which references it holds, and what is unsettled.
 *
 * Note [RRef Protocol]. PyTorch's, over links that keep order and do not lose (so no message is retried). The rules are in SPEC.md.
 * G1: the owner is told of the end of every user. G2: a reference outlives the references made from it until their receivers have accepted.
 *   user → owner, `remote`     REMOTE_CALL{rrefId, forkId} registers the fork before the function runs; REMOTE_RET confirms it.
 *   owner → user, in a message the fork is registered before the message leaves; the receiver is confirmed at once.
 *   user A → user C            A keeps its own (children + 1). C sends RREF_FORK_REQUEST to the owner, which answers RREF_ACK; then C sends
 *                              RREF_CHILD_ACCEPT to A. A function runs on C only when all of its references are confirmed.
 *   user → owner, in a message A keeps its own until the owner answers RREF_CHILD_ACCEPT; the owner uses its OwnerRRef.
 *   end of a user              RREF_USER_DELETE, once it is confirmed and has no unaccepted children.
 * When a worker dies, its forks end on every owner, and what it owned fails with WORKER_DIED on every user.
 *
 * Note [When a fork counts]. At the sender when its message has left, so that a message which is refused (a value that cannot be sent, a dead
 * worker) leaves nothing behind. At the receiver when the message has its turn in the mailbox, in the worker's own scope and behind
 * what the sender said before; what is not delivered to anybody then (a late reply) is given up at once. What never has its turn
 * because the receiver shuts down ends with the receiver, whose death its peers see.
 */
import { Future, isPostgradError, PostgradError, workerOf } from '@postgrad/base'
import { callCancelled, checkSignal, Tombstones } from '@postgrad/base/internal'
import type { Tensor } from '@postgrad/tensor'
import { type Message, MessageType, type ValueExtension } from '@postgrad/wire/internal'
import { ask } from '../calls/future-request.js'
import { RemoteStream, type StreamOptions } from '../calls/stream.js'
import { METHOD_CALL, VALUE_READY } from '../common/built-in-names.js'
import type { AnyClass } from '../common/function-registry.js'
import type { WorkerInfo } from '../common/worker-info.js'
import type { ReferenceHooks } from '../core/hooks.js'
import type { CodecEnv } from '../core/peer.js'
import type { WorkerCore } from '../core/worker-core.js'
import type { Caller } from './caller.js'
import { OwnerRRef, RRef, type RRefBackwardOptions, type RRefOptions, type RRefProtocol, UserRRef, type ValueWaiter } from './rref.js'
import { type HeldReference, type OwnedReference, type References, typeName } from './rref-table.js'
import { type PlainFork, RREF_TAG, readFork } from './rref-wire.js'

/** A reference in a message that leaves. */
export interface SentFork {
  readonly rref: RRef
  readonly forkId: bigint
}

/** A reference in a message that waits in the mailbox. */
export interface ReceivedFork {
  readonly rref: RRef
  readonly forkId: bigint
}

/** A live reference of this worker to a value elsewhere, so that it may be collected. */
interface TrackedUser {
  readonly ref: WeakRef<UserRRef>
  readonly rrefId: bigint
  readonly forkId: bigint
  readonly owner: number
  /** It must not hold the reference. */
  onEnd: (() => void) | null
}

/** One value of this worker that others refer to, or are about to. */
class Owned {
  readonly rref: OwnerRRef
  /** Who holds it, by fork id. */
  readonly forks = new Map<bigint, Holder>()
  readonly sinceMs: number
  /** False while only others have spoken of it, and the REMOTE_CALL that makes it is still on its way. Until then it stays, counted or not. */
  admitted: boolean

  constructor(rref: OwnerRRef, admitted: boolean, sinceMs: number) {
    this.rref = rref
    this.admitted = admitted
    this.sinceMs = sinceMs
  }
}

interface Holder {
  readonly worker: number
  /** The number of the message, among those to that worker, in which this worker sent the fork; 0: it came about otherwise. */
  readonly message: number
  readonly sinceMs: number
}

/** So many ids of dropped values of other makers are remembered at least: what is later waits for a value that never comes, until its deadline. */
export const TOMBSTONES_MIN = 4096
export class RRefContext implements RRefProtocol, ReferenceHooks {
  /** Who makes the calls of references. */
  caller!: Caller
  private readonly core: WorkerCore
  private readonly owned = new Map<bigint, Owned>()
  /** Values that other workers made here and nobody refers to any more. Those that this worker made need none: it alone gives their ids. */
  private readonly tombstones = new Tombstones(TOMBSTONES_MIN)
  private readonly pendingUsers = new Map<bigint, UserRRef>()
  private readonly pendingChildren = new Map<bigint, { parent: UserRRef; receiver: number; message: number }>()
  /** Live user references by fork id, for the table and for the death of an owner; weak, so that the finalizer can see their end. */
  private readonly users = new Map<bigint, TrackedUser>()
  /** Where references were made, if the worker keeps that: 2 µs each. */
  private readonly stacks: WeakMap<RRef, string> | null
  private readonly finalizer: FinalizationRegistry<TrackedUser>
  /** References that ended without `dispose`. */
  finalized = 0
  /** Makes an instance of a class that `remote` leaves here; the actors of the worker say how. */
  construct: (target: AnyClass, args: readonly unknown[], owner: OwnerRRef, isWatched: boolean) => unknown = (target, args) =>
    new target(...args)
  /** Told when nobody elsewhere refers to a value any more. */
  onReleased: (rref: OwnerRRef) => void = () => {}
  /** What `rref.backward` does; set by the package that knows of gradients. */
  runBackward: RRefProtocol['backward'] = () => Promise.reject(noAutograd())

  constructor(core: WorkerCore) {
    const { finalizers = 'release', referenceStacks = false } = core.options
    this.core = core
    this.stacks = referenceStacks ? new WeakMap() : null
    this.finalizer = new FinalizationRegistry((user) => {
      this.finalized++
      if (finalizers === 'release') this.releaseCollected(user)
    })
  }

  get self(): WorkerInfo {
    return this.core.info
  }

  /** PyTorch's keys (`rref_context_debug_info`), in camelCase. */
  debugInfo(): { ownerRRefs: number; userRRefs: number; forks: number; pendingUsers: number; pendingChildren: number } {
    let forks = 0
    for (const of of this.owned.values()) forks += of.forks.size
    return {
      ownerRRefs: this.owned.size,
      userRRefs: this.users.size,
      forks,
      pendingUsers: this.pendingUsers.size,
      pendingChildren: this.pendingChildren.size,
    }
  }

  /** The tables as they are now. */
  references(): References {
    const nowMs = this.core.clock.now()
    const owned: OwnedReference[] = [...this.owned.values()].map(({ rref, forks, sinceMs }) => ({
      rrefId: rref.rrefId,
      type: rref.hasValue ? typeName(rref.localValue()) : rref.hasFailed ? 'error' : 'pending',
      ageMs: nowMs - sinceMs,
      holders: [...forks].map(([forkId, holder]) => ({
        forkId,
        worker: this.core.resolve(holder.worker),
        ageMs: nowMs - holder.sinceMs,
      })),
      madeAt: this.stacks?.get(rref) ?? null,
    }))
    // What was given up and cannot end yet is held by those tables alone.
    const users = new Set<UserRRef>([...this.pendingUsers.values(), ...[...this.pendingChildren.values()].map(({ parent }) => parent)])
    for (const { ref } of this.users.values()) {
      const user = ref.deref()
      if (user !== undefined) users.add(user)
    }
    const held: HeldReference[] = [...users].map((user) => ({
      rrefId: user.rrefId,
      forkId: user.forkId,
      owner: user.owner(),
      confirmed: user.confirmed,
      disposed: user.deleted,
      children: user.children,
      ageMs: nowMs - user.sinceMs,
      madeAt: this.stacks?.get(user) ?? null,
    }))
    return { owned, held }
  }

  private noteStack<R extends RRef>(rref: R): R {
    this.stacks?.set(rref, stackOfProgram())
    return rref
  }

  // --- making references

  /** A reference to a value of this worker; it enters the owner's table when it is shared. */
  createOwner<T>(value?: { readonly value: T }): OwnerRRef<T> {
    const rref = this.noteStack(new OwnerRRef<T>(this.core.ids.take(), this))
    if (value !== undefined) rref.setValue(value.value)
    return rref
  }

  /** The reference that `remote` returns on a user. It counts from `created` on. */
  createUser<T>(owner: WorkerInfo): UserRRef<T> {
    return this.noteStack(new UserRRef<T>(this.core.ids.take(), this.core.ids.take(), owner, this, false))
  }

  /** The REMOTE_CALL of this reference has left. */
  created(user: UserRRef): void {
    this.pendingUsers.set(user.forkId, user)
    this.track(user)
  }

  /** `fn`, which must not hold the reference, runs when that has been given up, was collected, or has failed. */
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

  // --- using references

  fetch<T>(user: UserRRef<T>, options: RRefOptions): Future<T> {
    const problem = this.unusable(user, 'toHere')
    if (problem !== null) return Future.rejected(problem)
    const future = new Future<T>()
    const reply = this.ask(user, MessageType.RREF_FETCH, [user.rrefId], 'toHere', options)
    // The reference is named here so that it lives until the reply, and the owner's value with it.
    reply.then(
      (message) => future.resolve(message.body[0] as T),
      (error) => future.reject(user.failure ?? error),
    )
    future.cancelWith({
      cancel: (reason) => {
        reply.cancel(reason)
        future.reject(callCancelled('toHere', user.owner(), reason))
      },
    })
    return future
  }

  private ask(user: UserRRef, type: MessageType, body: readonly unknown[], op: string, options: RRefOptions): Future<Message> {
    try {
      return ask(this.core, this.core.peers.resolve(user.owner().id), type, body, op, options, itself)
    } catch (error) {
      return Future.rejected(error)
    }
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

  /** The owner's side of a fetch, which comes behind whatever made the user's fork known here. @throws RREF_DELETED */
  lookup(rrefId: bigint): OwnerRRef {
    const owned = this.owned.get(rrefId)
    if (owned === undefined) throw deleted('toHere', rrefId)
    return owned.rref
  }

  awaitCreated(rref: RRef, options: RRefOptions): Future<void> {
    const problem = rref instanceof UserRRef ? this.unusable(rref, 'created') : null
    if (problem !== null) return Future.rejected(problem)
    return this.caller.call(rref.owner(), VALUE_READY, [rref], options, 'created') as Future<void>
  }

  callMethod(rref: RRef, method: string, args: readonly unknown[], options: RRefOptions): Future<unknown> {
    const op = `call of '${method}'`
    const problem = rref instanceof UserRRef ? this.unusable(rref, op) : null
    if (problem !== null) return Future.rejected(problem)
    const subject = rref instanceof UserRRef ? rref.rrefId : rref
    return this.caller.call(rref.owner(), METHOD_CALL, [subject, method, args], options, op)
  }

  /**
   * A user names the value whose method it calls by its id, as a fetch does (RREF-33): the user counts already, and a fork would cost a message more, of a
   * call that ends later also a post and a wake-up more. Gives the id, and puts the value's reference where it stood; null for all other messages.
   */
  subjectOf({ type, body }: Message): bigint | null {
    if (type !== MessageType.CALL || body[0] !== METHOD_CALL) return null
    const args = body[1] as unknown[]
    const rrefId = args[0]
    if (typeof rrefId !== 'bigint') return null
    args[0] = this.receiveOwned(rrefId)
    return rrefId
  }

  /** @throws what makes the reference unusable, and as `remote` does */
  remoteMethod(rref: RRef, method: string, args: readonly unknown[], options: RRefOptions): RRef {
    const op = `remote call of '${method}'`
    const problem = rref instanceof UserRRef ? this.unusable(rref, op) : null
    if (problem !== null) throw problem
    return this.caller.remote(rref.owner(), METHOD_CALL, [rref, method, args], options, op)
  }

  streamMethod(rref: RRef, method: string, args: readonly unknown[], options: StreamOptions): RemoteStream<unknown> {
    const op = `stream of '${method}'`
    const problem = rref instanceof UserRRef ? this.unusable(rref, op) : null
    if (problem !== null) return RemoteStream.failed(problem)
    return this.caller.stream(rref.owner(), METHOD_CALL, [rref, method, args], options, op)
  }

  backward(rref: RRef<Tensor>, contextId: bigint | null, options: RRefBackwardOptions): Promise<void> {
    return this.runBackward(rref, contextId, options)
  }

  // --- ending references

  disposeUser(user: UserRRef): void {
    if (user.deleted) return
    user.deleted = true
    this.untrack(user)
    this.end(user)
  }

  /** Gives up every reference that this worker has to a value of another; its program may use none any more. */
  releaseAll(): void {
    for (const tracked of [...this.users.values()]) {
      const user = tracked.ref.deref()
      // What is said does not depend on the collector: one that it took was confirmed and had no children.
      if (user !== undefined) this.disposeUser(user)
      else this.releaseCollected(tracked)
    }
  }

  /** For a reference that no program can reach any more; once. */
  private releaseCollected({ rrefId, forkId, owner }: TrackedUser): void {
    if (this.forget(forkId)) this.core.messages.postIfReachable(owner, MessageType.RREF_USER_DELETE, [rrefId, forkId])
  }

  /** Tells the owner, once, when the reference has been given up or has failed, is not on its way to the owner, and no child needs it (G1, G2). */
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
    const problem = rref instanceof UserRRef ? this.unusable(rref, 'sending an RRef') : null
    if (problem !== null) throw problem
    const forkId = this.core.ids.take()
    env.sending ??= []
    env.sending.push({ rref, forkId })
    return [rref.owner().id, rref.rrefId, forkId, this.self.id]
  }

  /** A message with these references has left, the one of this number to `to`. */
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

  /** Makes the reference; it counts from `accept` on. What is wrong with it does not spoil the message, whose references must all be answered. */
  private unfork(plain: unknown, env: CodecEnv): RRef {
    const { owner, rrefId, forkId, parent } = readFork(plain, env.peer)
    const rref = owner === this.self.id ? this.receiveOwned(rrefId) : this.receiveUser(owner, rrefId, forkId, parent === owner)
    env.received ??= []
    env.received.push({ rref, forkId })
    return rref
  }

  private receiveOwned(rrefId: bigint): OwnerRRef {
    try {
      return this.ownedOf(rrefId).rref
    } catch (error) {
      const rref = new OwnerRRef(rrefId, this)
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
      // The owner is no peer of this worker: nothing can be asked of it.
      info = { name: `worker id ${owner}`, id: owner }
      failure = error
    }
    const user = new UserRRef(rrefId, forkId, info, this, confirmed)
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
        const { body } = await this.ask(user, MessageType.RREF_FORK_REQUEST, [rrefId, forkId], op, { timeoutMs: 0 })
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
    for (const { rref } of forks) if (rref instanceof UserRRef) this.disposeUser(rref)
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
    const owned = new Owned(new OwnerRRef(rrefId, this), false, this.core.clock.now())
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
    if (workerOf(rrefId) !== this.self.id) this.tombstones.add(rrefId)
    this.onReleased(rref)
  }

  private neverMade(owned: Owned, error: unknown): void {
    owned.admitted = true
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

  private unusable(user: UserRRef, op: string): unknown {
    if (user.deleted) return deleted(op, user.rrefId)
    const death = this.core.deathOf(user.owner().id)
    // The death is asked for again, since the owner's name may live on by now.
    return isPostgradError(user.failure, 'WORKER_DIED') ? (death ?? user.failure) : (user.failure ?? death)
  }
}

const itself = (message: Message) => message

function deleted(op: string, rrefId: bigint): PostgradError {
  return new PostgradError('RREF_DELETED', {
    op,
    message: `RRef ${rrefId} has been deleted`,
    remedy: 'Keep the RRef until its last use; dispose() and the end of a using block are final.',
    values: { rrefId: rrefId.toString() },
  })
}

/** For what no worker of this version says. */
function invalid(op: string, rrefId: bigint): PostgradError {
  return new PostgradError('RREF_INVALID', {
    op,
    message: `a message about RRef ${rrefId} names a value or a fork that is not its sender's`,
    remedy: 'Run the same version of postgrad on all workers; otherwise report this as a bug.',
    values: { rrefId: rrefId.toString() },
  })
}

/** Without the frames of this package that stand above the program's. */
function stackOfProgram(): string {
  const { stack = '' } = new Error()
  return stack
    .split('\n')
    .slice(1)
    .map((line) => line.trim())
    .filter((line) => !/[/\\]rpc[/\\](?:dist|src)[/\\](?!.*\.(?:test|suite)\.)/.test(line))
    .join('\n')
}

function noAutograd(): PostgradError {
  return new PostgradError('NO_AUTOGRAD', {
    op: 'rref.backward',
    message: 'this worker has no distributed autograd',
    remedy: 'Start workers with launch or simulate, or call installDistAutograd on this one.',
  })
}
