/**
 * The errors of this package, each made in one place: WIRE_CORRUPT, WIRE_VERSION, WIRE_UNKNOWN_TYPE, WIRE_BAD_FIELD, WIRE_UNKNOWN_VALUE,
 * WIRE_TOO_LARGE, WIRE_TOO_DEEP and, at the sender only, WIRE_UNSUPPORTED_VALUE.
 */
import { PostgradError } from '@postgrad/base'
import { plainText } from '@postgrad/base/internal'

export function corrupt(what: string, cause?: unknown): PostgradError {
  return new PostgradError('WIRE_CORRUPT', {
    op: 'decode',
    message: `the frame is damaged: ${what}`,
    remedy: 'Nothing of it was used. Check the program that sent it, and the connection.',
    cause,
  })
}

export function wrongVersion(got: number, expected: number): PostgradError {
  return new PostgradError('WIRE_VERSION', {
    op: 'decode',
    expected: `wire format ${expected}`,
    got: `${got}`,
    remedy: 'Run the same version of postgrad on all workers.',
    values: { expected, got },
  })
}

export function unknownType(type: unknown): PostgradError {
  return new PostgradError('WIRE_UNKNOWN_TYPE', {
    op: 'decode',
    expected: 'a known kind of message',
    got: typeof type === 'number' ? `0x${type.toString(16)}` : typeof type,
    remedy: 'Run the same version of postgrad on all workers.',
  })
}

export function badField(message: string, field: string, expected: string, got: unknown, op = 'decode'): PostgradError {
  return new PostgradError('WIRE_BAD_FIELD', {
    op: `${op} ${message}`,
    message: `field '${field}': expected ${expected}, got ${kindOf(got)}`,
    remedy: 'Run the same version of postgrad on all workers.',
    values: { message, field },
  })
}

export function unknownValue(tag: unknown): PostgradError {
  return new PostgradError('WIRE_UNKNOWN_VALUE', {
    op: 'decode',
    message: `a value of the unknown kind ${plainText(tag)}`,
    remedy: 'Run the same version of postgrad on all workers.',
  })
}

export function tooLarge(op: string, what: string, max: number, got: number): PostgradError {
  return new PostgradError('WIRE_TOO_LARGE', {
    op,
    expected: `at most ${max} ${what}`,
    got: `${got}`,
    remedy: 'Send bulk data as tensors or typed arrays: they do not count towards this limit.',
    values: { what, max, got },
  })
}

export function tooDeep(op: string, max: number, path?: string): PostgradError {
  return new PostgradError('WIRE_TOO_DEEP', {
    op,
    message: `values are nested more than ${max} deep${path === undefined ? '' : ` at ${path}`}`,
    remedy: 'Send a flat form, such as a list of nodes with indices.',
    values: { max, ...(path === undefined ? {} : { path }) },
  })
}

export function unsupported(path: string, what: string, remedy: string): PostgradError {
  return new PostgradError('WIRE_UNSUPPORTED_VALUE', {
    op: 'encode',
    message: `${path} is ${what}, which cannot be sent`,
    remedy,
    values: { path },
  })
}

/** A value's kind in a few words, without its contents. */
export function kindOf(value: unknown): string {
  if (value === null) return 'null'
  if (Array.isArray(value)) return `an array of ${value.length}`
  return typeof value === 'object' ? Object.prototype.toString.call(value) : typeof value
}
