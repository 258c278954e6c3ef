/** The typed proxies of a reference, and waiting for its creation. */

import { describe, expect, test } from '@jest/globals'
import { Future } from '@postgrad/base'
import { call, currentWorker, remote, rref } from '../api/api.js'
import { expose } from '../common/function-registry.js'
import { Cluster, failure, overSeeds, thrown } from '../worker/sim-cluster.suite.js'
import { OwnerRRef, type RRef, UserRRef } from './rref.js'

const sleep = (ms: number): Promise<void> => {
  const { clock } = currentWorker()
  return new Promise((resolve) => {
    clock.setTimer(ms, resolve)
  })
}

class Account {
  private cents: number
  constructor(cents: number) {
    this.cents = cents
  }
  add(cents: number): number {
    this.cents += cents
    return this.cents
  }
  async addLater(cents: number, ms = 5): Promise<number> {
    await sleep(ms)
    return this.add(cents)
  }
  overdraw(): never {
    throw new RangeError('no credit')
  }
  open(): Account {
    return new Account(this.cents)
  }
  where(): string {
    return currentWorker().info.name
  }
}
class Till extends Account {
  static readonly serial = true
}
const open = (cents: number) => new Account(cents)
const openSlowly = async (cents: number, ms: number) => {
  await sleep(ms)
  return new Account(cents)
}
const addElsewhere = async (account: RRef<Account>, cents: number) => {
  const sum = await account.rpcSync().add(cents)
  account.dispose()
  return sum
}
const noAccount = (): Account => {
  throw new RangeError('no account')
}
expose({ Account, Till, open, openSlowly, addElsewhere, noAccount })

/** Replies that come after their deadline are dead letters. */
async function leftoversButLetters(cluster: Cluster): Promise<string[]> {
  await cluster.world.drain()
  return cluster.leftovers({ letters: cluster.info(0).deadLetters! + cluster.info(1).deadLetters! })
}

describe.each(['worker1', 'worker0'])('a value on %s, used on worker0', (owner) => {
  test('RREF-27: rpcSync and rpcAsync run methods on the owner, and may be kept (rref_proxy_class, rref_proxy_reuse)', async () => {
    await overSeeds(5, 2, async () => {
      const account = remote(owner, Account, [100])
      const proxy = account.rpcAsync()
      const sum: number = await account.rpcSync().add(1)
      expect(sum).toBe(101)
      expect(proxy.add(1)).toBeInstanceOf(Future)
      expect(await Promise.all([proxy.add(1), proxy.addLater(10), proxy.where()])).toEqual([103, 113, owner])
      const { add } = proxy
      expect(await add(1)).toBe(114)
      account.dispose()
    })
  })

  test('RREF-27: remote leaves the result on the owner', async () => {
    await overSeeds(5, 2, async () => {
      const account = remote(owner, Account, [100])
      const later: RRef<number> = account.remote().addLater(5)
      expect(later).toBeInstanceOf(owner === 'worker0' ? OwnerRRef : UserRRef)
      expect(later.ownerName()).toBe(owner)
      expect(await later.toHere()).toBe(105)
      // A value that cannot travel stays there too, and its methods can be called.
      const copy: RRef<Account> = account.remote().open()
      expect(await copy.rpcSync().add(1)).toBe(106)
      expect(await account.rpcSync().add(0)).toBe(105)
      for (const ref of [account, later, copy]) ref.dispose()
    })
  })

  test('RREF-27: a name that the value lacks is METHOD_NOT_FOUND: in the Future, and from every use of what remote gives (rref_proxy_non_exist)', async () => {
    await overSeeds(5, 2, async () => {
      const account = remote(owner, Account, [100]) as RRef<unknown> as RRef<{ missing(): number; cents(): number }>
      const missing = { code: 'METHOD_NOT_FOUND', values: { method: 'missing' } }
      expect(await failure(account.rpcSync().missing())).toMatchObject(missing)
      expect(await failure(account.rpcAsync().missing())).toMatchObject(missing)
      expect(await failure(account.rpcAsync().cents())).toMatchObject({ code: 'METHOD_NOT_FOUND' })
      const made = account.remote().missing()
      expect(await failure(made.toHere())).toMatchObject(missing)
      expect(await failure(made.created())).toMatchObject(missing)
      expect(await failure(made.toHere())).toMatchObject(missing)
      made.dispose()
      account.dispose()
    })
  })

  test('RREF-27: errors of methods, and of the creation, come as from call', async () => {
    await overSeeds(5, 2, async () => {
      const account = remote(owner, Account, [100])
      const none = remote(owner, noAccount)
      const refs = [account, none, account.remote().overdraw(), none.remote().add(1)]
      for (const failing of [account.rpcSync().overdraw(), refs[2]!.toHere()]) {
        expect(await failure(failing)).toMatchObject({ name: 'RangeError', message: 'no credit' })
      }
      for (const failing of [none.rpcSync().add(1), refs[3]!.toHere()]) {
        expect(await failure(failing)).toMatchObject({ name: 'RangeError', message: 'no account' })
      }
      for (const ref of refs) ref.dispose()
    })
  })

  test('RREF-27: the deadline covers the wait for the value and the method (rref_proxy_timeout)', async () => {
    const cluster = new Cluster(1, 2)
    await cluster.run(0, async () => {
      const account = remote(owner, openSlowly, [100, 50])
      expect(await failure(account.rpcSync({ timeoutMs: 10 }).add(1))).toMatchObject({ code: 'RPC_TIMEOUT' })
      // Its time was over before there was a value: it was not run.
      expect(await account.rpcSync({ timeoutMs: 100 }).add(1)).toBe(101)
      const slow = account.rpcAsync({ timeoutMs: 10 })
      for (let i = 0; i < 2; i++) expect(await failure(slow.addLater(1, 30))).toMatchObject({ code: 'RPC_TIMEOUT' })
      await sleep(50)
      expect(await account.rpcSync().add(0)).toBe(103)
      account.dispose()
    })
    expect(await leftoversButLetters(cluster)).toEqual([])
  })

  test('RREF-29: created waits for the value, and copies nothing (rref_get_future)', async () => {
    const cluster = new Cluster(1, 2)
    await cluster.run(0, async () => {
      const account = remote(owner, openSlowly, [100, 20])
      expect(await account.created()).toBeUndefined()
      expect(cluster.world.nowMs).toBeGreaterThanOrEqual(20)
      expect(await account.created()).toBeUndefined()
      const slow = remote(owner, openSlowly, [100, 20])
      expect(await failure(slow.created({ timeoutMs: 5 }))).toMatchObject({ code: 'RPC_TIMEOUT' })
      await slow.created()
      const none = remote(owner, noAccount)
      for (let i = 0; i < 2; i++) expect(await failure(none.created())).toMatchObject({ message: 'no account' })
      for (const ref of [account, slow, none]) ref.dispose()
    })
    expect(await leftoversButLetters(cluster)).toEqual([])
  })
})

test('RREF-27: a proxy is no promise, and what every object has is not sent', async () => {
  const cluster = new Cluster(1, 2)
  await cluster.run(0, async () => {
    const account = remote('worker1', Account, [1])
    await account.created()
    const before = cluster.messages
    for (const proxy of [account.rpcSync(), account.rpcAsync(), account.remote()] as Record<PropertyKey, unknown>[]) {
      expect(await proxy).toBe(proxy)
      expect(proxy.then).toBeUndefined()
      expect(proxy.constructor).toBe(Object)
      expect(`${String(proxy)} ${Object.keys(proxy).length}`).toBe('[object Object] 0')
      expect(JSON.stringify({ proxy })).toBe('{"proxy":{}}')
      expect(proxy[Symbol.iterator]).toBeUndefined()
      expect(proxy.add).toBeInstanceOf(Function)
    }
    expect(cluster.messages).toBe(before)
    account.dispose()
  })
})

test('RREF-27: a reference that was shared has them too; one that was disposed throws RREF_DELETED', async () => {
  await overSeeds(10, 3, async () => {
    const account = remote('worker1', open, [100])
    expect(await call('worker2', addElsewhere, [account, 11])).toBe(111)
    const mine = rref(new Account(5))
    expect(await call('worker2', addElsewhere, [mine, 1])).toBe(6)
    expect(await call('worker1', addElsewhere, [account, 1])).toBe(112)
    const sync = account.rpcSync()
    const leaving = account.remote()
    account.dispose()
    expect(await failure(sync.add(1))).toMatchObject({ code: 'RREF_DELETED' })
    expect(thrown(() => leaving.add(1))).toMatchObject({ code: 'RREF_DELETED' })
    expect(await failure(account.created())).toMatchObject({ code: 'RREF_DELETED' })
  })
})

test('RREF-27: after the death of the owner: WORKER_DIED', async () => {
  const cluster = new Cluster(1, 2)
  await cluster.run(0, async () => {
    const account = remote('worker1', open, [100])
    await account.created()
    cluster.world.crash('worker1')
    await failure(account.rpcSync().add(1))
    expect(await failure(account.rpcSync().add(1))).toMatchObject({ code: 'WORKER_DIED' })
    expect(thrown(() => account.remote().add(1))).toMatchObject({ code: 'WORKER_DIED' })
  })
})

test('RREF-33: a call of a method is two messages, also one that answers later', async () => {
  await overSeeds(5, 2, async (cluster) => {
    const account = remote('worker1', Account, [100])
    await account.rpcSync().add(0)
    const [there, back] = [cluster.gate(0, 1).sent, cluster.gate(1, 0).sent]
    const before = [there.length, back.length]
    expect(await account.rpcSync().add(1)).toBe(101)
    expect(await account.rpcSync().addLater(1)).toBe(102)
    expect(there.slice(before[0])).toEqual(['CALL', 'CALL'])
    expect(back.slice(before[1])).toEqual(['RESULT', 'RESULT'])
    account.dispose()
  })
})

test('RREF-33: the end of the last reference has its turn behind the calls that were made through it', async () => {
  await overSeeds(5, 2, async (cluster) => {
    const till = remote('worker1', Till, [100])
    await till.rpcSync().add(0)
    // All of it arrives at once, and ends of references have a higher lane than calls. A serial actor whose last reference has gone takes no more calls.
    cluster.gate(0, 1).shut()
    const sums = [till.rpcSync().add(1), till.rpcSync().add(1)]
    till.dispose()
    cluster.gate(0, 1).unshut()
    expect(await Promise.all(sums)).toEqual([101, 102])
  })
})
