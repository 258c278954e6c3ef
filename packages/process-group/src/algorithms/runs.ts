/** Which ranks reduce slices together: all, or those of each heap, by how many bytes cross from heap to heap. `slices.ts` is the algorithm. */
import type { Place } from '../common/step.js'

/**
 * The ranks, cut into runs of ranks that follow each other. The sum of a slice goes from run to run, since rule ORDER allows nothing to be added up that does not begin
 * with rank 0.
 */
export type Runs = readonly (readonly number[])[]

/** The runs with which fewer bytes leave the busiest heap; if both are equal, one run, which has fewer steps after each other. */
export function runsFor({ heaps }: Pick<Place, 'heaps'>): Runs {
  const one = [heaps.map((_, rank) => rank)]
  const byHeap = runsByHeap(heaps)
  return Math.max(...sharesOut(byHeap, heaps).values()) < Math.max(...sharesOut(one, heaps).values()) ? byHeap : one
}

function runsByHeap(heaps: readonly number[]): number[][] {
  const runs: number[][] = []
  for (const [rank, heap] of heaps.entries()) {
    if (rank > 0 && heaps[rank - 1] === heap) runs.at(-1)!.push(rank)
    else runs.push([rank])
  }
  return runs
}

/** How much leaves each heap, in sizes of what is reduced. */
export function sharesOut(runs: Runs, heaps: readonly number[]): Map<number, number> {
  const out = new Map<number, number>(heaps.map((heap) => [heap, 0]))
  const add = (rank: number, share: number): void => void out.set(heaps[rank]!, out.get(heaps[rank]!)! + share)
  for (const [at, run] of runs.entries()) {
    for (const rank of run) {
      // A slice to each of the others, and the result of its own to each.
      const abroad = run.filter((other) => heaps[other] !== heaps[rank]).length
      add(rank, (2 * abroad) / run.length)
    }
    // The sums so far to the next run, the results to the one before.
    if (at < runs.length - 1) add(run[0]!, 1)
    if (at > 0) add(run[0]!, 1)
  }
  return out
}
