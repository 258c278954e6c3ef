/** The kernel suite on gpu.js in mode cpu. */
import { kernelSuite } from '../kernel.suite.js'
import { createGpujsBackend } from './backend.js'

kernelSuite('gpujs:cpu', () => createGpujsBackend('cpu'), {
  seed: 20261121,
  exact: () => false,
  elementsMax: 400,
})
