/**
 * Element-wise kernels of the wasm backend. Operands that lie in the kernels' memory are used there; others pass through scratch in chunks that
 * stay in the first-level cache. Where that costs more than the work, plain rows with the same bits run instead: by the number of elements alone.
 */
import type { ArrayOf, TypedArray } from '../../dtype.js'
import { copyF32 } from '../host/rows.js'
import { denseStrides, type Row2, type Row3, walk2, walk3 } from '../host/walk.js'
import type { AxpyKernel, BinaryKernel, Dims, UnaryKernel } from '../table.js'
import { type BinaryExport, type LazyInstance, SINGLE_BELOW, type UnaryExport } from './instance.js'

/** Elements from which on staging beats the plain loop (measured: both take 130 ns at 64, staging a third at 512). */
export const SIMD_FROM = 80
/** Elements of a chunk: three buffers of 8 KiB (float64: 16) stay in the first-level cache. */
const CHUNK = 2048
/** Elements of a call whose operands need no staging. */
const SLICE = 131_072

type F32 = ArrayOf['float32']
/** The dtypes with SIMD arithmetic, and the instance's view on its memory for each. */
const VIEWS = { float32: 'f32', float64: 'f64', int32: 'i32' } as const
type SimdDType = keyof typeof VIEWS

/** A function that has the same bits as a plain row: the row runs below SIMD_FROM. */
export class UnaryArithmetic implements UnaryKernel<F32> {
  readonly #instance: LazyInstance
  readonly #name: UnaryExport
  readonly #row: Row2<F32, F32>

  constructor(instance: LazyInstance, name: UnaryExport, row: Row2<F32, F32>) {
    this.#instance = instance
    this.#name = name
    this.#row = row
  }

  flat(n: number, x: F32, xOffset: number, out: F32, outOffset: number): void {
    if (n < SIMD_FROM) this.#row(n, x, xOffset, 1, out, outOffset, 1)
    else stageUnary(this.#instance, this.#name, n, x, xOffset, out, outOffset)
  }

  strided(shape: Dims, x: F32, xOffset: number, xStrides: Dims, out: F32, outOffset: number): void {
    walk2(this.#row, shape, x, xOffset, xStrides, out, outOffset, denseStrides(shape))
  }
}

/** A polynomial of kernels.wasm: it runs for every size, so that a value's bits do not depend on how many there are. */
export class UnaryPolynomial implements UnaryKernel<F32> {
  readonly #instance: LazyInstance
  readonly #name: UnaryExport

  constructor(instance: LazyInstance, name: UnaryExport) {
    this.#instance = instance
    this.#name = name
  }

  flat(n: number, x: F32, xOffset: number, out: F32, outOffset: number): void {
    if (n >= SINGLE_BELOW) {
      stageUnary(this.#instance, this.#name, n, x, xOffset, out, outOffset)
      return
    }
    const instance = this.#instance.get()
    const pointer = instance.begin(SINGLE_BELOW * 4)
    const memory = instance.f32
    const at = pointer / 4
    for (let i = 0; i < n; i++) memory[at + i] = x[xOffset + i]!
    instance.kernels[this.#name](n, pointer, pointer)
    for (let i = 0; i < n; i++) out[outOffset + i] = memory[at + i]!
  }

  strided(shape: Dims, x: F32, xOffset: number, xStrides: Dims, out: F32, outOffset: number): void {
    // The output is dense and no other view of x: it can hold the gathered input. (In place, x is dense too and the copy moves nothing.)
    walk2(copyF32, shape, x, xOffset, xStrides, out, outOffset, denseStrides(shape))
    let n = 1
    for (let d = 0; d < shape.length; d++) n *= shape[d]!
    this.flat(n, out, outOffset, out, outOffset)
  }
}

/** x → out, of at least SINGLE_BELOW elements. Staged elements are computed in place. */
function stageUnary(lazy: LazyInstance, name: UnaryExport, n: number, x: F32, xOffset: number, out: F32, outOffset: number): void {
  const instance = lazy.get()
  const kernel = instance.kernels[name]
  const staged = instance.begin(CHUNK * 4)
  const xAt = instance.direct(x, xOffset)
  const outAt = instance.direct(out, outOffset)
  const memory = instance.f32
  const at = staged / 4
  const chunk = xAt < 0 || outAt < 0 ? CHUNK : SLICE
  for (let i = 0; i < n; i += chunk) {
    const count = Math.min(chunk, n - i)
    if (xAt < 0) memory.set(x.subarray(xOffset + i, xOffset + i + count), at)
    kernel(count, xAt < 0 ? staged : xAt + i * 4, outAt < 0 ? staged : outAt + i * 4)
    if (outAt < 0) out.set(memory.subarray(at, at + count), outOffset + i)
  }
}

export class BinaryArithmetic<D extends SimdDType> implements BinaryKernel<ArrayOf[D], ArrayOf[D]> {
  readonly #instance: LazyInstance
  readonly #name: BinaryExport
  readonly #view: (typeof VIEWS)[D]
  readonly #row: Row3<ArrayOf[D], ArrayOf[D], ArrayOf[D]>
  readonly #simdRow: Row3<ArrayOf[D], ArrayOf[D], ArrayOf[D]>

  constructor(instance: LazyInstance, dtype: D, name: BinaryExport, row: Row3<ArrayOf[D], ArrayOf[D], ArrayOf[D]>) {
    this.#instance = instance
    this.#name = name
    this.#view = VIEWS[dtype]
    this.#row = row
    this.#simdRow = (n, a, ao, as, b, bo, bs, out, oo, os) => {
      if (n < SIMD_FROM || os !== 1 || as > 1 || bs > 1) row(n, a, ao, as, b, bo, bs, out, oo, os)
      else this.#stage(n, a, ao, as, b, bo, bs, out, oo)
    }
  }

  flat(n: number, a: ArrayOf[D], ao: number, as: number, b: ArrayOf[D], bo: number, bs: number, out: ArrayOf[D], oo: number): void {
    if (n < SIMD_FROM) this.#row(n, a, ao, as, b, bo, bs, out, oo, 1)
    else this.#stage(n, a, ao, as, b, bo, bs, out, oo)
  }

  strided(
    shape: Dims,
    a: ArrayOf[D],
    ao: number,
    aStrides: Dims,
    b: ArrayOf[D],
    bo: number,
    bStrides: Dims,
    out: ArrayOf[D],
    oo: number,
    outStrides: Dims,
  ): void {
    walk3(this.#simdRow, shape, a, ao, aStrides, b, bo, bStrides, out, oo, outStrides)
  }

  /** At least SIMD_FROM elements. A repeated element is always staged: its array may be tiny. */
  #stage(n: number, a: ArrayOf[D], ao: number, as: number, b: ArrayOf[D], bo: number, bs: number, out: ArrayOf[D], oo: number): void {
    const instance = this.#instance.get()
    const kernel = instance.kernels[this.#name]
    const bytes = out.BYTES_PER_ELEMENT
    const staged = instance.begin(3 * CHUNK * bytes)
    const memory = instance[this.#view] as TypedArray as ArrayOf[D]
    const at = staged / bytes
    const aAt = as === 0 ? -1 : instance.direct(a, ao)
    const bAt = bs === 0 ? -1 : instance.direct(b, bo)
    const outAt = instance.direct(out, oo)
    if (as === 0) memory[at] = a[ao]!
    if (bs === 0) memory[at + CHUNK] = b[bo]!
    const stageA = as !== 0 && aAt < 0
    const stageB = bs !== 0 && bAt < 0
    const chunk = stageA || stageB || outAt < 0 ? CHUNK : SLICE
    for (let i = 0; i < n; i += chunk) {
      const count = Math.min(chunk, n - i)
      if (stageA) memory.set(a.subarray(ao + i, ao + i + count), at)
      if (stageB) memory.set(b.subarray(bo + i, bo + i + count), at + CHUNK)
      const aPointer = aAt < 0 ? staged : aAt + i * bytes
      const bPointer = bAt < 0 ? staged + CHUNK * bytes : bAt + i * bytes
      kernel(count, aPointer, as, bPointer, bs, outAt < 0 ? staged + 2 * CHUNK * bytes : outAt + i * bytes)
      if (outAt < 0) out.set(memory.subarray(at + 2 * CHUNK, at + 2 * CHUNK + count), oo + i)
    }
  }
}

export class AxpyArithmetic<D extends 'float32' | 'float64'> implements AxpyKernel<ArrayOf[D]> {
  readonly #instance: LazyInstance
  readonly #name: 'axpy_f32' | 'axpy_f64'
  readonly #view: (typeof VIEWS)[D]
  readonly #round: (x: number) => number

  constructor(instance: LazyInstance, dtype: D) {
    this.#instance = instance
    this.#name = dtype === 'float32' ? 'axpy_f32' : 'axpy_f64'
    this.#view = VIEWS[dtype]
    this.#round = dtype === 'float32' ? Math.fround : identity
  }

  flat(n: number, alpha: number, x: ArrayOf[D], xo: number, xs: number, out: ArrayOf[D], oo: number): void {
    if (n < SIMD_FROM) this.#loop(n, alpha, x, xo, xs, out, oo, 1)
    else this.#stage(n, alpha, x, xo, xs, out, oo)
  }

  strided(shape: Dims, alpha: number, x: ArrayOf[D], xo: number, xStrides: Dims, out: ArrayOf[D], oo: number, outStrides: Dims): void {
    const row: Row2<ArrayOf[D], ArrayOf[D]> = (n, x, xo, xs, out, oo, os) => {
      if (n < SIMD_FROM || xs > 1 || os !== 1) this.#loop(n, alpha, x, xo, xs, out, oo, os)
      else this.#stage(n, alpha, x, xo, xs, out, oo)
    }
    walk2(row, shape, x, xo, xStrides, out, oo, outStrides)
  }

  #loop(n: number, alpha: number, x: ArrayOf[D], xo: number, xs: number, out: ArrayOf[D], oo: number, os: number): void {
    const round = this.#round
    const scale = round(alpha)
    for (let i = 0; i < n; i++) out[oo + i * os] = out[oo + i * os]! + round(scale * x[xo + i * xs]!)
  }

  #stage(n: number, alpha: number, x: ArrayOf[D], xo: number, xs: number, out: ArrayOf[D], oo: number): void {
    const instance = this.#instance.get()
    const kernel = instance.kernels[this.#name]
    const bytes = out.BYTES_PER_ELEMENT
    const staged = instance.begin(2 * CHUNK * bytes)
    const memory = instance[this.#view] as TypedArray as ArrayOf[D]
    const at = staged / bytes
    const xAt = xs === 0 ? -1 : instance.direct(x, xo)
    const outAt = instance.direct(out, oo)
    if (xs === 0) memory[at] = x[xo]!
    const stageX = xs !== 0 && xAt < 0
    const chunk = stageX || outAt < 0 ? CHUNK : SLICE
    for (let i = 0; i < n; i += chunk) {
      const count = Math.min(chunk, n - i)
      if (stageX) memory.set(x.subarray(xo + i, xo + i + count), at)
      if (outAt < 0) memory.set(out.subarray(oo + i, oo + i + count), at + CHUNK)
      kernel(count, alpha, xAt < 0 ? staged : xAt + i * bytes, xs, outAt < 0 ? staged + CHUNK * bytes : outAt + i * bytes)
      if (outAt < 0) out.set(memory.subarray(at + CHUNK, at + CHUNK + count), oo + i)
    }
  }
}

const identity = (x: number): number => x
