/** The store in a file under the contract, and then tests of the file: torn ends, damage, locks, operations at random. */
import { mkdtempSync, readFileSync, rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { describe, expect, test } from '@jest/globals'
import { FileLock } from './file-lock.js'
import { FileStore } from './file-store.js'
import { randomOperations } from './operations.fixture.js'
import { PrefixStore } from './prefix-store.js'
import type { Store } from './store.js'
import { describeStore, type StoreFixture } from './store.suite.js'

async function inFolder(body: (path: string) => Promise<void>): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), 'postgrad-store-'))
  try {
    await body(join(folder, 'store'))
  } finally {
    rmSync(folder, { recursive: true })
  }
}

function fixture(user: (store: FileStore) => Store, prefix = ''): StoreFixture {
  return {
    fullKey: (key) => `${prefix}${key}`,
    run: (body) =>
      inFolder(async (path) => {
        const stores = [new FileStore(path), new FileStore(path)] as const
        const close = () => {
          for (const store of stores) store.close()
        }
        await body({ a: user(stores[0]), b: user(stores[1]), sleep: (ms) => sleep(ms), close })
        expect(stores.map((store) => store.waiting)).toEqual([0, 0])
        close()
      }),
  }
}

describeStore(
  'FileStore',
  fixture((store) => store),
)
describeStore(
  'PrefixStore of a FileStore',
  fixture((store) => new PrefixStore('group', store), 'group/'),
)

const failure = (promise: Promise<unknown>) =>
  promise.then(
    () => null,
    (error) => error as { code: string; values: Record<string, unknown>; message: string },
  )

describe('FileStore', () => {
  test('STO-13: who comes later finds what is there, in the order of the calls of each user', () =>
    inFolder(async (path) => {
      const a = new FileStore(path)
      const order = [a.set('k', '1'), a.add('k', 1), a.check(['k']), a.deleteKey('k'), a.check(['k']), a.set('k', 'last'), a.getText('k')]
      expect(await Promise.all(order)).toEqual([undefined, 2, true, true, false, undefined, 'last'])
      a.close()
      const b = new FileStore(path)
      expect([await b.getText('k'), await b.numKeys()]).toEqual(['last', 1])
      // A lone surrogate is a key like any other, though it has no UTF-8.
      await b.set('\ud800', 'x')
      const c = new FileStore(path)
      expect([await c.check(['\ud800']), await c.check(['\udfff'])]).toEqual([true, false])
      b.close()
      c.close()
    }))

  test('STO-14: an end that is torn at any byte is not read, and is cut off by the next writer', () =>
    inFolder(async (path) => {
      const writer = new FileStore(path)
      await writer.set('first', '1')
      const kept = statSync(path).size
      await writer.set('second', 'ä'.repeat(40))
      writer.close()
      const whole = readFileSync(path)
      for (let end = 0; end < whole.length; end++) {
        // As a writer leaves it that was killed, and as a machine leaves it that stopped: longer, with zeros for what was not written.
        for (const torn of [whole.subarray(0, end), Buffer.concat([whole.subarray(0, end), Buffer.alloc(whole.length - end)])]) {
          writeFileSync(path, torn)
          const isFirst = end >= kept
          const isSecond = whole.equals(torn)
          const [a, b] = [new FileStore(path), new FileStore(path)]
          expect([end, await a.check(['first']), await a.check(['second'])]).toEqual([end, isFirst, isSecond])
          const late = b.getText('third')
          expect(await a.add('third', 3)).toBe(3)
          expect([await late, await b.check(['first']), await b.check(['second'])]).toEqual(['3', isFirst, isSecond])
          a.close()
          b.close()
          const again = new FileStore(path)
          expect([await again.numKeys(), await again.getText('third')]).toEqual([1 + Number(isFirst) + Number(isSecond), '3'])
          expect([end, await again.add('third', 1)]).toEqual([end, 4])
          again.close()
        }
      }
    }))

  test('STO-14: a bit that is wrong in front of whole records is damage, which nobody cuts off', () =>
    inFolder(async (path) => {
      const writer = new FileStore(path)
      for (const key of ['first', 'second', 'third']) await writer.set(key, key)
      writer.close()
      const whole = readFileSync(path)
      const second = whole.indexOf('second')
      for (let at = 0; at < second; at++) {
        const damaged = Buffer.from(whole)
        damaged[at]! ^= 0x10
        writeFileSync(path, damaged)
        const store = new FileStore(path)
        expect([at, (await failure(store.set('k', 'v')))?.code]).toEqual([at, 'STORE_FILE_DAMAGED'])
        expect([at, (await failure(store.get('third')))?.code]).toEqual([at, 'STORE_FILE_DAMAGED'])
        expect(readFileSync(path).equals(damaged)).toBe(true)
        store.close()
      }
    }))

  test('STO-14: a file that is no store is left alone', () =>
    inFolder(async (path) => {
      writeFileSync(path, 'my thesis')
      const store = new FileStore(path)
      for (const tried of [store.set('k', 'v'), store.check(['k']), store.get('k'), store.numKeys()]) {
        expect(await failure(tried)).toMatchObject({ code: 'STORE_FILE_DAMAGED', values: { path, at: 0 } })
      }
      store.close()
      expect(readFileSync(path, 'utf8')).toBe('my thesis')
    }))

  test('STO-15: what the file system refuses is an error with the path; a file that is gone is not written to', () =>
    inFolder(async (path) => {
      expect(() => new FileStore(join(path, 'nowhere', 'store'))).toThrow(expect.objectContaining({ code: 'STORE_FILE_FAILED' }))
      const store = new FileStore(path)
      for (const wrong of [{ lockMs: -1 }, { pollMs: Number.NaN }]) {
        expect(() => new FileStore(path, wrong)).toThrow(expect.objectContaining({ code: 'TIMEOUT_INVALID' }))
      }
      await store.set('k', 'v')
      rmSync(path)
      expect(await failure(store.set('k', 'w'))).toMatchObject({ code: 'STORE_FILE_FAILED', values: { path } })
      store.close()
      expect((await failure(new FileStore(path).getText('k', { timeoutMs: 5 })))?.code).toBe('STORE_TIMEOUT')
    }))

  test('STO-16: who cannot have the lock waits, gives up, and says who has it; waits read without it', () =>
    inFolder(async (path) => {
      const [a, b] = [new FileStore(path, { lockMs: 40 }), new FileStore(path)]
      await a.set('k', 'v')
      const lock = new FileLock(`${path}.lock`)
      expect([lock.tryAcquire(), new FileLock(lock.path).tryAcquire()]).toEqual([true, false])
      expect(await b.getText('k')).toBe('v')
      const patient = b.add('n', 1)
      const behind = b.getText('n')
      const error = await failure(a.add('n', 1))
      expect(error).toMatchObject({ code: 'STORE_LOCKED', values: { path: lock.path } })
      expect(error?.message).toMatch(new RegExp(`ms '.*\\.lock' was held by process ${process.pid} on `))
      lock.release()
      expect([await patient, await behind, await a.add('n', 1)]).toEqual([1, '1', 2])
      a.close()
      b.close()
    }))

  test('STO-16: a lock of another machine, or what is none, is never broken', () =>
    inFolder(async (path) => {
      const lockPath = `${path}.lock`
      for (const make of [
        () => symlinkSync('elsewhere/boot+pids/1/1/1/1/1', lockPath),
        () => symlinkSync('%zz', lockPath),
        () => writeFileSync(lockPath, 'mine'),
      ]) {
        make()
        const store = new FileStore(path, { lockMs: 20 })
        expect((await failure(store.set('k', 'v')))?.code).toBe('STORE_LOCKED')
        store.close()
        rmSync(lockPath)
      }
    }))

  /** `npm run soak -- --seeds 1000 file-store` takes more. */
  const SEEDS = Number(process.env.POSTGRAD_SOAK_SEEDS ?? 8)

  test('STO-13: operations at random, by several users, leave what a Map would have', async () => {
    for (let seed = 1; seed <= SEEDS; seed++) {
      await inFolder(async (path) => {
        const users = [1, 2, 3].map(() => new FileStore(path))
        await randomOperations(seed, users, 200)
        for (const user of users) user.close()
      })
    }
  })
})
