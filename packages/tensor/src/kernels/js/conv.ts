/** Convolutions of the js backend: all products of an element are added in double precision, and rounded once. */
import { type Conv, elementsOf, type Operand } from '../table/operands.js'
import { REAL_IMAGES, real } from './cells.js'

/** The convolution whose output is y, or one of its adjoints; products come in ascending order of y's elements and, for each, of the weight's. */
const conv =
  (output: 'y' | 'x' | 'weight'): Conv =>
  (left, right, bias, out, g) => {
    const [a, b, sums] = [elementsOf(left), elementsOf(right), new Float64Array(out.numel)]
    const [cg, og] = [g.c / g.groups, g.o / g.groups]
    for (let y = 0; y < g.n * g.o * g.oh * g.ow; y++) {
      const [ox, row] = [y % g.ow, Math.floor(y / g.ow)]
      const [oy, plane] = [row % g.oh, Math.floor(row / g.oh)]
      const [o, n] = [plane % g.o, Math.floor(plane / g.o)]
      const first = n * g.c + Math.floor(o / og) * cg
      for (let c = 0; c < cg; c++) {
        for (let ky = 0; ky < g.kh; ky++) {
          for (let kx = 0; kx < g.kw; kx++) {
            const iy = oy * g.strideH - g.padH + ky * g.dilH
            const ix = ox * g.strideW - g.padW + kx * g.dilW
            if (iy < 0 || iy >= g.h || ix < 0 || ix >= g.w) continue
            const x = ((first + c) * g.h + iy) * g.w + ix
            const k = ((o * cg + c) * g.kh + ky) * g.kw + kx
            if (output === 'y') sums[y]! += a[x]! * b[k]!
            else if (output === 'x') sums[x]! += a[y]! * b[k]!
            else sums[k]! += a[x]! * b[y]!
          }
        }
      }
    }
    elementsOf(out).set(sums)
    if (bias !== null) addBias(bias, out)
  }

/** out [n, o, oh, ow] += bias [o], each sum rounded. */
export function addBias(bias: Operand, out: Operand): void {
  const [y, each] = [elementsOf(out), elementsOf(bias)]
  const plane = y.length / (out.shape[0]! * each.length)
  for (let i = 0, at = 0; at < y.length; i++) {
    const value = each[i % each.length]!
    for (const end = at + plane; at < end; at++) y[at]! += value
  }
}

export const cells = {
  conv2d: real(conv('y'), REAL_IMAGES, REAL_IMAGES),
  conv2dInput: real(conv('x'), REAL_IMAGES, REAL_IMAGES),
  conv2dWeight: real(conv('weight'), REAL_IMAGES, REAL_IMAGES),
}
