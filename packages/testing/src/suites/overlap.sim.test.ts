/** A worker crashes at any message of a step that overlaps its pass: survivors have stepped only if the pass had ended, and the error says so. */
import { describe, expect, test } from '@jest/globals'
import { isPostgradError } from '@postgrad/base'
import { distAutograd } from '@postgrad/dist-autograd'
import { Adam } from '@postgrad/nn'
import { DistributedOptimizer } from '@postgrad/parallel'
import { expose, remote } from '@postgrad/rpc'
import { ones, type Tensor } from '@postgrad/tensor'
import { type SimCluster, simulate } from '../simulate/simulate.js'

class Weight {
  readonly w = ones([2], { requiresGrad: true })
  forward(x: Tensor): Tensor {
    return this.w.mul(x)
  }
  values(): unknown {
    return this.w.toArray()
  }
  self(): Tensor {
    return this.w
  }
}
expose({ OverlapWeight: Weight })

/** As worker0: how the step ended, and what the weight of worker2, which is final first, is then. */
async function program(): Promise<{ end: string; stepped: readonly string[]; weight: unknown }> {
  const modules = ['worker1', 'worker2'].map((worker) => remote(worker, Weight, []))
  const params = modules.map((module) => module.remote().self())
  const optimizer = new DistributedOptimizer(Adam, params, { lr: 0.5 })
  let end = 'stepped'
  let stepped: readonly string[] = []
  try {
    await optimizer.ready()
    await distAutograd.context(async (ctx) => {
      let y: Tensor = ones([2])
      for (const module of modules) y = await module.call('forward', [y])
      await ctx.backward([y.sum()], { optimizer })
    })
  } catch (error) {
    if (!isPostgradError(error)) throw error
    end = error.code
    stepped = (error.values.stepped as readonly string[] | undefined) ?? []
  }
  return { end, stepped, weight: await modules[1]!.call('values', []) }
}

describe('DA-62', () => {
  test.each(['PROPAGATE_GRADIENTS', 'PASS_REPORT', 'CALL', 'RESULT'] as const)('DA-62 worker1 crashes at any %s', async (kind) => {
    const ends = new Set<string>()
    for (let nth = 1, isThrough = false; !isThrough; nth++) {
      const faults = [{ match: { kind, nth }, do: 'crash' as const, worker: 'worker1' }]
      const run = (sim: SimCluster) => sim.on('worker0').run(program)
      const { result, faults: injected } = await simulate({ workers: 3, seed: nth, faults, rpcTimeoutMs: 1000 }, run)
      isThrough = injected.crash === 0
      const { end, stepped, weight } = result
      ends.add(end)
      const hasStepped = end === 'stepped' || stepped.includes('worker2')
      expect({ nth, end, weight }).toEqual({ nth, end, weight: hasStepped ? [0.5, 0.5] : [1, 1] })
      expect(['stepped', 'WORKER_DIED', 'OPTIMIZER_STEP_FAILED', 'OPTIMIZER_CREATION_FAILED']).toContain(end)
      expect(nth).toBeLessThan(60)
    }
    expect(ends).toContain('WORKER_DIED')
  })
})
