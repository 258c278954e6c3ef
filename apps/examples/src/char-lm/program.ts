/**
 * What the three workers run: `ps` holds the embedding and the decoder, `trainer` the recurrent core and the training loop, `evaluator`
 * measures the loss on held-out text and samples, while training goes on. After PyTorch's distributed RNN example
 * (`examples/distributed/rpc/rnn`): the forward pass crosses workers by calls and RRefs, one backward pass runs through all of it, and one
 * optimizer steps parameters where they live.
 */
import {
  call,
  crossEntropy,
  currentDevice,
  DistributedOptimizer,
  distAutograd,
  Embedding,
  expose,
  type Future,
  Generator,
  Linear,
  LSTM,
  noGrad,
  type RRef,
  remote,
  reportProgress,
  rref,
  SGD,
  type StateDict,
  softmax,
  type Tensor,
  tensor,
} from 'postgrad'

export interface Sizes {
  readonly alphabet: number
  readonly embedding: number
  readonly hidden: number
}

export interface TrainOptions extends Sizes {
  readonly text: Int32Array
  readonly evaluation: Int32Array
  readonly batch: number
  /** Characters that gradients run back over. */
  readonly sequence: number
  readonly learningRate: number
  readonly momentum: number
  /** Ends after this many steps, if given, else after `seconds`. */
  readonly steps: number | null
  readonly seconds: number
  readonly evaluateEverySteps: number
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
  readonly evaluation: readonly Point[]
  readonly steps: number
  readonly seconds: number
  readonly charsPerSecond: number
  readonly before: Int32Array
  readonly after: Int32Array
  /** The device that ran, with its mode. */
  readonly device: string
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
  const optimizer = new DistributedOptimizer(SGD, parameters, { lr: options.learningRate, momentum: options.momentum })
  const draw = new Generator(options.seed)
  const weights = async (): Promise<Weights> => ({
    alphabet,
    embedding,
    hidden,
    encoder: await encoder.call('state', []),
    core: core.stateDict(),
    decoder: await decoder.call('state', []),
  })

  const training: Point[] = []
  const evaluation: Point[] = []
  const before = await call('evaluator', sample, [await weights(), options.prompt, options.sampleLength, options.seed])
  evaluation.push({ step: 0, seconds: 0, loss: await call('evaluator', evaluate, [await weights(), options.evaluation, sequence]) })

  const startedMs = performance.now()
  const seconds = () => (performance.now() - startedMs) / 1000
  let evaluating: Future<number> | null = null
  let step = 0
  let smoothed = Number.NaN
  while (options.steps === null ? seconds() < options.seconds : step < options.steps) {
    const [input, target] = drawBatch(options.text, batch, sequence, draw)
    const loss = await distAutograd.context(async (ctx) => {
      const embedded = await encoder.call('forward', [input])
      const [states] = core.forward(embedded)
      const logits = await decoder.call('forward', [states.reshape([sequence * batch, hidden])])
      const loss = crossEntropy(logits, target)
      await ctx.backward([loss])
      await optimizer.step(ctx.id)
      return loss.item()
    })
    step++
    smoothed = Number.isNaN(smoothed) ? loss : 0.95 * smoothed + 0.05 * loss
    training.push({ step, seconds: seconds(), loss })
    const rate = (step * batch * sequence) / seconds()
    reportProgress({
      done: options.steps === null ? Math.min(seconds(), options.seconds) : step,
      total: options.steps ?? options.seconds,
      text: `loss ${smoothed.toFixed(3)} nats/char, ${Math.round(rate)} chars/s`,
    })
    // The evaluator works on a copy of the weights while training goes on; the next one starts when it has finished.
    if (step % options.evaluateEverySteps === 0 && evaluating === null) {
      const at = { step, seconds: seconds() }
      evaluating = call('evaluator', evaluate, [await weights(), options.evaluation, sequence])
      void evaluating.then((loss) => {
        evaluation.push({ ...at, loss })
        evaluating = null
      })
    }
  }
  const took = seconds()
  if (evaluating !== null) await evaluating
  evaluation.push({ step, seconds: took, loss: await call('evaluator', evaluate, [await weights(), options.evaluation, sequence]) })
  const after = await call('evaluator', sample, [await weights(), options.prompt, options.sampleLength, options.seed])
  return {
    training,
    evaluation,
    steps: step,
    seconds: took,
    charsPerSecond: (step * batch * sequence) / took,
    before,
    after,
    device: String(currentDevice()),
  }
}

/** On `evaluator`: mean cross-entropy over the text, in nats per character, in windows of `sequence`. */
export function evaluate(weights: Weights, text: Int32Array, sequence: number): Promise<number> {
  const model = new LocalModel(weights)
  const windows = Math.floor((text.length - 1) / sequence)
  const [input, target] = batchOf(
    text,
    sequence,
    Array.from({ length: windows }, (_, i) => i * sequence),
  )
  return noGrad(async () => {
    const [states] = model.core.forward(model.table.forward(input))
    return crossEntropy(model.linear.forward(states.reshape([sequence * windows, weights.hidden])), target).item()
  })
}

/** On `evaluator`: continues the prompt, one drawn character after the other. */
export function sample(weights: Weights, prompt: Int32Array, length: number, seed: number): Promise<Int32Array> {
  const model = new LocalModel(weights)
  const draw = new Generator(seed)
  return noGrad(async () => {
    const drawn: number[] = [...prompt]
    let state: [Tensor, Tensor] | undefined
    for (let i = 0; i < length; i++) {
      const input = tensor(i === 0 ? prompt : Int32Array.of(drawn.at(-1)!), { dtype: 'int32' })
      const [output, next] = model.core.forward(model.table.forward(input.reshape([input.numel, 1])), state)
      state = next
      const logits = model.linear.forward(output.select(0, output.shape[0]! - 1))
      drawn.push(pick(await softmax(logits.reshape([weights.alphabet]), 0).data(), draw.uniform()))
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

function drawBatch(text: Int32Array, batch: number, sequence: number, draw: Generator): [input: Tensor, target: Tensor] {
  return batchOf(
    text,
    sequence,
    Array.from({ length: batch }, () => Math.floor(draw.uniform() * (text.length - sequence - 1))),
  )
}

/** Windows of the text, time first: input [T, B], and each character's follower [T·B]. */
function batchOf(text: Int32Array, sequence: number, starts: readonly number[]): [input: Tensor, target: Tensor] {
  const input = new Int32Array(sequence * starts.length)
  const target = new Int32Array(sequence * starts.length)
  for (let t = 0; t < sequence; t++) {
    for (let b = 0; b < starts.length; b++) {
      input[t * starts.length + b] = text[starts[b]! + t]!
      target[t * starts.length + b] = text[starts[b]! + t + 1]!
    }
  }
  return [tensor(input, { dtype: 'int32' }).reshape([sequence, starts.length]), tensor(target, { dtype: 'int32' })]
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

expose({ Encoder, Decoder, train, evaluate, sample })
