/** Views on flat arrays: the suite's layouts of strided operands and outputs. */
import type { DType, TypedArray } from '../../values/dtype.js'
import { isContiguous } from '../../values/shape.js'
import type { Operand } from '../table/operands.js'

/** Unused elements after each operand. */
export const MARGIN = 3

/** A view on a flat array. */
export interface Layout {
  readonly name: string
  readonly strides: readonly number[]
  readonly offset: number
  readonly length: number
  /** The view's own shape, where it broadcasts to the one it was made for. */
  readonly shape?: readonly number[]
}

export function dense(shape: readonly number[]): number[] {
  const strides = new Array<number>(shape.length)
  let step = 1
  for (let d = shape.length - 1; d >= 0; d--) {
    strides[d] = step
    step *= shape[d]!
  }
  return strides
}

export function spanOf(shape: readonly number[], strides: readonly number[]): number {
  let last = 0
  for (let d = 0; d < shape.length; d++) last += Math.max(shape[d]! - 1, 0) * strides[d]!
  return last + 1
}

export function elementsOf(shape: readonly number[]): number {
  return shape.reduce((a, b) => a * b, 1)
}

/** Dense, after an offset, transposed, with gaps, and with each dimension repeated. */
export function layouts(shape: readonly number[], repeated: boolean): Layout[] {
  const out: Layout[] = []
  const add = (name: string, strides: readonly number[], offset: number) =>
    out.push({ name, strides, offset, length: offset + spanOf(shape, strides) + MARGIN })
  add('dense', dense(shape), 0)
  add('offset', dense(shape), 5)
  if (shape.length > 1) {
    const reversed = dense([...shape].reverse()).reverse()
    add('transposed', reversed, 1)
  }
  if (shape.length > 0) {
    add(
      'gaps',
      dense(shape).map((s) => s * 2),
      2,
    )
    const wide = [...shape.slice(0, -1), shape.at(-1)! + 4]
    add('narrowed', dense(wide), 3)
  }
  if (repeated) {
    for (let d = 0; d < shape.length; d++) {
      const kept = shape.map((n, i) => (i === d ? 1 : n))
      add(
        `repeated along ${d}`,
        dense(kept).map((s, i) => (i === d ? 0 : s)),
        1,
      )
    }
    add(
      'one element',
      shape.map(() => 0),
      2,
    )
  }
  return out
}

/** Those of an operand that broadcasts: also its last dimension alone, which is repeated as a row, and one element for each row. */
export function broadcasting(shape: readonly number[]): Layout[] {
  const [first, ...others] = layouts(shape, true)
  const smaller = (name: string, own: readonly number[]): Layout => {
    return { name, strides: dense(own), offset: 1, length: 1 + elementsOf(own) + MARGIN, shape: own }
  }
  if (shape.length === 0) return [first!, ...others]
  return [first!, smaller('row', shape.slice(-1)), ...others, smaller('column', shape.with(-1, 1))]
}

/** With dimensions in any order, gaps of any size, an offset, and perhaps repeated dimensions. */
export function drawnLayout(shape: readonly number[], repeated: boolean, random: () => number): Layout {
  const below = (end: number): number => Math.floor(random() * end)
  const isDense = random() < 0.3
  const strides = shape.map(() => 0)
  let step = isDense || random() < 0.5 ? 1 : 1 + below(3)
  const order = shape.map((_, d) => ({ d, key: isDense ? -d : random() })).sort((a, b) => a.key - b.key)
  for (const { d } of order) {
    if (repeated && random() < 0.25) continue
    strides[d] = step
    step = step * Math.max(1, shape[d]!) + (isDense || random() < 0.6 ? 0 : below(6))
  }
  const offset = below(9)
  return { name: `strides ${strides}, offset ${offset}`, strides, offset, length: offset + spanOf(shape, strides) + MARGIN }
}

/** The same of an operand that broadcasts: without leading dimensions, and with others of one element. */
export function drawnView(shape: readonly number[], random: () => number): Layout {
  const own = shape.slice(Math.floor(random() * (shape.length + 1))).map((extent) => (random() < 0.25 ? 1 : extent))
  const layout = drawnLayout(own, true, random)
  return { ...layout, name: `[${own}] of ${layout.name}`, shape: own }
}

const DTYPE_OF: Readonly<Record<string, DType>> = {
  Float32Array: 'float32',
  Float64Array: 'float64',
  Int32Array: 'int32',
  Uint8Array: 'bool',
}

/** An operand in an array, as kernels take it; dense by default. */
export function operandOf(array: TypedArray, offset: number, shape: readonly number[], strides = dense(shape)): Operand {
  return {
    storage: { host: array } as unknown as Operand['storage'],
    ...{ offset, shape, strides, numel: elementsOf(shape), isContiguous: isContiguous(shape, strides) },
    dtype: DTYPE_OF[array.constructor.name]!,
  }
}

/** An operand as a layout has it. */
export const laid = (array: TypedArray, shape: readonly number[], layout: Layout): Operand =>
  operandOf(array, layout.offset, layout.shape ?? shape, [...layout.strides])
