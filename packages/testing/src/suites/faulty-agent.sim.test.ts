/**
 * PyTorch's faulty agent (`faulty_agent_rpc_test.py`): named kinds of messages fail their first sends or come late. Its tests of messages
 * to oneself have no counterpart, since such a message passes no link.
 */
import { describe, expect, test } from '@jest/globals'
import { isPostgradError, type PostgradError } from '@postgrad/base'
import { distAutograd } from '@postgrad/dist-autograd'
import { call, currentWorker, expose, OwnerRRef, type RRef, remote } from '@postgrad/rpc'
import { ones, type Tensor } from '@postgrad/tensor'
import { bitsText, designNoteOn, myAdd, readGolden } from '@postgrad/testing-cases'
import { expectClean } from '../check/expect-clean.js'
import type { FaultRule, MessageKind } from '../faults/message-kind.js'
import { inlined } from '../inlined/inlined.js'
import { type Simulation, simulate } from '../simulate/simulate.js'

const SEEDS = 10
/** PyTorch's `num_fail_sends`. */
const FAIL_SENDS = 3
/** How late a deadline may be on an exact clock (RPC-25). */
const GRAIN_MS = 10

/** How often what was run, by a key of the test. */
const runs = new Map<string, number>()
const echo = (value: unknown) => value
const sleep = (ms: number) => new Promise<void>((resolve) => currentWorker().clock.setTimer(ms, resolve))
const counted = (key: string) => {
  runs.set(key, (runs.get(key) ?? 0) + 1)
  return key
}
const slowly = async (value: unknown, ms: number) => {
  await sleep(ms)
  return value
}
const addBoth = async (one: RRef<Tensor>, other: RRef<Tensor>): Promise<Tensor> => {
  try {
    const [a, b] = await Promise.all([one.toHere(), other.toHere()])
    return myAdd(a, b)
  } finally {
    one.dispose()
    other.dispose()
  }
}
expose({ 'faulty.echo': echo, 'faulty.slowly': slowly, 'faulty.addBoth': addBoth, 'faulty.counted': counted })

async function failure(promise: PromiseLike<unknown>): Promise<PostgradError> {
  try {
    await promise
  } catch (error) {
    if (isPostgradError(error)) return error
    throw error
  }
  throw new Error('expected a rejection, got a value')
}

/** How long it took until it failed, and with which code. */
async function failsIn(promise: PromiseLike<unknown>): Promise<{ code: string; ms: number; message: string }> {
  const { clock } = currentWorker()
  const startMs = clock.now()
  const { code, message } = await failure(promise)
  return { code, ms: clock.now() - startMs, message }
}

function inTime(ms: number, timeoutMs: number): void {
  expect(ms).toBeGreaterThanOrEqual(timeoutMs)
  expect(ms).toBeLessThanOrEqual(timeoutMs + GRAIN_MS)
}

async function overSeeds(
  faults: readonly FaultRule[],
  body: () => Promise<void>,
  after: (simulation: Simulation<void>) => void = () => {},
  allow: readonly string[] = [],
): Promise<void> {
  for (let seed = 0; seed < SEEDS; seed++) {
    const simulation = await simulate({ workers: 4, seed, faults }, (sim) => sim.on('worker0').run(body))
    after(simulation)
    expectClean(simulation, { allow })
  }
}

const lost = (kind: MessageKind | readonly MessageKind[], untilMs: number): FaultRule => ({ match: { kind }, do: 'drop', untilMs })
const late = (kind: MessageKind | readonly MessageKind[], delayMs: number): FaultRule => ({ match: { kind }, do: 'delay', delayMs })

describe('check_failed_messages', () => {
  const kinds = ['RREF_FORK_REQUEST', 'RREF_CHILD_ACCEPT', 'RREF_USER_DELETE', 'CLEANUP_CONTEXT'] as const

  test('RREF-14, RREF-26, DA-11: references are shared and end, and contexts are released, though each of their messages is lost three times', () =>
    overSeeds(
      [{ match: { kind: kinds }, do: 'drop', timesEach: FAIL_SENDS }],
      async () => {
        const [one, other] = [
          remote('worker1', myAdd, [ones([2, 2]), ones([2, 2])]),
          remote('worker1', myAdd, [ones([2, 2]), ones([2, 2])]),
        ]
        const sum = remote('worker2', addBoth, [one, other])
        expect((await call('worker3', addBoth, [one, other])).toArray()).toEqual([
          [4, 4],
          [4, 4],
        ])
        expect((await sum.toHere()).toArray()).toEqual([
          [4, 4],
          [4, 4],
        ])
        for (const ref of [one, other, sum]) ref.dispose()
        await distAutograd.context(async (ctx) => {
          const leaf = ones([2, 2], { requiresGrad: true })
          await ctx.backward([(await call('worker1', myAdd, [leaf, leaf])).sum()])
          expect(ctx.gradients().get(leaf)?.toArray()).toEqual([
            [2, 2],
            [2, 2],
          ])
        })
      },
      ({ faults }) => {
        // Four forks are requested and accepted, …, each three times lost.
        expect(faults.drop).toBeGreaterThanOrEqual(FAIL_SENDS * 12)
        expect(faults.drop % FAIL_SENDS).toBe(0)
      },
    ))

  test('RPC-9: without faulty messages nothing fails; with all of them lost three times each call is run once', async () => {
    for (const [rules, drops] of [
      [[], 0],
      [[{ do: 'drop', timesEach: FAIL_SENDS } as const], 120],
    ] as const) {
      runs.clear()
      await overSeeds(
        rules,
        async () => {
          const keys = Array.from({ length: 20 }, (_, i) => `${i}`)
          expect(await Promise.all(keys.map((key, i) => call(`worker${1 + (i % 3)}`, counted, [key])))).toEqual(keys)
        },
        ({ faults }) => expect(faults.drop).toBeGreaterThanOrEqual(drops),
      )
      expect([...runs.values()]).toEqual(new Array(20).fill(SEEDS))
    }
  })
})

describe('messages to delay', () => {
  test('RPC-21: only the named kinds come late, and a call that has time for it succeeds', () =>
    overSeeds([late('CALL', 1500)], async () => {
      const { clock } = currentWorker()
      expect(await call('worker1', echo, ['late'])).toBe('late')
      expect(clock.now()).toBe(1500)
      const made = remote('worker2', echo, ['in time'])
      expect(await made.toHere()).toBe('in time')
      expect(clock.now()).toBe(1500)
      made.dispose()
    }))

  test('RPC-22: rpc timeouts (rpc_builtin_timeout): per call, none; what comes behind its deadline is called off before it begins', () =>
    overSeeds(
      [late('CALL', 1500)],
      async () => {
        runs.clear()
        for (const timeoutMs of [1000, 1, 1400]) {
          const { code, ms, message } = await failsIn(call('worker1', counted, [`${timeoutMs}`], { timeoutMs }))
          expect([code, message]).toEqual(['RPC_TIMEOUT', expect.stringContaining(`its timeout (${timeoutMs} ms)`)])
          inTime(ms, timeoutMs)
        }
        expect(await call('worker1', echo, ['no limit'], { timeoutMs: 0 })).toBe('no limit')
        expect(await call('worker1', echo, ['the default'])).toBe('the default')
        await sleep(2000)
        // The word that the caller gave up came with it.
        expect(runs.size).toBe(0)
      },
      undefined,
      ['deadLetters'],
    ))

  test('RPC-22: the worker’s default timeout is used', async () => {
    const simulation = await simulate({ workers: 2, rpcTimeoutMs: 100, faults: [late('RESULT', 1500)] }, (sim) =>
      sim.on('worker0').run(async () => {
        const { code, ms } = await failsIn(call('worker1', echo, ['late']))
        expect(code).toBe('RPC_TIMEOUT')
        inTime(ms, 100)
        await sleep(2000)
      }),
    )
    expect(simulation.debugInfo.worker0).toMatchObject({ deadLetters: 1, pendingCalls: 0 })
  })

  test('RPC-22, RPC-9: a reply that is lost for longer than the deadline ends the call, which was run once', () => {
    runs.clear()
    return overSeeds(
      [lost('RESULT', 4000)],
      async () => {
        const { code, ms } = await failsIn(call('worker1', counted, ['once'], { timeoutMs: 2000 }))
        expect(code).toBe('RPC_TIMEOUT')
        inTime(ms, 2000)
      },
      () => {
        expect(runs.get('once')).toBe(1)
        runs.clear()
      },
      ['deadLetters'],
    )
  })
})

describe('remote messages', () => {
  test('RREF-9 remote_message_dropped_pickle: what was never made cannot be sent, by a call or as an argument of remote', () =>
    overSeeds(
      [lost('REMOTE_CALL', 5000)],
      async () => {
        const made = remote('worker1', echo, [1], { timeoutMs: 1000 })
        await sleep(1000 + GRAIN_MS)
        expect(made.confirmedByOwner()).toBe(false)
        const error = await failure(call('worker2', echo, [made]))
        expect(error).toMatchObject({ code: 'RREF_CREATION_TIMEOUT', values: { worker: 'worker1', timeoutMs: 1000 } })
        expect(error.message).toContain('RRef creation on worker')
        expect(() => remote('worker2', echo, [made])).toThrow('RRef creation on worker')
      },
      undefined,
      ['deadLetters'],
    ))

  test('RREF-9 remote_message_dropped_timeout: toHere of what was never made fails as its creation, then and later', () =>
    overSeeds(
      [lost('REMOTE_CALL', 5000)],
      async () => {
        for (const made of [
          remote('worker1', echo, [1], { timeoutMs: 1000 }),
          remote('worker2', myAdd, [ones([1]), ones([1])], { timeoutMs: 1000 }),
        ]) {
          const { code, ms } = await failsIn(made.toHere({ timeoutMs: 1500 }))
          expect(code).toBe('RREF_CREATION_TIMEOUT')
          expect(ms).toBeLessThanOrEqual(1500 + GRAIN_MS)
          await sleep(6000)
          // Its message has come by now, and changes nothing.
          expect((await failsIn(made.toHere())).code).toBe('RREF_CREATION_TIMEOUT')
        }
      },
      undefined,
      ['deadLetters'],
    ))

  test('RREF-9 delay_timeout: a creation that comes late is none; nothing of it stays with the owner', () =>
    overSeeds(
      [late('REMOTE_CALL', 500)],
      async () => {
        const made = remote('worker1', slowly, ['x', 50], { timeoutMs: 100 })
        await sleep(100 + GRAIN_MS)
        const { code, ms } = await failsIn(made.toHere())
        expect([code, ms]).toEqual(['RREF_CREATION_TIMEOUT', 0])
        await sleep(1000)
        expect((await failsIn(made.toHere())).code).toBe('RREF_CREATION_TIMEOUT')
      },
      undefined,
      ['deadLetters'],
    ))

  test('RREF-3 toHere(1 ms) of a slow value times out, and of the owner’s own too; a later one gets it', () =>
    overSeeds(
      [],
      async () => {
        const made = remote('worker1', slowly, ['slow', 100])
        const { code, ms } = await failsIn(made.toHere({ timeoutMs: 1 }))
        expect(code).toBe('RPC_TIMEOUT')
        inTime(ms, 1)
        expect(await made.toHere()).toBe('slow')
        const own = remote('worker0', slowly, ['own', 100])
        expect(own).toBeInstanceOf(OwnerRRef)
        expect((await failsIn(own.toHere({ timeoutMs: 1 }))).code).toBe('RPC_TIMEOUT')
        expect(await own.toHere()).toBe('own')
        made.dispose()
      },
      undefined,
      ['deadLetters'],
    ))

  test('RREF-3 rref_to_here_timeout: a fetch that comes late times out, a plain one then gets the value', () =>
    overSeeds(
      [{ ...late('RREF_FETCH', 500), times: 1 }],
      async () => {
        const made = remote('worker1', echo, ['there'])
        const { code, ms } = await failsIn(made.toHere({ timeoutMs: 10 }))
        expect(code).toBe('RPC_TIMEOUT')
        inTime(ms, 10)
        expect(await made.toHere()).toBe('there')
        made.dispose()
      },
      undefined,
      ['deadLetters'],
    ))

  test('RREF-9 REMOTE_RET that is lost for longer than the deadline: the reference fails though the value was made, and gives itself up', () =>
    overSeeds(
      [lost('REMOTE_RET', 4000)],
      async () => {
        const made = remote('worker1', echo, [1], { timeoutMs: 1000 })
        await sleep(2000)
        expect((await failsIn(made.toHere())).code).toBe('RREF_CREATION_TIMEOUT')
      },
      undefined,
      ['deadLetters'],
    ))
})

test('FLT-5 the gradients of the design note’s example do not depend on messages that are lost, repeated or late, to the bit', async () => {
  const { inputs } = readGolden().design_note!
  const oracle = await inlined({ workers: 2 }, (cluster) => cluster.on('worker0').run(designNoteOn, 'worker1', inputs))
  const faults: readonly FaultRule[] = [
    { match: { kind: ['CALL', 'PROPAGATE_GRADIENTS'] }, do: 'drop', timesEach: FAIL_SENDS },
    { match: { probability: 0.2 }, do: 'duplicate' },
    { match: { from: 'worker1', every: 4 }, do: 'delay', delayMs: 100 },
  ]
  const hashes = new Set<string>()
  for (let seed = 0; seed < 3 * SEEDS; seed++) {
    const simulation = await simulate({ workers: 2, seed, faults }, (sim) => sim.on('worker0').run(designNoteOn, 'worker1', inputs))
    expect(bitsText(simulation.result)).toBe(bitsText(oracle))
    expect(simulation.faults.drop).toBeGreaterThan(0)
    expectClean(simulation)
    hashes.add(simulation.trace.hash)
  }
  expect(hashes.size).toBeGreaterThan(SEEDS)
})
