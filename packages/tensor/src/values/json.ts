/**
 * Tensors in JSON: dtype, shape, and the elements as one would write them. `tensor(JSON.parse(text))` has the same bits again. Values that JSON cannot
 * write (NaN, infinities, -0) are strings. For weights in files use safetensors. `from-json.ts` reads it.
 */
import type { DType } from './dtype.js'
import { type NestedArray, nest } from './read.js'
import type { Shape } from './shape.js'

/** A tensor as JSON. `tensor()` makes the tensor with the same bits again. Elements are nested lists; NaN, infinities and -0 are strings. */
export interface TensorJson {
  readonly dtype: DType
  readonly shape: readonly number[]
  /** Arrays within arrays; booleans for bool, the element itself for a 0-d tensor. */
  readonly data: NestedArray<number | boolean | JsonNumber>
}

/** A number that JSON cannot write, as text. */
export type JsonNumber = 'NaN' | 'Infinity' | '-Infinity' | '-0'

export const JSON_NUMBERS: Readonly<Record<JsonNumber, number>> = {
  NaN: Number.NaN,
  Infinity: Number.POSITIVE_INFINITY,
  '-Infinity': Number.NEGATIVE_INFINITY,
  '-0': -0,
}

/** `flat` holds the elements in row-major order. */
export function toJson(flat: ArrayLike<number>, shape: Shape, dtype: DType): TensorJson {
  const element: (value: number) => number | boolean | JsonNumber = dtype === 'bool' ? (value: number) => value !== 0 : named
  return { dtype, shape: [...shape], data: nest(flat, shape, element) }
}

function named(value: number): number | JsonNumber {
  return Number.isFinite(value) && !Object.is(value, -0) ? value : Object.is(value, -0) ? '-0' : (String(value) as JsonNumber)
}
