/**
 * Helpers that the layers of RNN, LSTM and GRU share. Such a layer is one node over all steps, for two reasons. A node per step would make a gradient of
 * W_hh's full size at each step and add them up; here the gradients of all gates are gathered, and one product over all steps gives W_hh's. And
 * a layer knows how much memory its steps need, and allocates it at once: a tensor for each small result costs more than the result.
 *
 * Under createGraph the same steps run as recorded operations, which the engine differentiates (`recordedGradients`).
 */
import { grad } from '@postgrad/autograd'
import { Tensor } from '@postgrad/tensor'
import { raw } from '@postgrad/tensor/internal'

/**
 * The states before and after all steps, [T + 1, N, H]: after step t at `after(t)`, before it at `before(t)`, so that those after (and those before) lie
 * together. Going backwards, the initial one is the last.
 */
export class States {
  readonly all: Tensor
  private readonly length: number
  private readonly reverse: boolean

  constructor(all: Tensor, reverse: boolean) {
    this.all = all
    this.length = all.shape[0]! - 1
    this.reverse = reverse
  }

  static from(initial: Tensor, length: number, reverse: boolean): States {
    const states = new States(Tensor.uninitialized(initial.dtype, [length + 1, ...initial.shape], initial.storage.memory), reverse)
    raw.copy_(states.all.select(0, reverse ? length : 0), initial)
    return states
  }

  /** [N, H] */
  before(t: number): Tensor {
    return raw.select(this.all, 0, this.reverse ? t + 1 : t)
  }

  after(t: number): Tensor {
    return raw.select(this.all, 0, this.reverse ? t : t + 1)
  }

  /** [T, N, H], a view */
  get allBefore(): Tensor {
    return raw.narrow(this.all, 0, this.reverse ? 1 : 0, this.length)
  }

  get allAfter(): Tensor {
    return raw.narrow(this.all, 0, this.reverse ? 0 : 1, this.length)
  }

  get last(): Tensor {
    return this.after(this.reverse ? 0 : this.length - 1)
  }
}

/** Steps 0 … length − 1 in the order in which a layer takes them. */
export function stepOrder(length: number, reverse: boolean): number[] {
  return Array.from({ length }, (_, k) => (reverse ? length - 1 - k : k))
}

/** The k-th of the parts of `width` columns that x [N, parts · width] has. */
export function part(x: Tensor, k: number, width: number): Tensor {
  return raw.narrow(x, 1, k * width, width)
}

/** [T · N, width] of [T, N, width] */
export function flatSteps(x: Tensor): Tensor {
  const [length, batch, width] = x.shape as readonly [number, number, number]
  return raw.reshape(x, [length * batch, width])
}

/** Sorts `made`, results in the order in which the steps ran, by the steps' places. */
export function inPlaces(made: readonly Tensor[], order: readonly number[]): Tensor[] {
  const placed = new Array<Tensor>(made.length)
  for (const [k, t] of order.entries()) placed[t] = made[k]!
  return placed
}

/** The gradients of `compute`'s results for its inputs, as recorded operations: for backward under createGraph. */
export function recordedGradients(
  compute: (...inputs: Tensor[]) => readonly Tensor[],
  inputs: readonly Tensor[],
  gradOutputs: readonly Tensor[],
): (Tensor | null)[] {
  const wanted = inputs.filter((input) => input.requiresGrad)
  const found = grad(compute(...inputs), wanted, { gradOutputs, createGraph: true, allowUnused: true })
  return inputs.map((input) => (input.requiresGrad ? found[wanted.indexOf(input)]! : null))
}
