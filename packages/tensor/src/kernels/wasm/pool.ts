/** Pooling of float32 in the wasm backend, plane by plane, staged where a plane lies outside of the memory, in slices of rows of the result. */
import type { PoolGeometry } from '../table/neural.js'
import type { AvgPool, MaxPool } from '../table/operands.js'
import type { LazyInstance, Plane } from './instance.js'
import { always, by, type OwnCells } from './own.js'
import { worked } from './pause.js'
import { Staged } from './staged.js'

type Average = (
  ...args: [...Plane, includePad: number, divisor: number, ow: number, oy0: number, oy1: number, x: number, out: number]
) => void
declare module './instance.js' {
  interface KernelExports {
    readonly max_pool_f32: (...args: [...Window, ow: number, oy0: number, oy1: number, x: number, out: number, places: number]) => void
    readonly avg_pool_f32: Average
    readonly avg_pool_spread_f32: Average
  }
}

/** Elements of windows that are looked at in one call. */
const SLICE = 2 ** 18
/** What one of them counts between two pauses. */
const WORK_PER_ELEMENT = 16

/** Calls `run` for rows [from, to) of the result until they are all done, with the bytes of those before. */
function inSlices(g: PoolGeometry, run: (from: number, to: number, done: number) => void): void {
  const perRow = g.ow * g.kh * g.kw
  const rows = Math.max(1, Math.floor(SLICE / perRow))
  for (let oy = 0; oy < g.oh; oy += rows) {
    const to = Math.min(g.oh, oy + rows)
    run(oy, to, oy * g.ow * 4)
    worked((to - oy) * perRow * WORK_PER_ELEMENT)
  }
}

const maxPool2d =
  (lazy: LazyInstance): MaxPool =>
  (x, out, indices, g) => {
    if (out.numel === 0) return
    const instance = lazy.get()
    const { h, w, kh, kw, strideH, strideW, padH, padW, dilH, dilW, ow } = g
    const plane = g.oh * ow
    const [xs, maxima, places] = [new Staged(instance, x, h * w), new Staged(instance, out, plane), new Staged(instance, indices, plane)]
    Staged.begin(instance, [xs, maxima, places])
    for (let p = 0; p < g.planes; p++) {
      const [xAt, outAt, placesAt] = [xs.read(p), maxima.at(p), places.at(p)]
      inSlices(g, (oy0, oy1, done) => {
        const [to, at] = [outAt + done, placesAt + done]
        instance.kernels.max_pool_f32(h, w, kh, kw, strideH, strideW, padH, padW, dilH, dilW, ow, oy0, oy1, xAt, to, at)
      })
      maxima.written(p)
      places.written(p)
    }
  }

const avgPool2d =
  (lazy: LazyInstance): AvgPool =>
  (x, out, g) => {
    if (out.numel === 0) return
    const instance = lazy.get()
    const { h, w, kh, kw, strideH, strideW, padH, padW, includePad, divisor, ow } = g
    const [xs, means] = [new Staged(instance, x, h * w), new Staged(instance, out, g.oh * ow)]
    Staged.begin(instance, [xs, means])
    for (let p = 0; p < g.planes; p++) {
      const [xAt, outAt] = [xs.read(p), means.at(p)]
      inSlices(g, (oy0, oy1, done) => {
        const to = outAt + done
        instance.kernels.avg_pool_f32(h, w, kh, kw, strideH, strideW, padH, padW, includePad, divisor, ow, oy0, oy1, xAt, to)
      })
      means.written(p)
    }
  }

const avgPool2dBackward =
  (lazy: LazyInstance): AvgPool =>
  (grad, out, g) => {
    if (out.numel === 0) return
    const instance = lazy.get()
    const { f64, kernels } = instance
    const { h, w, kh, kw, strideH, strideW, padH, padW, includePad, divisor, ow } = g
    const size = h * w
    const [grads, outs] = [new Staged(instance, grad, g.oh * ow), new Staged(instance, out, size)]
    const [sums] = Staged.begin(instance, [grads, outs], size * 8) as [number]
    for (let p = 0; p < g.planes; p++) {
      const gradAt = grads.read(p)
      f64.fill(0, sums / 8, sums / 8 + size)
      inSlices(g, (oy0, oy1, done) => {
        const from = gradAt + done
        kernels.avg_pool_spread_f32(h, w, kh, kw, strideH, strideW, padH, padW, includePad, divisor, ow, oy0, oy1, from, sums)
      })
      kernels.convert_f64_f32(size, sums, outs.at(p))
      outs.written(p)
    }
  }

export const cells = (instance: LazyInstance): OwnCells => ({
  maxPool2d: by(always, { float32: maxPool2d(instance) }),
  avgPool2d: by(always, { float32: avgPool2d(instance) }),
  avgPool2dBackward: by(() => 'wasm', { float32: avgPool2dBackward(instance) }),
})
