/**
 * Names of the functions that every worker exposes by itself (`built-ins.ts`). They begin with `postgrad.`, and users' interceptors do not see calls of
 * them. Methods and streams are the exception: interceptors see the method or function that is meant.
 */

export const BUILT_IN = 'postgrad.'
/** Of `rref.call`. */
export const METHOD_CALL = `${BUILT_IN}callMethod`
/** Of `rref.created`. */
export const VALUE_READY = `${BUILT_IN}valueReady`
/** Of `stream`. */
export const STREAM_CALL = `${BUILT_IN}stream`

/** The name of the function or the method that a call, or a stream, is for. */
export function functionOf([name, args]: readonly unknown[]): string {
  if (name === STREAM_CALL && Array.isArray(args)) return functionOf(args)
  const called: unknown = name === METHOD_CALL && Array.isArray(args) ? args[1] : name
  return typeof called === 'string' ? called : ''
}
