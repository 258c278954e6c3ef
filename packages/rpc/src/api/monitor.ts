/**
 * Hearing of the end of others, and ending them: `monitor`, `link`, `unlink`, `stopActor`. What watches is the worker that runs the code; `watches.ts` below does
 * the work. PyTorch has no counterpart: nobody hears of a worker's death there.
 */

import { SHUTDOWN_MS } from '@postgrad/actor/internal'
import { checkTime } from '@postgrad/base/internal'
import { kindOf, notAnActor } from '../actors/actors.js'
import { type Down, LINK_ACTOR, STOP_ACTOR, UNLINK_ACTOR } from '../actors/watches.js'
import type { Target } from '../common/worker-info.js'
import { RRef } from '../references/rref.js'
import { ActorHandle } from './actor-handle.js'
import { currentRuntime } from './api.js'

/** Tells of the end of an actor or a worker: what `monitor` gives. */
export interface Monitor {
  /** Resolves once, when what is watched has ended, or had ended before; never rejects. Nothing is told after `dispose`. */
  readonly down: Promise<Down>
  /** Stops watching. */
  dispose(): void
  [Symbol.dispose](): void
}

/**
 * Watches a worker, or the actor that a reference refers to, until it ends. It keeps nothing alive: the reference may be disposed meanwhile. Of a handle it watches the actor that
 * runs now, and not those that are made after it; this follows them:
 * `for (;;) { const { down } = monitor(await handle.ready()); … await down }`.
 * @throws UNKNOWN_WORKER, NOT_AN_ACTOR; of a handle ACTOR_NOT_RUNNING; of a reference NOT_AN_ACTOR, of a handle that was sent ACTOR_NOT_RUNNING, is the reason of its `down`
 */
export function monitor(target: Target | RRef | ActorHandle<unknown>): Monitor {
  const worker = currentRuntime()
  const { watches } = worker
  if (target instanceof ActorHandle) return target.isLocal ? monitor(target.current) : monitorFar(target)
  const watch = target instanceof RRef ? watches.watchActor(target) : watches.watchWorker(worker.resolve(target, 'monitor'))
  const dispose = () => watches.unwatch(watch)
  return { down: watch.down, dispose, [Symbol.dispose]: dispose }
}

/** Which one runs is asked first. */
function monitorFar(handle: ActorHandle<unknown>): Monitor {
  let isDisposed = false
  let inner: Monitor | null = null
  const begin = async (): Promise<Down> => {
    let rref: RRef
    try {
      rref = await handle.reference()
    } catch (reason) {
      return isDisposed ? await new Promise(() => {}) : { normal: false, reason }
    }
    if (isDisposed) {
      rref.dispose()
      return await new Promise(() => {})
    }
    inner = monitor(rref)
    rref.dispose()
    return await inner.down
  }
  const dispose = () => {
    isDisposed = true
    inner?.dispose()
  }
  return { down: begin(), dispose, [Symbol.dispose]: dispose }
}

/**
 * Binds two actors: when one of them crashes (its worker's death included), the other does, with LINKED_ACTOR_DOWN. A normal end of one is nothing to the other. It
 * resolves when both are bound. Of a handle it binds the actor that runs now: one that is made in its place is another, and bound to nothing.
 * @throws (rejects) NOT_AN_ACTOR, ACTOR_NOT_RUNNING, and as a call
 */
export function link(a: RRef | ActorHandle<unknown>, b: RRef | ActorHandle<unknown>): Promise<void> {
  return onBoth('link', LINK_ACTOR, a, b)
}

/** Undoes `link`, however often it was said of these two; where there was none it does nothing. Both references must be those that were bound, or copies of them. @throws (rejects) as `link` */
export function unlink(a: RRef | ActorHandle<unknown>, b: RRef | ActorHandle<unknown>): Promise<void> {
  return onBoth('unlink', UNLINK_ACTOR, a, b)
}

async function onBoth(op: string, builtIn: string, first: unknown, second: unknown): Promise<void> {
  const { caller } = currentRuntime()
  await withReference(op, first, (left) =>
    withReference(op, second, (right) =>
      Promise.all([caller.call(left.owner(), builtIn, [left, right]), caller.call(right.owner(), builtIn, [right, left])]),
    ),
  )
}

/**
 * Runs `fn` with the reference itself, or with the one that a handle leads to now: in the turn of the caller if that is known here, so that a later call of the same
 * actor does not overtake it. @throws NOT_AN_ACTOR, ACTOR_NOT_RUNNING
 */
function withReference(op: string, actor: unknown, fn: (rref: RRef) => Promise<unknown>): Promise<unknown> {
  if (actor instanceof RRef) return fn(actor)
  if (!(actor instanceof ActorHandle)) throw notAnActor(op, kindOf(actor))
  return actor.isLocal ? fn(actor.current) : withBorrowed(actor, fn)
}

async function withBorrowed(handle: ActorHandle<unknown>, fn: (rref: RRef) => Promise<unknown>): Promise<unknown> {
  using rref = await handle.reference()
  return await fn(rref)
}

/** Of `stopActor`. */
export interface StopOptions {
  /** How long it may take before it is ended whatever it does; 0 ends it at once, as a crash with ACTOR_KILLED. Default 5000. */
  readonly shutdownMs?: number
}

/**
 * Ends an actor: what was called before is done, what is called after meets ACTOR_STOPPED, its open streams are ended (ACTOR_STOPPED), its `onStop` runs. It resolves when the actor has ended, for whatever reason. An actor ends itself with
 * `this.stop()`: to await this from one of its own methods would wait for that method. Of a handle it ends the actor that runs now, which its supervisor may make again.
 * @throws (rejects) NOT_AN_ACTOR, ACTOR_NOT_RUNNING, TIMEOUT_INVALID, and as a call
 */
export async function stopActor(actor: RRef | ActorHandle<unknown>, { shutdownMs = SHUTDOWN_MS }: StopOptions = {}): Promise<void> {
  const limitMs = checkTime('stopActor', shutdownMs, '0 to end it at once')
  const { caller } = currentRuntime()
  await withReference('stopActor', actor, (rref) => caller.call(rref.owner(), STOP_ACTOR, [rref, limitMs]))
}
