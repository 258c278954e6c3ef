/** Depth: nested calls that ping-pong between two workers, which PyTorch with its defaults cannot do 50 deep. */
import { expect, test } from '@jest/globals'
import { call } from '@postgrad/rpc'
import { distAutograd } from '../api.js'
import { pingPong, wholeLeaf } from '../engine/programs.suite.js'
import { Cluster } from '../engine/sim-cluster.suite.js'

async function chain(depth: number): Promise<number> {
  const cluster = new Cluster(depth, 2, { rpcTimeoutMs: 0 })
  const started = performance.now()
  await cluster.run(0, () =>
    distAutograd.context(async (ctx) => {
      const x = wholeLeaf([[1, 2]])
      const result = await call(1, pingPong, [x, depth])
      expect(result.toArray()).toEqual([[1 + depth, 2 + depth]])
      await ctx.backward([result.sum()])
      expect(ctx.gradients().get(x)!.toArray()).toEqual([[1, 1]])
    }),
  )
  expect(await cluster.leftovers()).toEqual([])
  return performance.now() - started
}

test('DA-15 10,000 nested calls, forward and backward, in time linear in their number', async () => {
  await chain(200)
  const short = await chain(2_000)
  const long = await chain(10_000)
  // Five times as deep: linear is 5, quadratic 25. Other work on the machine may disturb either.
  expect(long / short).toBeLessThan(14)
})
