/** The program that every worker loads. A model is cut into two stages, one on each worker, and micro-batches go through both as a schedule says. */
import { crossEntropy, currentWorker, expose, Generator, manualSeed, type Tensor, tensor } from 'postgrad'
import { Linear, Sequential, Tanh } from 'postgrad/nn'
import { Adam } from 'postgrad/optim'
import { Pipeline, PipelineStage, pipelineSchedule, splitSequential } from 'postgrad/pipelining'

/** Each has one stage. */
export const WORKERS = ['rank0', 'rank1']
export const MICROBATCHES = 4
const [BATCH, ARMS] = [96, 3]

/** Points [BATCH, 2] on the arms of a spiral, and int32 [BATCH]: the arm of each. Replace them by your own data. */
export function nextBatch(random: Generator): [Tensor, Tensor] {
  const arms = Array.from({ length: BATCH }, () => random.integer(0, ARMS))
  const points = arms.map((arm) => {
    const radius = random.uniform()
    const angle = (2 * Math.PI * arm) / ARMS + 4 * radius + 0.2 * (random.uniform() - 0.5)
    return [radius * Math.cos(angle), radius * Math.sin(angle)]
  })
  return [tensor(points), tensor(arms, { dtype: 'int32' })]
}

/** From one seed the same on every worker, each of which keeps its own stage. */
export function newModel(): Sequential {
  manualSeed(0)
  return new Sequential(new Linear(2, 64), new Tanh(), new Linear(64, 64), new Tanh(), new Linear(64, 64), new Tanh(), new Linear(64, ARMS))
}

export const newOptimizer = (parameters: Iterable<Tensor>) => new Adam(parameters, { lr: 0.01 })

/** On all workers at once. The first reads the points, the last the arms. Gives the loss of each step on the last worker, and nothing on the others. */
export async function main(steps: number): Promise<number[]> {
  const rank = WORKERS.indexOf(currentWorker().info.name)
  const stages = WORKERS.length
  const stage = new PipelineStage(splitSequential(newModel(), stages)[rank]!, rank, stages)
  const schedule = pipelineSchedule('1F1B', { ranks: stages, microbatches: MICROBATCHES })
  const pipeline = new Pipeline([stage], { workers: WORKERS, schedule, loss: crossEntropy })
  const optimizer = newOptimizer(stage.module.parameters())
  const random = new Generator(1)
  const losses: number[] = []
  for (let step = 0; step < steps; step++) {
    const [points, target] = nextBatch(random)
    optimizer.zeroGrad()
    const result = await pipeline.step(stage.isFirst ? [points] : [], stage.isLast ? { target } : {})
    optimizer.step()
    if (stage.isLast) losses.push(await mean(result.losses))
  }
  return losses
}

/** The mean loss of the micro-batches. */
export async function mean(losses: readonly Tensor[]): Promise<number> {
  let sum = 0
  for (const loss of losses) sum += await loss.item()
  return sum / losses.length
}

expose({ main })
