/** Gives memory back to the heap when a pass is done with it, before it is collected: Note [Who holds a gradient] in `input-buffer.ts`. */
import { giveBack, type Storage } from '@postgrad/tensor/internal'
import type { Grads } from './hooks.js'

/** An InputBuffer: it knows which gradients nobody else holds. */
interface Owner {
  owns(slot: number): boolean
}

/**
 * Gives back the memory that a node has used up: gradients that only it held, and its formulas' temporaries, unless a result shares it.
 * @param temporaries that `apply` has made; its results may be among them
 */
export function giveBackUsed(grads: Grads, inputs: Owner, results: Grads, temporaries: readonly Storage[] | null): void {
  for (let i = 0; i < grads.length; i++) {
    const grad = grads[i]
    if (grad === null || grad === undefined || !grad.storage.isLeased) continue
    if (inputs.owns(i) && !isAmong(results, grad.storage)) giveBack(grad.storage)
  }
  // The parts of a sparse gradient are not to be seen from outside.
  if (temporaries === null || results.some((result) => result?.isSparse === true)) return
  for (const storage of temporaries) if (!isAmong(results, storage)) giveBack(storage)
}

function isAmong(results: Grads, storage: Storage): boolean {
  for (let i = 0; i < results.length; i++) if (results[i]?.storage === storage) return true
  return false
}
