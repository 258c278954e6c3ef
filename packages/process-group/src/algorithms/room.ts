/**
 * Chooses where a rank writes a result while other ranks may still read its tensors. A tensor that fills its block of the heap gets another block, so nothing is copied only to be
 * written over. For a reduction that is the block of a tensor that came from another process, which nobody else has, or a fresh one. For a tensor that came as it is, it is the block that
 * came, which ranks of one heap share until one of them writes to it. Any other tensor is written in place.
 */
import { Tensor } from '@postgrad/tensor'
import { wrote } from '@postgrad/tensor/internal'
import { run } from './combine.js'
import { flat, write } from './parts.js'

/** Dense, of one dimension, for all elements of `out`. It may be one of the tensors that `came` from other ranks: a reduction reads them before it writes. `settle` follows. */
export function roomFor(out: Tensor, came: readonly Tensor[]): Tensor {
  const { storage, dtype, isContiguous, numel } = out
  if (!isContiguous) return flat(out)
  if (storage.isShared && storage.length === numel) return came.find(isFree) ?? Tensor.uninitialized(dtype, [numel], storage.memory)
  storage.prepareWrite()
  return run(out, 0, numel)
}

/** Fills a block that nobody else can read. */
function isFree({ storage, numel }: Tensor): boolean {
  return storage.kind === 'heap' && !storage.isShared && storage.length === numel
}

/** `room` has the elements of `out`. It is of `roomFor`, or came from another rank, and is not used again. */
export function settle(op: string, out: Tensor, room: Tensor): void {
  const isOwn = room.storage === out.storage
  if (isOwn || (isWhole(out) && isWhole(room) && out.storage.takeOver(room.storage))) wrote(op, out)
  else write(op, room, out)
}

/** It has all elements of its storage, in their order. */
const isWhole = ({ isContiguous, numel, storage }: Tensor): boolean => isContiguous && storage.length === numel
