/** The live table: who holds what, and since when. */
import { describe, expect, test } from '@jest/globals'
import { call, currentWorker, remote, rref } from '../api/api.js'
import { expose } from '../common/function-registry.js'
import { Cluster, overSeeds } from '../worker/sim-cluster.suite.js'
import type { RRef } from './rref.js'
import { describeLeaks, referenceLeaks, typeName } from './rref-table.js'

const sleep = (ms: number): Promise<void> => {
  const { clock } = currentWorker()
  return new Promise((resolve) => {
    clock.setTimer(ms, resolve)
  })
}
class Thing {}
const make = (value: unknown) => value
const never = () => new Promise<never>(() => {})
const fails = (): never => {
  throw new Error('no')
}
const kept: RRef[] = []
const keep = (ref: RRef) => {
  kept.push(ref)
}
const dropKept = () => {
  for (const ref of kept.splice(0)) ref.dispose()
}
const table = () => currentWorker().references()
expose({ Thing, make, never, fails, keep, dropKept, table })

describe('references()', () => {
  test('RREF-31: an owner sees its values, their types, who holds them and since when; a user what it holds', async () => {
    await overSeeds(3, 3, async () => {
      const thing = remote('worker1', Thing)
      await thing.created()
      await sleep(100)
      await call('worker2', keep, [thing])
      await sleep(10)
      const owner = await call('worker1', table)
      expect(owner.held).toEqual([])
      expect(owner.owned).toHaveLength(1)
      const [owned] = owner.owned
      expect(owned).toMatchObject({ rrefId: thing.rrefId, type: 'Thing', madeAt: null })
      expect(owned!.ageMs).toBeGreaterThanOrEqual(110)
      expect(owned!.holders.map(({ worker }) => worker.name)).toEqual(['worker0', 'worker2'])
      const [mine, theirs] = owned!.holders
      expect(mine!.ageMs).toBeGreaterThanOrEqual(110)
      expect(theirs!.ageMs).toBeLessThan(30)
      const here = currentWorker().references()
      expect(here).toMatchObject({
        owned: [],
        held: [{ rrefId: thing.rrefId, forkId: mine!.forkId, owner: { name: 'worker1' }, confirmed: true, disposed: false, children: 0 }],
      })
      expect(here.held[0]!.ageMs).toBeGreaterThanOrEqual(110)
      expect((await call('worker2', table)).held).toMatchObject([{ forkId: theirs!.forkId, confirmed: true }])
      thing.dispose()
      await call('worker2', dropKept)
      await sleep(1)
      for (const worker of ['worker0', 'worker1', 'worker2']) expect(await call(worker, table)).toEqual({ owned: [], held: [] })
    })
  })

  test('RREF-31: values that are being made, that failed, and what was disposed and cannot end yet', async () => {
    const cluster = new Cluster(1, 3)
    await cluster.run(0, async () => {
      const pending = remote('worker1', never)
      const failed = remote('worker1', fails)
      await failed.created().catch(() => {})
      expect((await call('worker1', table)).owned.map(({ type }) => type)).toEqual(['pending', 'error'])
      cluster.gate(2, 0).shut()
      call('worker2', keep, [pending]).catch(() => {})
      pending.dispose()
      await sleep(1)
      expect(currentWorker().references().held).toMatchObject([{ disposed: false }, { disposed: true, children: 1 }].reverse())
    })
    kept.length = 0
  })

  test('RREF-31: with referenceStacks each reference says where it was made', async () => {
    const cluster = new Cluster(1, 2, { referenceStacks: true })
    await cluster.run(0, async () => {
      const made = remote('worker1', make, [1])
      const mine = rref(1)
      await call('worker1', keep, [mine])
      const { owned, held } = currentWorker().references()
      for (const { madeAt } of [...owned, ...held]) {
        expect(madeAt!.split('\n')[0]).toContain('rref-table.sim.test')
        expect(madeAt).not.toMatch(/rref-context|worker-runtime|api\.js/)
      }
      made.dispose()
      await call('worker1', dropKept)
    })
    expect(await cluster.leftovers()).toEqual([])
  })

  test('RREF-31: what a value is called', () => {
    const named = [1, 'x', null, undefined, 1n, new Thing(), [], new Map(), Object.create(null), { constructor: 5 }].map(typeName)
    expect(named).toEqual(['number', 'string', 'null', 'undefined', 'bigint', 'Thing', 'Array', 'Map', 'object', 'Object'])
  })
})

describe('leaks', () => {
  test('RREF-32: each reference once, with owner, holder and age; none when all are disposed', async () => {
    const cluster = new Cluster(1, 3)
    const tables = () => Object.fromEntries(cluster.workers.map((worker) => [worker.info.name, worker.references()]))
    await cluster.run(0, async () => {
      const thing = remote('worker1', Thing)
      await call('worker2', keep, [thing])
      const leaks = referenceLeaks(tables())
      expect(leaks.map(({ owner, holder, type }) => [owner, holder, type]).sort()).toEqual([
        ['worker1', 'worker0', 'Thing'],
        ['worker1', 'worker2', 'Thing'],
      ])
      expect(describeLeaks(leaks)).toMatch(/^ {2}RRef \d+ \(Thing\) of worker 'worker1', held by 'worker0' for \d+ ms$/m)
      expect(describeLeaks(leaks, 1).split('\n')).toEqual([expect.stringContaining('worker1'), '  and 1 more'])
      thing.dispose()
      await call('worker2', dropKept)
      await sleep(1)
      expect(referenceLeaks(tables())).toEqual([])
    })
  })

  test('RREF-32: of an owner that is not asked, the holder says what it knows', () => {
    const owner = { name: 'worker1', id: 1 }
    const held = { rrefId: 5n, forkId: 6n, owner, confirmed: true, disposed: false, children: 0, ageMs: 7.4, madeAt: null }
    const leaks = referenceLeaks({ worker0: { owned: [], held: [held, { ...held, forkId: 7n, madeAt: 'at f (a.ts:1)\n at g' }] } })
    expect(describeLeaks(leaks).split('\n')).toEqual([
      "  RRef 5 of worker 'worker1', held by 'worker0' for 7 ms",
      "  RRef 5 of worker 'worker1', held by 'worker0' for 7 ms, made at f (a.ts:1)",
    ])
  })

  test('RREF-32: who inspects a worker is told of its own when it closes', async () => {
    const cluster = new Cluster(1, 2)
    const told: unknown[] = []
    await cluster.run(0, async () => {
      const thing = remote('worker1', Thing)
      await thing.created()
      for (const worker of cluster.workers) {
        worker.inspect((event) => {
          if (event.kind === 'reference-leaked')
            told.push({ at: worker.info.name, owner: event.owner, holder: event.holder, type: event.type })
        })
      }
      await cluster.workers[1]!.close()
      expect(told).toEqual([{ at: 'worker1', owner: 'worker1', holder: 'worker0', type: 'Thing' }])
      thing.dispose()
      await currentWorker().close()
      expect(told).toHaveLength(1)
    })
  })
})
