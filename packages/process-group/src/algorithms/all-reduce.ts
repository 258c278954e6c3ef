/**
 * allReduce, in three ways with the same bits (rule ORDER in `combine.ts`), by the number of ranks and the size.
 *
 *     one step    each rank sends its tensor to each other, and all compute the same
 *     by a root   one gets all tensors, reduces, and sends the result to all: the fewest messages, so the fewest threads to be woken
 *     by slices   rank s gets slice s of all others and reduces it, then each sends its slice to all, and all say that they have read: the work is shared
 *
 * Note [Slices that are lent]
 *
 * Within a process a message names the block where a slice lies, and its bytes are not copied. So that a rank may write slices into its own tensor while others still
 * hold its block, nobody reads a slice that another writes: slice s of a rank is read by rank s alone until the second step, and written by that rank alone from when
 * rank s has sent its part of the second step. Before the first step the block is nobody else's (`prepareWrite`); afterwards writes go past the copy that
 * a block in other hands would cost. The third step comes behind what says that the blocks were read: who writes to its tensor after the collective finds it its own.
 */
import type { Tensor } from '@postgrad/tensor'
import { copyInto, wrote } from '@postgrad/tensor/internal'
import type { Algorithm, Place } from '../common/step.js'
import { EMPTY, exchange } from '../common/step.js'
import { combine, run } from './combine.js'
import { broadcast } from './moves.js'
import { flat, release, tensorsOf, write } from './parts.js'
import type { ReduceName } from './reduce-op.js'
import { intoOne, reduce } from './reductions.js'

/** Who adds up where one does. */
const ROOT = 0
/** Waking all by all costs more than a second step, from so many on. Measured on two cores. */
const MANY_RANKS = 6

/** Slices begin at multiples of so many elements: whole lines of a cache. */
const ALIGNED = 16

/** Where slice `index` of `size` begins, and how long it is. */
export function sliceOf(numel: number, index: number, size: number): readonly [start: number, length: number] {
  const each = Math.ceil(numel / size / ALIGNED) * ALIGNED
  const start = Math.min(numel, index * each)
  return [start, Math.min(numel, start + each) - start]
}

export function* allReduce(place: Place, op: string, name: ReduceName, tensors: readonly Tensor[], bytes: number): Algorithm<void> {
  const { size, limits } = place
  if (size < MANY_RANKS && bytes * (size - 1) <= limits.oneStepBytes) yield* inOneStep(place, op, name, tensors)
  else if (bytes * size <= limits.rootBytes) yield* byRoot(place, op, name, tensors)
  else yield* bySlices(place, op, name, tensors)
}

function* byRoot(place: Place, op: string, name: ReduceName, tensors: readonly Tensor[]): Algorithm<void> {
  yield* reduce(place, op, name, ROOT, tensors)
  yield* broadcast(place, op, ROOT, tensors)
}

function* inOneStep(place: Place, op: string, name: ReduceName, tensors: readonly Tensor[]): Algorithm<void> {
  const own = tensors.map(flat)
  const came = (yield exchange(place, () => own)).map((values, rank) => (rank === place.rank ? own : tensorsOf(values, own, rank)))
  if (place.size === 1) came.push(own)
  for (const [i, out] of tensors.entries()) {
    intoOne(
      op,
      name,
      came.map((each) => each[i]!),
      out,
    )
  }
  for (const [rank, parts] of came.entries()) if (rank !== place.rank) release(parts)
}

function* bySlices(place: Place, op: string, name: ReduceName, tensors: readonly Tensor[]): Algorithm<void> {
  const { rank, size } = place
  const own = tensors.map(flat)
  for (const { storage } of own) storage.prepareWrite()
  const slices = (of: number): Tensor[] => own.map((each) => run(each, ...sliceOf(each.numel, of, size)))
  const mine = slices(rank)
  const came = (yield exchange(place, slices)).map((values, from) => (from === rank ? mine : tensorsOf(values, mine, from)))
  for (const [i, into] of mine.entries()) {
    combine(
      name,
      came.map((each) => each[i]!),
      into,
    )
  }
  for (const [from, parts] of came.entries()) if (from !== rank) release(parts)
  const reduced = yield exchange(place, () => mine)
  for (const [from, values] of reduced.entries()) {
    if (from === rank) continue
    const into = slices(from)
    const parts = tensorsOf(values, into, from)
    for (const [i, part] of parts.entries()) copyInto(part, into[i]!)
    release(parts)
  }
  for (const [i, out] of tensors.entries()) {
    if (own[i]!.storage === out.storage) wrote(op, out)
    else write(op, own[i]!, out)
  }
  yield exchange(place, EMPTY)
}
