/** The program that every worker loads. Each worker has a copy of the model and its own part of each epoch's samples. The mean of all gradients keeps the copies alike. */
import { crossEntropy, expose, Generator, noGrad, type Tensor, tensor } from 'postgrad'
import { DataLoader, DistributedSampler, TensorDataset } from 'postgrad/data'
import { DistributedDataParallel, destroyProcessGroup, initProcessGroup } from 'postgrad/distributed'
import { Linear, Sequential, Tanh } from 'postgrad/nn'
import { Adam } from 'postgrad/optim'

export const TRAINERS = ['trainer0', 'trainer1']
const [SAMPLES, BATCH] = [400, 20]

/** Points [count, 2] of a square, and int32 [count]: whether each is in a circle. Replace them by your own data. */
function circle(seed: number, count: number): [Tensor, Tensor] {
  const random = new Generator(seed)
  const points = Array.from({ length: count }, () => [2 * random.uniform() - 1, 2 * random.uniform() - 1])
  const labels = points.map(([x, y]) => (Math.hypot(x!, y!) < 0.8 ? 1 : 0))
  return [tensor(points), tensor(labels, { dtype: 'int32' })]
}

export const newModel = () => new Sequential(new Linear(2, 16), new Tanh(), new Linear(16, 2))
export const newOptimizer = (parameters: Iterable<Tensor>) => new Adam(parameters, { lr: 0.1 })

/** The part of an epoch's samples that a rank trains on, in batches. */
export function batches(rank: number, epoch: number) {
  const dataset = new TensorDataset(...circle(0, SAMPLES))
  const sampler = new DistributedSampler(dataset, { numReplicas: TRAINERS.length, rank })
  sampler.setEpoch(epoch)
  return new DataLoader(dataset, { batchSize: BATCH, sampler })
}

/** On every trainer at once. Gives the mean loss of each epoch, the share of fresh points that its copy gets right, and the copy's weights. */
export async function main(epochs: number) {
  const { rank } = await initProcessGroup({ ranks: TRAINERS })
  // Rank 0's weights count.
  using model = await DistributedDataParallel.create(newModel())
  const optimizer = newOptimizer(model.parameters())
  const losses: number[] = []
  for (let epoch = 1; epoch <= epochs; epoch++) {
    const loader = batches(rank, epoch)
    let sum = 0
    for await (const [points, labels] of loader) {
      optimizer.zeroGrad()
      const loss = crossEntropy(await model.forward(points), labels)
      await model.backward(loss)
      optimizer.step()
      sum += await loss.item()
    }
    losses.push(sum / loader.length)
  }
  const [points, labels] = circle(1, SAMPLES)
  const right = noGrad(() => model.module.forward(points))
    .argmax(1)
    .eq(labels)
    .to('float32')
    .mean()
  destroyProcessGroup()
  return { losses, right: await right.item(), weights: model.module.stateDict() }
}

expose({ main })
