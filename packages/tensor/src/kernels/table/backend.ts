/** A backend: the kernels with which a device (`device.ts`) computes. */
import type { DType } from '../../values/dtype.js'
import type { Shape } from '../../values/shape.js'
import type { DirectKernels } from './chain.js'
import type { KernelMap, UserKernels } from './operands.js'
import type { BackendName, KernelOp, Unsupported } from './table.js'

/** op × dtype → kernel | unsupported(reason), total. */
export type KernelCells = { readonly [Op in KernelOp]: { readonly [D in DType]: KernelMap[Op] | Unsupported } }

/** A set of kernels, made once per device and thread. Kernels may compile lazily, at their first call. */
export interface Backend {
  readonly name: BackendName
  /** As the user asks for it: 'wasm', 'js', … */
  readonly label: string
  readonly kernels: KernelCells
  readonly userKernels: UserKernels
  /** Kernels for the blocks of chains; a backend without them computes the blocks with the cells of its table. */
  readonly direct?: () => DirectKernels
  /** Resolves when kernels may be called (a GPU: when the adapter is there); at once in this process. Rejects with a PostgradError. */
  ready(): Promise<void>
  /** Names the code that would run, without running it: 'loop', 'simd', 'simd tiles', …; a function of its arguments alone. */
  variantOf(op: KernelOp, dtype: DType, shape: Shape): string
}
