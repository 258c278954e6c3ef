/**
 * Element-wise kernels of the wasm backend. Those whose loops have the same bits run as loops below SIMD_FROM elements, and where strides make a walk
 * better; the others are exports that run at every size. For `element-cells.ts`. `dense.ts` and `strided.ts` bring operands into the memory.
 */
import { INT32_SPAN } from '../../values/dtype.js'
import { binaryRows } from '../js/elementwise.js'
import { copy } from '../js/movement.js'
import type { Axpy, Binary, Grad, Operand, Unary, Where } from '../table/operands.js'
import { stepOver } from '../table/walk.js'
import { CHUNK, COSTLY, placed, ROOM, runDense } from './calls/dense.js'
import { type BinaryExport, type GradientExport, type LazyInstance, SIMD_FROM, SINGLE_BELOW, type UnaryExport } from './calls/instance.js'
import { by, bySize, loopsOf, type OwnCells } from './calls/own.js'
import { workedElements } from './calls/pause.js'
import { type BlockKernel, moveStrided, runStrided, type StridedOptions, unstage } from './calls/strided.js'

type AxpyExport = (rows: number, n: number, alpha: number, x: number, xRow: number, xStep: number, out: number, outRow: number) => void
type Choice = [x: number, row: number, step: number]
type WhereExport = (rows: number, n: number, cond: number, condRow: number, ...rest: [...a: Choice, ...b: Choice, out: number]) => void
declare module './calls/instance.js' {
  interface KernelExports {
    readonly axpy_f32: AxpyExport
    readonly axpy_f64: AxpyExport
    readonly where_32: WhereExport
    readonly where_64: WhereExport
  }
}

/**
 * x if it is dense, otherwise out, into which x is gathered: out can hold it, as it is not another view of x. (In place, x is dense too.) Null if a
 * walk is better.
 */
function denseOf(lazy: LazyInstance, x: Operand, out: Operand): Operand | null {
  if (x.isContiguous) return x
  return out.numel >= SIMD_FROM && moveStrided(lazy.get(), x, out) ? out : null
}

function runUnary(lazy: LazyInstance, name: UnaryExport, x: Operand, out: Operand, p0: number, p1: number, work?: number): void {
  const instance = lazy.get()
  const kernel = instance.kernels[name]
  const n = out.numel
  if (n > CHUNK) {
    runDense(instance, [x, out], (_, count, at) => kernel(count, at[0]!, at[1]!, p0, p1), false, work)
    return
  }
  const scratch = instance.begin(ROOM)
  const from = placed(instance, n, x, 1, scratch)
  const direct = instance.direct(out.storage.host!, out.offset)
  const to = direct < 0 ? scratch : direct
  kernel(n, from, to, p0, p1)
  if (direct < 0) unstage(instance, n, to, out)
  workedElements(n)
}

/** A function that has the bits of `loops`. */
export function unaryBySize(lazy: LazyInstance, name: UnaryExport, loops: Unary): Unary {
  return (x, out, p0, p1) => {
    const dense = out.numel < SIMD_FROM ? null : denseOf(lazy, x, out)
    if (dense === null) loops(x, out, p0, p1)
    else if (out.dtype === 'int32') runUnary(lazy, name, dense, out, bound(p0), bound(p1))
    else runUnary(lazy, name, dense, out, p0, p1)
  }
}

/** A bound for an int32: infinity means the end of the range, and a fraction is cut as a result would be. */
function bound(p: number): number {
  return Math.max(-INT32_SPAN, Math.min(INT32_SPAN - 1, Math.trunc(p)))
}

/** A polynomial of kernels.wasm: it runs for every size, so that a value's bits do not depend on how many there are. */
export function unaryPolynomial(lazy: LazyInstance, name: UnaryExport): Unary {
  return (x, out, p0, p1) => {
    const dense = denseOf(lazy, x, out)
    if (dense === null) copy(x, out)
    runUnary(lazy, name, dense ?? out, out, p0, p1, COSTLY)
  }
}

/** Runs `kernel` on dense operands as they lie, on others by blocks; the last one is the output. Returns false where a walk is better. */
function runBlocks(lazy: LazyInstance, operands: readonly Operand[], kernel: BlockKernel, options: StridedOptions = {}): boolean {
  const out = operands.at(-1)!
  if (!out.isContiguous || operands.some((x) => stepOver(x, out) < 0)) return runStrided(lazy.get(), operands, kernel, options)
  runDense(lazy.get(), operands, kernel, options.readsOutput)
  return true
}

/** `loops` runs below SIMD_FROM, and where strides make a walk better. `swapped`: the export takes b before a. */
export function binaryBySize(lazy: LazyInstance, name: BinaryExport, loops: Binary, swapped = false): Binary {
  return (a, b, out) => {
    if (out.numel < SIMD_FROM || !(swapped ? runBinary(lazy, name, b, a, out) : runBinary(lazy, name, a, b, out))) loops(a, b, out)
  }
}

function runBinary(lazy: LazyInstance, name: BinaryExport, a: Operand, b: Operand, out: Operand): boolean {
  const instance = lazy.get()
  const kernel = instance.kernels[name]
  const n = out.numel
  const aStep = stepOver(a, out)
  const bStep = stepOver(b, out)
  if (n <= CHUNK && aStep >= 0 && bStep >= 0 && out.isContiguous) {
    const scratch = instance.begin(3 * ROOM)
    const left = placed(instance, n, a, aStep, scratch)
    const right = placed(instance, n, b, bStep, scratch + ROOM)
    const direct = instance.direct(out.storage.host!, out.offset)
    const to = direct < 0 ? scratch + 2 * ROOM : direct
    kernel(1, n, left, 0, aStep, right, 0, bStep, to, 0)
    if (direct < 0) unstage(instance, n, to, out)
    workedElements(n)
    return true
  }
  return runBlocks(lazy, [a, b, out], (rows, n, at, row, step) =>
    kernel(rows, n, at[0]!, row[0]!, step[0]!, at[1]!, row[1]!, step[1]!, at[2]!, row[2]!),
  )
}

/**
 * A function of two arguments without a loop of the same bits: kernels.wasm computes it for every size; what is too small or lies too wide to be staged
 * whole goes through scratch a few elements at a time.
 */
export function binaryPolynomial(lazy: LazyInstance, name: BinaryExport): Binary {
  const rows = binaryRows<Float32Array, Float32Array>((n, a, ao, as, b, bo, bs, out, oo, os) => {
    const instance = lazy.get()
    const pointer = instance.begin(2 * SINGLE_BELOW * 4)
    const second = pointer + SINGLE_BELOW * 4
    const memory = instance.f32
    const kernel = instance.kernels[name]
    for (let from = 0; from < n; from += SINGLE_BELOW) {
      const count = Math.min(SINGLE_BELOW, n - from)
      for (let i = 0; i < count; i++) {
        memory[pointer / 4 + i] = a[ao + (from + i) * as]!
        memory[second / 4 + i] = b[bo + (from + i) * bs]!
      }
      kernel(1, count, pointer, 0, 1, second, 0, 1, pointer, 0)
      for (let i = 0; i < count; i++) out[oo + (from + i) * os] = memory[pointer / 4 + i]!
    }
  })
  return binaryBySize(lazy, name, rows)
}

/** A power whose exponent 2 is a multiplication by `name` (PyTorch's as well); other exponents are the js backend's loops. */
export function powBySize(lazy: LazyInstance, name: BinaryExport, loops: Unary): Unary {
  return (x, out, exponent, p1) => {
    const dense = exponent !== 2 || out.numel < SIMD_FROM ? null : denseOf(lazy, x, out)
    if (dense === null) loops(x, out, exponent, p1)
    else runBinary(lazy, name, dense, dense, out)
  }
}

/** `special` runs the exponents that have a form of their own: 2 is a product, ±0.5 are roots (PyTorch's as well). */
export function powF32(general: Unary, special: Unary): Unary {
  return (x, out, exponent, p1) => (exponent === 2 || Math.abs(exponent) === 0.5 ? special : general)(x, out, exponent, p1)
}

function axpy(lazy: LazyInstance, name: 'axpy_f32' | 'axpy_f64', loops: Axpy): Axpy {
  return (alpha, x, out) => {
    const run: BlockKernel = (rows, n, at, row, step) =>
      lazy.get().kernels[name](rows, n, alpha, at[0]!, row[0]!, step[0]!, at[1]!, row[1]!)
    if (out.numel < SIMD_FROM || !runBlocks(lazy, [x, out], run, { readsOutput: true })) loops(alpha, x, out)
  }
}

function where(lazy: LazyInstance, name: 'where_32' | 'where_64', loops: Where): Where {
  return (cond, a, b, out) => {
    const run: BlockKernel = (rows, n, at, row, step) =>
      lazy.get().kernels[name](rows, n, at[0]!, row[0]!, at[1]!, row[1]!, step[1]!, at[2]!, row[2]!, step[2]!, at[3]!)
    // One condition for all is a copy or a fill: too rare for a kernel.
    const few = out.numel < SIMD_FROM || cond.numel === 1
    if (few || !runBlocks(lazy, [cond, a, b, out], run, { denseFirst: true })) loops(cond, a, b, out)
  }
}

/** `loop` has the bits of the export, which runs at every size where there is none. */
export function gradient(lazy: LazyInstance, name: GradientExport, loops: Grad | null): Grad {
  return (g, x, out, p0, p1) => {
    if (loops !== null && out.numel < SIMD_FROM) {
      loops(g, x, out, p0, p1)
      return
    }
    const instance = lazy.get()
    const kernel = instance.kernels[name]
    const n = out.numel
    if (n > CHUNK) {
      runDense(instance, [g, x, out], (_, count, at, _rows, step) => kernel(count, at[0]!, step[0]!, at[1]!, at[2]!, p0, p1), false, COSTLY)
      return
    }
    const scratch = instance.begin(3 * ROOM)
    const step = g.isContiguous ? 1 : 0
    const slopes = placed(instance, n, x, 1, scratch + ROOM)
    const direct = instance.direct(out.storage.host!, out.offset)
    const to = direct < 0 ? scratch + 2 * ROOM : direct
    kernel(n, placed(instance, n, g, step, scratch), step, slopes, to, p0, p1)
    if (direct < 0) unstage(instance, n, to, out)
    workedElements(n)
  }
}

export function cells(instance: LazyInstance): OwnCells {
  const [sums, choices] = [loopsOf('axpy'), loopsOf('where')]
  return {
    axpy: by(bySize, { float32: axpy(instance, 'axpy_f32', sums.float32), float64: axpy(instance, 'axpy_f64', sums.float64) }),
    where: by(bySize, {
      float32: where(instance, 'where_32', choices.float32),
      float64: where(instance, 'where_64', choices.float64),
      int32: where(instance, 'where_32', choices.int32),
    }),
  }
}
