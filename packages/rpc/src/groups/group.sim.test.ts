/** Meetings, leaving, and the end of a group, over seeds. */
import { setImmediate } from 'node:timers/promises'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { describe, expect, test } from '@jest/globals'
import type { PostgradError } from '@postgrad/base'
import { tensor } from '@postgrad/tensor'
import { call, currentRuntime, remote, rref } from '../api/api.js'
import { leave, shutdown } from '../api/group.js'
import { expose } from '../common/function-registry.js'
import type { UserRRef } from '../references/rref.js'
import { Cluster, type ClusterOptions, failure, runWithCrash, withSeed } from '../worker/sim-cluster.suite.js'
import type { WorkerRuntime } from '../worker/worker-runtime.js'
import { arrive, NAMES_KEPT } from './gather.js'
import { byName } from './group-errors.js'
import { meet } from './meet.js'

const echo = <T>(value: T) => value
const never = () => new Promise<never>(() => {})
/** A round that is part of a call. */
const gatherFor = (timeoutMs: number) => meet(currentRuntime().info.name, undefined, { timeoutMs }).then(() => {})
const roundFor = (round: string) => meet(null, undefined, { round })
/** How a call to another worker ends that is made a while later. */
const askLater = async (to: string, pauseMs: number): Promise<string> => {
  await sleep(pauseMs)
  return call(to, echo, [1]).then(
    () => 'served',
    (error: PostgradError) => String(error.values.cause),
  )
}
const sleep = (ms: number): Promise<number> => {
  const { clock } = currentRuntime()
  return new Promise((resolve) => {
    clock.setTimer(ms, () => resolve(ms))
  })
}
const log: string[] = []
const note = (text: string) => {
  log.push(`${currentRuntime().info.name} ${text}`)
}
/** Calls on and does not wait: the last one notes. PyTorch: `multi_layer_nested_async_rpc`. */
const hop = (ttl: number): void => {
  if (ttl === 0) {
    note('last hop')
    return
  }
  const { id } = currentRuntime().info
  call((id * 5 + 1) % 4, hop, [ttl - 1]).catch((error) => note(`hop ${ttl}: ${error.code}`))
}
/** Its answer sets off another call, whose answer sets off another. */
const callBack = async (times: number): Promise<void> => {
  for (let i = 0; i < times; i++) await call((currentRuntime().info.id + 1) % 3, echo, [i])
  note('called back')
}
expose({ gatherFor, roundFor, askLater, echo, never, sleep, note, hop, callBack })

/** `npm run soak -- --seeds 1000 groups/group` takes more. */
const SEEDS = Number(process.env.POSTGRAD_SOAK_SEEDS ?? 8)

/** Runs `main` on every worker at once. */
async function everywhere(cluster: Cluster, main: (worker: WorkerRuntime) => Promise<unknown>): Promise<void> {
  await cluster.world.run(Promise.all(cluster.workers.map((worker) => worker.run(() => main(worker)))))
}

async function overClusters(
  size: number,
  body: (cluster: Cluster, seed: number) => Promise<void>,
  options: ClusterOptions = {},
): Promise<void> {
  for (let seed = 1; seed <= SEEDS; seed++) {
    await withSeed(seed, async () => {
      log.length = 0
      const cluster = new Cluster(seed, size, options)
      await body(cluster, seed)
      expect(cluster.bugs).toEqual([])
    })
  }
}

describe('meetings', () => {
  test('GRP-6: a meeting gives everybody the values of all, by name, as copies', async () => {
    await overClusters(4, async (cluster) => {
      const own = tensor([1, 2])
      await everywhere(cluster, async ({ info: { id, name } }) => {
        const values = await meet({ id, nothing: undefined, own })
        expect([...values.keys()]).toEqual(['worker0', 'worker1', 'worker2', 'worker3'])
        expect([...values.values()].map((value) => value.id)).toEqual([0, 1, 2, 3])
        const mine = values.get(name)!
        expect(mine.own).not.toBe(own)
        expect([...mine.own.dataSync()]).toEqual([1, 2])
        expect('nothing' in mine).toBe(true)
      })
      expect(await cluster.leftovers()).toEqual([])
    })
  })

  test('GRP-6: nobody passes before all have come to it, again and again', async () => {
    await overClusters(4, async (cluster) => {
      const at = [0, 0, 0, 0]
      await everywhere(cluster, async ({ info: { id } }) => {
        for (let round = 1; round <= 5; round++) {
          await sleep(cluster.world.random.below(20))
          at[id] = round
          await meet(null)
          expect(Math.min(...at)).toBe(round)
          await meet(null)
        }
      })
      expect(await cluster.leftovers()).toEqual([])
    })
  })

  test('GRP-7: any subsets at the same time, named by names, ids or infos, in any order and more than once', async () => {
    await overClusters(5, async (cluster) => {
      const passed: string[] = []
      await everywhere(cluster, async (worker) => {
        const { id } = worker.info
        const rounds: Promise<unknown>[] = []
        if (id !== 4) rounds.push(meet(null, [3, 'worker1', 'worker1', worker.info, 'worker0', 'worker2']).then(() => passed.push('most')))
        if (id % 2 === 0) rounds.push(meet(id, ['worker4', 'worker0', 'worker2']).then((all) => passed.push([...all.values()].join())))
        if (id === 3) rounds.push(meet(null, ['worker3']).then(() => passed.push('alone')))
        // Two of the same members are two.
        if (id < 2) for (const i of [1, 2]) rounds.push(meet(`${i}`, [0, 1]).then((all) => passed.push([...all.values()].join())))
        await Promise.all(rounds)
      })
      expect(passed.sort()).toEqual(['0,2,4', '0,2,4', '0,2,4', '1,1', '1,1', '2,2', '2,2', 'alone', ...Array(4).fill('most')])
      expect(await cluster.leftovers()).toEqual([])
    })
  })

  test('GRP-8: who waits too long fails, and with it all others, with the names of those who did not come, also those who come later', async () => {
    await overClusters(4, async (cluster) => {
      await everywhere(cluster, async ({ info: { id } }) => {
        if (id === 3) await sleep(500)
        if (id === 0) await sleep(50)
        const error = await failure(meet(id, undefined, { timeoutMs: 100 }))
        expect(error).toMatchObject({ code: 'GROUP_TIMEOUT', op: 'meet', values: { missing: ['worker3'], timeoutMs: 100 } })
        expect(error.message).toContain("timed out after 100 ms: worker 'worker3' did not take part")
        // The next round is a new one.
        await sleep(1000)
        expect((await meet(id)).size).toBe(4)
      })
      expect(await cluster.leftovers()).toEqual([])
    })
  })

  test('GRP-8: a leader that does not answer is named by those who wait for it', async () => {
    const cluster = new Cluster(1, 2)
    await cluster.run(1, async () => {
      cluster.gate(1, 0).shut()
      const error = await failure(meet(null, undefined, { timeoutMs: 100 }))
      expect(error).toMatchObject({ code: 'GROUP_TIMEOUT', values: { missing: ['worker0'] } })
    })
  })

  test('GRP-15: members in step meet again after one of them has missed rounds', async () => {
    for (const missed of [1, 3]) {
      await overClusters(3, async (cluster) => {
        const others = (id: number) => ['worker0', 'worker1', 'worker2'].filter((_, other) => other !== id)
        for (let absent = 0; absent < 3; absent++) {
          const outcomes = new Map<number, string[]>()
          for (let step = 0; step < missed + 3; step++) {
            // Every member begins its step before any begins the next.
            await everywhere(cluster, async ({ info: { id } }) => {
              if (id === absent && step < missed) return
              await sleep(cluster.world.random.below(20))
              const outcome = await meet(null, undefined, { timeoutMs: 200 }).then(
                () => 'met',
                ({ code, values }: PostgradError) => `${code} ${values.late} ${String(values.missing)}`,
              )
              outcomes.set(step, [...(outcomes.get(step) ?? []), outcome])
            })
          }
          const timedOut = `GROUP_TIMEOUT false worker${absent}`
          for (let step = 0; step < missed; step++) expect(outcomes.get(step)).toEqual(Array(2).fill(timedOut))
          // It fails once, and at once, for all that it has missed.
          expect(outcomes.get(missed)!.sort()).toEqual([timedOut, timedOut, `GROUP_TIMEOUT true worker${absent}`])
          expect(outcomes.get(missed + 1)).toEqual(Array(3).fill('met'))
          expect(outcomes.get(missed + 2)).toEqual(Array(3).fill('met'))
          expect(others(absent)).toHaveLength(2)
        }
        expect(await cluster.leftovers()).toEqual([])
      })
    }
  })

  test('GRP-15: who comes too late is told which round was abandoned, and by trying again meets those who try again', async () => {
    await overClusters(2, async (cluster) => {
      const met: [number, number][] = []
      await everywhere(cluster, async ({ info: { id } }) => {
        if (id === 1) await sleep(120)
        for (let attempt = 1; ; attempt++) {
          try {
            const values = await meet(`${id}`, undefined, { timeoutMs: 100 })
            expect([...values.values()]).toEqual(['0', '1'])
            met.push([id, attempt])
            break
          } catch (error) {
            const { code, values, message } = error as PostgradError
            expect({ code, round: values.round, late: values.late }).toEqual({ code: 'GROUP_TIMEOUT', round: 1, late: id === 1 })
            if (id === 1) {
              expect(cluster.world.nowMs).toBeLessThan(180)
              expect(message).toBe(
                "meet: round 1 timed out after 100 ms: worker 'worker1' did not take part, this call of worker 'worker1' came after that. " +
                  'Call it again: the next call of this worker joins the round in which the others are then.',
              )
            }
          }
        }
      })
      expect(met.sort()).toEqual([
        [0, 2],
        [1, 2],
      ])
      expect(await cluster.leftovers()).toEqual([])
    })
  })

  test('GRP-15: several under way end together, and so do the several calls of one that has not heard of it', async () => {
    await overClusters(2, async (cluster) => {
      const gather = (value: string, timeoutMs: number) =>
        meet(value, undefined, { timeoutMs }).then(
          (all) => [...all.values()].join(),
          ({ code, values }: PostgradError) => `${code} ${values.late}`,
        )
      await everywhere(cluster, async ({ info: { id } }) => {
        if (id === 1) await sleep(200)
        const first = await Promise.all([gather(`a${id}`, 100), gather(`b${id}`, 5000)])
        expect(first).toEqual(Array(2).fill(`GROUP_TIMEOUT ${id === 1}`))
        expect(cluster.world.nowMs).toBeLessThan(300)
        await sleep(500)
        // They are two again, in the order of the calls.
        expect(await Promise.all([gather(`c${id}`, 1000), gather(`d${id}`, 1000)])).toEqual(['c0,c1', 'd0,d1'])
      })
      expect(await cluster.leftovers()).toEqual([])
    })
  })

  test('GRP-15: after any rounds that some missed, gave up or cancelled, all are in step again after two', async () => {
    const ends = new Map<string, number>()
    await overClusters(4, async (cluster, seed) => {
      const { random } = cluster.world
      const gather = (value: unknown, timeoutMs: number, round?: string) =>
        meet(value, undefined, round === undefined ? { timeoutMs } : { timeoutMs, round }).then(
          (all) => [...all.values()],
          (error: PostgradError) => error.code,
        )
      await everywhere(cluster, async ({ info: { name } }) => {
        for (let n = random.below(12); n > 0; n--) {
          await sleep(random.below(60))
          const round = random.below(4) === 0 ? `name ${random.below(3)}` : undefined
          const calls = Array.from({ length: 1 + random.below(3) }, () => gather(name, 1 + random.below(80), round))
          // A worker whose call is cancelled has not come to its rounds.
          if (random.below(5) === 0) void call(name, gatherFor, [random.below(80)], { timeoutMs: 1 + random.below(40) }).catch(() => {})
          for (const outcome of await Promise.all(calls)) {
            const end = typeof outcome === 'string' ? outcome : 'met'
            ends.set(end, (ends.get(end) ?? 0) + 1)
            if (typeof outcome !== 'string') expect(outcome).toEqual(['worker0', 'worker1', 'worker2', 'worker3'])
          }
        }
      })
      await cluster.world.drain()
      const last: unknown[] = []
      for (const round of [undefined, 'name 0', 'name 1', 'name 2']) {
        for (let step = 0; step < 4; step++) {
          await everywhere(cluster, async () => {
            await sleep(random.below(10))
            const outcome = await gather(step, 200, round)
            if (step >= 2) last.push(outcome)
          })
        }
      }
      expect({ seed, last }).toEqual({ seed, last: [2, 3, 2, 3, 2, 3, 2, 3].flatMap((step) => Array(4).fill(Array(4).fill(step))) })
      // A reply may cross the word that nobody waits for it any more.
      const strange = cluster.workers.flatMap(({ letters }) => letters.last()).filter(({ reason }) => reason !== 'unknown-request')
      expect([strange, await cluster.leftovers({ letters: null })]).toEqual([[], []])
    })
    expect(Math.min(ends.get('met')!, ends.get('GROUP_TIMEOUT')!)).toBeGreaterThan(10)
  })

  test('GRP-15: a leader that was silent for a while meets the others again', async () => {
    const cluster = new Cluster(1, 2)
    await everywhere(cluster, async ({ info: { id } }) => {
      if (id === 0) {
        await sleep(3000)
        cluster.gate(1, 0).unshut()
        await sleep(500)
      } else {
        cluster.gate(1, 0).shut()
        expect(await failure(meet(null, undefined, { timeoutMs: 100 }))).toMatchObject({
          code: 'GROUP_TIMEOUT',
          values: { missing: ['worker0'] },
        })
        await sleep(2500)
      }
      for (const value of ['a', 'b', 'c']) expect([...(await meet(value, undefined, { timeoutMs: 5000 })).values()]).toEqual([value, value])
      for (let n = 0; n < 3; n++) await meet(null, undefined, { timeoutMs: 5000 })
    })
    expect(await cluster.leftovers({ letters: 1 })).toEqual([])
  })

  test('GRP-16: members meet in rounds of the same name only, and one that missed some is in step by the next name', async () => {
    await overClusters(3, async (cluster) => {
      await everywhere(cluster, async ({ info: { id } }) => {
        for (let epoch = 0; epoch < 4; epoch++) {
          // Worker 1 stays away from one and continues with the next.
          if (id === 1 && epoch === 1) continue
          const gathered = await meet(`${id} in ${epoch}`, undefined, { round: epoch, timeoutMs: epoch === 1 ? 100 : 1000 }).then(
            (all) => [...all.values()],
            (error: PostgradError) => error,
          )
          if (epoch === 1) {
            expect(gathered).toMatchObject({ code: 'GROUP_TIMEOUT', values: { round: '1', missing: ['worker1'], late: false } })
            expect((gathered as PostgradError).message).toBe(
              "meet: round 1 timed out after 100 ms: worker 'worker1' did not take part, 'worker1' waits in meet '2'. " +
                'All members must give the same name.',
            )
            // Worker 1 has waited in the next one meanwhile.
          } else if (!(gathered instanceof Error)) {
            expect(gathered).toEqual([`0 in ${epoch}`, `1 in ${epoch}`, `2 in ${epoch}`])
          } else {
            throw gathered
          }
        }
      })
      expect(await cluster.leftovers()).toEqual([])
    })
  })

  test('GRP-16: a named round that was abandoned is told to who comes late, and meets when all call it again', async () => {
    await overClusters(2, async (cluster) => {
      await everywhere(cluster, async ({ info: { id } }) => {
        if (id === 1) await sleep(300)
        const error = await failure(meet(null, undefined, { round: 'load', timeoutMs: 100 }))
        expect(error).toMatchObject({ code: 'GROUP_TIMEOUT', values: { round: 'load', missing: ['worker1'], late: id === 1 } })
        // No other round is touched by it.
        await meet(null)
        await meet(null, undefined, { round: 'save' })
        for (let n = 0; n < 3; n++) await meet(null, undefined, { round: 'load', timeoutMs: 100 })
      })
      expect(await cluster.leftovers()).toEqual([])
    })
  })

  test('GRP-8: who misses a round, and waits in one of other members, is not said to wait elsewhere', async () => {
    const cluster = new Cluster(1, 3)
    await everywhere(cluster, async ({ info: { id } }) => {
      if (id === 2) return
      const members = id === 0 ? undefined : ['worker0', 'worker1']
      const error = await failure(meet(null, members, { round: 'load', timeoutMs: id === 0 ? 100 : 300 }))
      expect(error).toMatchObject({ code: 'GROUP_TIMEOUT', values: { missing: id === 0 ? ['worker1', 'worker2'] : ['worker0'] } })
      expect(error.message).not.toMatch(/waits in/)
    })
  })

  test('GRP-8, GRP-10: every error names the operation of users that the round is part of, and those of different ones do not meet', async () => {
    const cluster = new Cluster(1, 2)
    const op = 'initX'
    await everywhere(cluster, async ({ info: { id } }) => {
      const ends = (options: object, names?: string[]) => failure(meet(null, names, { op, ...options }))
      expect(await ends({}, [`worker${1 - id}`])).toMatchObject({ code: 'INVALID_ARGUMENT', op })
      expect(await ends({}, ['nobody'])).toMatchObject({ code: 'UNKNOWN_WORKER', op })
      expect(await ends({ timeoutMs: -1 })).toMatchObject({ code: 'TIMEOUT_INVALID', op })
      if (id === 0) {
        const error = await ends({ round: 'a', timeoutMs: 100 })
        expect(error).toMatchObject({ code: 'GROUP_TIMEOUT', op, values: { elsewhere: ["'worker1' waits in initY 'a'"] } })
      } else await failure(meet(null, undefined, { op: 'initY', round: 'a', timeoutMs: 150 }))
      if (id === 1) return
      const last = ends({ timeoutMs: 0 })
      await currentRuntime().close()
      expect(await last).toMatchObject({ code: 'RPC_SHUT_DOWN', op })
    })
  })

  test('GRP-16: who looks at what waits finds the name of a round', async () => {
    const cluster = new Cluster(1, 3)
    await cluster.run(0, async () => {
      const rounds = ['step 3', undefined].map((round) => failure(meet(null, undefined, { timeoutMs: 100, ...(round && { round }) })))
      await sleep(1)
      const waits = currentRuntime()
        .waits()
        .waits.filter(({ kind }) => kind === 'gather')
      expect(waits.map(({ what }) => what)).toEqual([
        "meet 'step 3' of 3 workers, in which worker0 waits for worker1, worker2",
        'meet of 3 workers, in which worker0 waits for worker1, worker2',
      ])
      await Promise.all(rounds)
    })
  })

  test('GRP-16: many names leave nothing behind', async () => {
    const cluster = new Cluster(1, 2)
    await everywhere(cluster, async ({ info: { id } }) => {
      for (let n = 0; n < 200; n++) await meet(null, undefined, { round: n })
      // Each is abandoned: its other member never comes.
      if (id === 0) for (let n = 0; n < NAMES_KEPT + 50; n++) await failure(meet(null, undefined, { round: `lost ${n}`, timeoutMs: 0.01 }))
    })
    const { slots } = cluster.workers[0] as unknown as { slots: Map<symbol, Map<string, unknown> & { meetings?: Map<string, unknown> }> }
    const sizes = [...slots.values()].flatMap((slot) => slot.meetings?.size ?? slot.size ?? [])
    expect(sizes.filter((size) => size > 2)).toEqual([NAMES_KEPT, NAMES_KEPT])
    expect(await cluster.leftovers()).toEqual([])
  })

  test('GRP-16, GRP-17: names whose rounds were abandoned leave nothing behind', async () => {
    const cluster = new Cluster(1, 2)
    await cluster.run(1, async () => {
      for (let n = 0; n < 50; n++) await failure(call('worker1', roundFor, [`lost ${n}`], { timeoutMs: 5 }))
      await sleep(20)
    })
    const { slots } = cluster.workers[0] as unknown as { slots: Map<symbol, { meetings?: Map<string, unknown> }> }
    expect([...slots.values()].flatMap(({ meetings }) => (meetings === undefined ? [] : [meetings.size]))).toEqual([0])
    expect(await cluster.leftovers()).toEqual([])
  })

  test('GRP-15, GRP-16: many names that were abandoned take nothing from what is known of rounds without a name', async () => {
    const cluster = new Cluster(1, 2)
    await everywhere(cluster, async ({ info: { id } }) => {
      if (id === 0) await failure(meet(null, undefined, { timeoutMs: 5 }))
      else await sleep(20)
      if (id === 1) expect(await failure(meet(null))).toMatchObject({ values: { late: true } })
      await meet(null)
      if (id === 0) for (let n = 0; n < NAMES_KEPT + 50; n++) await failure(meet(null, undefined, { round: `lost ${n}`, timeoutMs: 0.01 }))
      await meet(null)
    })
    expect(await cluster.leftovers()).toEqual([])
  })

  test('GRP-15: what is known of rounds with a worker ends with that worker', async () => {
    const cluster = new Cluster(1, 2)
    await cluster.run(0, async () => {
      await failure(meet(null, undefined, { timeoutMs: 5 }))
      await failure(meet(null, undefined, { timeoutMs: 5, round: 'named' }))
      const { slots } = cluster.workers[0] as unknown as { slots: Map<symbol, { size?: number; meetings?: { size: number } }> }
      const kept = () => [...slots.values()].flatMap(({ meetings, size }) => meetings?.size ?? size ?? []).filter((count) => count !== 0)
      expect(kept()).toEqual([2, 2])
      cluster.world.crash('worker1')
      await sleep(50)
      expect(kept()).toEqual([])
    })
  })

  test('GRP-17: a member whose call is cancelled while it waits has not come: its next call joins the same round', async () => {
    await overClusters(3, async (cluster) => {
      await everywhere(cluster, async ({ info: { id, name } }) => {
        if (id !== 1) {
          if (id === 2) await sleep(200)
          expect([...(await meet(id)).values()]).toEqual([0, 1, 2])
          return
        }
        expect(await failure(call(name, gatherFor, [60_000], { timeoutMs: 30 }))).toMatchObject({ code: 'RPC_TIMEOUT' })
        await sleep(20)
        expect([...(await meet(1)).values()]).toEqual([0, 1, 2])
      })
      expect(await cluster.leftovers()).toEqual([])
    })
  })

  test('GRP-9: the death of a member, leader or not, ends it at once for all, by name, before or after they came', async () => {
    for (const victim of [0, 1, 2]) {
      await overClusters(3, async (cluster, seed) => {
        const survivors = cluster.workers.filter(({ info: { id } }) => id !== victim)
        cluster.workers[victim]!.run(() => sleep(seed % 2 === 0 ? 200 : 1).then(() => meet(null))).catch(() => {})
        await cluster.world.run(
          Promise.all(
            survivors.map((worker) =>
              worker.run(async () => {
                if (worker.info.id === survivors[0]!.info.id) cluster.world.clock.setTimer(20, () => cluster.world.crash(`worker${victim}`))
                if (seed % 2 === 1) await sleep(40)
                const error = await failure(meet(null, ['worker0', 'worker1', 'worker2']))
                expect(error).toMatchObject({ code: 'WORKER_DIED', values: { worker: `worker${victim}` } })
                expect(cluster.world.nowMs).toBeLessThan(100)
              }),
            ),
          ),
        )
        expect((await cluster.leftovers({ except: [victim] })).filter((line) => !line.includes('dead letters'))).toEqual([])
        for (const { info } of survivors) expect(cluster.info(info.id).gathers ?? 0).toBe(0)
      })
    }
  })

  test('GRP-9: a member that has not heard of the death when it comes is told by the leader', async () => {
    await overClusters(3, async (cluster) => {
      await cluster.run(1, async () => {
        const members = currentRuntime().workers().sort(byName)
        cluster.world.crash('worker2')
        await sleep(10)
        const error = await failure(
          call('worker0', arrive, [{ op: 'meet', members, round: null, era: 0, from: 'worker1', value: null, timeoutMs: 1000 }]),
        )
        expect(error).toMatchObject({ code: 'WORKER_DIED', values: { worker: 'worker2' } })
      })
    })
  })

  test('GRP-8: without a limit it waits as long as it takes', async () => {
    const cluster = new Cluster(1, 2)
    await everywhere(cluster, async ({ info: { id } }) => {
      if (id === 1) await sleep(1_000_000)
      await meet(null, undefined, { timeoutMs: 0 })
      expect(cluster.world.nowMs).toBeGreaterThanOrEqual(1_000_000)
    })
    expect(await cluster.leftovers()).toEqual([])
  })

  test('GRP-9: when the leader closes, it and the others hear of it', async () => {
    const cluster = new Cluster(1, 3)
    await everywhere(cluster, async ({ info: { id } }) => {
      if (id === 2) return
      const round = failure(meet(null))
      await sleep(20)
      if (id === 0) await currentRuntime().close()
      expect((await round).code).toBe(id === 0 ? 'RPC_SHUT_DOWN' : 'WORKER_DIED')
    })
  })

  test('GRP-10: only members call it, and what cannot be sent is no round', async () => {
    const cluster = new Cluster(1, 2)
    await everywhere(cluster, async ({ info: { id } }) => {
      expect(await failure(meet(null, [1 - id]))).toMatchObject({ code: 'INVALID_ARGUMENT', op: 'meet' })
      expect(await failure(meet(null, []))).toMatchObject({ code: 'INVALID_ARGUMENT' })
      expect(await failure(meet(null, ['nobody']))).toMatchObject({ code: 'UNKNOWN_WORKER', op: 'meet' })
      expect(await failure(meet(null, undefined, { timeoutMs: -1 }))).toMatchObject({ code: 'TIMEOUT_INVALID', op: 'meet' })
      if (id === 0) expect(await failure(meet(() => 1))).toMatchObject({ code: 'WIRE_UNSUPPORTED_VALUE' })
      expect([...(await meet(id)).values()]).toEqual([0, 1])
    })
    expect(await failure(meet(null))).toMatchObject({ code: 'RPC_NOT_INITIALIZED' })
    expect(await cluster.leftovers()).toEqual([])
  })

  test('GRP-6: a world of one', async () => {
    const cluster = new Cluster(1, 1)
    await cluster.run(0, async () => {
      await meet(null)
      expect([...(await meet('x'))]).toEqual([['worker0', 'x']])
    })
    expect(await cluster.leftovers()).toEqual([])
  })
})

describe('one worker leaves', () => {
  test('GRP-1, GRP-2: it waits for its own calls and serves what was called before; others see that it has left', async () => {
    await overClusters(3, async (cluster) => {
      const codes: string[] = []
      await everywhere(cluster, async ({ info: { id } }) => {
        if (id === 1) {
          const own = call('worker2', sleep, [50])
          await leave()
          expect(own.done).toBe(true)
          expect(await failure(call('worker0', echo, [1]))).toMatchObject({ code: 'RPC_SHUT_DOWN' })
          return
        }
        const before = call('worker1', sleep, [70])
        for (let i = 0; ; i++) {
          // Without a pause between the calls: each is served, or refused, and none is lost.
          const error = await call('worker1', echo, [i]).then(
            () => null,
            (thrown) => thrown,
          )
          await sleep(3)
          if (error === null) continue
          expect(error).toMatchObject({ code: 'WORKER_DIED', values: { worker: 'worker1', cause: 'left' } })
          codes.push(error.code)
          break
        }
        expect(await before).toBe(70)
        expect(
          new Set(
            currentRuntime()
              .workers()
              .map(({ id: other }) => other),
          ),
        ).toEqual(new Set([0, 2]))
        expect(await call(2 - id, echo, ['still here'])).toBe('still here')
        await sleep(50)
        expect(currentRuntime().deathOf(1)).toMatchObject({ values: { cause: 'left' } })
      })
      expect(codes.length).toBe(2)
      expect(await cluster.leftovers({ except: [1] })).toEqual([])
    })
  })

  test('GRP-3: its references are disposed, and those that it passed on are settled first', async () => {
    await overClusters(3, async (cluster) => {
      await everywhere(cluster, async ({ info: { id } }) => {
        if (id !== 1) return
        const ref = remote('worker0', echo, ['value'])
        // worker2 gets a reference to a value of worker0 from worker1, which leaves at once.
        void call('worker2', keepRef, [ref as UserRRef<string>])
        await leave()
      })
      await cluster.world.drain()
      expect(cluster.info(0)).toMatchObject({ ownerRRefs: 1, forks: 1 })
      await cluster.run(2, async () => {
        expect(await kept!.toHere()).toBe('value')
        kept!.dispose()
      })
      expect(await cluster.leftovers({ except: [1] })).toEqual([])
    })
  })

  test('GRP-4: two that leave at the same time, and a death meanwhile, keep nobody', async () => {
    await overClusters(4, async (cluster, seed) => {
      await cluster.world.run(
        Promise.all(
          cluster.workers.map((worker) =>
            worker.run(async () => {
              const { id } = worker.info
              if (id === 1 || id === 2) await leave()
              if (id === 0) await sleep(100)
              if (id === 3 && seed % 2 === 0) cluster.world.crash('worker3')
            }),
          ),
        ),
      )
      expect(cluster.workers[0]!.deathOf(1)).toMatchObject({ values: { cause: 'left' } })
      expect(cluster.workers[0]!.deathOf(2)).toMatchObject({ values: { cause: 'left' } })
      expect(await cluster.leftovers({ except: [1, 2, 3] })).toEqual([])
    })
  })

  test('GRP-4: what a worker that leaves still serves may call another that leaves: it is served, or refused as one that has left', async () => {
    const ends = new Map<string, number>()
    for (const pauseMs of [1, 5, 10, 15, 20, 25]) {
      await overClusters(4, async (cluster) => {
        const leaves = (id: number, afterMs: number) =>
          cluster.workers[id]!.run(async () => {
            await sleep(afterMs)
            await leave()
          })
        const asks = cluster.workers[0]!.run(async () => {
          const end = await call('worker1', askLater, ['worker2', pauseMs])
          ends.set(end, (ends.get(end) ?? 0) + 1)
        })
        await cluster.world.run(Promise.all([asks, leaves(1, 2), leaves(2, 8)]))
        expect(await cluster.leftovers({ except: [1, 2] })).toEqual([])
      })
    }
    expect([...ends.keys()].sort()).toEqual(['left', 'served'])
  })

  test('GRP-5: when its time is over it leaves all the same, and says who kept it', async () => {
    const cluster = new Cluster(3, 2)
    await cluster.world.run(
      Promise.all([
        cluster.workers[0]!.run(async () => {
          expect(await failure(call('worker1', never))).toMatchObject({ code: 'WORKER_DIED', values: { cause: 'left' } })
        }),
        cluster.workers[1]!.run(async () => {
          await sleep(10)
          const late = await failure(leave({ timeoutMs: 100 }))
          expect(late).toMatchObject({ code: 'GROUP_TIMEOUT', op: 'leave', values: { busy: ['worker1'] } })
          expect(currentRuntime().isClosed).toBe(true)
          expect(cluster.world.nowMs).toBeLessThan(130)
        }),
      ]),
    )
    expect(await cluster.leftovers({ except: [1] })).toEqual([])
  })

  test('GRP-5: one whose own call is never answered tells its peers at the end that it leaves, and is not taken for dead', async () => {
    const cluster = new Cluster(3, 2)
    await cluster.run(1, async () => {
      const waits = failure(call('worker0', never))
      expect(await failure(leave({ timeoutMs: 100 }))).toMatchObject({ code: 'GROUP_TIMEOUT', values: { busy: ['worker1'] } })
      expect(await waits).toMatchObject({ code: 'RPC_SHUT_DOWN' })
    })
    await cluster.world.drain()
    expect(cluster.workers[0]!.deathOf(1)).toMatchObject({ values: { cause: 'left' } })
  })

  test('GRP-5: a peer that does not answer is named', async () => {
    const cluster = new Cluster(3, 3)
    cluster.gate(0, 1).shut()
    await cluster.run(1, async () => {
      const late = await failure(leave({ timeoutMs: 100 }))
      expect(late).toMatchObject({ code: 'GROUP_TIMEOUT', op: 'leave', values: { busy: ['worker0'] } })
    })
    expect(await cluster.leftovers({ except: [1] })).toEqual([])
  })

  test('GRP-5: closed meanwhile, it waits no more', async () => {
    const cluster = new Cluster(4, 2)
    await cluster.run(1, async () => {
      const waits = failure(call('worker0', never))
      const leaving = leave({ timeoutMs: 0 })
      await sleep(10)
      await currentRuntime().close()
      await leaving
      expect(await waits).toMatchObject({ code: 'RPC_SHUT_DOWN' })
    })
  })

  test('GRP-1: a worker that comes later calls and is called at once; when it has left, its name is free', async () => {
    await overClusters(2, async (cluster) => {
      const late = cluster.join('late')
      await everywhere(cluster, async ({ info }) => {
        if (info.name === 'late') expect(await call('worker0', echo, [1])).toBe(1)
        else expect(await call('late', echo, [2])).toBe(2)
        await meet(null)
        if (info.name === 'late') await leave()
      })
      await cluster.world.drain()
      expect(cluster.workers[0]!.deathOf(late.info.id)).toMatchObject({ values: { cause: 'left' } })
      const again = cluster.join('late')
      expect(again.info.id).not.toBe(late.info.id)
      expect(await cluster.run(0, () => call('late', echo, [3]))).toBe(3)
      expect(await cluster.leftovers({ except: [late.info.id] })).toEqual([])
    })
  })
})

let kept: UserRRef<string> | null = null
const keepRef = (ref: UserRRef<string>): void => {
  kept = ref
}
expose({ keepRef })

describe('the end of all', () => {
  const closed = (cluster: Cluster) => cluster.workers.every((worker) => worker.isClosed)
  const noLetters = (cluster: Cluster) =>
    cluster.workers.flatMap((worker) => worker.letters.last().map(({ reason, what }) => `${worker.info.name}: ${reason} ${what}`))

  test('SHD-1: it waits for calls that nobody awaits, twenty hops deep', async () => {
    await overClusters(4, async (cluster) => {
      await everywhere(cluster, async () => {
        hop(20)
        await shutdown()
        expect(currentRuntime().isClosed).toBe(true)
      })
      expect(log.filter((line) => !line.endsWith('last hop'))).toEqual([])
      expect(log.length).toBe(4)
      expect(closed(cluster)).toBe(true)
      expect(noLetters(cluster)).toEqual([])
    })
  })

  test('SHD-1: it waits for what callbacks call, for slow functions, and for workers with more to do', async () => {
    await overClusters(3, async (cluster) => {
      let done = 0
      await everywhere(cluster, async ({ info: { id } }) => {
        if (id === 0) {
          for (let i = 0; i < 30; i++)
            void call('worker1', sleep, [i])
              .then(() => call('worker2', sleep, [i]))
              .then(() => done++)
          void call('worker1', callBack, [10])
        }
        await shutdown()
        expect(done).toBe(30)
      })
      expect(log).toEqual(['worker1 called back'])
      expect(noLetters(cluster)).toEqual([])
    })
  })

  test('SHD-2: one that has called it serves the others until all have', async () => {
    await overClusters(3, async (cluster) => {
      await everywhere(cluster, async ({ info: { id } }) => {
        if (id !== 0) await shutdown()
        else {
          await sleep(500)
          expect(await call('worker1', echo, ['up'])).toBe('up')
          await meet(null, [0])
          await shutdown()
        }
        expect(cluster.world.nowMs).toBeGreaterThanOrEqual(500)
      })
    })
  })

  test('SHD-3: references are disposed before, so that no owner is left with one; later uses say what happened', async () => {
    await overClusters(3, async (cluster) => {
      await everywhere(cluster, async ({ info: { id } }) => {
        const ref = remote((id + 1) % 3, echo, [id])
        const second = rref(id)
        void call((id + 2) % 3, takeRef, [ref, second])
        await shutdown()
        const after = await failure(ref.toHere())
        expect(['RREF_DELETED', 'RPC_SHUT_DOWN']).toContain(after.code)
        expect(await failure(call(0, echo, [1]))).toMatchObject({ code: 'RPC_SHUT_DOWN' })
      })
      for (const { info } of cluster.workers) {
        expect(cluster.info(info.id)).toMatchObject({ ownerRRefs: 0, userRRefs: 0, forks: 0, pendingUsers: 0, pendingChildren: 0 })
      }
      expect(noLetters(cluster)).toEqual([])
    })
  })

  test('SHD-3: also those that the collector took before anybody gave them up', async () => {
    const cluster = new Cluster(7, 2)
    setFlagsFromString('--expose-gc')
    const collect = runInNewContext('gc') as () => void
    let probe: WeakRef<object> | undefined
    await everywhere(cluster, async ({ info: { id } }) => {
      if (id === 0) {
        await (async () => {
          const ref = remote('worker1', echo, ['forgotten'])
          await ref.toHere()
          probe = new WeakRef(ref)
        })()
        for (let i = 0; i < 20 && probe!.deref() !== undefined; i++) {
          await sleep(1)
          collect()
        }
        expect(probe!.deref()).toBeUndefined()
      }
      await shutdown()
    })
    for (const id of [0, 1]) expect(cluster.info(id)).toMatchObject({ ownerRRefs: 0, userRRefs: 0, forks: 0, deadLetters: 0 })
  })

  test('SHD-4: a member that dies, at whatever step, ends it for all, by name if it was needed; everybody ends locally', async () => {
    for (const victim of [0, 1, 2]) {
      for (let seed = 1; seed <= Math.ceil(SEEDS / 8); seed++) {
        for (let step = 0; ; step++) {
          const crashed = await withSeed(`${seed}, worker${victim} dies at step ${step}`, async () => {
            const cluster = new Cluster(seed, 3)
            const outcomes = new Map<number, string>()
            const mains = cluster.workers.map((worker) =>
              worker.run(async () => {
                void call((worker.info.id + 1) % 3, sleep, [1]).catch(() => {})
                const outcome = await shutdown().then(
                  () => 'done',
                  (error) => `${error.code} ${error.values.worker}`,
                )
                outcomes.set(worker.info.id, outcome)
              }),
            )
            const main = Promise.all(mains.filter((_, id) => id !== victim))
            const ended = await runWithCrash(cluster, main, `worker${victim}`, step)
            expect(ended.outcome).toBe('value')
            await cluster.world.drain()
            for (const [id, outcome] of outcomes) {
              if (id === victim) continue
              // A worker that knew of the death before all came continues with the rest, and all are closed then.
              expect(outcome).toMatch(/^(done|WORKER_DIED worker[012])$/)
              if (!ended.crashed) expect(outcome).toBe('done')
              expect(cluster.workers[id]!.isClosed).toBe(true)
            }
            expect(cluster.bugs).toEqual([])
            return ended.crashed
          })
          if (!crashed) break
        }
      }
    }
  })

  test('SHD-4: a death while all wait is told to each, by its name, at once', async () => {
    for (const victim of [0, 1, 2]) {
      await overClusters(3, async (cluster) => {
        const waiting = cluster.workers.filter(({ info: { id } }) => id !== victim)
        cluster.world.clock.setTimer(50, () => cluster.world.crash(`worker${victim}`))
        const outcomes = await cluster.world.run(Promise.all(waiting.map((worker) => worker.run(() => failure(shutdown())))))
        for (const error of outcomes) expect(error).toMatchObject({ code: 'WORKER_DIED', values: { worker: `worker${victim}` } })
        expect(cluster.world.nowMs).toBeLessThan(60)
        for (const worker of waiting) expect(worker.isClosed).toBe(true)
      })
    }
  })

  test('SHD-4: who calls it when it has failed already hears the same', async () => {
    await overClusters(4, async (cluster, seed) => {
      cluster.world.clock.setTimer(50, () => cluster.world.crash('worker1'))
      const late = seed % 2 === 0 ? 0 : 3
      const outcomes = await cluster.world.run(
        Promise.all(
          [0, 2, 3].map((id) =>
            cluster.workers[id]!.run(async () => {
              if (id === late) await sleep(200)
              return failure(shutdown())
            }),
          ),
        ),
      )
      for (const error of outcomes) expect(error).toMatchObject({ code: 'WORKER_DIED', values: { worker: 'worker1' } })
    })
  })

  test('SHD-4: so does who calls it when the time of the leader was over, and its own is not limited', async () => {
    await overClusters(3, async (cluster) => {
      const outcomes = await cluster.world.run(
        Promise.all(
          [0, 1].map((id) =>
            cluster.workers[id]!.run(async () => {
              if (id === 1) await sleep(200)
              return failure(shutdown({ timeoutMs: id === 0 ? 50 : 0 }))
            }),
          ),
        ),
      )
      expect(outcomes[0]!.code).toBe('GROUP_TIMEOUT')
      expect(['GROUP_TIMEOUT', 'WORKER_DIED']).toContain(outcomes[1]!.code)
    })
  })

  test('SHD-4: so does who calls it when the leader has died and the others are gone', async () => {
    await overClusters(4, async (cluster, seed) => {
      cluster.world.clock.setTimer(50, () => cluster.world.crash('worker0'))
      const late = 1 + (seed % 3)
      const outcomes = await cluster.world.run(
        Promise.all(
          [1, 2, 3].map((id) =>
            cluster.workers[id]!.run(async () => {
              if (id === late) await sleep(200)
              return failure(shutdown())
            }),
          ),
        ),
      )
      for (const error of outcomes) expect(error).toMatchObject({ code: 'WORKER_DIED', values: { worker: 'worker0' } })
    })
  })

  test('SHD-1, SHD-3: one that joins while the others end, at whatever step, keeps nobody, whether it would lead or not', async () => {
    for (const name of ['a-late', 'z-late']) {
      for (let seed = 1; seed <= 6; seed++) {
        let joined = true
        for (let step = 0; joined; step++) {
          await withSeed(`${seed}, ${name} joins at step ${step}`, async () => {
            const cluster = new Cluster(seed, 3)
            const end = (worker: WorkerRuntime) => worker.run(() => shutdown({ timeoutMs: 1000 }))
            const mains: Promise<void>[] = cluster.workers.map(end)
            await setImmediate()
            for (let taken = 0; taken < step && cluster.world.step(); taken++) await setImmediate()
            joined = !cluster.workers.some(({ isClosed }) => isClosed)
            if (joined) mains.push(end(cluster.join(name)))
            await cluster.world.run(Promise.all(mains))
            expect(cluster.bugs).toEqual([])
          })
        }
      }
    }
  })

  test('SHD-5: one that never comes, or has no end, is named when the time is over; all end locally', async () => {
    await overClusters(3, async (cluster, seed) => {
      const missing = seed % 3
      const others = cluster.workers.filter(({ info: { id } }) => id !== missing)
      const outcomes = await cluster.world.run(
        Promise.all(others.map((worker) => worker.run(() => failure(shutdown({ timeoutMs: 200 + worker.info.id }))))),
      )
      for (const error of outcomes) {
        expect(error).toMatchObject({ code: 'GROUP_TIMEOUT', op: 'shutdown', values: { missing: [`worker${missing}`] } })
      }
      for (const worker of others) expect(worker.isClosed).toBe(true)
    })
    const cluster = new Cluster(1, 3)
    await everywhere(cluster, async ({ info: { id } }) => {
      if (id === 2) void call('worker1', never).catch(() => {})
      const error = await failure(shutdown({ timeoutMs: 100 }))
      expect(error).toMatchObject({ code: 'GROUP_TIMEOUT', values: { missing: [], busy: ['worker1', 'worker2'] } })
      expect(error.message).toContain("workers 'worker1', 'worker2' still had calls under way")
    })
    expect(closed(cluster)).toBe(true)
  })

  test('SHD-6: ungraceful, it waits for nobody; what waited gets RPC_SHUT_DOWN', async () => {
    const cluster = new Cluster(2, 2)
    await cluster.run(0, async () => {
      const waits = failure(call('worker1', never))
      await shutdown({ graceful: false })
      expect(await waits).toMatchObject({ code: 'RPC_SHUT_DOWN' })
      await shutdown()
      await shutdown({ graceful: false })
    })
    const graceful = new Cluster(3, 2)
    await graceful.run(0, async () => {
      const waits = failure(shutdown())
      await sleep(10)
      await shutdown({ graceful: false })
      expect(await waits).toMatchObject({ code: 'RPC_SHUT_DOWN', op: 'shutdown' })
      expect(await failure(currentRuntime().shutdown({ timeoutMs: -1 }))).toMatchObject({ code: 'TIMEOUT_INVALID', op: 'shutdown' })
    })
  })

  test('SHD-7: those that have left, or that died before, are not waited for, also if they led', async () => {
    await overClusters(4, async (cluster, seed) => {
      cluster.world.crash('worker1')
      await cluster.world.run(
        Promise.all(
          [0, 2, 3].map((id) =>
            cluster.workers[id]!.run(async () => {
              await sleep(10)
              if (id === 0) {
                if (seed % 2 === 0) await sleep(30)
                await leave()
              } else await shutdown()
              expect(currentRuntime().isClosed).toBe(true)
            }),
          ),
        ),
      )
    })
  })

  test('SHD-8: a world of one, and again with a new worker of the same name', async () => {
    for (let run = 0; run < 3; run++) {
      const cluster = new Cluster(run, 1)
      await cluster.run(0, async () => {
        expect(await call('worker0', echo, [run])).toBe(run)
        void call('worker0', sleep, [10]).then(() => note('slept'))
        await shutdown()
      })
    }
    expect(log.slice(-3)).toEqual(Array(3).fill('worker0 slept'))
  })
})

const takeRef = async (...refs: { toHere(): unknown; dispose(): void }[]): Promise<void> => {
  for (const ref of refs) await ref.toHere()
}
expose({ takeRef })
