/** Pooling of the js backend. The wasm backend takes these loops for float64: staging would cost as much as reading each element once or twice. */
import type { ArrayOf } from '../../values/dtype.js'
import type { AvgPoolGeometry, PoolGeometry } from '../table/neural.js'
import { type AvgPool, elementsOf, type MaxPool } from '../table/operands.js'
import { realEach } from './cells.js'

type Real = ArrayOf['float32'] | ArrayOf['float64']

/** A window's places along one dimension of the plane: [begin, end), in steps of its dilation. */
interface Span {
  readonly begin: number
  readonly end: number
  /** How many places a window without dilation has, those in the padding included. */
  readonly padded: number
}

/** The spans of all rows of windows, and of all columns. */
function spansOf(g: PoolGeometry): readonly [rows: Span[], columns: Span[]] {
  const along = (places: number, size: number, kernel: number, stride: number, pad: number, dilation: number): Span[] =>
    Array.from({ length: places }, (_, i) => {
      const first = i * stride - pad
      const begin = first >= 0 ? first : first + Math.ceil(-first / dilation) * dilation
      return { begin, end: Math.min(first + (kernel - 1) * dilation + 1, size), padded: Math.min(first + kernel, size + pad) - first }
    })
  return [along(g.oh, g.h, g.kh, g.strideH, g.padH, g.dilH), along(g.ow, g.w, g.kw, g.strideW, g.padW, g.dilW)]
}

/** The divisor of a window's sum. */
function divisor(g: AvgPoolGeometry, row: Span, column: Span): number {
  if (g.divisor !== 0) return g.divisor
  return g.includePad !== 0 ? row.padded * column.padded : (row.end - row.begin) * (column.end - column.begin)
}

/** One function per dtype, so that each compiles for its own arrays. */
function maxPool2d<A extends Real>(): MaxPool {
  return (input, output, places, g) => {
    const [x, out, indices] = [elementsOf<A>(input), elementsOf<A>(output), elementsOf(places)]
    const [rows, columns] = spansOf(g)
    for (let plane = 0, to = 0; to < out.length; plane += g.h * g.w) {
      for (const row of rows) {
        for (const column of columns) {
          let at = row.begin * g.w + column.begin
          let best = row.begin < row.end && column.begin < column.end ? x[plane + at]! : Number.NEGATIVE_INFINITY
          for (let y = row.begin; y < row.end; y += g.dilH) {
            for (let i = y * g.w + column.begin; i < y * g.w + column.end; i += g.dilW) {
              const v = x[plane + i]!
              // Not v <= best: a NaN replaces the maximum so far.
              if (v > best || Number.isNaN(v)) {
                best = v
                at = i
              }
            }
          }
          out[to] = best
          indices[to++] = at
        }
      }
    }
  }
}

function avgPool2d<A extends Real>(): AvgPool {
  return (input, output, g) => {
    const [x, out] = [elementsOf<A>(input), elementsOf<A>(output)]
    const [rows, columns] = spansOf(g)
    for (let plane = 0, to = 0; to < out.length; plane += g.h * g.w) {
      for (const row of rows) {
        for (const column of columns) {
          let sum = 0
          for (let y = row.begin; y < row.end; y++) {
            for (let i = plane + y * g.w + column.begin; i < plane + y * g.w + column.end; i++) sum += x[i]!
          }
          out[to++] = sum === 0 ? 0 : sum / divisor(g, row, column)
        }
      }
    }
  }
}

function avgPool2dBackward<A extends Real>(): AvgPool {
  return (gradient, output, g) => {
    const [grad, out] = [elementsOf<A>(gradient), elementsOf<A>(output)]
    const [rows, columns] = spansOf(g)
    const plane = new Float64Array(g.h * g.w)
    for (let from = 0, to = 0; to < out.length; to += plane.length) {
      plane.fill(0)
      for (const row of rows) {
        for (const column of columns) {
          const share = grad[from++]! / divisor(g, row, column)
          for (let y = row.begin; y < row.end; y++) {
            for (let i = y * g.w + column.begin; i < y * g.w + column.end; i++) plane[i]! += share
          }
        }
      }
      out.set(plane, to)
    }
  }
}

export const cells = {
  maxPool2d: realEach(maxPool2d),
  avgPool2d: realEach(avgPool2d),
  avgPool2dBackward: realEach(avgPool2dBackward),
}
