/** Fault plans: the recurring shapes, what a seed draws, and that a drawn plan says all that happens. */
import { describe, expect, test } from '@jest/globals'
import { call, expose } from '@postgrad/rpc'
import { CASE_WORKERS, cleanUp, cleanUpCases } from '@postgrad/testing-cases'
import { expectClean } from '../check/expect-clean.js'
import { simulate } from '../simulate/simulate.js'
import { failFirst, planText, type RandomFaultsOptions, randomFaults } from './fault-plan.js'
import type { FaultRule } from './message-kind.js'

const echo = (value: unknown) => value
expose({ 'plan.echo': echo })

const workers = ['worker0', 'worker1', 'worker2']
const calls = (count: number) => async () => {
  const ends: unknown[] = []
  for (let i = 0; i < count; i++) {
    ends.push(await call(`worker${1 + (i % 2)}`, echo, [i], { timeoutMs: 5000 }).catch(({ code }: { code: string }) => code))
  }
  return ends
}

test('TK-20 the kinds that a refused rule is told of are each there once', async () => {
  const rule = { match: { kind: 'CAL' as 'CALL' }, do: 'drop' } as const
  const error = await simulate({ workers, faults: [rule] }, async () => {}).then(String, String)
  const kinds = /kinds of messages: ([^.]*), got/.exec(error)![1]!.split(', ')
  expect(kinds).toEqual(expect.arrayContaining(['CALL', 'UNREADABLE', 'DAMAGED', 'SESSION_ACK']))
  expect([...new Set(kinds)]).toEqual(kinds)
})

describe('names in rules', () => {
  const wrong = { match: { to: 'wroker1' }, do: 'drop' } as const

  test('TK-90 a rule about a worker that was never there fails with the workers that were; one that joins later is known', async () => {
    const error = await simulate({ workers, faults: [{ do: 'pass' }, wrong] }, (sim) => sim.on('worker0').run(calls(1))).catch(
      (thrown: Error) => thrown,
    )
    expect(error).toMatchObject({ code: 'INVALID_ARGUMENT', values: { unknown: ['wroker1'], rule: 1 } })
    expect(String(error)).toContain(
      'workers that are in the simulation at some time: worker0, worker1, worker2, got wroker1 in rule 2 (drop frames to wroker1). Did you mean worker1?',
    )
    const elsewhere: FaultRule[] = [
      { match: { from: ['worker0', 'late'] }, do: 'pass' },
      { match: { between: ['worker1', ['late']] }, do: 'pass' },
    ]
    for (const rule of elsewhere) {
      await simulate({ workers, faults: [rule] }, async (sim) => {
        sim.join('late')
        await sim.ready('late')
      })
      await expect(simulate({ workers, faults: [rule] }, async () => {})).rejects.toMatchObject({ values: { unknown: ['late'] } })
    }
    await expect(
      simulate({ workers, faults: [{ match: { nth: 1e6 }, do: 'crash', worker: 'late' }] }, async () => {}),
    ).rejects.toMatchObject({ values: { unknown: ['late'] } })
  })

  test('TK-90 the error of a run that fails names such a rule as well', async () => {
    const error = await simulate({ workers, faults: [wrong] }, () => Promise.reject(new RangeError('no death'))).catch(
      (thrown: Error) => thrown as Error,
    )
    expect((error as Error).message).toBe('no death')
    expect((error as Error).stack).toContain('\nA fault rule names a worker that was not in this run: faults: expected workers')
  })

  test('TK-21 a limit that there is not is refused', () => {
    expect(() => randomFaults({ crash: 0 } as RandomFaultsOptions)).toThrow(
      expect.objectContaining({ code: 'INVALID_ARGUMENT', message: expect.stringContaining('got crash') }),
    )
  })
})

describe('failFirst', () => {
  const kinds = ['CLEANUP_CONTEXT', 'RREF_USER_DELETE', 'RREF_FORK_REQUEST', 'RREF_CHILD_ACCEPT'] as const

  test.each(cleanUpCases.map((one) => [one.name, one] as const))(
    'TK-20 case 19 (%s): a context is cleaned up though each CLEANUP and each RREF control message fails its first three sends',
    async (_, { kind, workers: names }) => {
      const everywhere = (state: string) => Object.fromEntries(names.map((name) => [name, state]))
      for (let seed = 0; seed < 5; seed++) {
        const simulation = await simulate({ workers: CASE_WORKERS, seed, faults: [failFirst(3, kinds)] }, (sim) =>
          sim.on('worker0').run(cleanUp, kind, 50),
        )
        expect({ seed, ...simulation.result }).toEqual({ seed, before: everywhere('live'), after: everywhere('CONTEXT_RELEASED') })
        // It took as long as the three resends (50, 100, 200 ms) take, and each message was lost so often.
        expect(simulation.timeMs).toBeGreaterThanOrEqual(350)
        expect(simulation.faults.drop).toBeGreaterThanOrEqual(3 * (names.length - 1))
        expect(simulation.faults.drop % 3).toBe(0)
        expectClean(simulation)
      }
    },
  )
})

describe('randomFaults', () => {
  test('TK-21 the plan is the seed’s: the same for the same, different ones over seeds, and with it the run', async () => {
    const plans = new Set<string>()
    const happened = { drop: 0, duplicate: 0, delay: 0, crash: 0, restart: 0 }
    for (let seed = 0; seed < 30; seed++) {
      const run = () => simulate({ workers, seed, faults: 'random' }, (sim) => sim.on('worker0').run(calls(8)))
      const [one, other] = [await run(), await run()]
      expect(other.plan).toEqual(one.plan)
      expect(other.trace.hash).toBe(one.trace.hash)
      plans.add(planText(one.plan))
      for (const kind of Object.keys(happened) as (keyof typeof happened)[]) happened[kind] += one.faults[kind]
    }
    expect(plans.size).toBeGreaterThan(22)
    for (const [kind, count] of Object.entries(happened)) expect({ kind, isMet: count > 0 }).toEqual({ kind, isMet: true })
  })

  test('TK-21 what is bounded stays within its bounds: rates, times, counts, and who never crashes', () => {
    const options: RandomFaultsOptions = { untilMs: 100, drop: 0.1, duplicate: 0, delay: 0, crashes: 2, restarts: 2, spare: 'worker1' }
    let partitions = 0
    for (let seed = 0; seed < 100; seed++) {
      const plan = randomFaults(options).draw(seed, workers)
      for (const { do: action, match = {}, untilMs } of plan) {
        if (typeof match === 'function') throw new Error('a drawn rule is data')
        expect(['drop', 'slow', 'crash', 'restart']).toContain(action)
        if (match.probability !== undefined) expect(match.probability).toBeLessThanOrEqual(0.1)
        if (action === 'crash' || action === 'restart') expect(match.to).not.toBe('worker1')
        else expect(untilMs).toBeLessThanOrEqual(101)
        if (action !== 'drop' || match.between === undefined) continue
        partitions++
        expect(match.between.flat().sort()).toEqual(workers)
        expect(match.between.every((side) => side.length > 0)).toBe(true)
      }
      // After a crash for good nobody restarts.
      const crashed = plan.filter((rule) => rule.do === 'crash').map(({ match }) => (match as { to: string }).to)
      expect(new Set(crashed).size).toBe(crashed.length)
    }
    expect(partitions).toBeGreaterThan(15)
    for (const wrong of [{ drop: 2 }, { crashes: -1 }, { delayMs: 0 }, { partitions: 0.5 }]) {
      expect(() => randomFaults(wrong)).toThrow(expect.objectContaining({ code: 'INVALID_ARGUMENT' }))
    }
  })

  test('TK-21 a plan can be read', () => {
    const text = planText([
      failFirst(3, ['CLEANUP_CONTEXT', 'RREF_ACK']),
      { match: { between: ['worker0', ['worker1', 'worker2']] }, do: 'drop', fromMs: 10, untilMs: 400 },
      { match: { between: ['worker0', 'worker1'] }, do: 'slow', delayMs: 20, bytesPerMs: 100 },
      { match: { probability: 0.125, kind: 'CALL' }, do: 'delay', delayMs: 7, untilMs: 3000 },
      { match: { to: 'worker1', nth: 4 }, do: 'restart', delayMs: 30 },
    ])
    expect(text.split('\n')).toEqual([
      '  1. drop CLEANUP_CONTEXT or RREF_ACK, the first 3 sends of each',
      '  2. drop frames between worker0 and worker1, worker2, from 10 ms, until 400 ms',
      '  3. slow frames between worker0 and worker1, by 20 ms, at 100 bytes a ms',
      '  4. delay 12.5 % of CALL, by 7 ms, until 3000 ms',
      '  5. restart number 4 of frames to worker1, back after 30 ms',
    ])
  })
})
