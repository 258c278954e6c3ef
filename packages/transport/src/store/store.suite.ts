/**
 * The contract of `store.ts` as tests: written once, run on every store by a fixture. Other packages that implement a store import it as
 * `@postgrad/transport/store-suite`. PyTorch: `test/distributed/test_store.py`.
 */
import { describe, expect, test } from '@jest/globals'
import type { Store } from './store.js'

/** Two users of one empty store, and its end. */
export interface StoreUsers {
  readonly a: Store
  readonly b: Store
  sleep(ms: number): Promise<void>
  close(): void | Promise<void>
}

export interface StoreFixture {
  /** How many keys a store has that was just made; PyTorch's TCPStore has one for itself. */
  readonly ownKeys?: number
  /** How the store below names a key; errors name it so. */
  fullKey?(key: string): string
  /** Makes a store, runs `body` and leaves nothing open. */
  run(body: (users: StoreUsers) => Promise<void>): Promise<void>
}

const failure = async (promise: Promise<unknown>) => {
  try {
    await promise
  } catch (error) {
    return error as Error & { code: string; values: Record<string, unknown> }
  }
  throw new Error('expected a rejection')
}

const textOf = (bytes: Uint8Array): string => Buffer.from(bytes).toString()

export function describeStore(name: string, { run, ownKeys = 0, fullKey = (key) => key }: StoreFixture): void {
  describe(name, () => {
    test('STO-1: what one sets the other gets, as bytes or as text; the last value counts', () =>
      run(async ({ a, b }) => {
        await a.set('key0', 'value0')
        await a.set('key1', Uint8Array.of(0, 255, 128))
        await a.set('', 'ä€😀')
        expect(textOf(await b.get('key0'))).toBe('value0')
        expect([...(await b.get('key1'))]).toEqual([0, 255, 128])
        expect(await b.getText('')).toBe('ä€😀')
        await b.set('key0', '')
        expect(await a.getText('key0')).toBe('')
        expect(Object.prototype.toString.call(await a.get('key0'))).toBe('[object Uint8Array]')
      }))

    test('STO-2: values are copied, in and out', () =>
      run(async ({ a, b }) => {
        const bytes = Uint8Array.of(1, 2)
        const setting = a.set('k', bytes)
        bytes[0] = 9
        await setting
        const got = await b.get('k')
        got[1] = 9
        const again = await a.compareSet('k', Uint8Array.of(1, 2), Uint8Array.of(3))
        expect([...again]).toEqual([3])
        again[0] = 9
        expect([...(await a.get('k'))]).toEqual([3])
      }))

    test('STO-3: get waits until somebody sets, adds or puts the key', () =>
      run(async ({ a, b, sleep }) => {
        const waits = [a.getText('s'), b.getText('s'), a.getText('n'), b.getText('c')]
        await sleep(20)
        await b.set('s', 'x')
        await a.add('n', 5)
        await a.compareSet('c', '', 'y')
        expect(await Promise.all(waits)).toEqual(['x', 'x', '5', 'y'])
      }))

    test('STO-4: a wait that takes too long ends with STORE_TIMEOUT and the keys that are missing', () =>
      run(async ({ a, b }) => {
        await a.set('there', '1')
        expect(await failure(b.get('nowhere', { timeoutMs: 20 }))).toMatchObject({
          code: 'STORE_TIMEOUT',
          op: 'get',
          values: { missing: [fullKey('nowhere')], timeoutMs: 20 },
        })
        expect(await failure(b.wait(['x', 'there', 'y', 'x'], { timeoutMs: 20 }))).toMatchObject({
          code: 'STORE_TIMEOUT',
          op: 'wait',
          values: { missing: [fullKey('x'), fullKey('y')] },
        })
        for (const timeoutMs of [-1, Number.NaN]) expect((await failure(a.get('nowhere', { timeoutMs }))).code).toBe('TIMEOUT_INVALID')
        expect(await a.getText('there', { timeoutMs: 1 })).toBe('1')
      }))

    test('STO-4: setTimeout holds for later waits that do not say it themselves, and for its own user', () =>
      run(async ({ a, b, sleep }) => {
        const before = a.getText('late')
        a.setTimeout(20)
        expect((await failure(a.get('nowhere'))).code).toBe('STORE_TIMEOUT')
        const longer = a.getText('late', { timeoutMs: 0 })
        await sleep(40)
        await b.set('late', 'v')
        expect(await Promise.all([before, longer])).toEqual(['v', 'v'])
        expect(() => a.setTimeout(-1)).toThrow(expect.objectContaining({ code: 'TIMEOUT_INVALID' }))
      }))

    test('STO-5: wait needs all keys there at once; check says whether they are', () =>
      run(async ({ a, b, sleep }) => {
        await a.wait([])
        expect(await a.check([])).toBe(true)
        let done = false
        const waits = b.wait(['k1', 'k2']).then(() => {
          done = true
        })
        await a.set('k1', '')
        await a.deleteKey('k1')
        await a.set('k2', '')
        await sleep(10)
        expect([done, await b.check(['k1', 'k2']), await b.check(['k2'])]).toEqual([false, false, true])
        await a.set('k1', '')
        await waits
        expect(await b.check(['k1', 'k2'])).toBe(true)
      }))

    test('STO-6: a signal ends a wait with STORE_CANCELLED, and nothing else', () =>
      run(async ({ a, b, sleep }) => {
        const reason = new Error('enough')
        const controller = new AbortController()
        const waits = failure(a.get('k', { signal: controller.signal }))
        const other = b.getText('k')
        await sleep(5)
        controller.abort(reason)
        expect(await waits).toMatchObject({ code: 'STORE_CANCELLED', cause: reason })
        expect((await failure(a.wait(['k'], { signal: controller.signal }))).code).toBe('STORE_CANCELLED')
        await b.set('k', 'v')
        expect(await other).toBe('v')
      }))

    test('STO-7: add counts from 0, for all users together, and its value reads as a decimal number', () =>
      run(async ({ a, b }) => {
        expect(await a.add('n', 1)).toBe(1)
        expect(await b.add('n', -3)).toBe(-2)
        expect(await a.getText('n')).toBe('-2')
        await a.set('m', '40')
        expect(await b.add('m', 2)).toBe(42)
        const sums = await Promise.all(Array.from({ length: 40 }, (_, i) => (i % 2 === 0 ? a : b).add('many', 1)))
        expect([...sums].sort((x, y) => x - y)).toEqual(Array.from({ length: 40 }, (_, i) => i + 1))
        expect(await a.add('many', 0)).toBe(40)
      }))

    test('STO-7: what is no number is not added to, and nothing but integers is added', () =>
      run(async ({ a }) => {
        await a.set('text', 'ten')
        expect(await failure(a.add('text', 1))).toMatchObject({ code: 'STORE_NOT_A_NUMBER', values: { key: fullKey('text') } })
        await a.set('text', '')
        expect((await failure(a.add('text', 1))).code).toBe('STORE_NOT_A_NUMBER')
        await a.set('big', String(Number.MAX_SAFE_INTEGER))
        expect((await failure(a.add('big', 1))).code).toBe('STORE_NOT_A_NUMBER')
        expect(await a.getText('big')).toBe(String(Number.MAX_SAFE_INTEGER))
        for (const amount of [1.5, Number.NaN, 2 ** 53, '1' as unknown as number]) {
          expect(await failure(a.add('n', amount))).toMatchObject({
            code: 'INVALID_ARGUMENT',
            remedy: expect.stringContaining('add(key, 1)'),
          })
        }
      }))

    test('STO-8: compareSet: no key and something expected; no key and nothing; another value; the value', () =>
      run(async ({ a, b }) => {
        expect(textOf(await a.compareSet('key0', 'wrong', 'new'))).toBe('wrong')
        expect(await a.check(['key0'])).toBe(false)
        expect(textOf(await a.compareSet('key0', '', 'value0'))).toBe('value0')
        expect(textOf(await b.compareSet('key0', 'wrong', 'new'))).toBe('value0')
        expect(textOf(await b.compareSet('key0', '', 'new'))).toBe('value0')
        expect(textOf(await b.compareSet('key0', 'value0', 'new'))).toBe('new')
        expect(await a.getText('key0')).toBe('new')
        // Many want a token, and one gets it.
        const tokens = await Promise.all([a, b, a, b].map((user, i) => user.compareSet('token', '', `${i}`)))
        expect(new Set(tokens.map(textOf)).size).toBe(1)
      }))

    test('STO-9: numKeys and deleteKey', () =>
      run(async ({ a, b }) => {
        expect(await a.numKeys()).toBe(ownKeys)
        for (let i = 0; i < 5; i++) await a.add('count', i)
        await a.set('k1', '1')
        await b.set('k2', '')
        expect(await b.numKeys()).toBe(3 + ownKeys)
        expect(await b.deleteKey('count')).toBe(true)
        expect(await a.deleteKey('count')).toBe(false)
        expect(await a.deleteKey('nowhere')).toBe(false)
        expect(await a.numKeys()).toBe(2 + ownKeys)
        expect((await failure(a.get('count', { timeoutMs: 10 }))).code).toBe('STORE_TIMEOUT')
        await a.set('count', '7')
        expect(await b.add('count', 1)).toBe(8)
      }))

    test('STO-10: close rejects what waits with STORE_CLOSED, and whatever is tried later', () =>
      run(async ({ a, b, close, sleep }) => {
        const waits = [failure(a.get('x')), failure(b.wait(['x', 'y'], { timeoutMs: 0 }))]
        await sleep(5)
        await close()
        for (const error of await Promise.all(waits)) expect(error.code).toBe('STORE_CLOSED')
        for (const tried of [
          a.set('k', 'v'),
          b.get('k'),
          a.add('n', 1),
          b.check([]),
          a.numKeys(),
          b.deleteKey('k'),
          a.compareSet('k', '', 'v'),
        ]) {
          expect((await failure(tried)).code).toBe('STORE_CLOSED')
        }
      }))

    test('STO-11: keys and values of other kinds are refused', () =>
      run(async ({ a }) => {
        for (const value of [1, null, {}, [1]]) {
          expect((await failure(a.set('k', value as unknown as string))).code).toBe('INVALID_ARGUMENT')
          expect((await failure(a.compareSet('k', '', value as unknown as string))).code).toBe('INVALID_ARGUMENT')
        }
        for (const key of [3, null, {}]) {
          const wrong = key as unknown as string
          for (const tried of [a.set(wrong, 'v'), a.get(wrong), a.add(wrong, 1), a.deleteKey(wrong), a.check([wrong])]) {
            expect(await failure(tried)).toMatchObject({ code: 'INVALID_ARGUMENT', remedy: expect.stringContaining('String(key)') })
          }
        }
        for (const keys of ['k', null, 3, {}]) {
          const wrong = keys as unknown as string[]
          for (const tried of [a.check(wrong), a.wait(wrong)]) {
            expect(await failure(tried)).toMatchObject({ code: 'INVALID_ARGUMENT', remedy: expect.stringContaining("['key']") })
          }
        }
        for (const odd of ['__proto__', 'constructor', 'a/b', ' ', 'x'.repeat(5000)]) {
          expect(await a.check([odd])).toBe(false)
          await a.set(odd, odd)
          expect(await a.getText(odd)).toBe(odd)
        }
      }))
  })
}
