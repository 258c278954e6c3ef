/** The program that every worker loads. A language model over two workers: embedding and decoder on `ps`, the LSTM between them on `trainer`. */
import {
  crossEntropy,
  DistributedOptimizer,
  distAutograd,
  expose,
  Generator,
  getAllRemoteParams,
  noGrad,
  RemoteModule,
  type Tensor,
  tensor,
} from 'postgrad'
import { Embedding, Linear, LSTM, type LSTMState, Module } from 'postgrad/nn'
import { Adam } from 'postgrad/optim'
import { ALPHABET, decode, encode, SYMBOLS } from './text.js'

export const WORKERS = ['trainer', 'ps']
const [SIZE, BATCH, LENGTH] = [64, 16, 24]

class Model extends Module {
  readonly encoder = new RemoteModule('ps', Embedding, [ALPHABET.length, SIZE])
  readonly core = new LSTM(SIZE, SIZE)
  readonly decoder = new RemoteModule('ps', Linear, [SIZE, ALPHABET.length])

  /** int32 [T, N] → logits [T, N, symbols], and the state to continue from. */
  async forward(symbols: Tensor, state?: LSTMState): Promise<[Tensor, LSTMState]> {
    const [hidden, next] = this.core.forward(await this.encoder.forward(symbols), state)
    return [await this.decoder.forward(hidden), next]
  }

  [Symbol.dispose](): void {
    this.encoder.dispose()
    this.decoder.dispose()
  }
}

/** int32 [LENGTH, BATCH] each: pieces of the text, and the symbols that follow. */
function nextBatch(random: Generator): [Tensor, Tensor] {
  const starts = Array.from({ length: BATCH }, () => random.integer(0, SYMBOLS.length - LENGTH))
  const read = (shift: number) =>
    tensor(
      Array.from({ length: LENGTH }, (_, t) => starts.map((start) => SYMBOLS[start + t + shift]!)),
      { dtype: 'int32' },
    )
  return [read(0), read(1)]
}

/** On the trainer. Gives the loss of each step, in nats a character, and a text that the model has written. */
export async function main(steps: number, characters = 100) {
  using model = new Model()
  const parameters = await getAllRemoteParams(model)
  using optimizer = new DistributedOptimizer(Adam, parameters, { lr: 0.01 })
  const random = new Generator(0)
  const losses: number[] = []
  for (let step = 0; step < steps; step++) {
    const [symbols, following] = nextBatch(random)
    await distAutograd.context(async (ctx) => {
      const [logits] = await model.forward(symbols)
      const loss = crossEntropy(logits.reshape([-1, ALPHABET.length]), following.reshape([-1]))
      await ctx.backward([loss])
      await optimizer.step(ctx)
      losses.push(await loss.item())
    })
  }
  const text = await write(model, 'The ', characters)
  for (const parameter of parameters) parameter.dispose()
  return { losses, text }
}

/** Continues a text, each time by the most likely character. */
function write(model: Model, begin: string, characters: number): Promise<string> {
  return noGrad(async () => {
    const written = encode(begin)
    let [input, state]: [number[], LSTMState | undefined] = [written, undefined]
    for (let i = 0; i < characters; i++) {
      const [logits, next] = await model.forward(
        tensor(
          input.map((symbol) => [symbol]),
          { dtype: 'int32' },
        ),
        state,
      )
      const best = await logits.select(0, -1).argmax(1).item()
      written.push(best)
      ;[input, state] = [[best], next]
    }
    return decode(written)
  })
}

expose({ Embedding, Linear, main })
