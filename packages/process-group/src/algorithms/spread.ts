/**
 * Sends tensors of some ranks to all others: one rank's in a broadcast, each rank's in an all-gather. Small tensors go from each to each. Of a large one each heap gets one copy; a rank of that
 * heap, the relay, gives the others the block:
 *
 *     heap of the root    root ──block──▸ its neighbours
 *                           └───bytes──▸ relay ──block──▸ its neighbours    in each other heap
 */
import type { Tensor } from '@postgrad/tensor'
import type { Values } from '../common/protocol.js'
import type { Algorithm, Place, Sent } from '../common/step.js'
import { bytesOf, flat, release, tensorsOf } from './parts.js'

/**
 * @param roots whose tensors they are; in order
 * @param tensorsAt those of a root: what this rank gives if it is the root, else tensors like those that come
 * @param take what has come from a root; its blocks go back afterwards
 */
export function* spread(
  place: Place,
  roots: readonly number[],
  tensorsAt: (root: number) => readonly Tensor[],
  take: (root: number, parts: readonly Tensor[]) => void,
): Algorithm<void> {
  const { rank, size } = place
  const giver = giversFor(place, bytesOf(tensorsAt(roots[0]!)))
  /** Whose tensors `from` gives `to`. */
  const given = (from: number, to: number): number[] => roots.filter((root) => root !== to && giver(root, to) === from)
  const came = new Map<number, readonly Tensor[]>()
  if (roots.includes(rank)) came.set(rank, tensorsAt(rank).map(flat))

  // First the roots' own, then what relays have got of those.
  for (const isRelayed of [false, true]) {
    const isDue = (root: number, from: number): boolean => (root !== from) === isRelayed
    const send: Sent[] = []
    const from: number[] = []
    for (let other = 0; other < size; other++) {
      if (other === rank) continue
      const mine = given(rank, other).filter((root) => isDue(root, rank))
      if (mine.length > 0) send.push([other, mine.flatMap((root) => came.get(root)!)])
      if (given(other, rank).some((root) => isDue(root, other))) from.push(other)
    }
    const received = yield { send, from }
    for (const other of from) {
      const theirs = given(other, rank).filter((root) => isDue(root, other))
      const counts = theirs.map((root) => tensorsAt(root).length)
      const parts = tensorsOf(received[other] as Values, theirs.flatMap(tensorsAt), other)
      for (const [i, root] of theirs.entries()) {
        const start = counts.slice(0, i).reduce((sum, count) => sum + count, 0)
        came.set(root, parts.slice(start, start + counts[i]!))
      }
    }
  }
  for (const [root, parts] of came) {
    take(root, parts)
    if (root !== rank) release(parts)
  }
}

/** From whom a rank gets the tensors of a root. */
function giversFor({ heaps, limits }: Place, bytes: number): (root: number, to: number) => number {
  if (bytes <= limits.oneStepBytes) return (root) => root
  const members = new Map<number, number[]>()
  for (const [rank, heap] of heaps.entries()) members.set(heap, [...(members.get(heap) ?? []), rank])
  return (root, to) => {
    if (heaps[root] === heaps[to]) return root
    const near = members.get(heaps[to]!)!
    // Each root has another, so that all take part.
    const relay = near[root % near.length]!
    return relay === to ? root : relay
  }
}
