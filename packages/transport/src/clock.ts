/**
 * The clock is the only door through which time comes in: what waits, retries or defers takes a `Clock` through its constructor, so that
 * the simulation can put a virtual one in its place. Below it is the machine (`RealClock`) or a seed (`sim`); above it are links and rpc.
 */

/** A pending call of `setTimer`. */
export interface Timer {
  /** The function will not be called any more; without effect after it was. */
  cancel(): void
}

export interface Clock {
  /** Milliseconds since some fixed moment, never going back. Only differences mean something. */
  now(): number
  /** Calls `fn` once, in a turn of its own, not before `delayMs` milliseconds have passed. A pending timer keeps a real process alive. */
  setTimer(delayMs: number, fn: () => void): Timer
  /** Calls `fn` once in a later turn, before any timer of 0 ms that is set at the same moment, after everything deferred earlier. */
  defer(fn: () => void): void
}

class RealTimer implements Timer {
  private readonly handle: NodeJS.Timeout

  constructor(delayMs: number, fn: () => void) {
    this.handle = setTimeout(fn, delayMs)
  }

  cancel(): void {
    clearTimeout(this.handle)
  }
}

/** The machine's clock: `performance.now`, `setTimeout`, `setImmediate`. Node rounds delays to whole milliseconds, and at least one. */
export class RealClock implements Clock {
  now(): number {
    return performance.now()
  }

  setTimer(delayMs: number, fn: () => void): Timer {
    return new RealTimer(delayMs, fn)
  }

  defer(fn: () => void): void {
    setImmediate(fn)
  }
}
