/**
 * One step of a pipeline on one worker: it takes the schedule's actions one after the other, waits where they receive, and lets the worker's other work have a turn between them. Used
 * by `pipeline.ts`; uses `stage.ts`, `stage-link.ts`.
 */
import type { Worker, WorkerInfo } from '@postgrad/rpc'
import type { Tensor } from '@postgrad/tensor'
import { argumentText, collectEarly, invalidArgument, shapeText } from '@postgrad/tensor/internal'
import { actionText, isCommunication, type PipelineAction, type PipelineActionKind } from './action.js'
import { GradientOrder } from './gradient-order.js'
import { type ChunkSpec, mergeBatch, splitBatch, tensorsIn } from './microbatches.js'
import { forwardOnly, type PipelineSchedule } from './schedule.js'
import { groupedByWeights } from './shared-weights.js'
import type { TimedAction } from './simulation.js'
import type { Activations, Gradients, PipelineStage } from './stage.js'
import type { StageLink } from './stage-link.js'

/** The result of a step on this worker. */
export interface PipelineResult<Output = unknown> {
  /** The losses of the micro-batches in ascending order, without a history. Empty on all workers but that of the last stage. */
  readonly losses: readonly Tensor[]
  /** The outputs of all micro-batches together. null on all workers but that of the last stage, and if `returnOutputs` is false. */
  readonly output: Output | null
  /** The actions of this worker with their times, in ms of its own clock. */
  readonly actions: readonly TimedAction[]
}

/** A step's arguments. */
export interface StepArguments {
  readonly inputs: readonly unknown[]
  readonly target: unknown
  readonly kwargs: Readonly<Record<string, unknown>> | undefined
  readonly returnOutputs: boolean
}

/** A pipeline, as its step needs it. */
export interface StepContext {
  readonly schedule: PipelineSchedule
  readonly rank: number
  readonly stages: ReadonlyMap<number, PipelineStage>
  readonly workerOf: (stage: number) => WorkerInfo
  /** Of all ranks, this one too. */
  readonly workers: readonly WorkerInfo[]
  readonly link: StageLink
  readonly clock: Worker['clock']
  readonly training: boolean
  readonly loss: ((output: unknown, target: unknown) => Tensor) | undefined
  readonly scaleGrads: boolean
  readonly inputSpec: ChunkSpec | undefined
  readonly kwargsSpec: ChunkSpec | undefined
  readonly targetSpec: ChunkSpec | undefined
  readonly outputSpec: ChunkSpec | undefined
}

export class StepRun {
  /** The present action. */
  current: string | null = null
  /** The input of a forward that is under way. */
  private given: unknown = null
  private readonly context: StepContext
  private readonly done = new Set<WorkerInfo>()
  private readonly asked = new Map<string, PromiseLike<unknown>>()
  /** Values of stages for the next one and the one before, by the receive that takes them. */
  private readonly activations = new Map<string, Activations>()
  private readonly gradients = new Map<string, Gradients>()
  private inputs: readonly unknown[] = []
  private kwargs: readonly unknown[] | null = null
  private targets: readonly unknown[] | null = null
  private returnsOutputs = true
  private readonly outputs: unknown[] = []
  private readonly losses: Tensor[] = []
  /** The means over replicas, of one stage after the other: where several stages have one group, its members begin in one order. */
  private reduced: Promise<void> = Promise.resolve()
  /** Ends with the last worker's step; earlier with what went wrong on any, with the deadline and the signal. */
  private end: PromiseLike<unknown> = this.reduced
  /** An error elsewhere. */
  private trouble: { readonly error: unknown } | null = null

  constructor(context: StepContext) {
    this.context = context
  }

  /** Whom it waits for: who has what it receives, or, at the end, who has not done his part. */
  get waitsFor(): readonly WorkerInfo[] {
    const { workerOf, workers, rank } = this.context
    const [, stage, kind] = /^(\d+)RECV_([FB])/.exec(this.current ?? '') ?? []
    if (kind !== undefined) return [workerOf(Number(stage) + (kind === 'F' ? -1 : 1))]
    return this.current === null ? workers.filter((worker, i) => i !== rank && !this.done.has(worker)) : []
  }

  /** The same for people: ` at 1F0 (stage 1, forward of micro-batch 0, given [16, 32])`. */
  get place(): string {
    const [, stage, kind, microbatch] = /^(\d+)([FBIW])(\d+)$/.exec(this.current ?? '') ?? []
    if (this.current === null || kind === undefined) return this.current === null ? '' : ` at ${this.current}`
    const shapes = tensorsIn(this.given).map(({ shape }) => shapeText(shape))
    const given = shapes.length === 0 ? '' : `, given ${shapes.join(', ')}`
    return ` at ${this.current} (stage ${stage}, ${kind === 'F' ? 'forward' : 'backward'} of micro-batch ${microbatch}${given})`
  }

  async all(given: StepArguments): Promise<PipelineResult> {
    const { schedule, rank, stages, clock, training, workers, link } = this.context
    const actions = (training ? schedule : forwardOnly(schedule)).ranks[rank] ?? []
    this.askFor(actions)
    // So that a failure is everybody's: no worker's optimizer steps when another's gradients are not whole.
    this.end = Promise.all(workers.map((worker) => link.doneAt(worker).then(() => this.done.add(worker))))
    this.end.then(undefined, (error) => {
      this.trouble = { error }
    })
    this.divide(given)
    if (training) this.order()
    if (training) for (const stage of stages.values()) await this.unlessItFails(stage.beginReplica())
    const timed: TimedAction[] = []
    for (const action of actions) {
      this.current = actionText(action)
      // In a turn of its own: what was made and sent before leaves now, and what has arrived is read.
      if (!isCommunication(action.kind)) await new Promise<void>((resolve) => clock.defer(resolve))
      if (this.trouble !== null) throw this.trouble.error
      const start = clock.now()
      const waits = this.perform(action)
      if (waits !== null) await this.unlessItFails(waits)
      timed.push({ action, start, end: clock.now() })
    }
    this.current = null
    if (training) await this.finishGradients()
    const output = stages.has(schedule.stages - 1) && this.returnsOutputs ? mergeBatch(this.outputs, this.context.outputSpec) : null
    link.done()
    // All are at the end of a step: what would otherwise stop one of them in the middle of the next, and so all, comes now.
    await new Promise<void>((resolve) => clock.defer(resolve))
    collectEarly()
    await this.end
    return { losses: this.losses, output, actions: timed }
  }

  /** Waits, but not longer than the step lasts. */
  private unlessItFails(waits: PromiseLike<unknown>): Promise<unknown> {
    return Promise.race([waits, this.end])
  }

  private divide({ inputs, target, kwargs, returnOutputs }: StepArguments): void {
    const { schedule, stages, training, loss, inputSpec, kwargsSpec, targetSpec } = this.context
    const { microbatches } = schedule
    this.returnsOutputs = returnOutputs
    if (!Array.isArray(inputs))
      throw invalidArgument('Pipeline.step', "an array of the first stage's arguments", argumentText(inputs), 'Write step([x]).')
    if (kwargs !== undefined) this.kwargs = splitBatch(kwargs, microbatches, kwargsSpec)
    if (stages.has(0)) {
      if (inputs.length === 0 && kwargs === undefined)
        throw invalidArgument('Pipeline.step', "inputs on the first stage's worker", 'none', 'Pass them there: step([x]).')
      this.inputs = splitBatch(inputs, microbatches, inputSpec)
    }
    if (!stages.has(schedule.stages - 1)) return
    if (target !== undefined) this.targets = splitBatch(target, microbatches, targetSpec)
    if (training && target === undefined)
      throw invalidArgument('Pipeline.step', "a target on the last stage's worker", 'none', 'Pass it there: step([], { target }).')
    if (loss === undefined && target !== undefined)
      throw invalidArgument(
        'Pipeline.step',
        'no target, as the pipeline has no loss to give it to',
        argumentText(target),
        'Name the loss in the options of Pipeline, on all workers: { loss: mseLoss }.',
      )
  }

  /** Where gradients are added up: stages that share weights have one place. */
  private order(): void {
    const { stages, scaleGrads, schedule } = this.context
    const { microbatches } = schedule
    // Of one stage there is nothing to look for.
    const groups = stages.size === 1 ? [[...stages.values()]] : groupedByWeights(stages.values())
    for (const group of groups) {
      const order = new GradientOrder({ microbatches, divisor: scaleGrads ? microbatches : 1, stages: group.length })
      for (const stage of group) stage.addTo(order)
    }
  }

  /** Replicas have their mean. */
  private async finishGradients(): Promise<void> {
    const { stages, schedule } = this.context
    // As PyTorch calls it.
    this.current = [...stages.values()].some((stage) => stage.isReducedAfter(schedule.microbatches)) ? 'REDUCE_GRAD' : null
    await this.unlessItFails(this.reduced)
    this.current = null
  }

  /** All that it will receive, so that it leaves when it is made. */
  private askFor(actions: readonly PipelineAction[]): void {
    for (const { stage, kind, microbatch } of actions) {
      if (kind !== 'RECV_F' && kind !== 'RECV_B') continue
      const [from, sent] = kind === 'RECV_F' ? ([stage - 1, 'SEND_F'] as const) : ([stage + 1, 'SEND_B'] as const)
      const asked = this.context.link.receive(this.context.workerOf(from), actionText({ stage: from, kind: sent, microbatch }))
      // Where the step fails before it is needed.
      asked.then(undefined, () => {})
      this.asked.set(actionText({ stage, kind, microbatch }), asked)
    }
  }

  /** A promise where it waits for another worker. */
  private perform(action: PipelineAction): PromiseLike<void> | null {
    const { stage: index, kind, microbatch } = action
    const stage = this.context.stages.get(index)!
    const key = actionText(action)
    const at = (where: number, what: PipelineActionKind): string => actionText({ stage: where, kind: what, microbatch })
    switch (kind) {
      case 'F':
        this.forward(stage, microbatch)
        return null
      case 'B':
        this.keep(stage, microbatch, stage.backward(microbatch, this.gradientsFor(stage, microbatch)))
        this.reduce(stage)
        return null
      case 'I':
        this.keep(stage, microbatch, stage.backwardInput(microbatch, this.gradientsFor(stage, microbatch)))
        return null
      case 'W':
        stage.backwardWeight(microbatch)
        this.reduce(stage)
        return null
      case 'SEND_F':
        this.context.link.send(key, taken(this.activations, at(index + 1, 'RECV_F')))
        return null
      case 'SEND_B':
        this.context.link.send(key, taken(this.gradients, at(index - 1, 'RECV_B')))
        return null
      case 'RECV_F':
        return taken(this.asked, key).then((value) => void this.activations.set(key, value as Activations))
      case 'RECV_B':
        return taken(this.asked, key).then((value) => void this.gradients.set(key, value as Gradients))
      default:
        return kind satisfies never
    }
  }

  private forward(stage: PipelineStage, microbatch: number): void {
    const { index, isFirst, isLast } = stage
    const { targets } = this
    const { loss, training, schedule } = this.context
    const lossOf = !isLast || loss === undefined || targets === null ? null : (output: unknown) => loss(output, targets[microbatch])
    const given = isFirst
      ? { value: this.inputs[microbatch], wanted: [] }
      : taken(this.activations, actionText({ stage: index, kind: 'RECV_F', microbatch }))
    this.given = given.value
    const isLastOne = microbatch === schedule.microbatches - 1
    const made = stage.forward(given, microbatch, { training, isLastOne, kwargs: this.kwargs?.[microbatch], lossOf })
    this.given = null
    if (isLast) {
      if (this.returnsOutputs) this.outputs[microbatch] = made.output.value
    } else this.activations.set(actionText({ stage: index + 1, kind: 'RECV_F', microbatch }), made.output)
    if (made.loss !== null) this.losses[microbatch] = made.loss
  }

  /** After its last backward: the mean over replicas, while other work continues. */
  private reduce(stage: PipelineStage): void {
    if (!stage.isReducedAfter(this.context.schedule.microbatches)) return
    this.reduced = this.reduced.then(() => stage.reduceReplica())
    // Awaited at the end, which a failure may come before.
    this.reduced.catch(() => {})
  }

  /** For the stage before. */
  private keep({ index, isFirst }: PipelineStage, microbatch: number, gradients: Gradients): void {
    if (!isFirst) this.gradients.set(actionText({ stage: index - 1, kind: 'RECV_B', microbatch }), gradients)
  }

  private gradientsFor({ index, isLast }: PipelineStage, microbatch: number): Gradients | null {
    return isLast ? null : taken(this.gradients, actionText({ stage: index, kind: 'RECV_B', microbatch }))
  }
}

/** Once. */
function taken<T>(from: Map<string, T>, key: string): T {
  const value = from.get(key)!
  from.delete(key)
  return value
}
