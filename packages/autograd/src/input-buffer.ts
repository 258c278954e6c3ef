/**
 * The gradients that have arrived for one node in one pass, one slot per forward output, summed as they come.
 *
 *     slot 0   g1            held, perhaps by others too: the next sum makes a new tensor
 *     slot 1   g2 + g3       owned: made here, so the next one is added in place
 *     slot 2   null          nothing has come
 *
 * PyTorch: `torch/csrc/autograd/input_buffer.h`, where the reference count says who else holds a gradient; here the sender must say.
 */
import type { Tensor } from '@postgrad/tensor'
import { raw } from '@postgrad/tensor/internal'

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
   * (`exclusive`: nobody else holds it). Never writes into `grad`.
   */
  add(slot: number, grad: Tensor, exclusive = false): void {
    const held = this.grads[slot]
    const bit = slot < OWNABLE_SLOTS ? 1 << slot : 0
    if (held === null || held === undefined) {
      this.grads[slot] = grad
      if (exclusive) this.owned |= bit
    } else if (held.requiresGrad || grad.requiresGrad) {
      // createGraph: the sum is itself an operation to be differentiated.
      this.grads[slot] = held.add(grad)
      this.owned &= ~bit
    } else if ((this.owned & bit) !== 0 && held.isContiguous && held.dtype === grad.dtype) {
      raw.add_(held, grad)
    } else {
      this.grads[slot] = raw.add(held, grad)
      this.owned |= bit
    }
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
