/** References whose values are tensors: their operations as methods. */
import { describe, expect, test } from '@jest/globals'
import { add } from '@postgrad/autograd'
import { isPostgradError } from '@postgrad/base'
import { expose, type RRef, remote } from '@postgrad/rpc'
import { ones, type Tensor, tensor } from '@postgrad/tensor'
import { distAutograd } from '../api.js'
import { wholeLeaf } from './programs.suite.js'
import { overSeeds } from './sim-cluster.suite.js'

const makeOnes = () => ones([2, 2])
const makeLeaf = () => wholeLeaf([[1, 2]])
expose({ makeOnes, makeLeaf })

describe.each(['worker1', 'worker0'])('a tensor on %s', (owner) => {
  test('RREF-28 its operations are methods (rref_proxy_tensor)', async () => {
    await overSeeds(3, 2, async () => {
      const ref = remote(owner, makeOnes)
      const expected = [
        [2, 2],
        [2, 2],
      ]
      expect((await ref.rpcSync().add(1)).toArray()).toEqual(expected)
      expect(
        (
          await ref
            .rpcAsync()
            .add(ones([2, 2]))
            .wait()
        ).toArray(),
      ).toEqual(expected)
      expect((await ref.remote().add(1).toHere()).toArray()).toEqual(expected)
      // A chain that stays on the owner until its end.
      const weighted = ref
        .remote()
        .add(1)
        .remote()
        .mul(tensor([1, 10]))
      expect((await weighted.rpcSync().sum()).itemSync()).toBe(44)
    })
  })

  test('RREF-28 what is written in place is written to the value', async () => {
    await overSeeds(3, 2, async () => {
      const ref = remote(owner, makeOnes)
      await ref.rpcSync().add_(4)
      expect((await ref.toHere()).toArray()).toEqual([
        [5, 5],
        [5, 5],
      ])
    })
  })

  test('RREF-28 only operations can be called, not what a tensor is made of', async () => {
    await overSeeds(1, 2, async () => {
      const ref = remote(owner, makeOnes) as RRef<unknown> as RRef<Record<string, () => unknown>>
      for (const name of ['dispose', 'storage', 'autograd', 'close', 'backward', 'nothing', 'toString', 'shape']) {
        const error = await ref.call(name, []).then(
          () => null,
          (reason: unknown) => reason,
        )
        expect([name, isPostgradError(error, 'METHOD_NOT_FOUND')]).toEqual([name, true])
      }
    })
  })

  test('RREF-28 inside a context, gradients find their way through the references', async () => {
    await overSeeds(10, 2, async () => {
      await distAutograd.context(async (ctx) => {
        const w: RRef<Tensor> = remote(owner, makeLeaf)
        const x = wholeLeaf([[3, 4]])
        const sum = await w.remote().mul(x).remote().sum().toHere()
        const twice = await w.rpcSync().add(x)
        await ctx.backward([add(sum, twice.sum())])
        expect(ctx.gradients().get(x)!.toArray()).toEqual([[2, 3]])
      })
    })
  })
})
