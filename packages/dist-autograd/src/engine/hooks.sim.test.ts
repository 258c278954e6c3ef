/** Within a pass: hooks, calls between node tasks, undefined gradients. */

import { AsyncLocalStorage } from 'node:async_hooks'
import { describe, expect, test } from '@jest/globals'
import { add, defineFunction, mul } from '@postgrad/autograd'
import { currentScope } from '@postgrad/base/internal'
import { call, currentWorker, expose, workerLocal } from '@postgrad/rpc'
import type { WorkerRuntime } from '@postgrad/rpc/internal'
import type { Tensor } from '@postgrad/tensor'
import { distAutograd } from '../api.js'
import { failure, innermost } from './ends.suite.js'
import { wholeLeaf } from './programs.suite.js'
import { overSeeds } from './sim-cluster.suite.js'

const SEEDS = 10

/** As a tracer of the program's has one. */
const store = new AsyncLocalStorage<string>()
const looksBack = defineFunction<[look: () => void, x: Tensor], Tensor, () => void>({
  name: 'looksBack',
  forward: (ctx, look, x) => {
    ctx.state = look
    return x.clone()
  },
  backward: (ctx, grad) => {
    ctx.state!()
    return [null, grad]
  },
})

const seenThere = workerLocal((): string[] => [])
const storesSeen = (): string[] => seenThere().splice(0)
const hooked = (x: Tensor): Tensor => {
  const out = x.mul(2)
  out.registerHook((): undefined => {
    seenThere().push(store.getStore() ?? 'none')
    store.enterWith('left behind')
  })
  return out
}
expose({ storesSeen, hooked })

describe('DA-59 hooks', () => {
  test('behind the accumulation find the gradient in the context, once per pass, on every worker', () =>
    overSeeds(SEEDS, 3, async (cluster) => {
      const seen: string[] = []
      const watched = (t: Tensor): Tensor => {
        t.registerPostAccumulateGradHook((leaf) => {
          const ctx = distAutograd.currentContext()!
          seen.push(`${currentWorker().info.name} ${JSON.stringify(ctx.gradients().get(leaf)!.toArray())} ${leaf.grad}`)
        })
        return t
      }
      const there = watched(wholeLeaf([[5, 6]]))
      scaleThere = () => there
      await distAutograd.context(async (ctx) => {
        const weight = watched(wholeLeaf([[1, 2]]))
        const loss = (await call(2, scaledThere, [weight])).sum()
        await ctx.backward([loss], { retainGraph: true })
        expect(seen.sort()).toEqual(['worker0 [[5,6]] null', 'worker2 [[1,2]] null'])
        seen.length = 0
        await ctx.backward([loss])
        // Together with the pass before.
        expect(seen.sort()).toEqual(['worker0 [[10,12]] null', 'worker2 [[2,4]] null'])
        expect(cluster.contextOn(2, ctx.id).gradients().get(there)!.toArray()).toEqual([[2, 4]])
      })
    }))

  test('run in this order: of the tensor, of the node before, accumulation, behind it; what the first return is what counts', () =>
    overSeeds(SEEDS, 2, async () => {
      const order: string[] = []
      await distAutograd.context(async (ctx) => {
        const weight = wholeLeaf([[1, 2]])
        weight.registerHook((grad) => {
          order.push(`tensor ${JSON.stringify(grad.toArray())}`)
          expect(distAutograd.currentContext()).toBe(ctx)
          expect(ctx.gradients().has(weight)).toBe(false)
          return mul(grad, 10)
        })
        weight.registerPostAccumulateGradHook(() => {
          order.push(`accumulated ${JSON.stringify(ctx.gradients().get(weight)!.toArray())}`)
        })
        await ctx.backward([(await call(1, mul, [weight, 3])).sum()])
        expect(order).toEqual(['tensor [[3,3]]', 'accumulated [[30,30]]'])
      })
    }))

  test('DA-87 find the AsyncLocalStorage of the program that has called backward, before and after the gradient has crossed workers', () =>
    overSeeds(SEEDS, 3, async () => {
      const program = (name: string) =>
        store.run(name, () =>
          distAutograd.context(async (ctx) => {
            const seen: string[] = []
            const see = (where: string) => (): undefined => {
              seen.push(`${where} ${store.getStore()}`)
            }
            const weight = wholeLeaf([[1, 2]])
            weight.registerHook(see('leaf'))
            weight.registerPostAccumulateGradHook(see('accumulated'))
            const before = looksBack(see('function'), weight)
            const after = (await call(1, mul, [before, 3])).mul(2)
            after.registerHook(see('crossed'))
            await ctx.backward([after.sum()])
            expect(seen).toEqual(['crossed', 'function', 'leaf', 'accumulated'].map((where) => `${where} ${name}`))
          }),
        )
      await Promise.all([program('a'), program('b')])
    }))

  test('DA-87 on another worker they find none of it, nor one that a hook of an earlier pass has entered', () =>
    overSeeds(SEEDS, 2, async () => {
      for (let pass = 0; pass < 2; pass++) {
        await store.run('program', () =>
          distAutograd.context(async (ctx) => {
            await ctx.backward([(await call(1, hooked, [wholeLeaf([[1]])])).sum()])
            expect(store.getStore()).toBe('program')
          }),
        )
      }
      expect(await call(1, storesSeen)).toEqual(['none', 'none'])
    }))

  test('what one writes into the gradient in place stays; what one throws fails the pass', () =>
    overSeeds(SEEDS, 2, async () => {
      await distAutograd.context(async (ctx) => {
        const weight = wholeLeaf([[1, 2]])
        let fails = true
        weight.registerPostAccumulateGradHook(() => {
          if (fails) throw new RangeError('a hook that fails')
          ctx.gradients().get(weight)!.mul_(2)
        })
        const loss = (await call(1, mul, [weight, 3])).sum()
        const error = await failure(ctx.backward([loss], { retainGraph: true }))
        expect(error).toMatchObject({ name: 'RangeError' })
        expect(innermost(error).values).toMatchObject({ worker: 'worker0', node: 'AccumulateGrad' })
        expect(ctx.gradients().size).toBe(0)
        fails = false
        await ctx.backward([loss])
        expect(ctx.gradients().get(weight)!.toArray()).toEqual([[6, 6]])
      })
    }))

  test('what several write to, one behind the other, stays written in every pass', () =>
    overSeeds(SEEDS, 2, async () => {
      await distAutograd.context(async (ctx) => {
        const weights = [wholeLeaf([[1, 2]]), wholeLeaf([[3, 4]]), wholeLeaf([[5, 6]])]
        for (const weight of weights)
          weight.registerPostAccumulateGradHook(() => {
            ctx.gradients().get(weight)!.mul_(2)
          })
        const loss = (await call(1, mul, [weights[0]!.add(weights[1]!).add(weights[2]!), 3])).sum()
        const gradients = () => weights.map((weight) => ctx.gradients().get(weight)!.toArray())
        await ctx.backward([loss], { retainGraph: true })
        expect(gradients()).toEqual([[[6, 6]], [[6, 6]], [[6, 6]]])
        // (6 + 3) · 2, as in PyTorch, whose hook finds the sum.
        await ctx.backward([loss], { retainGraph: true })
        expect(gradients()).toEqual([[[18, 18]], [[18, 18]], [[18, 18]]])
        await ctx.backward([loss])
        expect(gradients()).toEqual([[[42, 42]], [[42, 42]], [[42, 42]]])
      })
    }))

  test('one that ends the pass by its signal is no failure of its node', () =>
    overSeeds(SEEDS, 2, async () => {
      await distAutograd.context(async (ctx) => {
        const weight = wholeLeaf([[1, 2]])
        const ending = new AbortController()
        const reason = new RangeError('enough')
        weight.registerHook(() => {
          ending.abort(reason)
          return undefined
        })
        const error = await failure(ctx.backward([(await call(1, mul, [weight, 3])).sum()], { signal: ending.signal }))
        expect(error).toMatchObject({ code: 'DIST_BACKWARD_CANCELLED', cause: reason })
        expect(reason.cause).toBeUndefined()
      })
    }))

  test('a call that one makes takes no context with it', () =>
    overSeeds(SEEDS, 2, async () => {
      await distAutograd.context(async (ctx) => {
        const weight = wholeLeaf([[1, 2]])
        let asked: Promise<string> | null = null
        weight.registerHook(() => {
          asked = call(1, contextThere).wait()
          return undefined
        })
        await ctx.backward([mul(weight, 3).sum()])
        expect(await asked).toBe('null')
        expect(ctx.knownWorkerIds.size).toBe(0)
      })
    }))
  let scaleThere: () => Tensor
  const scaledThere = (x: Tensor): Tensor => mul(x, scaleThere())
  const contextThere = (): string => String(distAutograd.currentContext())
  expose({ scaledThere, contextThere })
})

describe('DA-16 node tasks in the mailbox', () => {
  test('calls go on between them, and of the tasks that wait the last recorded runs first', () =>
    overSeeds(SEEDS, 2, async () => {
      const order: number[] = []
      const noted = (x: Tensor, n: number): Tensor => {
        const y = mul(x, 1)
        ;(y.gradFn as unknown as { registerPreHook(fn: () => undefined): void }).registerPreHook(() => {
          order.push(n)
          return undefined
        })
        return y
      }
      await distAutograd.context(async (ctx) => {
        const weight = wholeLeaf([[1, 2]])
        const branches = [0, 1, 2, 3].map((n) => noted(weight, n))
        const pass = ctx.backward([branches.reduce((a, b) => add(a, b)).sum()])
        await pass
        expect(order).toEqual([3, 2, 1, 0])
      })
      await distAutograd.context(async (ctx) => {
        const first = noted(wholeLeaf([[1, 2]]), -1)
        let x = first
        for (let n = 0; n < 2000; n++) x = add(x, 1)
        order.length = 0
        lastRan = () => order.length > 0
        const pass = ctx.backward([x.sum()])
        const calls = Array.from({ length: 3 }, () => call(0, hasLastRun))
        expect(await Promise.all(calls)).toEqual([false, false, false])
        await pass
        expect(lastRan()).toBe(true)
      })
    }))
  let lastRan = (): boolean => false
  const hasLastRun = (): boolean => lastRan()
  expose({ hasLastRun })
})

describe('DA-83 one task for all nodes that are ready', () => {
  /** How many tasks worker 0 puts into its mailbox while `main` runs. */
  async function tasksOf(worker: WorkerRuntime, main: () => Promise<void>): Promise<number> {
    let count = 0
    const pushTask = worker.pushTask.bind(worker)
    worker.pushTask = (...task) => {
      count++
      pushTask(...task)
    }
    await main()
    worker.pushTask = pushTask
    return count
  }

  test('a hundred nodes are one, and run in one scope', () =>
    overSeeds(SEEDS, 1, async ({ workers: [worker] }) => {
      const scopes = new Set<object>()
      let x = wholeLeaf([[1, 2]])
      for (let n = 0; n < 100; n++) {
        x = add(x, 1)
        x.registerHook(() => {
          scopes.add(currentScope())
          return undefined
        })
      }
      await distAutograd.context(async (ctx) => {
        expect(await tasksOf(worker!, () => ctx.backward([x.sum()]))).toBe(1)
        expect(scopes.size).toBe(1)
        expect(ctx.gradients().size).toBe(1)
      })
    }))

  test('passes that run at once share it, each in a scope of its own; one that fails leaves the nodes of the other', () =>
    overSeeds(SEEDS, 1, async ({ workers: [worker] }) => {
      const order: string[] = []
      const graph = (name: string): Tensor => {
        let x = wholeLeaf([[1, 2]])
        for (let n = 0; n < 5; n++) {
          x = add(x, 1)
          x.registerHook(() => {
            order.push(name)
            if (name === 'b' && n === 2) throw new RangeError('on purpose')
            return undefined
          })
        }
        return x.sum()
      }
      await distAutograd.context(async (ctx) => {
        const [a, b] = [graph('a'), graph('b')]
        const ends: unknown[] = []
        const tasks = await tasksOf(worker!, async () => {
          ends.push(...(await Promise.allSettled([ctx.backward([a]), ctx.backward([b])])))
        })
        expect(tasks).toBe(1)
        expect(ends).toMatchObject([{ status: 'fulfilled' }, { status: 'rejected', reason: { message: 'on purpose' } }])
        // b was recorded last: the highest sequence numbers are its.
        expect(order.join('')).toBe('bbbaaaaa')
        expect(ctx.gradients().size).toBe(1)
      })
    }))
})

describe('DA-17 gradients on their way back', () => {
  test('what has no gradient stays without; zeros are made where a node needs them', () =>
    overSeeds(SEEDS, 2, async (cluster) => {
      const seen: (string | null)[][] = []
      const { engine } = cluster.parts(0)
      const onGradients = engine.onGradients.bind(engine)
      engine.onGradients = (message, from, context) => {
        seen.push((message.body[0] as (Tensor | null)[]).map((grad) => grad && JSON.stringify(grad.toArray())))
        onGradients(message, from, context)
      }
      await distAutograd.context(async (ctx) => {
        const [a, b, c] = [wholeLeaf([[1]]), wholeLeaf([[2]]), wholeLeaf([[3]])]
        const [double, triple] = (await call(1, bothOf, [a, b, c])) as [Tensor, Tensor]
        expect(triple.requiresGrad).toBe(true)
        await ctx.backward([double.sum()])
        expect(seen).toEqual([['[[2]]', null, null]])
        expect(ctx.gradients().get(a)!.toArray()).toEqual([[2]])
        expect(ctx.gradients().has(c)).toBe(false)
      })
    }))
  /** Of its third argument nothing comes back. */
  const bothOf = (a: Tensor, b: Tensor, _c: Tensor): Tensor[] => [mul(a, 2), mul(b, 3)]
  expose({ bothOf })
})

describe('DA-18 case 39: gradients that need not be copied are not', () => {
  test('what came in a message becomes the leaf’s gradient itself; what two leaves would share, or is not contiguous, is copied', () =>
    overSeeds(SEEDS, 2, async (cluster) => {
      const arrived: Tensor[] = []
      const { engine } = cluster.parts(0)
      const onGradients = engine.onGradients.bind(engine)
      engine.onGradients = (message, from, context) => {
        arrived.push(...(message.body[0] as Tensor[]))
        onGradients(message, from, context)
      }
      await distAutograd.context(async (ctx) => {
        const weight = wholeLeaf([[1, 2]])
        await ctx.backward([(await call(1, mul, [weight, 3])).sum()])
        expect(ctx.gradients().get(weight)!.storage).toBe(arrived[0]!.storage)
      })
      await distAutograd.context(async (ctx) => {
        const [a, b] = [wholeLeaf([[1, 2]]), wholeLeaf([[3, 4]])]
        // One gradient for both, expanded from a scalar.
        await ctx.backward([add(a, b).sum()])
        const [ga, gb] = [ctx.gradients().get(a)!, ctx.gradients().get(b)!]
        expect(ga.storage).not.toBe(gb.storage)
        expect([ga.isContiguous, gb.isContiguous, ga.numel, ga.storage.host!.length >= 2]).toEqual([true, true, 2, true])
      })
    }))
})
