/** Notes on errors: where they go, and what stays as it was. */
import { afterEach, expect, test } from '@jest/globals'
import { noteInStack } from './error-notes.js'

const { VITEST } = process.env
afterEach(() => {
  if (VITEST === undefined) delete process.env.VITEST
  else process.env.VITEST = VITEST
})

test('TK-27 notes stand behind the message in the stack, one behind the other; the message stays what it was', () => {
  const error = new RangeError('boom')
  noteInStack(error, ' (seed 3)')
  noteInStack(error, '\nRepeat it')
  expect(error.message).toBe('boom')
  expect(error.stack).toMatch(/^RangeError: boom \(seed 3\)\nRepeat it\n +at /)
})

test('TK-27 under vitest, which prints the message alone, they are in it too', () => {
  process.env.VITEST = 'true'
  const error = new RangeError('boom')
  noteInStack(error, ' (seed 3)')
  noteInStack(error, '\nRepeat it')
  expect(error.message).toBe('boom (seed 3)\nRepeat it')
  expect(error.stack).toMatch(/^RangeError: boom \(seed 3\)\nRepeat it\n +at /)
})

test('TK-27 what is no error, is frozen, or has a stack without its message comes through', () => {
  for (const thrown of ['boom', null, 7, Object.freeze(new Error('boom')), {}]) expect(() => noteInStack(thrown, ' note')).not.toThrow()
  const odd = Object.assign(new Error('boom'), { stack: 'elsewhere' })
  noteInStack(odd, ' note')
  expect(odd.stack).toBe('elsewhere note')
})
