/** Pooling of float32 in the wasm backend, plane by plane, staged where a plane lies outside of the memory, in slices of rows of the result. */
import type { ArrayOf, TypedArray } from '../../values/dtype.js'
import type { AvgPoolGeometry, AvgPoolKernel, MaxPoolKernel, PoolGeometry } from '../table/neural.js'
import { align, type LazyInstance, SINGLE_BELOW, type WasmInstance, type Window } from './instance.js'
import { always, by, type OwnCells } from './own.js'
import { worked } from './pause.js'

type F32 = ArrayOf['float32']

type Rows = [ow: number, oy0: number, oy1: number]
type MaxPool = (...rest: [...Window, ...Rows, x: number, out: number, places: number]) => void
/** Like Window, without dilation. */
type AvgPool = (
  h: number,
  w: number,
  kh: number,
  kw: number,
  strideH: number,
  strideW: number,
  padH: number,
  padW: number,
  includePad: number,
  divisor: number,
  ...rest: [...Rows, x: number, out: number]
) => void
declare module './instance.js' {
  interface KernelExports {
    readonly max_pool_f32: MaxPool
    readonly avg_pool_f32: AvgPool
    readonly avg_pool_spread_f32: AvgPool
  }
}

/** Elements of windows that are looked at in one call. */
const SLICE = 2 ** 18
/** What one of them counts between two pauses. */
const WORK_PER_ELEMENT = 16

function direct(instance: WasmInstance, x: TypedArray, offset: number): number {
  return x.length < SINGLE_BELOW ? -1 : instance.direct(x, offset)
}

/** Calls `run` for rows [from, to) of the result until they are all done. */
function inSlices(g: PoolGeometry, run: (from: number, to: number) => void): void {
  const perRow = g.ow * g.kh * g.kw
  const rows = Math.max(1, Math.floor(SLICE / perRow))
  for (let oy = 0; oy < g.oh; oy += rows) {
    const to = Math.min(g.oh, oy + rows)
    run(oy, to)
    worked((to - oy) * perRow * WORK_PER_ELEMENT)
  }
}

class MaxPoolPlanes implements MaxPoolKernel<F32> {
  readonly #instance: LazyInstance

  constructor(instance: LazyInstance) {
    this.#instance = instance
  }

  run(g: PoolGeometry, x: F32, xo: number, out: F32, oo: number, indices: Int32Array, io: number): void {
    const [from, to] = [g.h * g.w, g.oh * g.ow]
    if (g.planes * to === 0) return
    const instance = this.#instance.get()
    const [xDirect, outDirect, placesDirect] = [direct(instance, x, xo), direct(instance, out, oo), direct(instance, indices, io)]
    instance.begin(align(from * 4) + 2 * align(to * 4))
    const [xStaged, outStaged, placesStaged] = [instance.take(from * 4), instance.take(to * 4), instance.take(to * 4)]
    const { f32, i32, kernels } = instance
    for (let p = 0; p < g.planes; p++) {
      if (xDirect < 0) f32.set(x.subarray(xo + p * from, xo + (p + 1) * from), xStaged / 4)
      const xAt = xDirect < 0 ? xStaged : xDirect + p * from * 4
      const outAt = outDirect < 0 ? outStaged : outDirect + p * to * 4
      const placesAt = placesDirect < 0 ? placesStaged : placesDirect + p * to * 4
      inSlices(g, (oy0, oy1) => {
        const done = oy0 * g.ow * 4
        const { h, w, kh, kw, strideH, strideW, padH, padW, dilH, dilW, ow } = g
        kernels.max_pool_f32(h, w, kh, kw, strideH, strideW, padH, padW, dilH, dilW, ow, oy0, oy1, xAt, outAt + done, placesAt + done)
      })
      if (outDirect < 0) out.set(f32.subarray(outStaged / 4, outStaged / 4 + to), oo + p * to)
      if (placesDirect < 0) indices.set(i32.subarray(placesStaged / 4, placesStaged / 4 + to), io + p * to)
    }
  }
}

class AvgPoolPlanes implements AvgPoolKernel<F32> {
  readonly #instance: LazyInstance

  constructor(instance: LazyInstance) {
    this.#instance = instance
  }

  run(g: AvgPoolGeometry, x: F32, xo: number, out: F32, oo: number): void {
    const [from, to] = [g.h * g.w, g.oh * g.ow]
    if (g.planes * to === 0) return
    const instance = this.#instance.get()
    const [xDirect, outDirect] = [direct(instance, x, xo), direct(instance, out, oo)]
    instance.begin(align(from * 4) + align(to * 4))
    const [xStaged, outStaged] = [instance.take(from * 4), instance.take(to * 4)]
    const { f32, kernels } = instance
    const { h, w, kh, kw, strideH, strideW, padH, padW, includePad, divisor, ow } = g
    for (let p = 0; p < g.planes; p++) {
      if (xDirect < 0) f32.set(x.subarray(xo + p * from, xo + (p + 1) * from), xStaged / 4)
      const xAt = xDirect < 0 ? xStaged : xDirect + p * from * 4
      const outAt = outDirect < 0 ? outStaged : outDirect + p * to * 4
      inSlices(g, (oy0, oy1) => {
        const at = outAt + oy0 * ow * 4
        kernels.avg_pool_f32(h, w, kh, kw, strideH, strideW, padH, padW, includePad, divisor, ow, oy0, oy1, xAt, at)
      })
      if (outDirect < 0) out.set(f32.subarray(outStaged / 4, outStaged / 4 + to), oo + p * to)
    }
  }
}

class AvgPoolPlanesBackward implements AvgPoolKernel<F32> {
  readonly #instance: LazyInstance

  constructor(instance: LazyInstance) {
    this.#instance = instance
  }

  run(g: AvgPoolGeometry, grad: F32, go: number, out: F32, oo: number): void {
    const [from, to] = [g.oh * g.ow, g.h * g.w]
    if (g.planes * to === 0) return
    const instance = this.#instance.get()
    const [gradDirect, outDirect] = [direct(instance, grad, go), direct(instance, out, oo)]
    instance.begin(align(from * 4) + align(to * 4) + align(to * 8))
    const [gradStaged, outStaged, plane] = [instance.take(from * 4), instance.take(to * 4), instance.take(to * 8)]
    const { f32, f64, kernels } = instance
    const { h, w, kh, kw, strideH, strideW, padH, padW, includePad, divisor, ow } = g
    for (let p = 0; p < g.planes; p++) {
      if (gradDirect < 0) f32.set(grad.subarray(go + p * from, go + (p + 1) * from), gradStaged / 4)
      const gradAt = gradDirect < 0 ? gradStaged : gradDirect + p * from * 4
      const outAt = outDirect < 0 ? outStaged : outDirect + p * to * 4
      f64.fill(0, plane / 8, plane / 8 + to)
      inSlices(g, (oy0, oy1) => {
        const at = gradAt + oy0 * ow * 4
        kernels.avg_pool_spread_f32(h, w, kh, kw, strideH, strideW, padH, padW, includePad, divisor, ow, oy0, oy1, at, plane)
      })
      kernels.convert_f64_f32(to, plane, outAt)
      if (outDirect < 0) out.set(f32.subarray(outStaged / 4, outStaged / 4 + to), oo + p * to)
    }
  }
}

export const cells = (instance: LazyInstance): OwnCells => ({
  maxPool2d: by(always, { float32: new MaxPoolPlanes(instance) }),
  avgPool2d: by(always, { float32: new AvgPoolPlanes(instance) }),
  avgPool2dBackward: by(() => 'wasm', { float32: new AvgPoolPlanesBackward(instance) }),
})
