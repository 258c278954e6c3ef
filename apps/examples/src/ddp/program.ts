/**
 * Data-parallel training: every trainer has a replica of a small convolutional network and a part of each epoch's samples; the mean of all gradients arrives at all
 * before they step, so the replicas stay alike.
 */
import { crossEntropy, expose, Generator, noGrad, reportProgress, type Tensor } from 'postgrad'
import { DataLoader, DistributedSampler, TensorDataset } from 'postgrad/data'
import { DistributedDataParallel, destroyProcessGroup, initProcessGroup } from 'postgrad/distributed'
import { BatchNorm2d, Conv2d, Linear, MaxPool2d, Module } from 'postgrad/nn'
import { SGD } from 'postgrad/optim'
import { KINDS, SIDE, stripes } from './stripes.js'

export class Cnn extends Module {
  private readonly conv1 = new Conv2d(1, 8, 3, { padding: 1 })
  private readonly norm = new BatchNorm2d(8)
  private readonly conv2 = new Conv2d(8, 16, 3, { padding: 1 })
  private readonly pool = new MaxPool2d(2)
  private readonly head = new Linear(16 * (SIDE / 4) ** 2, KINDS)

  /** [N, 1, SIDE, SIDE] → logits [N, KINDS] */
  forward(images: Tensor): Tensor {
    const first = this.pool.forward(this.norm.forward(this.conv1.forward(images)).relu())
    const second = this.pool.forward(this.conv2.forward(first).relu())
    return this.head.forward(second.flatten(1))
  }
}

export interface TrainOptions {
  /** All that train, this worker among them. */
  readonly trainers: readonly string[]
  /** Of all trainers together. */
  readonly samples: number
  /** Of one trainer's batch. */
  readonly batch: number
  readonly epochs: number
  readonly lr: number
  readonly seed: number
}

export interface TrainReport {
  /** The mean over an epoch's batches of this trainer. */
  readonly losses: readonly number[]
  /** Share of fresh samples that it classifies in the end. */
  readonly accuracy: number
  /** The sum of all parameters' elements: the same on all trainers. */
  readonly checksum: number
}

/** On every trainer at once: the whole run. */
export async function train({ trainers, samples, batch, epochs, lr, seed }: TrainOptions): Promise<TrainReport> {
  const group = await initProcessGroup({ ranks: trainers })
  const { images, labels } = stripes(new Generator(seed), samples)
  const dataset = new TensorDataset(images, labels)
  const sampler = new DistributedSampler(dataset, { numReplicas: group.size, rank: group.rank, seed })
  const loader = new DataLoader(dataset, { batchSize: batch, sampler })
  // Each makes weights of its own; rank 0's count.
  using model = await DistributedDataParallel.create(new Cnn())
  const optimizer = new SGD(model.parameters(), { lr, momentum: 0.9 })
  const losses: number[] = []
  for (let epoch = 0; epoch < epochs; epoch++) {
    sampler.setEpoch(epoch)
    let sum = 0
    for await (const [x, y] of loader) {
      optimizer.zeroGrad()
      const loss = crossEntropy(await model.forward(x), y)
      await model.backward(loss)
      optimizer.step()
      sum += await loss.item()
    }
    losses.push(sum / loader.length)
    if (group.rank === 0) reportProgress({ done: epoch + 1, total: epochs, text: `epoch ${epoch + 1}, loss ${losses.at(-1)!.toFixed(3)}` })
  }
  const fresh = stripes(new Generator(seed + 1), 200)
  const right = noGrad(() => model.module.eval().forward(fresh.images))
    .argmax(1)
    .eq(fresh.labels)
  const accuracy = await right.to('float32').mean().item()
  let checksum = 0
  for (const parameter of model.parameters()) checksum += await parameter.detach().sum().item()
  destroyProcessGroup()
  return { losses, accuracy, checksum }
}

expose({ train })
