/**
 * A stage: a part of the model on one worker, and the values that it keeps of each micro-batch from forward to backward. `pipeline.ts` calls it. PyTorch: `PipelineStage`,
 * `_PipelineStageBase`.
 *
 *     taken ──▸ leaves that require grad ──▸ module.forward ──▸ output ──▸ handed on without history, with a mark on what requires grad
 *     gradients of the leaves ◂── backward (B), or its parts (I, later W) ◂── gradients of what was marked
 */
import { checkpoint, noGrad } from '@postgrad/autograd'
import { type BackwardParts, backwardInputs, backwardInto, validateRoots } from '@postgrad/autograd/internal'
import { PostgradError } from '@postgrad/base'
import { isThenable, withScope } from '@postgrad/base/internal'
import { isTensor, type Tensor } from '@postgrad/tensor'
import { argumentText, checkOptions, invalidArgument } from '@postgrad/tensor/internal'
import { DistributedDataParallel } from '../ddp/distributed-data-parallel.js'
import type { ForwardModule } from '../remote-module.js'
import type { GradientOrder } from './gradient-order.js'
import { mapTensors, tensorsIn } from './microbatches.js'

/** Options of `PipelineStage`. */
export interface PipelineStageOptions {
  /** The micro-batches whose activations are not kept, but computed again in backward; default 'never'. PyTorch: `Pipe(checkpoint=…)`. */
  readonly checkpoint?: 'never' | 'exceptLast' | 'always'
}

/** Sent from a stage to the next one: values, and which of their tensors want a gradient. */
export interface Activations {
  readonly value: unknown
  readonly wanted: readonly boolean[]
}

/** Sent back: a gradient for each tensor that wants one. */
export type Gradients = readonly (Tensor | null)[]

/** A forward's result. */
export interface Made {
  readonly output: Activations
  readonly loss: Tensor | null
}

interface ForwardOptions {
  readonly training: boolean
  /** Whether it is the step's last micro-batch. */
  readonly isLastOne: boolean
  /** A last argument, if there are any. */
  readonly kwargs: unknown
  readonly lossOf: ((output: unknown) => Tensor) | null
}

interface Kept {
  readonly inputs: readonly Tensor[]
  readonly roots: readonly Tensor[]
  parts: BackwardParts | null
}

/**
 * A part of a model: `module` is stage `index` of `count`. Stage 0 gets the inputs. The forward of every other stage gets the result of the previous stage; an
 * array becomes its arguments. Outputs may be any nesting of tensors. A stage runs one step at a time. If `module` is a DistributedDataParallel, gradients are
 * averaged over several pipelines: the stage adds up the gradients of all micro-batches, and reduces them once a step, after its last backward, while other
 * stages continue. PyTorch: `torch.distributed.pipelining.PipelineStage`.
 * @throws INVALID_ARGUMENT if an argument is not valid, from the constructor
 * @example
 * const stage = new PipelineStage(new Linear(4, 4), 0, 2) // the first of two stages
 * stage.isFirst // true
 * stage.isLast // false
 */
export class PipelineStage {
  /** The module of this stage. */
  readonly module: ForwardModule
  /** The number of this stage, from 0. */
  readonly index: number
  /** The number of stages of the whole model. */
  readonly count: number
  private readonly checkpoint: NonNullable<PipelineStageOptions['checkpoint']>
  private readonly kept = new Map<number, Kept>()
  /** Of the step that is under way. */
  private order: GradientOrder | null = null
  private readonly replica: DistributedDataParallel | null
  private state: 'idle' | 'stepping' = 'idle'
  /** Whether the step's gradients are reduced over replicas. */
  private reduces = false
  private backwards = 0

  constructor(module: ForwardModule, index: number, count: number, options: PipelineStageOptions = {}) {
    if (typeof module?.forward !== 'function') throw invalidArgument('PipelineStage', 'a module with a forward', typeof module)
    if (!Number.isSafeInteger(count) || !Number.isSafeInteger(index) || index < 0 || index >= count)
      throw invalidArgument('PipelineStage', 'an index from 0 to count − 1', `stage ${index} of ${count}`)
    checkOptions('PipelineStage', options, ['checkpoint'])
    const { checkpoint: when = 'never' } = options
    if (!['never', 'exceptLast', 'always'].includes(when))
      throw invalidArgument('PipelineStage', "'never', 'exceptLast' or 'always' as checkpoint", `'${String(when)}'`)
    this.module = module
    this.replica = module instanceof DistributedDataParallel ? module : null
    this.index = index
    this.count = count
    this.checkpoint = when
  }

  /** Whether this stage is the first one, which gets the inputs. */
  get isFirst(): boolean {
    return this.index === 0
  }

  /** Whether this stage is the last one, whose output the loss gets. */
  get isLast(): boolean {
    return this.index === this.count - 1
  }

  /** @internal Micro-batches whose activations are held. */
  get held(): number {
    return this.kept.size
  }

  /** @internal Also of another pipeline. */
  get isStepping(): boolean {
    return this.state === 'stepping'
  }

  /** @internal Whether other pipelines have the same stage. */
  get isReplica(): boolean {
    return this.replica !== null
  }

  /** @internal */
  begin(): void {
    this.state = 'stepping'
  }

  /** @internal A training step: where its gradients are added up. */
  addTo(order: GradientOrder): void {
    this.order = order
  }

  /** @internal The step is over: forgets all micro-batches. */
  end(): void {
    this.state = 'idle'
    this.kept.clear()
    this.order = null
    this.reduces = false
    this.backwards = 0
  }

  /** @internal What replicas do together before the first forward of a training step. Rejects as all collectives. */
  async beginReplica(): Promise<void> {
    if (this.replica !== null) this.reduces = await this.replica.beginStep()
  }

  /** @internal Whether a training step that fails here ends the process group of its replicas. */
  get endsWithStep(): boolean {
    return this.replica?.endsWithStep === true
  }

  /** @internal A training step has failed: for the other replicas, too. */
  abandon(reason: unknown): void {
    this.replica?.abandonStep(reason)
  }

  /** @internal Whether nothing is added to gradients any more, and other replicas' are. */
  isReducedAfter(microbatches: number): boolean {
    return this.reduces && this.backwards === microbatches
  }

  /** @internal The mean over replicas into `.grad`. Rejects as `DistributedDataParallel.backward`. */
  async reduceReplica(): Promise<void> {
    await this.replica!.reduceGradients()
  }

  /** @internal F. `lossOf` is given on the last stage of a training step, and makes its root. @throws PIPELINE_FORWARD_ASYNC, and what forward throws */
  forward(taken: Activations, microbatch: number, { training, isLastOne, kwargs, lossOf }: ForwardOptions): Made {
    const inputs: Tensor[] = []
    let place = 0
    const value = mapTensors(taken.value, (tensor) => {
      if (taken.wanted[place++] !== true || !training) return tensor
      const input = tensor.detach().requiresGrad_()
      inputs.push(input)
      return input
    })
    const args: readonly unknown[] = [...(Array.isArray(value) ? value : [value]), ...(kwargs === undefined ? [] : [kwargs])]
    const module = this.replica?.module ?? this.module
    const forward = (...each: readonly unknown[]): unknown => module.forward(...each)
    const again = training && (this.checkpoint === 'always' || (this.checkpoint === 'exceptLast' && !isLastOne))
    return withScope({ gradEnabled: training }, () => {
      const output = again ? checkpoint(forward, ...args) : forward(...args)
      if (isThenable(output)) {
        // Nobody waits for it any more.
        output.then(undefined, () => {})
        throw forwardAsync(this.index)
      }
      const loss = lossOf === null ? null : checkedLoss(lossOf(output))
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
    const order = this.order!
    if (order.isShared) {
      const given = this.backwardInput(microbatch, grads)
      this.backwardWeight(microbatch)
      return given
    }
    const { inputs, roots, given } = this.rootsOf(microbatch, grads)
    const found = new Map<Tensor, Tensor>()
    const sink = order.sinkOf(microbatch, new Set(inputs), (input, grad) => found.set(input, grad))
    if (roots.length > 0) noGrad(() => backwardInto(sink, roots, given))
    order.ended(microbatch)
    this.ended(microbatch)
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
    this.order!.rest(microbatch, this.kept.get(microbatch)!.parts)
    this.ended(microbatch)
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

  private ended(microbatch: number): void {
    this.kept.delete(microbatch)
    this.backwards++
    if (!this.reduces && this.order!.isFinished) this.replica?.keepAlone()
  }
}

function checkedLoss(loss: unknown): Tensor {
  if (isTensor(loss)) return loss
  const remedy = isThenable(loss) ? 'Let the loss compute its result at once.' : 'Return the loss itself, without item().'
  throw invalidArgument('Pipeline.step', 'a loss that gives a tensor', argumentText(loss), remedy)
}

export function busy(expected: string): PostgradError {
  return new PostgradError('PIPELINE_BUSY', { op: 'Pipeline.step', expected, got: 'another one under way', remedy: 'Await it first.' })
}

function forwardAsync(stage: number): PostgradError {
  return new PostgradError('PIPELINE_FORWARD_ASYNC', {
    op: 'Pipeline.step',
    expected: `a forward of stage ${stage} that computes its result at once`,
    got: 'one that gives a promise',
    remedy:
      'Await asynchronous values before the step, and pass them as inputs or kwargs. Use plain batch norms in stages: a SyncBatchNorm waits for other ranks.',
    values: { stage },
  })
}
