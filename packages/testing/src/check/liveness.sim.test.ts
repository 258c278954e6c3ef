/** Runs under faults that end, and under faults that do not: right programs pass, wrong ones are caught, and the errors say what was pending. */
import { describe, expect, test } from '@jest/globals'
import { isPostgradError, type PostgradError } from '@postgrad/base'
import { call, expose } from '@postgrad/rpc'
import { currentRuntime } from '@postgrad/rpc/internal'
import { randomFaults } from '../faults/fault-plan.js'
import type { SimCluster } from '../simulate/simulate.js'
import { checkLiveness, checkSafety } from './liveness.js'

const sleep = (ms: number) => new Promise<void>((resolve) => currentRuntime().clock.setTimer(ms, resolve))
/** What each life of a worker holds, by its id. */
const held = new Map<number, number>()
const deposit = (amount: number): number => {
  const { id } = currentRuntime().info
  held.set(id, (held.get(id) ?? 0) + amount)
  return held.get(id)!
}
const never = () => new Promise<never>(() => {})
/** Each answers the other for ever. */
const volley = async (to: string): Promise<void> => void call(to, volley, [currentRuntime().info.name], { timeoutMs: 0 }).catch(() => {})
expose({ 'liveness.deposit': deposit, 'liveness.never': never, 'liveness.volley': volley })

const workers = ['worker0', 'worker1', 'worker2']
/** Asks until it is answered. */
const patient = async (): Promise<number> => {
  let answered = 0
  for (const to of ['worker1', 'worker2', 'worker1', 'worker2']) {
    for (;;) {
      const got = await call(to, deposit, [1], { timeoutMs: 500 }).catch((error: unknown) => error)
      if (!isPostgradError(got)) break
      if (got.code === 'WORKER_DIED' && currentRuntime().deathOf(currentRuntime().resolve(to).id) !== null) {
        // Nobody bears the name, or nobody yet.
        if (currentRuntime().clock.now() > 3500) break
      }
      await sleep(50)
    }
    answered++
  }
  return answered
}
const faults = randomFaults({ crashes: 0 })

async function failure(promise: Promise<unknown>): Promise<PostgradError> {
  const error = await promise.then(
    () => null,
    (thrown: PostgradError) => thrown,
  )
  if (error === null) throw new Error('it passed')
  return error
}

describe('liveness', () => {
  test('TK-25 a program that is patient comes to its end once faults have ended, under every plan', async () => {
    let injected = 0
    for (let seed = 0; seed < 25; seed++) {
      const simulation = await checkLiveness({ workers, seed, faults }, (sim) => sim.on('worker0').run(patient))
      expect(simulation.result).toBe(4)
      expect(simulation.timeMs).toBeGreaterThanOrEqual(3000)
      injected += Object.values(simulation.faults).reduce((sum, count) => sum + count, 0)
    }
    expect(injected).toBeGreaterThan(100)
  })

  test('TK-25 what waits without end is named, with who waits for whom; also what the body did not wait for', async () => {
    const waits = (sim: SimCluster) => sim.on('worker0').run(() => call('worker1', never, [], { timeoutMs: 0 }))
    const one = await failure(checkLiveness({ workers, seed: 3, faults: [], withinMs: 5000 }, waits))
    expect(one).toMatchObject({
      code: 'LIVENESS_VIOLATED',
      seed: 3,
      values: { timeMs: 8000, stuck: ['worker1 serving liveness.never for worker0'] },
    })
    expect(one.message).toContain("worker0's program waits for liveness.never from worker 'worker1'")
    const other = await failure(
      checkLiveness({ workers, seed: 3, faults: [], withinMs: 5000 }, async (sim) => void waits(sim).catch(() => {})),
    )
    expect(other).toMatchObject({ code: 'LIVENESS_VIOLATED', values: { stuck: ['worker1 serving liveness.never for worker0'] } })
    const own = await failure(checkLiveness({ workers, faults: [] }, () => new Promise(() => {})))
    expect(own.message).toContain("the test's own promise")
  })

  test('TK-25 what goes on without end is caught by its steps', async () => {
    const error = await failure(
      checkLiveness({ workers, faults: [], withinSteps: 500, faultsEndMs: 0 }, async (sim) => {
        await sim.on('worker0').run(volley, 'worker1')
        await new Promise(() => {})
      }),
    )
    expect(error).toMatchObject({ code: 'LIVENESS_VIOLATED', values: { faultsEndMs: 0 } })
    expect(error.values.steps).toBeLessThan(2000)
  })
})

describe('safety', () => {
  test('TK-26 under faults for ever a program may end in any way of the weather, and nothing wrong happens', async () => {
    const ends = new Set<string>()
    for (let seed = 0; seed < 25; seed++) {
      held.clear()
      let checks = 0
      const { result } = await checkSafety(
        {
          workers,
          seed,
          forMs: 2000,
          check: () => {
            checks++
            for (const [id, sum] of held) expect({ id, isRight: sum <= 4 }).toEqual({ id, isRight: true })
          },
        },
        (sim) =>
          sim
            .on('worker0')
            .run(() => (seed % 3 === 0 ? call('worker1', never, [], { timeoutMs: 0 }) : call('worker1', deposit, [1], { timeoutMs: 50 }))),
      )
      ends.add(result.ended)
      expect(checks).toBeGreaterThan(1)
    }
    expect([...ends].sort()).toEqual(['error', 'pending', 'value'])
  })

  test('TK-26 a check that fails ends the run at once, with its reason; so does an error that is none of the weather', async () => {
    held.clear()
    const check = () => {
      for (const [id, sum] of held) if (sum > 1) throw new Error(`worker ${id} holds ${sum}`)
    }
    const broken = await failure(checkSafety({ workers, seed: 1, check, faults: [] }, (sim) => sim.on('worker0').run(patient)))
    expect(broken).toMatchObject({ code: 'SAFETY_VIOLATED', seed: 1 })
    expect(broken.message).toContain('worker 1 holds 2')
    expect(broken.cause).toBeInstanceOf(Error)
    await expect(checkSafety({ workers, faults: [] }, async () => Promise.reject(new RangeError('wrong')))).rejects.toThrow('wrong')
    const allowed = checkSafety({ workers, faults: [], allow: ['UNKNOWN_WORKER'] }, (sim) =>
      sim.on('worker0').run(() => call('nobody', never)),
    )
    expect((await allowed).result).toEqual({ ended: 'error', code: 'UNKNOWN_WORKER' })
  })
})
