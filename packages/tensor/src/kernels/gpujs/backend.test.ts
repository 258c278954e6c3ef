/** The kernel suite on the gpu.js kernels, in mode cpu. */
import { kernelSuite } from '../kernel.suite.js'
import { createGpujsBackend, MOVEMENT } from './backend.js'

kernelSuite('gpujs', () => createGpujsBackend(), {
  seed: 20261121,
  exact: () => false,
  elementsMax: 400,
  lacks: (op, dtype) => (dtype === 'float64' || dtype === 'int32') && !MOVEMENT.has(op),
})
