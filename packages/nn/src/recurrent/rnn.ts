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
  /** The activation; default 'tanh'. */
  readonly nonlinearity?: RnnNonlinearity
}

/**
 * A simple recurrent network over a sequence [T, N, inputSize]. Defaults: tanh, one layer, one direction, with biases, batchFirst false. PyTorch:
 * `torch.nn.RNN`.
 * @example
 * const [output, h] = new RNN(4, 8, { batchFirst: true }).forward(randn([2, 5, 4]))
 * output.shape // [2, 5, 8]
 * h.shape // [1, 2, 8]
 */
export class RNN extends RecurrentModule {
  /** The activation: 'tanh' or 'relu'. */
  readonly nonlinearity: RnnNonlinearity

  /**
   * All weights and biases begin uniform in ±1/√hiddenSize.
   * @throws INVALID_ARGUMENT if a size or an option is not valid; DTYPE_MISMATCH if the dtype is not float32 or float64
   */
  constructor(inputSize: number, hiddenSize: number, options: RNNOptions = {}) {
    super(1, inputSize, hiddenSize, options, ['nonlinearity'])
    const { nonlinearity = 'tanh' } = options
    checkOneOf('RNN', 'nonlinearity', nonlinearity, ['tanh', 'relu'])
    this.nonlinearity = nonlinearity
  }

  /**
   * x [T, N, inputSize] and h [numLayers · directions, N, hiddenSize] (default zeros) → [output, h]. output [T, N, directions · hiddenSize] holds h of the last
   * layer after every step, and h that of all layers after the last step. With `batchFirst` x and output are [N, T, …]. For one sequence, x is [T, inputSize],
   * and no shape has an N.
   * @throws SHAPE_MISMATCH if the shapes do not fit
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
