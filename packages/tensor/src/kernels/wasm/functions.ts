/**
 * Functions of two arguments without a loop of the same bits, of float32: kernels.wasm computes them for every size; what is too small or
 * lies too wide to be staged whole goes through scratch a few elements at a time. Neighbour: `elementwise.ts`.
 */
import type { ArrayOf } from '../../values/dtype.js'
import type { Row3 } from '../elementwise/loops.js'
import { walk3 } from '../js/walk.js'
import type { BinaryKernel, Dims, UnaryKernel } from '../table/table.js'
import { elementsOf, runBinary, stridedBinary } from './elementwise.js'
import { type BinaryExport, type LazyInstance, SIMD_FROM, SINGLE_BELOW } from './instance.js'

type F32 = ArrayOf['float32']

export class BinaryPolynomial implements BinaryKernel<F32, F32> {
  readonly #instance: LazyInstance
  readonly #name: BinaryExport

  constructor(instance: LazyInstance, name: BinaryExport) {
    this.#instance = instance
    this.#name = name
  }

  flat(n: number, a: F32, ao: number, as: number, b: F32, bo: number, bs: number, out: F32, oo: number): void {
    if (n < SIMD_FROM) this.#row(n, a, ao, as, b, bo, bs, out, oo, 1)
    else runBinary(this.#instance, this.#name, 'f32', 'f32', n, a, ao, as, b, bo, bs, out, oo)
  }

  strided(
    shape: Dims,
    a: F32,
    ao: number,
    aStrides: Dims,
    b: F32,
    bo: number,
    bStrides: Dims,
    out: F32,
    oo: number,
    outStrides: Dims,
  ): void {
    if (elementsOf(shape) >= SIMD_FROM) {
      if (stridedBinary(this.#instance, this.#name, shape, a, ao, aStrides, b, bo, bStrides, out, oo, outStrides)) return
    }
    walk3(this.#row, shape, a, ao, aStrides, b, bo, bStrides, out, oo, outStrides)
  }

  readonly #row: Row3<F32, F32, F32> = (n, a, ao, as, b, bo, bs, out, oo, os) => {
    const instance = this.#instance.get()
    const pointer = instance.begin(2 * SINGLE_BELOW * 4)
    const second = pointer + SINGLE_BELOW * 4
    const memory = instance.f32
    const kernel = instance.kernels[this.#name]
    for (let from = 0; from < n; from += SINGLE_BELOW) {
      const count = Math.min(SINGLE_BELOW, n - from)
      for (let i = 0; i < count; i++) {
        memory[pointer / 4 + i] = a[ao + (from + i) * as]!
        memory[second / 4 + i] = b[bo + (from + i) * bs]!
      }
      kernel(1, count, pointer, 0, 1, second, 0, 1, pointer, 0)
      for (let i = 0; i < count; i++) out[oo + (from + i) * os] = memory[pointer / 4 + i]!
    }
  }
}

/** `special` runs the exponents that have a form of their own: 2 is a product, ±0.5 are roots (PyTorch's as well). */
export function powF32(general: UnaryKernel<F32>, special: UnaryKernel<F32>): UnaryKernel<F32> {
  const pick = (exponent: number): UnaryKernel<F32> => (exponent === 2 || Math.abs(exponent) === 0.5 ? special : general)
  return {
    flat: (n, x, xo, out, oo, exponent, p1) => pick(exponent).flat(n, x, xo, out, oo, exponent, p1),
    strided: (shape, x, xo, xStrides, out, oo, exponent, p1) => pick(exponent).strided(shape, x, xo, xStrides, out, oo, exponent, p1),
  }
}
