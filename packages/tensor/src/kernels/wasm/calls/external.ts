/** A library outside of kernels.wasm that may compute products: the interface that `products.ts` knows, and `kernels/blas/` implements. */
import type { KernelHeap } from './memory.js'

/** Where a matrix lies for the kernel: a byte address and strides in bytes. */
export interface Matrix {
  readonly pointer: number
  readonly row: number
  readonly col: number
}

/** out [m, n] = a [m, k] · b [k, n], all in the memory: elements of `bytes` bytes, rows of out `outRow` bytes apart. */
export type ProductArguments = readonly [bytes: 4 | 8, m: number, n: number, k: number, a: Matrix, b: Matrix, out: number, outRow: number]

/**
 * Computes such a product, or does nothing and answers false: kernels.wasm computes then. The answer depends on the arguments' sizes and strides alone. With `adds` the library
 * computes at every size, and if `adds` is true, adds the product to `out`; rows or columns of a and b must be dense then.
 */
export type ExternalProduct = (...args: [...product: ProductArguments, adds?: boolean]) => boolean

/** Multiplications from which on a call of a library pays. */
export const CALL_FROM = 2 ** 15

/** A backend that is kernels.wasm with such a library. */
export interface External {
  readonly name: 'blas'
  /** How many threads its products may use. */
  readonly setThreads: (count: number) => void
  /** Makes the product for a memory. */
  readonly productIn: (heap: KernelHeap) => ExternalProduct
}
