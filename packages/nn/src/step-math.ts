/** What the layers of RNN, LSTM and GRU compute with in their loops over steps. */
import { add_, isGradEnabled } from '@postgrad/autograd'
import type { Tensor } from '@postgrad/tensor'

/** x + y, in x where the sum need not be recorded: x was made just before and has no other reader. */
export function into(x: Tensor, y: Tensor): Tensor {
  return isGradEnabled() ? x.add(y) : add_(x, y)
}

/** grad σ'(x), where s = σ(x). */
export function timesSigmoidSlope(grad: Tensor, s: Tensor): Tensor {
  const gradS = grad.mul(s)
  return gradS.sub(gradS.mul(s))
}

/** grad tanh'(x), where t = tanh(x). */
export function timesTanhSlope(grad: Tensor, t: Tensor): Tensor {
  return grad.sub(grad.mul(t).mul(t))
}

/** Places 0 … length − 1 in the order in which a layer goes through them. */
export function stepOrder(length: number, reverse: boolean): number[] {
  return Array.from({ length }, (_, k) => (reverse ? length - 1 - k : k))
}

/** [length · batch, width] of [length, batch, width] */
export function flatSteps(x: Tensor): Tensor {
  const [length, batch, width] = x.shape as readonly [number, number, number]
  return x.reshape([length * batch, width])
}

/** `made[k]` at place order[k]. */
export function inPlaces(made: readonly Tensor[], order: readonly number[]): Tensor[] {
  const placed = new Array<Tensor>(made.length)
  for (const [k, place] of order.entries()) placed[place] = made[k]!
  return placed
}
