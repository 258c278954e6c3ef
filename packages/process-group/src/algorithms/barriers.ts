/** Barriers: collectives whose only result is that all ranks have called them. */
import { type Algorithm, EMPTY, exchange, fromRoot, type Place, toRoot } from '../common/step.js'

/** Each rank sends to each other: all know which are missing. */
export function* barrier(place: Place): Algorithm<void> {
  yield exchange(place, EMPTY)
}

/** Each rank sends to rank 0, which answers all. */
export function* monitoredBarrier(place: Place): Algorithm<void> {
  yield toRoot(place, 0, EMPTY)
  yield fromRoot(place, 0, EMPTY)
}
