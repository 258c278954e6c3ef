/** Backward hooks of modules in distributed passes. */
import { expect, test } from '@jest/globals'
import { distAutograd } from '@postgrad/dist-autograd'
import { Identity } from '@postgrad/nn'
import { tensor } from '@postgrad/tensor'
import { overSeeds } from './sim-workers.suite.js'

test('DA-59 a backward hook of a module runs for each of two passes at once', () =>
  overSeeds(1, async () => {
    const module = new Identity()
    let calls = 0
    module.registerFullBackwardHook((_, gradInputs, gradOutputs) => {
      calls++
      expect(gradInputs.map((g) => g?.toArray())).toEqual(gradOutputs.map((g) => g?.toArray()))
      return gradInputs.map((g) => g?.mul(10) ?? null)
    })
    const x = tensor([1], { requiresGrad: true })
    const y = module.forward(x.mul(1))
    const [one, three] = [y.sum(), y.mul(3).sum()]
    await distAutograd.context(async (ctx) => {
      await Promise.all([one, three].map((loss) => ctx.backward([loss], { retainGraph: true })))
      expect([ctx.gradients().get(x)!.toArray(), calls]).toEqual([[40], 2])
    })
  }))
