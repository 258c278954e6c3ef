/**
 * A stage: a part of the model on one worker, and what it keeps of each micro-batch between its forward and its backward. Above: `pipeline.ts`, which says when. PyTorch: `PipelineStage`,
 * `_PipelineStageBase`.
 *
 *     taken ──▸ leaves that require grad ──▸ module.forward ──▸ output ──▸ handed on without history, with a mark on what requires grad
 *     gradients of the leaves ◂── backward (B), or its parts (I, later W) ◂── gradients of what was marked
 */
import { checkpoint, noGrad } from '@postgrad/autograd'
import { type BackwardParts, backwardInputs, backwardInto, validateRoots } from '@postgrad/autograd/internal'
import { PostgradError } from '@postgrad/base'
import { isThenable, withScope } from '@postgrad/base/internal'
import { isTensor, SparseTensor, type Tensor } from '@postgrad/tensor'
import { checkOptions, invalidArgument } from '@postgrad/tensor/internal'
import type { ForwardModule } from '../remote-module.js'
import { GradientOrder } from './gradient-order.js'
import { mapTensors, tensorsIn } from './microbatches.js'

/** Of `PipelineStage`. */
export interface PipelineStageOptions {
  /** Of which micro-batches activations are computed again in backward instead of being kept: default 'never'. PyTorch: `Pipe(checkpoint=…)`. */
  readonly checkpoint?: 'never' | 'exceptLast' | 'always'
}

/** What goes from a stage to the next one: values, and which of their tensors want a gradient. */
export interface Activations {
  readonly value: unknown
  readonly wanted: readonly boolean[]
}

/** What goes back: a gradient for each tensor that wants one. */
export type Gradients = readonly (Tensor | null)[]

/** What a forward gives. */
export interface Made {
  readonly output: Activations
  readonly loss: Tensor | null
}

interface ForwardOptions {
  readonly training: boolean
  /** Whether it is the step's last micro-batch. */
  readonly isLastOne: boolean
  readonly lossOf: ((output: unknown) => Tensor) | null
}

interface Kept {
  readonly inputs: readonly Tensor[]
  readonly roots: readonly Tensor[]
  parts: BackwardParts | null
}

/**
 * A part of a model: `module`, as stage `index` of `count`. Its forward gets what the stage before it gave, an array as its arguments; stage 0 gets the inputs. Outputs may be any
 * nesting of tensors. A stage belongs to one pipeline. @throws (the constructor) INVALID_ARGUMENT. PyTorch: `torch.distributed.pipelining.PipelineStage`.
 * @example const stage = new PipelineStage(new Linear(4, 4), 0, 2)
 */
export class PipelineStage {
  readonly module: ForwardModule
  readonly index: number
  readonly count: number
  private readonly checkpoint: NonNullable<PipelineStageOptions['checkpoint']>
  private readonly kept = new Map<number, Kept>()
  private order = new GradientOrder()

  constructor(module: ForwardModule, index: number, count: number, options: PipelineStageOptions = {}) {
    if (typeof module?.forward !== 'function') throw invalidArgument('PipelineStage', 'a module with a forward', typeof module)
    if (!Number.isSafeInteger(count) || !Number.isSafeInteger(index) || index < 0 || index >= count)
      throw invalidArgument('PipelineStage', 'an index from 0 to count − 1', `stage ${index} of ${count}`)
    checkOptions('PipelineStage', options, ['checkpoint'])
    const { checkpoint: when = 'never' } = options
    if (!['never', 'exceptLast', 'always'].includes(when))
      throw invalidArgument('PipelineStage', "'never', 'exceptLast' or 'always' as checkpoint", `'${String(when)}'`)
    this.module = module
    this.index = index
    this.count = count
    this.checkpoint = when
  }

  get isFirst(): boolean {
    return this.index === 0
  }

  get isLast(): boolean {
    return this.index === this.count - 1
  }

  /** @internal Micro-batches whose activations are held. */
  get held(): number {
    return this.kept.size
  }

  /** @internal Forgets all micro-batches. */
  reset(): void {
    this.kept.clear()
    this.order = new GradientOrder()
  }

  /** @internal F. `lossOf` is given on the last stage of a training step, and makes its root. @throws PIPELINE_FORWARD_ASYNC, and what forward throws */
  forward(taken: Activations, microbatch: number, { training, isLastOne, lossOf }: ForwardOptions): Made {
    const inputs: Tensor[] = []
    let place = 0
    const value = mapTensors(taken.value, (tensor) => {
      if (taken.wanted[place++] !== true || !training) return tensor
      const input = tensor.detach().requiresGrad_()
      inputs.push(input)
      return input
    })
    const args: readonly unknown[] = Array.isArray(value) ? value : [value]
    const forward = (...each: readonly unknown[]): unknown => this.module.forward(...each)
    const again = training && (this.checkpoint === 'always' || (this.checkpoint === 'exceptLast' && !isLastOne))
    return withScope({ gradEnabled: training }, () => {
      const output = again ? checkpoint(forward, ...args) : forward(...args)
      if (isThenable(output)) throw forwardAsync(this.index)
      const loss = lossOf?.(output) ?? null
      const tensors = tensorsIn(output)
      if (training)
        this.kept.set(microbatch, {
          inputs,
          roots: loss !== null ? [loss] : tensors.filter(({ requiresGrad }) => requiresGrad),
          parts: null,
        })
      return {
        output: { value: mapTensors(output, (tensor) => tensor.detach()), wanted: tensors.map(({ requiresGrad }) => requiresGrad) },
        loss: loss?.detach() ?? null,
      }
    })
  }

  /** @internal B. `grads` is null on the last stage, whose root is the loss. Gives the gradients of what was taken. */
  backward(microbatch: number, grads: Gradients | null): Gradients {
    const { inputs, roots, given } = this.rootsOf(microbatch, grads)
    const found = new Map<Tensor, Tensor>()
    const sink = this.order.sinkOf(microbatch, new Set(inputs), (input, grad) => found.set(input, grad))
    if (roots.length > 0) noGrad(() => backwardInto(sink, roots, given))
    this.end(microbatch)
    return inputs.map((input) => found.get(input) ?? null)
  }

  /** @internal I. The first stage has no gradient that anybody waits for: all of its backward is in W. */
  backwardInput(microbatch: number, grads: Gradients | null): Gradients {
    const { inputs, roots, given } = this.rootsOf(microbatch, grads)
    if (roots.length === 0) return inputs.map(() => null)
    const parts = noGrad(() => backwardInputs(roots, given, inputs))
    this.kept.set(microbatch, { inputs: [], roots: [], parts })
    return parts.inputGrads
  }

  /** @internal W. */
  backwardWeight(microbatch: number): void {
    const { parts } = this.kept.get(microbatch)!
    const sink = this.order.sinkOf(microbatch, new Set(), () => {})
    noGrad(() => parts?.backwardRest(sink))
    this.end(microbatch)
  }

  /** @internal Divides what the step has put into `.grad` by the number of micro-batches, as PyTorch: with what was there before. */
  scaleGrads(divisor: number): void {
    noGrad(() => {
      for (const leaf of this.order.touched) {
        const { grad } = leaf
        if (grad instanceof SparseTensor) leaf.grad = new SparseTensor(grad.indices(), grad.values().div(divisor), grad.shape)
        else grad?.div_(divisor)
      }
    })
  }

  private rootsOf(
    microbatch: number,
    grads: Gradients | null,
  ): { readonly inputs: readonly Tensor[]; readonly roots: Tensor[]; readonly given: Tensor[] | undefined } {
    const { inputs, roots } = this.kept.get(microbatch)!
    if (grads === null) {
      validateRoots(roots, { op: 'Pipeline.step' })
      return { inputs, roots: [...roots], given: undefined }
    }
    const places = [...roots.keys()].filter((i) => isTensor(grads[i]))
    return { inputs, roots: places.map((i) => roots[i]!), given: places.map((i) => grads[i]!) }
  }

  private end(microbatch: number): void {
    this.kept.delete(microbatch)
    this.order.ended(microbatch)
  }
}

function forwardAsync(stage: number): PostgradError {
  return new PostgradError('PIPELINE_FORWARD_ASYNC', {
    op: 'Pipeline.step',
    expected: `a forward of stage ${stage} that computes its result at once`,
    got: 'one that gives a promise',
    remedy: 'Put what is awaited in front of the pipeline.',
    values: { stage },
  })
}
