/** Backward passes from a reference: PyTorch's owner_rref_backward and user_rref_backward, with their numbers, and refused requests. */
import { describe, expect, test } from '@jest/globals'
import { add } from '@postgrad/autograd'
import type { PostgradError } from '@postgrad/base'
import { call, expose, type RRef, remote, rref } from '@postgrad/rpc'
import { FunctionRegistry, WorkerRuntime } from '@postgrad/rpc/internal'
import { SimWorld } from '@postgrad/sim/internal'
import { ones, rand, type Tensor } from '@postgrad/tensor'
import { distAutograd } from '../api.js'
import { installDistAutograd, shareDistAutograd } from '../install.js'
import { leaf } from './programs.suite.js'
import { Cluster, overSeeds } from './sim-cluster.suite.js'

const sum = (t: Tensor) => t.sum()
const identity = (value: unknown) => value
const backwardOf = (ref: RRef<Tensor>, contextId: bigint) => ref.backward(contextId)
const waitsThenSum = async (t: Tensor) => t.sum()
expose({ sum, identity, backwardOf, waitsThenSum })

const twos = (shape: readonly number[]) =>
  ones([...shape])
    .mul(2)
    .toArray()

async function failure(promise: Promise<unknown>): Promise<PostgradError> {
  return promise.then(
    () => {
      throw new Error('expected a rejection')
    },
    (error) => error,
  )
}

describe('owner_rref_backward', () => {
  test('RREF-30 without a context: the local pass, into .grad', async () => {
    await overSeeds(3, 2, async () => {
      const t1 = leaf([10, 10])
      await rref(t1.sum().add(t1.sum())).backward()
      expect(t1.grad!.toArray()).toEqual(twos([10, 10]))
    })
  })

  test('RREF-30 with a context: the distributed pass, gradients of the context', async () => {
    await overSeeds(5, 2, async () => {
      const t1 = leaf([10, 10])
      await distAutograd.context(async (ctx) => {
        const t2 = await call('worker1', add, [t1, t1])
        await rref(t2.sum()).backward(ctx.id)
        expect(ctx.gradients().get(t1)!.toArray()).toEqual(twos([10, 10]))
        expect(t1.grad).toBeNull()
      })
    })
  })

  test('RREF-30 twice, with the graph retained: the gradients add up', async () => {
    await overSeeds(5, 2, async () => {
      const t1 = leaf([10, 10])
      await distAutograd.context(async (ctx) => {
        const root = rref((await call('worker1', add, [t1, t1])).sum())
        await root.backward(ctx.id, { retainGraph: true })
        await root.backward(ctx.id)
        expect(ctx.gradients().get(t1)!.toArray()).toEqual(ones([10, 10]).mul(4).toArray())
      })
    })
  })

  test('RREF-30 the errors, with PyTorch’s words', async () => {
    await overSeeds(1, 1, async () => {
      expect(await failure(rref(rand([10])).backward())).toMatchObject({ code: 'ROOT_REQUIRES_NO_GRAD' })
      const noScalar = await failure(rref(leaf([10])).backward())
      expect(noScalar).toMatchObject({ code: 'ROOT_NOT_SCALAR' })
      const noContext = await failure(rref(leaf([10]).sum()).backward(100n))
      expect(noContext).toMatchObject({ code: 'CONTEXT_NOT_FOUND' })
      expect(noContext.message).toContain('could not find autograd context with id 100')
      const text = await failure((rref('foo') as unknown as RRef<Tensor>).backward())
      expect(text).toMatchObject({ code: 'RREF_NOT_A_TENSOR' })
      expect(text.message).toContain('RRef should contain a tensor for .backward()')
    })
  })
})

describe('user_rref_backward', () => {
  test.each([sum, waitsThenSum])('RREF-30 the pass begins on the owner, twice: %p', async (fn) => {
    await overSeeds(10, 2, async () => {
      const t = leaf([10])
      await distAutograd.context(async (ctx) => {
        const ref = remote('worker1', fn, [t])
        await ref.backward(ctx.id, { retainGraph: true })
        expect(ctx.gradients().get(t)!.toArray()).toEqual(ones([10]).toArray())
        await ref.backward(ctx.id)
        expect(ctx.gradients().get(t)!.toArray()).toEqual(twos([10]))
        ref.dispose()
      })
    })
  })

  test('RREF-30 from a third worker, which got the reference', async () => {
    await overSeeds(10, 3, async (cluster) => {
      const t = leaf([10])
      await distAutograd.context(async (ctx) => {
        const ref = remote('worker1', sum, [t])
        await call('worker2', backwardOf, [ref, ctx.id])
        expect(ctx.gradients().get(t)!.toArray()).toEqual(ones([10]).toArray())
        expect(cluster.contextOn(2, ctx.id).gradients().size).toBe(0)
      })
    })
  })

  test('RREF-30 the errors: no tensor; no context; one that the owner does not know; an error of the creation; a disposed reference', async () => {
    await overSeeds(3, 2, async () => {
      await distAutograd.context(async (ctx) => {
        const text = remote('worker1', identity, ['foo']) as RRef<Tensor>
        const error = await failure(text.backward(ctx.id))
        expect(error).toMatchObject({ code: 'RREF_NOT_A_TENSOR' })
        expect(error.message).toContain('RRef should contain a tensor for .backward()')
        const nothing = remote('worker1', identity, [null]) as unknown as RRef<Tensor>
        expect((await failure(nothing.backward(ctx.id))).message).toContain('contains null')
        nothing.dispose()
        const without = await failure(text.backward())
        expect(without).toMatchObject({ code: 'CONTEXT_REQUIRED', values: { owner: 'worker1' } })
        expect(without.message).toContain('user RRefs require a context')
        expect(await failure(text.backward(100n))).toMatchObject({ code: expect.stringMatching(/CONTEXT_NOT_FOUND|RREF_NOT_A_TENSOR/) })
        const loss = remote('worker1', sum, [leaf([2])])
        expect(await failure(loss.backward(100n))).toMatchObject({ code: 'CONTEXT_NOT_FOUND' })
        const wrong = remote('worker1', identity, [Number.NaN]) as unknown as RRef<Tensor>
        expect(await failure(wrong.rpcSync().sum())).toMatchObject({ code: 'METHOD_NOT_FOUND' })
        loss.dispose()
        expect(await failure(loss.backward(ctx.id))).toMatchObject({ code: 'RREF_DELETED' })
      })
    })
  })

  test('RREF-30 when the owner dies: WORKER_DIED', async () => {
    const cluster = new Cluster(1, 2)
    await cluster.run(0, async () => {
      await distAutograd.context(async (ctx) => {
        const ref = remote('worker1', sum, [leaf([2])])
        const pass = failure(ref.backward(ctx.id))
        cluster.world.crash('worker1')
        expect(await pass).toMatchObject({ code: 'WORKER_DIED' })
        expect(await failure(ref.backward(ctx.id))).toMatchObject({ code: 'WORKER_DIED' })
      })
    })
    expect(await cluster.leftovers({ except: [1] })).toEqual([])
  })
})

test('RREF-30 on a worker without distributed autograd: NO_AUTOGRAD', async () => {
  const world = new SimWorld(1)
  const worker = new WorkerRuntime({ name: 'bare', id: 0, clock: world.clockOf('bare'), registry: new FunctionRegistry() })
  const error = await worker.run(() => failure(rref(leaf([1]).sum()).backward()))
  expect(error).toMatchObject({ code: 'NO_AUTOGRAD' })
})

test('RREF-30 on a worker that has the engine of another: the pass of a reference that it made itself', async () => {
  const world = new SimWorld(1)
  const [first, second] = ['first', 'second'].map(
    (name, id) => new WorkerRuntime({ name, id, clock: world.clockOf(name), registry: new FunctionRegistry() }),
  ) as [WorkerRuntime, WorkerRuntime]
  installDistAutograd(first)
  shareDistAutograd(second, first)
  const program = async () => {
    const local = leaf([2])
    await rref(local.sum()).backward()
    expect(local.grad!.toArray()).toEqual([1, 1])
    const t = leaf([2])
    await distAutograd.context(async (ctx) => {
      await rref(t.sum()).backward(ctx)
      expect(ctx.gradients().get(t)!.toArray()).toEqual([1, 1])
    })
  }
  await world.run(second.run(program))
})
