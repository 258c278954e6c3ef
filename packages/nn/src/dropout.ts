/** Zeroes elements at random while training. PyTorch: `torch.nn.Dropout`, `Dropout1d`, `Dropout2d`. */
import { rand, type Tensor } from '@postgrad/tensor'
import { raw, shapeMismatch, shapeText } from '@postgrad/tensor/internal'
import { checkProbability } from './check.js'
import { extraRepr } from './extra-repr.js'
import { Module } from './module.js'

export class Dropout extends Module {
  readonly p: number

  /** @param p probability of a zero. @throws INVALID_ARGUMENT unless 0 ≤ p ≤ 1 */
  constructor(p = 0.5) {
    super()
    checkProbability(new.target.name, 'p', p)
    this.p = p
  }

  /** In training each element is 0 with probability p and x / (1 − p) otherwise, from the scope's generator; in eval x itself. */
  forward(x: Tensor): Tensor {
    return this.training ? zeroedAtRandom(x, this.p) : x
  }

  override extraRepr(): string {
    return extraRepr({ p: this.p })
  }
}

/** Dropout of whole channels: what it zeroes is all of x[n, c]. */
export class Dropout1d extends Dropout {
  /** x [N, C, L] or [C, L]. @throws SHAPE_MISMATCH */
  override forward(x: Tensor): Tensor {
    if (x.ndim !== 2 && x.ndim !== 3) throw wrongRank('Dropout1d', '[N, C, L] or [C, L]', x)
    return this.training ? zeroedAtRandom(x, this.p, [...x.shape.slice(0, -1), 1]) : x
  }
}

/** Dropout of whole channels: what it zeroes is all of x[n, c]. */
export class Dropout2d extends Dropout {
  /** x [N, C, H, W] or [C, H, W]. @throws SHAPE_MISMATCH */
  override forward(x: Tensor): Tensor {
    if (x.ndim !== 3 && x.ndim !== 4) throw wrongRank('Dropout2d', '[N, C, H, W] or [C, H, W]', x)
    return this.training ? zeroedAtRandom(x, this.p, [...x.shape.slice(0, -2), 1, 1]) : x
  }
}

/** Each element 0 with probability p and x / (1 − p) otherwise; one random number for each element of `shape`, which broadcasts to x's. */
export function zeroedAtRandom(x: Tensor, p: number, shape: readonly number[] = x.shape): Tensor {
  if (p === 0) return x
  if (p === 1) return x.mul(0)
  const kept = raw.to(raw.ge(rand(shape), p), x.dtype)
  return x.mul(raw.div(kept, 1 - p))
}

function wrongRank(op: string, expected: string, x: Tensor) {
  return shapeMismatch(op, expected, shapeText(x.shape), 'Use unsqueeze() for missing dimensions, or Dropout for single elements.')
}
