/** The kernel suite on the wasm backend. Arithmetic must agree in every bit; polynomials and other orders of summation within tolerance. */

import { expect, test } from '@jest/globals'
import { threadHeap } from '../../heap/thread-heap.js'
import { DTYPES } from '../../values/dtype.js'
import { jsKernels } from '../js/backend.js'
import { kernelSuite } from '../kernel.suite.js'
import { OPS } from '../table/ops.js'
import { isUnsupported, KERNEL_OPS, type KernelOp } from '../table/table.js'
import { createWasmBackend } from './backend.js'

const APPROXIMATE: ReadonlySet<KernelOp> = new Set([
  'exp',
  'log',
  'tanh',
  'sigmoid',
  'sin',
  'cos',
  'softmax',
  'logSoftmax',
  ...(['rsqrt', 'expm1', 'log1p', 'erf', 'elu', 'silu', 'softplus', 'gelu', 'geluTanh'] as const),
  ...(['log2', 'log10', 'exp2', 'sinh', 'cosh', 'tan', 'asin', 'acos', 'atan', 'pow', 'power', 'atan2'] as const),
  'normal',
  'variance',
  'classLoss',
  'classLossBackward',
  'cumprodBackward',
  ...OPS.grad,
  ...OPS.gradRows,
  'conv2d',
  'conv2dInput',
  'conv2dWeight',
  'avgPool2d',
  'avgPool2dBackward',
  'layerNorm',
  'layerNormBackward',
  'channelNorm',
  'channelNormBackward',
  ...(['lstmCell', 'lstmCellBackward', 'gruCell', 'gruCellBackward', 'attention', 'attentionBackward'] as const),
])

const create = () => createWasmBackend(threadHeap)

kernelSuite('wasm', create, {
  seed: 20261120,
  exact: (op, dtype) => !APPROXIMATE.has(op) || dtype === 'int32',
  over: jsKernels,
})

test('variantOf names a loop where the kernel is that of js, and only there', () => {
  const { kernels, variantOf } = create()
  const cells = KERNEL_OPS.flatMap((op) => DTYPES.map((dtype) => ({ op, dtype }))).filter(
    ({ op, dtype }) => !isUnsupported(kernels[op][dtype]),
  )
  const loops = cells.filter(({ op, dtype }) => variantOf(op, dtype, [100, 100]) === 'loop')
  expect(loops).toEqual(cells.filter(({ op, dtype }) => kernels[op][dtype] === jsKernels[op][dtype]))
  expect(loops.length).toBeGreaterThan(0)
  expect(loops.length).toBeLessThan(cells.length)
})
