/**
 * Hearing of the end of others, and ending them: `monitor`, `link`, `stopActor`. What watches is the worker that runs the code; `watches.ts` below does
 * the work. PyTorch has no counterpart: nobody hears of a worker's death there.
 */

import { SHUTDOWN_MS } from '@postgrad/actor/internal'
import { checkTime } from '@postgrad/base/internal'
import { currentWorker } from './api.js'
import { RRef } from './rref.js'
import { type Down, LINK_ACTOR, STOP_ACTOR } from './watches.js'
import type { Target } from './worker-info.js'

/** Tells of the end of an actor or a worker: what `monitor` gives. */
export interface Monitor {
  /** Resolves once, when what is watched has ended, or had ended before; never rejects. Nothing is told after `dispose`. */
  readonly down: Promise<Down>
  /** Stops watching. */
  dispose(): void
  [Symbol.dispose](): void
}

/**
 * Watches a worker, or the actor that a reference refers to, until it ends. It keeps nothing alive: the reference may be given up meanwhile.
 * @throws UNKNOWN_WORKER; of a reference: NOT_AN_ACTOR is the reason of its `down`
 */
export function monitor(target: Target | RRef): Monitor {
  const worker = currentWorker()
  const { watches } = worker
  const watch = target instanceof RRef ? watches.watchActor(target) : watches.watchWorker(worker.resolve(target))
  const dispose = () => watches.unwatch(watch)
  return { down: watch.down, dispose, [Symbol.dispose]: dispose }
}

/**
 * Binds two actors: when one of them crashes (its worker's death included), the other does, with LINKED_ACTOR_DOWN. A normal end of one is nothing to the other. It
 * resolves when both are bound. @throws (rejects) NOT_AN_ACTOR, and as a call
 */
export async function link(a: RRef, b: RRef): Promise<void> {
  const worker = currentWorker()
  await Promise.all([worker.callBuiltIn(a.owner(), LINK_ACTOR, [a, b]), worker.callBuiltIn(b.owner(), LINK_ACTOR, [b, a])])
}

/** Of `stopActor`. */
export interface StopOptions {
  /** How long it may take before it is ended whatever it does; 0 ends it at once, as a crash with ACTOR_KILLED. Default 5000. */
  readonly shutdownMs?: number
}

/**
 * Ends an actor: what was called before is done, its `onStop` runs. It resolves when the actor has ended, for whatever reason. An actor ends itself with
 * `this.stop()`: to await this from one of its own methods would wait for that method.
 * @throws (rejects) NOT_AN_ACTOR, TIMEOUT_INVALID, and as a call
 */
export async function stopActor(actor: RRef, { shutdownMs = SHUTDOWN_MS }: StopOptions = {}): Promise<void> {
  await currentWorker().callBuiltIn(actor.owner(), STOP_ACTOR, [actor, checkTime('stopActor', shutdownMs, '0 to end it at once')])
}
