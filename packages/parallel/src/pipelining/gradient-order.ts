/**
 * Gradients of the weights of one stage in one step, or of several stages that share weights. A step adds to `.grad` once: the sum over its micro-batches, in ascending order, divided by
 * their number. So every schedule gives the bits of the model that is not split, run one micro-batch after the other, and the former `.grad` is not divided. Gradients that come too early
 * wait: none do in schedules that have names, some may in a loaded one.
 *
 * Note [Shared weights]
 *
 * In one place a weight that the model uses in several layers gets one gradient in a pass, in which the engine has added up the gradients of all uses. Stages have passes of their own. So if
 * stages share weights, each does the part of its pass that the stage before waits for, and leaves the rest. When all have come, the rests of a micro-batch run as one pass.
 */
import { noGrad } from '@postgrad/autograd'
import {
  accumulateInto,
  type BackwardParts,
  backwardRest,
  type GradSink,
  keepable,
  runPostAccumulateHooks,
} from '@postgrad/autograd/internal'
import { SparseTensor, type Tensor } from '@postgrad/tensor'

type Sum = { grad: Tensor | null }

export interface GradientOrderOptions {
  readonly microbatches: number
  /** Of the sum over micro-batches. */
  readonly divisor?: number
  /** How many stages have these weights. */
  readonly stages?: number
}

export class GradientOrder {
  /** Whether rests of several stages are one pass. */
  readonly isShared: boolean
  private readonly options: Required<GradientOrderOptions>
  private readonly sums = new Map<Tensor, Sum>()
  private next = 0
  private readonly early = new Map<number, (readonly [leaf: Tensor, grad: Tensor])[]>()
  /** Of micro-batches of which not all stages have come. */
  private readonly rests = new Map<number, (BackwardParts | null)[]>()

  constructor({ microbatches, divisor = 1, stages = 1 }: GradientOrderOptions) {
    this.options = { microbatches, divisor, stages }
    this.isShared = stages > 1
  }

  /** Whether all micro-batches have been added to `.grad`. */
  get isFinished(): boolean {
    return this.next === this.options.microbatches
  }

  /** A stage has the rest of a micro-batch's pass to do (null: none). It runs when all stages that share weights have come. */
  rest(microbatch: number, parts: BackwardParts | null): void {
    const rests = [...(this.rests.get(microbatch) ?? []), parts]
    if (rests.length < this.options.stages) {
      this.rests.set(microbatch, rests)
      return
    }
    this.rests.delete(microbatch)
    const sink = this.sinkOf(microbatch, new Set(), () => {})
    noGrad(() =>
      backwardRest(
        rests.filter((each) => each !== null),
        sink,
      ),
    )
    this.ended(microbatch)
  }

  /** Where a micro-batch's pass puts its gradients, all but those of `inputs`, which it gives to `take`. */
  sinkOf(microbatch: number, inputs: ReadonlySet<Tensor>, take: (input: Tensor, grad: Tensor) => void): GradSink {
    const isTurn = microbatch === this.next
    const held: (readonly [Tensor, Tensor])[] = []
    if (!isTurn) this.early.set(microbatch, held)
    return {
      accumulate: (leaf, grad, exclusive) => {
        if (inputs.has(leaf)) take(leaf, keepable(grad, exclusive))
        else if (isTurn) this.add(leaf, grad, exclusive)
        else held.push([leaf, keepable(grad, exclusive)])
      },
    }
  }

  /** The micro-batch's pass has ended: its turn is over, and that of those which came early after it. */
  ended(microbatch: number): void {
    if (microbatch !== this.next) {
      // A pass that no gradient has come to has not asked for a sink.
      if (!this.early.has(microbatch)) this.early.set(microbatch, [])
      return
    }
    this.next++
    for (let held = this.early.get(this.next); held !== undefined; held = this.early.get(this.next)) {
      this.early.delete(this.next)
      const came = held
      noGrad(() => {
        for (const [leaf, grad] of came) this.add(leaf, grad, true)
      })
      this.next++
    }
    if (this.isFinished) this.finish()
  }

  private add(leaf: Tensor, grad: Tensor, exclusive: boolean): void {
    // Gradients that nobody divides go to `.grad` at once: they need no room of their own.
    if (this.options.divisor === 1) {
      accumulateInto(leaf, grad, exclusive)
      runPostAccumulateHooks(leaf)
      return
    }
    const sum = this.sums.get(leaf) ?? { grad: null }
    this.sums.set(leaf, sum)
    accumulateInto(sum, grad, exclusive)
  }

  private finish(): void {
    noGrad(() => {
      for (const [leaf, { grad }] of this.sums) {
        accumulateInto(leaf, divided(grad!, this.options.divisor), true)
        runPostAccumulateHooks(leaf)
      }
    })
    this.sums.clear()
  }
}

function divided(grad: Tensor, divisor: number): Tensor {
  return grad instanceof SparseTensor ? new SparseTensor(grad.indices(), grad.values().div(divisor), grad.shape) : grad.div_(divisor)
}
