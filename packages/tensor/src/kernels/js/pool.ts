/** Pooling of the js backend. The wasm backend takes these loops for float64: staging would cost as much as reading each element once or twice. */
import type { ArrayOf } from '../../values/dtype.js'
import type { AvgPoolGeometry, AvgPoolKernel, MaxPoolKernel } from '../table/neural.js'
import { realEach } from './cells.js'

type Real = ArrayOf['float32'] | ArrayOf['float64']

/** One object per dtype, so that each compiles for its own arrays. */
function maxPool2d<A extends Real>(): MaxPoolKernel<A> {
  return {
    run(g, x, xo, out, oo, indices, io) {
      for (let plane = 0; plane < g.planes; plane++, xo += g.h * g.w) {
        for (let oy = 0; oy < g.oh; oy++) {
          const top = inside(oy * g.strideH - g.padH, g.dilH)
          const bottom = Math.min(oy * g.strideH - g.padH + (g.kh - 1) * g.dilH + 1, g.h)
          for (let ox = 0; ox < g.ow; ox++) {
            const left = inside(ox * g.strideW - g.padW, g.dilW)
            const right = Math.min(ox * g.strideW - g.padW + (g.kw - 1) * g.dilW + 1, g.w)
            let at = top * g.w + left
            let best = top < bottom && left < right ? x[xo + at]! : Number.NEGATIVE_INFINITY
            for (let y = top; y < bottom; y += g.dilH) {
              for (let i = y * g.w + left; i < y * g.w + right; i += g.dilW) {
                const v = x[xo + i]!
                // Not v <= best: a NaN takes the place of whatever is held.
                if (v > best || Number.isNaN(v)) {
                  best = v
                  at = i
                }
              }
            }
            out[oo++] = best
            indices[io++] = at
          }
        }
      }
    },
  }
}

/** The first place from `from` on, in steps, that is not before the plane. */
function inside(from: number, step: number): number {
  return from >= 0 ? from : from + Math.ceil(-from / step) * step
}

function avgPool2d<A extends Real>(): AvgPoolKernel<A> {
  return {
    run(g, x, xo, out, oo) {
      for (let plane = 0; plane < g.planes; plane++, xo += g.h * g.w) {
        for (let oy = 0; oy < g.oh; oy++) {
          const [top, bottom] = [Math.max(oy * g.strideH - g.padH, 0), Math.min(oy * g.strideH - g.padH + g.kh, g.h)]
          for (let ox = 0; ox < g.ow; ox++) {
            const left = Math.max(ox * g.strideW - g.padW, 0)
            const right = Math.min(ox * g.strideW - g.padW + g.kw, g.w)
            let sum = 0
            for (let y = top; y < bottom; y++) for (let i = y * g.w + left; i < y * g.w + right; i++) sum += x[xo + i]!
            out[oo++] = sum === 0 ? 0 : sum / divisor(g, oy, ox)
          }
        }
      }
    },
  }
}

function avgPool2dBackward<A extends Real>(): AvgPoolKernel<A> {
  return {
    run(g, grad, go, out, oo) {
      const plane = new Float64Array(g.h * g.w)
      for (let p = 0; p < g.planes; p++, oo += plane.length) {
        plane.fill(0)
        for (let oy = 0; oy < g.oh; oy++) {
          const [top, bottom] = [Math.max(oy * g.strideH - g.padH, 0), Math.min(oy * g.strideH - g.padH + g.kh, g.h)]
          for (let ox = 0; ox < g.ow; ox++) {
            const left = Math.max(ox * g.strideW - g.padW, 0)
            const right = Math.min(ox * g.strideW - g.padW + g.kw, g.w)
            const share = grad[go++]! / divisor(g, oy, ox)
            for (let y = top; y < bottom; y++) for (let i = y * g.w + left; i < y * g.w + right; i++) plane[i]! += share
          }
        }
        out.set(plane, oo)
      }
    },
  }
}

function divisor(g: AvgPoolGeometry, oy: number, ox: number): number {
  if (g.divisor !== 0) return g.divisor
  const y = oy * g.strideH - g.padH
  const x = ox * g.strideW - g.padW
  return g.includePad !== 0
    ? (Math.min(y + g.kh, g.h + g.padH) - y) * (Math.min(x + g.kw, g.w + g.padW) - x)
    : (Math.min(y + g.kh, g.h) - Math.max(y, 0)) * (Math.min(x + g.kw, g.w) - Math.max(x, 0))
}

export const cells = {
  maxPool2d: realEach(maxPool2d),
  avgPool2d: realEach(avgPool2d),
  avgPool2dBackward: realEach(avgPool2dBackward),
}
