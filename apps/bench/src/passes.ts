/**
 * Distributed passes of every shape, which worker0 runs: long chains, fans over many workers, rings, many at once, large tensors. Each returns the
 * seconds of its timed part. `plans/passes.ts` and `plots/sweeps.ts` choose how long, how wide and how many.
 */
import { add, call, distAutograd, expose, ones, rand, type Tensor } from 'postgrad'

export const addOne = (t: Tensor) => t.add(1)
/** Through the workers that are left, one inside the other, and back. */
export const through = async (t: Tensor, workers: readonly string[]): Promise<Tensor> =>
  workers.length === 0 ? t.add(1) : call(workers[0]!, through, [t, workers.slice(1)])

const small = () => rand([3, 3], { requiresGrad: true })

/** `graph` recorded n times, each in a context of its own; only the backward passes are timed. */
async function backwards(n: number, graph: () => Promise<Tensor>): Promise<number> {
  let seconds = 0
  for (let i = 0; i < n; i++) {
    await distAutograd.context(async (ctx) => {
      const loss = (await graph()).sum()
      const started = performance.now()
      await ctx.backward([loss])
      seconds += (performance.now() - started) / 1000
    })
  }
  return seconds
}

/** n backward passes of a graph that goes `hops` times to worker1 and back. */
export const chains = (n: number, hops: number): Promise<number> =>
  backwards(n, async () => {
    let x = small()
    for (let i = 0; i < hops; i++) x = await call('worker1', addOne, [x])
    return x
  })

/** n backward passes of a sum over as many workers, which are called all at once. */
export const fans = (n: number, workers: readonly string[]): Promise<number> =>
  backwards(n, async () => {
    const x = small()
    const parts = await Promise.all(workers.map((worker) => call(worker, addOne, [x])))
    return parts.reduce(add)
  })

/** n backward passes through workers that call each other, each the next. */
export const rings = (n: number, workers: readonly string[]): Promise<number> => backwards(n, () => through(small(), workers))

/** n of the design note's passes, `atOnce` of them under way at any time; all of it is timed. */
export async function concurrent(n: number, atOnce: number): Promise<number> {
  let left = n
  const lane = async (): Promise<void> => {
    while (left-- > 0) {
      await distAutograd.context(async (ctx) => {
        const [t1, t2, t4] = [small(), small(), small()]
        const t3 = await call('worker1', add, [t1, t2])
        await ctx.backward([t3.mul(t4).sum()])
        ctx.gradients()
      })
    }
  }
  const started = performance.now()
  await Promise.all(Array.from({ length: Math.min(n, atOnce) }, lane))
  return (performance.now() - started) / 1000
}

/** n passes with a tensor of that many elements, there and back, and its gradient there and back; all of it is timed. */
export async function sized(n: number, elements: number): Promise<number> {
  const x = ones([elements], { requiresGrad: true })
  const started = performance.now()
  for (let i = 0; i < n; i++) {
    await distAutograd.context(async (ctx) => {
      const y = await call('worker1', addOne, [x])
      await ctx.backward([y.sum()])
    })
  }
  return (performance.now() - started) / 1000
}

expose({ benchAddOne: addOne, through, chains, fans, rings, concurrent, sized })
