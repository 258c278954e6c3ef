/**
 * Runs functions when a signal aborts, with one listener of the signal itself for any number of them: thousands of calls and jobs may share a signal, and
 * an AbortSignal searches all of its listeners for each new one (and warns of more than ten). `ScopedAbort` is the other end: it aborts a signal.
 */
import { currentScope, inScope, type Scope } from '../scope.js'

/** An AbortController whose listeners run in one scope. Node runs them in the scope of the code that aborts: a message's or a timer's, which know no served call. */
export class ScopedAbort {
  private readonly controller = new AbortController()
  private readonly scope: Scope

  /** @param scope default the current one: that of the code which asks for the signal */
  constructor(scope: Scope = currentScope()) {
    this.scope = scope
  }

  get signal(): AbortSignal {
    return this.controller.signal
  }

  abort(reason: unknown): void {
    inScope(this.scope, () => this.controller.abort(reason))
  }
}

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
