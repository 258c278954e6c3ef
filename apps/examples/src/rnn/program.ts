/**
 * A recurrent network over two workers, after PyTorch's RNN example (`examples/distributed/rpc/rnn`): embedding and decoder are remote modules on
 * `ps`, the LSTM lives with the trainer. Every batch has its own context, instead of a `zeroGrad`.
 */
import {
  crossEntropy,
  DistributedOptimizer,
  distAutograd,
  expose,
  Generator,
  getAllRemoteParams,
  RemoteModule,
  reportProgress,
  type Tensor,
} from 'postgrad'
import { Embedding, Linear, LSTM, Module } from 'postgrad/nn'
import { SGD } from 'postgrad/optim'
import { type Batch, melodies, TONES } from './melodies.js'

export const WORKERS = ['ps', 'trainer'] as const

export interface Sizes {
  readonly embedding: number
  readonly hidden: number
  readonly layers: number
}

export class RnnModel extends Module {
  readonly encoder: RemoteModule<Embedding>
  readonly core: LSTM
  readonly decoder: RemoteModule<Linear>

  constructor({ embedding, hidden, layers }: Sizes) {
    super()
    this.encoder = new RemoteModule('ps', Embedding, [TONES, embedding])
    this.core = new LSTM(embedding, hidden, { numLayers: layers })
    this.decoder = new RemoteModule('ps', Linear, [hidden, TONES])
  }

  /** int32 [T, N] → [T, N, TONES] */
  async forward(input: Tensor): Promise<Tensor> {
    const embedded = await this.encoder.forward(input)
    const [output] = this.core.forward(embedded)
    return this.decoder.forward(output)
  }

  [Symbol.dispose](): void {
    this.encoder.dispose()
    this.decoder.dispose()
  }
}

/** One batch: forward through both workers, backward through both, a step on both. Gives the loss. */
export function trainStep(model: RnnModel, optimizer: DistributedOptimizer, { input, target }: Batch): Promise<number> {
  return distAutograd.context(async (ctx) => {
    const logits = await model.forward(input)
    const loss = crossEntropy(logits.reshape([target.numel, TONES]), target)
    await ctx.backward([loss])
    await optimizer.step(ctx)
    return loss.item()
  })
}

export interface TrainOptions extends Sizes {
  readonly epochs: number
  readonly batches: number
  readonly batch: number
  readonly length: number
  readonly lr: number
  readonly seed: number
}

/** On `trainer`: the whole run. Gives the loss of every batch, in nats a tone. */
export async function train({ epochs, batches, batch, length, lr, seed, ...sizes }: TrainOptions): Promise<number[]> {
  using model = new RnnModel(sizes)
  const parameters = await getAllRemoteParams(model)
  using optimizer = new DistributedOptimizer(SGD, parameters, { lr, momentum: 0.9 })
  const generator = new Generator(seed)
  const losses: number[] = []
  for (let epoch = 1; epoch <= epochs; epoch++) {
    for (let i = 0; i < batches; i++) losses.push(await trainStep(model, optimizer, melodies(generator, length, batch)))
    const loss = losses.slice(-batches).reduce((sum, x) => sum + x, 0) / batches
    reportProgress({ done: epoch, total: epochs, text: `epoch ${epoch}, loss ${loss.toFixed(3)}` })
  }
  for (const parameter of parameters) parameter.dispose()
  return losses
}

expose({ Embedding, Linear, train })
