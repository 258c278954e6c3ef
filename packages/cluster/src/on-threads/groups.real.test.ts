/** Groups on threads, one case of each kind; the simulation has the others. */
import { describe, expect, test } from '@jest/globals'
import { launcher } from '../clusters.fixture.js'
import * as groups from './fixtures/groups.js'

const launch = launcher()
const GROUPS = new URL('./fixtures/groups.js', import.meta.url)

describe('groups on threads', () => {
  test('GRP-6, GRP-8, STO-3: meetings and a store', async () => {
    const cluster = await launch(GROUPS, { workers: 3 })
    const on = cluster.workers.map((worker) => cluster.on(worker))
    const expected = ['worker0', 'WORKER0', 'worker1', 'WORKER1', 'worker2', 'WORKER2']
    expect(await Promise.all(on.map((worker) => worker.run(groups.gatherNames)))).toEqual([expected, expected, expected])
    expect(await Promise.all([on[0]!, on[1]!].map((worker) => worker.run(groups.gatherTimeout, 50)))).toEqual([['worker2'], ['worker2']])
    const waits = on[2]!.run(groups.waitForKey, 'k')
    await on[1]!.run(groups.setKey, 'k', 'v')
    expect(await waits).toBe('v')
    // The one that comes late to a round that has failed.
    expect(await on[2]!.run(groups.gatherTimeout, 50)).toEqual(['worker2'])
    await cluster.close()
  })

  test('SHD-1, SHD-8: workers end together when chains that nobody awaits have ended, and again in the same process', async () => {
    for (let time = 0; time < 2; time++) {
      const cluster = await launch(GROUPS, { workers: 3 })
      const hops = await Promise.all(cluster.workers.map((worker) => cluster.on(worker).run(groups.endTogether, 20)))
      expect(hops[1]).toBeGreaterThan(0)
      const debugInfo = await cluster.debugInfo()
      for (const info of Object.values(debugInfo))
        expect(info).toMatchObject({ pendingCalls: 0, servingCalls: 0, openLinks: 0, deadLetters: 0 })
      await cluster.close()
      expect((await cluster.closed).deaths).toEqual([])
    }
  })

  test('SHD-4, SHD-5: one that dies, or never comes, is named', async () => {
    const cluster = await launch(GROUPS, { workers: 3 })
    const waits = ['worker0', 'worker2'].map((name) => cluster.on(name).run(groups.shutdownWhile, 'worker1', 2))
    expect(await Promise.all(waits)).toEqual(['WORKER_DIED worker1', 'WORKER_DIED worker1'])
    const second = await launch(GROUPS, { workers: 2 })
    expect(await second.on('worker1').run(groups.shutdownCode, 50)).toBe('GROUP_TIMEOUT worker0')
  })

  test('SHD-1: close waits for what callbacks call, on any worker, after the run that began it', async () => {
    const out: string[] = []
    const cluster = await launch(GROUPS, { workers: 3, stdout: (text) => void out.push(text) })
    await Promise.all(cluster.workers.map((worker) => cluster.on(worker).run(groups.wander, 20)))
    await cluster.close({ timeoutMs: 30_000 })
    expect(out.join('').split('wandered to the end').length - 1).toBe(3)
  })

  test('GRP-2: a worker leaves by itself, and its peers know that it has not died', async () => {
    const cluster = await launch(GROUPS, { workers: 2 })
    await cluster.on('worker1').run(groups.leaveGroup)
    expect(await cluster.on('worker0').run(groups.gatherNames)).toEqual(['worker0', 'WORKER0'])
    while ((await cluster.on('worker0').run(groups.causeOf, 1)) === undefined);
    expect(await cluster.on('worker0').run(groups.causeOf, 1)).toBe('left')
    await cluster.close()
  })
})
