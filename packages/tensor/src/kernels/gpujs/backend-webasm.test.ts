/** The kernel suite on gpu.js in mode webasm. */
import { kernelSuite } from '../kernel.suite.js'
import { createGpujsBackend, MOVEMENT } from './backend.js'

kernelSuite('gpujs:webasm', () => createGpujsBackend('webasm'), {
  seed: 20261121,
  exact: () => false,
  elementsMax: 400,
  lacks: (op, dtype) => (dtype === 'float64' || dtype === 'int32') && !MOVEMENT.has(op),
})
