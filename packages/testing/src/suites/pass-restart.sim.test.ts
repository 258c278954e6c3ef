/** A worker is started again in the middle of a pass: the pass fails and names it, its new life has no part in it, and a pass with the new life is right. */
import { expect, test } from '@jest/globals'
import { mul, sum } from '@postgrad/autograd'
import { isPostgradError } from '@postgrad/base'
import { distAutograd } from '@postgrad/dist-autograd'
import { call, currentWorker, expose } from '@postgrad/rpc'
import { ones, type Tensor } from '@postgrad/tensor'
import { expectClean } from '../check/expect-clean.js'
import { simulate } from '../simulate/simulate.js'

const timesAlong = async (x: Tensor, path: readonly string[]): Promise<Tensor> => {
  const [next, ...rest] = path
  const y = mul(x, 2)
  return next === undefined ? y : await call(next, timesAlong, [y, rest])
}

/** Over worker1 to worker2 and back, again and again in one context, until a pass fails; says how, and how many ended before. */
async function passes(most: number): Promise<readonly [code: string, worker: unknown, ended: number]> {
  let ended = 0
  try {
    await distAutograd.context(async (ctx) => {
      const t = ones([2], { requiresGrad: true })
      const loss = sum(await call('worker1', timesAlong, [t, ['worker2', 'worker0']]))
      for (; ended < most; ended++) await ctx.backward([loss], { retainGraph: true })
      const gradient = ctx.gradients().get(t)!.toArray()
      if (String(gradient) !== String([8 * ended, 8 * ended])) throw new RangeError(`${ended} passes left ${gradient}`)
    })
    return ['value', null, ended]
  } catch (error) {
    return isPostgradError(error) ? [error.code, error.values.worker, ended] : [String(error), null, ended]
  }
}

const sleep = (ms: number): Promise<void> => new Promise((resolve) => currentWorker().clock.setTimer(ms, resolve))
expose({ 'restart.timesAlong': timesAlong, 'restart.passes': passes, 'restart.sleep': sleep })

test.each([false, true])('DA-68 at any moment (sessions: %p)', async (sessions) => {
  let amid = 0
  for (let seed = 1; seed <= 20; seed++) {
    const simulation = await simulate({ workers: 3, seed, ...(sessions ? { faults: [] } : {}) }, async (sim) => {
      const restarted = sim.on('worker0').run(async () => {
        while (sim.world.steps < 20 + ((seed * 13) % 90)) await sleep(0)
        return sim.restart('worker1')
      })
      const failed = await sim.on('worker0').run(passes, 1000)
      const again = await restarted
      // Until both know of the new life: earlier calls meet the old one.
      let last = await sim.on('worker0').run(passes, 2)
      while (last[0] !== 'value') {
        await sim.on('worker0').run(sleep, 1)
        last = await sim.on('worker0').run(passes, 2)
      }
      return { failed, last, contexts: again.runtime.debugInfo().currentBackwardPasses }
    })
    const { failed, last, contexts } = simulation.result
    expect({ seed, code: failed[0], worker: failed[1] }).toEqual({ seed, code: 'WORKER_DIED', worker: 'worker1' })
    expect({ seed, last, contexts }).toEqual({ seed, last: ['value', null, 2], contexts: 0 })
    if (failed[2] > 0) amid++
    expectClean(simulation)
  }
  expect(amid).toBeGreaterThan(3)
})
