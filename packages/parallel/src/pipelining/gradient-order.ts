/**
 * Gradients of a stage's weights, added up over micro-batches in ascending order, whatever the order in which their backward passes run. So every schedule gives the bits of the model that is
 * not split, run one micro-batch after the other. What comes too early waits: the schedules that have names bring nothing early, one that was loaded may.
 */
import { noGrad } from '@postgrad/autograd'
import { dotGradSink, type GradSink, keepable } from '@postgrad/autograd/internal'
import { SparseTensor, type Tensor } from '@postgrad/tensor'

export class GradientOrder {
  /** Leaves that have got a gradient. */
  readonly touched = new Set<Tensor>()
  private next = 0
  private readonly early = new Map<number, (readonly [leaf: Tensor, grad: Tensor])[]>()

  /** Where a micro-batch's pass puts its gradients, all but those of `inputs`, which it gives to `take`. */
  sinkOf(microbatch: number, inputs: ReadonlySet<Tensor>, take: (input: Tensor, grad: Tensor) => void): GradSink {
    const isTurn = microbatch === this.next
    const held: (readonly [Tensor, Tensor])[] = []
    if (!isTurn) this.early.set(microbatch, held)
    return {
      accumulate: (leaf, grad, exclusive) => {
        if (inputs.has(leaf)) {
          take(leaf, keepable(grad, exclusive))
          return
        }
        this.touched.add(leaf)
        if (isTurn) dotGradSink.accumulate(leaf, grad, exclusive)
        else held.push([leaf, keepable(grad, exclusive)])
      },
    }
  }

  /** The micro-batch's pass has ended: its turn is over, and that of those which came early behind it. */
  ended(microbatch: number): void {
    if (microbatch !== this.next) {
      // A pass that no gradient has come to has not asked for a sink.
      if (!this.early.has(microbatch)) this.early.set(microbatch, [])
      return
    }
    this.next++
    for (let held = this.early.get(this.next); held !== undefined; held = this.early.get(this.next)) {
      this.early.delete(this.next)
      for (const [leaf, grad] of held) dotGradSink.accumulate(leaf, grad, true)
      this.next++
    }
  }
}

/** Divides `.grad`, each once, with what was in it before the step: as PyTorch. */
export function divideGrads(leaves: ReadonlySet<Tensor>, divisor: number): void {
  noGrad(() => {
    for (const leaf of leaves) {
      const { grad } = leaf
      if (grad instanceof SparseTensor) leaf.grad = new SparseTensor(grad.indices(), grad.values().div(divisor), grad.shape)
      else grad?.div_(divisor)
    }
  })
}
