/** Memory that goes back to the heap as soon as a pass is done with it, and not when it is collected: Note [Who holds a gradient] in `input-buffer.ts`. */
import { currentDevice, type Tensor } from '@postgrad/tensor'
import type { Storage } from '@postgrad/tensor/internal'
import type { Grads } from './hooks.js'

/** Closes a gradient that nobody holds any more. Only blocks of the heap: the collector is as good at what is small. */
export function giveBack(grad: Tensor): void {
  close(grad.storage)
}

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
    if (grad === null || grad === undefined || grad.storage.lease === null) continue
    if (inputs.owns(i) && !isAmong(results, grad.storage)) close(grad.storage)
  }
  // The parts of a sparse gradient are not to be seen from outside.
  if (temporaries === null || results.some((result) => result?.isSparse === true)) return
  for (const storage of temporaries) if (!isAmong(results, storage)) close(storage)
}

function isAmong(results: Grads, storage: Storage): boolean {
  for (let i = 0; i < results.length; i++) if (results[i]?.storage === storage) return true
  return false
}

/** A device that computes late may still have to read it. What is kept belongs to a graph, or is somebody's `.grad`: never so here, unless a row breaks its word. */
function close(storage: Storage): void {
  if (storage.lease !== null && !storage.isKept && currentDevice().synchronous) storage.close()
}
