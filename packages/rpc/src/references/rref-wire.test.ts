/** The form of a reference in a message. */
import { describe, expect, test } from '@jest/globals'
import { readFork } from './rref-wire.js'

const peer = { name: 'worker1', id: 1 }

describe('a reference in a message', () => {
  test('RPC-16: is read', () => {
    expect(readFork([2, 5n, 1n << 63n, 1], peer)).toEqual({ owner: 2, rrefId: 5n, forkId: 1n << 63n, parent: 1 })
  })

  const wrong: [string, unknown][] = [
    ['nothing', null],
    ['an object', { owner: 1 }],
    ['three elements', [2, 5n, 6n]],
    ['five elements', [2, 5n, 6n, 1, 0]],
    ['an owner beyond 16 bits', [65_536, 5n, 6n, 1]],
    ['a negative owner', [-1, 5n, 6n, 1]],
    ['an owner that is no integer', [0.5, 5n, 6n, 1]],
    ['an id that is a number', [2, 5, 6n, 1]],
    ['a negative id', [2, 5n, -6n, 1]],
    ['an id beyond 64 bits', [2, 1n << 64n, 6n, 1]],
    ['another sender', [2, 5n, 6n, 3]],
  ]
  test.each(wrong)('RPC-16: %s is refused', (_, plain) => {
    expect(() => readFork(plain, peer)).toThrow()
  })
})
