/** Long short-term memory over a sequence, in one or more layers. PyTorch: `torch.nn.LSTM`, one direction, without projections. */
import { stack } from '@postgrad/autograd'
import { PostgradError } from '@postgrad/base'
import { type Tensor, zeros } from '@postgrad/tensor'
import { Dropout } from './dropout.js'
import { type ParameterOptions, uniform } from './init.js'
import { lstmLayer } from './lstm-layer.js'
import { Module } from './module.js'

export interface LSTMOptions extends ParameterOptions {
  /** Default 1. */
  readonly numLayers?: number
  /** Default true. */
  readonly bias?: boolean
  /** Input and output are [N, T, …] instead of [T, N, …]; default false. The states are [layers, N, H] either way. */
  readonly batchFirst?: boolean
  /** Probability of a zero between layers, while training; default 0. */
  readonly dropout?: number
}

/** h and c, each [numLayers, N, hiddenSize]. */
export type LSTMState = readonly [h: Tensor, c: Tensor]

interface LayerWeights {
  /** [4 hiddenSize, width of the layer's input]; rows are the input, forget, cell and output gates. */
  readonly weightIh: Tensor
  /** [4 hiddenSize, hiddenSize] */
  readonly weightHh: Tensor
  /** [4 hiddenSize], or null */
  readonly biasIh: Tensor | null
  readonly biasHh: Tensor | null
}

export class LSTM extends Module {
  readonly inputSize: number
  readonly hiddenSize: number
  readonly numLayers: number
  readonly batchFirst: boolean
  private readonly layers: readonly LayerWeights[]
  private readonly dropout: Dropout

  /** All weights and biases uniform in ±1/√hiddenSize. */
  constructor(inputSize: number, hiddenSize: number, options: LSTMOptions = {}) {
    super()
    const { numLayers = 1, bias = true, batchFirst = false, dropout = 0, ...parameter } = options
    this.inputSize = inputSize
    this.hiddenSize = hiddenSize
    this.numLayers = numLayers
    this.batchFirst = batchFirst
    this.dropout = new Dropout(dropout)
    const draw = (...shape: number[]) => uniform(shape, 1 / Math.sqrt(hiddenSize), parameter)
    this.layers = Array.from({ length: numLayers }, (_, layer) => ({
      weightIh: draw(4 * hiddenSize, layer === 0 ? inputSize : hiddenSize),
      weightHh: draw(4 * hiddenSize, hiddenSize),
      biasIh: bias ? draw(4 * hiddenSize) : null,
      biasHh: bias ? draw(4 * hiddenSize) : null,
    }))
  }

  /** PyTorch's names: `weight_ih_l0`, `weight_hh_l0`, `bias_ih_l0`, `bias_hh_l0`, `weight_ih_l1`, … */
  override *ownParameters(): IterableIterator<[name: string, parameter: Tensor]> {
    for (const [k, { weightIh, weightHh, biasIh, biasHh }] of this.layers.entries()) {
      yield [`weight_ih_l${k}`, weightIh]
      yield [`weight_hh_l${k}`, weightHh]
      if (biasIh !== null) yield [`bias_ih_l${k}`, biasIh]
      if (biasHh !== null) yield [`bias_hh_l${k}`, biasHh]
    }
  }

  /**
   * x [T, N, inputSize], or [N, T, inputSize] with batchFirst; the state begins with zeros unless given.
   * @returns the last layer's h at every step, [T, N, hiddenSize] ([N, T, hiddenSize]), and the state after the last step
   * @throws SHAPE_MISMATCH
   */
  forward(x: Tensor, state?: LSTMState): [output: Tensor, state: [h: Tensor, c: Tensor]] {
    let sequence = this.batchFirst && x.ndim === 3 ? x.transpose(0, 1) : x
    this.check(x, sequence, state)
    const batch = sequence.shape[1]!
    const begin = (which: 0 | 1, layer: number) =>
      state === undefined ? zeros([batch, this.hiddenSize], { dtype: x.dtype }) : state[which].select(0, layer)
    const last: { h: Tensor; c: Tensor }[] = []
    for (const [k, weights] of this.layers.entries()) {
      if (k > 0) sequence = this.dropout.forward(sequence)
      const run = this.runLayer(sequence, weights, begin(0, k), begin(1, k))
      sequence = run.output
      last.push(run)
    }
    const output = this.batchFirst ? sequence.transpose(0, 1) : sequence
    return [output, [stack(last.map(({ h }) => h)), stack(last.map(({ c }) => c))]]
  }

  /** x [T, N, width], h and c [N, hiddenSize] */
  private runLayer(x: Tensor, weights: LayerWeights, h: Tensor, c: Tensor): { output: Tensor; h: Tensor; c: Tensor } {
    const { weightIh, weightHh, biasIh, biasHh } = weights
    const [steps, batch, width] = x.shape as [number, number, number]
    // The part of the gates that does not wait for h: one large product over all steps, both biases in it.
    const flat = x.reshape([steps * batch, width]).matmul(weightIh.T)
    const biased = biasIh === null || biasHh === null ? flat : flat.add(biasIh.add(biasHh))
    const [output, last] = lstmLayer(biased.view([steps, batch, 4 * this.hiddenSize]), weightHh, h, c) as [Tensor, Tensor]
    return { output, h: output.select(0, steps - 1), c: last }
  }

  private check(x: Tensor, sequence: Tensor, state: LSTMState | undefined): void {
    if (x.ndim !== 3 || x.shape[2] !== this.inputSize || x.numel === 0) {
      throw new PostgradError('SHAPE_MISMATCH', {
        op: 'LSTM',
        expected: `input [${this.batchFirst ? 'N, T' : 'T, N'}, ${this.inputSize}] of at least one step`,
        got: `[${x.shape.join(', ')}]`,
        remedy: 'unsqueeze() a single sequence into a batch of one.',
        values: { shape: [...x.shape] },
      })
    }
    const expected = [this.numLayers, sequence.shape[1]!, this.hiddenSize]
    for (const s of state ?? []) {
      if (String(s.shape) === String(expected)) continue
      throw new PostgradError('SHAPE_MISMATCH', {
        op: 'LSTM',
        expected: `h and c of shape [${expected.join(', ')}]`,
        got: `[${s.shape.join(', ')}]`,
        remedy: 'Pass the state that an earlier call with the same batch returned, or none.',
        values: { expected, shape: [...s.shape] },
      })
    }
  }
}
