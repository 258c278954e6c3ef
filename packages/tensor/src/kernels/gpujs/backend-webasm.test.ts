/** The kernel suite on gpu.js in mode webasm. */
import { kernelSuite } from '../kernel.suite.js'
import { createGpujsBackend } from './backend.js'

kernelSuite('gpujs:webasm', () => createGpujsBackend('webasm'), {
  seed: 20261121,
  exact: () => false,
  elementsMax: 400,
})
