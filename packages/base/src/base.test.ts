/** Tests of the bottom package: the message of an error, ids, and the lines of who awaits. */
import { inspect } from 'node:util'
import { describe, expect, test } from '@jest/globals'
import { rejectTraced, withCallerInStack } from './await-stack.js'
import { isPostgradError, PostgradError } from './errors.js'
import { globalId, IdCounter, LOCAL_ID_MAX, localOf, workerOf } from './global-id.js'

describe('PostgradError', () => {
  test('without a cause, or with null, has none', () => {
    for (const cause of [undefined, null]) expect(new PostgradError('X', { op: 'x', message: 'x', cause })).not.toHaveProperty('cause')
    expect(new PostgradError('X', { op: 'x', message: 'x', cause: 0 })).toHaveProperty('cause', 0)
  })

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

describe('lines of who awaits', () => {
  const later = (error: unknown): Promise<never> => {
    let settle!: (value: never) => void
    let fail!: (error: unknown) => void
    const promise = new Promise<never>((resolve, reject) => {
      settle = resolve
      fail = reject
    })
    setTimeout(() => rejectTraced(promise, settle, fail, error), 1)
    return promise
  }
  const thrownBy = async (fn: () => Promise<unknown>): Promise<Error> => {
    try {
      await fn()
    } catch (error) {
      return error as Error
    }
    throw new Error('expected a rejection')
  }

  test('a rejection from a timer has the functions that await it in its stack, through awaits, then and Promise.all', async () => {
    const program = async (wait: (error: unknown) => Promise<unknown>): Promise<void> => {
      await wait(new TypeError('from a timer'))
    }
    const inner = async (error: unknown): Promise<unknown> => await later(error)
    for (const wait of [later, inner, (e: unknown) => later(e).then(() => 1), (e: unknown) => Promise.all([1, later(e)])]) {
      const error = await thrownBy(() => program(wait))
      expect(error.stack).toMatch(/^TypeError: from a timer\n/)
      expect(error.stack).toMatch(/at (async )?program/)
      expect(error.message).toBe('from a timer')
    }
  })

  test('what cannot have a stack is thrown as it is, and an error gets its lines once', async () => {
    const fixed = Object.defineProperty(new Error('for good'), 'stack', { value: 'Error: for good', writable: false, configurable: false })
    const throwing = Object.defineProperty(new Error('hidden'), 'stack', {
      get: () => {
        throw new RangeError('no stack here')
      },
    })
    for (const odd of ['text', null, Object.freeze(new Error('frozen')), fixed, throwing])
      expect(await thrownBy(async () => await later(odd))).toBe(odd)
    const error = new Error('twice')
    const first = async () => await later(error)
    const second = async () => await later(error)
    await thrownBy(first)
    await thrownBy(second)
    expect(error.stack).toMatch(/at (async )?first/)
    expect(error.stack).not.toMatch(/at (async )?second/)
  })

  test('an error from deep inside has the lines of who called the entry', () => {
    const deep = (n: number): never => {
      if (n === 0) throw new Error('deep')
      return deep(n - 1)
    }
    const entry = (): never => withCallerInStack(entry, () => deep(40))
    const program = (): never => entry()
    const odd = Object.defineProperty(new Error('odd'), 'stack', { value: 1 })
    const throwsOdd = (): never => {
      throw odd
    }
    expect(() => withCallerInStack(entry, throwsOdd)).toThrow(odd)
    expect(() => program()).toThrow(expect.objectContaining({ stack: expect.stringContaining('at program') }))
  })

  test('a printed error says its remedy and the stack of the other worker once', () => {
    const error = new PostgradError('SOME_CODE', { op: 'call', expected: 'this', got: 'that', remedy: 'Do the other.' })
    error.stack = `${error.stack}\n    at far (away.js:1:1)`
    error.remoteStack = 'at far (away.js:1:1)'
    error.workers = [{ name: 'b', id: 1 }]
    const text = inspect(error)
    expect(text.split('Do the other.')).toHaveLength(2)
    expect(text.split('away.js:1:1')).toHaveLength(2)
    expect(text).toContain("code: 'SOME_CODE'")
    expect(error).toMatchObject({ remedy: 'Do the other.', remoteStack: 'at far (away.js:1:1)', workers: [{ name: 'b', id: 1 }] })
  })
})
