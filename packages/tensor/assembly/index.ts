/**
 * The exports of kernels.wasm. There are no statics: every address, scratch included, is passed in, so that several instances can share a
 * memory. `scripts/build-kernels.mjs` compiles it, and adds the exports that comments name. The rows in `src/kernels/elementwise/` and the files of
 * `src/kernels/wasm/` name them for TypeScript.
 */
export * from './activations'
export * from './conv'
export * from './convert'
export * from './elementwise'
export * from './exact'
export * from './functions'
export * from './matmul'
export * from './move'
export * from './norm'
export * from './pool'
export * from './rows'
export * from './select'
