/** Which backends exist and how each is made: the one place that names their constructors. Devices stand above. */

import { createReferenceBackend } from './reference/backend.js'
import type { Backend } from './table.js'

export type DeviceSpec = 'reference' | 'wasm' | 'gpujs' | 'gpujs:cpu' | 'gpujs:webasm'

/** The constructors by the name that a user gives to `device()`. Called at most once per thread and spec. */
export const BACKENDS: Partial<Record<DeviceSpec, () => Backend>> = {
  reference: createReferenceBackend,
  // wasm: createWasmBackend,                            from './wasm/backend.js'
  // gpujs: () => createGpujsBackend('cpu'),             from './gpujs/backend.js'; 'gpujs:cpu' and 'gpujs:webasm' alike
}
