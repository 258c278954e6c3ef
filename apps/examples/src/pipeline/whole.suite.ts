/** The same training with the model in one place, one micro-batch after another. Tests hold each schedule to it. */
import type { Tensor } from 'postgrad'
import { Adam } from 'postgrad/optim'
import { Batches, lossOf, makeModel, meanOf, type TrainOptions } from './program.js'

export const SMALL: Omit<TrainOptions, 'workers' | 'schedule' | 'stagesPerRank'> = {
  alphabet: 11,
  width: 8,
  layers: 3,
  context: 6,
  microbatches: 4,
  batch: 6,
  steps: 3,
  lr: 0.01,
  seed: 5,
  text: Int32Array.from({ length: 200 }, (_, i) => (i * i + 3 * i) % 11),
}

export interface Whole {
  readonly losses: readonly number[]
  readonly model: ReturnType<typeof makeModel>
}

/** Batches of which micro-batches are not equal are divided as `Pipeline` does: the larger ones first. Of several replicas the mean, in their order. */
export async function trainWhole(
  { batch, context, microbatches, steps, text, lr, seed, ...options }: typeof SMALL,
  replicas = 1,
): Promise<Whole> {
  const model = makeModel({ ...options, context }, seed)
  const optimizer = new Adam(model.parameters(), { lr })
  const batches = new Batches(text, batch, context, seed)
  const rows = batch / replicas
  const losses: number[] = []
  for (let step = 0; step < steps; step++) {
    const [inputs, targets] = batches.next()
    const each: Tensor[] = []
    const sums = new Map<Tensor, Tensor>()
    for (let replica = 0; replica < replicas; replica++) {
      optimizer.zeroGrad()
      let from = replica * rows
      for (let i = 0; i < microbatches; i++) {
        const size = Math.floor(rows / microbatches) + (i < rows % microbatches ? 1 : 0)
        const loss = lossOf(model.forward(inputs.narrow(0, from, size)), targets.narrow(0, from, size))
        loss.backward()
        each.push(loss)
        from += size
      }
      for (const p of model.parameters()) {
        const part = p.grad!.mul(1 / replicas)
        sums.set(p, sums.get(p)?.add(part) ?? part)
      }
    }
    for (const [p, sum] of sums) p.grad = sum.div(microbatches)
    optimizer.step()
    losses.push(await meanOf(each))
  }
  return { losses, model }
}

/** As `train` has it, for the layers of one stage. */
export async function checksumOf(parameters: Iterable<Tensor>): Promise<number> {
  let sum = 0
  for (const parameter of parameters) sum += await parameter.sum().item()
  return sum
}
