/** Steps of a pipeline, which worker0 starts on all workers, each with its stages of a chain of square layers: how idle workers are, and how much heap they hold. */
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { heapStats, threadHeap } from '@postgrad/tensor/internal'
import { call, currentWorker, defineFunction, expose, mseLoss, ones, type Tensor } from 'postgrad'
import { Linear, Module, Sequential, Tanh } from 'postgrad/nn'
import {
  measuredCosts,
  measuredSteps,
  Pipeline,
  type PipelineScheduleName,
  PipelineStage,
  pipelineSchedule,
  simulateSchedule,
  type TimedAction,
} from 'postgrad/pipelining'

export interface PipelineRun {
  readonly schedule: PipelineScheduleName
  readonly workers: readonly string[]
  readonly microbatches: number
  /** Of a micro-batch. */
  readonly rows: number
  readonly width: number
  /** Linear layers of a stage. */
  readonly layers: number
  /** Looks at the heap at every forward, after a collection: then the times mean nothing. */
  readonly watchesHeap: boolean
}

interface Part {
  /** Of each step. */
  readonly actions: (readonly TimedAction[])[]
  readonly peakBytes: number
}

export interface PipelineFigures {
  /** Mean over the steps. */
  readonly bubble: number
  /** The schedule's own, at the mean costs of each stage's actions: no messages, no waits but for what it says. */
  readonly planned: number
  /** Of the whole heap, above what was live before the first step. */
  readonly peakBytes: number
}

const scheduleOf = ({ schedule, workers, microbatches }: PipelineRun) => pipelineSchedule(schedule, { ranks: workers.length, microbatches })

/** On worker0. */
export async function pipelineSteps(n: number, run: PipelineRun): Promise<PipelineFigures> {
  const name = `bench ${pipelines++}`
  const beforeBytes = heapStats(threadHeap()).liveBytes
  const parts = await Promise.all(run.workers.map((worker) => call(worker, stepsThere, [n, name, run, beforeBytes], { timeoutMs: 0 })))
  const schedule = scheduleOf(run)
  let bubble = 0
  for (let step = 0; step < n; step++) {
    bubble += measuredSteps(
      schedule,
      parts.map(({ actions }) => actions[step]!),
    ).bubble
  }
  const planned = simulateSchedule(schedule, measuredCosts(parts.flatMap(({ actions }) => actions))).bubble
  return { bubble: bubble / n, planned, peakBytes: Math.max(...parts.map(({ peakBytes }) => peakBytes)) }
}

let pipelines = 0

async function stepsThere(n: number, name: string, run: PipelineRun, beforeBytes: number): Promise<Part> {
  const { workers, microbatches, rows, width, layers, watchesHeap } = run
  const schedule = scheduleOf(run)
  const rank = workers.indexOf(currentWorker().info.name)
  const watch = watchesHeap ? new HeapWatch(beforeBytes) : null
  const stages = [...schedule.rankOf.keys()]
    .filter((stage) => schedule.rankOf[stage] === rank)
    .map((stage) => {
      const parts = Array.from({ length: layers }, () => [new Linear(width, width), new Tanh()]).flat()
      return new PipelineStage(new Sequential(...parts.toSpliced(1, 0, ...(watch === null ? [] : [watch]))), stage, schedule.stages)
    })
  const pipeline = new Pipeline(stages, { name, workers, schedule, loss: mseLoss })
  const batch = () => ones([microbatches * rows, width])
  const inputs = schedule.rankOf[0] === rank ? [batch()] : []
  const target = schedule.rankOf.at(-1) === rank ? batch() : undefined
  const actions = []
  for (let step = 0; step < n; step++) {
    const result = await pipeline.step(inputs, { target })
    actions.push(result.actions)
    for (const { module } of stages) for (const parameter of module.parameters()) parameter.grad = null
    if (watch === null) continue
    watch.collect()
    await new Promise((resolve) => setImmediate(resolve))
  }
  return { actions, peakBytes: watch?.peakBytes ?? 0 }
}

/** A layer that changes nothing, near the beginning of a stage: looks at the heap in forward, and collects there, and at the end of backward, what others have left. */
class HeapWatch extends Module {
  peakBytes = 0
  readonly collect: () => void
  private readonly pass: (x: Tensor) => Tensor

  constructor(beforeBytes: number) {
    super()
    setFlagsFromString('--expose-gc')
    this.collect = runInNewContext('gc') as () => void
    this.pass = defineFunction({
      name: 'HeapWatch',
      forward: (_, x: Tensor) => {
        this.peakBytes = Math.max(this.peakBytes, heapStats(threadHeap()).liveBytes - beforeBytes)
        // Collected blocks return to the heap between this action and the next.
        this.collect()
        return x
      },
      backward: (_, grad: Tensor) => {
        this.collect()
        return grad
      },
    })
  }

  forward(x: Tensor): Tensor {
    return this.pass(x)
  }
}

expose({ pipelineSteps, stepsThere })
