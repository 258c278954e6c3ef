/** PyTorch's tests that compare with the local engine under load: many passes, many contexts, many trainers (cases 37, 42, 44, 48 and 50). */
import { add, backward as localBackward, matmul, mul, noGrad, sum } from '@postgrad/autograd'
import { distAutograd } from '@postgrad/dist-autograd'
import { type AnyFunction, call, currentWorker, expose, type RRef, remote } from '@postgrad/rpc'
import { ones, type Tensor, tensor } from '@postgrad/tensor'
import { addToParameter, trainWith } from './backward.js'
import { type Plain, plain, using } from './case.js'
import { makeLeaf } from './parameters.js'
import { check, isAll, next, others, type ScenarioCase } from './scenario.js'

/** Whole numbers: their sums and products are exact, so that gradients are the same in every order of summation. */
function whole(seed: number): Tensor {
  return tensor([0, 1, 2].map((i) => [0, 1, 2].map((j) => ((seed + 2 * i + 3 * j) % 5) - 1))).requiresGrad_()
}

type Exec = (to: string, fn: AnyFunction, args: unknown[]) => Promise<Tensor>

const MODES: Readonly<Record<string, Exec>> = {
  local: async (_to, fn, args) => (await fn(...args)) as Tensor,
  call: async (to, fn, args) => (await call(to, fn, args)) as Tensor,
  remote: async (to, fn, args) => {
    const ref = remote(to, fn as (...args: unknown[]) => Tensor, args)
    return using([ref], async () => await ref.toHere())
  },
}

/** PyTorch's check: the same leaves with the local engine and with a distributed pass, by call and by remote. */
async function verifyBackward(
  leaves: () => Tensor[],
  loss: (exec: Exec, leaves: readonly Tensor[]) => Promise<Tensor>,
): Promise<boolean[]> {
  const here = leaves()
  localBackward(await loss(MODES.local!, here))
  const same: boolean[] = []
  for (const mode of ['call', 'remote']) {
    const there = leaves()
    await distAutograd.context(async (ctx) => {
      await ctx.backward([await loss(MODES[mode]!, there)])
      const gradients = ctx.gradients()
      same.push(
        gradients.size === here.filter((t) => t.grad !== null).length &&
          there.every((t, i) => String(gradients.get(t)?.toArray()) === String(here[i]!.grad?.toArray())),
      )
    })
  }
  return same
}

export function verifyHooks(): Promise<boolean[]> {
  const leaves = () => {
    const [t1, t2] = [whole(1), whole(2)]
    t1.registerHook((grad) => noGrad(() => mul(grad, 2)))
    return [t1, t2]
  }
  return verifyBackward(leaves, async (exec, [t1, t2]) => sum(await exec(next(), matmul, [t1, t2])))
}

/** The other three against worker0's parameter, each with one of its own. */
export async function rrefMulti(): Promise<unknown> {
  const ref = remote('worker0', makeLeaf, [await plain(ones([3, 3]))])
  return using([ref], () =>
    distAutograd.context(async (ctx) => {
      const t2 = whole(currentWorker().info.id)
      const sums = remote('worker0', addToParameter, [ref, t2]) as RRef<Tensor>
      const loss = sum(await using([sums], async () => await sums.toHere()))
      await ctx.backward([loss])
      return isAll(ctx.gradients().get(t2), 1)
    }),
  )
}

/** Parameter server of the three others and trainer of each of them, all at once; the contexts must not mix. */
export async function everybodyTrains(): Promise<unknown> {
  const ref = remote(currentWorker().info, makeLeaf, [await plain(ones([3, 3]))])
  return using([ref], async () => {
    await ref.toHere()
    const factor = (to: string): Promise<Plain> => plain(mul(ones([3, 3]), Number(to.at(-1)) + 2))
    const trained = others().map(async (to) => {
      const { there, here } = await call(to, trainWith, [ref, await factor(to), currentWorker().info.name])
      // Of sum((p + t) · t): t for the parameter, p + 2 t for the trainer's own.
      const t = Number(to.at(-1)) + 2
      return there.data.every((g) => g === t) && here.data.every((g) => g === 1 + 2 * t)
    })
    return await Promise.all(trained)
  })
}

const PASSES = 1000

export async function multipleBackward(): Promise<unknown> {
  return distAutograd.context(async (ctx) => {
    const [t1, t2] = [whole(3), whole(4)]
    const loss = sum(await call(next(), add, [t1, t2]))
    for (let n = 0; n < PASSES; n++) await ctx.backward([loss], { retainGraph: true })
    return [isAll(ctx.gradients().get(t1), PASSES), ctx.passes.size]
  })
}

const PROGRAMS = 20

export async function manyAtOnce(): Promise<unknown> {
  if (currentWorker().info.id === 0) return 'right'
  const one = async (n: number): Promise<void> => {
    const same = await verifyBackward(
      () => [whole(n), whole(n + 1)],
      async (exec, [t1, t2]) => {
        const t3 = await exec('worker0', add, [t1, t2])
        const t4 = await exec('worker0', mul, [t2, t3])
        const t5 = await exec('worker0', matmul, [t3, t4])
        return sum(await exec('worker0', add, [t4, t5]))
      },
    )
    check(same.every(Boolean), `program ${n} has other gradients than the local engine`)
  }
  await Promise.all(Array.from({ length: PROGRAMS }, (_, n) => one(n)))
  return 'right'
}

expose({ verifyHooks, rrefMulti, everybodyTrains, multipleBackward, manyAtOnce })

export const loadCases: readonly ScenarioCase[] = [
  { name: 'case 37, backward_verify_hooks, in all modes', main: verifyHooks, expected: [true, true] },
  { name: 'case 42, backward_rref_multi', main: rrefMulti, expected: true },
  { name: 'case 44, trainer_ps, all workers at once', main: everybodyTrains, expected: [true, true, true] },
  { name: 'case 48, multiple_backward', main: multipleBackward, expected: [true, 0], seeds: 1, aloneOnWorker0: true },
  { name: 'case 50, async_dist_autograd', main: manyAtOnce, expected: 'right', seeds: 2 },
]
