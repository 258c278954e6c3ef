/**
 * A second copy of the library in one thread, of which its first one knows nothing: `postgrad` that was left out of a bundle, next to a `postgrad/nn` that is in it. A module of one
 * copy is no module for the other, which would say so of a class that has the right name.
 */

/** The places of the copies that this thread has loaded; null is the inside of a bundle. */
const PLACES = Symbol.for('postgrad.places')

/**
 * Prints a warning if another copy was loaded before, from another place. From the same place jest loads it again after `resetModules`.
 * @param place the folder of this copy; null in a bundle
 * @param remedy how to have one copy
 */
export function noteCopy(
  place: string | null,
  remedy: string,
  realm = globalThis as { [PLACES]?: (string | null)[] },
  warn: (message: string, type: string) => void = (message, type) => process.emitWarning(message, type),
): void {
  realm[PLACES] ??= []
  const places = realm[PLACES]
  const other = places.find((one) => one === null || one !== place)
  places.push(place)
  if (other === undefined) return
  const said = (one: string | null): string => (one === null ? 'in a bundle' : `in ${one}`)
  warn(
    `a second copy of postgrad was loaded in this thread: one is ${said(other)}, the other ${said(place)}. Tensors, modules and workers of one copy are unknown to the other.\n  Remedy: ${remedy}`,
    'POSTGRAD_TWICE',
  )
}
