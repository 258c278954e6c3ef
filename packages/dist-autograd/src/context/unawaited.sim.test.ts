/** A program learns that it forgot to await a pass, and passes that overlap on purpose are not taken for that. */
import { describe, expect, test } from '@jest/globals'
import { call, expose } from '@postgrad/rpc'
import { failure } from '@postgrad/rpc/suite'
import type { Tensor } from '@postgrad/tensor'
import { distAutograd } from '../api.js'
import { sleep } from '../engine/ends.suite.js'
import { pyAdd, wholeLeaf } from '../engine/programs.suite.js'
import { overSeeds } from '../engine/sim-cluster.suite.js'
import type { DistAutogradContext, PassOptimizer } from './dist-autograd-context.js'

const SEEDS = 10

const lossOf = async (weight: Tensor): Promise<Tensor> => (await call(1, pyAdd, [weight, weight])).sum()

/** Begins a pass of its own in the caller's context, which it does not await before its reply. */
let left: Promise<void> | null = null
async function beginsOnly(weight: Tensor): Promise<number> {
  const ctx = distAutograd.currentContext()!
  left = ctx.backward([(await call(0, pyAdd, [weight, weight])).sum()])
  left.catch(() => {})
  return ctx.passes.size
}
/** One that it awaits. */
async function beginsAndAwaits(weight: Tensor): Promise<void> {
  await distAutograd.currentContext()!.backward([(await call(0, pyAdd, [weight, weight])).sum()])
}
/** Is still at it when its caller's context has ended, and then calls in it. */
async function relaysLate(weight: Tensor): Promise<Tensor> {
  await sleep(50)
  return call(0, pyAdd, [weight, weight])
}
expose({ 'unawaited.beginsOnly': beginsOnly, 'unawaited.beginsAndAwaits': beginsAndAwaits, 'unawaited.relaysLate': relaysLate })

const noOptimizer: PassOptimizer = { announce: () => {}, step: () => Promise.reject(new Error('its pass has not ended')) }
/** Calls of a program without `await`. */
const FORGOTTEN: readonly (readonly [string, (ctx: DistAutogradContext, losses: readonly [Tensor, Tensor]) => void])[] = [
  ['ctx.backward', (ctx, [loss]) => void ctx.backward([loss])],
  ['distAutograd.backward', (ctx, [loss]) => void distAutograd.backward(ctx.id, [loss])],
  ['with an optimizer', (ctx, [loss]) => void ctx.backward([loss], { optimizer: noOptimizer })],
  [
    'two passes',
    (ctx, [a, b]) => {
      void ctx.backward([a])
      void ctx.backward([b])
    },
  ],
]

describe('DA-84 a pass that nobody has awaited', () => {
  test('gradients() and getGradients() say so, and not once it has ended', () =>
    overSeeds(SEEDS, 2, async () => {
      await distAutograd.context(async (ctx) => {
        const weight = wholeLeaf([[1, 2]])
        const pass = ctx.backward([await lossOf(weight)])
        for (const read of [() => ctx.gradients(), () => distAutograd.getGradients(ctx.id)]) {
          await expect(async () => read()).rejects.toMatchObject({
            code: 'PASS_UNDER_WAY',
            remedy: expect.stringContaining('await ctx.backward'),
          })
        }
        await pass
        expect(ctx.gradients().get(weight)!.toArray()).toEqual([[2, 2]])
      })
    }))

  test('the context whose function settles under it rejects as the pass does, and is released', () =>
    overSeeds(SEEDS, 2, async () => {
      let seen: DistAutogradContext | null = null
      let pass: Promise<void> | null = null
      const error = await failure(
        distAutograd.context(async (ctx) => {
          seen = ctx
          pass = ctx.backward([await lossOf(wholeLeaf([[1, 2]]))])
        }),
      )
      expect(error).toMatchObject({ code: 'CONTEXT_RELEASED', remedy: expect.stringContaining('await ctx.backward') })
      expect(await failure(pass!)).toBe(error)
      expect(seen!.released).toBe(true)
    }))

  // An unhandled rejection fails the test in which it comes.
  test.each(FORGOTTEN)('%s: its program is told by its context alone, or by what the function throws', (_, begin) =>
    overSeeds(SEEDS, 2, async () => {
      for (const thrown of [null, new RangeError('of the function')]) {
        const error = await failure(
          distAutograd.context(async (ctx) => {
            const weight = wholeLeaf([[1, 2]])
            begin(ctx, [await lossOf(weight), await lossOf(weight)])
            if (thrown !== null) throw thrown
          }),
        )
        if (thrown !== null) expect(error).toBe(thrown)
        else expect(error.code).toBe('CONTEXT_RELEASED')
      }
    }),
  )

  test('a context that its function has released itself is no such thing', () =>
    overSeeds(SEEDS, 2, async () => {
      const value = await distAutograd.context(async (ctx) => {
        ctx.backward([await lossOf(wholeLeaf([[1, 2]]))]).catch(() => {})
        ctx.release()
        return 7
      })
      expect(value).toBe(7)
    }))

  test('passes at once of which each is awaited: nothing of them is read before all have ended', () =>
    overSeeds(SEEDS, 2, async () => {
      await distAutograd.context(async (ctx) => {
        const weight = wholeLeaf([[1, 2]])
        const [a, b] = [await lossOf(weight), await lossOf(weight)]
        let longer: Promise<void> | null = null
        const readsEarly = async () => {
          await ctx.backward([a])
          longer = ctx.backward([b])
          return ctx.gradients()
        }
        expect(await failure(readsEarly())).toMatchObject({ code: 'PASS_UNDER_WAY' })
        await longer
        expect(ctx.gradients().get(weight)!.toArray()).toEqual([[4, 4]])
      })
    }))

  test('passes at once, each awaited, and one that failed, are none', () =>
    overSeeds(SEEDS, 2, async () => {
      await distAutograd.context(async (ctx) => {
        const weight = wholeLeaf([[1, 2]])
        const [a, b] = [await lossOf(weight), await lossOf(weight)]
        const cancelled = ctx.backward([a], { retainGraph: true, signal: AbortSignal.abort() })
        await expect(cancelled).rejects.toMatchObject({ code: 'DIST_BACKWARD_CANCELLED' })
        expect(ctx.gradients().size).toBe(0)
        await Promise.all([ctx.backward([a]), ctx.backward([b])])
        expect(ctx.gradients().get(weight)!.toArray()).toEqual([[4, 4]])
      })
    }))

  test('one that another worker has begun, or another call here, does not count', () =>
    overSeeds(SEEDS, 2, async (cluster) => {
      await distAutograd.context(async (ctx) => {
        const weight = wholeLeaf([[1, 2]])
        // On another worker, and here: worker 1 calls back.
        const others = [call(1, beginsAndAwaits, [weight]), call(0, beginsAndAwaits, [weight])]
        for (let n = 0; n < 20; n++) {
          await call(1, pyAdd, [weight.detach(), 1 as unknown as Tensor])
          expect(ctx.gradients().get(weight)?.shape ?? [1, 2]).toEqual([1, 2])
        }
        await Promise.all(others)
        expect(ctx.gradients().get(weight)!.toArray()).toEqual([[4, 4]])
        // A pass that a call did not await is the callee's mistake, and not this function's.
        expect(await call(0, beginsOnly, [weight])).toBeGreaterThan(0)
      })
      await left?.catch(() => {})
      expect(cluster.parts(0).engine.currentBackwardPasses).toBe(0)
    }))
})

describe('CAN-14 a call that its program has given up', () => {
  // An unhandled rejection fails the test in which it comes.
  test.each([
    ['by an early return', async () => 'early', 'early'],
    ['by an error of its own', () => Promise.reject(new RangeError('of the step')), 'of the step'],
  ])('%s: what it answers after the end of its context reaches nobody', (_, rest, end) =>
    overSeeds(SEEDS, 2, async () => {
      const given = distAutograd.context(() => {
        const weight = wholeLeaf([[1, 2]])
        for (const fn of [pyAdd, relaysLate] as const) void call(1, fn, [weight, weight] as never)
        return rest()
      })
      expect(await given.catch(({ message }: Error) => message)).toBe(end)
      await sleep(200)
    }),
  )
})
