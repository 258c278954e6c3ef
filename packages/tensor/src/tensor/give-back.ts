/** Gives memory back before it is collected, where the code that made it knows that nobody holds it any more. */

import { beginTemporaries, endTemporaries, type Storage } from '../heap/storage.js'

/**
 * Closes storage of the heap or of a device that is used up; what is small or managed is left to the collector, which is as good at it. Nothing happens to
 * what belongs to a graph, a leaf, a `.grad` or an optimizer.
 */
export function giveBack(storage: Storage): void {
  if (!storage.isNeeded && storage.isLeased) storage.close()
}

/** Runs `fn` and gives back what the heap or a device gave it: it keeps nothing, and what it computes is written into tensors that were there before. */
export function withTemporaries(fn: () => void): void {
  beginTemporaries()
  try {
    fn()
  } finally {
    for (const storage of endTemporaries() ?? []) giveBack(storage)
  }
}
