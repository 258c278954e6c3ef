/** Distributed autograd from the main thread: its passes give the same bits as the program in one place. */
import { expect, test } from '@jest/globals'
import { distAutograd } from '@postgrad/dist-autograd'
import { SGD } from '@postgrad/nn'
import { DistributedOptimizer } from '@postgrad/parallel'
import { call, getDebugInfo, type RRef, remote } from '@postgrad/rpc'
import { type Tensor, tensor } from '@postgrad/tensor'
import { launcher } from '../clusters.fixture.js'
import * as program from '../fixtures/main-thread.js'

const { Policy } = program
const launch = launcher()
const url = new URL('../fixtures/main-thread.js', import.meta.url)
const WEIGHTS = [0.3, -0.7] as [number, number]
const input = () =>
  tensor(
    [
      [0.1, 2.5],
      [-1.25, 0.75],
    ],
    { requiresGrad: true },
  )
const bits = (tensors: readonly (Tensor | null | undefined)[]) => tensors.map((one) => [...(one!.dataSync() as Float32Array)])

/** The same without a cluster. */
function atHome(): { readonly loss: number[][]; readonly grads: number[][]; readonly stepped: number[] } {
  const x = input()
  const policy = new Policy(WEIGHTS)
  const y = policy.act(x.mul(3))
  const loss = y.mul(2).mul(y).sum()
  loss.backward()
  const grads = bits([x.grad, policy.linear.weight.grad, policy.linear.bias!.grad])
  new SGD(policy.linear.parameters(), { lr: 0.1 }).step()
  return { loss: bits([loss]), grads, stepped: policy.values() }
}

test('CLU-76: forward over two workers, backward from the main thread: the bits of the program in one place, gradients here and there', async () => {
  const cluster = await launch(url, { workers: 2, referenceLeaks: 'error' })
  const home = atHome()
  const there = await cluster.runHere(async () => {
    using policy = remote('worker1', Policy, [WEIGHTS])
    const parameters = await policy.rpcSync().parameterRefs()
    const found = await distAutograd.context(async (ctx) => {
      const x = input()
      const y = await policy.rpcAsync().act(x.mul(3))
      const loss = (await call('worker0', program.double, [y])).mul(y).sum()
      await ctx.backward([loss])
      const remoteGrads = await Promise.all(parameters.map((ref) => call('worker1', program.gradientOf, [ctx.contextId, ref])))
      return { loss: bits([loss]), grads: bits([ctx.gradients().get(x), ...remoteGrads]) }
    })
    for (const ref of parameters) ref.dispose()
    return found
  })
  expect(there).toEqual({ loss: home.loss, grads: home.grads })
})

test('CLU-76: cluster.call within a context is recorded; a step of DistributedOptimizer from the main thread', async () => {
  const cluster = await launch(url, { workers: 2, referenceLeaks: 'error' })
  const home = atHome()
  const stepped = await cluster.runHere(async () => {
    const policy = await cluster.remote('worker1', Policy, [WEIGHTS])
    const parameters = (await policy.rpcSync().parameterRefs()) as RRef<Tensor>[]
    const optimizer = new DistributedOptimizer(SGD, parameters, { lr: 0.1 })
    await distAutograd.context(async (ctx) => {
      const x = input()
      const y = await policy.rpcAsync().act(x.mul(3))
      const loss = (await cluster.call('worker0', program.double, [y])).mul(y).sum()
      await ctx.backward([loss])
      expect(bits([ctx.gradients().get(x)])).toEqual([home.grads[0]])
      await optimizer.step(ctx)
    })
    return policy.rpcSync().values()
  })
  expect(stepped).toEqual(home.stepped)
})

test('CLU-76: a pass whose root is at a worker goes through the main thread, which served a part of forward', async () => {
  const cluster = await launch(url, { workers: 1 })
  await cluster.runHere(() => {})
  const x = [1, -2, 3]
  const [loss, grad] = await cluster.on('worker0').run(program.passThroughMain, x)
  const local = tensor(x, { requiresGrad: true })
  const localLoss = local.exp().mul(2).mul(local).sum()
  localLoss.backward()
  expect(bits([loss, grad])).toEqual(bits([localLoss, local.grad]))
  // The word that the context has ended is under way.
  const contexts = () => cluster.runHere(() => getDebugInfo().autogradContexts)
  for (let i = 0; i < 100 && (await contexts()) !== 0; i++) await new Promise((resolve) => setTimeout(resolve, 10))
  expect(await contexts()).toBe(0)
})
