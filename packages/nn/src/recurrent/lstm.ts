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

/** h and c, each [numLayers · directions, N, hiddenSize]. */
export type LSTMState = readonly [h: Tensor, c: Tensor]

/**
 * Long short-term memory over a sequence [T, N, inputSize]; one layer, one direction, with bias, batchFirst false by default. PyTorch:
 * `torch.nn.LSTM`, without projections.
 * @example
 * const [output, [h, c]] = new LSTM(4, 8, { bidirectional: true, batchFirst: true }).forward(randn([2, 5, 4]))
 * output.shape // [2, 5, 16]
 * h.shape // [2, 2, 8]
 * c.shape // [2, 2, 8]
 */
export class LSTM extends RecurrentModule {
  /**
   * All weights and biases uniform in ±1/√hiddenSize. The rows of the weights are the input, forget, cell and output gates.
   * @throws INVALID_ARGUMENT, DTYPE_MISMATCH
   */
  constructor(inputSize: number, hiddenSize: number, options: LSTMOptions = {}) {
    super(4, inputSize, hiddenSize, options)
  }

  /**
   * x [T, N, inputSize], or [N, T, inputSize] with batchFirst, or [T, inputSize] (then nothing below has an N); the state begins with zeros unless given.
   * @returns the last layer's h at every step, [T, N, directions · hiddenSize] ([N, T, …]), and the state after the last step
   * @throws SHAPE_MISMATCH
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
