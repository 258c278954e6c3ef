/**
 * Runs functions when a signal aborts, with one listener of the signal itself for any number of them: thousands of calls and jobs may share a signal, and
 * an AbortSignal searches all of its listeners for each new one (and warns of more than ten).
 */

// By signal: this is not the state of a worker.
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
    // Skips functions removed meanwhile.
    for (const fn of listeners) fn()
    listeners.clear()
  }
  signal.addEventListener('abort', tell, { once: true })
  return listeners
}
