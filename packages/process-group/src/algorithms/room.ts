/**
 * Chooses where a rank writes a reduction while other ranks may still read its tensors: `all-reduce.ts` sends them before it reduces them. A tensor that fills its block of the heap
 * gets another block, so nothing is copied only to be written over: the block of a tensor that came from another process, which nobody else has, or a fresh one. Any other
 * tensor is written in place.
 */
import { Tensor } from '@postgrad/tensor'
import { wrote } from '@postgrad/tensor/internal'
import { run } from './combine.js'
import { flat, write } from './parts.js'

/** Dense, of one dimension, for all elements of `out`; it may be one of `parts`, which are read before they are written. `settle` follows. */
export function roomFor(out: Tensor, parts: readonly Tensor[]): Tensor {
  const { storage, dtype, isContiguous, numel } = out
  if (!isContiguous) return flat(out)
  if (storage.isShared && storage.length === numel) return parts.find(isFree) ?? Tensor.uninitialized(dtype, [numel], storage.memory)
  storage.prepareWrite()
  return run(out, 0, numel)
}

/** Fills a block that nobody else can read. */
function isFree({ storage, numel }: Tensor): boolean {
  return storage.kind === 'heap' && !storage.isShared && storage.length === numel
}

/** `room` has the elements of `out`. */
export function settle(op: string, out: Tensor, room: Tensor): void {
  const isOwn = room.storage === out.storage
  if (isOwn || (out.isContiguous && out.storage.takeOver(room.storage))) wrote(op, out)
  else write(op, room, out)
}
