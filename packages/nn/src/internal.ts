/** What sibling packages get beyond the public names: the part that LSTM is made of. */

export { checkFinite, clipFactor, normOfShares, normShare } from './optim/clip-grad-norm.js'
export { lstmLayer } from './recurrent/lstm-layer.js'
export { safetensorsChunks } from './safetensors/write.js'
