/** Reads and checks the result of a tensor's `toJSON()`, which `json.ts` makes. */

import { DTYPES, type DType, isDType } from '../values/dtype.js'
import { dtypeMismatch, invalidArgument, shapeText } from '../values/errors.js'
import { JSON_NUMBERS, type JsonNumber, type TensorJson } from '../values/json.js'
import { checkShape, type Shape } from '../values/shape.js'
import { argumentText } from './check-argument.js'

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
  const value = typeof data === 'string' ? JSON_NUMBERS[data as JsonNumber] : data
  if (typeof value !== 'number' && typeof value !== 'boolean') {
    throw invalidArgument(
      op,
      `numbers, booleans or ${Object.keys(JSON_NUMBERS).join(', ')} at depth ${d}`,
      argumentText(data),
      'Pass what toJSON() gave.',
    )
  }
  flat.push(Number(value))
}
