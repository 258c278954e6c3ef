/**
 * The clock is the only source of time: code that waits, retries or defers takes a `Clock` through its constructor, so that the simulation
 * can pass a virtual one. Links and rpc use it; the machine (`RealClock`) or a seed (`sim`) implements it.
 */

import { strict as assert } from 'node:assert'
import { clearImmediate, clearTimeout, isInspected, now, setImmediate, setTimeout } from '@postgrad/base/internal'

/** A function call that `setTimer` has scheduled. */
export interface Timer {
  /** Cancels the call. Has no effect if the function was called already. */
  cancel(): void
}

/** The source of time for workers and stores: the machine's clock, or a simulation's virtual clock. */
export interface Clock {
  /** The time in ms since some fixed moment. It never decreases. Only differences between two times have a meaning. */
  now(): number
  /**
   * Calls `fn` once, in a turn of its own, after at least `delayMs` ms. A pending timer of the machine's clock keeps the process alive. With Infinity, `fn` is never
   * called, and the timer keeps nothing alive.
   */
  setTimer(delayMs: number, fn: () => void): Timer
  /** Calls `fn` once, in a later turn, after all functions that were deferred earlier. A timer that is due may run before or after `fn`. */
  defer(fn: () => void): void
  /** Whether a debugger may have stopped this program, or a program that it waits for. While this is true, no deadline passes. A clock without this method means: never. */
  isHeld?(): boolean
}

/** 24.8 days: Node fires a timer of a longer delay after 1 ms, so a longer one is waited for in parts. */
export const NODE_DELAY_MS_MAX = 2 ** 31 - 1

/** One of Infinity ms. */
export const NEVER: Timer = { cancel() {} }

/** In ms: a timer that fires later than this was held up by its thread. */
const LATE_MS = 10

/**
 * Note [A thread that did not turn]. Node calls due timers before it reads its sockets and ports. If a thread computed for a while, or was stopped, everything that arrived
 * in time meanwhile (replies, heartbeats, connections) would seem late. So a timer that fires late waits for two turns: the thread reads all that has arrived in the first,
 * and has handled it before the second ends. Timers that fell due meanwhile may therefore run in another order.
 */
class RealTimer implements Timer {
  private readonly fn: () => void
  private readonly dueMs: number
  private handle: NodeJS.Timeout
  private late: NodeJS.Immediate | null = null

  constructor(delayMs: number, fn: () => void) {
    assert(!Number.isNaN(delayMs), 'a timer of NaN ms')
    this.fn = fn
    this.dueMs = now() + delayMs
    this.handle = this.set(delayMs)
  }

  cancel(): void {
    clearTimeout(this.handle)
    if (this.late !== null) clearImmediate(this.late)
  }

  private set(delayMs: number): NodeJS.Timeout {
    if (delayMs <= NODE_DELAY_MS_MAX) return setTimeout(this.fire, delayMs)
    return setTimeout(() => {
      this.handle = this.set(delayMs - NODE_DELAY_MS_MAX)
    }, NODE_DELAY_MS_MAX)
  }

  private readonly fire = (): void => {
    if (now() - this.dueMs <= LATE_MS) this.fn()
    else {
      this.late = setImmediate(() => {
        this.late = setImmediate(this.fn)
      })
    }
  }
}

/** The machine's clock: `performance.now`, `setTimeout`, `setImmediate`, as they were when the library was loaded. Node rounds delays to whole milliseconds, and at least one. */
export class RealClock implements Clock {
  now(): number {
    return now()
  }

  setTimer(delayMs: number, fn: () => void): Timer {
    return delayMs === Number.POSITIVE_INFINITY ? NEVER : new RealTimer(delayMs, fn)
  }

  defer(fn: () => void): void {
    setImmediate(fn)
  }

  isHeld(): boolean {
    return isInspected()
  }
}

/** A timer that ends a wait of a program. As long as a debugger may hold the process that is waited for, it starts anew. Null: no deadline, `delayMs` is Infinity. */
export function setDeadline(clock: Clock, delayMs: number, fn: () => void): Timer | null {
  if (delayMs === Number.POSITIVE_INFINITY) return null
  const fire = (): void => {
    if (clock.isHeld?.() === true) timer = clock.setTimer(delayMs, fire)
    else fn()
  }
  let timer = clock.setTimer(delayMs, fire)
  return { cancel: () => timer.cancel() }
}

/** Calls a program's listener. If it throws, the error is uncaught, in a turn of its own: neither the caller nor the next listener sees it. */
export function callListener(clock: Clock, call: () => void): void {
  try {
    call()
  } catch (thrown) {
    clock.defer(() => {
      throw thrown
    })
  }
}
