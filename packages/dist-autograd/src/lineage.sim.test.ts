/** What messages say of the origin of their tensors. */
import { expect, test } from '@jest/globals'
import { add } from '@postgrad/autograd'
import { call } from '@postgrad/rpc'
import { distAutograd } from './api.js'
import { leaf, pyNested } from './programs.suite.js'
import { overSeeds } from './sim-cluster.suite.js'

test('DA-32 a receive function has the depth of the send function at its other end', () =>
  overSeeds(5, 3, async (cluster) => {
    await distAutograd.context(async (ctx) => {
      const a = leaf([2])
      const res = await call(1, pyNested, [add(add(a, 1), 1), a, 1, 3, 0])
      const depths = [0, 1, 2].flatMap((worker) => {
        const { sendFunctions, recvFunctions } = cluster.contextOn(worker, ctx.id)
        return [[...sendFunctions.values()].map(({ depth }) => depth), [...recvFunctions.values()].map(({ depth }) => depth)]
      })
      // The caller's two additions and its leaf, there and on; the third worker's addition; back twice.
      expect(depths).toEqual([[3], [7], [4, 7], [3, 6], [6], [4]])
      expect(res.gradFn!).toHaveProperty('depth', 7)
    })
  }))
