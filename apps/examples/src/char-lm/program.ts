/**
 * The program of the three workers: `ps` holds the embedding and the decoder, `trainer` the recurrent core and the training loop, `evaluator`
 * measures the loss on held-out text and samples, during training. After PyTorch's distributed RNN example
 * (`examples/distributed/rpc/rnn`): the forward pass crosses workers by calls and RRefs, one backward pass runs through all of it, and one
 * optimizer steps parameters where they live.
 */
import {
  call,
  crossEntropy,
  currentDevice,
  DistributedOptimizer,
  distAutograd,
  expose,
  Generator,
  noGrad,
  type RRef,
  remote,
  reportProgress,
  rref,
  softmax,
  type Tensor,
  tensor,
} from 'postgrad'
import { Embedding, Linear, LSTM, type LSTMState, type StateDict } from 'postgrad/nn'
import { SGD } from 'postgrad/optim'
import { Streams, streamsIn } from './streams.js'

export const WORKERS = ['ps', 'trainer', 'evaluator'] as const

/** The learning rate's course, in shares of the run and of its height. */
const RISE_END = 0.04
const FALL_BEGIN = 0.5
const RATE_MIN = 0.02
/** The loss shown is a mean over 1 / (1 − SMOOTHING) steps. */
const SMOOTHING = 0.95
/** Below 1, samples prefer what is likely. */
const TEMPERATURE = 0.8

export interface Sizes {
  readonly alphabet: number
  readonly embedding: number
  readonly hidden: number
}

export interface TrainOptions extends Sizes {
  readonly text: Int32Array
  readonly heldOut: Int32Array
  /** Streams of text that are read at once. */
  readonly batch: number
  /** Characters that gradients run back over. */
  readonly sequence: number
  /** At its height; `rateAt` has its course. */
  readonly learningRate: number
  readonly momentum: number
  /** Ends after this many steps, if given, else after `seconds`. */
  readonly steps: number | null
  readonly seconds: number
  /** How often the held-out loss is measured on the way. */
  readonly measurements: number
  readonly seed: number
  /** Indices that samples begin with. */
  readonly prompt: Int32Array
  readonly sampleLength: number
}

export interface Point {
  readonly step: number
  readonly seconds: number
  /** Cross-entropy in nats per character. */
  readonly loss: number
}

export interface TrainReport {
  readonly training: readonly Point[]
  readonly heldOut: readonly Point[]
  readonly steps: number
  readonly seconds: number
  readonly charsPerSecond: number
  /** The model's text after the prompt, before training and after. */
  readonly before: Int32Array
  readonly after: Int32Array
  /** By worker: the kernels that ran. */
  readonly kernels: Readonly<Record<string, string>>
}

/** On `ps`: characters → vectors. */
export class Encoder {
  private readonly table: Embedding

  constructor(alphabet: number, size: number) {
    this.table = new Embedding(alphabet, size)
  }

  /** [T, B] int32 → [T, B, E] */
  forward(symbols: Tensor): Tensor {
    return this.table.forward(symbols)
  }

  parameterRRefs(): RRef<Tensor>[] {
    return [...this.table.parameters()].map(rref)
  }

  state(): StateDict {
    return this.table.stateDict()
  }
}

/** On `ps`: hidden states → logits. */
export class Decoder {
  private readonly linear: Linear

  constructor(hidden: number, alphabet: number) {
    this.linear = new Linear(hidden, alphabet)
  }

  /** [N, H] → [N, alphabet] */
  forward(hidden: Tensor): Tensor {
    return this.linear.forward(hidden)
  }

  parameterRRefs(): RRef<Tensor>[] {
    return [...this.linear.parameters()].map(rref)
  }

  state(): StateDict {
    return this.linear.stateDict()
  }
}

/** The whole model's weights, as they travel to the evaluator. */
export interface Weights extends Sizes {
  readonly encoder: StateDict
  readonly core: StateDict
  readonly decoder: StateDict
}

/**
 * On `trainer`: the whole run. One step is one context: forward through `ps`, the core and `ps` again, one backward pass through all of it, one step
 * of the optimizer on both owners.
 */
export async function train(options: TrainOptions): Promise<TrainReport> {
  const { alphabet, embedding, hidden, batch, sequence } = options
  const encoder = remote('ps', Encoder, [alphabet, embedding])
  const decoder = remote('ps', Decoder, [hidden, alphabet])
  const core = new LSTM(embedding, hidden)
  const parameters = [
    ...(await encoder.call('parameterRRefs', [])),
    ...[...core.parameters()].map(rref),
    ...(await decoder.call('parameterRRefs', [])),
  ]
  const { learningRate, momentum } = options
  const optimizer = new DistributedOptimizer(SGD, parameters, { lr: learningRate, momentum, nesterov: momentum > 0 })
  await optimizer.ready()
  const weights = async (): Promise<Weights> => ({
    alphabet,
    embedding,
    hidden,
    encoder: await encoder.call('state', []),
    core: core.stateDict(),
    decoder: await decoder.call('state', []),
  })
  const measure = async (): Promise<number> => call('evaluator', evaluate, [await weights(), options.heldOut, batch, sequence])
  const write = async () => call('evaluator', sample, [await weights(), options.prompt, options.sampleLength, options.seed])
  const total = options.steps ?? options.seconds

  reportProgress({ done: 0, total, text: 'measuring and sampling the untrained model' })
  const heldOut: Point[] = [{ step: 0, seconds: 0, loss: await measure() }]
  const before = await write()

  const streams = new Streams(options.text, batch, sequence, new Generator(options.seed).uniform())
  const training: Point[] = []
  let state: LSTMState | undefined
  let measuring: Promise<void> | null = null
  let step = 0
  let smoothed = Number.NaN
  const startedMs = performance.now()
  const seconds = () => (performance.now() - startedMs) / 1000
  const done = () => (options.steps === null ? Math.min(seconds(), options.seconds) : step)
  while (done() < total) {
    const [input, target] = streams.next()
    const lr = learningRate * rateAt(done() / total)
    const loss = await distAutograd.context(async (ctx) => {
      const embedded = await encoder.call('forward', [input])
      const [states, [h, c]] = core.forward(embedded, state)
      // The state continues in the next window, gradients end here.
      state = [h.detach(), c.detach()]
      const logits = await decoder.call('forward', [states.reshape([sequence * batch, hidden])])
      const loss = crossEntropy(logits, target)
      await ctx.backward([loss])
      await optimizer.step(ctx, { settings: { lr } })
      return loss.item()
    })
    step++
    training.push({ step, seconds: seconds(), loss })
    smoothed = Number.isNaN(smoothed) ? loss : SMOOTHING * smoothed + (1 - SMOOTHING) * loss
    const charsPerSecond = Math.round((step * batch * sequence) / seconds())
    const measured = `held-out ${heldOut.at(-1)!.loss.toFixed(3)}`
    reportProgress({ done: done(), total, text: `loss ${smoothed.toFixed(3)}, ${measured}, ${charsPerSecond} chars/s` })
    // The evaluator works on a copy of the weights during training; a new measurement starts after the last one.
    if (measuring === null && done() / total >= measureAt(heldOut.length / (options.measurements + 1))) {
      const at = { step, seconds: seconds() }
      measuring = measure().then((loss) => {
        heldOut.push({ ...at, loss })
        measuring = null
      })
      // If it fails, the `await` below rejects.
      measuring.catch(() => {})
    }
  }
  const took = seconds()
  reportProgress({ done: total, total, text: `loss ${smoothed.toFixed(3)}, measuring and sampling` })
  if (measuring !== null) await measuring
  heldOut.push({ step, seconds: took, loss: await measure() })
  const after = await write()
  const kernels = { ps: await call('ps', kernelsHere, []), trainer: kernelsHere(), evaluator: await call('evaluator', kernelsHere, []) }
  optimizer.dispose()
  for (const reference of [encoder, decoder, ...parameters]) reference.dispose()
  return { training, heldOut, steps: step, seconds: took, charsPerSecond: (step * batch * sequence) / took, before, after, kernels }
}

/**
 * The learning rate's share of its height, over the run's progress 0…1: a short rise, while the first gradients are wild; then the height; then a fall to
 * nearly nothing, in which the noise of the steps dies down.
 */
export function rateAt(progress: number): number {
  if (progress < RISE_END) return RATE_MIN + ((1 - RATE_MIN) * progress) / RISE_END
  if (progress < FALL_BEGIN) return 1
  return Math.max(RATE_MIN, (1 - progress) / (1 - FALL_BEGIN))
}

/** When a measurement is due that is this share of all: more often in the beginning, where the loss falls fastest. */
function measureAt(share: number): number {
  return share ** 1.5
}

/** On every worker: which kernels it computes with. */
export function kernelsHere(): string {
  return currentDevice().backend
}

/** On `evaluator`: mean cross-entropy over the text, in nats per character. It is read in windows, each with the state that the one before it left. */
export function evaluate(weights: Weights, text: Int32Array, batch: number, sequence: number): Promise<number> {
  const model = new LocalModel(weights)
  const { streams: count, windows } = streamsIn(text.length, batch, sequence)
  const streams = new Streams(text, count, sequence)
  return noGrad(async () => {
    let state: LSTMState | undefined
    let sum = 0
    for (let i = 0; i < windows; i++) {
      const [input, target] = streams.next()
      const [states, next] = model.core.forward(model.table.forward(input), state)
      state = next
      sum += await crossEntropy(model.linear.forward(states.reshape([sequence * count, weights.hidden])), target).item()
    }
    return sum / windows
  })
}

/** On `evaluator`: continues the prompt, one drawn character after the other. */
export function sample(weights: Weights, prompt: Int32Array, length: number, seed: number): Promise<Int32Array> {
  const model = new LocalModel(weights)
  const draw = new Generator(seed)
  return noGrad(async () => {
    const drawn: number[] = []
    let state: LSTMState | undefined
    for (let i = 0; i < prompt.length + length - 1; i++) {
      const symbol = i < prompt.length ? prompt[i]! : drawn.at(-1)!
      const [output, next] = model.core.forward(model.table.forward(tensor(Int32Array.of(symbol)).reshape([1, 1])), state)
      state = next
      if (i < prompt.length - 1) continue
      const logits = model.linear.forward(output.reshape([1, weights.hidden]))
      drawn.push(pick(await softmax(logits.mul(1 / TEMPERATURE), 1).data(), draw.uniform()))
    }
    return Int32Array.from(drawn)
  })
}

class LocalModel {
  readonly table: Embedding
  readonly core: LSTM
  readonly linear: Linear

  constructor({ alphabet, embedding, hidden, encoder, core, decoder }: Weights) {
    this.table = new Embedding(alphabet, embedding)
    this.core = new LSTM(embedding, hidden)
    this.linear = new Linear(hidden, alphabet)
    this.table.loadStateDict(encoder)
    this.core.loadStateDict(core)
    this.linear.loadStateDict(decoder)
  }
}

/** The index at which the running sum of the probabilities passes u, 0 ≤ u < 1. */
function pick(probabilities: ArrayLike<number>, u: number): number {
  let sum = 0
  for (let i = 0; i < probabilities.length; i++) {
    sum += probabilities[i]!
    if (u < sum) return i
  }
  return probabilities.length - 1
}

expose({ Encoder, Decoder, train, evaluate, sample, kernelsHere })
