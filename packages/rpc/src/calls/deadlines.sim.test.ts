/** Deadlines of calls, in virtual time. */
import { describe, expect, test } from '@jest/globals'
import { call, currentWorker, remote, rref } from '../api/api.js'
import { expose } from '../common/function-registry.js'
import { GRAIN_MS } from '../core/pending-calls.js'
import { OwnerRRef, type RRef } from '../references/rref.js'
import { Cluster, type ClusterOptions, failure, overSeeds, thrown } from '../worker/sim-cluster.suite.js'

const sleep = (ms: number): Promise<number> => {
  const { clock } = currentWorker()
  return new Promise((resolve) => {
    clock.setTimer(ms, () => resolve(ms))
  })
}
const never = () => new Promise<never>(() => {})
const log: string[] = []
/** Sleeps, then calls on with a limit of its own. */
const sleepThenCall = async (ms: number, to: string, thenMs: number, timeoutMs: number | null) => {
  await sleep(ms)
  const error = await failure(call(to, sleep, [thenMs], timeoutMs === null ? {} : { timeoutMs })).catch(() => null)
  log.push(`${error?.code ?? 'answered'} at ${Math.round(currentWorker().clock.now())}: ${error?.message ?? ''}`)
  if (error !== null) throw error
  return 'in time'
}
const note = (text: string) => {
  log.push(text)
}
const noteAndMake = (text: string) => {
  log.push(text)
  return rref(text)
}
/** Keeps its worker from doing anything else for so long, as a long computation does. */
const makesRRef = async (ms: number) => {
  await sleep(ms)
  return rref('made')
}
class Later {
  readonly ms: number
  constructor(ms: number) {
    this.ms = ms
  }
  name(): string {
    return 'later'
  }
}
const makesLater = async (ms: number): Promise<Later> => new Later(await sleep(ms))
const take = async (_ref: RRef) => {
  log.push('took')
}
expose({ sleep, never, sleepThenCall, note, noteAndMake, makesRRef, Later, makesLater, take })

/** Runs `main` and says how much virtual time it took. */
async function timed(cluster: Cluster, main: () => Promise<unknown>) {
  const beforeMs = cluster.world.nowMs
  const error = await failure(main())
  return { error, ms: cluster.world.nowMs - beforeMs }
}

function expectTime(ms: number, timeoutMs: number): void {
  expect(ms).toBeGreaterThanOrEqual(timeoutMs)
  expect(ms).toBeLessThanOrEqual(timeoutMs + GRAIN_MS)
}

async function inCluster(size: number, main: (cluster: Cluster) => Promise<void>, options?: ClusterOptions): Promise<Cluster> {
  const cluster = new Cluster(1, size, options)
  log.length = 0
  await cluster.run(0, () => main(cluster))
  return cluster
}

describe('the deadline of a call', () => {
  test("RPC-21: is 60 s by default, the worker's own, or the call's own", async () => {
    await inCluster(2, async (cluster) => {
      for (const to of ['worker1', 'worker0']) {
        expectTime((await timed(cluster, () => call(to, never))).ms, 60_000)
        expectTime((await timed(cluster, () => call(to, never, [], { timeoutMs: 250 }))).ms, 250)
        expectTime((await timed(cluster, () => call(to, never, [], { timeoutMs: 0.5 }))).ms, 0.5)
      }
    })
    await inCluster(
      2,
      async (cluster) => {
        expectTime((await timed(cluster, () => call('worker1', never))).ms, 3000)
        expectTime((await timed(cluster, () => call('worker1', never, [], { timeoutMs: 90_000 }))).ms, 90_000)
      },
      { rpcTimeoutMs: 3000 },
    )
  })

  test('RPC-21: 0 is no limit, of one call or of all', async () => {
    await inCluster(2, async () => {
      expect(await call('worker1', sleep, [3_600_000], { timeoutMs: 0 })).toBe(3_600_000)
      expect(await call('worker0', sleep, [3_600_000], { timeoutMs: Number.POSITIVE_INFINITY })).toBe(3_600_000)
    })
    await inCluster(
      2,
      async () => {
        expect(await call('worker1', sleep, [3_600_000])).toBe(3_600_000)
      },
      { rpcTimeoutMs: 0 },
    )
  })

  test.each([-1, Number.NaN, '5', {}])('RPC-21: %p is refused', async (timeoutMs) => {
    await inCluster(2, async (cluster) => {
      const options = { timeoutMs: timeoutMs as number }
      expect(await failure(call('worker1', never, [], options))).toMatchObject({ code: 'TIMEOUT_INVALID' })
      expect(thrown(() => remote('worker1', never, [], options)).code).toBe('TIMEOUT_INVALID')
      const ref = remote('worker1', sleep, [1])
      expect(await failure(ref.toHere(options))).toMatchObject({ code: 'TIMEOUT_INVALID' })
      expect(cluster.gate(0, 1).sent).toEqual(['REMOTE_CALL'])
    })
  })

  test('RPC-22: the error names function, worker and time; other calls go on', async () => {
    await overSeeds(3, 2, async () => {
      log.length = 0
      const ends = call('worker1', sleepThenCall, [50, 'worker0', 1, null], { timeoutMs: 100 })
      const error = await failure(call('worker1', sleep, [1000], { timeoutMs: 20 }))
      expect(error).toMatchObject({ code: 'RPC_TIMEOUT', op: 'sleep', values: { worker: 'worker1', workerId: 1, timeoutMs: 20 } })
      expect(error.message).toContain('(20 ms)')
      expect(await ends).toBe('in time')
      await sleep(2000)
    })
  })

  test('RPC-22: a reference in a late reply is disposed', async () => {
    const cluster = await inCluster(2, async (cluster) => {
      const late = failure(call('worker1', makesRRef, [50], { timeoutMs: 20 }))
      await sleep(5)
      // The callee learns of the deadline after the call's end.
      cluster.gate(0, 1).shut()
      expect(await late).toMatchObject({ code: 'RPC_TIMEOUT' })
      await sleep(100)
      cluster.gate(0, 1).unshut()
      expect(cluster.gate(0, 1).sent).toEqual(['CALL', 'CALL_CANCEL', 'RREF_USER_DELETE'])
    })
    expect(await cluster.leftovers({ letters: 1 })).toEqual([])
  })

  test('RPC-22: ends one call and no other', async () => {
    await inCluster(2, async (cluster) => {
      const short = failure(call('worker1', sleep, [100], { timeoutMs: 30 }))
      const long = call('worker1', sleep, [100], { timeoutMs: 130 })
      expect(await short).toMatchObject({ code: 'RPC_TIMEOUT' })
      expect(await long).toBe(100)
      expect(cluster.world.nowMs).toBeLessThan(110)
    })
  })
})

describe('a call inside a call', () => {
  test('RPC-23: takes no longer than what is left to the call that is being served', async () => {
    await inCluster(3, async (cluster) => {
      const { error } = await timed(cluster, () => call('worker1', sleepThenCall, [40, 'worker2', 5000, 1000], { timeoutMs: 100 }))
      expect(error.code).toBe('RPC_TIMEOUT')
      await sleep(50)
      expect(log[0]).toMatch(/^RPC_TIMEOUT at 1[01]\d: /)
    })
  })

  test('RPC-23: has its own limit when that is shorter', async () => {
    const cluster = await inCluster(3, async (cluster) => {
      const { error, ms } = await timed(cluster, () => call('worker1', sleepThenCall, [40, 'worker2', 5000, 20], { timeoutMs: 10_000 }))
      expect(error).toMatchObject({ code: 'RPC_TIMEOUT', workers: [{ name: 'worker1', id: 1 }] })
      expectTime(ms, 60)
      await sleep(6000)
    })
    expect(await cluster.leftovers()).toEqual([])
  })

  test('RPC-23: under a call without a limit it has the default of its own worker', async () => {
    await inCluster(3, async (cluster) => {
      const { error, ms } = await timed(cluster, () => call('worker1', sleepThenCall, [10, 'worker2', 3_600_000, null], { timeoutMs: 0 }))
      expect(error.code).toBe('RPC_TIMEOUT')
      expectTime(ms, 10 + 60_000)
    })
  })

  test('RPC-23: when nothing is left it fails before anything is sent, and so do remote and toHere', async () => {
    const cluster = await inCluster(3, async (cluster) => {
      await failure(call('worker1', sleepThenCall, [40, 'worker2', 1, null], { timeoutMs: 30 }))
      await sleep(100)
      expect(log).toEqual([
        expect.stringContaining(
          "RPC_TIMEOUT at 40: sleep: nothing is left of the time of the call that is being served here, so worker 'worker2' was not called",
        ),
      ])
      expect(cluster.gate(1, 2).sent).toEqual([])
    })
    expect(await cluster.leftovers()).toEqual([])
  })
})

describe('time in the mailbox', () => {
  test('RPC-24: counts: a call whose deadline has passed before its turn is not run', async () => {
    const cluster = await inCluster(2, async (cluster) => {
      const gate = cluster.gate(0, 1)
      const { pump } = cluster.workers[1]!
      // The message has arrived and worker1 is busy.
      const run = pump.runNow
      pump.runNow = () => {}
      const futures = [call('worker1', note, ['late'], { timeoutMs: 20 }), call('worker1', note, ['in time'], { timeoutMs: 200 })]
      const made = remote('worker1', noteAndMake, ['late'], { timeoutMs: 20 })
      const taken = call('worker1', take, [made], { timeoutMs: 20 })
      const given = call('worker1', take, [rref('mine')], { timeoutMs: 20 })
      await sleep(100)
      pump.runNow = run
      cluster.workers[1]!.pushTask({ run: () => {} }, 0)
      expect(await failure(futures[0]!)).toMatchObject({ code: 'RPC_TIMEOUT' })
      for (const late of [taken, given]) expect(await failure(late)).toMatchObject({ code: 'RPC_TIMEOUT' })
      await futures[1]
      expect(log).toEqual(['in time'])
      expect(await failure(made.toHere())).toMatchObject({ code: 'RREF_CREATION_TIMEOUT' })
      expect(gate.sent.slice(0, 5)).toEqual(['CALL', 'CALL', 'REMOTE_CALL', 'CALL', 'CALL'])
      made.dispose()
    })
    expect(cluster.workers[1]!.letters.counts.expired).toBe(4)
    expect(await cluster.leftovers({ letters: 4 })).toEqual([])
  })
})

describe('deadlines of references', () => {
  test('RREF-3: toHere has one of its own, on a user and on the owner', async () => {
    const cluster = await inCluster(2, async (cluster) => {
      for (const to of ['worker1', 'worker0']) {
        const made = remote(to, sleep, [500], { timeoutMs: 0 })
        const { error, ms } = await timed(cluster, () => made.toHere({ timeoutMs: 100 }))
        expect(error.code).toBe('RPC_TIMEOUT')
        expectTime(ms, 100)
        if (made instanceof OwnerRRef) expect(made.waiters.size).toBe(0)
        expect(await made.toHere()).toBe(500)
        made.dispose()
      }
    })
    expect(await cluster.leftovers()).toEqual([])
  })

  test('RREF-3: without a limit it waits as long as it takes, whatever the defaults of the workers are', async () => {
    const cluster = await inCluster(2, async () => {
      for (const to of ['worker1', 'worker0']) {
        const made = remote(to, makesLater, [600_000])
        expect(await made.call('name', [], { timeoutMs: 0 })).toBe('later')
        made.dispose()
        const number = remote(to, sleep, [600_000])
        expect(await number.toHere({ timeoutMs: 0 })).toBe(600_000)
        number.dispose()
      }
    })
    expect(await cluster.leftovers()).toEqual([])
  })

  test('RREF-3: a value that is never made keeps nobody waiting, nor its owner serving', async () => {
    const cluster = await inCluster(2, async (cluster) => {
      for (const to of ['worker1', 'worker0']) {
        const made = remote(to, never)
        expectTime((await timed(cluster, () => made.toHere())).ms, 60_000)
        made.dispose()
      }
    })
    expect(await cluster.leftovers()).toEqual(['worker0: servingCalls 1', 'worker1: servingCalls 1'])
  })

  test('RREF-9: a creation that is not confirmed in time fails every use, also when it comes about later', async () => {
    const cluster = await inCluster(2, async (cluster) => {
      cluster.gate(0, 1).shut()
      const made = remote('worker1', sleep, [1], { timeoutMs: 50 })
      await sleep(100)
      cluster.gate(0, 1).unshut()
      for (const error of [
        await failure(made.toHere()),
        await failure(call('worker1', take, [made])),
        await failure(call('worker0', take, [made])),
      ]) {
        expect(error).toMatchObject({ code: 'RREF_CREATION_TIMEOUT', values: { worker: 'worker1' } })
      }
      await sleep(100)
      expect(await failure(made.toHere())).toMatchObject({ code: 'RREF_CREATION_TIMEOUT' })
      expect(made.confirmedByOwner()).toBe(false)
      // It has been disposed of by itself, and its call cancelled.
      expect(cluster.gate(0, 1).sent).toEqual(['REMOTE_CALL', 'RREF_USER_DELETE', 'CALL_CANCEL'])
    })
    expect(await cluster.leftovers({ letters: 1 })).toEqual([])
  })

  test('RREF-9: to oneself likewise', async () => {
    const cluster = await inCluster(1, async (cluster) => {
      const { pump } = cluster.workers[0]!
      const { wake } = pump
      pump.wake = () => {}
      const made = remote('worker0', note, ['made'], { timeoutMs: 50 }) as unknown as OwnerRRef
      await sleep(100)
      pump.wake = wake
      expect(await failure(made.toHere())).toMatchObject({ code: 'RREF_CREATION_TIMEOUT' })
      expect(thrown(() => made.localValue()).code).toBe('RREF_CREATION_TIMEOUT')
      cluster.workers[0]!.pushTask({ run: () => {} }, 0)
      await sleep(1)
    })
    expect(log).toEqual([])
    expect(await cluster.leftovers({ letters: 1 })).toEqual([])
  })
})
