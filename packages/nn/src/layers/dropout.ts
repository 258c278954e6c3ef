/** Zeroes elements at random while training. PyTorch: `torch.nn.Dropout`, `Dropout1d`, `Dropout2d`. */
import { dropout } from '@postgrad/autograd'
import { ones, type Tensor } from '@postgrad/tensor'
import { shapeMismatch, shapeText } from '@postgrad/tensor/internal'
import { checkProbability } from '../module/check.js'
import { extraRepr } from '../module/extra-repr.js'
import { Module } from '../module/module.js'

/**
 * In training, each element becomes 0 with probability p (default 0.5), and the others become x / (1 − p). PyTorch: `torch.nn.Dropout`.
 * @example
 * const dropout = new Dropout(0.25)
 * dropout.forward(ones([1000])) // about 250 zeros; the other elements are 1.3333
 * dropout.eval().forward(ones([3])) // [1, 1, 1]
 */
export class Dropout extends Module {
  /** The probability that an element becomes 0. */
  readonly p: number

  /** @param p the probability that an element becomes 0 @throws INVALID_ARGUMENT if p is not from 0 to 1 */
  constructor(p = 0.5) {
    super()
    checkProbability(new.target.name, 'p', p)
    this.p = p
  }

  /** x of any shape → the same shape. In training, random numbers come from the generator of the scope. In eval mode it returns x itself. */
  forward(x: Tensor): Tensor {
    return dropout(x, this.p, { training: this.training })
  }

  override extraRepr(): string {
    return extraRepr({ p: this.p })
  }
}

/**
 * Dropout of whole channels: all elements of x[n, c] become 0 together. PyTorch: `torch.nn.Dropout1d`.
 * @example new Dropout1d(0.5).forward(ones([2, 4, 3])) // each of the 2 × 4 rows is [0, 0, 0] or [2, 2, 2]
 */
export class Dropout1d extends Dropout {
  /** x [N, C, L] or [C, L] → the same shape. @throws SHAPE_MISMATCH if x does not have this shape */
  override forward(x: Tensor): Tensor {
    if (x.ndim !== 2 && x.ndim !== 3) throw wrongRank('Dropout1d', '[N, C, L] or [C, L]', x)
    return wholeChannels(this, x, [...x.shape.slice(0, -1), 1])
  }
}

/**
 * Dropout of whole channels: all elements of x[n, c] become 0 together. PyTorch: `torch.nn.Dropout2d`.
 * @example new Dropout2d(0.5).forward(ones([2, 4, 3, 3])) // each of the 2 × 4 images is all 0 or all 2
 */
export class Dropout2d extends Dropout {
  /** x [N, C, H, W] or [C, H, W] → the same shape. @throws SHAPE_MISMATCH if x does not have this shape */
  override forward(x: Tensor): Tensor {
    if (x.ndim !== 3 && x.ndim !== 4) throw wrongRank('Dropout2d', '[N, C, H, W] or [C, H, W]', x)
    return wholeChannels(this, x, [...x.shape.slice(0, -2), 1, 1])
  }
}

/** x times a factor per channel, 0 or 1 / (1 − p): what dropout makes of ones. */
function wholeChannels({ training, p }: Dropout, x: Tensor, channels: readonly number[]): Tensor {
  return training && p > 0 ? x.mul(dropout(ones(channels, { dtype: x.dtype, device: x.device }), p)) : x
}

function wrongRank(op: string, expected: string, x: Tensor) {
  return shapeMismatch(op, expected, shapeText(x.shape), 'Use unsqueeze() for missing dimensions, or Dropout for single elements.')
}
