/** Checks keys, values and amounts, the same for every store: for `store-table.ts`, and for a store whose table is elsewhere. */

import { PostgradError } from '@postgrad/base'
import { DETACHED, isDetached, TextDecoder, TextEncoder } from '@postgrad/base/internal'
import type { StoreValue } from './store.js'

const encoder = new TextEncoder()
const decoder = new TextDecoder()

export const textOf = (bytes: Uint8Array): string => decoder.decode(bytes)

export const utf8 = (text: string): Uint8Array => encoder.encode(text)

/** A copy. @throws INVALID_ARGUMENT */
export function bytesOf(op: string, key: string, value: StoreValue): Uint8Array {
  checkKey(op, key)
  if (typeof value === 'string') return encoder.encode(value)
  // `instanceof` fails for an array from another thread or jest's realm.
  if (ArrayBuffer.isView(value) && Object.prototype.toString.call(value) === '[object Uint8Array]') {
    if (!isDetached(value)) return Uint8Array.from(value)
    throw new PostgradError('INVALID_ARGUMENT', { op, expected: 'bytes', ...DETACHED, values: { key } })
  }
  throw new PostgradError('INVALID_ARGUMENT', {
    op,
    expected: 'a string or a Uint8Array',
    got: value === null ? 'null' : typeof value,
    remedy: 'Turn other values into text: JSON.stringify(value).',
    values: { key },
  })
}

/** @throws INVALID_ARGUMENT */
export function checkKey(op: string, key: string): string {
  if (typeof key === 'string') return key
  throw new PostgradError('INVALID_ARGUMENT', {
    op,
    expected: 'a string as the key',
    got: key === null ? 'null' : typeof key,
    remedy: 'Turn it into text first, as in String(key).',
  })
}

/** @throws INVALID_ARGUMENT */
export function checkKeys(op: string, keys: readonly string[]): readonly string[] {
  if (!Array.isArray(keys)) {
    throw new PostgradError('INVALID_ARGUMENT', {
      op,
      expected: 'a list of keys',
      got: keys === null ? 'null' : typeof keys,
      remedy: `Write ${op}(['key']), also for one.`,
    })
  }
  for (const key of keys) checkKey(op, key)
  return keys
}

/** @throws INVALID_ARGUMENT */
export function checkAmount(key: string, amount: number): number {
  checkKey('add', key)
  if (Number.isSafeInteger(amount)) return amount
  throw new PostgradError('INVALID_ARGUMENT', {
    op: 'add',
    expected: 'an integer',
    got: typeof amount === 'number' ? String(amount) : amount === null ? 'null' : typeof amount,
    remedy: 'Write add(key, 1); set() keeps other values, as text or bytes.',
    values: { key },
  })
}

export function equal(a: Uint8Array, b: Uint8Array): boolean {
  return a.length === b.length && a.every((byte, i) => byte === b[i])
}
