/**
 * The optional base class of actors, with self-sends, timers, stashing and `onStop`. Instances of any exposed class are actors without
 * it; `actor-cell.ts` does the work. PyTorch has no counterpart.
 */
import { PostgradError } from '@postgrad/base'
import { checkTime } from '@postgrad/base/internal'
import type { Timer } from '@postgrad/transport'
import type { ActorCell } from '../actors/actor-cell.js'
import type { RRef } from '../references/rref.js'
import { currentRuntime } from './api.js'

/**
 * The optional base class of actors. It adds calls to itself, timers, calls that are put aside, and `onStop`. Any instance of an exposed class is an actor,
 * also without `Actor`. PyTorch has no counterpart.
 *
 * `static readonly serial = true` works for any exposed class. A serial actor serves one call at a time, in the order of arrival. The next call begins when
 * the method has ended, even if its caller no longer waits. One exception: if the method awaits another worker, and that worker calls the actor back,
 * the actor serves this inner call at once.
 * @throws RPC_NOT_INITIALIZED (from the constructor) if no worker runs this code
 * @example
 * class Counter extends Actor {
 *   static readonly serial = true // one call at a time
 *   private count = 0
 *   async add(n: number) { return (this.count += n) }
 *   protected override onStop() { console.log('counted to', this.count) }
 * }
 * expose({ Counter })
 * const counter = remote('worker1', Counter)
 * await counter.rpcSync().add(2) // 2
 */
export abstract class Actor {
  readonly #cell: ActorCell

  constructor() {
    this.#cell = currentRuntime().actors.adoptNew(this, new.target)
  }

  /** A reference to this actor, to send to others. Its type is `RRef<any>`, since `this` may be of any subclass: state the class where you use the reference. */
  // biome-ignore lint/suspicious/noExplicitAny: see above
  protected get self(): RRef<any> {
    return currentRuntime().actors.referenceTo(this.#cell)
  }

  /**
   * Calls a method of this actor later, after the calls that have already arrived: `this.send(this.step, [])`. Several sends run in their order. Nobody waits
   * for the result, so an error of the method ends the actor.
   * @throws ACTOR_STOPPED if the actor has ended
   * @throws MAILBOX_FULL if 16,384 sends of this actor wait already
   */
  protected send<A extends unknown[]>(method: (...args: A) => unknown, args: A): void {
    this.#cell.send(method.name, () => method.apply(this, args))
  }

  /**
   * Calls a method of this actor after `ms` milliseconds of its worker's clock. As with `send`, the call waits its turn, and an error of the method ends the
   * actor. Returns the timer: `timer.cancel()` stops it. It ends with the actor.
   * @throws ACTOR_STOPPED if the actor has ended
   * @throws TIMEOUT_INVALID if `ms` is not a finite number ≥ 0
   */
  protected setTimer<A extends unknown[]>(ms: number, method: (...args: A) => unknown, args: A): Timer {
    return this.#cell.setTimer(checkDelay(ms), method.name, () => method.apply(this, args))
  }

  /**
   * Puts the call of this method aside until `unstashAll`, which runs the method again from its beginning. Write `return this.stash()` before the method's
   * first await. The caller continues to wait, and its deadline still counts.
   * @throws STASH_OUTSIDE_CALL if no method of this actor has just begun
   * @throws MAILBOX_FULL if 16,384 calls of this actor are put aside already
   */
  protected stash(): Promise<never> {
    return this.#cell.stash() as Promise<never>
  }

  /** Runs the calls that were put aside, in their order. A serial actor runs them before the calls that wait. */
  protected unstashAll(): void {
    this.#cell.unstashAll()
  }

  /** Ends this actor after it has served its earlier calls. Calls that are put aside, later calls and open streams fail with ACTOR_STOPPED. */
  protected stop(): void {
    void this.#cell.stop(Number.POSITIVE_INFINITY)
  }

  /**
   * Runs before the actor ends: after `stop` or `stopActor`, or when no reference to the actor is left. It does not run if the actor crashes or is killed, or
   * if its worker ends. If `onStop` throws, the end counts as a crash.
   */
  protected onStop(): unknown {
    return undefined
  }
}

/** @throws TIMEOUT_INVALID also for Infinity: a timer that never fires is none */
function checkDelay(ms: number): number {
  if (ms !== Number.POSITIVE_INFINITY) return checkTime('setTimer', ms, '0 for at once')
  throw new PostgradError('TIMEOUT_INVALID', {
    op: 'setTimer',
    expected: 'a finite number of milliseconds, 0 for at once',
    got: 'Infinity',
    remedy: 'Set no timer for what is never to happen.',
  })
}
