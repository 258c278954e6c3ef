/** A guest calls and is called, and no group counts it: over seeds. `postgrad` has its main thread as one. */
import { expect, test } from '@jest/globals'
import type { PostgradError } from '@postgrad/base'
import { MessageType } from '@postgrad/wire/internal'
import { call, currentRuntime, remote } from '../api/api.js'
import { leave, shutdown } from '../api/group.js'
import { getWorkerInfo, getWorkerInfos } from '../api/names.js'
import { expose } from '../common/function-registry.js'
import { GroupWhat } from '../groups/group-protocol.js'
import { meet } from '../groups/meet.js'
import { Cluster, failure, withSeed } from './sim-cluster.suite.js'

const who = (): string => currentRuntime().info.name
const others = (): string[] => getWorkerInfos().map(({ name }) => name)
const later = (ms: number): Promise<number> => {
  const { clock } = currentRuntime()
  return new Promise((resolve) => clock.setTimer(ms, () => resolve(ms)))
}
expose({ guestWho: who, guestOthers: others, guestLater: later })

const SEEDS = 20
const WORKERS = ['worker0', 'worker1', 'worker2']

/** Four, of which the last is a guest. */
async function overClusters(main: (cluster: Cluster) => Promise<void>, letters = 0): Promise<void> {
  for (let seed = 1; seed <= SEEDS; seed++) {
    await withSeed(seed, async () => {
      const cluster = new Cluster(seed, 4, { guests: [3] })
      await main(cluster)
      expect(await cluster.leftovers({ letters })).toEqual([])
    })
  }
}

function on<T>(cluster: Cluster, ids: readonly number[], main: () => Promise<T>): Promise<T[]> {
  return cluster.world.run(Promise.all(ids.map((id) => cluster.workers[id]!.run(main))))
}

test('GRP-35: a guest calls and is called by its name, and nobody lists it, itself neither', async () => {
  await overClusters(async (cluster) => {
    await cluster.run(3, async () => {
      expect(await call('worker1', who)).toBe('worker1')
      expect(await call('worker1', others)).toHaveLength(3)
      expect(others()).toEqual(WORKERS)
      expect(getWorkerInfo().name).toBe('worker3')
      using value = remote('worker0', later, [1])
      expect(await value.toHere()).toBe(1)
    })
    await cluster.run(0, async () => {
      expect(await call('worker3', who)).toBe('worker3')
      expect(others().sort()).toEqual(WORKERS)
    })
  })
})

test('GRP-35: groups that name nobody meet without it; its own say so; one that all name has it', async () => {
  await overClusters(async (cluster) => {
    await on(cluster, [0, 1, 2], () => meet(null))
    expect(await cluster.run(3, () => failure(meet(null)))).toMatchObject({ code: 'INVALID_ARGUMENT' })
    await on(cluster, [0, 1, 2, 3], () => meet(null, [...WORKERS, 'worker3']))
  })
})

test('GRP-36: the end of all workers waits for no guest but for its calls, and is told to it', async () => {
  await overClusters(async (cluster) => {
    const asked = cluster.workers[3]!.run(() => call('worker1', later, [50]))
    await on(cluster, [0, 1, 2], async () => {
      if (currentRuntime().info.id === 1) await later(1)
      await shutdown({ timeoutMs: 1000 })
      expect(currentRuntime().isClosed).toBe(true)
    })
    expect(cluster.world.nowMs).toBeGreaterThanOrEqual(50)
    expect(await cluster.world.run(asked)).toBe(50)
    await cluster.run(3, async () => {
      await later(10)
      for (const name of WORKERS) expect(await failure(call(name, who))).toMatchObject({ code: 'WORKER_DIED', values: { cause: 'left' } })
    })
  })
})

test('GRP-36: the shutdown of a guest is its leave; its end, in order or not, ends no group', async () => {
  for (const end of [() => shutdown(), () => leave(), () => currentRuntime().close()]) {
    await overClusters(async (cluster) => {
      await on(cluster, [0, 1, 2, 3], async () => {
        if (currentRuntime().info.id === 3) return end()
        await later(5)
        await shutdown({ timeoutMs: 1000 })
      })
      for (const { isClosed } of cluster.workers) expect(isClosed).toBe(true)
    })
  }
})

test('GRP-36: a crash of a guest ends no group either', async () => {
  await overClusters(async (cluster) => {
    const meeting = on(cluster, [0, 1, 2], async () => {
      await later(5)
      await meet(null)
      await shutdown({ timeoutMs: 1000 })
    })
    cluster.world.crash('worker3')
    await meeting
  })
})

test('GRP-36: what a guest says of the end of all is a dead letter', async () => {
  const said = [
    [GroupWhat.JOIN, [0], null],
    [GroupWhat.REPORT, [0, []], null],
    [GroupWhat.RELEASE, [0, 1, 2], null],
    [GroupWhat.DONE, null, null],
    [GroupWhat.FAILED, null, new Error('by a guest')],
    [GroupWhat.ASK, [1, []], null],
    [GroupWhat.ANSWER, [1, null], null],
    [GroupWhat.OVER, ['g', 1], null],
  ]
  await overClusters(async (cluster) => {
    const ended = on(cluster, [0, 1, 2], async () => {
      await later(20)
      return shutdown({ timeoutMs: 1000 }).catch((error: PostgradError) => error.code)
    })
    cluster.workers[3]!.run(() => {
      for (const body of said) cluster.workers[3]!.post(0, MessageType.GROUP_UPDATE, body)
    })
    expect(await ended).toEqual([undefined, undefined, undefined])
  }, said.length)
})
