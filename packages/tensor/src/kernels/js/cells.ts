/** Forms of the js backend's cells: dtypes that share a kernel, and reasons to have none. */
import type { DType } from '../../values/dtype.js'
import type { FusedOp } from '../table/ops.js'
import { type Unsupported, unsupported } from '../table/table.js'

export const REAL_OR_INT = unsupported('bool is summed and multiplied as int32; raw operations convert first')
export const REAL_MEAN = unsupported('means and gradients are real numbers; raw operations refuse integers')
export const REAL_LOSS = unsupported('probabilities are real numbers')
export const REAL_IMAGES = unsupported('images, weights and statistics are real numbers')

const FUSED = unsupported('the operations that it is made of run here, one after the other')

/** One kernel for both real dtypes, the cells of the others given. */
export function real<K, I, B>(kernel: K, int32: I, bool: B) {
  return { float32: kernel, float64: kernel, int32, bool }
}

/** Kernels of images: one object for each dtype. */
export function realEach<K>(make: () => K) {
  return { float32: make(), float64: make(), int32: REAL_IMAGES, bool: REAL_IMAGES }
}

/** A kernel for each dtype, made by one function. */
export function each<K>(make: (dtype: DType) => K) {
  return { float32: make('float32'), float64: make('float64'), int32: make('int32'), bool: make('bool') }
}

export function everywhere<K>(kernel: K) {
  return each(() => kernel)
}

/** Fused kernels save passes over memory, and the loops here would gain nothing by it. */
export const fusedCells = <Op extends FusedOp>(ops: readonly Op[]) =>
  Object.fromEntries(ops.map((op) => [op, everywhere(FUSED)])) as { readonly [O in Op]: { readonly [D in DType]: Unsupported } }
