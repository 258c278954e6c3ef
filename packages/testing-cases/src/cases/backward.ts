/** PyTorch's tests of distributed backward passes (`dist_autograd_test.py`) that have numbers; each has its twin in `scripts/golden/dist.py`. */
import { add, bmm, cos, div, matmul, mul, narrow, stack, sub, sum } from '@postgrad/autograd'
import { distAutograd } from '@postgrad/dist-autograd'
import { type AnyFunction, call, currentWorker, expose, type RRef, remote } from '@postgrad/rpc'
import type { Tensor } from '@postgrad/tensor'
import { constant, gradientsOf, leaf, type NumberCase, type Plain, type Plains, plain, plains, using } from './case.js'
import { makeLeaf, parameterOf, readGradient } from './parameters.js'

// --- what runs on the other workers

/** PyTorch's user function; cases use `add`, too. */
export function myAdd(t1: Tensor, t2: Tensor): Tensor {
  return add(t1, t2)
}

export function mixedBranch(t1: Tensor, t2: Tensor): Tensor {
  return t2.requiresGrad ? sub(t1, t2) : mul(t1, t2)
}

/** t1 · t2 · t3 · t4 · (t3 + t4), where t3 = t1 · t2 and t4 = t1 + t2; the last sum is made on a third worker. */
export async function nestedOn(t1: Tensor, t2: Tensor, third: string): Promise<Tensor> {
  const t3 = mul(t1, t2)
  const t4 = add(t1, t2)
  const res = await call(third, myAdd, [t3, t4])
  return mul(mul(mul(mul(t1, t2), t3), t4), res)
}

export async function addToParameter(ref: RRef<Tensor>, t: Tensor): Promise<Tensor> {
  return add(await ref.toHere(), t)
}

/** On a worker that does not own the parameter. */
export async function addToParameterFromThird(owner: string, ref: RRef<Tensor>, t: Tensor): Promise<Tensor> {
  return using([ref], async () => await call(owner, addToParameter, [ref, t]))
}

/** Goes back and forth between the worker that calls and this one, `left` calls deep. */
export async function chain(t: Tensor, left: number, other: string): Promise<Tensor> {
  if (left === 0) return t
  return await call(other, chain, [mul(t, 1.5), left - 1, currentWorker().info.name])
}

/** A trainer: a context of its own over a parameter elsewhere; gives the owner's gradient and its own. */
export async function trainWith(ref: RRef<Tensor>, values: Plain, owner: string): Promise<{ there: Plain; here: Plain }> {
  return using([ref], () =>
    distAutograd.context(async (ctx) => {
      const t2 = leaf(values)
      const loss = sum(mul(await call(owner, addToParameter, [ref, t2]), t2))
      await ctx.backward([loss])
      return { there: await call(owner, readGradient, [ctx.id, ref]), here: (await gradientsOf(ctx, { t2 })).t2! }
    }),
  )
}

// --- the programs, as worker0

/** A sum over t1 and t2, both leaves. */
async function simple(inputs: Plains, run: (t1: Tensor, t2: Tensor) => Tensor | Promise<Tensor>): Promise<Plains> {
  const [t1, t2] = [leaf(inputs.t1!), leaf(inputs.t2!)]
  return distAutograd.context(async (ctx) => {
    const loss = sum(await run(t1, t2))
    await ctx.backward([loss])
    return { ...(await gradientsOf(ctx, { t1, t2 })), loss: await plain(loss) }
  })
}

/** `remote` and `toHere`, and the reference disposed. */
async function remotely<A extends unknown[]>(to: string, fn: (...args: A) => Tensor | Promise<Tensor>, args: A): Promise<Tensor> {
  const ref = remote(to, fn as AnyFunction, args) as RRef<Tensor>
  return using([ref], async () => await ref.toHere())
}

export const backwardSimple = (inputs: Plains): Promise<Plains> => simple(inputs, (t1, t2) => call('worker1', add, [t1, t2]))
export const backwardSimpleRemote = (inputs: Plains): Promise<Plains> => simple(inputs, (t1, t2) => remotely('worker1', add, [t1, t2]))
export const backwardSimpleSelf = (inputs: Plains): Promise<Plains> => simple(inputs, (t1, t2) => call('worker0', add, [t1, t2]))
export const backwardSimplePythonUdf = (inputs: Plains): Promise<Plains> => simple(inputs, (t1, t2) => call('worker1', myAdd, [t1, t2]))
export const backwardDifferentDtypes = (inputs: Plains): Promise<Plains> => simple(inputs, (t1, t2) => call('worker1', add, [t1, t2]))
export const backwardWithoutRpc = (inputs: Plains): Promise<Plains> => simple(inputs, add)
export const backwardsNestedPythonUdf = (inputs: Plains): Promise<Plains> =>
  simple(inputs, (t1, t2) => call('worker1', nestedOn, [t1, t2, 'worker2']))

export async function backwardDifferentTensorDims(inputs: Plains): Promise<Plains> {
  const [t1, t2, t3, t4] = [leaf(inputs.t1!), constant(inputs.t2!), leaf(inputs.t3!), constant(inputs.t4!)]
  return distAutograd.context(async (ctx) => {
    let val = await call('worker1', matmul, [t1, t2])
    val = await call('worker2', matmul, [val, t3])
    const loss = sum(await call('worker3', matmul, [val, t4]))
    await ctx.backward([loss])
    return { ...(await gradientsOf(ctx, { t1, t3 })), loss: await plain(loss) }
  })
}

export async function backwardMultipleRoundTrips(inputs: Plains): Promise<Plains> {
  const [t1, t3, t5] = [leaf(inputs.t1!), leaf(inputs.t3!), leaf(inputs.t5!)]
  const [t2, t4] = [constant(inputs.t2!), constant(inputs.t4!)]
  return distAutograd.context(async (ctx) => {
    let val = await call('worker1', add, [t1, t2])
    val = await call('worker2', mul, [t3, val])
    const s1 = await call('worker3', stack, [[t4, val]])
    const s2 = await call('worker1', stack, [[t5, val]])
    val = await call('worker2', bmm, [s1, s2])
    val = await call('worker3', matmul, [val, val])
    const loss = sum(val)
    await ctx.backward([loss])
    return { ...(await gradientsOf(ctx, { t1, t3, t5 })), loss: await plain(loss) }
  })
}

export async function backwardUnusedTensors(inputs: Plains): Promise<Plains> {
  const [t1, t2, t3] = [leaf(inputs.t1!), leaf(inputs.t2!), leaf(inputs.t3!)]
  return distAutograd.context(async (ctx) => {
    const s = await call('worker1', stack, [[t1, t2, t3]])
    const loss = sum(await call('worker2', matmul, [narrow(s, 0, 0, 1), narrow(s, 0, 2, 1)]))
    await ctx.backward([loss])
    return { ...(await gradientsOf(ctx, { t1, t2, t3 })), loss: await plain(loss) }
  })
}

export async function backwardMultipleRoots(inputs: Plains): Promise<Plains> {
  const [t1, t2] = [leaf(inputs.t1!), leaf(inputs.t2!)]
  return distAutograd.context(async (ctx) => {
    const roots = [
      sum(await call('worker1', add, [t1, t2])),
      sum(await call('worker2', mul, [t1, t2])),
      sum(await call('worker3', cos, [t1])),
      sum(await call('worker1', div, [t1, t2])),
    ]
    await ctx.backward(roots)
    return gradientsOf(ctx, { t1, t2 })
  })
}

export async function mixedRequiresGrad(inputs: Plains): Promise<Plains> {
  const [t1, t2] = [leaf(inputs.t1!), constant(inputs.t2!)]
  return distAutograd.context(async (ctx) => {
    const ret = await call('worker1', mixedBranch, [t1, t2])
    await ctx.backward([sum(ret)])
    return { ...(await gradientsOf(ctx, { t1, t2 })), ret: await plain(ret) }
  })
}

export async function gradOnlyOnReturnValue({ p }: Plains): Promise<Plains> {
  const ref = remote('worker1', makeLeaf, [p!])
  return using([ref], () =>
    distAutograd.context(async (ctx) => {
      await ctx.backward([sum(await call('worker1', parameterOf, [ref]))])
      return { ...(await gradientsOf(ctx, {})), there: await call('worker1', readGradient, [ctx.id, ref]) }
    }),
  )
}

export async function backwardVerifyHooks(inputs: Plains): Promise<Plains> {
  const [t1, t2] = [leaf(inputs.t1!), leaf(inputs.t2!)]
  t1.registerHook((grad) => mul(grad, 2))
  return distAutograd.context(async (ctx) => {
    await ctx.backward([sum(await call('worker1', matmul, [t1, t2]))])
    return gradientsOf(ctx, { t1, t2 })
  })
}

export async function backwardRRef({ p, t2: values }: Plains): Promise<Plains> {
  const ref = remote('worker1', makeLeaf, [p!])
  const t2 = leaf(values!)
  return using([ref], () =>
    distAutograd.context(async (ctx) => {
      const loss = sum(await remotely('worker1', addToParameter, [ref, t2]))
      await ctx.backward([loss])
      const there = await call('worker1', readGradient, [ctx.id, ref])
      return { ...(await gradientsOf(ctx, { t2 })), there, loss: await plain(loss) }
    }),
  )
}

export async function backwardRRefNested({ p, t2: values }: Plains): Promise<Plains> {
  const ref = remote('worker2', makeLeaf, [p!])
  const t2 = leaf(values!)
  return using([ref], () =>
    distAutograd.context(async (ctx) => {
      const loss = sum(mul(await remotely('worker1', addToParameterFromThird, ['worker2', ref, t2]), t2))
      await ctx.backward([loss])
      const there = await call('worker2', readGradient, [ctx.id, ref])
      return { ...(await gradientsOf(ctx, { t2 })), there, loss: await plain(loss) }
    }),
  )
}

/** A parameter server and three trainers at once: three contexts over one parameter, which must not mix. */
export async function trainerPs({ p, a, b, c }: Plains): Promise<Plains> {
  const ref = remote('worker0', makeLeaf, [p!])
  return using([ref], async () => {
    await ref.toHere()
    const trainers = [a!, b!, c!].map((t2, i) => call(`worker${i + 1}`, trainWith, [ref, t2, 'worker0']))
    const [ofA, ofB, ofC] = await Promise.all(trainers)
    return { a: ofA!.here, a_there: ofA!.there, b: ofB!.here, b_there: ofB!.there, c: ofC!.here, c_there: ofC!.there }
  })
}

export async function pingPong({ t: values }: Plains): Promise<Plains> {
  const t = leaf(values!)
  return distAutograd.context(async (ctx) => {
    const y = await call('worker1', chain, [t, 8, 'worker0'])
    await ctx.backward([sum(mul(y, y))])
    return { ...(await gradientsOf(ctx, { t })), ...(await plains({ y })) }
  })
}

export async function twoPasses(inputs: Plains): Promise<Plains> {
  const [t1, t2] = [leaf(inputs.t1!), leaf(inputs.t2!)]
  return distAutograd.context(async (ctx) => {
    const loss = sum(cos(await call('worker1', mul, [t1, t2])))
    await ctx.backward([loss], { retainGraph: true })
    await ctx.backward([loss])
    return gradientsOf(ctx, { t1, t2 })
  })
}

expose({ myAdd, mixedBranch, nestedOn, addToParameter, addToParameterFromThird, chain, trainWith })
expose({ backwardSimple, backwardSimpleRemote, backwardSimpleSelf, backwardSimplePythonUdf, backwardDifferentDtypes, backwardWithoutRpc })
expose({ backwardsNestedPythonUdf, backwardDifferentTensorDims, backwardMultipleRoundTrips, backwardUnusedTensors, backwardMultipleRoots })
expose({ mixedRequiresGrad, gradOnlyOnReturnValue, backwardVerifyHooks, backwardRRef, backwardRRefNested, trainerPs, pingPong, twoPasses })

export const backwardCases: readonly NumberCase[] = [
  { name: 'backward_simple', shows: 'case 21, by call', main: backwardSimple },
  { name: 'backward_simple_remote', shows: 'case 21, by remote', main: backwardSimpleRemote },
  { name: 'backward_simple_self', shows: 'case 22, a call to oneself', main: backwardSimpleSelf },
  { name: 'backward_simple_python_udf', shows: 'case 23, a user function', main: backwardSimplePythonUdf },
  { name: 'backward_different_tensor_dims', shows: 'case 25, three workers, non-square', main: backwardDifferentTensorDims },
  { name: 'backward_multiple_round_trips', shows: 'case 26, six calls', main: backwardMultipleRoundTrips },
  { name: 'backward_unused_tensors', shows: 'case 27, zeros for what was not used', main: backwardUnusedTensors },
  { name: 'backward_multiple_roots', shows: 'case 29, four roots', main: backwardMultipleRoots },
  { name: 'backward_different_dtypes', shows: 'case 30, float32 and float64', main: backwardDifferentDtypes },
  { name: 'backwards_nested_python_udf', shows: 'case 32, a third worker', main: backwardsNestedPythonUdf },
  { name: 'mixed_requires_grad', shows: 'case 33, requiresGrad arrives as it left', main: mixedRequiresGrad },
  { name: 'grad_only_on_return_value', shows: 'case 34, a parameter of the callee', main: gradOnlyOnReturnValue },
  { name: 'backward_without_rpc', shows: 'case 35, a local graph', main: backwardWithoutRpc },
  { name: 'backward_verify_hooks', shows: 'case 37, a tensor hook', main: backwardVerifyHooks },
  { name: 'backward_rref', shows: 'case 41, a parameter behind a reference', main: backwardRRef },
  { name: 'backward_rref_nested', shows: 'case 43, a reference passed on', main: backwardRRefNested },
  { name: 'trainer_ps', shows: 'case 44, three trainers at once', main: trainerPs },
  { name: 'ping_pong', shows: 'eight nested calls between two workers', main: pingPong },
  { name: 'two_passes', shows: 'two passes over one graph are summed', main: twoPasses },
]
