/** Layer normalisation of float32 in the wasm backend: as many rows at a time as stay in the first-level cache, staged, through kernels.wasm. */
import type { ArrayOf } from '../../values/dtype.js'
import type { LayerNormBackwardKernel, LayerNormKernel } from '../table/neural.js'
import { align, type LazyInstance } from './instance.js'
import { always, by, type OwnCells } from './own.js'
import { worked } from './pause.js'

type F32 = ArrayOf['float32']

declare module './instance.js' {
  interface KernelExports {
    readonly layer_norm_f32: (
      rows: number,
      d: number,
      eps: number,
      x: number,
      weight: number,
      bias: number,
      out: number,
      mean: number,
      rstd: number,
    ) => void
    readonly layer_norm_backward_f32: (
      rows: number,
      d: number,
      grad: number,
      x: number,
      mean: number,
      rstd: number,
      weight: number,
      out: number,
      forWeight: number,
      forBias: number,
    ) => void
  }
}

/** Floats of x that are staged at once. */
const CHUNK = 4096
/** What an element counts between two pauses. */
const WORK_PER_ELEMENT = 8

class LayerNormRows implements LayerNormKernel<F32> {
  readonly #instance: LazyInstance

  constructor(instance: LazyInstance) {
    this.#instance = instance
  }

  run(
    rows: number,
    d: number,
    eps: number,
    x: F32,
    xo: number,
    w: F32 | null,
    wo: number,
    b: F32 | null,
    bo: number,
    out: F32,
    mean: F32,
    rstd: F32,
  ): void {
    if (rows === 0) return
    const instance = this.#instance.get()
    const atOnce = Math.min(rows, Math.max(1, Math.floor(CHUNK / d)))
    const [block, row, column] = [align(atOnce * d * 4), align(d * 4), align(atOnce * 4)]
    instance.begin(2 * block + 2 * row + 2 * column)
    const [xAt, outAt] = [instance.take(block), instance.take(block)]
    const [wAt, bAt] = [instance.take(row), instance.take(row)]
    const [meanAt, rstdAt] = [instance.take(column), instance.take(column)]
    const { f32, kernels } = instance
    if (w !== null) f32.set(w.subarray(wo, wo + d), wAt / 4)
    if (b !== null) f32.set(b.subarray(bo, bo + d), bAt / 4)
    for (let r = 0; r < rows; r += atOnce) {
      const count = Math.min(atOnce, rows - r)
      f32.set(x.subarray(xo + r * d, xo + (r + count) * d), xAt / 4)
      kernels.layer_norm_f32(count, d, eps, xAt, w === null ? 0 : wAt, b === null ? 0 : bAt, outAt, meanAt, rstdAt)
      out.set(f32.subarray(outAt / 4, outAt / 4 + count * d), r * d)
      mean.set(f32.subarray(meanAt / 4, meanAt / 4 + count), r)
      rstd.set(f32.subarray(rstdAt / 4, rstdAt / 4 + count), r)
      worked(count * d * WORK_PER_ELEMENT)
    }
  }
}

class LayerNormRowsBackward implements LayerNormBackwardKernel<F32> {
  readonly #instance: LazyInstance

  constructor(instance: LazyInstance) {
    this.#instance = instance
  }

  run(
    rows: number,
    d: number,
    grad: F32,
    go: number,
    x: F32,
    xo: number,
    mean: F32,
    rstd: F32,
    w: F32 | null,
    wo: number,
    out: F32,
    weightGrad: F32 | null,
    biasGrad: F32 | null,
  ): void {
    const instance = this.#instance.get()
    const atOnce = Math.max(1, Math.min(rows, Math.floor(CHUNK / d)))
    const [block, row, column, sums] = [align(atOnce * d * 4), align(d * 4), align(atOnce * 4), align(d * 8)]
    instance.begin(3 * block + row + 2 * column + 2 * sums)
    const [gradAt, xAt, outAt] = [instance.take(block), instance.take(block), instance.take(block)]
    const [wAt, meanAt, rstdAt] = [instance.take(row), instance.take(column), instance.take(column)]
    const [weightAt, biasAt] = [instance.take(sums), instance.take(sums)]
    const { f32, f64, kernels } = instance
    if (w !== null) f32.set(w.subarray(wo, wo + d), wAt / 4)
    f64.fill(0, weightAt / 8, weightAt / 8 + d)
    f64.fill(0, biasAt / 8, biasAt / 8 + d)
    for (let r = 0; r < rows; r += atOnce) {
      const count = Math.min(atOnce, rows - r)
      f32.set(grad.subarray(go + r * d, go + (r + count) * d), gradAt / 4)
      f32.set(x.subarray(xo + r * d, xo + (r + count) * d), xAt / 4)
      f32.set(mean.subarray(r, r + count), meanAt / 4)
      f32.set(rstd.subarray(r, r + count), rstdAt / 4)
      kernels.layer_norm_backward_f32(count, d, gradAt, xAt, meanAt, rstdAt, w === null ? 0 : wAt, outAt, weightAt, biasAt)
      out.set(f32.subarray(outAt / 4, outAt / 4 + count * d), r * d)
      worked(count * d * 2 * WORK_PER_ELEMENT)
    }
    weightGrad?.set(f64.subarray(weightAt / 8, weightAt / 8 + d))
    biasGrad?.set(f64.subarray(biasAt / 8, biasAt / 8 + d))
  }
}

export const cells = (instance: LazyInstance): OwnCells => ({
  layerNorm: by(always, { float32: new LayerNormRows(instance) }),
  layerNormBackward: by(always, { float32: new LayerNormRowsBackward(instance) }),
})
