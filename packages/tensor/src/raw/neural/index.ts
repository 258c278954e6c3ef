/** The raw operations of neural networks by name, as `raw/index.ts` has the others. */
export { convolution, convolutionInput, convolutionWeight } from './convolution.js'
export { embeddingRows } from './embedding.js'
export { linear } from './linear.js'
export { binaryCrossEntropy } from './losses.js'
export { batchNormTraining, layerNormRows } from './normalization.js'
export { avgPoolPlanes, avgPoolSpread, maxPoolPlanes } from './pooling.js'
