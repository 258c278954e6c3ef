/**
 * Who hears when a signal aborts, with one listener of the signal itself for any number of them: calls and jobs by the thousand may share a signal, and
 * an AbortSignal looks through all that it has for each that it gets (and warns of more than ten).
 */

// By signals, which are no state of any worker.
const heard = new WeakMap<AbortSignal, Set<() => void>>()

/** `fn`, which must not throw, runs once when `signal` aborts. Returns what ends that. */
export function onAbort(signal: AbortSignal, fn: () => void): () => void {
  const listeners = heard.get(signal) ?? listen(signal)
  listeners.add(fn)
  return () => {
    listeners.delete(fn)
  }
}

function listen(signal: AbortSignal): Set<() => void> {
  const listeners = new Set<() => void>()
  heard.set(signal, listeners)
  const tell = () => {
    // What is taken away meanwhile does not run.
    for (const fn of listeners) fn()
    listeners.clear()
  }
  signal.addEventListener('abort', tell, { once: true })
  return listeners
}
