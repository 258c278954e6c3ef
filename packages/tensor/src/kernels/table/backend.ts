/** A backend: the kernels of operands with which a device computes. Devices stand above; `over-arrays.ts` makes one of kernels over arrays of this process. */
import type { DType } from '../../values/dtype.js'
import type { KernelMap, UserKernels } from './operands.js'
import type { BackendName, Dims, KernelOp, Unsupported } from './table.js'

/** A set of kernels, made once per device and thread. Kernels may compile lazily, at their first call. */
export interface Backend {
  readonly name: BackendName
  /** As the user asks for it: 'wasm', 'js', … */
  readonly label: string
  /** op × dtype → kernel | unsupported(reason), total. */
  readonly kernels: { readonly [Op in KernelOp]: { readonly [D in DType]: KernelMap[Op] | Unsupported } }
  readonly userKernels: UserKernels
  /** Resolves when kernels may be called (a GPU: when the adapter is there); at once in this process. Rejects with a PostgradError. */
  ready(): Promise<void>
  /** Names the code that would run, without running it: 'loop', 'simd', 'simd tiles', …; a function of its arguments alone. */
  variantOf(op: KernelOp, dtype: DType, shape: Dims): string
}
