/**
 * Random programs that gather gradients of several batches before they step: noSync in each arrangement, under join, with ZeRO, in pipelines whose stages are replicas, and with mistakes in between. Each
 * rank writes a log of its passes and steps; `accumulation-in-one-place.suite.ts` checks the logs.
 */
import { mseLoss } from '@postgrad/autograd'
import { isPostgradError } from '@postgrad/base'
import { Linear, type Module, Sequential, SGD, Tanh } from '@postgrad/nn'
import { initProcessGroup, newSubgroupsByEnumeration, type ProcessGroup } from '@postgrad/process-group'
import { currentRuntime } from '@postgrad/rpc/internal'
import { Generator, type Tensor } from '@postgrad/tensor'
import { allReduceHook } from '../ddp/comm-hooks.js'
import { DistributedDataParallel, type DistributedDataParallelOptions } from '../ddp/distributed-data-parallel.js'
import { join } from '../ddp/join.js'
import { batchOf, lossOf, seeded } from '../ddp/models.suite.js'
import { failure } from '../ddp/sim-ranks.suite.js'
import { ZeroRedundancyOptimizer } from '../ddp/zero-redundancy-optimizer.js'
import { type PipelineScheduleName, pipelineSchedule } from './generators.js'
import { Pipeline } from './pipeline.js'
import { PipelineStage } from './stage.js'

/** How passes of noSync are arranged; `beside`: next to a pass that is reduced, or a second step of a pipeline next to one that is under way. */
const ARRANGEMENTS = ['each', 'inOne', 'atOnce', 'nested', 'synchronous', 'beside'] as const

interface Part {
  readonly how: (typeof ARRANGEMENTS)[number]
  /** Numbers of the batches of noSync. */
  readonly batches: readonly number[]
  /** Of the pass that is reduced, of `beside`. */
  readonly reduced: number
  /** By rank and batch, in ms, of simulated time. */
  readonly pauses: readonly (readonly number[])[]
  readonly isReducedFirst: boolean
}

/** Gathered, then reduced; then perhaps a step. */
interface Round {
  readonly parts: readonly Part[]
  readonly last: number
  /** An optimizer is to step before the last pass. */
  readonly hasMistake: boolean
  readonly steps: boolean
  readonly zeroes: boolean
}

export interface AccumulationProgram {
  readonly kind: 'replicas' | 'join' | 'pipelines'
  readonly replicas: number
  /** Ranks of each replica: more than one in pipelines alone. */
  readonly places: number
  readonly width: number
  readonly options: DistributedDataParallelOptions
  readonly isHooked: boolean
  readonly isCut: boolean
  readonly divideByInitialWorldSize: boolean
  /** Of each replica: how many rounds it has inputs for, and whether it ends in the middle of another one. */
  readonly counts: readonly number[]
  readonly endsInside: readonly boolean[]
  readonly rounds: readonly Round[]
  readonly schedule: PipelineScheduleName
  readonly microbatches: number
  readonly scaleGrads: boolean
}

export type Entry =
  /** A pass of noSync has begun, with the weights after so many steps; it has ended, or was refused. */
  | { readonly kind: 'begun'; readonly batch: number; readonly version: number }
  | { readonly kind: 'ended'; readonly batch: number }
  | { readonly kind: 'refused'; readonly batch: number }
  | { readonly kind: 'reduced' }
  | { readonly kind: 'zeroed' }
  /** Its inputs are used up. */
  | { readonly kind: 'out' }
  /** The error of a step by gradients of this rank alone. */
  | { readonly kind: 'mistake'; readonly code: string }
  | { readonly kind: 'grads'; readonly values: readonly (string | null)[] }
  | { readonly kind: 'weights'; readonly values: readonly (string | null)[] }

export const SETTINGS = { lr: 0.1, momentum: 0.9 }
export const ROWS = 12
export const layersOf = (width: number): (Linear | Tanh)[] => [
  ...[1, 2].flatMap((seed) => [seeded(seed, () => new Linear(width, width)), new Tanh()]),
  seeded(3, () => new Linear(width, width)),
  seeded(4, () => new Linear(width, width)),
]
/** Stages of a pipeline, as places of their layers. */
export const STAGES: Readonly<Record<number, readonly (readonly number[])[]>> = {
  1: [[0, 1, 2, 3, 4, 5]],
  2: [
    [0, 1, 2],
    [3, 4, 5],
  ],
  4: [[0, 1], [2, 3], [4], [5]],
}
export const hexOf = (tensors: Iterable<Tensor | null>): (string | null)[] =>
  Array.from(tensors, (t) => (t === null ? null : Buffer.from(t.dataSync().slice().buffer).toString('hex')))

export function accumulationProgramOf(seed: number): AccumulationProgram {
  const generator = new Generator(seed)
  const below = (n: number): number => generator.integer(0, n)
  const pick = <T>(list: readonly T[]): T => list[below(list.length)]!
  const kind = pick(['replicas', 'replicas', 'join', 'pipelines'] as const)
  const places = kind === 'pipelines' ? 1 + below(2) : 1
  const replicas = 1 + below(places === 2 ? 2 : 4)
  const isCut = below(3) === 0
  let batches = 0
  const part = (): Part => {
    const how = pick(kind === 'join' ? ARRANGEMENTS.slice(0, -1) : ARRANGEMENTS)
    const own = Array.from({ length: 1 + below(3) }, () => batches++)
    const pauses = Array.from({ length: replicas }, () => own.map(() => (kind === 'replicas' ? pick([0, 0, 1, 2, 5, 20]) : 0)))
    return { how, batches: own, reduced: batches++, pauses, isReducedFirst: below(2) === 0 }
  }
  const round = (): Round => {
    // An optimizer that is cut over the ranks steps once for each forward of a join.
    const isPlain = kind === 'join' && isCut
    const parts = isPlain ? [] : Array.from({ length: below(3) }, part)
    return {
      parts,
      last: batches++,
      hasMistake: replicas > 1 && parts.length > 0 && parts.at(-1)!.how !== 'beside' && below(3) === 0,
      steps: isPlain || below(2) === 0,
      zeroes: kind === 'join' || below(2) === 0,
    }
  }
  const rounds = Array.from({ length: 2 + below(3) }, round)
  const microbatches = 1 + below(4)
  const counts = Array.from({ length: replicas }, () => (kind === 'join' ? 1 + below(rounds.length) : rounds.length))
  counts[below(replicas)] = rounds.length
  const limits = below(2) === 0 ? {} : { firstBucketMb: 1e-5, bucketCapMb: below(2) === 0 ? 1e-5 : 1e-4 }
  return {
    ...{ kind, replicas, places, isCut, counts, rounds, microbatches },
    width: kind === 'replicas' ? pick([3, 3, 130]) : 3,
    options: { ...limits, findUnusedParameters: below(3) === 0, gradientAsBucketView: below(2) === 0 },
    isHooked: below(4) === 0,
    divideByInitialWorldSize: below(2) === 0,
    endsInside: counts.map((count) => kind === 'join' && !isCut && count < rounds.length && below(2) === 0),
    schedule:
      places === 1 ? 'GPipe' : microbatches === 4 ? pick(['GPipe', '1F1B', 'ZBVZeroBubble'] as const) : pick(['GPipe', '1F1B'] as const),
    scaleGrads: below(3) > 0,
  }
}

/** On one rank. Rejects where a crash of another rank ends it. */
export async function runAccumulation(program: AccumulationProgram, rank: number, log: Entry[]): Promise<void> {
  const group = await initProcessGroup()
  await (program.kind === 'pipelines' ? inPipelines(program, rank, log) : asReplica(program, rank, log, group))
}

interface Stepping {
  step(): unknown
}

/** The part that all kinds have in common: an optimizer, and the log. */
class Course {
  version = 0
  private readonly optimizer: Stepping
  private readonly parameters: readonly Tensor[]
  private readonly log: Entry[]

  constructor(optimizer: Stepping, parameters: readonly Tensor[], log: Entry[]) {
    this.optimizer = optimizer
    this.parameters = parameters
    this.log = log
  }

  async alone(batch: number, pass: () => unknown): Promise<void> {
    this.log.push({ kind: 'begun', batch, version: this.version })
    try {
      await pass()
      this.log.push({ kind: 'ended', batch })
    } catch (error) {
      if (!isPostgradError(error, 'DDP_REDUCTION_UNFINISHED') || error.cause !== undefined) throw error
      this.log.push({ kind: 'refused', batch })
    }
  }

  reduced(): void {
    this.log.push({ kind: 'reduced' })
    this.showGrads()
  }

  showGrads(): void {
    this.log.push({ kind: 'grads', values: hexOf(this.parameters.map(({ grad }) => grad)) })
  }

  showWeights(): void {
    this.log.push({ kind: 'weights', values: hexOf(this.parameters) })
  }

  async mistake(): Promise<void> {
    this.log.push({ kind: 'mistake', code: (await failure((async () => this.optimizer.step())())).code })
  }

  out(): void {
    this.log.push({ kind: 'out' })
  }

  async end({ steps, zeroes }: Round): Promise<void> {
    if (steps) {
      await this.optimizer.step()
      this.version++
      this.showWeights()
    }
    if (!zeroes) return
    for (const parameter of this.parameters) parameter.grad = null
    this.log.push({ kind: 'zeroed' })
  }
}

async function asReplica(program: AccumulationProgram, rank: number, log: Entry[], processGroup: ProcessGroup): Promise<void> {
  const { width, options, isHooked, isCut, rounds, counts, endsInside, divideByInitialWorldSize } = program
  const model = await DistributedDataParallel.create(new Sequential(...layersOf(width)), options)
  if (isHooked) model.registerCommHook(null, allReduceHook)
  const parameters = model.parameters()
  const optimizer = isCut ? new ZeroRedundancyOptimizer(parameters, SGD, SETTINGS, { processGroup }) : new SGD(parameters, SETTINGS)
  const course = new Course(optimizer, parameters, log)
  const lossFor = async (batch: number): Promise<Tensor> => lossOf((await model.forward(batchOf(rank, batch, ROWS, width))) as Tensor)
  const alone = async (batch: number, pauseMs: number, isSynchronous = false): Promise<void> => {
    await pause(pauseMs)
    const loss = await lossFor(batch)
    await course.alone(batch, () => (isSynchronous ? loss.backward() : model.backward(loss)))
  }
  const reduce = async (batch: number): Promise<void> => {
    const loss = await lossFor(batch)
    await model.backward(loss)
    course.reduced()
  }
  const arrange = async ({ how, batches, pauses, reduced, isReducedFirst }: Part): Promise<void> => {
    const [first, ...others] = batches.map((batch, i) => () => alone(batch, pauses[rank]![i]!, how === 'synchronous'))
    const all = [first!, ...others]
    const inTurn = async (passes: readonly (() => Promise<void>)[]): Promise<void> => {
      for (const pass of passes) await pass()
    }
    if (how === 'each') await inTurn(all.map((pass) => () => model.noSync(pass)))
    else if (how === 'inOne' || how === 'synchronous') await model.noSync(() => inTurn(all))
    else if (how === 'nested')
      await model.noSync(async () => {
        await first!()
        await model.noSync(() => inTurn(others))
      })
    else {
      const quiet = all.map((pass) => () => model.noSync(pass))
      const loud = how === 'beside' ? [() => reduce(reduced)] : []
      const begin = isReducedFirst ? [...loud, ...quiet] : [...quiet, ...loud]
      const outcomes = await Promise.allSettled(begin.map((pass) => pass()))
      for (const outcome of outcomes) if (outcome.status === 'rejected') throw outcome.reason
    }
  }
  const train = async (): Promise<void> => {
    for (const round of rounds.slice(0, counts[rank])) {
      for (const part of round.parts) await arrange(part)
      if (round.hasMistake) await course.mistake()
      await reduce(round.last)
      await course.end(round)
    }
    if (endsInside[rank]) for (const part of rounds[counts[rank]!]!.parts) await arrange(part)
    course.out()
  }
  if (program.kind === 'join')
    await join(optimizer instanceof ZeroRedundancyOptimizer ? [model, optimizer] : [model], train, { divideByInitialWorldSize })
  else await train()
  course.showGrads()
  course.showWeights()
}

async function inPipelines(program: AccumulationProgram, rank: number, log: Entry[]): Promise<void> {
  const { width, options, isCut, isHooked, rounds, places, replicas, schedule: name, microbatches, scaleGrads } = program
  const [replica, place] = [Math.floor(rank / places), rank % places]
  const ranksOf = (of: number): number[] => Array.from({ length: replicas }, (_, i) => i * places + of)
  const { current } = await newSubgroupsByEnumeration(Array.from({ length: places }, (_, i) => ranksOf(i)))
  const { rankOf, stages: count } = pipelineSchedule(name, { ranks: places, microbatches, stagesPerRank: name === 'ZBVZeroBubble' ? 2 : 1 })
  const models: DistributedDataParallel[] = []
  const stages: PipelineStage[] = []
  for (const [index, layers] of STAGES[count]!.entries()) {
    if (rankOf[index] !== place) continue
    const all = layersOf(width)
    const module = new Sequential(...layers.map((i) => all[i]!))
    const model = await DistributedDataParallel.create(module as Module as Linear, { ...options, processGroup: current! })
    if (isHooked) model.registerCommHook(current!, allReduceHook)
    models.push(model)
    stages.push(new PipelineStage(model, index, count))
  }
  const workers = Array.from({ length: places }, (_, i) => replica * places + i)
  const pipeline = new Pipeline<Tensor, Tensor>(stages, {
    workers,
    schedule: name,
    microbatches,
    scaleGrads,
    loss: mseLoss,
    name: `pipeline ${replica}`,
  })
  const parameters = models.flatMap((model) => model.parameters())
  const settings = { processGroup: current! }
  const optimizer = isCut ? new ZeroRedundancyOptimizer(parameters, SGD, SETTINGS, settings) : new SGD(parameters, SETTINGS)
  const course = new Course(optimizer, parameters, log)
  const step = async (batch: number): Promise<void> => {
    const { x, target } = pipelineBatchOf(replica, batch, width)
    const has = (index: number): boolean => stages.some((stage) => stage.index === index)
    await pipeline.step(has(0) ? [x] : [], has(count - 1) ? { target } : {})
  }
  const quietly = (fn: () => Promise<void>, [model, ...others]: readonly DistributedDataParallel[] = models): Promise<void> =>
    model === undefined ? fn() : model.noSync(() => quietly(fn, others))
  const alone = (batch: number): Promise<void> => course.alone(batch, () => step(batch))
  const arrange = async ({ how, batches, reduced }: Part): Promise<void> => {
    if (how === 'beside') {
      const first = step(reduced)
      const second = await failure(quietly(() => step(batches[0]!)))
      if (second.code !== 'PIPELINE_BUSY') throw second
      await first
      course.reduced()
    } else if (how === 'nested') await quietly(() => quietly(async () => void (await inTurn(batches))))
    else if (how === 'inOne') await quietly(() => inTurn(batches))
    else for (const batch of batches) await quietly(() => alone(batch))
  }
  const inTurn = async (batches: readonly number[]): Promise<void> => {
    for (const batch of batches) await alone(batch)
  }
  for (const round of rounds) {
    for (const part of round.parts) await arrange(part)
    if (round.hasMistake) await course.mistake()
    await step(round.last)
    course.reduced()
    await course.end(round)
  }
  course.showGrads()
  course.showWeights()
}

export function pipelineBatchOf(replica: number, batch: number, width: number): { readonly x: Tensor; readonly target: Tensor } {
  return { x: batchOf(replica, 2 * batch, ROWS, width), target: batchOf(replica, 2 * batch + 1, ROWS, width) }
}

function pause(ms: number): Promise<void> | undefined {
  return ms === 0 ? undefined : new Promise((resolve) => void currentRuntime().clock.setTimer(ms, resolve))
}
