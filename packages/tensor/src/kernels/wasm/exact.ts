/**
 * Functions of an instruction or two that are exact or correctly rounded, so that they may run as loops or in SIMD by the number of elements: the
 * js backend's loops below SIMD_FROM. Neighbour: `elementwise.ts`, whose arithmetic has loops of its own.
 */
import type { ArrayOf } from '../../values/dtype.js'
import { INT32_SPAN } from '../../values/dtype.js'
import type { SimdDType } from '../elementwise/definition.js'
import type { Dims, UnaryKernel } from '../table/table.js'
import { elementsOf, gather, runBinary, runUnary, VIEWS } from './elementwise.js'
import { type BinaryExport, type LazyInstance, SIMD_FROM, type UnaryExport } from './instance.js'

export class UnaryExact<D extends SimdDType> implements UnaryKernel<ArrayOf[D]> {
  readonly #instance: LazyInstance
  readonly #dtype: D
  readonly #name: UnaryExport
  readonly #loops: UnaryKernel<ArrayOf[D]>

  constructor(instance: LazyInstance, dtype: D, name: UnaryExport, loops: UnaryKernel<ArrayOf[D]>) {
    this.#instance = instance
    this.#dtype = dtype
    this.#name = name
    this.#loops = loops
  }

  flat(n: number, x: ArrayOf[D], xo: number, out: ArrayOf[D], oo: number, p0: number, p1: number): void {
    if (n < SIMD_FROM) this.#loops.flat(n, x, xo, out, oo, p0, p1)
    else this.#run(n, x, xo, out, oo, p0, p1)
  }

  strided(shape: Dims, x: ArrayOf[D], xo: number, xStrides: Dims, out: ArrayOf[D], oo: number, p0: number, p1: number): void {
    const n = elementsOf(shape)
    if (n < SIMD_FROM || !gather(this.#instance, shape, x, xo, xStrides, out, oo)) {
      this.#loops.strided(shape, x, xo, xStrides, out, oo, p0, p1)
    } else this.#run(n, out, oo, out, oo, p0, p1)
  }

  #run(n: number, x: ArrayOf[D], xo: number, out: ArrayOf[D], oo: number, p0: number, p1: number): void {
    const [low, high] = this.#dtype === 'int32' ? [bound(p0), bound(p1)] : [p0, p1]
    runUnary(this.#instance, this.#name, VIEWS[this.#dtype], n, x, xo, out, oo, low, high)
  }
}

/** What an int32 is compared with: infinity means the end of the range, and a fraction is cut as a result would be. */
function bound(p: number): number {
  return Math.max(-INT32_SPAN, Math.min(INT32_SPAN - 1, Math.trunc(p)))
}

/** A power whose exponent 2 is a multiplication by `name` (PyTorch's as well); other exponents are the js backend's loops. */
export function powKernel<D extends 'float32' | 'float64'>(
  lazy: LazyInstance,
  dtype: D,
  name: BinaryExport,
  loops: UnaryKernel<ArrayOf[D]>,
): UnaryKernel<ArrayOf[D]> {
  const square = (n: number, x: ArrayOf[D], xo: number, out: ArrayOf[D], oo: number): void =>
    runBinary(lazy, name, VIEWS[dtype], VIEWS[dtype], n, x, xo, 1, x, xo, 1, out, oo)
  return {
    flat(n, x, xo, out, oo, exponent, p1) {
      if (exponent !== 2 || n < SIMD_FROM) loops.flat(n, x, xo, out, oo, exponent, p1)
      else square(n, x, xo, out, oo)
    },
    strided(shape, x, xo, xStrides, out, oo, exponent, p1) {
      const n = elementsOf(shape)
      if (exponent !== 2 || n < SIMD_FROM || !gather(lazy, shape, x, xo, xStrides, out, oo)) {
        loops.strided(shape, x, xo, xStrides, out, oo, exponent, p1)
      } else square(n, out, oo, out, oo)
    },
  }
}
