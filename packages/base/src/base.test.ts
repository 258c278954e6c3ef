/** Tests of the bottom package: the message of an error, ids, and the scope's way through awaits. */
import { describe, expect, test } from '@jest/globals'
import { isPostgradError, PostgradError } from './errors.js'
import { globalId, IdCounter, LOCAL_ID_MAX, localOf, workerOf } from './global-id.js'
import { currentScope, withScope } from './scope.js'

describe('PostgradError', () => {
  test('reads op, expected, got, remedy', () => {
    const error = new PostgradError('SHAPE_MISMATCH', { op: 'add', expected: '[3, 3]', got: '[2]', remedy: 'Reshape the second argument.' })
    expect(error.message).toBe('add: expected [3, 3], got [2]. Reshape the second argument.')
    expect(new PostgradError('X', { op: 'add', message: 'no' }).message).toBe('add: no.')
    expect(new PostgradError('X', { op: 'add', message: 'left:\n  a\n', remedy: 'Tidy up.' }).message).toBe('add: left:\n  a\nTidy up.')
    expect(isPostgradError(error, 'SHAPE_MISMATCH')).toBe(true)
    expect(isPostgradError(new Error('x'))).toBe(false)
  })
})

describe('global ids', () => {
  test('16 bits of worker and 48 of counter, exact', () => {
    const id = globalId(65535, LOCAL_ID_MAX)
    expect(id).toBe(2n ** 64n - 1n)
    expect([workerOf(id), localOf(id)]).toEqual([65535, LOCAL_ID_MAX])
    const counter = new IdCounter(3)
    expect([counter.take(), counter.take()]).toEqual([3n << 48n, (3n << 48n) + 1n])
  })

  test.each([
    [-1, 0],
    [65536, 0],
    [0, -1],
    [0, 2 ** 48],
    [0.5, 0],
  ])('worker %p, counter %p is refused', (worker, local) => {
    expect(() => globalId(worker, local)).toThrow(PostgradError)
  })
})

describe('scope', () => {
  test('follows awaits and does not leak into what interleaves', async () => {
    const seen: boolean[] = []
    const tick = () => new Promise((resolve) => setImmediate(resolve))
    const off = withScope({ gradEnabled: false }, async () => {
      await tick()
      seen.push(currentScope().gradEnabled)
    })
    await tick()
    seen.push(currentScope().gradEnabled)
    await off
    expect(seen.sort()).toEqual([false, true])
  })

  test('a patch keeps the slots that it leaves out, and null clears one', () => {
    const worker = {}
    withScope({ worker, deadlineMs: 5 }, () =>
      withScope({ gradEnabled: false }, () => {
        expect(currentScope()).toMatchObject({ worker, deadlineMs: 5, gradEnabled: false })
        withScope({ worker: null }, () => expect(currentScope().worker).toBeNull())
      }),
    )
  })
})
