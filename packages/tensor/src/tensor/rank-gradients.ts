/**
 * Gradients that one rank has gathered alone, of a model that several ranks train: those of `noSync`, and of a forward of the bare module. Replicas that stepped by them would go apart, so every
 * optimizer refuses them. `parallel` enters a gradient here; its reduction, or a collective that makes the gradient alike on all ranks, takes it out.
 */
import type { Tensor } from './tensor.js'

/** By the memory, since a collective may be given a view; sparse gradients are never written to. */
const ALONE = new WeakSet<object>()

const keyOf = (grad: Tensor): object => (grad.isSparse ? grad : grad.storage)

/** This rank alone has gathered it. */
export function markAlone(grad: Tensor): void {
  ALONE.add(keyOf(grad))
}

/** Other ranks have the same, or will have before the call ends that this belongs to. */
export function markShared(grad: Tensor): void {
  ALONE.delete(keyOf(grad))
}

/** Whether this rank alone has gathered it. */
export function isAlone(grad: Tensor): boolean {
  return ALONE.has(keyOf(grad))
}
