/** Steps that the formulas of several optimizers share. They write into their first argument, and never into a gradient. */
import { currentDevice, SparseTensor, type Tensor } from '@postgrad/tensor'
import { raw, withTemporaries } from '@postgrad/tensor/internal'

/** So many elements of the four or five tensors of a step, and of its temporaries, stay in the second-level cache together. */
const PIECE = 8192

/**
 * Runs `formula` on tensors of one shape, of which it writes into some. It must work element by element and keep nothing: large tensors come in pieces, one
 * after the other, so that a formula of ten passes reads memory once, and temporaries go back. No bit depends on the pieces.
 */
export function inPieces(tensors: readonly Tensor[], formula: (...pieces: Tensor[]) => void): void {
  const n = tensors[0]!.numel
  // Other backends compile for each size, and their calls are dear.
  const whole = n <= 2 * PIECE || currentDevice().backend !== 'wasm' || !tensors.every((t) => t.isContiguous && !t.isSparse)
  if (whole) {
    withTemporaries(() => formula(...tensors))
    return
  }
  const flat = tensors.map((t) => raw.reshape(t, [n]))
  for (let at = 0; at < n; at += PIECE) {
    const pieces = flat.map((t) => raw.narrow(t, 0, at, Math.min(PIECE, n - at)))
    withTemporaries(() => formula(...pieces))
  }
}

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
