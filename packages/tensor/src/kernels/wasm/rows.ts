/**
 * Sums, maxima and softmax of the wasm backend, for float32 [outer, k, inner]. The order of summation is part of the contract (KERNELS.md,
 * rule SUM), so each kernel here has two forms with the same bits: kernels.wasm, and a plain loop for small inputs.
 */
import type { ArrayOf } from '../../values/dtype.js'
import { join, sumLoop } from '../js/sum.js'
import type { ReduceKernel, ScanKernel } from '../table/table.js'
import { align, copyRun, type LazyInstance, SIMD_FROM, SINGLE_BELOW, type WasmInstance } from './instance.js'
import { always, by, byInput, type OwnCells } from './own.js'
import { workedElements } from './pause.js'
import { SLICE } from './strided.js'

type F32 = ArrayOf['float32']

type Rows = (rows: number, k: number, x: number, out: number) => void
declare module './instance.js' {
  interface KernelExports {
    readonly sum_rows_f32: Rows
    readonly sum_groups_f32: (n: number, x: number, accumulators: number) => void
    readonly add_rows_f32: (rows: number, n: number, x: number, sums: number) => void
    readonly amax_rows_f32: Rows
    readonly amin_rows_f32: Rows
    readonly softmax_rows_f32: Rows
    readonly log_softmax_rows_f32: Rows
  }
}

/** Floats that are staged at once; a multiple of 8, so that a long row's groups do not straddle chunks. */
const CHUNK = 2048
/** Floats of room for eight double accumulators. */
const SUMS = 16

class SumRows implements ReduceKernel<F32, F32> {
  readonly #instance: LazyInstance

  constructor(instance: LazyInstance) {
    this.#instance = instance
  }

  run(outer: number, k: number, inner: number, x: F32, xo: number, out: F32, oo: number): void {
    if (outer * k * inner < SIMD_FROM || k === 0) sumLoop(outer, k, inner, x, xo, out, oo)
    else if (inner > 1) this.#columns(outer, k, inner, x, xo, out, oo)
    else if (k <= CHUNK) shortRows(this.#instance.get(), 'sum_rows_f32', outer, k, x, xo, out, oo)
    else for (let o = 0; o < outer; o++) out[oo + o] = this.#longRow(k, x, xo + o * k)
  }

  #longRow(k: number, x: F32, xo: number): number {
    const instance = this.#instance.get()
    const staged = instance.begin((CHUNK + SUMS) * 4)
    const sums = staged + CHUNK * 4
    const { f32, f64, kernels } = instance
    const at = sums / 8
    f64.fill(0, at, at + 8)
    const xAt = instance.direct(x, xo)
    const chunk = xAt < 0 ? CHUNK : SLICE
    const groups = k - (k % 8)
    for (let i = 0; i < groups; i += chunk) {
      const count = Math.min(chunk, groups - i)
      if (xAt < 0) copyRun(count, x, xo + i, f32, staged / 4)
      kernels.sum_groups_f32(count, xAt < 0 ? staged : xAt + i * 4, sums)
      workedElements(count)
    }
    let total = join(f64[at]!, f64[at + 1]!, f64[at + 2]!, f64[at + 3]!, f64[at + 4]!, f64[at + 5]!, f64[at + 6]!, f64[at + 7]!)
    for (let i = groups; i < k; i++) total += x[xo + i]!
    return total
  }

  /** Tiles of columns; of each, as many rows at once as a chunk holds if they are whole. */
  #columns(outer: number, k: number, inner: number, x: F32, xo: number, out: F32, oo: number): void {
    const instance = this.#instance.get()
    const staged = instance.begin(CHUNK * 4 + CHUNK * 8)
    const sums = staged + CHUNK * 4
    const { f32, f64, kernels } = instance
    const at = sums / 8
    const xAt = instance.direct(x, xo)
    for (let o = 0; o < outer; o++) {
      const base = o * k * inner
      for (let i = 0; i < inner; i += CHUNK) {
        const width = Math.min(CHUNK, inner - i)
        const rowsAtOnce = width === inner ? Math.max(1, Math.floor((xAt < 0 ? CHUNK : SLICE) / inner)) : 1
        f64.fill(0, at, at + width)
        for (let r = 0; r < k; r += rowsAtOnce) {
          const rows = Math.min(rowsAtOnce, k - r)
          const from = base + r * inner + i
          if (xAt < 0) copyRun((rows - 1) * inner + width, x, xo + from, f32, staged / 4)
          kernels.add_rows_f32(rows, width, xAt < 0 ? staged : xAt + from * 4, sums)
          workedElements(rows * width)
        }
        for (let c = 0; c < width; c++) out[oo + o * inner + i + c] = f64[at + c]!
      }
    }
  }
}

/** Whole rows, one result each; at least SINGLE_BELOW elements in all, and k ≤ CHUNK. */
function shortRows(
  instance: WasmInstance,
  name: 'sum_rows_f32' | 'amax_rows_f32' | 'amin_rows_f32',
  rows: number,
  k: number,
  x: F32,
  xo: number,
  out: F32,
  oo: number,
): void {
  const staged = instance.begin(2 * CHUNK * 4)
  const { f32, kernels } = instance
  const xAt = instance.direct(x, xo)
  const results = staged + CHUNK * 4
  const at = results / 4
  const atOnce = xAt < 0 ? Math.floor(CHUNK / k) : Math.min(CHUNK, Math.floor(SLICE / k))
  for (let r = 0; r < rows; r += atOnce) {
    const count = Math.min(atOnce, rows - r)
    if (xAt < 0) copyRun(count * k, x, xo + r * k, f32, staged / 4)
    kernels[name](count, k, xAt < 0 ? staged : xAt + r * k * 4, results)
    workedElements(count * k)
    for (let i = 0; i < count; i++) out[oo + r + i] = f32[at + i]!
  }
}

/** amax and amin: rows through kernels.wasm, long ones in pieces, columns by a loop; an extreme has the same bits in any order. */
class ExtremeRows implements ReduceKernel<F32, F32> {
  readonly #instance: LazyInstance
  readonly #name: 'amax_rows_f32' | 'amin_rows_f32'
  readonly #pick: (a: number, b: number) => number
  readonly #columns: (outer: number, k: number, inner: number, x: F32, xo: number, out: F32, oo: number) => void

  constructor(instance: LazyInstance, greatest: boolean) {
    this.#instance = instance
    this.#name = greatest ? 'amax_rows_f32' : 'amin_rows_f32'
    this.#pick = greatest ? Math.max : Math.min
    this.#columns = greatest ? greatestLoop : leastLoop
  }

  run(outer: number, k: number, inner: number, x: F32, xo: number, out: F32, oo: number): void {
    if (inner !== 1 || outer * k < SIMD_FROM) this.#columns(outer, k, inner, x, xo, out, oo)
    else if (k <= CHUNK) shortRows(this.#instance.get(), this.#name, outer, k, x, xo, out, oo)
    else for (let o = 0; o < outer; o++) out[oo + o] = this.#longRow(k, x, xo + o * k)
  }

  #longRow(k: number, x: F32, xo: number): number {
    const pieces = new Float32Array(Math.floor(k / CHUNK))
    shortRows(this.#instance.get(), this.#name, pieces.length, CHUNK, x, xo, pieces, 0)
    let best = pieces[0]!
    for (let i = 1; i < pieces.length; i++) best = this.#pick(best, pieces[i]!)
    for (let i = xo + pieces.length * CHUNK; i < xo + k; i++) best = this.#pick(best, x[i]!)
    return best
  }
}

function greatestLoop(outer: number, k: number, inner: number, x: F32, xo: number, out: F32, oo: number): void {
  for (let o = 0; o < outer; o++) {
    for (let i = 0; i < inner; i++) {
      let m = Number.NEGATIVE_INFINITY
      for (let j = 0, at = xo + o * k * inner + i; j < k; j++, at += inner) m = Math.max(m, x[at]!)
      out[oo + o * inner + i] = m
    }
  }
}

function leastLoop(outer: number, k: number, inner: number, x: F32, xo: number, out: F32, oo: number): void {
  for (let o = 0; o < outer; o++) {
    for (let i = 0; i < inner; i++) {
      let m = Number.POSITIVE_INFINITY
      for (let j = 0, at = xo + o * k * inner + i; j < k; j++, at += inner) m = Math.min(m, x[at]!)
      out[oo + o * inner + i] = m
    }
  }
}

/** softmax and logSoftmax: always kernels.wasm, because their exponentials are its polynomial. */
class SoftmaxRows implements ScanKernel<F32> {
  readonly #instance: LazyInstance
  readonly #name: 'softmax_rows_f32' | 'log_softmax_rows_f32'

  constructor(instance: LazyInstance, name: 'softmax_rows_f32' | 'log_softmax_rows_f32') {
    this.#instance = instance
    this.#name = name
  }

  run(outer: number, k: number, inner: number, x: F32, xo: number, out: F32, oo: number): void {
    if (outer * k * inner === 0) return
    const instance = this.#instance.get()
    const all = outer * inner
    const chunk = Math.min(all, Math.max(1, Math.floor(CHUNK / k)))
    const bytes = chunk * k * 4
    instance.begin(2 * align(bytes))
    const from = instance.take(bytes)
    const to = instance.take(bytes)
    const kernel = instance.kernels[this.#name]
    const { f32 } = instance
    const inPlace = inner === 1 && all * k >= SINGLE_BELOW
    const outAt = inPlace ? instance.direct(out, oo) : -1
    let xAt = inPlace ? instance.direct(x, xo) : -1
    if (xAt === outAt) xAt = -1 // logSoftmax needs x after it has begun to write
    const atOnce = xAt < 0 || outAt < 0 ? chunk : Math.max(1, Math.floor(SLICE / k))
    for (let r = 0; r < all; r += atOnce) {
      const count = Math.min(atOnce, all - r)
      if (xAt < 0) {
        if (inner === 1) copyRun(count * k, x, xo + r * k, f32, from / 4)
        else for (let i = 0; i < count; i++) fibre(r + i, k, inner, x, xo, f32, from / 4 + i * k)
      }
      kernel(count, k, xAt < 0 ? from : xAt + r * k * 4, outAt < 0 ? to : outAt + r * k * 4)
      workedElements(count * k)
      if (outAt < 0) {
        if (inner === 1) copyRun(count * k, f32, to / 4, out, oo + r * k)
        else for (let i = 0; i < count; i++) scatter(r + i, k, inner, f32, to / 4 + i * k, out, oo)
      }
    }
  }
}

/** Row r of the [outer · inner] fibres, gathered from [outer, k, inner]. */
export function fibre(r: number, k: number, inner: number, x: F32, xo: number, to: F32, toOffset: number): void {
  let at = xo + Math.floor(r / inner) * k * inner + (r % inner)
  for (let j = 0; j < k; j++, at += inner) to[toOffset + j] = x[at]!
}

export function scatter(r: number, k: number, inner: number, from: F32, fromOffset: number, out: F32, oo: number): void {
  let at = oo + Math.floor(r / inner) * k * inner + (r % inner)
  for (let j = 0; j < k; j++, at += inner) out[at] = from[fromOffset + j]!
}

export const cells = (instance: LazyInstance): OwnCells => ({
  sum: by(byInput, { float32: new SumRows(instance) }),
  amax: by(byInput, { float32: new ExtremeRows(instance, true) }),
  amin: by(byInput, { float32: new ExtremeRows(instance, false) }),
  softmax: by(always, { float32: new SoftmaxRows(instance, 'softmax_rows_f32') }),
  logSoftmax: by(always, { float32: new SoftmaxRows(instance, 'log_softmax_rows_f32') }),
})
