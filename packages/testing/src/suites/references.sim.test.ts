/** References do the same in a simulation and in the inlined program, to the bit: proxies, backward, modules elsewhere. */
import { describe, expect, test } from '@jest/globals'
import { distAutograd } from '@postgrad/dist-autograd'
import { Linear } from '@postgrad/nn'
import { RemoteModule } from '@postgrad/parallel'
import { call, expose, type RRef, remote } from '@postgrad/rpc'
import { manualSeed, rand, type Tensor, tensor } from '@postgrad/tensor'
import { expectClean } from '../check/expect-clean.js'
import { inlined } from '../inlined/inlined.js'
import type { TestCluster } from '../simulate/cluster.js'
import { simulate } from '../simulate/simulate.js'

class Counter {
  private n = 0
  add(by: number): number {
    this.n += by
    return this.n
  }
}
const makeLeaf = () => {
  manualSeed(5)
  return rand([3, 2], { requiresGrad: true })
}
const lossOf = (w: RRef<Tensor>, x: Tensor): Promise<Tensor> => w.toHere().then((here) => x.matmul(here).tanh().sum())
const gradientOf = (w: RRef<Tensor>, contextId: bigint) => distAutograd.getGradients(contextId).get(w.localValue())!
const gradientsOf = (module: RRef<Linear>, contextId: bigint) => {
  const gradients = distAutograd.getGradients(contextId)
  return module
    .localValue()
    .parameters()
    .map((parameter) => gradients.get(parameter)!)
}
expose({ Counter, makeLeaf, lossOf, gradientOf, gradientsOf, Linear })

async function program(cluster: TestCluster): Promise<unknown> {
  return cluster.on('worker0').run(async () => {
    using counter = remote('worker1', Counter)
    const proxy = counter.rpcAsync()
    await proxy.add(2)
    using kept = counter.remote().add(5)
    await kept.created()
    const counts = [await kept.toHere(), await counter.rpcSync().add(0), kept.ownerName()]

    const x = tensor([[1, -2, 3]], { requiresGrad: true })
    using w = remote('worker1', makeLeaf)
    const first = await distAutograd.context(async (ctx) => {
      using loss = remote('worker1', lossOf, [w, x])
      await loss.backward(ctx.id, { retainGraph: true })
      await loss.backward(ctx.id)
      return [await call('worker1', gradientOf, [w, ctx.id]), ctx.gradients().get(x)!]
    })
    using module = new RemoteModule('worker2', Linear, [3, 2])
    const second = await distAutograd.context(async (ctx) => {
      const y = await module.forward(x)
      using other = remote('worker1', lossOf, [w, x])
      const total = y
        .pow(2)
        .sum()
        .add(await other.toHere())
      await ctx.backward([total])
      return [y, total, ...(await call('worker2', gradientsOf, [module.getModuleRref(), ctx.id])), ctx.gradients().get(x)!]
    })
    return { counts, tensors: [...first, ...second].map((t) => t.toArray()) }
  })
}

describe('proxies, rref.backward and RemoteModule', () => {
  test('RREF-27 RREF-29 RREF-30 RM-6: ten orders of delivery give the bits of the inlined program, and nothing is left', async () => {
    const options = { workers: 3, dataSeed: 11 }
    const oracle = await inlined(options, program)
    expect(JSON.stringify(oracle)).toContain('[7,7,"worker1"]')
    for (let seed = 0; seed < 10; seed++) {
      const simulation = await simulate({ ...options, seed }, program)
      expect({ seed, result: simulation.result }).toEqual({ seed, result: oracle })
      expectClean(simulation)
    }
  })

  test('RREF-9 RREF-30: the same under losses, repeats and delays', async () => {
    const options = { workers: 3, dataSeed: 11 }
    const oracle = await inlined(options, program)
    for (let seed = 0; seed < 5; seed++) {
      const faults = (['drop', 'duplicate', 'delay'] as const).map((action) => ({ match: { probability: 0.15 }, do: action }))
      const simulation = await simulate({ ...options, seed, faults }, program)
      expect({ seed, result: simulation.result }).toEqual({ seed, result: oracle })
      expectClean(simulation)
    }
  })
})
