/** The backends that users can choose, with their constructors, which no other file names. Used by `device.ts`. */

import { threadHeap } from '../heap/thread-heap.js'
import { createBlasBackend } from './blas/backend.js'
import { hostUserKernels } from './gpujs/user-kernels.js'
import { createJsBackend } from './js/backend.js'
import type { Backend } from './table/backend.js'
import { createWasmBackend } from './wasm/backend.js'

/**
 * The names of backends: 'wasm' (the default) has SIMD kernels; 'js' has loops alone, which run on machines without SIMD; 'blas' has the kernels of 'wasm', but
 * products of matrices by the system's BLAS.
 */
export type BackendSpec = 'wasm' | 'js' | 'blas'

/** The constructors by the name that a user gives to `device()`. Called at most once per thread and spec. */
export const BACKENDS: Readonly<Record<BackendSpec, () => Backend>> = {
  wasm: () => createWasmBackend(threadHeap),
  js: () => createJsBackend(hostUserKernels()),
  blas: () => createBlasBackend(threadHeap),
}
