/**
 * Tensors in JSON: dtype, shape, and the elements as one would write them. `tensor(JSON.parse(text))` has the same bits again; what JSON has no number for
 * (NaN, infinities, -0) is a string. Weights in files are better off as safetensors.
 */
import { argumentText } from './check-argument.js'
import { DTYPES, type DType, isDType } from './dtype.js'
import { dtypeMismatch, invalidArgument, shapeText } from './errors.js'
import { type NestedArray, nest } from './read.js'
import { checkShape, type Shape } from './shape.js'

export interface TensorJson {
  readonly dtype: DType
  readonly shape: readonly number[]
  /** Arrays within arrays; booleans for bool, the element itself for a 0-d tensor. */
  readonly data: NestedArray<number | boolean | JsonNumber>
}

/** A number that JSON cannot write. */
export type JsonNumber = 'NaN' | 'Infinity' | '-Infinity' | '-0'

const NAMES: Readonly<Record<JsonNumber, number>> = {
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

export function isTensorJson(data: unknown): data is TensorJson {
  return (
    typeof data === 'object' && data !== null && !Array.isArray(data) && ['dtype', 'shape', 'data'].every((key) => Object.hasOwn(data, key))
  )
}

/** @throws DTYPE_MISMATCH, INVALID_ARGUMENT */
export function fromJson(op: string, { dtype, shape, data }: TensorJson): { dtype: DType; shape: Shape; flat: number[] } {
  if (!isDType(dtype)) throw dtypeMismatch(op, `one of ${DTYPES.join(', ')}`, argumentText(dtype), 'Pass what toJSON() gave.')
  checkShape(op, shape)
  const flat: number[] = []
  read(op, data, shape, 0, flat)
  return { dtype, shape: [...shape], flat }
}

function read(op: string, data: unknown, shape: Shape, d: number, flat: number[]): void {
  if (d < shape.length) {
    if (!Array.isArray(data) || data.length !== shape[d]) {
      const got = Array.isArray(data) ? `an array of length ${data.length}` : argumentText(data)
      throw invalidArgument(
        op,
        `data of the shape ${shapeText(shape)}: arrays of length ${shape[d]} at depth ${d}`,
        got,
        'Pass what toJSON() gave.',
      )
    }
    for (const item of data) read(op, item, shape, d + 1, flat)
    return
  }
  const value = typeof data === 'string' ? NAMES[data as JsonNumber] : data
  if (typeof value !== 'number' && typeof value !== 'boolean') {
    throw invalidArgument(
      op,
      `numbers, booleans or ${Object.keys(NAMES).join(', ')} at depth ${d}`,
      argumentText(data),
      'Pass what toJSON() gave.',
    )
  }
  flat.push(Number(value))
}
