/** The composites of neural networks, one file per family. */
import type { Ops, PrimitiveOps } from '../ops/ops.js'
import type { NeuralCompositeOps } from '../ops/ops-neural.js'
import type { Tensor } from '../tensor/tensor.js'
import { convolutionComposites } from './convolution.js'
import { embeddingComposites } from './embedding.js'
import { lossComposites } from './losses.js'
import { normalizationComposites } from './normalization.js'
import { poolingComposites } from './pooling.js'

export function neuralComposites(ops: Ops<Tensor>, primitives: PrimitiveOps<Tensor>): NeuralCompositeOps<Tensor> {
  return {
    ...convolutionComposites(ops),
    ...lossComposites(ops, primitives),
    ...poolingComposites(ops),
    ...normalizationComposites(ops),
    ...embeddingComposites(ops, primitives),
  }
}
