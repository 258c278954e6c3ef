/** All raw operations on the wasm device against PyTorch's numbers. */

import { opsSuite } from '../../ops/ops.suite.js'
import { device } from '../../tensor/device.js'

opsSuite('wasm', () => device('wasm'), { tolerance: { float32: 1e-6, float64: 1e-13 } })
