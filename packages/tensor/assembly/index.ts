/**
 * The exports of kernels.wasm, which `scripts/build-kernels.mjs` compiles; it adds the exports that comments name. The kernels have no statics:
 * callers pass every address, scratch included, so that several instances can share a memory. The rows in `src/kernels/elementwise/` and the files of
 * `src/kernels/wasm/` call them.
 */
export * from './activations'
export * from './attention'
export * from './conv'
export * from './convert'
export * from './direct'
export * from './elementwise'
export * from './exact'
export * from './extremes'
export * from './functions'
export * from './matmul'
export * from './move'
export * from './norm'
export * from './optim'
export * from './pool'
export * from './recurrent'
export * from './rows'
export * from './select'
export * from './softmax'
