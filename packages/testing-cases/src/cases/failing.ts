/** PyTorch's tests of passes that fail, and of contexts that end during one (cases 54, 55, 56 and 58): the error arrives whole, and workers continue. */
import { add, defineFunction, div, matmul, mul, sum } from '@postgrad/autograd'
import type { PostgradError } from '@postgrad/base'
import { distAutograd } from '@postgrad/dist-autograd'
import { call, currentWorker, expose } from '@postgrad/rpc'
import { full, type Tensor } from '@postgrad/tensor'
import { check, endOf, isAll, next, others, type ScenarioCase } from './scenario.js'

/** Whose backward throws, by worker. */
const failing = new WeakSet<object>()

const simulatesError = defineFunction({
  name: 'SimulateBackwardError',
  forward: (_ctx: unknown, x: Tensor) => mul(x, 1),
  backward: (_ctx: unknown, grad: Tensor) => {
    if (failing.has(currentWorker())) throw new Error('Simulate error on backward pass')
    return grad
  },
}) as unknown as (x: Tensor) => Tensor

/** Makes the backward passes of this worker fail, or no longer. */
export function setFailing(fails: boolean): void {
  if (fails) failing.add(currentWorker())
  else failing.delete(currentWorker())
}

const leaf = (value: number): Tensor => full([3, 3], value, { requiresGrad: true })

/** The error as it was thrown, and the worker that it names. */
async function failureOf(pass: Promise<void>): Promise<readonly [message: string, worker: unknown, node: unknown]> {
  try {
    await pass
    return ['no error', null, null]
  } catch (error) {
    let last = error as Error
    while (last.cause !== undefined) last = last.cause as Error
    const { values } = last as PostgradError
    return [(error as Error).message, values.worker, values.node]
  }
}

export async function engineError(): Promise<unknown> {
  setFailing(true)
  const self = currentWorker().info.name
  return distAutograd.context(async (ctx) => {
    const [t1, t2] = [leaf(1), leaf(2)]
    const tmp = mul(add(t1, t2), add(t1, t2))
    const t3 = simulatesError(tmp)
    let val = await call(next(1), add, [t2, t3])
    val = await call(next(2), mul, [val, t2])
    val = await call(next(3), matmul, [val, t2])
    val = await call(next(1), div, [val, t2])
    const [message, worker, node] = await failureOf(ctx.backward([sum(val)]))
    return [message, worker === self, node]
  })
}

/** Two hops away: the one in between forwards. */
export async function failsTwoHopsAway(t: Tensor, to: string | null): Promise<Tensor> {
  if (to !== null) return await call(to, failsTwoHopsAway, [t, null])
  setFailing(true)
  return simulatesError(t)
}

export async function udfError(): Promise<unknown> {
  return distAutograd.context(async (ctx) => {
    const val = await call(next(1), failsTwoHopsAway, [leaf(1), next(2)])
    const [message, worker] = await failureOf(ctx.backward([sum(val)]))
    return [message, worker === next(2)]
  })
}

export async function simulatedThere(t: Tensor): Promise<Tensor> {
  return simulatesError(t)
}

const FAILURES = 50
const SUCCESSES = 49

export async function multipleWithErrors(): Promise<unknown> {
  return distAutograd.context(async (ctx) => {
    const t1 = leaf(1)
    let val = simulatesError(t1)
    for (const to of others()) val = await call(to, simulatedThere, [val])
    const loss = sum(val)
    const everywhere = (fails: boolean) => Promise.all(others().map((to) => call(to, setFailing, [fails])))
    setFailing(false)
    await everywhere(true)
    const messages = new Set<string>()
    for (let n = 0; n < FAILURES; n++) messages.add((await failureOf(ctx.backward([loss], { retainGraph: true })))[0])
    await everywhere(false)
    check(ctx.gradients().size === 0, 'a failed pass has left gradients')
    for (let n = 0; n < SUCCESSES; n++) await ctx.backward([loss], { retainGraph: true })
    return [[...messages], isAll(ctx.gradients().get(t1), SUCCESSES)]
  })
}

/** By worker, the contexts that its backward releases. */
const cleaned = new WeakMap<object, bigint>()
const cleansContext = defineFunction({
  name: 'DistAutogradFunc',
  forward: (_ctx: unknown, x: Tensor) => mul(x, 1),
  backward: (_ctx: unknown, grad: Tensor) => {
    distAutograd.releaseContext(cleaned.get(currentWorker())!)
    return grad
  },
}) as unknown as (x: Tensor) => Tensor

const HOPS = 100

/** PyTorch must end its workers afterwards; ours live. */
export async function cleanDuringBackward(): Promise<unknown> {
  const released = await distAutograd.context(async (ctx) => {
    cleaned.set(currentWorker(), ctx.id)
    let t = leaf(1)
    for (let n = 0; n < HOPS; n++) t = await call(others()[n % 3]!, add, [t, 1])
    return endOf(ctx.backward([sum(cleansContext(t))]))
  })
  const unknown = await endOf(distAutograd.backward(7n << 48n, [sum(mul(leaf(1), 2))]))
  const after = await distAutograd.context(async (ctx) => {
    let t = leaf(1)
    const first = t
    for (const to of others()) t = await call(to, mul, [t, 2])
    await ctx.backward([sum(t)])
    return isAll(ctx.gradients().get(first), 8)
  })
  return [released, unknown, after]
}

expose({ setFailing, engineError, failsTwoHopsAway, udfError, simulatedThere, multipleWithErrors, cleanDuringBackward })

const SIMULATED = 'Simulate error on backward pass'

export const failingCases: readonly ScenarioCase[] = [
  { name: 'case 54, backward_autograd_engine_error', main: engineError, expected: [SIMULATED, true, 'SimulateBackwardErrorBackward'] },
  { name: 'case 55, backward_python_udf_error', main: udfError, expected: [SIMULATED, true] },
  {
    name: 'case 56, multiple_backward_with_errors',
    main: multipleWithErrors,
    expected: [[SIMULATED], true],
    aloneOnWorker0: true,
    seeds: 2,
  },
  {
    name: 'case 58, clean_context_during_backward, after which everybody goes on',
    main: cleanDuringBackward,
    expected: ['CONTEXT_RELEASED', 'CONTEXT_NOT_FOUND', true],
    seeds: 5,
  },
]
