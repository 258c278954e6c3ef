/** Collectives that move tensors and add nothing up: each is one step, in which every rank sends what another will have to that one alone. */
import type { Tensor } from '@postgrad/tensor'
import { type Algorithm, exchange, fromRoot, type Place, toRoot } from '../common/step.js'
import { flat, release, tensorsOf, write } from './parts.js'

/** `root`'s tensors are written into those of all others. */
export function* broadcast(place: Place, op: string, root: number, tensors: readonly Tensor[]): Algorithm<void> {
  const came = yield fromRoot(place, root, () => tensors.map(flat))
  if (place.rank === root) return
  const parts = tensorsOf(came[root], tensors, root)
  for (const [i, part] of parts.entries()) write(op, part, tensors[i]!)
  release(parts)
}

/** What each rank gives is written into the tensors that stand for it at each other: `outs[rank][i]` is like `tensors[i]`. */
export function* allGather(place: Place, op: string, outs: readonly (readonly Tensor[])[], tensors: readonly Tensor[]): Algorithm<void> {
  const own = tensors.map(flat)
  const came = yield exchange(place, () => own)
  for (const [rank, into] of outs.entries()) {
    const parts = rank === place.rank ? own : tensorsOf(came[rank], tensors, rank)
    for (const [i, part] of parts.entries()) write(op, part, into[i]!)
    if (rank !== place.rank) release(parts)
  }
}

/** The same at `root` alone; `outs` are null elsewhere. */
export function* gather(place: Place, op: string, root: number, outs: readonly Tensor[] | null, tensor: Tensor): Algorithm<void> {
  const came = yield toRoot(place, root, () => [flat(tensor)])
  for (const [rank, into] of (outs ?? []).entries()) {
    const parts = rank === place.rank ? [flat(tensor)] : tensorsOf(came[rank], [tensor], rank)
    write(op, parts[0]!, into)
    if (rank !== place.rank) release(parts)
  }
}

/** `root` gives each rank one of its tensors; `tensors` are null elsewhere. */
export function* scatter(place: Place, op: string, root: number, out: Tensor, tensors: readonly Tensor[] | null): Algorithm<void> {
  const came = yield fromRoot(place, root, (to) => [flat(tensors![to]!)])
  const parts = place.rank === root ? [flat(tensors![root]!)] : tensorsOf(came[root], [out], root)
  write(op, parts[0]!, out)
  if (place.rank !== root) release(parts)
}

/** `inputs[s]` goes to rank s, and what comes from rank s is written into `outs[s]`. */
export function* allToAll(place: Place, op: string, outs: readonly Tensor[], inputs: readonly Tensor[]): Algorithm<void> {
  const own = inputs.map(flat)
  const came = yield exchange(place, (to) => [own[to]!])
  // First, since outputs may lie over inputs: all others have left.
  write(op, own[place.rank]!, outs[place.rank]!)
  for (const [rank, out] of outs.entries()) {
    if (rank === place.rank) continue
    const parts = tensorsOf(came[rank], [out], rank)
    write(op, parts[0]!, out)
    release(parts)
  }
}
