/** All raw operations on the wasm device against PyTorch's numbers. */
import { device } from '../../device.js'
import { opsSuite } from '../../ops.suite.js'

opsSuite('wasm', () => device('wasm'), { tolerance: { float32: 1e-6, float64: 1e-13 } })
