/**
 * Runs one function when the code that runs now and its microtasks are through: that is when a link posts what it has queued.
 */
import { nextTick } from '@postgrad/base/internal'

/**
 * A hook that can be armed again and again; arming it twice before it runs is arming it once. `process.nextTick` runs behind all microtasks
 * when a microtask armed it, which is where asynchronous code sends from; armed by a macrotask it runs in front of that task's microtasks,
 * and once more behind them if they arm it again. A second hop (microtask, then tick) would join the two at the price of 0.1 µs for every
 * post, a `setImmediate` at the price of a phase of the event loop.
 */
export class EndOfTurn {
  private armed = false
  private readonly run: () => void

  constructor(fn: () => void) {
    this.run = () => {
      this.armed = false
      fn()
    }
  }

  arm(): void {
    if (this.armed) return
    this.armed = true
    nextTick(this.run)
  }
}
