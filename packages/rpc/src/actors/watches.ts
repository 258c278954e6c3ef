/**
 * Watches of actors and workers, on both sides: the ends that this worker waits for, and the watchers that it notifies. A watch ends once, by whatever
 * happens first: the actor's end, its worker's death, this worker's shutdown. Users call `monitor.ts`; the rules MON-1 to MON-7 are in SPEC.md.
 *
 *   watcher ── call of WATCH_ACTOR [rref, watcher, watchId] ──→ owner     at once if it has ended
 *           ←── ACTOR_DOWN [watchId, normal, reason] ──────────           once; then both have forgotten it
 *           ── ACTOR_UNWATCH [watchId] ────────────────────────→          when the watcher gives it up before
 */
import type { Exit } from '@postgrad/actor/internal'
import { isPostgradError, PostgradError } from '@postgrad/base'
import { checkTime, plainText } from '@postgrad/base/internal'
import { type Message, MessageType } from '@postgrad/wire/internal'
import type { WorkerInfo } from '../common/worker-info.js'
import { currentServing } from '../core/served-call.js'
import { WorkerSlot } from '../core/slots.js'
import type { WorkerCore } from '../core/worker-core.js'
import { REFERENCES } from '../references/references.js'
import { OwnerRRef, RRef } from '../references/rref.js'
import type { RRefContext } from '../references/rref-context.js'
import type { ActorCell } from './actor-cell.js'
import { ACTORS, type Actors, notAnActor } from './actors.js'

/** The built-in functions of `monitor`, `link`, `unlink` and `stopActor`. */
export const WATCH_ACTOR = 'postgrad.watchActor'
export const LINK_ACTOR = 'postgrad.linkActor'
export const UNLINK_ACTOR = 'postgrad.unlinkActor'
export const STOP_ACTOR = 'postgrad.stopActor'

const NO_LIMIT = { timeoutMs: 0 }

/** How an actor or a worker ended; `Monitor.down` resolves with it. */
export interface Down {
  /** Whether the end was normal: the actor was stopped, no reference to it was left, or its worker left the cluster. */
  readonly normal: boolean
  /**
   * The error that ended the actor or worker; null if there was none. WORKER_DIED: its worker died or left. RREF_DELETED: the actor had ended before the
   * watch began. RPC_SHUT_DOWN: the watching worker ends.
   */
  readonly reason: unknown
}

/** A watch by this worker of one actor or worker. */
export class Watch {
  readonly id: number
  /** The actor's worker, or the watched one. */
  readonly owner: number
  readonly down: Promise<Down>
  /** The owner knows that it is watched, or it is down. */
  registered: Promise<void> = Promise.resolve()
  /** Why the owner does not let it be watched; null: it does. Nothing has crashed then. */
  refusal: PostgradError | null = null
  private settle!: (down: Down) => void

  constructor(id: number, owner: number) {
    this.id = id
    this.owner = owner
    this.down = new Promise((resolve) => {
      this.settle = resolve
    })
  }

  tell(down: Down): void {
    this.settle(down)
  }
}

export class Watches {
  private readonly core: WorkerCore
  private readonly actors: Actors
  private readonly rrefs: RRefContext
  private readonly watching = new Map<number, Watch>()
  /** By watcher and its number: what ends the watch of an actor here. */
  private readonly watched = new Map<string, () => void>()
  /** Links of actors here, by their references, then by those of the other ends: each pair may be bound more than once. */
  private readonly links = new Map<bigint, Map<bigint, Set<Watch>>>()
  private nextId = 1

  constructor(core: WorkerCore) {
    this.core = core
    this.actors = ACTORS.of(core)
    this.rrefs = REFERENCES.of(core)
    core.handle(MessageType.ACTOR_DOWN, (message, from) => this.onDown(message, from))
    core.handle(MessageType.ACTOR_UNWATCH, (message, from) => this.onUnwatch(message, from))
    core.onPeerDeath((peer, error) => this.onPeerDeath(peer, error))
    core.onClose((closedBy) => this.onClose(closedBy))
    core.contribute(() => ({ ...this.debugInfo() }))
  }

  debugInfo(): { monitors: number; watchers: number } {
    return { monitors: this.watching.size, watchers: this.watched.size }
  }

  // --- the watcher's side

  watchWorker({ id }: WorkerInfo): Watch {
    const watch = this.add(id)
    const death = this.core.deathOf(id)
    if (death !== null) this.tell(watch, downBy(death))
    return watch
  }

  watchActor(rref: RRef): Watch {
    const watch = this.add(rref.owner().id)
    watch.registered = this.register(watch, rref)
    return watch
  }

  /** From now on `down` stays pending. */
  unwatch(watch: Watch): void {
    if (!this.watching.delete(watch.id)) return
    // After the call of WATCH_ACTOR, which waits in a lower lane.
    void watch.registered.then(() => this.core.messages.postIfReachable(watch.owner, MessageType.ACTOR_UNWATCH, [watch.id]))
  }

  private add(owner: number): Watch {
    const watch = new Watch(this.nextId++, owner)
    this.watching.set(watch.id, watch)
    return watch
  }

  private async register(watch: Watch, rref: RRef): Promise<void> {
    for (;;) {
      try {
        await this.core.run(() => this.rrefs.caller.call(watch.owner, WATCH_ACTOR, [rref, this.core.info.id, watch.id], NO_LIMIT))
        return
      } catch (error) {
        if (isPostgradError(error, 'NOT_AN_ACTOR') || isPostgradError(error, 'NOT_PERMITTED')) watch.refusal = error
        if (!isPostgradError(error, 'MAILBOX_FULL')) {
          this.tell(watch, downBy(error))
          return
        }
      }
      try {
        await this.core.run(() => this.rrefs.caller.ready(watch.owner, NO_LIMIT))
      } catch (error) {
        this.tell(watch, downBy(error))
        return
      }
    }
  }

  onDown({ body: [id, normal, reason] }: Message, from: WorkerInfo): void {
    const watch = this.watching.get(id as number)
    if (watch?.owner === from.id) this.tell(watch, { normal: normal as boolean, reason })
    else this.core.idle(from.id)
  }

  private tell(watch: Watch, down: Down): void {
    if (this.watching.delete(watch.id)) watch.tell(down)
  }

  // --- the owner's side

  /** Serves WATCH_ACTOR. */
  onWatch(rref: unknown, watcher: unknown, id: unknown): Promise<void> | void {
    const owned = ownedActor(WATCH_ACTOR, rref)
    const serving = currentServing()
    if (typeof watcher !== 'number' || typeof id !== 'number' || (serving !== null && serving.caller.id !== watcher)) {
      throw notAnActor(WATCH_ACTOR, 'the watch of another worker')
    }
    const to = watcher
    const watchId = id
    const begin = (value: unknown) => this.begin(this.actors.cellOf(owned, value, 'monitor'), to, watchId)
    if (owned.hasValue) return begin(owned.localValue())
    // If the constructor fails, that is the actor's end.
    return owned.toHere({ timeoutMs: 0 }).then(begin, (reason) => this.say(to, watchId, { normal: false, reason }))
  }

  private begin(cell: ActorCell, to: number, watchId: number): void {
    if (cell.exit !== null) {
      this.say(to, watchId, cell.exit)
      return
    }
    const key = `${to}:${watchId}`
    const watcher = (exit: Exit) => {
      this.watched.delete(key)
      this.say(to, watchId, exit)
    }
    cell.watchers.add(watcher)
    this.watched.set(key, () => cell.watchers.delete(watcher))
  }

  private say(to: number, watchId: number, { normal, reason = null }: Exit): void {
    this.core.messages.postIfReachable(to, MessageType.ACTOR_DOWN, [watchId, normal, reason])
  }

  onUnwatch({ body: [id] }: Message, from: WorkerInfo): void {
    const key = `${from.id}:${id}`
    if (!this.watched.has(key)) this.core.idle(from.id)
    this.endWatched(key)
  }

  private endWatched(key: string): void {
    this.watched.get(key)?.()
    this.watched.delete(key)
  }

  /** Serves LINK_ACTOR: the actor of `rref`, which is here, crashes when `other` does. */
  async onLink(rref: unknown, to: unknown): Promise<void> {
    const [owned, other] = [ownedActor(LINK_ACTOR, rref), actorReference(LINK_ACTOR, to)]
    try {
      await whenMade(owned, (value) => this.bind(owned, this.actors.cellOf(owned, value, 'link'), other))
    } finally {
      other.dispose()
    }
  }

  private async bind(owned: OwnerRRef, cell: ActorCell, other: RRef): Promise<void> {
    const watch = this.watchActor(other)
    void watch.down.then(({ normal, reason }) => {
      if (!normal && watch.refusal === null) cell.end({ normal: false, reason: linkedDown(cell.what, reason) }, { isKnown: true })
    })
    const links = this.linksOf(owned, cell)
    const bound = links.get(other.rrefId) ?? new Set()
    links.set(other.rrefId, bound.add(watch))
    void watch.down.then(() => {
      bound.delete(watch)
      if (bound.size === 0 && links.get(other.rrefId) === bound) links.delete(other.rrefId)
    })
    await watch.registered
    // The other end of the link, which is asked for at the same time, says NOT_AN_ACTOR under the name of `link`.
    if (watch.refusal !== null && watch.refusal.code !== 'NOT_AN_ACTOR') throw watch.refusal
  }

  /** The links of one actor. The actor's end undoes all of them, by one listener. */
  private linksOf({ rrefId }: OwnerRRef, cell: ActorCell): Map<bigint, Set<Watch>> {
    let links = this.links.get(rrefId)
    if (links === undefined) {
      const made = new Map<bigint, Set<Watch>>()
      links = made
      this.links.set(rrefId, made)
      void cell.ended.then(() => {
        this.links.delete(rrefId)
        for (const bound of made.values()) for (const watch of bound) this.unwatch(watch)
      })
    }
    return links
  }

  /** Serves UNLINK_ACTOR: the end of `other` no longer affects the actor of `rref`. */
  onUnlink(rref: unknown, from: unknown): Promise<void> | void {
    const [owned, other] = [ownedActor(UNLINK_ACTOR, rref), actorReference(UNLINK_ACTOR, from)]
    const undo = () => {
      const links = this.links.get(owned.rrefId)
      for (const watch of links?.get(other.rrefId) ?? []) this.unwatch(watch)
      links?.delete(other.rrefId)
      other.dispose()
    }
    // A value that could not be made has no links.
    return owned.isPending ? owned.toHere({ timeoutMs: 0 }).then(undo, undo) : undo()
  }

  /** Serves STOP_ACTOR. */
  onStop(rref: unknown, shutdownMs: unknown): Promise<void> {
    const owned = ownedActor(STOP_ACTOR, rref)
    const limitMs = checkTime('stopActor', shutdownMs as number, '0 to end it at once')
    return whenMade(owned, (value) => this.actors.cellOf(owned, value, 'stopActor').stop(limitMs))
  }

  // --- ends

  /** Ends watches of the worker and its actors, and forgets its own watches. */
  onPeerDeath({ id }: WorkerInfo, error: PostgradError): void {
    for (const watch of [...this.watching.values()]) if (watch.owner === id) this.tell(watch, downBy(error))
    for (const key of [...this.watched.keys()]) if (key.startsWith(`${id}:`)) this.endWatched(key)
  }

  onClose(closedBy: () => PostgradError): void {
    for (const watch of [...this.watching.values()]) this.tell(watch, downBy(closedBy()))
  }
}

/** Runs `fn` with the value: in this turn if it is there, since a call that came in the same turn would be served before an `await`. */
function whenMade(owned: OwnerRRef, fn: (value: unknown) => Promise<void>): Promise<void> {
  return owned.hasValue ? fn(owned.localValue()) : owned.toHere({ timeoutMs: 0 }).then(fn)
}

/** Checks an argument from another worker: it may be anything. */
function ownedActor(op: string, rref: unknown): OwnerRRef {
  if (rref instanceof OwnerRRef) return rref
  throw notAnActor(op, typeof rref)
}

function actorReference(op: string, other: unknown): RRef {
  if (other instanceof RRef) return other
  throw notAnActor(op, typeof other)
}

/** If a worker has left, it and the actors on it have ended normally. */
function downBy(reason: unknown): Down {
  return { normal: isPostgradError(reason, 'WORKER_DIED') && reason.values.cause === 'left', reason }
}

function linkedDown(what: string, cause: unknown): PostgradError {
  return new PostgradError('LINKED_ACTOR_DOWN', {
    op: 'link',
    message: `an actor that this ${what} was linked to has crashed: ${plainText(cause)}`,
    remedy: 'Look at the cause.',
    values: { actor: what },
    cause,
  })
}

export const WATCHES = new WorkerSlot('watches', (core) => new Watches(core))
