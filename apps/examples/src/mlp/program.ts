/**
 * Model parallelism: each layer of an MLP is a remote module on a worker of its own. The trainer calls them one after the other; the backward pass goes
 * through all of them in one context, and one optimizer steps every layer where it lives.
 */
import {
  crossEntropy,
  DistributedOptimizer,
  distAutograd,
  expose,
  Generator,
  getAllRemoteParams,
  noGrad,
  RemoteModule,
  reportProgress,
  type Tensor,
} from 'postgrad'
import { Linear, Module } from 'postgrad/nn'
import { Adam } from 'postgrad/optim'
import { ARMS, type Points, spirals } from './spirals.js'

/** One layer: a linear map, then tanh unless it is the last. */
export class Layer extends Module {
  private readonly linear: Linear
  private readonly last: boolean

  constructor(inputs: number, outputs: number, last: boolean) {
    super()
    this.linear = new Linear(inputs, outputs)
    this.last = last
  }

  /** [N, inputs] → [N, outputs] */
  forward(x: Tensor): Tensor {
    const y = this.linear.forward(x)
    return this.last ? y : y.tanh()
  }
}

export class ParallelMlp extends Module {
  readonly layers: readonly RemoteModule<Layer>[]

  /** 2 → hidden → … → ARMS, a layer on each of the workers. */
  constructor(workers: readonly string[], hidden: number) {
    super()
    const last = workers.length - 1
    this.layers = workers.map(
      (worker, i) => new RemoteModule(worker, Layer, [i === 0 ? 2 : hidden, i === last ? ARMS : hidden, i === last]),
    )
  }

  /** [N, 2] → logits [N, ARMS] */
  async forward(points: Tensor): Promise<Tensor> {
    let x = points
    for (const layer of this.layers) x = await layer.forward(x)
    return x
  }

  [Symbol.dispose](): void {
    for (const layer of this.layers) layer.dispose()
  }
}

/** Forward through all workers, backward through all workers, a step on each. Gives the loss. */
export function trainStep(model: ParallelMlp, optimizer: DistributedOptimizer, { points, labels }: Points): Promise<number> {
  return distAutograd.context(async (ctx) => {
    const loss = crossEntropy(await model.forward(points), labels)
    await ctx.backward([loss])
    await optimizer.step(ctx)
    return loss.item()
  })
}

export interface TrainOptions {
  /** Of the layers, in their order. */
  readonly workers: readonly string[]
  readonly hidden: number
  readonly points: number
  readonly steps: number
  readonly lr: number
  readonly seed: number
}

export interface TrainReport {
  readonly losses: readonly number[]
  /** Share of points that it has right in the end. */
  readonly accuracy: number
}

/** On `trainer`: the whole run. */
export async function train({ workers, hidden, points: count, steps, lr, seed }: TrainOptions): Promise<TrainReport> {
  using model = new ParallelMlp(workers, hidden)
  const parameters = await getAllRemoteParams(model)
  using optimizer = new DistributedOptimizer(Adam, parameters, { lr })
  const data = spirals(new Generator(seed), count)
  const losses: number[] = []
  for (let step = 1; step <= steps; step++) {
    losses.push(await trainStep(model, optimizer, data))
    reportProgress({ done: step, total: steps, text: `step ${step}, loss ${losses.at(-1)!.toFixed(3)}` })
  }
  const logits = await noGrad(() => model.forward(data.points))
  for (const parameter of parameters) parameter.dispose()
  return { losses, accuracy: await logits.argmax(1).eq(data.labels).to('float32').mean().item() }
}

expose({ Layer, train })
