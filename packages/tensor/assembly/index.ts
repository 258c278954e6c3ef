/**
 * The exports of kernels.wasm, which `scripts/build-kernels.mjs` compiles; it adds the exports that comments name. The kernels have no statics:
 * callers pass every address, scratch included, so that several instances can share a memory. The rows in `src/kernels/elementwise/` and the files of
 * `src/kernels/wasm/` call them.
 */
export * from './activations'
export * from './circular'
export * from './products/attention'
export * from './products/conv'
export * from './convert'
export * from './products/direct'
export * from './doubles'
export * from './elementwise'
export * from './exact'
export * from './rows/extremes'
export * from './functions'
export * from './places/indexed'
export * from './products/matmul'
export * from './places/move'
export * from './rows/norm'
export * from './optim'
export * from './pool'
export * from './random'
export * from './recurrent'
export * from './rows/rows'
export * from './rows/running'
export * from './places/select'
export * from './rows/softmax'
export * from './places/sort'
