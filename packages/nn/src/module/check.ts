/** Argument checks that modules share. */
import { PostgradError } from '@postgrad/base'
import type { DType, Pair, Tensor } from '@postgrad/tensor'
import { argumentText, checkTensor, dtypeMismatch, invalidArgument, isFloating, shapeMismatch, shapeText } from '@postgrad/tensor/internal'

export { checkOptions } from '@postgrad/tensor/internal'

/** @throws INVALID_ARGUMENT unless each of `sizes` is an integer of at least `least` */
export function checkSizes(op: string, sizes: Readonly<Record<string, number>>, least = 1): void {
  for (const [name, size] of Object.entries(sizes)) {
    if (Number.isSafeInteger(size) && size >= least) continue
    throw invalidArgument(op, `an integer ${name} ≥ ${least}`, argumentText(size), `Pass ${name} as a whole number.`)
  }
}

/** One number for every dimension, or one for each, as a list. @throws INVALID_ARGUMENT */
export function sizes(op: string, name: string, dims: 1 | 2, value: Pair, least: number): readonly number[] {
  const list = typeof value === 'number' ? new Array<number>(dims).fill(value) : value
  if (!Array.isArray(list) || list.length !== dims) {
    throw invalidArgument(op, dims === 1 ? `a number as ${name}` : `a number or a pair as ${name}`, String(value))
  }
  for (const each of list) checkSizes(op, { [name]: each }, least)
  return list
}

/** @throws INVALID_ARGUMENT unless `p` is a probability */
export function checkProbability(op: string, name: string, p: number): void {
  if (p >= 0 && p <= 1) return
  throw invalidArgument(op, `a probability from 0 to 1 as ${name}`, p, 'Pass the share of elements to zero: 0.5 is one half.')
}

/** @throws DTYPE_MISMATCH: parameters are of floating point */
export function checkFloating(op: string, dtype: DType): void {
  if (!isFloating(dtype)) throw dtypeMismatch(op, 'float32 or float64', dtype, 'Parameters have gradients: give them a floating dtype.')
}

/** @throws INVALID_ARGUMENT for a name that `known` has not, which would be ignored in silence */
export function checkOneOf<T extends string>(op: string, name: string, value: string, known: readonly T[]): asserts value is T {
  if (!(known as readonly string[]).includes(value)) {
    throw invalidArgument(op, `${known.map((each) => `'${each}'`).join(' or ')} as ${name}`, `'${value}'`)
  }
}

/** @throws SHAPE_MISMATCH */
export function checkShapeIs(op: string, what: string, x: Tensor, expected: readonly number[], remedy: string): void {
  checkTensor(op, what, x)
  if (x.ndim === expected.length && expected.every((extent, d) => extent === x.shape[d])) return
  throw shapeMismatch(op, `${what} of shape ${shapeText(expected)}`, shapeText(x.shape), remedy, { expected, shape: [...x.shape] })
}

/** @throws DTYPE_MISMATCH */
export function checkDType(op: string, what: string, x: Tensor, expected: DType): void {
  checkTensor(op, what, x)
  if (x.dtype !== expected) throw dtypeMismatch(op, `${what} of dtype ${expected}`, x.dtype, `Convert it with to('${expected}').`)
}

/** @throws INVALID_ARGUMENT unless `value` is an object with names, which a forgotten argument is not */
export function checkRecord(op: string, what: string, value: unknown): void {
  if (typeof value === 'object' && value !== null && !Array.isArray(value)) return
  throw invalidArgument(op, `an object with ${what}`, argumentText(value))
}

/** A path that leads nowhere. */
export function noSuch(op: string, what: string, path: string, known: readonly string[]): PostgradError {
  return new PostgradError('NO_SUCH_MEMBER', {
    op,
    expected: `the path of a ${what}: ${known.length === 0 ? 'there are none' : known.join(', ')}`,
    got: `'${path}'`,
    remedy: `Look at named${what[0]!.toUpperCase()}${what.slice(1)}s().`,
    values: { path },
  })
}

/** A name that something has already, which would be lost. */
export function nameTaken(op: string, expected: string, got: string, name: string): PostgradError {
  return new PostgradError('MEMBER_NAME_TAKEN', { op, expected, got, remedy: 'Take another name.', values: { name } })
}
