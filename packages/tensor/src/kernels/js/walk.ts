/**
 * Walks strided operands row by row: the inner dimensions that lie evenly for all operands become one run, the outer ones are counted.
 * Loops (`elementwise/loops.ts`, those of `wasm/`) do the work; they get steps, so nothing is allocated per row.
 */
import type { TypedArray } from '../../values/dtype.js'
import type { Row2, Row3 } from '../elementwise/loops.js'
import type { Dims } from '../table/table.js'

/** How many inner dimensions merge into one run. At least the last one does. */
function mergedDims(shape: Dims, s0: Dims, s1: Dims, s2: Dims): number {
  const last = shape.length - 1
  let merged = 1
  let extent = shape[last]!
  while (merged <= last) {
    const d = last - merged
    if (s0[d] !== s0[last]! * extent || s1[d] !== s1[last]! * extent || s2[d] !== s2[last]! * extent) {
      break
    }
    extent *= shape[d]!
    merged++
  }
  return merged
}

function product(shape: Dims, from: number, to: number): number {
  let n = 1
  for (let d = from; d < to; d++) n *= shape[d]!
  return n
}

/** out = row(x), for every row. */
export function walk2<A extends TypedArray, O extends TypedArray>(
  row: Row2<A, O>,
  shape: Dims,
  x: A,
  xOffset: number,
  xStrides: Dims,
  out: O,
  outOffset: number,
  outStrides: Dims,
): void {
  const ndim = shape.length
  if (ndim === 0) {
    row(1, x, xOffset, 0, out, outOffset, 1)
    return
  }
  const outer = ndim - mergedDims(shape, xStrides, outStrides, outStrides)
  const n = product(shape, outer, ndim)
  if (n === 0) return
  const rows = product(shape, 0, outer)
  const xStep = xStrides[ndim - 1]!
  const outStep = outStrides[ndim - 1]!
  const index = new Array<number>(outer).fill(0)
  for (let r = 0; r < rows; r++) {
    row(n, x, xOffset, xStep, out, outOffset, outStep)
    for (let d = outer - 1; d >= 0; d--) {
      xOffset += xStrides[d]!
      outOffset += outStrides[d]!
      if (++index[d]! < shape[d]!) break
      xOffset -= xStrides[d]! * shape[d]!
      outOffset -= outStrides[d]! * shape[d]!
      index[d] = 0
    }
  }
}

/** out = row(a, b), for every row. */
export function walk3<A extends TypedArray, B extends TypedArray, O extends TypedArray>(
  row: Row3<A, B, O>,
  shape: Dims,
  a: A,
  aOffset: number,
  aStrides: Dims,
  b: B,
  bOffset: number,
  bStrides: Dims,
  out: O,
  outOffset: number,
  outStrides: Dims,
): void {
  const ndim = shape.length
  if (ndim === 0) {
    row(1, a, aOffset, 0, b, bOffset, 0, out, outOffset, 1)
    return
  }
  const outer = ndim - mergedDims(shape, aStrides, bStrides, outStrides)
  const n = product(shape, outer, ndim)
  if (n === 0) return
  const rows = product(shape, 0, outer)
  const aStep = aStrides[ndim - 1]!
  const bStep = bStrides[ndim - 1]!
  const outStep = outStrides[ndim - 1]!
  const index = new Array<number>(outer).fill(0)
  for (let r = 0; r < rows; r++) {
    row(n, a, aOffset, aStep, b, bOffset, bStep, out, outOffset, outStep)
    for (let d = outer - 1; d >= 0; d--) {
      aOffset += aStrides[d]!
      bOffset += bStrides[d]!
      outOffset += outStrides[d]!
      if (++index[d]! < shape[d]!) break
      aOffset -= aStrides[d]! * shape[d]!
      bOffset -= bStrides[d]! * shape[d]!
      outOffset -= outStrides[d]! * shape[d]!
      index[d] = 0
    }
  }
}

/** Row-major strides of a dense view. */
export function denseStrides(shape: Dims): number[] {
  const strides = new Array<number>(shape.length)
  let step = 1
  for (let d = shape.length - 1; d >= 0; d--) {
    strides[d] = step
    step *= shape[d]!
  }
  return strides
}
