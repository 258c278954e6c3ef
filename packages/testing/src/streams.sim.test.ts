/** Streams under a distributed context: gradients go back through each item, as through results. */
import { describe, expect, test } from '@jest/globals'
import { distAutograd } from '@postgrad/dist-autograd'
import { expose, stream } from '@postgrad/rpc'
import { type Tensor, tensor } from '@postgrad/tensor'
import { expectClean } from './expect-clean.js'
import { simulate } from './simulate.js'

/** x, 2x, 3x, … */
async function* multiples(x: Tensor, count: number) {
  for (let k = 1; k <= count; k++) yield x.mul(k)
}
expose({ multiples })

describe('a stream in a context', () => {
  test('STR-9: the gradient of an argument is the sum over all items, under any order', async () => {
    for (let seed = 1; seed <= 10; seed++) {
      const simulation = await simulate({ workers: 2, seed }, (sim) =>
        sim.on('worker0').run(() =>
          distAutograd.context(async (ctx) => {
            const x = tensor([1, 2, 3], { requiresGrad: true })
            let sum: Tensor | null = null
            for await (const item of stream('worker1', multiples, [x, 5], { window: 2 })) sum = sum === null ? item : sum.add(item)
            await ctx.backward([sum!.sum()])
            return ctx.gradients().get(x)!.toArray()
          }),
        ),
      )
      expect({ seed, gradient: simulation.result }).toEqual({ seed, gradient: [15, 15, 15] })
      expectClean(simulation)
    }
  })
})
