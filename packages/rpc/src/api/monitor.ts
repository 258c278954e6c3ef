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

/** The result of `monitor`: a watch of an actor or a worker. */
export interface Monitor {
  /** Resolves once, when the actor or worker has ended, also if it had ended before; never rejects. After `dispose` it stays pending. */
  readonly down: Promise<Down>
  /** Stops watching. */
  dispose(): void
  [Symbol.dispose](): void
}

/**
 * Watches a worker, or the actor that a reference refers to, until it ends. The watch keeps nothing alive: you may dispose the reference meanwhile. For a
 * handle it watches the actor that runs now, not its successors. To follow them, write
 * `for (;;) { const { down } = monitor(await handle.ready()); … await down }`.
 * @throws UNKNOWN_WORKER, NOT_AN_ACTOR, and ACTOR_NOT_RUNNING for a handle. For a reference, NOT_AN_ACTOR becomes the reason of `down`; so does
 * ACTOR_NOT_RUNNING for a handle that was sent here
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
 * Resolves when both are linked. For a handle it links the actor that runs now; an actor that replaces it later is not linked.
 * @throws (rejects) NOT_AN_ACTOR, ACTOR_NOT_RUNNING, and as a call
 * @example
 * const a = remote('worker0', Linear, [2, 4])
 * const b = remote('worker1', Linear, [4, 1])
 * await link(a, b) // if one of them crashes, or its worker dies, the other crashes
 */
export function link(a: RRef | ActorHandle<unknown>, b: RRef | ActorHandle<unknown>): Promise<void> {
  return onBoth('link', LINK_ACTOR, a, b)
}

/**
 * Removes the link of two actors, however often they were linked; without a link it does nothing. Pass the references that were linked, or copies of them.
 * @throws (rejects) as `link`
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

/** Options of `stopActor`. */
export interface StopOptions {
  /** How long the actor may take to stop, in ms; then it is ended whatever it does. 0 ends it at once, as a crash with ACTOR_KILLED. Default 5000. */
  readonly shutdownMs?: number
}

/**
 * Ends an actor. Earlier calls are served, later calls fail with ACTOR_STOPPED, its open streams end with ACTOR_STOPPED, and its `onStop` runs. Resolves
 * when the actor has ended, for whatever reason. An actor ends itself with `this.stop()`: if one of its methods awaited `stopActor`, it would wait for
 * itself. For a handle it ends the actor that runs now; its supervisor may make it again.
 * @throws (rejects) NOT_AN_ACTOR, ACTOR_NOT_RUNNING, TIMEOUT_INVALID, and as a call
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
