/**
 * Backward passes against the local engine: the same program on one worker and on several (cases 21 to 35, 41 to 48 of the reference). If
 * the sums associate equally, or whole numbers make them exact, the gradients have the same bits.
 */
import { describe, expect, test } from '@jest/globals'
import { add, bmm, cos, div, backward as localBackward, matmul, mul, narrow, noGrad, stack } from '@postgrad/autograd'
import { call, expose, type RRef, remote, rref } from '@postgrad/rpc'
import { manualSeed, ones, rand, type Tensor, tensor, zeros } from '@postgrad/tensor'
import { distAutograd } from '../api.js'
import {
  callOn,
  complexNested,
  type Exec,
  leaf,
  local,
  makeRemotely,
  mixedRequiresGrad,
  pyAdd,
  remoteOn,
  rrefAdd,
  wholeLeaf,
} from './programs.suite.js'
import { overSeeds } from './sim-cluster.suite.js'

const SEEDS = 12

interface Program {
  /** Makes the leaves afresh; the same numbers each time for the same seed. */
  readonly leaves: () => Tensor[]
  /** The roots, from the leaves, with steps that run wherever `exec` says. */
  readonly roots: (exec: Exec, leaves: Tensor[]) => Promise<Tensor[]>
  /** Whether the sums of contributions associate as the local engine's do; else compared within 1e-6. */
  readonly sameBits?: boolean
}

const programs: Record<string, Program> = {
  'case 21 simple': {
    leaves: () => [leaf([3, 3]), leaf([3, 3])],
    roots: async (exec, [t1, t2]) => [(await exec(add, [t1!, t2!])).sum()],
  },
  'case 23 python function': {
    leaves: () => [leaf([3, 3]), leaf([3, 3])],
    roots: async (exec, [t1, t2]) => [(await exec(pyAdd, [t1!, t2!])).sum()],
  },
  'case 25 different dims': {
    leaves: () => [leaf([4, 6]), rand([6, 5]), leaf([5, 7]), leaf([7, 9])],
    roots: async (exec, [t1, t2, t3, t4]) => {
      const val = await exec(matmul, [t1!, t2!])
      const chain = await exec(matmul, [await exec(matmul, [val, t3!]), t4!])
      return [chain.sum()]
    },
  },
  'case 26 multiple round trips': {
    leaves: () => [leaf([3, 3]), rand([3, 3]), leaf([3, 3]), rand([3, 3]), leaf([3, 3])],
    roots: async (exec, [t1, t2, t3, t4, t5]) => {
      let val = await exec(add, [t1!, t2!])
      val = await exec(mul, [t3!, val])
      const s1 = await exec(stack, [[t4!, val]])
      const s2 = await exec(stack, [[t5!, val]])
      val = await exec(bmm, [s1, s2])
      val = await exec(matmul, [val, val])
      return [val.sum()]
    },
    sameBits: false,
  },
  'case 27 unused tensors': {
    leaves: () => [leaf([3, 3]), leaf([3, 3]), leaf([3, 3])],
    roots: async (exec, [t1, t2, t3]) => {
      const s = await exec(stack, [[t1!, t2!, t3!]])
      const val = await exec(matmul, [narrow(s, 0, 0, 1), narrow(s, 0, 2, 1)])
      return [val.sum()]
    },
  },
  'case 29 multiple roots': {
    leaves: () => [leaf([3, 3]), leaf([3, 3])],
    roots: async (exec, [t1, t2]) => [
      (await exec(add, [t1!, t2!])).sum(),
      (await exec(mul, [t1!, t2!])).sum(),
      (await exec(cos, [t1!])).sum(),
      (await exec(div, [t1!, t2!.add(1)])).sum(),
    ],
    sameBits: false,
  },
  'case 29 multiple roots, whole numbers': {
    leaves: () => [wholeLeaf([[1, 2, 3]]), wholeLeaf([[4, 5, 6]])],
    roots: async (exec, [t1, t2]) => [
      (await exec(add, [t1!, t2!])).sum(),
      (await exec(mul, [t1!, t2!])).sum(),
      (await exec(mul, [t1!, t1!])).sum(),
      (await exec(mul, [t2!, 3])).sum(),
    ],
  },
  'case 30 different dtypes': {
    leaves: () => [leaf([3, 3], { dtype: 'float32' }), leaf([3, 3], { dtype: 'float64' })],
    roots: async (exec, [t1, t2]) => [(await exec(add, [t1!, t2!])).sum()],
  },
  'case 32 nested python function': {
    leaves: () => [
      wholeLeaf([
        [1, 2],
        [3, 1],
      ]),
      wholeLeaf([
        [2, 1],
        [1, 3],
      ]),
    ],
    roots: async (exec, [t1, t2]) => [(await exec(nestedFor(exec), [t1!, t2!, 2])).sum()],
  },
  'case 33 mixed requires grad': {
    leaves: () => [leaf([3, 3]), rand([3, 3])],
    roots: async (exec, [t1, t2]) => [(await exec(mixedRequiresGrad, [t1!, t2!])).sum()],
  },
  'case 35 no call at all': {
    leaves: () => [leaf([3, 3]), leaf([3, 3])],
    roots: async (_, [t1, t2]) => [add(t1!, t2!).sum()],
  },
  'a tensor that is sent twice': {
    leaves: () => [wholeLeaf([[1, 2]]), wholeLeaf([[3, 4]])],
    roots: async (exec, [t1, t2]) => {
      const a = await exec(add, [t1!, t2!])
      const b = await exec(mul, [t1!, a])
      return [(await exec(mul, [a, b])).sum()]
    },
  },
}

/** The nested function makes a call itself; here its local twin, which does the same without. */
function nestedFor(exec: Exec): (t1: Tensor, t2: Tensor, dst: number) => Tensor | Promise<Tensor> {
  if (exec !== local) return complexNested
  return (t1, t2) => {
    const t3 = mul(t1, t2)
    const t4 = add(t1, t2)
    return mul(mul(mul(mul(t1, t2), t3), t4), add(t3, t4))
  }
}

const ways: [string, (n: number) => Exec][] = [
  ['call', (n) => callOn(Array.from({ length: n - 1 }, (_, i) => i + 1))],
  ['remote', (n) => remoteOn(Array.from({ length: n - 1 }, (_, i) => i + 1))],
  ['call to itself', () => callOn([0])],
]

describe.each(ways)('DA-14 %s', (_, exec) => {
  test.each(Object.entries(programs))('%s', async (_name, program) => {
    let seed = 0
    await overSeeds(SEEDS, 4, async () => {
      seed++
      manualSeed(seed)
      const expected = await localGradients(program)
      manualSeed(seed)
      const leaves = program.leaves()
      const gradients = await distAutograd.context(async (ctx) => {
        const roots = await program.roots(exec(4), leaves)
        await ctx.backward(roots)
        return ctx.gradients()
      })
      expectGradients(gradients, leaves, expected, program.sameBits ?? true)
      for (const t of leaves) expect(t.grad).toBeNull()
    })
  })
})

test('DA-22 four workers run it at the same time, each in its own context', async () => {
  await overSeeds(SEEDS, 4, async (cluster) => {
    const program = programs['case 29 multiple roots, whole numbers']!
    const expected = await localGradients(program)
    await Promise.all(
      cluster.workers.map((worker) =>
        worker.run(async () => {
          const others = [0, 1, 2, 3].filter((id) => id !== worker.info.id)
          const leaves = program.leaves()
          await distAutograd.context(async (ctx) => {
            await ctx.backward(await program.roots(callOn(others), leaves))
            expectGradients(ctx.gradients(), leaves, expected, true)
          })
        }),
      ),
    )
  })
})

test('DA-18 case 34: a gradient for a tensor that only the callee has', async () => {
  await overSeeds(SEEDS, 2, async (cluster) => {
    for (const way of ['call', 'remote']) {
      globalTensor = ones([3, 3], { requiresGrad: true })
      await distAutograd.context(async (ctx) => {
        const ret = way === 'call' ? await call(1, getGlobal) : await remote(1, getGlobal).toHere()
        await ctx.backward([ret.sum()])
        expect(ctx.gradients().size).toBe(0)
        const there = cluster.contextOn(1, ctx.id).gradients()
        expect([...there.keys()]).toEqual([globalTensor])
        expect(there.get(globalTensor)!.toArray()).toEqual(ones([3, 3]).toArray())
      })
    }
  })
})

test('DA-6 case 41: through an RRef, the gradient is on its owner', async () => {
  for (const callee of [1, 2]) {
    await overSeeds(SEEDS, 3, async (cluster) => {
      const owned = remote(1, makeOnes)
      await owned.toHere()
      const value = cluster.workers[1]!.rrefs.lookup(owned.rrefId).localValue() as Tensor
      await distAutograd.context(async (ctx) => {
        const t2 = rand([3, 3], { requiresGrad: true })
        const ret = callee === 1 ? await remote(1, rrefAdd, [owned, t2]).toHere() : await call(2, makeRemotely, [1, owned, t2])
        await ctx.backward([ret.sum()])
        expect(ctx.gradients().get(t2)!.toArray()).toEqual(ones([3, 3]).toArray())
        expect(cluster.contextOn(1, ctx.id).gradients().get(value)!.toArray()).toEqual(ones([3, 3]).toArray())
      })
      owned.dispose()
    })
  }
})

test('DA-6 case 4: what is fetched belongs to the context of the fetch', async () => {
  await overSeeds(SEEDS, 2, async (cluster) => {
    const owned = remote(1, makeOnes)
    await distAutograd.context(async (ctx) => {
      const fetched = await owned.toHere()
      expect(fetched.requiresGrad).toBe(true)
      await ctx.backward([fetched.sum()])
      const [[, grad]] = [...cluster.contextOn(1, ctx.id).gradients()] as [[Tensor, Tensor]]
      expect(grad.toArray()).toEqual(ones([3, 3]).toArray())
    })
    owned.dispose()
  })
})

test('DA-19 case 44: everyone is parameter server and trainer at once', async () => {
  await overSeeds(SEEDS, 4, async (cluster) => {
    await Promise.all(
      cluster.workers.map((server) =>
        server.run(async () => {
          const parameter = rref(tensor([1, 2, 3], { requiresGrad: true }))
          const trainers = [0, 1, 2, 3].filter((id) => id !== server.info.id)
          const seen = await Promise.all(trainers.map((trainer) => call(trainer, trainOnce, [parameter, trainer])))
          for (const [index, own] of seen.entries()) expect(own).toEqual([trainers[index], trainers[index], trainers[index]])
        }),
      ),
    )
  })
})

test('DA-20 case 46: two passes add up, with retainGraph the first time', async () => {
  await overSeeds(SEEDS, 2, async (cluster) => {
    const t1 = leaf([3, 3])
    const t2 = leaf([3, 3])
    const loss = matmul(t1, t2).sum()
    localBackward([loss], undefined, { retainGraph: true })
    localBackward([loss])
    await distAutograd.context(async (ctx) => {
      const remoteLoss = (await call(1, matmul, [t1, t2])).sum()
      await ctx.backward([remoteLoss], { retainGraph: true })
      await ctx.backward([remoteLoss])
      const gradients = ctx.gradients()
      expect(gradients.get(t1)!.toArray()).toEqual(t1.grad!.toArray())
      expect(gradients.get(t2)!.toArray()).toEqual(t2.grad!.toArray())
      const again = await ctx.backward([remoteLoss]).catch((error: { code: string }) => error.code)
      expect(again).toBe('GRAPH_FREED')
      expect(cluster.contextOn(1, ctx.id).passes.size).toBeLessThanOrEqual(1)
    })
  })
})

test('DA-30 case 48: 1000 passes in one context', async () => {
  await overSeeds(1, 3, async (cluster) => {
    await distAutograd.context(async (ctx) => {
      const weight = wholeLeaf([
        [1, 2],
        [3, 4],
      ])
      const loss = (await call(2, add, [await call(1, mul, [weight, 2]), 1])).sum()
      for (let n = 0; n < 1000; n++) await ctx.backward([loss], { retainGraph: true })
      expect(ctx.gradients().get(weight)!.toArray()).toEqual([
        [2000, 2000],
        [2000, 2000],
      ])
      for (const worker of [1, 2]) expect(cluster.contextOn(worker, ctx.id).passes.size).toBeLessThanOrEqual(1)
    })
  })
})

test('DA-19 passes at once in one context do not disturb each other', async () => {
  await overSeeds(SEEDS, 3, async () => {
    await distAutograd.context(async (ctx) => {
      const weight = wholeLeaf([
        [1, 2],
        [3, 4],
      ])
      const loss = (await call(2, add, [await call(1, mul, [weight, 2]), 1])).sum()
      await Promise.all(Array.from({ length: 5 }, () => ctx.backward([loss], { retainGraph: true })))
      expect(ctx.gradients().get(weight)!.toArray()).toEqual([
        [10, 10],
        [10, 10],
      ])
    })
  })
})

test('DA-14 a worker that did not make the context can be the root', async () => {
  await overSeeds(SEEDS, 2, async (cluster) => {
    await distAutograd.context(async (ctx) => {
      const weight = wholeLeaf([[1, 2]])
      await call(1, backwardThere, [weight, ctx.id])
      expect(ctx.gradients().get(weight)!.toArray()).toEqual([[2, 4]])
      // The context outlives this root, which therefore says how its pass ended without waiting for the next one.
      expect(cluster.contextOn(1, ctx.id).passes.ended).toEqual([])
      await call(1, add, [weight, 1])
      expect(cluster.contextOn(0, ctx.id).passes.size).toBe(0)
    })
  })
})

test('DA-18 a hook sees the gradient and changes it, at home and away', async () => {
  await overSeeds(SEEDS, 2, async () => {
    await distAutograd.context(async (ctx) => {
      const t1 = wholeLeaf([[1, 2]])
      t1.registerHook((grad) => noGrad(() => mul(grad, 2)))
      await ctx.backward([(await call(1, mul, [t1, wholeLeaf([[5, 7]])])).sum()])
      expect(ctx.gradients().get(t1)!.toArray()).toEqual([[10, 14]])
    })
  })
})

test('DA-70 a leaf that was detached in place and is a leaf again has one gradient', async () => {
  await overSeeds(SEEDS, 2, async () => {
    await distAutograd.context(async (ctx) => {
      const weight = wholeLeaf([[1, 2]])
      const before = await call(1, mul, [weight, 2])
      weight.detach_().requiresGrad_()
      await ctx.backward([add(before, await call(1, mul, [weight, 3])).sum()])
      expect(ctx.gradients().get(weight)!.toArray()).toEqual([[5, 5]])
    })
  })
})

test('DA-18 gradients of two leaves never share memory', async () => {
  await overSeeds(SEEDS, 2, async () => {
    await distAutograd.context(async (ctx) => {
      const t1 = zeros([3], { requiresGrad: true })
      const t2 = zeros([3], { requiresGrad: true })
      await ctx.backward([(await call(1, add, [t1, t2])).sum()])
      const [g1, g2] = [...ctx.gradients().values()]
      expect(g1!.storage).not.toBe(g2!.storage)
    })
  })
})

let globalTensor: Tensor
const getGlobal = (): Tensor => globalTensor
const makeOnes = (): Tensor => ones([3, 3], { requiresGrad: true })

/** Opens a context of its own over the server's parameter and returns the gradient that the server has in it. */
async function trainOnce(parameter: RRef<Tensor>, factor: number): Promise<number[]> {
  return await distAutograd.context(async (ctx) => {
    const scaled = await call(parameter.owner(), scaleParameter, [parameter, factor])
    await ctx.backward([scaled.sum()])
    return await call(parameter.owner(), gradientOf, [parameter, ctx.id])
  })
}
const scaleParameter = (parameter: RRef<Tensor>, factor: number): Tensor => parameter.localValue().mul(factor)
const gradientOf = (parameter: RRef<Tensor>, contextId: bigint): number[] =>
  distAutograd.getGradients(contextId).get(parameter.localValue())!.toArray() as number[]
async function backwardThere(weight: Tensor, contextId: bigint): Promise<void> {
  await distAutograd.backward(contextId, [mul(weight, weight).sum()])
}
expose({ getGlobal, makeOnes, trainOnce, scaleParameter, gradientOf, backwardThere })

async function localGradients(program: Program): Promise<(unknown | null)[]> {
  const leaves = program.leaves()
  localBackward(await program.roots(local, leaves))
  return leaves.map((t) => t.grad?.toArray() ?? null)
}

function expectGradients(gradients: Map<Tensor, Tensor>, leaves: Tensor[], expected: (unknown | null)[], sameBits: boolean): void {
  expect(gradients.size).toBe(expected.filter((grad) => grad !== null).length)
  leaves.forEach((t, index) => {
    const grad = gradients.get(t)
    if (expected[index] === null) {
      expect(grad).toBeUndefined()
      return
    }
    expect(grad!.dtype).toBe(t.dtype)
    if (sameBits) expect(grad!.toArray()).toEqual(expected[index])
    else {
      const flat = grad!.reshape([-1]).toArray() as number[]
      ;(expected[index] as unknown[]).flat(9).forEach((value, n) => {
        expect(flat[n]).toBeCloseTo(value as number, 4)
      })
    }
  })
}
