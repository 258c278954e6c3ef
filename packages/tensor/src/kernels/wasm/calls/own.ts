/** The form of the wasm backend's own cells, made by this folder's files: a kernel, and which of its codes runs for how many elements. */
import type { DType } from '../../../values/dtype.js'
import { jsKernels } from '../../js/backend.js'
import type { KernelMap } from '../../table/operands.js'
import type { KernelOp } from '../../table/table.js'
import { SIMD_FROM } from './instance.js'

/** Names the code that runs for so many elements of the output: what `variantOf` answers. */
export type Rule = (elements: number) => string

export interface OwnCell<K> {
  readonly kernel: K
  readonly variant: Rule
}

export type OwnCells = { readonly [Op in KernelOp]?: { readonly [D in DType]?: OwnCell<KernelMap[Op]> } }

/** The kernels of some dtypes under one rule. */
export function by<K extends { readonly [D in DType]?: object }>(variant: Rule, kernels: K): { readonly [D in keyof K]: OwnCell<K[D]> } {
  const cells = Object.entries(kernels).map(([dtype, kernel]) => [dtype, { kernel, variant }])
  return Object.fromEntries(cells) as { readonly [D in keyof K]: OwnCell<K[D]> }
}

export const bySize: Rule = (elements) => (elements < SIMD_FROM ? 'loop' : 'simd')
export const always: Rule = () => 'simd'
/** `variantOf` gets the output's shape, and this chooses by the input's size, between forms with the same bits. */
export const byInput: Rule = () => 'simd (loop for small inputs)'

/** The js backend's kernels of an op, which has one for every dtype that is asked for here. */
export function loopsOf<Op extends KernelOp>(op: Op) {
  return jsKernels[op] as unknown as { readonly [D in DType]: KernelMap[Op] }
}
