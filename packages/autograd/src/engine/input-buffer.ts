/**
 * The gradients that have arrived for one node in one pass, one slot per forward output, summed as they come.
 *
 *     slot 0   g1            held, perhaps by others too: the next sum makes a new tensor
 *     slot 1   g2 + g3       owned: made here, so the next one is added in place
 *     slot 2   null          nothing has come
 *
 * A gradient that is still a step of a chain is not added to in place, since that would compute it: the sum is a further step.
 *
 * PyTorch: `torch/csrc/autograd/input_buffer.h`, where a reference count shows a gradient's other holders; here the sender must say.
 *
 * Note [Who holds a gradient]
 * A gradient is held by the buffer of the node that it waits for, then by the node task, then by nobody of the engine's: `take` hands it to the hooks and
 * to `apply`, and `run` in `engine.ts` forgets it. Others may hold it as well:
 *   - the caller of the pass, who gave the roots' gradients;
 *   - hooks, and `apply` of nodes that are not `returnsFresh` (users' code, which may keep what it sees);
 *   - under createGraph the nodes that the formulas record;
 *   - `task.captured` and the sink, where it ends;
 *   - the buffers of other nodes, where one gradient went to several (both arguments of an addition).
 * `exclusive` and `owned` mean that none of these does: the tensor and its storage are the receiver's alone. It may then be added to in place, kept as
 * `.grad` without a copy, passed on as exclusive if it leaves the node through one edge only, or given back to the heap once it has been added to
 * another, or when `apply` has returned and no result shares its storage: at the end of `run`, where the temporaries of a formula, which are its own and
 * never leave it, go back as well (`give-back.ts`). User code in the middle of a formula is a checkpoint's function; its tensors are not temporaries.
 */
import type { Tensor } from '@postgrad/tensor'
import { giveBack, isPending, raw, sumOfSparse } from '@postgrad/tensor/internal'
import { operations } from '../graph/recorded.js'

/** A gradient that arrives. */
export interface Contribution {
  readonly grad: Tensor
  /** Nobody else holds it. */
  readonly exclusive: boolean
}

/** Slots beyond the bits of a small integer are simply never owned. */
const OWNABLE_SLOTS = 30

export class InputBuffer {
  private readonly grads: (Tensor | null)[]
  private owned = 0

  constructor(slots: number) {
    this.grads = slots === 1 ? [null] : new Array<Tensor | null>(slots).fill(null)
  }

  /**
   * Adds `grad` to what the slot holds. Out of place, unless the buffer made the sum itself or was given the first part for its own
   * (`exclusive`: nobody else holds it). Never writes into `grad`, but gives it back if it is exclusive and has been added.
   * With `commutes` the sum must be the same if `grad` had come first: elements do that by themselves, sparse rows are coalesced.
   */
  add(slot: number, grad: Tensor, exclusive = false, commutes = false): void {
    const held = this.grads[slot]
    const bit = slot < OWNABLE_SLOTS ? 1 << slot : 0
    if (held === null || held === undefined) {
      this.grads[slot] = grad
      if (exclusive) this.owned |= bit
    } else if (held.isSparse || grad.isSparse) {
      this.grads[slot] = commutes ? operations.orderedSum([held, grad]) : sumOfSparse(held, grad)
      this.owned |= bit
    } else if (held.requiresGrad || grad.requiresGrad) {
      // createGraph: the sum is itself an operation to be differentiated.
      this.grads[slot] = held.add(grad)
      this.owned &= ~bit
    } else if ((this.owned & bit) !== 0 && held.isContiguous && held.dtype === grad.dtype && !isPending(held) && !isPending(grad)) {
      raw.add_(held, grad)
      if (exclusive) giveBack(grad.storage)
    } else {
      this.grads[slot] = raw.add(held, grad)
      if ((this.owned & bit) !== 0) giveBack(held.storage)
      if (exclusive) giveBack(grad.storage)
      this.owned |= bit
    }
  }

  /** Adds several at once, which have no order: the sum is the same if they had come in another one. */
  addAll(slot: number, contributions: readonly Contribution[]): void {
    const held = this.grads[slot] ?? null
    if (contributions.length + Number(held !== null) <= 2) {
      for (const { grad, exclusive } of contributions) this.add(slot, grad, exclusive, contributions.length > 1)
      return
    }
    const grads = contributions.map(({ grad }) => grad)
    const sum = operations.orderedSum(held === null ? grads : [held, ...grads], held === null ? 0 : 1)
    this.grads[slot] = sum
    const bit = slot < OWNABLE_SLOTS ? 1 << slot : 0
    if (sum.requiresGrad) {
      this.owned &= ~bit
      return
    }
    if (held !== null && (this.owned & bit) !== 0) giveBack(held.storage)
    for (const { grad, exclusive } of contributions) if (exclusive) giveBack(grad.storage)
    this.owned |= bit
  }

  /** Whether nobody else holds the gradient in `slot`. */
  owns(slot: number): boolean {
    return slot < OWNABLE_SLOTS && (this.owned & (1 << slot)) !== 0
  }

  /** The sums, null where nothing came. The buffer must not be used afterwards. */
  take(): (Tensor | null)[] {
    return this.grads
  }
}
