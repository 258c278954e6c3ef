/**
 * The errors of ends that the program itself asked for: of a context, a cluster, a store, a pool, a group. Work under way there ends, too; the
 * program may have given it up before: by an early return, a caught error, another part of a `Promise.all`. Nobody holds those promises; their rejection must not
 * end the process, since the program knows of the end. The rule is CAN-14 in rpc's SPEC.md. `cancelling.ts` has the ends that come from elsewhere.
 */
import { queueMicrotask } from '../time/real-time.js'

interface OwnEnds {
  readonly errors: WeakSet<object>
  isListening: boolean
}

/** Two copies of the library in one process (ESM and CommonJS, say) share this, or each would take the other's listener for one of the program. */
const SHARED = Symbol.for('postgrad.ownEnds')
const shared = globalThis as { [SHARED]?: OwnEnds }
shared[SHARED] ??= { errors: new WeakSet(), isListening: false }
const ends: OwnEnds = shared[SHARED]

/** Marks the error of what this program has ended itself. From now on no rejection with it is reported as unhandled. */
export function ownEnd<E extends object>(error: E): E {
  ends.errors.add(error)
  if (!ends.isListening) {
    ends.isListening = true
    process.on('unhandledRejection', onUnhandled)
  }
  return error
}

export function isOwnEnd(error: unknown): boolean {
  return typeof error === 'object' && error !== null && ends.errors.has(error)
}

/** Settles as `work` does. If it rejects by an end that this program asked for, nobody need await it. */
export function quietAtOwnEnd<T>(work: Promise<T>): Promise<T> {
  // V8 finds the lines of who awaits the new promise only through its own `resolve`.
  const quiet = new Promise<T>((resolve, reject) => {
    work.then(resolve, (error: unknown) => {
      reject(error)
      if (isOwnEnd(error)) quiet.catch(() => {})
    })
  })
  return quiet
}

/**
 * For the promises that a program makes of ours: an async function that awaits a call rejects as the call does. Every other rejection must meet what it
 * would have met without this listener, so the listener goes and the reason is rejected once more. Listeners of the program get all of them, as ever.
 */
function onUnhandled(reason: unknown): void {
  if (isOwnEnd(reason) || process.listenerCount('unhandledRejection') > 1) return
  // After the others that Node reports in this turn, some of which may be ends of our own.
  queueMicrotask(() => {
    process.removeListener('unhandledRejection', onUnhandled)
    ends.isListening = false
    void Promise.reject(reason)
  })
}
