/** The form of the wasm backend's own cells: a kernel, and which of its codes runs for how many elements. `backend.ts` has the table. */
import type { DType } from '../../values/dtype.js'
import type { ArrayKernelMap, KernelOp } from '../table/table.js'

/** Names the code that runs for so many elements of the output: what `variantOf` answers. */
export type Rule = (elements: number) => string

export interface OwnCell<K> {
  readonly kernel: K
  readonly variant: Rule
}

export type OwnCells = { readonly [Op in KernelOp]?: { readonly [D in DType]?: OwnCell<ArrayKernelMap<D>[Op]> } }

/** The kernels of some dtypes under one rule. */
export function by<K extends { readonly [D in DType]?: object }>(variant: Rule, kernels: K): { readonly [D in keyof K]: OwnCell<K[D]> } {
  const cells = Object.entries(kernels).map(([dtype, kernel]) => [dtype, { kernel, variant }])
  return Object.fromEntries(cells) as { readonly [D in keyof K]: OwnCell<K[D]> }
}
