/** Memory that goes back as soon as a pass is done with it, and not when it is collected: Note [Who holds a gradient] in `input-buffer.ts`. */
import { giveBack, type Storage } from '@postgrad/tensor/internal'
import type { Grads } from './hooks.js'

/** Which of the gradients are nobody else's: an InputBuffer, above this file. */
interface Owner {
  owns(slot: number): boolean
}

/**
 * What a node has used up: gradients that were its alone, and what its formulas made for themselves. What a result shares its storage with goes on.
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
