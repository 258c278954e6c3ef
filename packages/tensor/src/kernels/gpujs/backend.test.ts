/** The kernel suite on the gpu.js kernels, in mode cpu. */
import { kernelSuite } from '../kernel.suite.js'
import { FUSED_OPS } from '../table/ops.js'
import type { KernelOp } from '../table/table.js'
import { createGpujsBackend, MOVEMENT } from './backend.js'

const FUSED: ReadonlySet<KernelOp> = new Set(FUSED_OPS)

kernelSuite('gpujs', () => createGpujsBackend(), {
  seed: 20261121,
  exact: () => false,
  elementsMax: 400,
  lacks: (op, dtype) => FUSED.has(op) || ((dtype === 'float64' || dtype === 'int32') && !MOVEMENT.has(op)),
})
