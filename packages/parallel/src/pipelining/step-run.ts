/**
 * One step of a pipeline on one worker: it takes the schedule's actions one after the other, waits where they receive, and lets the worker's other work have a turn between them. Above:
 * `pipeline.ts`; below: `stage.ts`, `stage-link.ts`.
 */
import type { Worker, WorkerInfo } from '@postgrad/rpc'
import type { Tensor } from '@postgrad/tensor'
import { invalidArgument } from '@postgrad/tensor/internal'
import { actionText, isCommunication, type PipelineAction, type PipelineActionKind } from './action.js'
import { type ChunkSpec, mergeBatch, splitBatch } from './microbatches.js'
import { forwardOnly, type PipelineSchedule } from './schedule.js'
import type { TimedAction } from './simulation.js'
import type { Activations, Gradients, PipelineStage } from './stage.js'
import type { StageLink } from './stage-link.js'

/** What a step gives, each worker its part. */
export interface PipelineResult<Output = unknown> {
  /** Of the micro-batches in ascending order, without history; empty but on the last stage's worker. */
  readonly losses: readonly Tensor[]
  /** All micro-batches' together; null but on the last stage's worker. */
  readonly output: Output | null
  /** What this worker did, by its own clock in ms. */
  readonly actions: readonly TimedAction[]
}

/** What a step needs of its pipeline. */
export interface StepContext {
  readonly schedule: PipelineSchedule
  readonly rank: number
  readonly stages: ReadonlyMap<number, PipelineStage>
  readonly workerOf: (stage: number) => WorkerInfo
  /** The workers of other ranks. */
  readonly others: readonly WorkerInfo[]
  readonly link: StageLink
  readonly clock: Worker['clock']
  readonly training: boolean
  readonly loss: ((output: unknown, target: unknown) => Tensor) | undefined
  readonly scaleGrads: boolean
  readonly inputSpec: ChunkSpec | undefined
  readonly targetSpec: ChunkSpec | undefined
  readonly outputSpec: ChunkSpec | undefined
}

export class StepRun {
  /** What is being done. */
  current: string | null = null
  private readonly context: StepContext
  private readonly asked = new Map<string, PromiseLike<unknown>>()
  /** What stages have for the next one and for the one before, by the receive that it is for. */
  private readonly activations = new Map<string, Activations>()
  private readonly gradients = new Map<string, Gradients>()
  private inputs: readonly unknown[] = []
  private targets: readonly unknown[] | null = null
  private readonly outputs: unknown[] = []
  private readonly losses: Tensor[] = []

  constructor(context: StepContext) {
    this.context = context
  }

  async all(inputs: readonly unknown[], target: unknown): Promise<PipelineResult> {
    const { schedule, rank, stages, clock, training } = this.context
    const { microbatches } = schedule
    const hasLast = stages.has(schedule.stages - 1)
    const actions = (training ? schedule : forwardOnly(schedule)).ranks[rank] ?? []
    this.askFor(actions)
    if (stages.has(0)) this.inputs = splitBatch(inputs, microbatches, this.context.inputSpec)
    if (hasLast && target !== undefined) this.targets = splitBatch(target, microbatches, this.context.targetSpec)
    if (hasLast && training && this.targets === null)
      throw invalidArgument('Pipeline.step', "a target on the last stage's worker", 'none', 'Pass { target }, or call eval.')
    const timed: TimedAction[] = []
    for (const action of actions) {
      this.current = actionText(action)
      const start = clock.now()
      const waits = this.perform(action)
      if (waits !== null) await waits
      timed.push({ action, start, end: clock.now() })
      // In a turn of its own: what was made leaves now, and what arrives is read.
      if (!isCommunication(action.kind)) await new Promise<void>((resolve) => clock.defer(resolve))
    }
    this.current = null
    if (training && this.context.scaleGrads) for (const stage of stages.values()) stage.scaleGrads(microbatches)
    this.context.link.done()
    // So that a failure is everybody's: no worker's optimizer steps when another's gradients are not whole.
    await Promise.all(this.context.others.map((worker) => this.context.link.doneAt(worker)))
    return { losses: this.losses, output: hasLast ? mergeBatch(this.outputs, this.context.outputSpec) : null, actions: timed }
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
        return null
      case 'I':
        this.keep(stage, microbatch, stage.backwardInput(microbatch, this.gradientsFor(stage, microbatch)))
        return null
      case 'W':
        stage.backwardWeight(microbatch)
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
    const isLastOne = microbatch === schedule.microbatches - 1
    const made = stage.forward(given, microbatch, { training, isLastOne, lossOf })
    if (isLast) this.outputs[microbatch] = made.output.value
    else this.activations.set(actionText({ stage: index + 1, kind: 'RECV_F', microbatch }), made.output)
    if (made.loss !== null) this.losses[microbatch] = made.loss
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
