/**
 * Derivatives of activations and of softmax in one pass, for float32: what would be several element-wise kernels. Operands in the kernels' memory
 * are used there, others pass through scratch, as in `elementwise.ts`. The plain arithmetic among them runs as a loop below SIMD_FROM, with the
 * same bits; the others need the polynomials of kernels.wasm at every size.
 */
import type { ArrayOf } from '../../values/dtype.js'
import type { GradRow } from '../elementwise/loops.js'
import type { GradKernel, GradRowsKernel } from '../table/table.js'
import { align, copyRun, type GradientExport, type LazyInstance, SIMD_FROM, SINGLE_BELOW } from './instance.js'
import { always, by, type OwnCells } from './own.js'
import { workedElements } from './pause.js'
import { fibre, scatter } from './rows.js'
import { SLICE } from './strided.js'

type F32 = ArrayOf['float32']

type Rows = (rows: number, k: number, g: number, y: number, out: number) => void
declare module './instance.js' {
  interface KernelExports {
    readonly softmax_backward_rows_f32: Rows
    readonly log_softmax_backward_rows_f32: Rows
  }
}
type GradientRowsExport = 'softmax_backward_rows_f32' | 'log_softmax_backward_rows_f32'
/** Elements of a chunk: two buffers of 8 KiB stay in the first-level cache. */
const CHUNK = 2048

export class FusedGradient implements GradKernel<F32> {
  readonly #instance: LazyInstance
  readonly #name: GradientExport
  readonly #row: GradRow | null

  constructor(instance: LazyInstance, name: GradientExport, row: GradRow | null) {
    this.#instance = instance
    this.#name = name
    this.#row = row
  }

  flat(n: number, g: F32, go: number, gs: number, x: F32, xo: number, out: F32, oo: number, p0: number, p1: number): void {
    if (this.#row !== null && n < SIMD_FROM) this.#row(n, g, go, gs, x, xo, out, oo)
    else if (n < SINGLE_BELOW) this.#few(n, g, go, gs, x, xo, out, oo, p0, p1)
    else this.#stage(n, g, go, gs, x, xo, out, oo, p0, p1)
  }

  #few(n: number, g: F32, go: number, gs: number, x: F32, xo: number, out: F32, oo: number, p0: number, p1: number): void {
    const instance = this.#instance.get()
    const pointer = instance.begin(2 * SINGLE_BELOW * 4)
    const memory = instance.f32
    const at = pointer / 4
    for (let i = 0; i < n; i++) {
      memory[at + i] = x[xo + i]!
      memory[at + SINGLE_BELOW + i] = g[go + i * gs]!
    }
    instance.kernels[this.#name](n, pointer + SINGLE_BELOW * 4, 1, pointer, pointer, p0, p1)
    for (let i = 0; i < n; i++) out[oo + i] = memory[at + i]!
  }

  #stage(n: number, g: F32, go: number, gs: number, x: F32, xo: number, out: F32, oo: number, p0: number, p1: number): void {
    const instance = this.#instance.get()
    const kernel = instance.kernels[this.#name]
    const staged = instance.begin(2 * CHUNK * 4)
    const memory = instance.f32
    const at = staged / 4
    // A repeated element is always staged: its array may be tiny.
    const gAt = gs === 0 ? -1 : instance.direct(g, go)
    const xAt = instance.direct(x, xo)
    const outAt = instance.direct(out, oo)
    if (gs === 0) memory[at + CHUNK] = g[go]!
    const stageG = gs !== 0 && gAt < 0
    const chunk = stageG || xAt < 0 || outAt < 0 ? CHUNK : SLICE
    for (let i = 0; i < n; i += chunk) {
      const count = Math.min(chunk, n - i)
      if (xAt < 0) copyRun(count, x, xo + i, memory, at)
      if (stageG) copyRun(count, g, go + i, memory, at + CHUNK)
      kernel(
        count,
        gAt < 0 ? staged + CHUNK * 4 : gAt + i * 4,
        gs,
        xAt < 0 ? staged : xAt + i * 4,
        outAt < 0 ? staged : outAt + i * 4,
        p0,
        p1,
      )
      if (outAt < 0) copyRun(count, memory, at, out, oo + i)
      workedElements(count)
    }
  }
}

/** softmaxBackward and logSoftmaxBackward: rows as they lie, fibres gathered. */
class GradientRows implements GradRowsKernel<F32> {
  readonly #instance: LazyInstance
  readonly #name: GradientRowsExport

  constructor(instance: LazyInstance, name: GradientRowsExport) {
    this.#instance = instance
    this.#name = name
  }

  run(outer: number, k: number, inner: number, g: F32, go: number, y: F32, yo: number, out: F32, oo: number): void {
    if (outer * k * inner === 0) return
    const instance = this.#instance.get()
    const all = outer * inner
    const chunk = Math.min(all, Math.max(1, Math.floor(CHUNK / k)))
    const bytes = chunk * k * 4
    instance.begin(3 * align(bytes))
    const gStaged = instance.take(bytes)
    const yStaged = instance.take(bytes)
    const outStaged = instance.take(bytes)
    const kernel = instance.kernels[this.#name]
    const { f32 } = instance
    const inPlace = inner === 1 && all * k >= SINGLE_BELOW
    const gAt = inPlace ? instance.direct(g, go) : -1
    const yAt = inPlace ? instance.direct(y, yo) : -1
    const outAt = inPlace ? instance.direct(out, oo) : -1
    const atOnce = gAt < 0 || yAt < 0 || outAt < 0 ? chunk : Math.max(1, Math.floor(SLICE / k))
    const stage = (from: F32, offset: number, to: number, r: number, count: number) => {
      if (inner === 1) copyRun(count * k, from, offset + r * k, f32, to / 4)
      else for (let i = 0; i < count; i++) fibre(r + i, k, inner, from, offset, f32, to / 4 + i * k)
    }
    for (let r = 0; r < all; r += atOnce) {
      const count = Math.min(atOnce, all - r)
      if (gAt < 0) stage(g, go, gStaged, r, count)
      if (yAt < 0) stage(y, yo, yStaged, r, count)
      const shift = r * k * 4
      kernel(count, k, gAt < 0 ? gStaged : gAt + shift, yAt < 0 ? yStaged : yAt + shift, outAt < 0 ? outStaged : outAt + shift)
      workedElements(count * k)
      if (outAt >= 0) continue
      if (inner === 1) copyRun(count * k, f32, outStaged / 4, out, oo + r * k)
      else for (let i = 0; i < count; i++) scatter(r + i, k, inner, f32, outStaged / 4 + i * k, out, oo)
    }
  }
}

export const cells = (instance: LazyInstance): OwnCells => ({
  softmaxBackward: by(always, { float32: new GradientRows(instance, 'softmax_backward_rows_f32') }),
  logSoftmaxBackward: by(always, { float32: new GradientRows(instance, 'log_softmax_backward_rows_f32') }),
})
