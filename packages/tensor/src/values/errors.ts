/** The refusals that several operations share, worded once: op, expected, got, what to do. */
import { PostgradError } from '@postgrad/base'
import { type DType, INT32_SPAN } from './dtype.js'

export function shapeText(shape: readonly number[]): string {
  return `[${shape.join(', ')}]`
}

export function shapeMismatch(
  op: string,
  expected: string,
  got: string,
  remedy: string,
  values: Record<string, unknown> = {},
): PostgradError {
  return new PostgradError('SHAPE_MISMATCH', { op, expected, got, remedy, values })
}

export function broadcastMismatch(op: string, a: readonly number[], b: readonly number[]): PostgradError {
  return shapeMismatch(
    op,
    'shapes that broadcast (each pair of extents, from the last on, equal or 1)',
    `${shapeText(a)} and ${shapeText(b)}`,
    'Insert dimensions of extent 1 with unsqueeze(), or reshape() one side.',
    { a: [...a], b: [...b] },
  )
}

export function dtypeMismatch(op: string, expected: string, got: DType | string, remedy: string): PostgradError {
  return new PostgradError('DTYPE_MISMATCH', { op, expected, got, remedy })
}

export function invalidArgument(op: string, expected: string, got: unknown, remedy?: string): PostgradError {
  return new PostgradError('INVALID_ARGUMENT', { op, expected, got: typeof got === 'string' ? got : String(got), remedy })
}

/** @throws INVALID_ARGUMENT for what an integer would wrap around to: NaN, infinities, what lies beyond 32 bits; a fraction within them loses its digits, as in PyTorch */
export function checkHolds(op: string, dtype: DType, value: number): void {
  if (dtype !== 'int32' || (value >= -INT32_SPAN && value <= INT32_SPAN - 1)) return
  throw invalidArgument(op, 'a number that int32 can hold', value, 'Pass one within 32 bits, or use a float32 tensor.')
}

/** `values` may hold the place of the index, and the extent that it points into. */
export function indexOutOfRange(
  op: string,
  expected: string,
  got: number,
  remedy: string,
  values: { readonly at?: readonly number[]; readonly extent?: number } = {},
): PostgradError {
  const place = values.at === undefined || values.at.length === 0 ? '' : ` at ${shapeText(values.at)}`
  return new PostgradError('INDEX_OUT_OF_RANGE', { op, expected, got: `${got}${place}`, remedy, values: { index: got, ...values } })
}
