/** Barriers: collectives of which nothing comes but that all have called them. */
import { type Algorithm, EMPTY, exchange, fromRoot, type Place, toRoot } from '../common/step.js'

/** Each hears from each: whoever is missing is known everywhere. */
export function* barrier(place: Place): Algorithm<void> {
  yield exchange(place, EMPTY)
}

/** Rank 0 hears from each, and then lets all go. */
export function* monitoredBarrier(place: Place): Algorithm<void> {
  yield toRoot(place, 0, EMPTY)
  yield fromRoot(place, 0, EMPTY)
}
