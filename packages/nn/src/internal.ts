/** What sibling packages get beyond the public names: the part that LSTM is made of. */
export { lstmLayer } from './lstm-layer.js'
export { checkFinite, clipFactor, normOfShares, normShare } from './optim/clip-grad-norm.js'
export { safetensorsChunks } from './safetensors/write.js'
