/** Exports for sibling packages only: the layer of LSTM, the base of batch norms, checks of a step, and helpers. */

export { BatchNorm } from './layers/batch-norm.js'
export { isPlain } from './module/collections.js'
export { ensureHeld } from './module/held-members.js'
export { stateMismatch } from './module/module.js'
export { replaceModules } from './module/replace-modules.js'
export { checkFinite, clipFactor, normOfShares, normShare } from './optim/clip-grad.js'
export { checkReduced } from './optim/reduced-gradients.js'
export { lstmLayer } from './recurrent/lstm-layer.js'
export { ioFailure as safetensorsIoFailure, pathOf as safetensorsPath } from './safetensors/read.js'
export { safetensorsChanged, safetensorsChunks, safetensorsHead } from './safetensors/write.js'
