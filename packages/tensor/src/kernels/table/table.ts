/** The names of kernel ops and of backends, and the reason of a cell without a kernel. `operands.ts` has the kernels' forms. */
import { type KernelOp, OPS, type OpsOf } from './ops.js'

export type { AvgPoolGeometry, ConvGeometry, PoolGeometry } from './neural.js'
export type { KernelOp } from './ops.js'

export type UnaryOp = OpsOf<'unary'>
export type BinaryOp = OpsOf<'binary'>
export type CompareOp = OpsOf<'compare'>
export type ReduceOp = OpsOf<'reduce' | 'place'>
export type ScanOp = OpsOf<'scan'>
export type GradOp = OpsOf<'grad'>
export type GradRowsOp = OpsOf<'gradRows'>
export type SoftmaxOp = OpsOf<'softmax'>
export type IndexOp = OpsOf<'index'>

/** Every kernel op by name. */
export const KERNEL_OPS = Object.values(OPS).flat() as readonly KernelOp[]

/** Says why a backend has no kernel for a cell; the reason reaches the user in KERNEL_UNSUPPORTED. */
export interface Unsupported {
  readonly unsupported: string
}

export function unsupported(reason: string): Unsupported {
  return { unsupported: reason }
}

export function isUnsupported(entry: object): entry is Unsupported {
  return 'unsupported' in entry
}

/** The kernels that run: WebAssembly with SIMD ('wasm'), or plain JavaScript ('js'). */
export type BackendName = 'wasm' | 'js' | 'blas'
