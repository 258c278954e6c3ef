/**
 * Watching the ends of actors and workers, and ending actors: `monitor`, `link`, `unlink`, `stopActor`. The worker that runs the code is the watcher; `watches.ts`
 * does the work. PyTorch has no counterpart: it notifies nobody of a worker's death.
 */

import { SHUTDOWN_MS } from '@postgrad/actor/internal'
import { checkTime } from '@postgrad/base/internal'
import { kindOf, notAnActor } from '../actors/actors.js'
import { type Down, LINK_ACTOR, STOP_ACTOR, UNLINK_ACTOR } from '../actors/watches.js'
import type { Target } from '../common/worker-info.js'
import { RRef } from '../references/rref.js'
import { ActorHandle } from './actor-handle.js'
import { currentRuntime } from './api.js'

/** A watch of an actor or a worker; `monitor` returns it. */
export interface Monitor {
  /** Resolves when the actor or worker has ended, at once if it had ended before. It never rejects. After `dispose` it stays pending. */
  readonly down: Promise<Down>
  /** Ends the watch; `using` does so at the end of a block. */
  dispose(): void
  [Symbol.dispose](): void
}

/**
 * Watches an actor or a worker until it ends. `target` is a reference to the actor, its handle, or a worker. The watch keeps nothing alive: you may dispose
 * of the reference meanwhile. PyTorch has no counterpart.
 *
 * With a handle, `monitor` watches the instance that runs now, not its successors. To follow them, write
 * `for (;;) { const { down } = monitor(await handle.ready()); … await down }`.
 *
 * If the reference does not refer to an actor, `down` resolves with NOT_AN_ACTOR as its reason. If no instance of a handle from another worker runs,
 * `down` resolves with ACTOR_NOT_RUNNING as its reason.
 * @throws UNKNOWN_WORKER if this worker does not know the worker `target`
 * @throws ACTOR_NOT_RUNNING if no instance of a handle of this worker runs now
 * @example
 * const model = remote('worker1', Linear, [2, 4])
 * const { down } = monitor(model)
 * await stopActor(model)
 * await down.then(({ reason }) => reason) // null
 */
export function monitor(target: Target | RRef | ActorHandle<unknown>): Monitor {
  const worker = currentRuntime()
  const { watches } = worker
  if (target instanceof ActorHandle) return target.isLocal ? monitor(target.current) : monitorFar(target)
  const watch = target instanceof RRef ? watches.watchActor(target) : watches.watchWorker(worker.resolve(target, 'monitor'))
  const dispose = () => watches.unwatch(watch)
  return { down: watch.down, dispose, [Symbol.dispose]: dispose }
}

/** Asks first which actor runs. */
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
 * Links two actors: if one of them crashes, or its worker dies, the other crashes with LINKED_ACTOR_DOWN. If one ends normally, the other continues.
 * Resolves when both are linked. With a handle, `link` links the instance that runs now; an instance that replaces it later is not linked. Also rejects as
 * `call` does.
 * @throws NOT_AN_ACTOR if an argument is neither a reference to an actor nor a handle
 * @throws ACTOR_NOT_RUNNING if no instance of a handle runs now
 * @example
 * const a = remote('worker0', Linear, [2, 4])
 * const b = remote('worker1', Linear, [4, 1])
 * await link(a, b) // if one of them crashes, or its worker dies, the other crashes
 */
export function link(a: RRef | ActorHandle<unknown>, b: RRef | ActorHandle<unknown>): Promise<void> {
  return onBoth('link', LINK_ACTOR, a, b)
}

/**
 * Removes the link of two actors, however often they were linked. If they are not linked, it does nothing. Pass the references that were linked, or copies
 * of them. Rejects as `link` does.
 * @example
 * const a = remote('worker0', Linear, [2, 4])
 * const b = remote('worker1', Linear, [4, 1])
 * await link(a, b)
 * await unlink(a, b)
 */
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

/** Options of `stopActor`: how long the actor may take. */
export interface StopOptions {
  /** How long the actor may take to stop, in ms; default 5000. After that it is killed: it crashes with ACTOR_KILLED. 0 kills it at once. */
  readonly shutdownMs?: number
}

/**
 * Ends an actor. The actor serves its earlier calls; later calls and open streams fail with ACTOR_STOPPED; its `onStop` runs. Resolves when the actor has
 * ended, for whatever reason.
 *
 * With a handle, `stopActor` ends the instance that runs now; the supervision may make the actor again. A method of the actor itself must not await
 * `stopActor`, or it waits for itself: an `Actor` ends itself with `this.stop()`. Also rejects as `call` does.
 * @throws NOT_AN_ACTOR if `actor` is neither a reference to an actor nor a handle
 * @throws ACTOR_NOT_RUNNING if no instance of a handle runs now
 * @throws TIMEOUT_INVALID if `shutdownMs` is not a number ≥ 0
 * @example
 * const model = remote('worker1', Linear, [2, 4])
 * await stopActor(model)
 * await model.rpcSync().forward(x).catch(({ code }) => code) // 'ACTOR_STOPPED'
 */
export async function stopActor(actor: RRef | ActorHandle<unknown>, { shutdownMs = SHUTDOWN_MS }: StopOptions = {}): Promise<void> {
  const limitMs = checkTime('stopActor', shutdownMs, '0 to end it at once')
  const { caller } = currentRuntime()
  await withReference('stopActor', actor, (rref) => caller.call(rref.owner(), STOP_ACTOR, [rref, limitMs]))
}
