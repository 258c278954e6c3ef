/** Zeroes elements at random while training. PyTorch: `torch.nn.Dropout`. */
import { dropout } from '@postgrad/autograd'
import type { Tensor } from '@postgrad/tensor'
import { invalidArgument } from '@postgrad/tensor/internal'
import { Module } from './module.js'

export class Dropout extends Module {
  readonly p: number

  /** @param p probability of a zero. @throws INVALID_ARGUMENT unless 0 ≤ p ≤ 1 */
  constructor(p = 0.5) {
    super()
    if (!(p >= 0 && p <= 1)) {
      throw invalidArgument('Dropout', 'a probability from 0 to 1', p, 'Pass the share of elements to zero: 0.5 is one half.')
    }
    this.p = p
  }

  /** In training each element is 0 with probability p and x / (1 − p) otherwise, from the scope's generator; in eval x itself. */
  forward(x: Tensor): Tensor {
    return dropout(x, this.p, { training: this.training })
  }
}
