/**
 * The kernel ops by family. The kernels of a family have one form (`operands.ts`), so types are by family, and follow an op that is added here, or as a row of
 * `elementwise/`.
 */
import { ROWS } from '../elementwise/rows.js'

const keysOf = <Op extends string>(rows: Readonly<Record<Op, object>>): readonly Op[] => Object.keys(rows) as Op[]

export const OPS = {
  unary: keysOf(ROWS.unary),
  binary: keysOf(ROWS.binary),
  compare: keysOf(ROWS.compare),
  /** The dtype is kept. The first two are never asked on bool. Of the others k ≥ 1, and NaN wins. */
  reduce: ['sum', 'prod', 'amax', 'amin'],
  /** int32 output: the first of equals, the first NaN. k ≥ 1. */
  place: ['argmax', 'argmin'],
  /** Running sums and products; the last runs from the end. Never asked on bool. */
  scan: ['cumsum', 'cumprod', 'reverseCumsum'],
  grad: keysOf(ROWS.grad),
  /** From the gradient and the result: y (g − Σ g y) and g − eʸ Σ g, sums along the middle axis. */
  gradRows: ['softmaxBackward', 'logSoftmaxBackward'],
  /** With the maximum subtracted first. */
  softmax: ['softmax', 'logSoftmax'],
  variance: ['variance'],
  argsort: ['argsort'],
  /** The order of elements along the middle axis is reversed. */
  flip: ['flip'],
  /** One side of a diagonal, zeros on the other. */
  triangle: ['tril', 'triu'],
  productBackward: ['prodBackward', 'cumprodBackward'],
  where: ['where'],
  axpy: ['axpy'],
  copy: ['copy'],
  /** Random numbers; never asked on bool. */
  draw: ['uniform', 'normal'],
  fill: ['fill'],
  matmul: ['matmul'],
  nll: ['nll'],
  nllBackward: ['nllBackward'],
  classLoss: ['classLoss'],
  classLossBackward: ['classLossBackward'],
  /** Checks indices; asked on int32 alone. */
  firstOutside: ['firstOutside'],
  /** Reading and writing at indices. */
  index: ['indexSelect', 'gather', 'indexAdd', 'scatterAdd', 'scatter'],
  /** x, weight → y; its adjoint in x: y's gradient, weight → x's gradient; its adjoint in the weight: x, y's gradient → the weight's gradient. */
  conv: ['conv2d', 'conv2dInput', 'conv2dWeight'],
  maxPool: ['maxPool2d'],
  avgPool: ['avgPool2d', 'avgPool2dBackward'],
  layerNorm: ['layerNorm'],
  layerNormBackward: ['layerNormBackward'],
  channelNorm: ['channelNorm'],
  channelNormBackward: ['channelNormBackward'],
  /** A step of an optimizer over one parameter. */
  step: ['sgdStep', 'adamStep', 'nadamStep', 'adamaxStep', 'rmspropStep', 'adagradStep', 'adadeltaStep'],
  /** One step of a recurrent layer after its product with h, and what comes before that product on the way back. */
  lstmCell: ['lstmCell'],
  lstmCellBackward: ['lstmCellBackward'],
  gruCell: ['gruCell'],
  gruCellBackward: ['gruCellBackward'],
  sumApart: ['sumApart'],
  /** softmax(q kᵀ scale) v, and the gradients of q, k and v. */
  attention: ['attention'],
  attentionBackward: ['attentionBackward'],
} as const

/**
 * The families of fused kernels. Each does in one pass what several operations do one after the other, so a backend may lack it. Their callers ask with
 * `fusedKernel`, and run the operations where there is none.
 */
export const FUSED_FAMILIES = [
  'step',
  'sumApart',
  'lstmCell',
  'lstmCellBackward',
  'gruCell',
  'gruCellBackward',
  'attention',
  'attentionBackward',
] as const satisfies readonly (keyof typeof OPS)[]

export type Family = keyof typeof OPS
export type OpsOf<F extends Family> = (typeof OPS)[F][number]
/** The names of the operations that have kernels: the first argument of `Device.kernelFor`. */
export type KernelOp = OpsOf<Family>

/** The ops of fused kernels. */
export type FusedOp = OpsOf<(typeof FUSED_FAMILIES)[number]>
export const FUSED_OPS: readonly FusedOp[] = FUSED_FAMILIES.flatMap((family) => OPS[family])

/** Op → what `Forms` has for its family. */
export type ByOp<Forms extends Readonly<Record<Family, unknown>>> = { [F in Family as OpsOf<F>]: Forms[F] }
