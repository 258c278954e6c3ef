/**
 * Runs one function after the current code and its microtasks: at that time a link posts the frames that it has queued.
 */
import { nextTick } from '@postgrad/base/internal'

/**
 * A hook that can be armed again and again; arming it twice before it runs is arming it once. If a microtask arms it (asynchronous code
 * sends from there), `process.nextTick` runs it after all microtasks. If a macrotask arms it, it runs before that task's microtasks, and
 * once more after them if they arm it again. A second hop (microtask, then tick) would join the two runs but costs 0.1 µs for each post, a
 * `setImmediate` costs a phase of the event loop.
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
