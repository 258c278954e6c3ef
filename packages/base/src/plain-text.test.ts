/** Tests values that peers may send, and what errors say of them. */
import { expect, test } from '@jest/globals'
import { plainText } from './errors.js'

test('RPC-55 any value has a text, and nothing of the value runs', () => {
  const hostile = [
    { toString: 1 },
    Object.create(null),
    { [Symbol.toPrimitive]: 1 },
    {
      get message(): string {
        throw new Error('it ran')
      },
    },
    Object.defineProperty(new Error('plain'), 'message', {
      get() {
        throw new Error('it ran')
      },
    }),
    [{ toString: 1 }],
    Symbol('s'),
    () => 1,
  ]
  expect(hostile.map(plainText)).toEqual([...Array(5).fill('an object'), 'an array', 'Symbol(s)', 'a function'])
  expect(['text', 1, -0, null, undefined, 5n, true, new Error('why')].map(plainText)).toEqual([
    'text',
    '1',
    '0',
    'null',
    'undefined',
    '5',
    'true',
    'why',
  ])
})
