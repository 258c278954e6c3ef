/**
 * Arithmetic, functions and axpy of the wasm backend. Operands that lie in the kernels' memory are used there; others pass through scratch in chunks
 * that stay in the first-level cache. Where that costs more than the work, plain rows with the same bits run instead: by the number of
 * elements alone. Comparisons and `where`: `select.ts`.
 */
import type { ArrayOf, TypedArray } from '../../values/dtype.js'
import type { SimdDType } from '../elementwise/definition.js'
import type { Row2, Row3 } from '../elementwise/loops.js'
import { copyF32 } from '../js/movement.js'
import { denseStrides, walk2, walk3 } from '../js/walk.js'
import type { AxpyKernel, BinaryKernel, Dims, UnaryKernel } from '../table/table.js'
import { type BinaryExport, copyRun, type LazyInstance, SIMD_FROM, SINGLE_BELOW, type UnaryExport } from './instance.js'
import { by, bySize, type OwnCells } from './own.js'
import { workedElements } from './pause.js'
import { moveStrided, runStrided, SLICE } from './strided.js'

/** Elements of a chunk: three buffers of 8 KiB (float64: 16) stay in the first-level cache. */
export const CHUNK = 2048

type F32 = ArrayOf['float32']
/** The instance's view on its memory for each dtype with SIMD arithmetic. */
export const VIEWS = { float32: 'f32', float64: 'f64', int32: 'i32' } as const satisfies Record<SimdDType, string>

type Axpy = (rows: number, n: number, alpha: number, x: number, xRow: number, xStep: number, out: number, outRow: number) => void
declare module './instance.js' {
  interface KernelExports {
    readonly axpy_f32: Axpy
    readonly axpy_f64: Axpy
  }
}

/** A function that has the same bits as a plain row: the row runs below SIMD_FROM. */
export class UnaryArithmetic<D extends SimdDType> implements UnaryKernel<ArrayOf[D]> {
  readonly #instance: LazyInstance
  readonly #name: UnaryExport
  readonly #view: (typeof VIEWS)[D]
  readonly #row: Row2<ArrayOf[D], ArrayOf[D]>

  constructor(instance: LazyInstance, dtype: D, name: UnaryExport, row: Row2<ArrayOf[D], ArrayOf[D]>) {
    this.#instance = instance
    this.#name = name
    this.#view = VIEWS[dtype]
    this.#row = row
  }

  flat(n: number, x: ArrayOf[D], xOffset: number, out: ArrayOf[D], outOffset: number): void {
    if (n < SIMD_FROM) this.#row(n, x, xOffset, 1, out, outOffset, 1)
    else runUnary(this.#instance, this.#name, this.#view, n, x, xOffset, out, outOffset)
  }

  strided(shape: Dims, x: ArrayOf[D], xOffset: number, xStrides: Dims, out: ArrayOf[D], outOffset: number): void {
    const n = elementsOf(shape)
    if (n < SIMD_FROM || !gather(this.#instance, shape, x, xOffset, xStrides, out, outOffset)) {
      walk2(this.#row, shape, x, xOffset, xStrides, out, outOffset, denseStrides(shape))
    } else runUnary(this.#instance, this.#name, this.#view, n, out, outOffset, out, outOffset)
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

  flat(n: number, x: F32, xOffset: number, out: F32, outOffset: number, p0: number, p1: number): void {
    if (n >= SINGLE_BELOW) {
      runUnary(this.#instance, this.#name, 'f32', n, x, xOffset, out, outOffset, p0, p1)
      return
    }
    const instance = this.#instance.get()
    const pointer = instance.begin(SINGLE_BELOW * 4)
    const memory = instance.f32
    const at = pointer / 4
    copyRun(n, x, xOffset, memory, at)
    instance.kernels[this.#name](n, pointer, pointer, p0, p1)
    copyRun(n, memory, at, out, outOffset)
  }

  strided(shape: Dims, x: F32, xOffset: number, xStrides: Dims, out: F32, outOffset: number, p0: number, p1: number): void {
    const n = elementsOf(shape)
    if (n < SIMD_FROM || !gather(this.#instance, shape, x, xOffset, xStrides, out, outOffset)) {
      walk2(copyF32, shape, x, xOffset, xStrides, out, outOffset, denseStrides(shape))
    }
    this.flat(n, out, outOffset, out, outOffset, p0, p1)
  }
}

/** x → out, of at least SINGLE_BELOW elements. Staged elements are computed in place. */
export function runUnary<D extends SimdDType>(
  lazy: LazyInstance,
  name: UnaryExport,
  view: (typeof VIEWS)[D],
  n: number,
  x: ArrayOf[D],
  xOffset: number,
  out: ArrayOf[D],
  outOffset: number,
  p0 = 0,
  p1 = 0,
): void {
  const instance = lazy.get()
  const kernel = instance.kernels[name]
  const bytes = out.BYTES_PER_ELEMENT
  const staged = instance.begin(CHUNK * bytes)
  const xAt = instance.direct(x, xOffset)
  const outAt = instance.direct(out, outOffset)
  const memory = instance[view] as TypedArray as ArrayOf[D]
  const at = staged / bytes
  const chunk = xAt < 0 || outAt < 0 ? CHUNK : SLICE
  for (let i = 0; i < n; i += chunk) {
    const count = Math.min(chunk, n - i)
    if (xAt < 0) copyRun(count, x, xOffset + i, memory, at)
    kernel(count, xAt < 0 ? staged : xAt + i * bytes, outAt < 0 ? staged : outAt + i * bytes, p0, p1)
    if (outAt < 0) copyRun(count, memory, at, out, outOffset + i)
    workedElements(count)
  }
}

/**
 * Gathers x into the dense output, which can hold it: it is no other view of x. (In place, x is dense too and the copy moves nothing.)
 * Returns false where a walk is better.
 */
export function gather(lazy: LazyInstance, shape: Dims, x: TypedArray, xo: number, xStrides: Dims, out: TypedArray, oo: number): boolean {
  return moveStrided(
    lazy.get(),
    shape,
    { array: x, offset: xo, strides: xStrides },
    { array: out, offset: oo, strides: denseStrides(shape) },
  )
}

export class BinaryArithmetic<D extends SimdDType> implements BinaryKernel<ArrayOf[D], ArrayOf[D]> {
  readonly #instance: LazyInstance
  readonly #name: BinaryExport
  readonly #view: (typeof VIEWS)[D]
  readonly #row: Row3<ArrayOf[D], ArrayOf[D], ArrayOf[D]>

  constructor(instance: LazyInstance, dtype: D, name: BinaryExport, row: Row3<ArrayOf[D], ArrayOf[D], ArrayOf[D]>) {
    this.#instance = instance
    this.#name = name
    this.#view = VIEWS[dtype]
    this.#row = row
  }

  flat(n: number, a: ArrayOf[D], ao: number, as: number, b: ArrayOf[D], bo: number, bs: number, out: ArrayOf[D], oo: number): void {
    if (n < SIMD_FROM) this.#row(n, a, ao, as, b, bo, bs, out, oo, 1)
    else runBinary(this.#instance, this.#name, this.#view, this.#view, n, a, ao, as, b, bo, bs, out, oo)
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
    if (elementsOf(shape) >= SIMD_FROM) {
      if (stridedBinary(this.#instance, this.#name, shape, a, ao, aStrides, b, bo, bStrides, out, oo, outStrides)) return
    }
    walk3(this.#row, shape, a, ao, aStrides, b, bo, bStrides, out, oo, outStrides)
  }
}

/** At least SIMD_FROM elements. A repeated element is always staged: its array may be tiny. */
export function runBinary(
  lazy: LazyInstance,
  name: BinaryExport,
  view: (typeof VIEWS)[SimdDType],
  outView: (typeof VIEWS)[SimdDType] | 'u8',
  n: number,
  a: TypedArray,
  ao: number,
  as: number,
  b: TypedArray,
  bo: number,
  bs: number,
  out: TypedArray,
  oo: number,
): void {
  const instance = lazy.get()
  const kernel = instance.kernels[name]
  const bytes = a.BYTES_PER_ELEMENT
  const outBytes = out.BYTES_PER_ELEMENT
  const staged = instance.begin((2 * bytes + outBytes) * CHUNK)
  const stagedB = staged + CHUNK * bytes
  const stagedOut = stagedB + CHUNK * bytes
  const memory = instance[view] as TypedArray
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
    if (stageA) copyRun(count, a, ao + i, memory, at)
    if (stageB) copyRun(count, b, bo + i, memory, at + CHUNK)
    const aPointer = aAt < 0 ? staged : aAt + i * bytes
    const bPointer = bAt < 0 ? stagedB : bAt + i * bytes
    kernel(1, count, aPointer, 0, as, bPointer, 0, bs, outAt < 0 ? stagedOut : outAt + i * outBytes, 0)
    if (outAt < 0) copyRun(count, instance[outView], stagedOut / outBytes, out, oo + i)
    workedElements(count)
  }
}

/** False where a walk is better. */
export function stridedBinary(
  lazy: LazyInstance,
  name: BinaryExport,
  shape: Dims,
  a: TypedArray,
  ao: number,
  aStrides: Dims,
  b: TypedArray,
  bo: number,
  bStrides: Dims,
  out: TypedArray,
  oo: number,
  outStrides: Dims,
): boolean {
  const instance = lazy.get()
  const kernel = instance.kernels[name]
  const operands = [
    { array: a, offset: ao, strides: aStrides },
    { array: b, offset: bo, strides: bStrides },
    { array: out, offset: oo, strides: outStrides },
  ]
  return runStrided(instance, shape, operands, false, (rows, n, p, row, step) => {
    kernel(rows, n, p[0]!, row[0]!, step[0]!, p[1]!, row[1]!, step[1]!, p[2]!, row[2]!)
  })
}

class AxpyArithmetic<D extends 'float32' | 'float64'> implements AxpyKernel<ArrayOf[D]> {
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
    else this.#run(n, alpha, x, xo, xs, out, oo)
  }

  strided(shape: Dims, alpha: number, x: ArrayOf[D], xo: number, xStrides: Dims, out: ArrayOf[D], oo: number, outStrides: Dims): void {
    if (elementsOf(shape) >= SIMD_FROM) {
      const instance = this.#instance.get()
      const kernel = instance.kernels[this.#name]
      const operands = [
        { array: x, offset: xo, strides: xStrides },
        { array: out, offset: oo, strides: outStrides },
      ]
      const ran = runStrided(instance, shape, operands, true, (rows, n, p, row, step) => {
        kernel(rows, n, alpha, p[0]!, row[0]!, step[0]!, p[1]!, row[1]!)
      })
      if (ran) return
    }
    const row: Row2<ArrayOf[D], ArrayOf[D]> = (n, x, xo, xs, out, oo, os) => this.#loop(n, alpha, x, xo, xs, out, oo, os)
    walk2(row, shape, x, xo, xStrides, out, oo, outStrides)
  }

  #loop(n: number, alpha: number, x: ArrayOf[D], xo: number, xs: number, out: ArrayOf[D], oo: number, os: number): void {
    const round = this.#round
    const scale = round(alpha)
    for (let i = 0; i < n; i++) out[oo + i * os] = out[oo + i * os]! + round(scale * x[xo + i * xs]!)
  }

  #run(n: number, alpha: number, x: ArrayOf[D], xo: number, xs: number, out: ArrayOf[D], oo: number): void {
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
      if (stageX) copyRun(count, x, xo + i, memory, at)
      if (outAt < 0) copyRun(count, out, oo + i, memory, at + CHUNK)
      kernel(1, count, alpha, xAt < 0 ? staged : xAt + i * bytes, 0, xs, outAt < 0 ? staged + CHUNK * bytes : outAt + i * bytes, 0)
      if (outAt < 0) copyRun(count, memory, at + CHUNK, out, oo + i)
      workedElements(count)
    }
  }
}

const identity = (x: number): number => x

export function elementsOf(shape: Dims): number {
  let n = 1
  for (let d = 0; d < shape.length; d++) n *= shape[d]!
  return n
}

export const cells = (instance: LazyInstance): OwnCells => ({
  axpy: by(bySize, { float32: new AxpyArithmetic(instance, 'float32'), float64: new AxpyArithmetic(instance, 'float64') }),
})
