/** Steps that the formulas of several optimizers share. They write into their first argument, and never into a gradient. */
import { SparseTensor, type Tensor } from '@postgrad/tensor'
import { raw } from '@postgrad/tensor/internal'

/** The direction to go down: the gradient (negated to maximize) plus weightDecay · p. The gradient itself when there is nothing to add. */
export function direction(p: Tensor, grad: Tensor, maximize: boolean, weightDecay: number): Tensor {
  if (weightDecay === 0) return maximize ? raw.neg(grad) : grad
  return raw.add_(maximize ? raw.neg(grad) : raw.clone(grad), p, weightDecay)
}

/** average ← rate · average + (1 − rate) · x */
export function decay_(average: Tensor, x: Tensor, rate: number): Tensor {
  return raw.add_(raw.mul_(average, rate), x, 1 - rate)
}

/** average ← rate · average + (1 − rate) · x² */
export function decaySquare_(average: Tensor, x: Tensor, rate: number): Tensor {
  return raw.add_(raw.mul_(average, rate), raw.mul(x, x), 1 - rate)
}

/** x ← x + scale · a / b */
export function addQuotient_(x: Tensor, a: Tensor, b: Tensor, scale: number): Tensor {
  return raw.add_(x, raw.div(a, b), scale)
}

/** √x + eps, a new tensor. */
export function rootPlus(x: Tensor, eps: number): Tensor {
  return raw.add_(raw.sqrt(x), eps)
}

/** Other values in the rows of `rows`, which are coalesced. */
export function rowsLike(rows: SparseTensor, values: Tensor): SparseTensor {
  return new SparseTensor(rows.indices(), values, rows.shape, true)
}
