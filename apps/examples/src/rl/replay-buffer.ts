/**
 * The last steps of play, in one tensor. A tensor for each step would cost an array and its header, and many small arrays share memory, which any
 * one of them keeps alive.
 */
import { noGrad, randint, type Tensor, zeros } from 'postgrad'

export class ReplayBuffer {
  private readonly rows: Tensor
  private readonly capacity: number
  private filled = 0
  private at = 0

  /** @param width numbers per step */
  constructor(capacity: number, width: number) {
    this.capacity = capacity
    this.rows = zeros([capacity, width])
  }

  /** How many steps there are. */
  get length(): number {
    return this.filled
  }

  /** Takes in steps [N, width]; when it is full, the oldest go. */
  push(steps: Tensor): void {
    let [from, left] = [0, steps.shape[0]!]
    while (left > 0) {
      const n = Math.min(left, this.capacity - this.at)
      noGrad(() => this.rows.narrow(0, this.at, n).copy_(steps.narrow(0, from, n)))
      this.at = (this.at + n) % this.capacity
      this.filled = Math.min(this.capacity, this.filled + n)
      from += n
      left -= n
    }
  }

  /** `n` of them at random, [n, width]; one may come twice. */
  sample(n: number): Tensor {
    return this.rows.indexSelect(0, randint(0, this.filled, [n]))
  }
}
