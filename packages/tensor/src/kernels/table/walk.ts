/**
 * Walks strided operands, for all backends: place after place, or row by row, where the inner dimensions that lie evenly for all operands become one
 * run. A callback gets places and steps, so nothing is allocated per row.
 */
import { broadcastStrides, type Shape } from '../../values/shape.js'
import type { Operand } from './operands.js'

/** 1 when x runs densely over out, 0 when its one element is repeated, −1 when it takes strides. */
export function stepOver(x: Operand, out: Operand): number {
  if (x.isContiguous && x.numel === out.numel) return 1
  return x.numel === 1 ? 0 : -1
}

/** The strides of each operand, which broadcast to `shape`. */
export function stridesOver(shape: Shape, operands: readonly Operand[]): Shape[] {
  return operands.map((x) => broadcastStrides(x.shape, x.strides, shape))
}

/** Calls `f` for each index of the first `ndim` dimensions of `shape`, with `at` moved to its place in every operand; afterwards `at` is as before. */
export function eachPlace(shape: Shape, strides: readonly Shape[], at: number[], f: () => void, ndim = shape.length): void {
  const places = extentOf(shape, ndim)
  const index = shape.map(() => 0)
  for (let i = 0; i < places; i++) {
    f()
    advance(index, shape, ndim, at.length, strides, at)
  }
}

/**
 * `row` for every row of `shape`, to which the operands, at most four, broadcast: how many elements, and in each operand the first one's place and the step.
 * Without closures and lists of other lengths: for a few elements they would take longer than the work.
 */
export function walk(
  shape: Shape,
  operands: readonly Operand[],
  row: (n: number, at: readonly number[], steps: readonly number[]) => void,
): void {
  const last = shape.length - 1
  const strides = [shape, shape, shape, shape]
  const at = [0, 0, 0, 0]
  const steps = [1, 1, 1, 1]
  for (let k = 0; k < operands.length; k++) {
    const x = operands[k]!
    strides[k] = broadcastStrides(x.shape, x.strides, shape)
    at[k] = x.offset
    if (last >= 0) steps[k] = strides[k]![last]!
  }
  let n = last < 0 ? 1 : shape[last]!
  let outer = Math.max(last, 0)
  while (outer > 0 && areEven(operands.length, strides, steps, outer - 1, n)) n *= shape[--outer]!
  const rows = n === 0 ? 0 : extentOf(shape, outer)
  const count = operands.length
  const index = outer > 1 ? shape.map(() => 0) : NONE
  for (let i = 0; i < rows; i++) {
    row(n, at, steps)
    // A shape of one dimension needs no index.
    if (outer === 1) for (let k = 0; k < count; k++) at[k]! += strides[k]![0]!
    else if (outer > 1) advance(index, shape, outer, count, strides, at)
  }
}

const NONE: number[] = []

/** Whether dimension `d` continues a run of `n` elements evenly, in each of `count` operands. */
function areEven(count: number, strides: readonly Shape[], steps: readonly number[], d: number, n: number): boolean {
  for (let k = 0; k < count; k++) if (strides[k]![d] !== steps[k]! * n) return false
  return true
}

/** Moves `index` to the next of the first `ndim` dimensions, and `at` to its place in each of `count` operands; from the last one back to the first. */
function advance(index: number[], shape: Shape, ndim: number, count: number, strides: readonly Shape[], at: number[]): void {
  for (let d = ndim - 1; d >= 0; d--) {
    const ends = ++index[d]! === shape[d]
    for (let k = 0; k < count; k++) at[k]! += ends ? strides[k]![d]! * (1 - shape[d]!) : strides[k]![d]!
    if (!ends) return
    index[d] = 0
  }
}

function extentOf(shape: Shape, ndim: number): number {
  let n = 1
  for (let d = 0; d < ndim; d++) n *= shape[d]!
  return n
}
