/** The composites of neural networks, one file per family. */
import type { Ops } from '../ops.js'
import type { NeuralCompositeOps } from '../ops-neural.js'
import type { Tensor } from '../tensor.js'
import { convolutionComposites } from './convolution.js'

export function neuralComposites(ops: Ops<Tensor>): NeuralCompositeOps<Tensor> {
  return { ...convolutionComposites(ops) }
}
