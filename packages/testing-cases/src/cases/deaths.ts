/** PyTorch's tests in which workers fail between forward and backward (cases 59 and 60): an error names the dead worker at once, and survivors run passes. */
import { add, mul, sum } from '@postgrad/autograd'
import type { PostgradError } from '@postgrad/base'
import { distAutograd } from '@postgrad/dist-autograd'
import { call, currentWorker, expose } from '@postgrad/rpc'
import { ones, type Tensor } from '@postgrad/tensor'
import { endOf, isAll } from './scenario.js'

/** Ends the worker that runs this: on a thread the thread. */
let endWorker = (): void => process.exit(9)

/** How workers of this thread end. */
export function endWorkersBy(end: () => void): void {
  endWorker = end
}

/** After the answer, if there is one. */
export function die(): void {
  endWorker()
}

export async function addOn(path: readonly string[], a: Tensor, b: Tensor): Promise<Tensor> {
  const [to, ...rest] = path
  return to === undefined ? add(a, b) : await call(to, addOn, [rest, a, b])
}

export interface DeathReport {
  /** How the call ended in which the last worker of the path died. */
  readonly died: string
  /** How the pass over it ended, and what worker its error names. */
  readonly pass: readonly [code: string, worker: unknown]
  /** Whether a pass with the survivor has the right gradients. */
  readonly after: boolean
}

/** Asks until nobody answers: outside of the context, so that the pass does not learn of the death by having asked. */
async function dies(victim: string): Promise<string> {
  const t = ones([1])
  let end = await endOf(call(victim, die))
  while (end === 'value') end = await endOf(call(victim, addOn, [[], t, t]))
  return end
}

/** Forward over the workers of `path`, of which the last one dies; then backward, and a whole pass with `survivor`. */
export async function passOverDead(path: readonly string[], survivor: string): Promise<DeathReport> {
  const victim = path.at(-1)!
  const [died, pass] = await distAutograd.context(async (ctx) => {
    const t = ones([3, 3], { requiresGrad: true })
    const loss = sum(await call(path[0]!, addOn, [path.slice(1), t, t]))
    const end = await currentWorker().run(() => dies(victim))
    const error = await ctx.backward([loss]).then(
      () => null,
      (failure: PostgradError) => failure,
    )
    return [end, [error === null ? 'value' : error.code, error?.values.worker] as const] as const
  })
  const after = await distAutograd.context(async (ctx) => {
    const t = ones([3, 3], { requiresGrad: true })
    await ctx.backward([sum(mul(await call(survivor, addOn, [[], t, t]), 2))])
    return isAll(ctx.gradients().get(t), 4)
  })
  return { died, pass, after }
}

expose({ die, addOn, passOverDead })

export interface DeathCase {
  readonly name: string
  /** Workers and arguments of `passOverDead`. */
  readonly runs: readonly { readonly on: string; readonly path: readonly string[]; readonly survivor: string }[]
  readonly dead: readonly string[]
}

export const deathCases: readonly DeathCase[] = [
  {
    name: 'case 59, backward_node_failure, after which the survivors go on',
    runs: [
      { on: 'worker0', path: ['worker1'], survivor: 'worker2' },
      { on: 'worker2', path: ['worker3'], survivor: 'worker0' },
    ],
    dead: ['worker1', 'worker3'],
  },
  {
    name: 'case 60, backward_node_failure_python_udf, two hops away, after which the survivors go on',
    runs: [{ on: 'worker0', path: ['worker1', 'worker2'], survivor: 'worker1' }],
    dead: ['worker2'],
  },
]
