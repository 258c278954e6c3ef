/** SMART: a pass waits only for what its roots depend on (Note [SMART]). */
import { describe, expect, test } from '@jest/globals'
import { add, mul, noGrad } from '@postgrad/autograd'
import type { PostgradError } from '@postgrad/base'
import { call, currentWorker, expose, remote, stream } from '@postgrad/rpc'
import { ones, type Tensor } from '@postgrad/tensor'
import { MessageType } from '@postgrad/wire/internal'
import { distAutograd } from '../api.js'
import type { DistAutogradContext } from '../context/dist-autograd-context.js'
import { pyAdd, pyNested, wholeLeaf } from './programs.suite.js'
import { Cluster, overSeeds, withSeed } from './sim-cluster.suite.js'

const SEEDS = 12

const double = (x: Tensor): Tensor => mul(x, 2)
/** Two results, one of which may stay unused. */
const both = (x: Tensor): Tensor[] => [mul(x, 2), mul(x, 3)]
/** Sends its tensor on for nothing. */
async function addAndTell(t: Tensor, to: number): Promise<Tensor> {
  await call(to, pyAdd, [t, t])
  return add(t, 1)
}
/** Over `path`, one worker after the other, doubling at each. */
async function along(x: Tensor, path: readonly number[]): Promise<Tensor> {
  const [next, ...rest] = path
  return next === undefined ? mul(x, 2) : mul(await call(next, along, [mul(x, 2), rest]), 1)
}
const fails = (_x: Tensor): never => {
  throw new RangeError('on purpose')
}
async function* thrice(x: Tensor): AsyncGenerator<Tensor> {
  for (let n = 1; n <= 3; n++) yield mul(x, n)
}
const kept = new Map<number, Tensor>()
const weightHere = (): Tensor => {
  const { id } = currentWorker().info
  const weight = kept.get(id) ?? wholeLeaf([[id, 1]])
  kept.set(id, weight)
  return weight
}
const weigh = (x: Tensor): Tensor => mul(x, weightHere())
const lossHere = async (x: Tensor, to: number): Promise<Tensor> => {
  // Not used.
  await call(to, double, [x])
  return mul(await call(to, weigh, [x]), 3).sum()
}
expose({ double, both, addAndTell, along, fails, thrice, weigh, lossHere })

interface Posted {
  readonly from: number
  readonly to: number
  readonly type: MessageType
  readonly pass: bigint | null
  readonly lineage: readonly number[] | null
}

/** Notes what workers post past the interceptors: the messages of passes and releases. */
function watchPosts(cluster: Cluster): Posted[] {
  const posted: Posted[] = []
  for (const worker of cluster.workers) {
    const post = worker.post.bind(worker)
    worker.post = (to, type, body, envelope) => {
      posted.push({ from: worker.info.id, to, type, pass: envelope?.pass ?? null, lineage: envelope?.lineage ?? null })
      post(to, type, body, envelope)
    }
  }
  return posted
}

const ofType = (posted: readonly Posted[], type: MessageType) => posted.filter((one) => one.type === type)
const ways = (posted: readonly Posted[]) => posted.map(({ from, to }) => `${from}→${to}`).sort()
const codeOf = (promise: PromiseLike<unknown>) =>
  promise.then(
    () => 'no error',
    (error: PostgradError) => error.code,
  )
const gradient = (ctx: DistAutogradContext, leaf: Tensor) => ctx.gradients().get(leaf)?.toArray()

describe('DA-33 the mode of a context', () => {
  test.each(['smart', 'fast'] as const)('%s is the mode on every worker, also on those that tensors never reach', (mode) =>
    overSeeds(SEEDS, 3, async (cluster) => {
      await distAutograd.context(
        async (ctx) => {
          await call(1, pyNested, [ones([1]), ones([1]), 1, 3, 0])
          expect([0, 1, 2].map((worker) => cluster.contextOn(worker, ctx.id).mode)).toEqual([mode, mode, mode])
        },
        { mode },
      )
    }),
  )

  test('is smart unless the worker has another default, and nothing else is one', () =>
    overSeeds(1, 1, async (cluster) => {
      await distAutograd.context((ctx) => expect(ctx.mode).toBe('smart'))
      cluster.parts(0).container.defaultMode = 'fast'
      await distAutograd.context((ctx) => expect(ctx.mode).toBe('fast'))
      const wrong = { mode: 'quick' } as unknown as { mode: 'fast' }
      expect(await codeOf(distAutograd.context(() => {}, wrong))).toBe('INVALID_ARGUMENT')
    }))

  test('a FAST context carries no lineage', () =>
    overSeeds(SEEDS, 2, async (cluster) => {
      await distAutograd.context(
        async (ctx) => {
          const x = wholeLeaf([[1]])
          await ctx.backward([(await call(1, double, [await call(1, double, [x])])).sum()])
          expect([0, 1].map((worker) => cluster.contextOn(worker, ctx.id).lineage.size)).toEqual([0, 0])
          expect(gradient(ctx, x)).toEqual([[4]])
        },
        { mode: 'fast' },
      )
    }))
})

describe('DA-34 a pass waits for what its roots depend on', () => {
  test('case 57: a result that does not enter the loss does no harm', () =>
    overSeeds(SEEDS, 2, async () => {
      await distAutograd.context(async (ctx) => {
        const [t1, t2] = [wholeLeaf([[1, 2]]), wholeLeaf([[3, 4]])]
        await call(1, pyAdd, [t1, t2])
        await ctx.backward([mul(t1, t2).sum()])
        expect([gradient(ctx, t1), gradient(ctx, t2)]).toEqual([[[3, 4]], [[1, 2]]])
      })
    }))

  test('several roots that share parts, some of them more than once', () =>
    overSeeds(SEEDS, 3, async () => {
      await distAutograd.context(async (ctx) => {
        const x = wholeLeaf([[1, 2]])
        const [y, z] = [await call(1, double, [x]), await call(2, double, [x])]
        const first = y.sum()
        // The walk from the second root makes a union of both messages, the first of which it has been to by another root.
        await ctx.backward([first, add(y, z).sum(), mul(y, 3).sum(), first], { gradTensors: [null, null, null, null] })
        expect(gradient(ctx, x)).toEqual([[14, 14]])
      })
    }))

  test('nor one that another worker got and did not use, on a worker that takes part', () =>
    overSeeds(SEEDS, 3, async (cluster) => {
      await distAutograd.context(async (ctx) => {
        const t1 = wholeLeaf([[1, 2]])
        const used = await call(1, addAndTell, [t1, 2])
        const posted = watchPosts(cluster)
        await ctx.backward([used.sum()])
        expect(gradient(ctx, t1)).toEqual([[1, 1]])
        // Worker 2 has no part in it.
        expect(ways(posted)).toEqual(['0→1', '1→0', '1→0'])
      })
    }))

  test('nor a call that failed, one that was cancelled, nor items of a stream that nobody takes', () =>
    overSeeds(SEEDS, 2, async () => {
      await distAutograd.context(async (ctx) => {
        const x = wholeLeaf([[1, 2]])
        expect(await codeOf(call(1, fails, [x]))).toBe(undefined)
        const dropped = call(1, double, [x])
        dropped.cancel()
        await dropped.catch(() => {})
        const items = stream('worker1', thrice, [x], { window: 3 })
        const first = (await items.next()).value as Tensor
        await items.return?.(undefined)
        await ctx.backward([add(first, await call(1, double, [x])).sum()])
        expect(gradient(ctx, x)).toEqual([[3, 3]])
      })
    }))

  test('a message of which one tensor is unused, and one that reaches the roots over nulls alone', () =>
    overSeeds(SEEDS, 3, async () => {
      await distAutograd.context(async (ctx) => {
        const x = wholeLeaf([[1, 2]])
        const [used] = (await call(1, both, [x])) as [Tensor, Tensor]
        const [, other] = (await call(2, both, [used])) as [Tensor, Tensor]
        await ctx.backward([other.sum()])
        expect(gradient(ctx, x)).toEqual([[6, 6]])
      })
    }))

  test('a result that is used twice, here and elsewhere', () =>
    overSeeds(SEEDS, 3, async () => {
      await distAutograd.context(async (ctx) => {
        const x = wholeLeaf([[1, 2]])
        const y = await call(1, double, [x])
        const parts = await Promise.all([call(2, double, [y]), call(1, pyAdd, [y, y])])
        await ctx.backward([add(add(parts[0], parts[1]), y).sum()])
        expect(gradient(ctx, x)).toEqual([[10, 10]])
      })
    }))

  test('cycles through the same workers, calls to oneself among them', () =>
    overSeeds(SEEDS, 3, async () => {
      await distAutograd.context(async (ctx) => {
        const x = wholeLeaf([[1, 2]])
        const far = await call(1, along, [x, [2, 0, 0, 1, 1, 2, 0]])
        // Unused, over the same workers.
        await call(2, along, [far, [0, 1, 0]])
        await ctx.backward([far.sum()])
        expect(gradient(ctx, x)).toEqual([[256, 256]])
      })
    }))

  test('under noGrad nothing is sent, so nothing is waited for', () =>
    overSeeds(SEEDS, 2, async () => {
      await distAutograd.context(async (ctx) => {
        const x = wholeLeaf([[1, 2]])
        await noGrad(async () => await call(1, double, [x]))
        await ctx.backward([(await call(1, double, [x])).sum()])
        expect(gradient(ctx, x)).toEqual([[2, 2]])
      })
    }))
})

describe('DA-37 the plan rides with the gradients', () => {
  test('only workers that the roots depend on hear of a pass, and the first gradients of each pair bring what lies behind', () =>
    overSeeds(SEEDS, 4, async (cluster) => {
      await distAutograd.context(async (ctx) => {
        const x = wholeLeaf([[1, 2]])
        const [a, b] = await Promise.all([call(1, along, [x, [2]]), call(3, along, [x, []])])
        const posted = watchPosts(cluster)
        await ctx.backward([a.sum()], { retainGraph: true })
        expect(gradient(ctx, x)).toEqual([[4, 4]])
        const grads = ofType(posted, MessageType.PROPAGATE_GRADIENTS)
        expect(ways(grads)).toEqual(['0→1', '1→0', '1→2', '2→1'])
        const plans = Object.fromEntries(grads.map(({ from, to, lineage }) => [`${from}→${to}`, lineage]))
        // Worker 1 sent to worker 2 and then replied, worker 2 has replied. Workers 0 and 1 have begun when they are posted to.
        const { '0→1': first, ...rest } = plans
        expect([[0, 1, 1, 0, 2, 2, 1, 0, 1].join(), [0, 2, 1, 0, 1, 1, 1, 0, 2].join()]).toContain(first!.join())
        expect(rest).toEqual({ '1→2': [0, 2, 1, 0, 1], '2→1': [0], '1→0': null })
        posted.length = 0
        await ctx.backward([b.sum()], { retainGraph: true })
        expect(ways(ofType(posted, MessageType.PROPAGATE_GRADIENTS))).toEqual(['0→3', '3→0'])
        await ctx.backward([add(a, b).sum()])
        expect(gradient(ctx, x)).toEqual([[12, 12]])
      })
    }))

  test('any worker may be the root', () =>
    overSeeds(SEEDS, 3, async (cluster) => {
      kept.clear()
      await distAutograd.context(async (ctx) => {
        const x = wholeLeaf([[1, 2]])
        const loss = remote(1, lossHere, [x, 2])
        await loss.backward(ctx.id)
        expect(gradient(ctx, x)).toEqual([[6, 3]])
        expect(cluster.contextOn(2, ctx.id).gradients().get(kept.get(2)!)!.toArray()).toEqual([[3, 6]])
        loss.dispose()
      })
    }))
})

describe('DA-38 reports', () => {
  test('each participant reports once, when it has done its part', () =>
    overSeeds(SEEDS, 3, async (cluster) => {
      await distAutograd.context(async (ctx) => {
        const x = wholeLeaf([[1, 2]])
        const far = await call(1, along, [x, [2, 1, 2, 1, 0, 2]])
        const posted = watchPosts(cluster)
        await ctx.backward([far.sum()])
        expect(gradient(ctx, x)).toEqual([[128, 128]])
        expect(ways(ofType(posted, MessageType.PASS_REPORT))).toEqual(['1→0', '2→0'])
      })
    }))
})

describe('DA-43 passes', () => {
  test('several in flight in one context, over parts of one graph', () =>
    overSeeds(SEEDS, 3, async () => {
      await distAutograd.context(async (ctx) => {
        const [x, y] = [wholeLeaf([[1, 2]]), wholeLeaf([[5, 5]])]
        const [a, b, unused] = await Promise.all([call(1, along, [x, [2]]), call(2, along, [y, [1]]), call(1, double, [y])])
        const roots = [a, b, add(a, b), mul(b, 3)]
        await Promise.all(roots.map((root) => ctx.backward([root.sum()], { retainGraph: true })))
        expect([gradient(ctx, x), gradient(ctx, y)]).toEqual([[[8, 8]], [[20, 20]]])
        await ctx.backward([unused.sum()], { retainGraph: true })
        await ctx.backward([add(a, unused).sum()])
        expect([gradient(ctx, x), gradient(ctx, y)]).toEqual([[[12, 12]], [[24, 24]]])
      })
    }))

  test('of graphs that grow between them', () =>
    overSeeds(SEEDS, 3, async () => {
      await distAutograd.context(async (ctx) => {
        const x = wholeLeaf([[1]])
        let sum = await call(1, double, [x])
        for (let n = 0; n < 4; n++) {
          await ctx.backward([sum.sum()], { retainGraph: true })
          sum = await call(1 + (n % 2), pyAdd, [sum, await call(2, double, [sum])])
        }
        // 2, 6, 18, 54
        expect(gradient(ctx, x)).toEqual([[80]])
      })
    }))

  test('a release in the middle ends them', () =>
    overSeeds(SEEDS, 3, async () => {
      let promise: PromiseLike<string> = Promise.resolve('')
      await distAutograd.context(async (ctx) => {
        const far = await call(1, along, [wholeLeaf([[1]]), [2, 1, 2]])
        promise = codeOf(ctx.backward([far.sum()]))
        await call(2, double, [ones([1])])
        ctx.release()
      })
      expect(['CONTEXT_RELEASED', 'no error']).toContain(await promise)
    }))
})

describe('DA-34 random programs', () => {
  interface Step {
    readonly to: number
    readonly path: readonly number[]
    readonly a: number
    readonly b: number
  }

  /** Adds its arguments where the path ends; each hop doubles the first. */
  async function hop(a: Tensor, b: Tensor, path: readonly number[]): Promise<Tensor> {
    const [next, ...rest] = path
    return next === undefined ? add(mul(a, 2), b) : await call(next, hop, [mul(a, 2), b, rest])
  }
  const hopHere = (a: Tensor, b: Tensor, path: readonly number[]): Tensor =>
    path.length === 0 ? add(mul(a, 2), b) : hopHere(mul(a, 2), b, path.slice(1))
  expose({ hop })

  function drawn(seed: number): { steps: Step[]; leaves: number; roots: number[][] } {
    let state = seed * 2654435761
    const below = (n: number) => {
      state = (Math.imul(state ^ (state >>> 15), 2246822519) + 374761393) | 0
      return ((state ^ (state >>> 13)) >>> 0) % n
    }
    const leaves = 2
    const steps: Step[] = []
    for (let n = 0; n < 4 + below(8); n++) {
      const values = leaves + n
      steps.push({ to: below(4), path: Array.from({ length: below(3) }, () => below(4)), a: below(values), b: below(values) })
    }
    const roots = Array.from({ length: 3 }, () => Array.from({ length: 1 + below(3) }, () => leaves + below(steps.length)))
    return { steps, leaves, roots }
  }

  test('with unused results, shared leaves and calls at once: the gradients of the local program, pass for pass', async () => {
    for (let seed = 1; seed <= 60; seed++) {
      await withSeed(seed, async () => {
        const { steps, roots } = drawn(seed)
        const cluster = new Cluster(seed, 4)
        await cluster.run(0, () =>
          distAutograd.context(async (ctx) => {
            const [values, locals] = [
              [wholeLeaf([[1, 2]]), wholeLeaf([[3, 4]])],
              [wholeLeaf([[1, 2]]), wholeLeaf([[3, 4]])],
            ]
            const made: (Tensor | Promise<Tensor>)[] = [...values]
            for (const { to, path, a, b } of steps) {
              // A step waits for its arguments alone.
              made.push((async () => await call(to, hop, [await made[a]!, await made[b]!, path]))())
              locals.push(hopHere(locals[a]!, locals[b]!, path))
            }
            const results = await Promise.all(made)
            const lossOf = (from: readonly Tensor[], root: readonly number[]) =>
              root
                .map((i) => from[i]!)
                .reduce((x, y) => add(x, y))
                .sum()
            for (const root of roots) {
              await ctx.backward([lossOf(results, root)], { retainGraph: true })
              lossOf(locals, root).backward(null, { retainGraph: true })
              expect(values.map((leaf) => gradient(ctx, leaf))).toEqual(locals.slice(0, 2).map((leaf) => leaf.grad?.toArray()))
            }
          }),
        )
        expect(await cluster.leftovers()).toEqual([])
      })
    }
  })
})
