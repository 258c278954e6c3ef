/** A simple recurrent network over a sequence, in one or more layers. PyTorch: `torch.nn.RNN`. */
import type { Tensor } from '@postgrad/tensor'
import { checkOneOf } from '../module/check.js'
import {
  type DirectionWeights,
  inputGates,
  type LayerRun,
  type LayerState,
  lastStep,
  RecurrentModule,
  type RecurrentOptions,
} from './recurrent.js'
import { type RnnNonlinearity, rnnLayer } from './rnn-layer.js'

/** Options of `RNN`. */
export interface RNNOptions extends RecurrentOptions {
  /** Default 'tanh'. */
  readonly nonlinearity?: RnnNonlinearity
}

/**
 * A simple recurrent network over a sequence [T, N, inputSize], tanh or relu; one layer, one direction, with bias, batchFirst false by default.
 * PyTorch: `torch.nn.RNN`.
 * @example
 * const [output, h] = new RNN(4, 8, { batchFirst: true }).forward(randn([2, 5, 4]))
 * output.shape // [2, 5, 8]
 * h.shape // [1, 2, 8]
 */
export class RNN extends RecurrentModule {
  /** 'tanh' or 'relu'. */
  readonly nonlinearity: RnnNonlinearity

  /** All weights and biases uniform in ±1/√hiddenSize. @throws INVALID_ARGUMENT, DTYPE_MISMATCH */
  constructor(inputSize: number, hiddenSize: number, options: RNNOptions = {}) {
    super(1, inputSize, hiddenSize, options, ['nonlinearity'])
    const { nonlinearity = 'tanh' } = options
    checkOneOf('RNN', 'nonlinearity', nonlinearity, ['tanh', 'relu'])
    this.nonlinearity = nonlinearity
  }

  /**
   * x [T, N, inputSize], or [N, T, inputSize] with batchFirst, or [T, inputSize] (then nothing below has an N); h [numLayers · directions, N, hiddenSize]
   * begins with zeros unless given.
   * @returns the last layer's h at every step, [T, N, directions · hiddenSize] ([N, T, …]), and h after the last step
   * @throws SHAPE_MISMATCH
   */
  forward(x: Tensor, h?: Tensor): [output: Tensor, h: Tensor] {
    const { output, states } = this.run(x, h && [h], 1)
    return [output, states[0]!]
  }

  protected override runLayer(x: Tensor, weights: DirectionWeights, [h]: LayerState, reverse: boolean): LayerRun {
    const output = rnnLayer(inputGates(x, weights), weights.weightHh, h!, this.nonlinearity, reverse)
    return { output, state: [lastStep(output, reverse)] }
  }
}
