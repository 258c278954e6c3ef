/** Convolutions of the js backend: all products of an element are added in double precision, and rounded once. */
import type { TypedArray } from '../../values/dtype.js'
import type { ConvGeometry, ConvKernel } from '../table/neural.js'
import { REAL_IMAGES, real } from './cells.js'

type T = TypedArray

/** Calls `f` for every product of a convolution, in ascending order of y's elements and, for each, of the weight's. */
function products(g: ConvGeometry, f: (y: number, x: number, weight: number) => void): void {
  const [cg, og] = [g.c / g.groups, g.o / g.groups]
  for (let n = 0; n < g.n; n++) {
    for (let o = 0; o < g.o; o++) {
      const first = Math.floor(o / og) * cg
      for (let oy = 0; oy < g.oh; oy++) {
        for (let ox = 0; ox < g.ow; ox++) {
          for (let c = 0; c < cg; c++) {
            for (let ky = 0; ky < g.kh; ky++) {
              for (let kx = 0; kx < g.kw; kx++) {
                const iy = oy * g.strideH - g.padH + ky * g.dilH
                const ix = ox * g.strideW - g.padW + kx * g.dilW
                if (iy < 0 || iy >= g.h || ix < 0 || ix >= g.w) continue
                f(
                  ((n * g.o + o) * g.oh + oy) * g.ow + ox,
                  ((n * g.c + first + c) * g.h + iy) * g.w + ix,
                  ((o * cg + c) * g.kh + ky) * g.kw + kx,
                )
              }
            }
          }
        }
      }
    }
  }
}

/** Sums in double what `f` adds up, and stores it. */
function summed(length: number, out: T, oo: number, f: (sums: Float64Array) => void): void {
  const sums = new Float64Array(length)
  f(sums)
  for (let i = 0; i < length; i++) out[oo + i] = sums[i]!
}

const conv2d: ConvKernel<T> = {
  run(g, x, xo, weight, wo, out, oo) {
    summed(g.n * g.o * g.oh * g.ow, out, oo, (sums) => products(g, (y, i, k) => (sums[y]! += x[xo + i]! * weight[wo + k]!)))
  },
}

const conv2dInput: ConvKernel<T> = {
  run(g, grad, go, weight, wo, out, oo) {
    summed(g.n * g.c * g.h * g.w, out, oo, (sums) => products(g, (y, i, k) => (sums[i]! += grad[go + y]! * weight[wo + k]!)))
  },
}

const conv2dWeight: ConvKernel<T> = {
  run(g, x, xo, grad, go, out, oo) {
    const length = (g.o * g.c * g.kh * g.kw) / g.groups
    summed(length, out, oo, (sums) => products(g, (y, i, k) => (sums[k]! += x[xo + i]! * grad[go + y]!)))
  },
}

export const cells = {
  conv2d: real(conv2d, REAL_IMAGES, REAL_IMAGES),
  conv2dInput: real(conv2dInput, REAL_IMAGES, REAL_IMAGES),
  conv2dWeight: real(conv2dWeight, REAL_IMAGES, REAL_IMAGES),
}
