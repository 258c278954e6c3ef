/**
 * allReduce, in three ways with the same bits (rule ORDER in `combine.ts`), by the number of ranks and the size.
 *
 *     one step    each rank sends its tensor to each other, and all compute the same. For two ranks apart no way has fewer bytes
 *     by a root   one gets all tensors, reduces, and sends the result to all: the fewest messages, so the fewest threads to be woken
 *     by slices   each rank reduces a slice (`slices.ts`): the fewest bytes, and the work is shared
 */
import type { Tensor } from '@postgrad/tensor'
import type { Algorithm, Place } from '../common/step.js'
import { exchange } from '../common/step.js'
import { broadcast } from './moves.js'
import { bytesOf, flat, release, tensorsOf } from './parts.js'
import type { ReduceName } from './reduce-op.js'
import { intoOne, reduce } from './reductions.js'
import { runsFor } from './runs.js'
import { bySlices } from './slices.js'

/** It adds up, if one does. */
const ROOT = 0
/** Waking all by all costs more than a second step, from so many on: 20 messages of five ranks, and 8 by a root. Measured on two cores. */
const MANY_RANKS = 5

export function* allReduce(place: Place, op: string, name: ReduceName, tensors: readonly Tensor[]): Algorithm<void> {
  const { size, limits } = place
  const bytes = bytesOf(tensors)
  if (size < MANY_RANKS && bytes * (size - 1) <= limits.oneStepBytes) yield* inOneStep(place, op, name, tensors)
  else if (bytes * size <= limits.rootBytes) yield* byRoot(place, op, name, tensors)
  else yield* bySlices(place, op, name, tensors, runsFor(place))
}

function* byRoot(place: Place, op: string, name: ReduceName, tensors: readonly Tensor[]): Algorithm<void> {
  yield* reduce(place, op, name, ROOT, tensors)
  yield* broadcast(place, op, ROOT, tensors)
}

function* inOneStep(place: Place, op: string, name: ReduceName, tensors: readonly Tensor[]): Algorithm<void> {
  const { rank, size } = place
  const own = tensors.map(flat)
  const received = yield exchange(place, () => own)
  const came = Array.from({ length: size }, (_, at) => (at === rank ? own : tensorsOf(received[at], own, at)))
  for (const [i, out] of tensors.entries()) {
    const parts = came.map((each) => each[i]!)
    intoOne(op, name, parts, rank, out)
  }
  for (const [at, parts] of came.entries()) if (at !== rank) release(parts)
}
