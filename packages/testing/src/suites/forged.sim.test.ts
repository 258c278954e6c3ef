/** Messages that no peer of this version sends: one by one where each has its rule, then every kind with every field wrong, over seeds. */
import { describe, expect, test } from '@jest/globals'
import { mul } from '@postgrad/autograd'
import { currentContext, type DistAutogradContext, distAutograd } from '@postgrad/dist-autograd'
import { installDistAutograd } from '@postgrad/dist-autograd/internal'
import { call, currentWorker, expose, monitor, remote, type WorkerRuntime } from '@postgrad/rpc'
import { ones, type Tensor, tensor } from '@postgrad/tensor'
import { MESSAGE_TABLE, MessageType } from '@postgrad/wire/internal'
import { type SimCluster, simulate } from '../simulate/simulate.js'
import { forgedRuns, isDiscardedMonitor, STATES } from './forged.suite.js'

const SEEDS = 5
/** `npm run soak -- --forged 500000 testing/dist/forged` sends more. */
const FORGED = 600
const TIMEOUT_MS = 500

/** A hook at worker1 sends it in the middle of a pass of worker0, which is known there. */
let forge: (pass: { readonly id: bigint; readonly contextId: bigint }) => void = () => {}
const hooked = (x: Tensor): Tensor => {
  const y = mul(x, 2)
  y.registerHook((grad) => {
    const context = currentContext() as DistAutogradContext
    const [pass] = context.passes.values()
    forge(pass!)
    return grad
  })
  return y
}
const triple = (x: Tensor): Tensor => mul(x, 3)
const via = (x: Tensor): Promise<Tensor> => call('worker2', triple, [x])
const echo = <T>(value: T): T => value
class Quiet {}
const slowly = async (): Promise<Quiet> => {
  await new Promise<void>((resolve) => void currentWorker().clock.setTimer(TIMEOUT_MS, resolve))
  return new Quiet()
}
expose({ 'forged.slowly': slowly, 'forged.Quiet': Quiet })
expose({ 'forged.hooked': hooked, 'forged.triple': triple, 'forged.via': via, 'forged.echo': echo })

/** The last pass's error message. */
let said = ''
const noted = (error: Error & { readonly code: string }): string => {
  said = error.message
  return error.code
}
const worker = () => currentWorker() as WorkerRuntime
const code = ({ code: of }: { readonly code: string }) => of

async function overSeeds(body: (sim: SimCluster) => Promise<void>): Promise<void> {
  for (let seed = 0; seed < SEEDS; seed++) await simulate({ workers: 3, seed, shrink: false }, body)
}

/** How a pass over worker1 ends, in the middle of which worker1 forges; then both still answer. */
async function passEnds(sim: SimCluster, mode: 'smart' | 'fast' = 'smart'): Promise<string> {
  const end = await sim.on('worker0').run(() =>
    distAutograd.context(
      async (ctx) => {
        const x = tensor([1]).requiresGrad_()
        const y = await call('worker1', hooked, [x])
        const startMs = worker().clock.now()
        const ended = await ctx
          .backward([y.sum()], { timeoutMs: TIMEOUT_MS })
          .then(() => `gradient ${ctx.gradients().get(x)!.toArray()}`, noted)
        expect(worker().clock.now() - startMs).toBeLessThan(TIMEOUT_MS + 20)
        return ended
      },
      { mode },
    ),
  )
  for (const from of ['worker0', 'worker1']) expect(await sim.on(from).run(() => call('worker0', echo, [from]))).toBe(from)
  return end
}

const contextAt = (sim: SimCluster, name: string, contextId: bigint): DistAutogradContext =>
  installDistAutograd(sim.on(name).runtime).container.find(contextId)!
const letters = (sim: SimCluster, name: string) =>
  sim
    .on(name)
    .runtime.deadLetters()
    .last.map(({ what }) => what)

describe('forged messages about passes', () => {
  test('DA-80 who is no root ends no pass: PASS_COMMIT and PASS_ABORT about a pass of their receiver are dead letters', async () => {
    for (const [type, body] of [
      [MessageType.PASS_COMMIT, []],
      [MessageType.PASS_ABORT, [new Error('forged')]],
    ] as const) {
      await overSeeds(async (sim) => {
        forge = ({ id, contextId }) => worker().post(0, type, body, { context: contextId, pass: id })
        expect(await passEnds(sim)).toBe('gradient 2')
        expect(letters(sim, 'worker0')).toEqual([`${MESSAGE_TABLE[type].name}: it is about a pass of its receiver`])
      })
    }
  })

  test('DA-80 only the root commits and aborts, only who takes part reports', async () => {
    await overSeeds(async (sim) => {
      const stranger = sim.on('worker2').runtime
      forge = ({ id, contextId }) => {
        const ids = { context: contextId, pass: id }
        stranger.post(1, MessageType.PASS_COMMIT, [], ids)
        stranger.post(1, MessageType.PASS_ABORT, [new Error('forged')], ids)
        stranger.post(0, MessageType.PASS_REPORT, [9, 0, [], 0, []], ids)
        stranger.post(0, MessageType.PASS_ERROR, [new Error('forged')], ids)
        stranger.post(1, MessageType.CLEANUP_CONTEXT, [], { context: contextId })
      }
      expect(await passEnds(sim)).toBe('gradient 2')
      const allowed =
        /^PASS_\w+: (only the root of a pass may say so|its sender has no part in the pass)$|^CLEANUP_CONTEXT: its sender is not/
      for (const what of [...letters(sim, 'worker0'), ...letters(sim, 'worker1')]) expect(what).toMatch(allowed)
      expect(letters(sim, 'worker1').length).toBeGreaterThan(0)
    })
  })

  test('DA-80 the end of a pass that has not come to its end here is a dead letter, though its root says it', async () => {
    await overSeeds(async (sim) => {
      forge = ({ id, contextId }) => sim.on('worker0').runtime.post(1, MessageType.PASS_COMMIT, [], { context: contextId, pass: id })
      // In the middle of the hook worker1 has not gathered; by the time that the word arrives it has, mostly.
      expect(await passEnds(sim)).toBe('gradient 2')
    })
  })

  test('DA-65 a report that names who has no part in the pass fails it at once', async () => {
    await overSeeds(async (sim) => {
      forge = ({ id, contextId }) => worker().post(0, MessageType.PASS_REPORT, [1, 0, [[999, 1]], 0, []], { context: contextId, pass: id })
      expect(await passEnds(sim)).toBe('PASS_UNREADABLE')
    })
  })

  test('DA-26 a worker that nobody knows in a report of a FAST pass: the deadline names it', async () => {
    await overSeeds(async (sim) => {
      forge = ({ id, contextId }) => worker().post(0, MessageType.PASS_REPORT, [9, 1, [[999, 1]], 0, []], { context: contextId, pass: id })
      expect(await passEnds(sim, 'fast')).toBe('DIST_BACKWARD_TIMEOUT')
    })
  })

  test('DA-81 the wait for a pass ends by its deadline, whatever has become of its entry', async () => {
    await overSeeds(async (sim) => {
      forge = ({ id, contextId }) => void contextAt(sim, 'worker0', contextId).passes.delete(id)
      expect(await passEnds(sim)).toBe('DIST_BACKWARD_TIMEOUT')
    })
  })

  test.each([
    ['no ids', { context: 5n }, [[], 0]],
    ['a root that nobody knows', { context: 5n, autogradId: 7n, pass: (999n << 48n) + 1n }, [[], 0]],
    ['a root beyond all ids', { context: 5n, autogradId: 7n, pass: (1n << 64n) - 1n }, [[], 0]],
    ['a counter of more than 48 bits', { context: 5n, autogradId: 7n, pass: 1n, lineage: [1, 2 ** 50] }, [[], 0]],
  ])('DA-80 gradients with %s end nothing', async (_name, ids, body) => {
    await overSeeds(async (sim) => {
      sim.on('worker0').runtime.post(1, MessageType.PROPAGATE_GRADIENTS, body, ids)
      expect(await sim.on('worker0').run(() => call('worker1', echo, ['lives']))).toBe('lives')
    })
  })

  test('DA-41 a counter of more than 48 bits in a plan fails the pass, and a gradient that does not fit what was sent too', async () => {
    await overSeeds(async (sim) => {
      const end = await sim.on('worker0').run(() =>
        distAutograd.context(async (ctx) => {
          const x = tensor([1]).requiresGrad_()
          await call('worker1', triple, [x])
          const [send] = ctx.sendFunctions.values()
          const pass = (1n << 48n) + 5000n
          const ids = { context: ctx.contextId, autogradId: send!.autogradId, pass }
          // As if worker1 were the root.
          sim.on('worker1').runtime.post(0, MessageType.PROPAGATE_GRADIENTS, [[ones([1])], 0], { ...ids, lineage: [1, 2 ** 50] })
          await call('worker1', echo, [1])
          expect(ctx.passes.aborted.has(pass)).toBe(true)
          return 'lives'
        }),
      )
      expect(end).toBe('lives')
    })
  })

  test('DA-32 a call that names a pass, and has a number where gradients say how theirs runs, is read as the call that it is', async () => {
    await overSeeds(async (sim) => {
      const { messages, peers } = sim.on('worker0').runtime
      const peer = peers.resolve(1)
      for (const body of [
        [2n, []],
        ['forged.echo', 2n],
      ]) {
        const out = messages.prepare(peer, MessageType.CALL, body, 'forged')
        Object.assign(out, { context: 5n, autogradId: 7n, pass: 9n, lineage: [1, 0, 0] })
        messages.send(peer, out)
      }
      const out = messages.prepare(peer, MessageType.REMOTE_RET, [5n, 6n, null], 'forged')
      messages.send(peer, Object.assign(out, { context: 5n, autogradId: 7n, pass: 9n, lineage: [1, 0, 0] }))
      expect(await sim.on('worker0').run(() => call('worker1', echo, ['lives']))).toBe('lives')
    })
  })

  test.each([
    ['of another shape', (): [readonly (Tensor | null)[], number] => [[ones([3])], 0]],
    ['of another dtype', (): [readonly (Tensor | null)[], number] => [[tensor([1], { dtype: 'float64' })], 0]],
    ['too many', (): [readonly (Tensor | null)[], number] => [[null, null], 0]],
    ['of another kind of pass', (): [readonly (Tensor | null)[], number] => [[ones([1])], 1]],
  ])('DA-80 gradients that are %s fail the pass with UNEXPECTED_GRADIENTS', async (_name, body) => {
    await overSeeds(async (sim) => {
      forge = ({ id, contextId }) => {
        const [autogradId] = contextAt(sim, 'worker0', contextId).sendFunctions.keys()
        worker().post(0, MessageType.PROPAGATE_GRADIENTS, body(), { context: contextId, autogradId: autogradId!, pass: id })
      }
      expect(await passEnds(sim)).toBe('UNEXPECTED_GRADIENTS')
      expect(said).toMatch(/but (they do not fit its tensors|the pass runs in another way)/)
    })
  })

  test('DA-82 a worker that is started again may be the root of a pass over a worker that does not know it yet', async () => {
    const ends = new Map<string, number>()
    for (let seed = 0; seed < 100; seed++) {
      await simulate({ workers: 3, seed, shrink: false }, async (sim) => {
        const again = sim.restart('worker0')
        for (let tries = 0; tries < 20; tries++) {
          const end = await again
            .run(() =>
              distAutograd.context(async (ctx) => {
                const x = tensor([1]).requiresGrad_()
                await ctx.backward([(await call('worker1', via, [x])).sum()], { timeoutMs: TIMEOUT_MS })
                return `gradient ${ctx.gradients().get(x)!.toArray()}`
              }),
            )
            .catch(code)
          ends.set(end, (ends.get(end) ?? 0) + 1)
          if (end !== 'WORKER_DIED' && end !== 'UNKNOWN_WORKER') return
          await again.run(() => new Promise<void>((resolve) => worker().clock.setTimer(1, resolve)))
        }
      })
    }
    ends.delete('WORKER_DIED')
    ends.delete('UNKNOWN_WORKER')
    expect([...ends]).toEqual([['gradient 3', 100]])
  })
})

describe('every kind of message with every field wrong', () => {
  test('RPC-52 over seeds: nothing uncaught, no wait past its deadline, and every worker still answers', async () => {
    const { forged, uncaught, late, problems, met } = await forgedRuns(0, FORGED, 75)
    expect({ uncaught, late, problems }).toEqual({ uncaught: 0, late: [], problems: [] })
    expect(forged).toBeGreaterThanOrEqual(FORGED)
    // A new kind of message that the program does not send is missing here.
    const kinds = new Set([...met.keys()].map((key) => key.split(' ')[0]))
    expect([...kinds].sort()).toEqual(
      Object.values(MESSAGE_TABLE)
        .map(({ name }) => name)
        .sort(),
    )
    expect([...new Set([...met.keys()].map((key) => key.split(' ')[1]))].sort()).toEqual([...STATES].sort())
  })
})

test('RPC-52: a monitor without an answer is a finding, unless a forged request with its number is served', () =>
  simulate({ workers: 2, seed: 0, shrink: false }, async (sim) => {
    const [asker, asked] = [sim.on('worker0').runtime, sim.on('worker1').runtime]
    const excused = () =>
      asker
        .waits()
        .waits.filter(({ what }) => what === 'postgrad.watchActor')
        .map((wait) => isDiscardedMonitor(wait, asker, asked))
    const soon = () => new Promise<void>((resolve) => void sim.world.clock.setTimer(TIMEOUT_MS / 10, resolve))
    await sim.on('worker0').run(async () => {
      // Its value is being made: the monitor's own request is served.
      void monitor(remote('worker1', slowly))
      const actor = remote('worker1', Quiet)
      await soon()
      expect(excused()).toEqual([false])
      const out = asker.messages.prepare(asker.peers.resolve(1), MessageType.CALL, ['forged.slowly', []], 'forged')
      out.requestId = (asker.requests as unknown as { readonly nextRequest: number }).nextRequest
      asker.messages.send(asker.peers.resolve(1), out)
      void monitor(actor)
      await soon()
      expect(excused()).toEqual([false, true])
    })
  }))
