/** Compiled functions on several workers: their gradients have the bits of the functions that they were made of. */
import { expect, test } from '@jest/globals'
import { expose, rpcAsync } from '@postgrad/rpc'
import { compile, Generator, rand, type Tensor } from '@postgrad/tensor'
import { isPending } from '@postgrad/tensor/internal'
import { distAutograd } from '../api.js'
import { overSeeds } from './sim-cluster.suite.js'

/** These tensors have few elements, so a step copies them, as it must: a simulation has managed memory. Their results are large enough to be steps. */
const SHAPES = [
  [400, 1],
  [1, 400],
] as const

const plain = (x: Tensor, y: Tensor): Tensor => x.mul(y).add(1).tanh().mul(x).sub(y)
const chained = compile((x: Tensor, y: Tensor) => plain(x, y))
/** As `chained`, but what it returns is a step that nobody has asked for. */
const pendings: boolean[] = []
const leaked = (x: Tensor, y: Tensor): Tensor => {
  let inner: Tensor | null = null
  compile(() => {
    inner = plain(x, y)
  })()
  pendings.push(isPending(inner!))
  return inner!
}
expose({ plain, chained, leaked })

test.each([
  ['chained', chained],
  ['leaked', leaked],
] as const)('CHAIN-6 %s: a distributed pass has the bits of an uncompiled one', async (_, fn) => {
  const runs = new Map<unknown, string>()
  for (const step of [plain, fn]) {
    await overSeeds(3, 2, async () => {
      const generator = new Generator(7)
      const leaves = SHAPES.map((shape) => rand([...shape], { generator }).requiresGrad_())
      const grads = await distAutograd.context(async (context) => {
        const remote = await rpcAsync('worker1', step, [leaves[0]!, leaves[1]!])
        const here = step(leaves[0]!, leaves[1]!)
        await distAutograd.backward(context, [here.sum().add(remote.sum())])
        const found = await distAutograd.getGradients(context)
        return leaves.map((leaf) => Buffer.from(found.get(leaf)!.dataSync().buffer).toString('latin1'))
      })
      const bits = grads.join('|')
      runs.set(step, runs.get(step) ?? bits)
      expect(bits === runs.get(step)).toBe(true)
    })
  }
  expect(runs.get(fn) === runs.get(plain)).toBe(true)
  expect(pendings.every(Boolean)).toBe(true)
})
