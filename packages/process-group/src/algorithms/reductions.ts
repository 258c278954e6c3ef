/** Reductions with the result on one rank, or in parts on all. Rule ORDER in `combine.ts`. */
import type { Tensor } from '@postgrad/tensor'
import { wrote } from '@postgrad/tensor/internal'
import { type Algorithm, exchange, type Place, toRoot } from '../common/step.js'
import { combine, run } from './combine.js'
import { flat, release, tensorsOf, write } from './parts.js'
import type { ReduceName } from './reduce-op.js'

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
  intoOne(op, name, parts, out)
  release(parts.filter((_, from) => from !== rank))
}

/** `parts` by rank; one of them may be `out` itself. */
export function intoOne(op: string, name: ReduceName, parts: readonly Tensor[], out: Tensor): void {
  if (!out.isContiguous) {
    const result = flat(out)
    combine(name, parts, result)
    write(op, result, out)
    return
  }
  out.storage.prepareWrite()
  combine(name, parts, run(out, 0, out.numel))
  wrote(op, out)
}
