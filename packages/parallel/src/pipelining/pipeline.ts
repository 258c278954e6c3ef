/**
 * A pipeline runs the stages of one worker as a schedule says, together with the other workers'. Every worker makes one, with the same name and schedule, and takes the same steps; the
 * first stage's worker gives inputs, the last one's targets. `stage.ts` computes, `stage-link.ts` carries. PyTorch: `PipelineScheduleSingle`, `PipelineScheduleMulti`, `_PipelineScheduleRuntime`.
 */
import { isPostgradError, PostgradError } from '@postgrad/base'
import { withScope } from '@postgrad/base/internal'
import type { CallOptions, Target, WorkerInfo } from '@postgrad/rpc'
import { currentRuntime } from '@postgrad/rpc/internal'
import type { Tensor } from '@postgrad/tensor'
import { argumentText, checkFunction, checkOptions, invalidArgument } from '@postgrad/tensor/internal'
import { actionText } from './action.js'
import { type PipelineScheduleName, pipelineSchedule } from './generators.js'
import type { ChunkSpec } from './microbatches.js'
import { type Plan, planOf } from './plan.js'
import { hasBackward, type PipelineSchedule, scheduleOf, withCommunications } from './schedule.js'
import { checkReplicasApart } from './shared-weights.js'
import { simulate } from './simulation.js'
import { busy, PipelineStage } from './stage.js'
import { claimName, openStageLink } from './stage-link.js'
import { type PipelineResult, StepRun } from './step-run.js'

/** Options of `Pipeline`. */
export interface PipelineOptions<Output = unknown, Target_ = unknown> {
  /** The worker of each rank, by name or id. This worker is one of them. */
  readonly workers: readonly Target[]
  /** The name of a schedule, or a schedule as data. It must be the same on all workers. */
  readonly schedule: PipelineScheduleName | PipelineSchedule
  /** How many micro-batches a batch is divided into. Only if `schedule` is a name. */
  readonly microbatches?: number
  /** Returns the loss of one micro-batch, a scalar. It runs on the last stage's worker, but all workers pass it. Without a loss a step only evaluates. PyTorch: `loss_fn`. */
  readonly loss?: (output: Output, target: Target_) => Tensor
  /** Whether to divide the step's gradients by the number of micro-batches, as for a mean over the batch; default true. PyTorch: `scale_grads`. */
  readonly scaleGrads?: boolean
  /** How inputs are divided; default along dimension 0. PyTorch: `args_chunk_spec`. */
  readonly inputSpec?: ChunkSpec
  /** How `kwargs` are divided; default along dimension 0. PyTorch: `kwargs_chunk_spec`. */
  readonly kwargsSpec?: ChunkSpec
  /** How targets are divided; default along dimension 0. */
  readonly targetSpec?: ChunkSpec
  /** How outputs are put together; default along dimension 0. PyTorch: `output_merge_spec`. */
  readonly outputSpec?: ChunkSpec
  /**
   * The name of the pipeline, the same on all its workers; default 'pipeline'. No other pipeline of these workers may have it, or have had it. So a second
   * pipeline needs another name, and so does a new one after the death of a worker.
   */
  readonly name?: string
}

/** Options of one step. `timeoutMs` limits the whole step while it waits for others; default the call timeout of the worker, 60 s. `signal` ends the step. */
export interface PipelineStepOptions extends CallOptions {
  /** The target that `loss` compares the output with: any nesting of tensors. Only on the worker of the last stage. */
  readonly target?: unknown
  /**
   * A last argument for the forward of each stage of this worker, divided as inputs are. It can be a mask that earlier stages do not need. PyTorch: keyword
   * arguments.
   */
  readonly kwargs?: Readonly<Record<string, unknown>>
  /**
   * Whether the worker of the last stage returns all outputs; default true. Without them, their memory is free as soon as the loss is computed. PyTorch:
   * `return_outputs`.
   */
  readonly returnOutputs?: boolean
}

const OPTIONS = [
  'workers',
  'schedule',
  'microbatches',
  'loss',
  'scaleGrads',
  'inputSpec',
  'kwargsSpec',
  'targetSpec',
  'outputSpec',
  'name',
] as const satisfies readonly (keyof PipelineOptions)[]

/**
 * The part of a pipeline on this worker. A step runs the schedule and adds its gradients to `.grad` of the stages' parameters. They have the same bits as if
 * the whole model ran the micro-batches in ascending order, divided by the number of micro-batches. Without `zeroGrad` in between, the gradients of several
 * steps add up. After the last of these steps, call an optimizer on each worker.
 * @throws INVALID_ARGUMENT if an option is not valid; SCHEDULE_UNSUPPORTED or SCHEDULE_INVALID if the schedule is not valid; SCHEDULE_DEADLOCK if ranks would
 * wait for each other for ever; PIPELINE_STAGES_MISMATCH if the stages do not fit to the schedule; UNKNOWN_WORKER if that worker does not exist; all from the
 * constructor
 * @example
 * const layers = splitSequential(new Sequential(new Linear(2, 8), new Linear(8, 1)), 2)
 * const rank = getWorkerInfo().id
 * const stage = new PipelineStage(layers[rank]!, rank, 2) // each of 2 workers has one stage
 * const pipeline = new Pipeline(stage, { workers: [0, 1], schedule: 'GPipe', microbatches: 2, loss: mseLoss })
 * const { losses } = await pipeline.step(stage.isFirst ? [x] : [], stage.isLast ? { target: zeros([2, 1]) } : {})
 * losses.length // rank 0: 0, rank 1: 2
 */
export class Pipeline<Output = unknown, Target_ = unknown> {
  readonly schedule: PipelineSchedule
  readonly rank: number
  private readonly stages = new Map<number, PipelineStage>()
  private readonly workers: readonly WorkerInfo[]
  private readonly options: PipelineOptions<Output, Target_>
  private readonly name: string
  private readonly plans: { readonly training: Plan; readonly evaluation: Plan }
  private step_ = 0
  private state: 'ready' | 'stepping' = 'ready'

  constructor(stages: PipelineStage | readonly PipelineStage[], options: PipelineOptions<Output, Target_>) {
    checkOptions('Pipeline', options, OPTIONS)
    const runtime = currentRuntime()
    const list = Array.isArray(stages) ? (stages as readonly PipelineStage[]) : [stages as PipelineStage]
    const wrong = list.find((stage) => !(stage instanceof PipelineStage))
    if (wrong !== undefined)
      throw invalidArgument('Pipeline', 'stages', argumentText(wrong), 'Wrap each module: new PipelineStage(module, index, count).')
    if (!Array.isArray(options.workers))
      throw invalidArgument('Pipeline', 'an array of workers, by rank', argumentText(options.workers), 'Pass their names, or ids.')
    this.workers = options.workers.map((worker) => runtime.resolve(worker, 'Pipeline'))
    const names = this.workers.map(({ name }) => name).join(', ')
    this.rank = this.workers.findIndex(({ id }) => id === runtime.info.id)
    if (this.rank < 0) throw invalidArgument('Pipeline', `'${runtime.info.name}' among the workers`, names)
    if (new Set(this.workers.map(({ id }) => id)).size < this.workers.length)
      throw invalidArgument('Pipeline', 'each worker once', names, 'Give one rank several stages in place of one worker several ranks.')
    if (options.loss !== undefined) checkFunction('Pipeline', 'the loss', options.loss)
    this.options = options
    this.name = options.name ?? 'pipeline'
    this.schedule = withCommunications(scheduleFor(options as PipelineOptions<never, never>, list.length))
    simulate('Pipeline', this.schedule)
    if (options.loss !== undefined && !hasBackward(this.schedule))
      throw invalidArgument('Pipeline', 'no loss with a schedule of forwards alone', 'one', 'Leave the loss out, or take a whole schedule.')
    for (const stage of list) this.stages.set(stage.index, stage)
    this.checkStages(list)
    checkReplicasApart(list)
    claimName(this.name)
    this.plans = { training: this.plan(true), evaluation: this.plan(false) }
  }

  private plan(training: boolean): Plan {
    const { schedule, workers } = this
    const { scaleGrads = true, schedule: given } = this.options
    return planOf({
      parts: [
        `the workers ${workers.map(({ name }) => name).join(' ')}`,
        `${schedule.ranks.length} ranks`,
        `${schedule.stages} stages`,
        `${schedule.microbatches} micro-batches`,
        `scaleGrads ${scaleGrads}`,
        training ? 'forward and backward' : 'forward only',
      ],
      schedule: typeof given === 'string' ? `the schedule ${given}` : 'a schedule of its own',
      ranks: schedule.ranks.map((actions) => actions.map(actionText).join(' ')),
    })
  }

  /**
   * Runs one batch forward and backward on all workers. Every worker of the pipeline calls it. `inputs` are the arguments of the first stage's forward, on its
   * worker; other workers pass none. After an error some gradients may have been added. PyTorch: `schedule.step`.
   * @param inputs the arguments of the first stage's forward, on its worker; other workers pass none
   * @throws PIPELINE_FAILED on every worker if one worker fails. The error names the worker and the action, and its cause is that worker's first error: a
   * death, a deadline, an error of a forward, INVALID_ARGUMENT, MICROBATCH_EMPTY, PIPELINE_MISMATCH and others. PIPELINE_BUSY on this worker only, if another
   * step is under way
   */
  step(inputs: readonly unknown[] = [], options: PipelineStepOptions = {}): Promise<PipelineResult<Output>> {
    return this.run(inputs, options, this.options.loss !== undefined)
  }

  /** Runs one batch forward only, with grad mode off; it computes losses if there is a target. It does not call `module.eval()`. PyTorch: `schedule.eval`. */
  eval(inputs: readonly unknown[] = [], options: PipelineStepOptions = {}): Promise<PipelineResult<Output>> {
    return this.run(inputs, options, false)
  }

  private async run(inputs: readonly unknown[], options: PipelineStepOptions, training: boolean): Promise<PipelineResult<Output>> {
    if (this.state === 'stepping') throw busy('one step at a time')
    const { schedule, rank, stages, workers } = this
    const { loss, scaleGrads = true, inputSpec, kwargsSpec, targetSpec, outputSpec } = this.options as unknown as PipelineOptions
    for (const stage of stages.values()) if (stage.isStepping) throw busy(`one step of stage ${stage.index} at a time`)
    for (const stage of stages.values()) stage.begin()
    this.state = 'stepping'
    const step = this.step_++
    const { target, kwargs, returnOutputs = true, ...limits } = options ?? {}
    const { clock } = currentRuntime()
    const workerOf = (stage: number): WorkerInfo => workers[schedule.rankOf[stage]!]!
    // Tensors that go from worker to worker belong to no distributed context.
    return withScope({ context: null }, async () => {
      const link = openStageLink(this.name, step, training ? this.plans.training : this.plans.evaluation, limits)
      const run = new StepRun({
        schedule,
        rank,
        stages,
        workerOf,
        workers,
        link,
        clock,
        training,
        loss,
        scaleGrads,
        inputSpec,
        kwargsSpec,
        targetSpec,
        outputSpec,
      })
      let failure: PostgradError | null = null
      try {
        // Here, so that the others do not wait for a worker that has made a mistake.
        checkOptions('Pipeline.step', options, ['target', 'kwargs', 'returnOutputs', 'timeoutMs', 'signal'])
        return (await run.all({ inputs, target, kwargs, returnOutputs })) as PipelineResult<Output>
      } catch (error) {
        failure = this.failed(error, step, run, training)
        if (training) for (const stage of stages.values()) stage.abandon(failure)
        throw failure
      } finally {
        link.end(failure)
        for (const stage of stages.values()) stage.end()
        this.state = 'ready'
      }
    })
  }

  /** Of another worker's failure its own error. */
  private failed(error: unknown, step: number, { current: action, place, waitsFor }: StepRun, training: boolean): PostgradError {
    if (isPostgradError(error, 'PIPELINE_FAILED')) return error
    const { name } = this.workers[this.rank]!
    // Calls to all workers, to this one too, run out of time together: which of them was the first says nothing.
    const awaited = isPostgradError(error, 'RPC_TIMEOUT') ? waitsFor.map((worker) => worker.name) : []
    // Where it waits for nobody, it may be the timeout of a call that the stage has made.
    const isLate = isPostgradError(error) && awaited.length > 0
    const thrown = error instanceof Error ? error.message : String(error)
    const names = awaited.map((each) => `'${each}'`).join(', ')
    const why = isLate ? `it waited for ${names}, and its timeout (${error.values.timeoutMs} ms) is over` : thrown
    return new PostgradError('PIPELINE_FAILED', {
      op: 'Pipeline.step',
      message: `step ${step} failed on '${name}'${place}: ${why}`,
      remedy: this.remedy(training),
      cause: error,
      values: { pipeline: this.name, step, worker: name, action, ...(isLate ? { awaited } : {}) },
    })
  }

  private remedy(training: boolean): string {
    if (!training) return 'See the cause; after a death make a pipeline of another name.'
    return [...this.stages.values()].some(({ endsWithStep }) => endsWithStep)
      ? 'See the cause. The process groups of its DistributedDataParallels have ended: make new groups, modules and pipelines, and give the pipelines another name.'
      : 'See the cause. Set gradients to zero before the next step; after a death make a pipeline of another name.'
  }

  private checkStages(list: readonly PipelineStage[]): void {
    const { rankOf, stages } = this.schedule
    const expected = [...rankOf.keys()].filter((stage) => rankOf[stage] === this.rank)
    const got = list.map(({ index }) => index).sort((a, b) => a - b)
    const fits =
      expected.length === got.length && expected.every((stage, i) => stage === got[i]) && list.every(({ count }) => count === stages)
    if (fits && rankOf.every((rank) => rank < this.workers.length)) return
    throw new PostgradError('PIPELINE_STAGES_MISMATCH', {
      op: 'Pipeline',
      expected: `stages ${expected.join(', ')} of ${stages} on rank ${this.rank} of ${Math.max(...rankOf) + 1}`,
      got: `stages ${list.map(({ index, count }) => `${index} of ${count}`).join(', ')} on rank ${this.rank} of ${this.workers.length}`,
      remedy: `Give each worker the stages that the schedule has for it, as its rankOf says, and PipelineStage their number, ${stages}.`,
      values: { expected, got, rank: this.rank },
    })
  }
}

function scheduleFor({ schedule, microbatches, workers }: PipelineOptions<never, never>, stagesPerRank: number): PipelineSchedule {
  if (typeof schedule !== 'string') {
    if (!Array.isArray(schedule?.ranks))
      throw invalidArgument('Pipeline', 'the name of a schedule, or a schedule', argumentText(schedule), "Pass '1F1B', for instance.")
    if (microbatches !== undefined && microbatches !== schedule.microbatches)
      throw invalidArgument(
        'Pipeline',
        `${schedule.microbatches} microbatches, as the schedule has`,
        argumentText(microbatches),
        'Leave microbatches out.',
      )
    return scheduleOf(schedule.ranks)
  }
  if (microbatches === undefined)
    throw invalidArgument('Pipeline', 'microbatches with the name of a schedule', 'none', 'Say how many: { microbatches: 8 }.')
  return pipelineSchedule(schedule, { ranks: workers.length, microbatches, stagesPerRank })
}
