/** PyTorch's tests of contexts: their ids, nesting, known workers, contents and counters (cases 1 to 4, 13 and 51). */
import { add, defineFunction, mul, sum } from '@postgrad/autograd'
import { distAutograd } from '@postgrad/dist-autograd'
import { currentContext, currentDistAutograd } from '@postgrad/dist-autograd/internal'
import { call, currentWorker, expose, remote } from '@postgrad/rpc'
import { ones, rand, type Tensor, zeros } from '@postgrad/tensor'
import { myAdd } from './backward.js'
import { leaf, type Plain, plain, using } from './case.js'
import { contextState } from './graph.js'
import { readGradient } from './parameters.js'
import { check, endOf, isAll, next, others, type ScenarioCase, sleep } from './scenario.js'

const CONTEXTS = 200

export async function autogradContext(): Promise<unknown> {
  const { container } = currentDistAutograd()
  const self = BigInt(currentWorker().info.id)
  check(container.maxId === (self << 48n) + 281_474_976_710_655n, `the largest id is ${container.maxId}`)
  const ids: bigint[] = []
  for (let n = 0; n < CONTEXTS; n++) {
    await distAutograd.context((ctx) => {
      check(container.retrieve(ctx.id).id === ctx.id && ctx.id >> 48n === self, `a context has id ${ctx.id}`)
      ids.push(ctx.id)
    })
  }
  return [...new Set(ids.map(contextState))]
}

/** Where PyTorch throws, ours nest. */
export async function nestedContext(): Promise<unknown> {
  return distAutograd.context((outer) =>
    distAutograd.context(async (inner) => {
      check(inner.id !== outer.id && currentContext() === inner, 'the inner context is not the current one')
      const t = ones([2], { requiresGrad: true })
      await inner.backward([sum(await call(next(), mul, [t, 3]))])
      check(outer.gradients().size === 0 && outer.knownWorkerIds.size === 0, 'the outer context has a part in it')
      return [inner.gradients().get(t)!.toArray(), currentContext() === inner]
    }),
  )
}

export async function workerIdsRecorded(): Promise<unknown> {
  const knows: string[][] = []
  const everybody = others().sort().join()
  for (const requiresGrad of [false, true]) {
    await distAutograd.context(async (ctx) => {
      const [t1, t2] = [ones([3, 3], { requiresGrad }), zeros([3, 3], { requiresGrad })]
      for (const to of others()) {
        await call(to, add, [t1, t2])
        await using([remote(to, myAdd, [t1, t2])], async () => {})
      }
      knows.push([...ctx.knownWorkerIds].map((id) => currentWorker().resolve(id).name))
    })
  }
  return knows.map((names) => names.sort().join() === everybody)
}

/** Made late, outside of any context of its maker's; which requires grad only now. */
export async function slowAdd(t1: Plain, t2: Plain): Promise<Tensor> {
  await sleep(20)
  return add(leaf(t1).detach(), leaf(t2).detach()).requiresGrad_()
}

export async function threadLocalContextId(): Promise<unknown> {
  const t = await plain(ones([3, 3]))
  const ref = remote(next(), slowAdd, [t, t])
  return using([ref], () =>
    distAutograd.context(async (ctx) => {
      await ctx.backward([sum(await ref.toHere())])
      return (await call(next(), readGradient, [ctx.id, ref])).data
    }),
  )
}

export async function noGraphWithoutGrad(): Promise<unknown> {
  return distAutograd.context(async (ctx) => {
    const [t1, t2] = [ones([3, 3]), zeros([3, 3])]
    const byCall = await call(next(), myAdd, [t1, t2])
    const ref = remote(next(), myAdd, [t1, t2])
    const byRemote = await using([ref], async () => await ref.toHere())
    check(!byCall.requiresGrad && !byRemote.requiresGrad, 'a result requires grad')
    // The callee knows the context all the same.
    return [ctx.sendFunctions.size, ctx.recvFunctions.size, await call(next(), contextState, [ctx.id])]
  })
}

const seenPasses = new WeakMap<object, number[]>()
const countsPasses = defineFunction({
  name: 'CountsPasses',
  forward: (_ctx: unknown, x: Tensor) => mul(x, 1),
  backward: (_ctx: unknown, grad: Tensor) => {
    seenPasses.get(currentWorker())!.push(currentWorker().debugInfo().currentBackwardPasses!)
    return grad
  },
}) as unknown as (x: Tensor) => Tensor

export async function debugInfoOfPasses(): Promise<unknown> {
  const seen: number[] = []
  seenPasses.set(currentWorker(), seen)
  await distAutograd.context(async (ctx) => {
    let t = rand([3, 3], { requiresGrad: true })
    const first = t
    for (const to of others()) t = await call(to, add, [t, t])
    t = countsPasses(t)
    for (const to of others()) t = await call(to, add, [t, t])
    await ctx.backward([sum(t)])
    check(isAll(ctx.gradients().get(first), 64), 'the gradient is another')
  })
  // Each of the four has a pass of its own under way at most.
  return [seen.length, seen.every((passes) => passes >= 1 && passes <= 4), await endOf(Promise.resolve())]
}

expose({ autogradContext, nestedContext, workerIdsRecorded, slowAdd, threadLocalContextId, noGraphWithoutGrad, debugInfoOfPasses })

export const contextCases: readonly ScenarioCase[] = [
  { name: 'case 1, autograd_context', main: autogradContext, expected: ['CONTEXT_RELEASED'], seeds: 2 },
  { name: 'case 2, nested_context, which ours do', main: nestedContext, expected: [[3, 3], true] },
  { name: 'case 3, worker_ids_recorded', main: workerIdsRecorded, expected: [true, true] },
  { name: 'case 4, thread_local_context_id', main: threadLocalContextId, expected: new Array(9).fill(1) },
  { name: 'case 13, no_graph_with_tensors_not_require_grad', main: noGraphWithoutGrad, expected: [0, 0, 'live'] },
  { name: 'case 51, debug_info', main: debugInfoOfPasses, expected: [1, true, 'value'] },
]
