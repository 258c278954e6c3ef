/** Pooling of float32 in the wasm backend: as many planes at a time as stay in the first-level cache, in slices of rows of the result. */
import type { PoolGeometry } from '../table/neural.js'
import type { AvgPool, MaxPool } from '../table/operands.js'
import type { LazyInstance, Plane } from './calls/instance.js'
import { always, by, type OwnCells } from './calls/own.js'
import { worked } from './calls/pause.js'
import { Staged } from './calls/staged.js'

type Average = (
  ...args: [...Plane, includePad: number, divisor: number, ow: number, oy0: number, oy1: number, x: number, out: number]
) => void
declare module './calls/instance.js' {
  interface KernelExports {
    readonly max_pool_f32: (...args: [...Window, ow: number, oy0: number, oy1: number, x: number, out: number, places: number]) => void
    readonly avg_pool_f32: Average
    readonly avg_pool_spread_f32: Average
  }
}

/** Floats of planes, and of their results, that are staged at once. */
const CHUNK = 4096
/** Elements of windows that are looked at in one call. */
const SLICE = 2 ** 18
/** The work of one of them, for pauses. */
const WORK_PER_ELEMENT = 16

/** How many planes are staged at once. */
const planesAtOnce = (g: PoolGeometry): number => Math.max(1, Math.min(g.planes, Math.floor(CHUNK / (g.h * g.w + g.oh * g.ow))))

/** Calls `run` for rows [from, to) of the results of so many planes until they are all done, with the bytes of the planes and of the results before. */
function inSlices(planes: number, g: PoolGeometry, run: (from: number, to: number, before: number, done: number) => void): void {
  const perRow = g.ow * g.kh * g.kw
  const rows = Math.max(1, Math.floor(SLICE / perRow))
  for (let p = 0; p < planes; p++) {
    for (let oy = 0; oy < g.oh; oy += rows) {
      const to = Math.min(g.oh, oy + rows)
      run(oy, to, p * g.h * g.w * 4, (p * g.oh + oy) * g.ow * 4)
      worked((to - oy) * perRow * WORK_PER_ELEMENT)
    }
  }
}

const maxPool2d =
  (lazy: LazyInstance): MaxPool =>
  (x, out, indices, g) => {
    if (out.numel === 0) return
    const instance = lazy.get()
    const { h, w, kh, kw, strideH, strideW, padH, padW, dilH, dilW, ow } = g
    const atOnce = planesAtOnce(g)
    const size = atOnce * g.oh * ow
    const xs = new Staged(instance, x, atOnce * h * w)
    const maxima = new Staged(instance, out, size)
    const places = new Staged(instance, indices, size)
    Staged.begin(instance, [xs, maxima, places])
    for (let part = 0, p = 0; p < g.planes; part++, p += atOnce) {
      const [xAt, outAt, placesAt] = [xs.read(part), maxima.at(part), places.at(part)]
      inSlices(Math.min(atOnce, g.planes - p), g, (oy0, oy1, before, done) => {
        const [from, to, at] = [xAt + before, outAt + done, placesAt + done]
        instance.kernels.max_pool_f32(h, w, kh, kw, strideH, strideW, padH, padW, dilH, dilW, ow, oy0, oy1, from, to, at)
      })
      maxima.written(part)
      places.written(part)
    }
  }

const avgPool2d =
  (lazy: LazyInstance): AvgPool =>
  (x, out, g) => {
    if (out.numel === 0) return
    const instance = lazy.get()
    const { h, w, kh, kw, strideH, strideW, padH, padW, includePad, divisor, ow } = g
    const atOnce = planesAtOnce(g)
    const xs = new Staged(instance, x, atOnce * h * w)
    const means = new Staged(instance, out, atOnce * g.oh * ow)
    Staged.begin(instance, [xs, means])
    for (let part = 0, p = 0; p < g.planes; part++, p += atOnce) {
      const [xAt, outAt] = [xs.read(part), means.at(part)]
      inSlices(Math.min(atOnce, g.planes - p), g, (oy0, oy1, before, done) => {
        const [from, to] = [xAt + before, outAt + done]
        instance.kernels.avg_pool_f32(h, w, kh, kw, strideH, strideW, padH, padW, includePad, divisor, ow, oy0, oy1, from, to)
      })
      means.written(part)
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
      inSlices(1, g, (oy0, oy1, _, done) => {
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
