/** Reductions with the result on one rank, or in parts on all. Rule ORDER in `combine.ts`. */
import type { Tensor } from '@postgrad/tensor'
import { type Algorithm, exchange, type Place, toRoot } from '../common/step.js'
import { combine } from './combine.js'
import { flat, release, tensorsOf } from './parts.js'
import type { ReduceName } from './reduce-op.js'
import { roomFor, settle } from './room.js'

/** The result is written into `root`'s tensors; those of others stay as they are. */
export function* reduce(place: Place, op: string, name: ReduceName, root: number, tensors: readonly Tensor[]): Algorithm<void> {
  const { rank, size } = place
  const came = yield toRoot(place, root, () => tensors.map(flat))
  if (rank !== root) return
  const parts = Array.from({ length: size }, (_, from) => (from === rank ? tensors.map(flat) : tensorsOf(came[from], tensors, from)))
  for (const [i, out] of tensors.entries()) {
    intoOne(
      op,
      name,
      parts.map((each) => each[i]!),
      rank,
      out,
    )
  }
  for (const [from, each] of parts.entries()) if (from !== rank) release(each)
}

/** `inputs[s]` of all ranks is reduced on rank s, into its `out`. */
export function* reduceScatter(place: Place, op: string, name: ReduceName, out: Tensor, inputs: readonly Tensor[]): Algorithm<void> {
  const { rank, size } = place
  const own = inputs.map(flat)
  const came = yield exchange(place, (to) => [own[to]!])
  const parts = Array.from({ length: size }, (_, from) => (from === rank ? own[rank]! : tensorsOf(came[from], [out], from)[0]!))
  intoOne(op, name, parts, rank, out)
  release(parts.filter((_, from) => from !== rank))
}

/** `parts` by rank; that of this one may be `out` itself. */
export function intoOne(op: string, name: ReduceName, parts: readonly Tensor[], rank: number, out: Tensor): void {
  const into = roomFor(out, parts.toSpliced(rank, 1))
  combine(name, parts, into)
  settle(op, out, into)
}
