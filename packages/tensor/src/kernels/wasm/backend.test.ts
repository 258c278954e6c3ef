/** The kernel suite on the wasm backend. Arithmetic must agree in every bit; polynomials and other orders of summation within tolerance. */

import { threadHeap } from '../../heap/thread-heap.js'
import { kernelSuite } from '../kernel.suite.js'
import { GRAD_OPS, GRAD_ROWS_OPS, type KernelOp } from '../table/table.js'
import { createWasmBackend } from './backend.js'

const APPROXIMATE: ReadonlySet<KernelOp> = new Set([
  'exp',
  'log',
  'tanh',
  'sigmoid',
  'sin',
  'cos',
  'sum',
  'softmax',
  'logSoftmax',
  'matmul',
  ...(['rsqrt', 'expm1', 'log1p', 'erf', 'elu', 'silu', 'softplus', 'gelu', 'geluTanh'] as const),
  ...(['log2', 'log10', 'exp2', 'sinh', 'cosh', 'tan', 'asin', 'acos', 'atan', 'pow', 'power', 'atan2'] as const),
  'variance',
  ...GRAD_OPS,
  ...GRAD_ROWS_OPS,
  'conv2d',
  'conv2dInput',
  'conv2dWeight',
  'avgPool2d',
  'avgPool2dBackward',
  'layerNorm',
  'layerNormBackward',
  'channelNorm',
  'channelNormBackward',
])

kernelSuite('wasm', () => createWasmBackend(threadHeap), {
  seed: 20261120,
  exact: (op, dtype) => !APPROXIMATE.has(op) || dtype === 'int32',
})
