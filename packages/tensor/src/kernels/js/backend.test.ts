/** The kernel suite on the js backend: all bits are the oracle's but where sums have another order, or are rounded once. */

import { hostUserKernels } from '../gpujs/user-kernels.js'
import { kernelSuite } from '../kernel.suite.js'
import { FUSED_OPS } from '../table/ops.js'
import type { KernelOp } from '../table/table.js'
import { createJsBackend } from './backend.js'

const APPROXIMATE: ReadonlySet<KernelOp> = new Set([
  ...(['classLoss', 'classLossBackward'] as const),
  ...(['matmul', 'variance', 'prodBackward', 'cumprodBackward', 'softmax', 'logSoftmax', 'softmaxBackward', 'logSoftmaxBackward'] as const),
  ...(['conv2d', 'conv2dInput', 'conv2dWeight', 'avgPool2dBackward'] as const),
  ...(['layerNorm', 'layerNormBackward', 'channelNorm', 'channelNormBackward'] as const),
])

const FUSED: ReadonlySet<KernelOp> = new Set(FUSED_OPS)

kernelSuite('js', () => createJsBackend(hostUserKernels()), {
  seed: 20261128,
  exact: (op, dtype) => !APPROXIMATE.has(op) || dtype === 'int32',
  lacks: (op) => FUSED.has(op),
})
