/** The checkers over one run: what they prove holds for programs with faults and deaths, and each can fail. */
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, test } from '@jest/globals'
import { add, mul, sum } from '@postgrad/autograd'
import { PostgradError } from '@postgrad/base'
import { distAutograd } from '@postgrad/dist-autograd'
import { call, expose, remote } from '@postgrad/rpc'
import { type Tensor, tensor } from '@postgrad/tensor'
import { decodeToken, encodeToken, type TestIdentity } from '../replay/replay-token.js'
import type { TestCluster } from '../simulate/cluster.js'
import type { Messages } from '../simulate/message-ledger.js'
import { type Simulation, simulate } from '../simulate/simulate.js'
import { expectConserved, expectCreditsReturned, expectExecutedOnce } from './expect-conserved.js'
import { expectSound, simulateAgainstInlined } from './expect-sound.js'
import { matchers } from './matchers.js'

const scale = (x: Tensor, by: number): Tensor => mul(x, by)
const onward = async (x: Tensor): Promise<Tensor> => add(await call('worker2', scale, [x, 3]), x)
const makeNumber = (value: number): number => value
expose({ scale, onward, makeNumber })

/** Three workers, nested calls, a reference, a pass. */
async function train(): Promise<{ x: Tensor; loss: number }> {
  const reference = remote('worker1', makeNumber, [2])
  try {
    return await distAutograd.context(async (ctx) => {
      const x = tensor([1, 2, 3], { requiresGrad: true })
      const y = await call('worker1', onward, [mul(x, await reference.toHere())])
      const loss = sum(mul(y, y))
      await ctx.backward([loss])
      return { x: ctx.gradients().get(x)!, loss: await loss.item() }
    })
  } finally {
    reference.dispose()
  }
}

const body = (cluster: TestCluster) => cluster.on('worker0').run(train)

describe('TK-44 all checkers in one call', () => {
  test.each([1, 2, 3, 4, 5])('TK-44 hold for a program under losses, repetitions and delays (seed %d)', async (seed) => {
    const simulation = await simulateAgainstInlined(
      {
        workers: 3,
        seed,
        faults: [
          { match: { probability: 0.2 }, do: 'drop' },
          { match: { probability: 0.2 }, do: 'duplicate' },
          { match: { probability: 0.1 }, do: 'delay', delayMs: 30 },
        ],
      },
      body,
    )
    expect(simulation.messages!.requests).toBeGreaterThanOrEqual(4)
    expect(simulation.messages!.counts.find(({ kind, from }) => kind === 'PROPAGATE_GRADIENTS' && from === 'worker0')).toMatchObject({
      to: 'worker1',
      sent: 1,
      received: 1,
      deadLetters: 0,
      bothLive: true,
    })
  })

  test('TK-65 what they find ends as a run that fails does: with the token, the line that repeats it, and a trace', async () => {
    const traceDir = mkdtempSync(join(tmpdir(), 'sound-'))
    try {
      const options = { workers: 3, seed: 5, traceDir }
      const found = async (seed: number) => {
        const simulation = await simulate({ ...options, seed }, body)
        try {
          expectSound(simulation, { oracle: { x: tensor([0, 0, 0]), loss: 0 } })
        } catch (error) {
          return error as PostgradError & { replay: string; stack: string }
        }
        throw new Error('expected a finding')
      }
      const { code, replay, stack } = await found(5)
      expect(code).toBe('BITS_DIFFER')
      expect(stack).toContain(`Repeat it, in front of the same test command: POSTGRAD_REPLAY=${replay}`)
      const [, path] = /Trace: (.*\.txt), as a diagram/.exec(stack)!
      expect(readFileSync(path!, 'utf8')).toContain('gradients of message')
      const { of, variant } = decodeToken(replay)
      expect(variant.seed).toBe(5)
      process.env.POSTGRAD_REPLAY = encodeToken({ of: { ...(of as TestIdentity), run: (of as TestIdentity).run + 1 }, variant })
      // In the place of another seed.
      expect(await found(6)).toMatchObject({ code: 'BITS_DIFFER', replay: process.env.POSTGRAD_REPLAY })
    } finally {
      delete process.env.POSTGRAD_REPLAY
      rmSync(traceDir, { recursive: true })
    }
  })

  test('TK-44 hold where a worker dies and comes back', async () => {
    const simulation = await simulate(
      { workers: 3, seed: 1, faults: [{ match: { kind: 'CALL', to: 'worker2' }, do: 'restart' }] },
      async (sim) => {
        await expect(sim.on('worker0').run(train)).rejects.toMatchObject({ code: 'WORKER_DIED' })
      },
    )
    expect(simulation.anyEnded).toBe(true)
    expectSound(simulation)
  })

  test('TK-44 a result of other bits, and something that is held, are found', async () => {
    const simulation = await simulate({ workers: 3 }, body)
    expect(() => expectSound(simulation, { oracle: { x: simulation.result.x, loss: 0 } })).toThrow(
      expect.objectContaining({ code: 'BITS_DIFFER' }),
    )
    const held = await simulate({ workers: 2 }, (sim) =>
      sim.on('worker0').run(async () => {
        await remote('worker1', makeNumber, [1]).toHere()
      }),
    )
    expect(() => expectSound(held)).toThrow(expect.objectContaining({ code: 'NOT_CLEAN' }))
  })

  test('TK-44 the worst that is found comes first, and all others are told', async () => {
    const simulation = await simulate({ workers: 2 }, (sim) =>
      sim.on('worker0').run(async () => ({ loss: await remote('worker1', makeNumber, [1]).toHere() })),
    )
    const count = { ...simulation.messages!.counts[0]!, sent: 1, received: 2 }
    const wrong = { ...simulation, messages: { ...simulation.messages!, counts: [count] } }
    const oracle = { loss: 2 }
    const { message } = matchers.toBeSound(wrong, { oracle })
    const codes = ['BITS_DIFFER', 'NOT_CONSERVED', 'NOT_CLEAN'].map((code) => message().indexOf(`${code}: `))
    expect(codes).toEqual([0, ...codes.slice(1).sort((a, b) => a - b)])
    expect(message()).toContain("worker 'worker1': ownerRRefs 1")
    expect(() => expectSound(wrong, { oracle })).toThrow(
      expect.objectContaining({ code: 'BITS_DIFFER', values: expect.objectContaining({ alsoFound: ['NOT_CONSERVED', 'NOT_CLEAN'] }) }),
    )
    expect(() => expectSound({ ...wrong, messages: simulation.messages })).toThrow(expect.objectContaining({ code: 'NOT_CLEAN' }))
  })

  test('TK-44, TK-65 a checker that fails itself hides neither what was found before it nor the line that repeats the run', async () => {
    const simulation = await simulate({ workers: 2 }, (sim) => sim.on('worker0').run(async () => ({ loss: 1 })))
    Object.defineProperty(simulation, 'messages', {
      get() {
        throw new RangeError('cannot be read')
      },
    })
    const error = (() => {
      try {
        return expectSound(simulation, { oracle: { loss: 2 } })
      } catch (thrown) {
        return thrown as Error
      }
    })()
    expect(error).toMatchObject({ name: 'RangeError', message: 'cannot be read' })
    expect(error!.stack).toMatch(/Also found:\nBITS_DIFFER: [\s\S]*POSTGRAD_REPLAY=/)
  })

  test('TK-44 the cause of the worst stays its cause', async () => {
    const simulation = await simulate({ workers: 2 }, (sim) =>
      sim.on('worker0').run(async () => ({ loss: await remote('worker1', makeNumber, [1]).toHere() })),
    )
    const cause = new RangeError('why')
    const worst = new PostgradError('EXECUTED_TWICE', { op: 'expectExecutedOnce', message: 'twice', cause })
    Object.defineProperty(simulation, 'messages', {
      get() {
        throw worst
      },
    })
    expect(() => expectSound(simulation)).toThrow(
      expect.objectContaining({ code: 'EXECUTED_TWICE', cause, values: { alsoFound: ['NOT_CLEAN'] } }),
    )
  })

  test('TK-44 without counts they say so', async () => {
    const simulation = await simulate({ workers: 3, countMessages: false }, body)
    expect(simulation.messages).toBe(null)
    expect(() => expectSound(simulation)).toThrow(expect.objectContaining({ code: 'NOT_COUNTED' }))
  })
})

describe('each checker can fail', () => {
  const doctored = async (change: (messages: Messages) => Partial<Messages>): Promise<Simulation<unknown>> => {
    const simulation = await simulate({ workers: 3, seed: 2 }, body)
    return { ...simulation, messages: { ...simulation.messages!, ...change(simulation.messages!) } }
  }

  test.each([
    ['that vanished between two that live', -1],
    ['that came twice', 1],
  ])('TK-42 a message %s', async (_, more) => {
    const simulation = await doctored(({ counts }) => ({
      counts: counts.map((count) => (count.kind === 'RREF_FETCH' ? { ...count, received: count.received + more } : count)),
    }))
    expect(() => expectConserved(simulation)).toThrow(
      expect.objectContaining({
        code: 'NOT_CONSERVED',
        message: expect.stringContaining(`worker0 (0) → worker1 (1) RREF_FETCH: 1 sent, ${1 + more} received`),
      }),
    )
  })

  test('TK-42 a message that was lost with an end is accounted for, one that came from nowhere is not', async () => {
    const lossy = (more: number) =>
      doctored(({ counts }) => ({ counts: counts.map((count) => ({ ...count, bothLive: false, received: count.received + more })) }))
    expectConserved(await lossy(-1))
    const simulation = await lossy(1)
    expect(() => expectConserved(simulation)).toThrow(expect.objectContaining({ code: 'NOT_CONSERVED' }))
  })

  test('TK-42 frames that are not accounted for', async () => {
    const simulation = await doctored(({ frames }) => ({ frames: { ...frames, lost: frames.lost + 1 } }))
    expect(() => expectConserved(simulation)).toThrow(
      expect.objectContaining({ code: 'NOT_CONSERVED', message: expect.stringContaining('frames:') }),
    )
  })

  test('TK-41 a request that ran twice', async () => {
    const twice = { from: 'worker0', to: 'worker1', kind: 'CALL', what: 'onward', requestId: 3, received: 1, begun: 2 }
    const simulation = await doctored(() => ({ repeated: [twice] }))
    expect(() => expectExecutedOnce(simulation)).toThrow(
      expect.objectContaining({
        code: 'EXECUTED_TWICE',
        message: expect.stringContaining('worker0 → worker1 CALL onward (request 3): arrived 1 times, began 2 times'),
      }),
    )
  })

  test.each([
    ['a call that waits for ever', { waiting: 1 }],
    ['a call that the receiver did not count', { begun: 0 }],
    ['bytes that the receiver counts otherwise', { begunBytes: 1 }],
    ['a credit on which the two disagree', { counted: 5 }],
  ])('TK-43 %s', async (_, change) => {
    const simulation = await doctored(({ credits }) => ({ credits: credits.map((credit) => ({ ...credit, ...change })) }))
    expect(() => expectCreditsReturned(simulation)).toThrow(expect.objectContaining({ code: 'CREDITS_LOST' }))
  })
})
