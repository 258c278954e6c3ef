/** How passes fail: at once, everywhere, with the error as it was thrown, and without leftovers (cases 52 to 57 of the reference). */
import { describe, expect, test } from '@jest/globals'
import { add, defineFunction, enableGrad, mul } from '@postgrad/autograd'
import type { Node } from '@postgrad/autograd/internal'
import { isPostgradError, type PostgradError } from '@postgrad/base'
import { call, currentWorker, expose, type RRef, remote, rref } from '@postgrad/rpc'
import { ones, type Tensor, tensor } from '@postgrad/tensor'
import { distAutograd } from '../api.js'
import { sleep } from './ends.suite.js'
import { pyAdd, wholeLeaf } from './programs.suite.js'
import { overSeeds } from './sim-cluster.suite.js'

const SEEDS = 10

async function codeOf(promise: Promise<unknown>): Promise<string> {
  return await promise.then(
    () => 'no error',
    (error: { code?: string; name: string }) => error.code ?? error.name,
  )
}

const firstOf = (a: Tensor, _text: string): Tensor => mul(a, 2)
const sumOf = (t: Tensor): Tensor => t.sum()
const lengthOf = (text: string): number => text.length
class Twice {
  of(a: Tensor): Tensor {
    return mul(a, 2)
  }
  *each(a: Tensor) {
    yield mul(a, 2)
  }
}
expose({ 'failure.Twice': Twice, 'failure.firstOf': firstOf, 'failure.sumOf': sumOf, lengthOf })

test('DA-8 a call whose bytes could not be made leaves no send function behind, and the pass is right', () =>
  overSeeds(1, 2, async () => {
    await distAutograd.context(async (ctx) => {
      const t = wholeLeaf([[1, 2]])
      expect(await codeOf(call('worker1', firstOf, [t, 'x'.repeat(9 * 2 ** 20)]))).toBe('WIRE_TOO_LARGE')
      expect(ctx.sendFunctions.size).toBe(0)
      // Nor does one that has no tensors.
      expect(await codeOf(call('worker1', lengthOf, ['x'.repeat(9 * 2 ** 20)]))).toBe('WIRE_TOO_LARGE')
      await ctx.backward([(await call('worker1', firstOf, [t, ''])).sum()])
      expect(ctx.gradients().get(t)?.toArray()).toEqual([[2, 2]])
    })
  }))

test('DA-8 a call that an interceptor refuses leaves no send function behind', () =>
  overSeeds(1, 2, async (cluster) => {
    let refuses = true
    cluster.workers[0]!.interceptCalls({
      outgoing: () => {
        if (refuses) throw new RangeError('not today')
      },
    })
    await distAutograd.context(async (ctx) => {
      const t = wholeLeaf([[1, 2]])
      expect(await codeOf(call('worker1', firstOf, [t, '']))).toBe('RangeError')
      expect([ctx.sendFunctions.size, ctx.lineage.sends.filter((send) => send !== null).length]).toEqual([0, 0])
      refuses = false
      await ctx.backward([(await call('worker1', firstOf, [t, ''])).sum()])
      expect(ctx.gradients().get(t)?.toArray()).toEqual([[2, 2]])
    })
  }))

describe('DA-14 what cannot be a root', () => {
  test('case 53: none, without grad, not a scalar, a leaf', () =>
    overSeeds(1, 2, async () => {
      await distAutograd.context(async (ctx) => {
        const t = wholeLeaf([[1, 2]])
        expect(await codeOf(ctx.backward([]))).toBe('NO_ROOTS')
        const one = await ctx.backward(ones([1]) as never).catch((e: unknown) => e)
        expect(one).toMatchObject({ code: 'INVALID_ARGUMENT', remedy: expect.stringContaining('backward([loss])') })
        expect(await ctx.backward([ones([1])]).catch((e: unknown) => e)).toMatchObject({
          code: 'ROOT_REQUIRES_NO_GRAD',
          message: expect.stringMatching(
            /^backward: expected root 0 to require grad, got a tensor that does not, and that no recorded operation made\./,
          ),
          remedy: expect.stringContaining('has a history only within distAutograd.context(…): call there, and use ctx.backward()'),
        })
        expect(await codeOf(ctx.backward([mul(t, t)]))).toBe('ROOT_NOT_SCALAR')
        expect(await codeOf(ctx.backward([tensor(1, { requiresGrad: true })]))).toBe('ROOT_HAS_NO_GRAD_FN')
        expect(ctx.passes.size).toBe(0)
      })
    }))

  test('DA-5 case 52: no such context', () =>
    overSeeds(1, 2, async () => {
      const loss = add(wholeLeaf([[1]]), 1).sum()
      expect(await codeOf(distAutograd.backward(100n, [loss]))).toBe('CONTEXT_NOT_FOUND')
      expect(await codeOf(distAutograd.backward(null as unknown as bigint, [loss]))).toBe('CONTEXT_NOT_FOUND')
    }))

  test('DA-11 a released context', () =>
    overSeeds(SEEDS, 2, async () => {
      const [ctx, loss] = await distAutograd.context(
        async (open) => [open, (await call(1, pyAdd, [wholeLeaf([[1]]), wholeLeaf([[2]])])).sum()] as const,
      )
      expect(await ctx.backward([loss]).catch((e: unknown) => e)).toMatchObject({
        code: 'CONTEXT_RELEASED',
        message: expect.stringMatching(/^backward: autograd context \d+ has been released\. Await everything/),
      })
      expect(await codeOf(distAutograd.backward(ctx.id, [loss]))).toBe('CONTEXT_RELEASED')
      expect(() => ctx.gradients()).toThrow('has been released')
    }))
})

test('DA-11 a pass that was not awaited is told so', () =>
  overSeeds(SEEDS, 2, async () => {
    let pass: Promise<unknown> = Promise.resolve()
    const context = distAutograd.context(async (ctx) => {
      const loss = (await call(1, pyAdd, [wholeLeaf([[1]]), wholeLeaf([[2]])])).sum()
      pass = ctx.backward([loss]).catch((e: unknown) => e)
    })
    expect(await codeOf(context)).toBe('CONTEXT_RELEASED')
    expect(await pass).toMatchObject({
      code: 'CONTEXT_RELEASED',
      message: expect.stringMatching(/^backward: autograd context \d+ was released while this backward pass was under way\./),
      remedy: expect.stringContaining('Write `await ctx.backward(…)`, also before ctx.gradients()'),
    })
  }))

test('DA-85 options of another name are refused: of a context, of a pass, of a reference’s pass', () =>
  overSeeds(1, 2, async (cluster) => {
    const wrongMode = distAutograd.context(() => {}, { Mode: 'fast' } as never)
    await expect(wrongMode).rejects.toMatchObject({ code: 'INVALID_ARGUMENT', message: expect.stringContaining('got Mode') })
    await distAutograd.context(async (ctx) => {
      const loss = (await call(1, pyAdd, [wholeLeaf([[1]]), wholeLeaf([[2]])])).sum()
      const refused = { code: 'INVALID_ARGUMENT', message: expect.stringContaining('retainGraph') }
      const before = cluster.messages
      for (const options of [{ retain_graph: true }, { timeout: 1 }, true] as never[]) {
        await expect(ctx.backward([loss], options)).rejects.toMatchObject(refused)
        await expect(distAutograd.backward(ctx.id, [loss], options)).rejects.toMatchObject(refused)
        await expect(rref(loss).backward(ctx.id, options)).rejects.toMatchObject(refused)
      }
      expect(cluster.messages).toBe(before)
      await ctx.backward([loss])
    })
  }))

test('DA-86 a context stands for its id, wherever one is asked for', () =>
  overSeeds(1, 2, async () => {
    const weight = wholeLeaf([[1, 2]])
    await distAutograd.context(async (ctx) => {
      const loss = (await call(1, pyAdd, [weight, weight])).sum()
      await distAutograd.backward(ctx, [loss], { retainGraph: true })
      await rref(loss).backward(ctx, { retainGraph: true })
      const far = remote(1, sumOf, [weight])
      await far.backward(ctx)
      expect(distAutograd.getGradients(ctx).get(weight)!.toArray()).toEqual([[5, 5]])
      distAutograd.releaseContext(ctx)
      expect(ctx.released).toBe(true)
      expect(await codeOf(distAutograd.backward({} as never, [loss]))).toBe('CONTEXT_NOT_FOUND')
    })
  }))

describe('DA-23 unused sends under FAST', () => {
  const fast = { mode: 'fast' } as const

  test('case 57: a result that does not enter the loss is an error, which names the workers and messages', () =>
    overSeeds(SEEDS, 2, async (cluster) => {
      await distAutograd.context(async (ctx) => {
        const [t1, t2] = [wholeLeaf([[1, 2]]), wholeLeaf([[3, 4]])]
        await call(1, pyAdd, [t1, t2])
        const error = (await ctx.backward([mul(t1, t2).sum()]).catch((e: unknown) => e)) as PostgradError
        expect(error.code).toBe('UNUSED_SEND')
        const messages = [String([...ctx.sendFunctions.keys()][0])]
        expect(error.values.misses).toEqual([{ worker: 'worker0', count: 1, messages, sends: ["the call of 'pyAdd' to worker 'worker1'"] }])
        expect(error.message).toContain(
          "but 1 message of worker 'worker0' (the call of 'pyAdd' to worker 'worker1') sent tensors that no root depends on",
        )
        expect(ctx.gradients().size).toBe(0)
        expect(cluster.contextOn(1, ctx.id).passes.size).toBe(0)
      }, fast)
    }))

  test('of very many the number is told, and no names', () =>
    overSeeds(1, 2, async () => {
      await distAutograd.context(async (ctx) => {
        const [t1, t2] = [wholeLeaf([[1, 2]]), wholeLeaf([[3, 4]])]
        for (let n = 0; n < 70; n++) await call(1, pyAdd, [t1, t2])
        const error = (await ctx.backward([mul(t1, t2).sum()]).catch((e: unknown) => e)) as PostgradError
        expect(error.values.misses).toEqual([{ worker: 'worker0', count: 70, messages: [], sends: [] }])
        expect(error.message).toContain("70 messages of worker 'worker0' sent tensors")
      }, fast)
    }))

  test('a result says whose it was', () =>
    overSeeds(1, 2, async () => {
      await distAutograd.context(async (ctx) => {
        const t = wholeLeaf([[1, 2]])
        const used = await call(1, pyAdd, [t, t])
        await call(1, firstOf, [t, ''])
        const error = (await ctx.backward([used.sum()]).catch((e: unknown) => e)) as PostgradError
        const { misses } = error.values as { misses: { worker: string; sends: string[] }[] }
        expect({ code: error.code, sends: misses.flatMap(({ sends }) => sends) }).toEqual({
          code: 'UNUSED_SEND',
          sends: ["the call of 'failure.firstOf' to worker 'worker1'", "the result of 'failure.firstOf' to worker 'worker0'"],
        })
      }, fast)
    }))

  test('a method says its own name, and so do the items of a stream', () =>
    overSeeds(1, 2, async () => {
      const t = wholeLeaf([[1, 2]])
      const sendsOf = async (use: (twice: RRef<Twice>) => Promise<unknown>): Promise<string[]> => {
        using twice = remote('worker1', Twice)
        await twice.created()
        return await distAutograd.context(async (ctx) => {
          await use(twice)
          const error = (await ctx.backward([mul(t, 2).sum()]).catch((e: unknown) => e)) as PostgradError
          return (error.values as { misses: { sends: string[] }[] }).misses.flatMap(({ sends }) => sends)
        }, fast)
      }
      const called = ["the call of 'of' to worker 'worker1'"]
      expect(await sendsOf((twice) => twice.call('of', [t]))).toEqual(called)
      const streamed = await sendsOf(async (twice) => {
        for await (const _ of twice.stream('each', [t]));
      })
      expect(streamed).toEqual(["the call of 'each' to worker 'worker1'"])
    }))

  test('a call that failed has sent its tensors all the same; another context is free of it', () =>
    overSeeds(SEEDS, 2, async () => {
      const weight = wholeLeaf([[1, 2]])
      const loss = async () => (await call(1, pyAdd, [weight, weight])).sum()
      await distAutograd.context(async (ctx) => {
        expect(await codeOf(call(1, mul, [weight, wholeLeaf([[1, 2, 3]])]))).toBe('SHAPE_MISMATCH')
        expect(await codeOf(ctx.backward([await loss()]))).toBe('UNUSED_SEND')
      }, fast)
      await distAutograd.context(async (ctx) => {
        await ctx.backward([await loss()])
      }, fast)
    }))

  test('on a worker that takes part', () =>
    overSeeds(SEEDS, 3, async () => {
      await distAutograd.context(async (ctx) => {
        const t1 = wholeLeaf([[1, 2]])
        const used = await call(1, addAndTell, [t1, 2])
        const error = (await ctx.backward([used.sum()]).catch((e: unknown) => e)) as PostgradError
        expect(error.code).toBe('UNUSED_SEND')
        // Worker 1 waits for the gradient of what it sent on, so worker 0 waits for that of t1.
        const misses = error.values.misses as { worker: string; sends: string[] }[]
        expect(misses.map(({ worker }) => worker)).toEqual(['worker0', 'worker1'])
        expect(misses.map(({ sends }) => sends)).toEqual([
          ["the call of 'addAndTell' to worker 'worker1'"],
          [expect.stringMatching(/^the call of '.+' to worker 'worker2'$/)],
        ])
        // No node failed.
        expect(error.cause).toBeUndefined()
      }, fast)
    }))
})

/** Sends its tensor on for nothing, so that one of this worker's send functions is never satisfied. */
async function addAndTell(t: Tensor, to: number): Promise<Tensor> {
  await call(to, pyAdd, [t, t])
  return add(t, 1)
}

describe('DA-24 an exception in a node', () => {
  const state = { failOn: -1 }
  const failsBackward = defineFunction({
    name: 'FailsBackward',
    forward: (_ctx: unknown, x: Tensor) => mul(x, 1),
    backward: (_ctx: unknown, grad: Tensor) => {
      if (currentWorker().info.id === state.failOn) throw new TypeError('Simulate error on backward pass')
      return grad
    },
  }) as unknown as (x: Tensor) => Tensor

  async function relay(x: Tensor, dst: number, size: number): Promise<Tensor> {
    const here = failsBackward(mul(x, 2))
    return dst === size - 1 ? here : failsBackward(await call(dst + 1, relay, [here, dst + 1, size]))
  }
  expose({ relay })

  test.each([0, 1, 2, 3])('on worker %i reaches the root as it was thrown, and the context is as usable as before', (failOn) =>
    overSeeds(SEEDS, 4, async () => {
      await distAutograd.context(async (ctx) => {
        const weight = wholeLeaf([[1, 2]])
        const loss = failsBackward(await call(1, relay, [failsBackward(weight), 1, 4])).sum()
        state.failOn = failOn
        for (let n = 0; n < 3; n++) {
          const error = (await ctx.backward([loss], { retainGraph: true }).catch((e: unknown) => e)) as Error & {
            workers?: { name: string }[]
          }
          expect(error.message).toBe('Simulate error on backward pass')
          expect(error.name).toBe('TypeError')
        }
        state.failOn = -1
        expect(ctx.gradients().size).toBe(0)
        for (let n = 1; n <= 3; n++) {
          await ctx.backward([loss], { retainGraph: true })
          expect(ctx.gradients().get(weight)!.toArray()).toEqual([[8 * n, 8 * n]])
        }
      })
    }),
  )

  test.each([0, 2])('DA-67 every participant hears of the abort once, whatever failed on worker %i, and nobody else in SMART', (failOn) =>
    overSeeds(SEEDS, 5, async (cluster) => {
      branchWeight = () => wholeLeaf([[1, 2]])
      const heard = [0, 0, 0, 0, 0]
      for (const { info } of cluster.workers) {
        const { engine } = cluster.parts(info.id)
        const onAbort = engine.onAbort.bind(engine)
        engine.onAbort = (message, from, context) => {
          heard[info.id]!++
          onAbort(message, from, context)
        }
      }
      await distAutograd.context(async (ctx) => {
        const x = wholeLeaf([[1, 2]])
        // Worker 4 has a part in the context, and none in the pass.
        await call(4, branch, [x])
        const parts = await Promise.all([1, 2, 3].map((id) => call(id, branch, [x])))
        const loss = parts.map((part) => part.sum()).reduce((a, b) => add(a, b))
        const whole = failOn === 0 ? failsBackward(loss) : loss
        state.failOn = failOn
        expect(await codeOf(ctx.backward([whole], { retainGraph: true }))).toBe('TypeError')
        state.failOn = -1
        await ctx.backward([whole])
        expect(ctx.gradients().get(x)!.toArray()).toEqual([[3, 6]])
      })
      // Messages arrive.
      await sleep(200)
      expect(heard).toEqual([0, 1, 1, 1, 0])
    }),
  )

  test('DA-25 what other branches had gathered before the failure is not left behind', () =>
    overSeeds(2 * SEEDS, 4, async (cluster) => {
      const weights = new Map<number, Tensor>()
      branchWeight = (id) => {
        const weight = weights.get(id) ?? wholeLeaf([[id, 1]])
        weights.set(id, weight)
        return weight
      }
      await distAutograd.context(async (ctx) => {
        const x = wholeLeaf([[1, 2]])
        const parts = await Promise.all([1, 2, 3].map((id) => call(id, branch, [x])))
        const loss = parts.map((part) => failsBackward(part).sum()).reduce((a, b) => add(a, b))
        state.failOn = 2
        expect(await codeOf(ctx.backward([loss], { retainGraph: true }))).toBe('TypeError')
        state.failOn = -1
        await ctx.backward([loss], { retainGraph: true })
        for (const id of [1, 2, 3]) {
          expect(cluster.contextOn(id, ctx.id).gradients().get(weights.get(id)!)!.toArray()).toEqual([[1, 2]])
        }
        expect(ctx.gradients().get(x)!.toArray()).toEqual([[6, 3]])
      })
    }))

  test('DA-24 an abort reaches workers that the root does not know', () =>
    overSeeds(3 * SEEDS, 3, async (cluster) => {
      const weight = wholeLeaf([[3, 1]])
      branchWeight = () => weight
      await distAutograd.context(async (ctx) => {
        const loss = (await call(1, spread, [wholeLeaf([[1, 2]])])).sum()
        state.failOn = 1
        expect(await codeOf(ctx.backward([loss], { retainGraph: true }))).toBe('TypeError')
        state.failOn = -1
        await ctx.backward([loss], { retainGraph: true })
        expect(cluster.contextOn(2, ctx.id).gradients().get(weight)!.toArray()).toEqual([[1, 2]])
      })
    }))

  /** In backward, the gradient for worker 2 leaves first, then the other node fails. */
  async function spread(x: Tensor): Promise<Tensor> {
    return add(await call(2, branch, [x]), failsBackward(mul(x, 1)))
  }
  expose({ spread })

  let branchWeight: (id: number) => Tensor
  const branch = (x: Tensor): Tensor => failsBackward(mul(x, branchWeight(currentWorker().info.id)))
  expose({ branch })
})

describe('other ends of a pass', () => {
  test('DA-26 a deadline: the error says so, and the pass is aborted', () =>
    overSeeds(SEEDS, 2, async (cluster) => {
      await distAutograd.context(async (ctx) => {
        const weight = wholeLeaf([[1, 2]])
        const loss = (await call(1, pyAdd, [weight, weight])).sum()
        // A pass whose messages do not get through: worker 1 never learns of it.
        const { engine } = cluster.parts(1)
        const onGradients = engine.onGradients.bind(engine)
        engine.onGradients = () => {}
        const error = (await ctx.backward([loss], { retainGraph: true, timeoutMs: 50 }).catch((e: unknown) => e)) as PostgradError
        expect(error.code).toBe('DIST_BACKWARD_TIMEOUT')
        expect(error.values.waitingFor).toContain('worker1')
        engine.onGradients = onGradients
        await ctx.backward([loss], { retainGraph: true, timeoutMs: 50 })
        expect(ctx.gradients().get(weight)!.toArray()).toEqual([[2, 2]])
      })
    }))

  test('DA-13 the context is released under a running pass', () =>
    overSeeds(SEEDS, 3, async () => {
      let pass: Promise<void> | undefined
      await distAutograd.context(async (ctx) => {
        const loss = (await call(1, pyAdd, [wholeLeaf([[1]]), wholeLeaf([[2]])])).sum()
        pass = ctx.backward([loss])
        pass.catch(() => {})
        ctx.release()
      })
      expect(await codeOf(pass!)).toBe('CONTEXT_RELEASED')
    }))

  test('DA-29 the worker is closed under a running pass', () =>
    overSeeds(SEEDS, 2, async (cluster) => {
      const worker = cluster.workers[1]!
      const pass = worker.run(() =>
        distAutograd.context(async (ctx) => {
          const loss = (await call(0, pyAdd, [wholeLeaf([[1]]), wholeLeaf([[2]])])).sum()
          const ended = codeOf(ctx.backward([loss]))
          await worker.close()
          return await ended
        }),
      )
      expect(await pass).toBe('RPC_SHUT_DOWN')
    }))

  test('DA-21 a local backward does not cross workers, and a pass no contexts', () =>
    overSeeds(SEEDS, 2, async () => {
      await distAutograd.context(async (ctx) => {
        const result = (await call(1, pyAdd, [wholeLeaf([[1]]), wholeLeaf([[2]])])).sum()
        const error = catching(() => result.backward())
        expect(isPostgradError(error, 'BACKWARD_CROSSES_WORKERS')).toBe(true)
        await distAutograd.context(async (other) => {
          expect(await codeOf(other.backward([add(result, 1)], { retainGraph: true }))).toBe('FOREIGN_CONTEXT')
        })
        void ctx
      })
    }))

  test('DA-21 a graph over two other contexts can be sent, and no pass gets through it', () =>
    overSeeds(SEEDS, 2, async () => {
      const received = () => call(1, pyAdd, [wholeLeaf([[1]]), wholeLeaf([[2]])])
      await distAutograd.context(async () => {
        const a = await received()
        await distAutograd.context(async () => {
          const b = await received()
          await distAutograd.context(async (third) => {
            const [own, mixed] = [await received(), add(a, b)]
            // Its own part, one message, and what is none of its own.
            for (const sum of [mixed, add(mixed, own), add(add(own, await received()), mixed)]) {
              const back = await call(1, pyAdd, [sum, sum])
              expect(await codeOf(third.backward([back.sum()], { retainGraph: true }))).toBe('FOREIGN_CONTEXT')
            }
            await third.backward([own.sum()])
          })
        })
      })
    }))

  test('DA-21 nor does a local backward that a hook runs in the middle of a pass', () =>
    overSeeds(SEEDS, 2, async () => {
      await distAutograd.context(async (ctx) => {
        const weight = wholeLeaf([[1, 2]])
        const received = await call(1, pyAdd, [weight, weight])
        const aside = received.sum()
        let error: unknown = null
        const home = wholeLeaf([[3, 4]])
        home.registerHook((grad) => {
          error ??= catching(() => aside.backward())
          return grad
        })
        await ctx.backward([mul(received, home).sum()])
        expect(isPostgradError(error, 'BACKWARD_CROSSES_WORKERS')).toBe(true)
        expect(ctx.gradients().get(weight)!.toArray()).toEqual([[6, 8]])
      })
    }))

  test('DA-21 nor one that a hook of the received tensor itself runs, before its gradient leaves or behind it', () =>
    overSeeds(SEEDS, 2, async () => {
      await distAutograd.context(async (ctx) => {
        const weight = wholeLeaf([[1, 2]])
        const received = await call(1, pyAdd, [weight, weight])
        const errors: unknown[] = []
        let isWithin = false
        const aside = (): undefined => {
          // The pass aside runs these hooks, too.
          if (isWithin) return undefined
          isWithin = true
          errors.push(catching(() => mul(received, 5).sum().backward()))
          isWithin = false
          return undefined
        }
        received.registerHook(() => enableGrad(aside))
        ;(received.gradFn as unknown as Node).registerHook(() => enableGrad(aside))
        await ctx.backward([received.sum()])
        expect(errors.map((error) => (error as PostgradError).code)).toEqual(Array(2).fill('BACKWARD_CROSSES_WORKERS'))
        expect(ctx.gradients().get(weight)!.toArray()).toEqual([[2, 2]])
      })
    }))

  test.each([-1, Number.NaN, '5' as unknown as number])('DA-26 a timeout of %p is refused as that of a call is', (timeoutMs) =>
    overSeeds(1, 2, async () => {
      await distAutograd.context(async (ctx) => {
        expect(await codeOf(ctx.backward([mul(wholeLeaf([[1]]), 2).sum()], { timeoutMs }))).toBe('TIMEOUT_INVALID')
      })
    }),
  )
})

expose({ addAndTell })

function catching(fn: () => unknown): unknown {
  try {
    fn()
    return null
  } catch (error) {
    return error
  }
}
