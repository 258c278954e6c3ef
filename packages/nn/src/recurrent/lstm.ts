/** Long short-term memory over a sequence, in one or more layers. PyTorch: `torch.nn.LSTM`, without projections. */
import type { Tensor } from '@postgrad/tensor'
import { lstmLayer } from './lstm-layer.js'
import {
  type DirectionWeights,
  inputGates,
  type LayerRun,
  type LayerState,
  lastStep,
  RecurrentModule,
  type RecurrentOptions,
} from './recurrent.js'

/** Options of `LSTM`. */
export type LSTMOptions = RecurrentOptions

/** The state of an LSTM: h and c, each [numLayers · directions, N, hiddenSize]. */
export type LSTMState = readonly [h: Tensor, c: Tensor]

/**
 * Long short-term memory over a sequence [T, N, inputSize]. Defaults: one layer, one direction, with biases, batchFirst false. PyTorch: `torch.nn.LSTM`,
 * without projections.
 * @example
 * const [output, [h, c]] = new LSTM(4, 8, { bidirectional: true, batchFirst: true }).forward(randn([2, 5, 4]))
 * output.shape // [2, 5, 16]
 * h.shape // [2, 2, 8]
 * c.shape // [2, 2, 8]
 */
export class LSTM extends RecurrentModule {
  /**
   * All weights and biases begin uniform in ±1/√hiddenSize. The rows of the weights are the input, forget, cell and output gates.
   * @throws INVALID_ARGUMENT if a size or an option is not valid; DTYPE_MISMATCH if the dtype is not float32 or float64
   */
  constructor(inputSize: number, hiddenSize: number, options: LSTMOptions = {}) {
    super(4, inputSize, hiddenSize, options)
  }

  /**
   * x [T, N, inputSize] and the state [h, c] (default zeros) → [output, [h, c]]. output [T, N, directions · hiddenSize] holds h of the last layer after every
   * step, and h and c are those after the last step. With `batchFirst` x and output are [N, T, …]. For one sequence, x is [T, inputSize], and no shape has an
   * N.
   * @throws SHAPE_MISMATCH if the shapes do not fit
   */
  forward(x: Tensor, state?: LSTMState): [output: Tensor, state: [h: Tensor, c: Tensor]] {
    const { output, states } = this.run(x, state, 2)
    return [output, states as [Tensor, Tensor]]
  }

  protected override runLayer(x: Tensor, weights: DirectionWeights, [h, c]: LayerState, reverse: boolean): LayerRun {
    const [output, last] = lstmLayer(inputGates(x, weights), weights.weightHh, h!, c!, reverse) as [Tensor, Tensor]
    return { output, state: [lastStep(output, reverse), last] }
  }
}
