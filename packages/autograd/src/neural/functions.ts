/** The recorded operations of neural networks: each raw one joined with its row. `../api/functions.ts` joins them with all others. */

import type { Tensor } from '@postgrad/tensor'
import { type NeuralOps, rawNeural } from '@postgrad/tensor/internal'
import type { TensorOps } from '../graph/formula.js'
import { recordMany } from '../record/record-many.js'
import { neural } from './derivatives.js'

/** @param recorded all recorded operations, for formulas under createGraph; called late, since it is made of these */
export function neuralFunctions(recorded: () => TensorOps): NeuralOps<Tensor> {
  return {
    convolution: recordMany('convolution', rawNeural.convolution, neural.convolution, recorded),
    convolutionInput: recordMany('convolutionInput', rawNeural.convolutionInput, neural.convolutionInput, recorded),
    convolutionWeight: recordMany('convolutionWeight', rawNeural.convolutionWeight, neural.convolutionWeight, recorded),
    maxPoolPlanes: recordMany('maxPoolPlanes', rawNeural.maxPoolPlanes, neural.maxPoolPlanes, recorded),
    avgPoolPlanes: recordMany('avgPoolPlanes', rawNeural.avgPoolPlanes, neural.avgPoolPlanes, recorded),
    avgPoolSpread: recordMany('avgPoolSpread', rawNeural.avgPoolSpread, neural.avgPoolSpread, recorded),
    layerNormRows: recordMany('layerNormRows', rawNeural.layerNormRows, neural.layerNormRows, recorded),
    batchNormTraining: recordMany('batchNormTraining', rawNeural.batchNormTraining, neural.batchNormTraining, recorded),
    binaryCrossEntropy: recordMany('binaryCrossEntropy', rawNeural.binaryCrossEntropy, neural.binaryCrossEntropy, recorded),
    embeddingRows: recordMany('embeddingRows', rawNeural.embeddingRows, neural.embeddingRows, recorded),
    linear: recordMany('linear', rawNeural.linear, neural.linear, recorded),
  }
}
