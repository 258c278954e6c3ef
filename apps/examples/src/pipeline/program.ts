/**
 * A pipeline: a small transformer that predicts the next character, its layers in stages on several workers. A schedule takes each batch through them in micro-batches; each worker has an
 * optimizer for its own stages. Every worker runs `train`; the first stage's worker reads inputs, the last one's targets. With `replicas` there are several such pipelines,
 * each with its part of every batch: a stage's gradients are the mean over all of them.
 */
import { crossEntropy, currentWorker, expose, Generator, manualSeed, ones, reportProgress, type Tensor, tensor } from 'postgrad'
import {
  DistributedDataParallel,
  destroyProcessGroup,
  initProcessGroup,
  newSubgroupsByEnumeration,
  type ProcessGroup,
} from 'postgrad/distributed'
import { Embedding, LayerNorm, Linear, Module, Sequential, TransformerEncoderLayer } from 'postgrad/nn'
import { Adam } from 'postgrad/optim'
import {
  Pipeline,
  type PipelineSchedule,
  type PipelineScheduleName,
  PipelineStage,
  pipelineSchedule,
  splitSequential,
  type TimedAction,
} from 'postgrad/pipelining'

export interface ModelOptions {
  readonly alphabet: number
  readonly width: number
  /** Transformer layers. */
  readonly layers: number
  /** Characters that a prediction sees at most. */
  readonly context: number
}

/** Characters int32 [N, L] → [N, L, width]: what each is, and where. */
class Encoder extends Module {
  private readonly characters: Embedding
  private readonly places: Embedding

  constructor({ alphabet, width, context }: ModelOptions) {
    super()
    this.characters = new Embedding(alphabet, width)
    this.places = new Embedding(context, width)
  }

  forward(text: Tensor): Tensor {
    const places = tensor(Int32Array.from({ length: text.shape[1]! }, (_, i) => i))
    return this.characters.forward(text).add(this.places.forward(places))
  }
}

/** [N, L, width] → [N, L, width]; each place sees those before it. */
class Layer extends Module {
  private readonly layer: TransformerEncoderLayer

  constructor({ width }: ModelOptions) {
    super()
    this.layer = new TransformerEncoderLayer(width, 4, {
      dimFeedforward: 4 * width,
      dropout: 0,
      activation: 'gelu',
      batchFirst: true,
      normFirst: true,
    })
  }

  forward(x: Tensor): Tensor {
    const length = x.shape[1]!
    return this.layer.forward(x, { srcMask: ones([length, length]).triu(1).to('bool') })
  }
}

/** [N, L, width] → logits [N, L, alphabet] */
class Decoder extends Module {
  private readonly norm: LayerNorm
  private readonly linear: Linear

  constructor({ alphabet, width }: ModelOptions) {
    super()
    this.norm = new LayerNorm(width)
    this.linear = new Linear(width, alphabet)
  }

  forward(x: Tensor): Tensor {
    return this.linear.forward(this.norm.forward(x))
  }
}

/** The whole of it: from one seed the same on every worker, each of which keeps its stages only. */
export function makeModel(options: ModelOptions, seed: number): Sequential {
  manualSeed(seed)
  return new Sequential(new Encoder(options), ...Array.from({ length: options.layers }, () => new Layer(options)), new Decoder(options))
}

/** Logits [N, L, alphabet], and the next characters [N, L]. */
export const lossOf = (logits: Tensor, next: Tensor): Tensor => crossEntropy(logits.reshape([-1, logits.shape[2]!]), next.reshape([-1]))

/** Places of the text, drawn one batch after the other: the same on every worker. */
export class Batches {
  private readonly random: Generator
  private readonly text: Int32Array
  private readonly batch: number
  private readonly length: number

  constructor(text: Int32Array, batch: number, length: number, seed: number) {
    this.random = new Generator(seed)
    this.text = text
    this.batch = batch
    this.length = length
  }

  /** int32 [N, L] each: characters, and those that follow them. */
  next(): [inputs: Tensor, targets: Tensor] {
    const starts = Array.from({ length: this.batch }, () => Math.floor(this.random.uniform() * (this.text.length - this.length - 1)))
    const read = (shift: number) =>
      tensor(Int32Array.from(starts.flatMap((start) => [...this.text.subarray(start + shift, start + shift + this.length)]))).reshape([
        this.batch,
        this.length,
      ])
    return [read(0), read(1)]
  }
}

export interface TrainOptions extends ModelOptions {
  /** Of all pipelines: first those of the first one, then those of the next. */
  readonly workers: readonly string[]
  /** Pipelines; default 1. */
  readonly replicas?: number
  readonly schedule: PipelineScheduleName
  readonly stagesPerRank: number
  readonly microbatches: number
  readonly text: Int32Array
  readonly batch: number
  readonly steps: number
  readonly lr: number
  readonly seed: number
}

export interface TrainReport {
  /** Of each step, of this pipeline's part of the batch, in nats a character; empty but on the worker of the last stage. */
  readonly losses: readonly number[]
  /** This worker's last step, by action. */
  readonly actions: readonly TimedAction[]
  /** Sum of all parameters of its stages, to be compared. */
  readonly checksum: number
}

export const scheduleOfRun = ({ schedule, workers, replicas = 1, microbatches, stagesPerRank }: TrainOptions): PipelineSchedule =>
  pipelineSchedule(schedule, { ranks: workers.length / replicas, microbatches, stagesPerRank })

/** The workers that have the same stages in all pipelines. Every worker calls it. */
async function stageGroup(workers: readonly string[], ranks: number): Promise<ProcessGroup> {
  await initProcessGroup({ ranks: workers })
  const numbers = [...workers.keys()]
  const { current } = await newSubgroupsByEnumeration(
    numbers.slice(0, ranks).map((rank) => numbers.filter((each) => each % ranks === rank)),
  )
  return current!
}

/** On every worker at once. */
export async function train(options: TrainOptions): Promise<TrainReport> {
  const { workers, replicas = 1, batch, context, text, steps, lr, seed } = options
  const schedule = scheduleOfRun(options)
  const ranks = workers.length / replicas
  const place = workers.indexOf(currentWorker().info.name)
  const [replica, rank] = [Math.floor(place / ranks), place % ranks]
  const group = replicas === 1 ? null : await stageGroup(workers, ranks)
  const stages: PipelineStage[] = []
  for (const [i, part] of splitSequential(makeModel(options, seed), schedule.stages).entries()) {
    if (schedule.rankOf[i] !== rank) continue
    const module = group === null ? part : await DistributedDataParallel.create(part, { processGroup: group })
    stages.push(new PipelineStage(module, i, schedule.stages))
  }
  const pipeline = new Pipeline(stages, { workers: workers.slice(replica * ranks, (replica + 1) * ranks), schedule, loss: lossOf })
  const parameters = stages.flatMap(({ module }) => module.parameters())
  const optimizer = new Adam(parameters, { lr })
  const batches = new Batches(text, batch, context, seed)
  const [isFirst, isLast] = [stages.some((stage) => stage.isFirst), stages.some((stage) => stage.isLast)]
  const losses: number[] = []
  let actions: readonly TimedAction[] = []
  for (let step = 1; step <= steps; step++) {
    const rows = batch / replicas
    const [inputs, target] = batches.next().map((each) => each.narrow(0, replica * rows, rows)) as [Tensor, Tensor]
    optimizer.zeroGrad()
    const result = await pipeline.step(isFirst ? [inputs] : [], isLast ? { target } : {})
    optimizer.step()
    actions = result.actions
    if (!isLast) continue
    losses.push(await meanOf(result.losses))
    if (replica === 0) reportProgress({ done: step, total: steps, text: `step ${step}, loss ${losses.at(-1)!.toFixed(3)}` })
  }
  let checksum = 0
  for (const parameter of parameters) checksum += await parameter.sum().item()
  if (group !== null) destroyProcessGroup()
  return { losses, actions, checksum }
}

export async function meanOf(losses: readonly Tensor[]): Promise<number> {
  let sum = 0
  for (const loss of losses) sum += await loss.item()
  return sum / losses.length
}

expose({ train })
