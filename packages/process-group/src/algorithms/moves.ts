/** Collectives that move tensors and add nothing up. Tensors for one rank take one step; tensors for all ranks are spread (`spread.ts`). */
import type { Tensor } from '@postgrad/tensor'
import { raw } from '@postgrad/tensor/internal'
import { type Algorithm, exchange, fromRoot, type Place, toRoot } from '../common/step.js'
import { flat, release, tensorsOf, write } from './parts.js'
import { settle } from './room.js'
import { spread } from './spread.js'

/** `root`'s tensors are written into those of all others. */
export function* broadcast(place: Place, op: string, root: number, tensors: readonly Tensor[]): Algorithm<void> {
  const take = (_root: number, parts: readonly Tensor[]): void => {
    if (place.rank !== root) for (const [i, part] of parts.entries()) settle(op, tensors[i]!, part)
  }
  yield* spread(place, [root], () => tensors, take)
}

/** Each rank's tensors are written into its outputs at every rank: `outs[rank][i]` is like `tensors[i]`. */
export function* allGather(place: Place, op: string, outs: readonly (readonly Tensor[])[], tensors: readonly Tensor[]): Algorithm<void> {
  const take = (root: number, parts: readonly Tensor[]): void => {
    const into = outs[root]!
    // An output of this rank's own tensors may be another of them, which is not written yet.
    const isRead = (part: Tensor, i: number): boolean =>
      root === place.rank && into.some(({ storage }, k) => k < i && storage === part.storage)
    const apart = parts.map((part, i) => (isRead(part, i) ? raw.clone(part) : part))
    for (const [i, part] of apart.entries()) {
      if (root === place.rank) write(op, part, into[i]!)
      else settle(op, into[i]!, part)
    }
  }
  yield* spread(place, [...outs.keys()], () => tensors, take)
}

/** The same at `root` alone; `outs` are null elsewhere. */
export function* gather(place: Place, op: string, root: number, outs: readonly Tensor[] | null, tensor: Tensor): Algorithm<void> {
  const came = yield toRoot(place, root, () => [flat(tensor)])
  if (outs === null) return
  // First, since an output for another rank may lie over the tensor.
  write(op, flat(tensor), outs[root]!)
  for (const [rank, into] of outs.entries()) {
    if (rank === root) continue
    const parts = tensorsOf(came[rank], [tensor], rank)
    settle(op, into, parts[0]!)
    release(parts)
  }
}

/** `root` gives each rank one of its tensors; `tensors` are null elsewhere. */
export function* scatter(place: Place, op: string, root: number, out: Tensor, tensors: readonly Tensor[] | null): Algorithm<void> {
  const came = yield fromRoot(place, root, (to) => [flat(tensors![to]!)])
  if (place.rank === root) {
    write(op, flat(tensors![root]!), out)
    return
  }
  const parts = tensorsOf(came[root], [out], root)
  settle(op, out, parts[0]!)
  release(parts)
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
    settle(op, out, parts[0]!)
    release(parts)
  }
}
