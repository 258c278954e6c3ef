/** Whether tensors that a collective writes to share elements: one output would overwrite another, and which one would depend on the rank. */
import type { Tensor } from '@postgrad/tensor'

/** The first tensor that has an element in common with an earlier one, and that one: their places in the list, the earlier first. Each tensor's own elements lie apart. */
export function firstOverlap(tensors: readonly Tensor[]): readonly [earlier: number, later: number] | null {
  const byStorage = new Map<object, number[]>()
  for (const [i, { storage, numel }] of tensors.entries()) {
    if (numel === 0) continue
    const others = byStorage.get(storage)
    if (others === undefined) byStorage.set(storage, [i])
    else others.push(i)
  }
  for (const places of byStorage.values()) {
    if (places.length === 1) continue
    const ranges = places.map((i) => rangeOf(tensors[i]!))
    const sorted = ranges.toSorted(([a], [b]) => a - b)
    // Ranges of strided views may meet where elements do not, as those of the columns of a matrix.
    const doRangesMeet = sorted.some(([start], i) => i > 0 && start < sorted[i - 1]![1])
    const found = doRangesMeet ? firstCommon(places, tensors, sorted[0]![0], Math.max(...ranges.map(([, end]) => end))) : null
    if (found !== null) return found
  }
  return null
}

/** The first element, and the one after the last. */
function rangeOf({ shape, strides, offset }: Tensor): readonly [start: number, end: number] {
  return [offset, shape.reduce((last, extent, d) => last + (extent - 1) * strides[d]!, offset) + 1]
}

function firstCommon(places: readonly number[], tensors: readonly Tensor[], start: number, end: number): readonly [number, number] | null {
  /** Of each element the tensor that has it, counted from 1. */
  const owners = new Int32Array(end - start)
  const take = (i: number, view: Tensor, d: number, from: number): number | null => {
    const { shape, strides } = view
    if (d === shape.length) {
      const owner = owners[from - start]!
      owners[from - start] = i + 1
      return owner === 0 ? null : owner - 1
    }
    for (let at = 0, element = from; at < shape[d]!; at++, element += strides[d]!) {
      const owner = take(i, view, d + 1, element)
      if (owner !== null) return owner
    }
    return null
  }
  for (const i of places) {
    const owner = take(i, tensors[i]!, 0, tensors[i]!.offset)
    if (owner !== null) return [owner, i]
  }
  return null
}
