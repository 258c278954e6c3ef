/** Blocks that go back to the heap before they are collected, where the code that made them knows that nobody holds them any more. */

import { beginTemporaries, endTemporaries, type Storage } from '../heap/storage.js'
import { currentDevice } from './device.js'

/**
 * Closes heap storage that is used up; what is small or managed is left to the collector, which is as good at it. Nothing happens on a device that
 * computes late, which may still have to read it, nor to what belongs to a graph, a leaf, a `.grad` or an optimizer.
 */
export function giveBack(storage: Storage): void {
  if (storage.lease !== null && !storage.isKept && currentDevice().synchronous) storage.close()
}

/** Runs `fn` and gives back all heap storage that it made: it keeps nothing, and what it computes is written into tensors that were there before. */
export function withTemporaries(fn: () => void): void {
  beginTemporaries()
  try {
    fn()
  } finally {
    for (const storage of endTemporaries() ?? []) giveBack(storage)
  }
}
