/** Which cells of the wasm backend differ from the oracle in their last bits: polynomials, and sums in another order. Shared by its suite and its fuzz. */
import type { DType } from '../../values/dtype.js'
import { OPS } from '../table/ops.js'
import type { KernelOp } from '../table/table.js'

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

export const isExact = (op: KernelOp, dtype: DType): boolean => !APPROXIMATE.has(op) || dtype === 'int32'
