/**
 * Adds to an error that a node threw where backward failed: BACKWARD_FAILED becomes the last of its causes. The error itself stays as it is, since programs compare it.
 * Anomaly mode (`anomaly.ts`) and distributed passes use it, with different values.
 */
import { isPostgradError, type PostgradError } from '@postgrad/base'

/** A chain of causes is followed so far: it may be a ring. */
const CAUSES_MAX = 32
/** BACKWARD_NAN names its node, too. */
const PLACES: ReadonlySet<string> = new Set(['BACKWARD_FAILED', 'BACKWARD_NAN'])

/** The place that the error, or one of its causes, has already; null: none. */
export function placeOf(error: unknown): PostgradError | null {
  let at = error
  for (let i = 0; i <= CAUSES_MAX && isError(at); i++) {
    if (isPostgradError(at) && PLACES.has(at.code)) return at
    at = causeOf(at)
  }
  return null
}

/**
 * The error, with `place()` as the last of its causes. If nothing can be added (the value is not an error, is frozen, its last cause is not an error, or its causes are a ring),
 * the result is `place(error)`, which has the value as its cause.
 */
export function placed(error: unknown, place: (cause?: unknown) => PostgradError): unknown {
  return isError(error) && addPlace(error, place) ? error : place(error)
}

function addPlace(error: Error, place: () => PostgradError): boolean {
  let last = error
  for (let i = 0; ; i++) {
    const cause = causeOf(last)
    if (cause === null || cause === undefined) break
    // The place is found again within CAUSES_MAX causes.
    if (i >= CAUSES_MAX - 1 || !isError(cause)) return false
    last = cause
  }
  // As the constructor of an error makes it. A class may have a getter of this name, which an assignment cannot write.
  return Reflect.defineProperty(last, 'cause', { value: place(), writable: true, configurable: true })
}

/** A getter of the program that throws counts as a ring. */
function causeOf(error: Error): unknown {
  try {
    return error.cause
  } catch {
    return error
  }
}

function isError(value: unknown): value is Error {
  return typeof value === 'object' && value !== null && 'message' in value && 'stack' in value
}
