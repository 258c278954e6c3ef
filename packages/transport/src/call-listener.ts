/** How a program's listener is called: a listener that fails concerns its program alone. */
import type { Clock } from './clock.js'

/** What a listener throws is the program's own uncaught error, in a turn of its own: whoever tells it goes on, and the next listener is told as well. */
export function callListener(clock: Clock, call: () => void): void {
  try {
    call()
  } catch (thrown) {
    clock.defer(() => {
      throw thrown
    })
  }
}
