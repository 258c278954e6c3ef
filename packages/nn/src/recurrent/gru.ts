/** Gated recurrent units over a sequence, in one or more layers. PyTorch: `torch.nn.GRU`. */
import { cat, linear } from '@postgrad/autograd'
import { type Tensor, zeros } from '@postgrad/tensor'
import { gruLayer } from './gru-layer.js'
import { type DirectionWeights, type LayerRun, type LayerState, lastStep, RecurrentModule, type RecurrentOptions } from './recurrent.js'

/** Options of `GRU`. */
export type GRUOptions = RecurrentOptions

/**
 * Gated recurrent units over a sequence [T, N, inputSize]. Defaults: one layer, one direction, with biases, batchFirst false. PyTorch: `torch.nn.GRU`.
 * @example
 * const [output, h] = new GRU(4, 8, { numLayers: 2, batchFirst: true }).forward(randn([2, 5, 4]))
 * output.shape // [2, 5, 8]
 * h.shape // [2, 2, 8]
 */
export class GRU extends RecurrentModule {
  /**
   * All weights and biases begin uniform in ±1/√hiddenSize. The rows of the weights are the reset, update and new gates.
   * @throws INVALID_ARGUMENT if a size or an option is not valid; DTYPE_MISMATCH if the dtype is not float32 or float64
   */
  constructor(inputSize: number, hiddenSize: number, options: GRUOptions = {}) {
    super(3, inputSize, hiddenSize, options)
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
    const output = gruSteps(x, weights, h!, reverse)
    return { output, state: [lastStep(output, reverse)] }
  }
}

/** x [T, N, width], h [N, H] → h after every step [T, N, H] */
export function gruSteps(x: Tensor, { weightIh, weightHh, biasIh, biasHh }: DirectionWeights, h: Tensor, reverse: boolean): Tensor {
  const width = h.shape[1]!
  const none = zeros([width], { dtype: x.dtype, device: x.device })
  if (biasIh === null || biasHh === null) return gruLayer(linear(x, weightIh), weightHh, none, h, reverse)
  // All biases may be added at once but the recurrent one of the new gate, which the reset gate scales.
  const bias = biasIh.add(cat([biasHh.narrow(0, 0, 2 * width), none]))
  return gruLayer(linear(x, weightIh, bias), weightHh, biasHh.narrow(0, 2 * width, width), h, reverse)
}
