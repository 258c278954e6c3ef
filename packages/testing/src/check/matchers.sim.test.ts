/** The matchers in jest itself: what passes, what fails, and the messages. */
import { describe, expect, test } from '@jest/globals'
import { PostgradError } from '@postgrad/base'
import { call, expose, remote } from '@postgrad/rpc'
import { tensor } from '@postgrad/tensor'
import { type Simulation, simulate } from '../simulate/simulate.js'
import { type MatcherResult, matchers } from './matchers.js'

const makeOne = () => 1
expose({ makeOne })

const run = (dispose: boolean): Promise<Simulation<unknown>> =>
  simulate({ workers: 2, seed: 11 }, (sim) =>
    sim.on('worker0').run(async () => {
      const reference = remote('worker1', makeOne, [])
      const value = await reference.toHere()
      if (dispose) reference.dispose()
      return { value, x: tensor([1, 2]) }
    }),
  )

describe('TK-45 the matchers', () => {
  test('TK-45 pass where the checkers find nothing', async () => {
    const simulation = await run(true)
    const oracle = { value: 1, x: tensor([1, 2]) }
    const passed: MatcherResult[] = [
      matchers.toBeClean(simulation),
      matchers.toBeClean(simulation.debugInfo),
      matchers.toBeSound(simulation, { oracle }),
      matchers.toMatchInlined(simulation, oracle),
      matchers.toHaveSameBitsAs(simulation.result, oracle),
      await matchers.toRejectWithCode(Promise.reject(error('SAMPLE', { worker: 'a' })), 'SAMPLE', { worker: 'a' }),
      await matchers.toRejectWithCode(() => Promise.reject(error('SAMPLE', {})), 'SAMPLE'),
    ]
    expect(passed.map(({ pass }) => pass)).toEqual(passed.map(() => true))
    // For `not`.
    for (const { message } of passed) expect(message()).toMatch(/^expected /)
  })

  test('TK-45 say which worker and what it holds, and how to see it again', async () => {
    const simulation = await run(false)
    const { pass, message } = matchers.toBeClean(simulation)
    expect(pass).toBe(false)
    expect(message()).toContain("worker 'worker1': ownerRRefs 1")
    expect(message()).toContain('seed 11: simulate with { seed: 11 } and the same options runs it again')
    expect(matchers.toBeClean(simulation, { allow: ['ownerRRefs', 'forks', 'userRRefs'] }).pass).toBe(true)
    expect(matchers.toBeSound(simulation).message()).toContain('NOT_CLEAN')
    for (const result of [
      matchers.toBeClean(simulation),
      matchers.toBeSound(simulation),
      matchers.toMatchInlined(simulation, { value: 2 }),
    ]) {
      expect(result.message()).toMatch(/Repeat it, in front of the same test command: POSTGRAD_REPLAY=pg1\.\S+$/)
      expect(result.message().split('Repeat it').length).toBe(2)
    }
  })

  test('TK-45 say the rules, and how to repeat the run, once: under vitest, too, which prints messages alone', async () => {
    const faults = [{ match: { kind: 'CALL' }, do: 'delay' }] as const
    const simulation = await simulate({ workers: 2, faults }, (sim) =>
      sim.on('worker0').run(async () => {
        await call('worker1', makeOne)
        return remote('worker1', makeOne, []).toHere()
      }),
    )
    process.env.VITEST = 'true'
    try {
      const message = matchers.toBeSound(simulation, { oracle: 2 }).message()
      expect(message.split('Under these rules').length).toBe(2)
      expect(message.split('Repeat it').length).toBe(2)
    } finally {
      delete process.env.VITEST
    }
  })

  test('TK-45 say which tensor, which element, both values and their bits', async () => {
    const { pass, message } = matchers.toMatchInlined(await run(true), { value: 1, x: tensor([1, 3]) })
    expect(pass).toBe(false)
    expect(message()).toMatch(/^x at \[1\] differs\n {2}expected 3 \(0x40400000\)\n {2}got {6}2 \(0x40000000\)\n {2}seed 11/)
  })

  test.each([
    ['a value', Promise.resolve(3), 'SAMPLE', {}, 'got the value 3'],
    ['another code', Promise.reject(error('OTHER', {})), 'SAMPLE', {}, 'got OTHER: sample: no.'],
    ['an error without a code', Promise.reject(new RangeError('far')), 'SAMPLE', {}, 'got RangeError: far'],
    ['another value', Promise.reject(error('SAMPLE', { worker: 'b' })), 'SAMPLE', { worker: 'a' }, 'values.worker: expected a, got b'],
  ])('TK-45 toRejectWithCode fails for %s', async (_, promise, code, values, said) => {
    promise.catch(() => {})
    const { pass, message } = await matchers.toRejectWithCode(promise, code, values)
    expect(pass).toBe(false)
    expect(message()).toContain(said)
  })

  test('TK-45 extend expect', async () => {
    expect.extend(matchers)
    const simulation = await run(true)
    const extended = expect as unknown as (value: unknown) => Record<keyof typeof matchers, (...args: unknown[]) => unknown> & {
      readonly not: Record<keyof typeof matchers, (...args: unknown[]) => unknown>
    }
    extended(simulation).toBeSound()
    extended(tensor([1])).not.toHaveSameBitsAs(tensor([2]))
    await extended(Promise.reject(error('SAMPLE', {}))).toRejectWithCode('SAMPLE')
    expect(() => extended(tensor([1])).toHaveSameBitsAs(tensor([2]))).toThrow('expected 2 (0x40000000)')
  })
})

function error(code: string, values: Readonly<Record<string, unknown>>): PostgradError {
  return new PostgradError(code, { op: 'sample', message: 'no', values })
}
