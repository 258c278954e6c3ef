/** The stores of this package under the contract, and tests of each alone. */
import { setTimeout as sleep } from 'node:timers/promises'
import { describe, expect, test } from '@jest/globals'
import { RealClock } from '../clock.js'
import { HashStore } from './hash-store.js'
import { PrefixStore } from './prefix-store.js'
import type { Store } from './store.js'
import { describeStore, type StoreFixture } from './store.suite.js'

function fixture(user: (store: HashStore) => Store, prefix = ''): StoreFixture {
  return {
    fullKey: (key) => `${prefix}${key}`,
    async run(body) {
      const store = new HashStore(new RealClock())
      await body({ a: user(store), b: user(store), sleep: (ms) => sleep(ms), close: () => store.close() })
      store.close()
      expect(store.waiting).toBe(0)
    },
  }
}

describeStore(
  'HashStore',
  fixture((store) => store),
)
describeStore(
  'PrefixStore',
  fixture((store) => new PrefixStore('group', store), 'group/'),
)
describeStore(
  'PrefixStore of a PrefixStore',
  fixture((store) => new PrefixStore('round1', new PrefixStore('group', store)), 'group/round1/'),
)

describe('stores', () => {
  test('STO-11: bytes that have gone to another thread are no value', async () => {
    const store = new HashStore(new RealClock())
    const gone = new Uint8Array(2)
    structuredClone(gone.buffer, { transfer: [gone.buffer] })
    await expect(store.set('k', gone)).rejects.toMatchObject({ code: 'INVALID_ARGUMENT', values: { key: 'k' } })
    expect(await store.check(['k'])).toBe(false)
    store.close()
  })

  test('STO-12: stores with different prefixes do not meet, and count together', async () => {
    const store = new HashStore(new RealClock())
    const [one, two] = [new PrefixStore('one', store), new PrefixStore('two', store)]
    await one.set('k', '1')
    await two.set('k', '2')
    expect([await one.getText('k'), await two.getText('k')]).toEqual(['1', '2'])
    expect(await store.getText('one/k')).toBe('1')
    expect([await one.numKeys(), await store.numKeys()]).toEqual([2, 2])
    expect(await two.deleteKey('k')).toBe(true)
    expect(await one.check(['k'])).toBe(true)
    expect([two.prefix, two.underlyingStore]).toEqual(['two', store])
  })

  test('STO-4: setTimeout of the store itself', async () => {
    const store = new HashStore(new RealClock())
    store.setTimeout(10)
    await expect(store.get('x')).rejects.toMatchObject({ code: 'STORE_TIMEOUT', values: { timeoutMs: 10 } })
    expect(store.waiting).toBe(0)
    store.close()
  })
})
