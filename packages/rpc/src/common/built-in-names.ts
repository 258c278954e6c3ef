/**
 * The names of what every worker exposes by itself. They begin with `postgrad.`, and interceptors of users do not see calls of them, but for methods
 * and streams, which stand for the function or method that they are about. `built-ins.ts` above has what stands behind each.
 */

export const BUILT_IN = 'postgrad.'
/** Behind `rref.call`. */
export const METHOD_CALL = `${BUILT_IN}callMethod`
/** Behind `rref.created`. */
export const VALUE_READY = `${BUILT_IN}valueReady`
/** Behind `stream`. */
export const STREAM_CALL = `${BUILT_IN}stream`

/** The name of the function or the method that a call, or a stream, is for. */
export function functionOf([name, args]: readonly unknown[]): string {
  if (name === STREAM_CALL && Array.isArray(args)) return functionOf(args)
  const called: unknown = name === METHOD_CALL && Array.isArray(args) ? args[1] : name
  return typeof called === 'string' ? called : ''
}
