import { describe, expect, test } from '@jest/globals'
import { isPostgradError, PostgradError, type WorkerHop } from '@postgrad/base'
import { tensor } from '@postgrad/tensor'
import { Codec } from './codec.js'
import { MessageType } from './message-type.js'

const worker = (id: number): Codec => new Codec({ worker: { name: `worker${id}`, id } })

/** `thrown`, as it arrives from worker 1. */
function across(thrown: unknown, from = worker(1)): Error & Partial<PostgradError> & { errors?: unknown[]; errno?: unknown } {
  return worker(0).decode(from.encode(from.prepare(MessageType.EXCEPTION, [thrown, false]))).body[0] as never
}

describe('errors across the wire', () => {
  test.each([Error, EvalError, RangeError, ReferenceError, SyntaxError, TypeError, URIError])('%p comes back as itself', (Class) => {
    const error = new Class('what happened')
    const back = across(error)
    expect(back).toBeInstanceOf(Class)
    expect([back.name, back.message]).toEqual([error.name, 'what happened'])
    expect(back.remoteStack).toBe(error.stack)
    expect(back.stack).toBe(error.stack)
    expect(back.workers).toEqual([{ name: 'worker1', id: 1 }])
    expect(Object.keys(back)).toEqual([])
  })

  test('a PostgradError keeps code, op, message, remedy and values', () => {
    const error = new PostgradError('SHAPE_MISMATCH', {
      op: 'matmul',
      expected: '[2, 3]',
      got: '[4]',
      remedy: 'Transpose it.',
      values: { shape: [2, 3], id: 7n, nested: { name: null } },
      cause: new TypeError('inner'),
    })
    const back = across(error)
    expect(isPostgradError(back, 'SHAPE_MISMATCH')).toBe(true)
    const { message, op, remedy, values } = error
    expect({ message: back.message, op: back.op, remedy: back.remedy, values: back.values }).toEqual({ message, op, remedy, values })
    expect(back.cause).toBeInstanceOf(TypeError)
    expect((back.cause as Error).message).toBe('inner')
    expect(back.remoteStack).toBe(error.stack)
  })

  test('a class of the user comes back as REMOTE_EXCEPTION with its name, and its own values', () => {
    class QuotaError extends RangeError {
      override name = 'QuotaError'
      readonly quota = 5
      readonly list = [1, { a: 2 }]
    }
    const back = across(new QuotaError('too much'))
    expect(isPostgradError(back, 'REMOTE_EXCEPTION')).toBe(true)
    expect(back.message).toBe('QuotaError: too much')
    expect(back.values).toEqual({ name: 'QuotaError', message: 'too much', quota: 5, list: [1, { a: 2 }] })
    expect(back.stack).toContain('QuotaError')
  })

  test('a class that has given itself no name has its own all the same, in the stack too, as Node prints it', () => {
    class LimitError extends RangeError {}
    class ManyErrors extends AggregateError {}
    for (const error of [new (class NoMoney extends Error {})('x'), new LimitError('x'), new ManyErrors([new LimitError('y')], 'x')]) {
      const { name } = error.constructor
      const back = across(error)
      expect(isPostgradError(back, 'REMOTE_EXCEPTION')).toBe(true)
      expect([back.message, back.values]).toEqual([`${name}: x`, expect.objectContaining({ name, message: 'x' })])
      expect(back.stack).toMatch(new RegExp(`^PostgradError: ${name}: x\n +at `))
      expect(back.remoteStack).toMatch(new RegExp(`^${name}: x\n +at `))
    }
    expect(across(new (class extends Error {})('x'))).toMatchObject({ name: 'Error', message: 'x' })
    // A name of a built-in class counts as that class.
    expect(across(Object.assign(new Error('x'), { name: 'RangeError' }))).toBeInstanceOf(RangeError)
    expect(across(Object.assign(new LimitError('x'), { name: 'Error' }))).toMatchObject({ name: 'Error', message: 'x' })
    expect(across(Object.assign(new LimitError('x'), { constructor: null }))).toBeInstanceOf(RangeError)
  })

  test('no name from the wire is looked up anywhere', () => {
    for (const name of ['constructor', 'toString', '__proto__', 'Function', 'Object']) {
      const error = new Error('x')
      error.name = name
      expect(isPostgradError(across(error), 'REMOTE_EXCEPTION')).toBe(true)
    }
  })

  test("Node's code, errno and syscall stay on the error", () => {
    const error = Object.assign(new Error('ENOENT: no such file'), { code: 'ENOENT', errno: -2, syscall: 'open' })
    expect(across(error)).toMatchObject({ name: 'Error', code: 'ENOENT', errno: -2, syscall: 'open' })
  })

  test.each([['a string'], [7], [null], [undefined], [true], [5n], [{ code: 3 }], [[1, null]]])(
    '%p, thrown, is kept in a REMOTE_EXCEPTION',
    (thrown) => {
      const back = across(thrown)
      expect(isPostgradError(back, 'REMOTE_EXCEPTION')).toBe(true)
      expect(back.values).toEqual({ name: typeof thrown, thrown })
    },
  )

  test('whatever was thrown can be sent', () => {
    const hostile = new Proxy(new Error('x'), {
      get() {
        throw new Error('no')
      },
      ownKeys() {
        throw new Error('no')
      },
    })
    const cyclic: Record<string, unknown> = {}
    cyclic.self = cyclic
    const cause = new Error('cycle')
    cause.cause = cause
    const wide = Object.assign(new Error('wide'), {
      t: tensor([1]),
      f: () => 1,
      s: Symbol('s'),
      m: new Map(),
      cyclic,
      u: undefined,
      z: -0,
      big: 2n ** 80n,
    })
    const long = new Error('y'.repeat(10_000_000))
    const broken = new Error('\ud800')
    for (const thrown of [
      hostile,
      cyclic,
      cause,
      wide,
      long,
      broken,
      () => 1,
      Symbol('t'),
      new AggregateError(new Array(1000).fill(wide)),
    ]) {
      expect(across(thrown)).toBeInstanceOf(Error)
    }
    expect(across(wide)).toMatchObject({ t: 'Tensor float32 [1]', z: -0, big: String(2n ** 80n), u: undefined })
    expect(across(long).message.length).toBeLessThan(40_000)
    expect(across(broken).message).toBe('\ud800')
  })

  test('an error that holds a lot is cut, and can be sent', () => {
    const grid = (depth: number, leaf: unknown): unknown => (depth === 0 ? leaf : new Array(64).fill(grid(depth - 1, leaf)))
    const full = (data: unknown) => Object.assign(new Error('full'), { data })
    const long = 'y'.repeat(30_000)
    for (const thrown of [
      full(grid(4, 1)),
      full(grid(2, long)),
      full(grid(5, '\ud800'.repeat(100))),
      full({ ['k'.repeat(9 * 2 ** 20)]: 1 }),
      full(new Array(5).fill(() => long)),
      full([[[[[...new Array(1_000_000).keys()]]]]]),
      Object.assign(new Error('code'), { code: 'C'.repeat(9 * 2 ** 20) }),
      new PostgradError('FULL', { op: long, message: 'full', values: { data: grid(3, long) } }),
      new AggregateError(Array.from({ length: 31 }, () => full(grid(1, long)))),
    ]) {
      const back = across(thrown)
      expect(back).toBeInstanceOf(Error)
      expect(JSON.stringify({ ...back, errors: back.errors?.map((member) => ({ ...(member as object) })) }).length).toBeLessThan(2 ** 21)
    }
    expect(across(full(grid(2, 'x')))).toMatchObject({ message: 'full', data: grid(2, 'x') })
  })

  test('once an error is full, nothing more of it is made a text', () => {
    let asked = 0
    class Long {
      toString(): string {
        asked++
        return 'y'.repeat(32_768)
      }
    }
    const data = new Array(60).fill(new Array(60).fill(new Long()))
    const back = across(Object.assign(new Error('full'), { data })) as unknown as { data: string[][] }
    expect(back.data[0]!.slice(0, 2)).toEqual(new Array(2).fill('y'.repeat(32_768)))
    expect(back.data[59]).toEqual(new Array(60).fill('…'))
    expect(asked).toBeGreaterThan(0)
    expect(asked).toBeLessThan(10)
  })

  test('however much an error holds, its code, operation and remedy are whole', () => {
    const wide = Object.fromEntries(Array.from({ length: 60 }, (_, i) => [`key${i}`, 'x'.repeat(50_000)]))
    const cause = new PostgradError('CAUSE', { op: 'inner', message: 'y'.repeat(1e6), values: wide })
    const back = across(new PostgradError('HUGE', { op: 'matmul', message: 'z'.repeat(1e6), remedy: 'Do less.', values: { wide }, cause }))
    expect(back).toMatchObject({ code: 'HUGE', op: 'matmul', remedy: 'Do less.' })
  })

  test('causes are kept up to a depth, members of an AggregateError too', () => {
    let error = new Error('0')
    for (let i = 1; i < 20; i++) error = new Error(String(i), { cause: error })
    const messages: string[] = []
    for (let e: Error | undefined = across(error); e !== undefined; e = e.cause as Error | undefined) messages.push(e.message)
    expect(messages).toEqual(['19', '18', '17', '16', '15', '14', '13', '12', '11'])
    const back = across(new AggregateError([new RangeError('a'), 'b', new PostgradError('C', { op: 'c' })], 'three'))
    expect(back).toBeInstanceOf(AggregateError)
    expect(back.errors?.[0]).toBeInstanceOf(RangeError)
    expect(back.errors?.[1]).toBe('b')
    expect(isPostgradError(back.errors?.[2], 'C')).toBe(true)
  })

  test('a cause that is no error is kept', () => {
    expect(across(new Error('x', { cause: { reason: [null, 1] } })).cause).toEqual({ reason: [null, 1] })
    expect('cause' in across(new Error('x'))).toBe(false)
  })

  test('the path has every worker once, and of a long one the first and the last 16', () => {
    let error: unknown = new Error('deep')
    for (let id = 1; id <= 5; id++) error = across(error, worker(id))
    expect((error as { workers: WorkerHop[] }).workers.map(({ id }) => id)).toEqual([1, 2, 3, 4, 5])
    for (let id = 6; id <= 100; id++) error = across(error, worker(id))
    const expected = [...Array.from({ length: 16 }, (_, i) => i + 1), ...Array.from({ length: 16 }, (_, i) => 85 + i)]
    expect((error as { workers: WorkerHop[] }).workers.map(({ id }) => id)).toEqual(expected)
    expect((error as PostgradError).remoteStack).toContain('error-codec')
  })

  test('without remoteStacks neither the error, nor its causes, nor one that is passed on say where they arose', () => {
    const silent = new Codec({ worker: { name: 'worker1', id: 1 }, remoteStacks: false })
    const arrived = across(new TypeError('passed on'), worker(2))
    const error = new RangeError('here', { cause: new AggregateError([arrived], 'why') })
    const header = Buffer.from(silent.encode(silent.prepare(MessageType.EXCEPTION, [error, false])).header).toString('latin1')
    expect(header).toContain('passed on')
    expect(header).not.toContain('error-codec')
    const back = across(error, silent)
    expect([back.name, back.message, back.remoteStack]).toEqual(['RangeError', 'here', undefined])
    expect(back.workers).toEqual([{ name: 'worker1', id: 1 }])
  })

  test('the stack is the one of the place where it arose, also after several hops', () => {
    const error = new TypeError('here')
    const { stack } = error
    expect(across(across(error, worker(1)), worker(2)).stack).toBe(stack)
  })

  test('errors inside arguments are errors', () => {
    const codec = worker(1)
    const message = codec.decode(codec.encode(codec.prepare(MessageType.CALL, ['f', [{ e: new RangeError('r') }]])))
    expect((message.body[1] as [{ e: Error }])[0].e).toBeInstanceOf(RangeError)
  })
})
