/** Which backends exist and how each is made: the one place that names their constructors. Devices stand above. */

import { threadHeap } from '../heap/thread-heap.js'
import { createGpujsBackend } from './gpujs/backend.js'
import { hostUserKernels } from './gpujs/user-kernels.js'
import { createJsBackend } from './js/backend.js'
import type { Backend } from './table/table.js'
import { createWasmBackend } from './wasm/backend.js'

/**
 * The names of devices: 'wasm' (the default) is the fast one, 'js' has loops alone, 'gpujs' runs gpu.js in its best mode, 'gpujs:cpu' and
 * 'gpujs:webasm' in one mode.
 */
export type DeviceSpec = 'wasm' | 'js' | 'gpujs' | 'gpujs:cpu' | 'gpujs:webasm'

/** The constructors by the name that a user gives to `device()`. Called at most once per thread and spec. */
export const BACKENDS: Readonly<Record<DeviceSpec, () => Backend>> = {
  wasm: () => createWasmBackend(threadHeap),
  js: () => createJsBackend(hostUserKernels()),
  // The faster of the two modes that run everywhere.
  gpujs: () => createGpujsBackend('webasm'),
  'gpujs:cpu': () => createGpujsBackend('cpu'),
  'gpujs:webasm': () => createGpujsBackend('webasm'),
}
