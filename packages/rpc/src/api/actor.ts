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
 * The base class of actors that send to themselves, set timers, put calls aside or tidy up at their end. Other actors need not extend it.
 *
 * `static readonly serial = true` works for any exposed class. A serial actor serves one call at a time, in the order in which they came, until its
 * function has ended, also when its caller no longer waits by then; a call that is part of what it serves (it awaits an observer, which asks it) is let in.
 * @throws (its constructor) RPC_NOT_INITIALIZED outside of any worker
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

  /** The reference to this actor, to be given to others. Whoever takes it says of which class: TypeScript cannot, as long as `this` may be of any subclass. */
  // biome-ignore lint/suspicious/noExplicitAny: see above
  protected get self(): RRef<any> {
    return currentRuntime().actors.referenceTo(this.#cell)
  }

  /**
   * Calls a method of this actor later, behind the calls that have come by now, in the order of sending. It is a call of nobody: an error of it ends the
   * actor: `this.send(this.step, [])`. @throws ACTOR_STOPPED
   */
  protected send<A extends unknown[]>(method: (...args: A) => unknown, args: A): void {
    this.#cell.send(method.name, () => method.apply(this, args))
  }

  /**
   * Calls a method of this actor after `ms` milliseconds on its worker's clock, in its turn, as `send` does. The timer ends with the actor.
   * @throws ACTOR_STOPPED, TIMEOUT_INVALID
   */
  protected setTimer<A extends unknown[]>(ms: number, method: (...args: A) => unknown, args: A): Timer {
    return this.#cell.setTimer(checkDelay(ms), method.name, () => method.apply(this, args))
  }

  /**
   * Puts the call of this method aside, to be run again by `unstashAll`: `return this.stash()`, before the method's first await. Its caller waits on, and
   * its deadline counts. @throws STASH_OUTSIDE_CALL, MAILBOX_FULL
   */
  protected stash(): Promise<never> {
    return this.#cell.stash() as Promise<never>
  }

  /** Runs what was put aside, in order; in a serial actor before what waits. */
  protected unstashAll(): void {
    this.#cell.unstashAll()
  }

  /** Ends this actor when what was called before has been done; its open streams are ended (ACTOR_STOPPED), but one that is at its own end. */
  protected stop(): void {
    void this.#cell.stop(Number.POSITIVE_INFINITY)
  }

  /**
   * Runs before the actor ends: after `stop`, or when nobody refers to it any more; not when it crashes, is killed or its worker ends. An error of
   * it makes that end a crash.
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
