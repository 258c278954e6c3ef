/** Collectives of values that travel as arguments of calls do. */
import { type Algorithm, exchange, fromRoot, type Place, toRoot } from '../common/step.js'

/** All ranks' values, by rank. */
export function* allGatherValues(place: Place, value: unknown): Algorithm<unknown[]> {
  const came = yield exchange(place, () => [value])
  return Array.from({ length: place.size }, (_, rank) => (rank === place.rank ? value : came[rank]?.[0]))
}

/** The same at `root`; null elsewhere. */
export function* gatherValues(place: Place, root: number, value: unknown): Algorithm<unknown[] | null> {
  const came = yield toRoot(place, root, () => [value])
  if (place.rank !== root) return null
  return Array.from({ length: place.size }, (_, rank) => (rank === root ? value : came[rank]?.[0]))
}

/** `root`'s values, on all. */
export function* broadcastValues(place: Place, root: number, values: readonly unknown[]): Algorithm<readonly unknown[]> {
  const came = yield fromRoot(place, root, () => [values])
  if (place.rank === root) return values
  const [list] = came[root] ?? []
  return Array.isArray(list) ? list : []
}

/** `root`'s value number r, on rank r. */
export function* scatterValues(place: Place, root: number, values: readonly unknown[] | null): Algorithm<unknown> {
  const came = yield fromRoot(place, root, (to) => [values![to]])
  return place.rank === root ? values![root] : came[root]?.[0]
}
