/** Calls record nodes at both ends: PyTorch's tests of the graph's shape (cases 3 and 5 to 13 of the reference). */
import { describe, expect, test } from '@jest/globals'
import { add, noGrad } from '@postgrad/autograd'
import { AccumulateGrad, type Node } from '@postgrad/autograd/internal'
import { call, currentWorker, remote } from '@postgrad/rpc'
import { ones, type Tensor, zeros } from '@postgrad/tensor'
import { distAutograd } from '../api.js'
import { currentContext } from '../context/context-scope.js'
import type { DistAutogradContext } from '../context/dist-autograd-context.js'
import { nothing, pyAdd, pyNested, pyNestedRemote } from './programs.suite.js'
import { overSeeds } from './sim-cluster.suite.js'

const SEEDS = 5

type Exec = (to: number, a: Tensor, b: Tensor) => Promise<Tensor>

const ways: [string, Exec][] = [
  ['call of an operation', async (to, a, b) => await call(to, add, [a, b])],
  ['call of a function', async (to, a, b) => await call(to, pyAdd, [a, b])],
  ['remote operation', async (to, a, b) => await remote(to, add, [a, b]).toHere()],
  ['remote function', async (to, a, b) => await remote(to, pyAdd, [a, b]).toHere()],
]

const nestedWays: [string, typeof pyNested][] = [
  ['calls', pyNested],
  ['remotes', pyNestedRemote],
]

describe.each(ways)('DA-8 %s', (_, exec) => {
  test('one send and one recv function at each end, tied together as PyTorch does', () =>
    overSeeds(SEEDS, 2, async (cluster) => {
      let id = 0n
      await distAutograd.context(async (ctx) => {
        id = ctx.id
        const t1 = ones([3, 3], { requiresGrad: true })
        const t2 = zeros([3, 3], { requiresGrad: true })
        const result = await exec(1, t1, t2)
        verifyCaller(ctx, t1, t2, result)
        verifyCallee(cluster.contextOn(1, ctx.id))
      })
      expect(() => cluster.contextOn(0, id)).toThrow(`autograd context ${id} has been released`)
      expect(currentContext()).toBeNull()
    }))

  test('DA-9 nothing without tensors that require grad, and the callee knows the context all the same', () =>
    overSeeds(SEEDS, 2, async (cluster) => {
      await distAutograd.context(async (ctx) => {
        const result = await exec(1, ones([3, 3]), zeros([3, 3]))
        expect(result.requiresGrad).toBe(false)
        for (const worker of [0, 1]) {
          const context = cluster.contextOn(worker, ctx.id)
          expect([context.sendFunctions.size, context.recvFunctions.size]).toEqual([0, 0])
          expect([...context.knownWorkerIds]).toEqual([1 - worker])
        }
      })
    }))

  test('DA-9 nothing outside of a context and nothing under noGrad', () =>
    overSeeds(SEEDS, 2, async (cluster) => {
      const t1 = ones([3, 3], { requiresGrad: true })
      expect((await exec(1, t1, t1)).requiresGrad).toBe(false)
      await distAutograd.context(async (ctx) => {
        const result = await noGrad(() => exec(1, t1, t1))
        expect(result.requiresGrad).toBe(false)
        expect(ctx.sendFunctions.size).toBe(0)
        expect(cluster.parts(1).container.find(ctx.id)).toBeUndefined()
      })
    }))
})

describe.each(nestedWays)('DA-6 nested %s', (_, nested) => {
  test('over four workers: the ones between forward inputs and result', () =>
    overSeeds(SEEDS, 4, async (cluster) => {
      await distAutograd.context(async (ctx) => {
        const t1 = ones([3, 3], { requiresGrad: true })
        const t2 = zeros([3, 3], { requiresGrad: true })
        const result =
          nested === pyNested ? await call(1, pyNested, [t1, t2, 1, 4, 1]) : await remote(1, pyNestedRemote, [t1, t2, 1, 4, 1]).toHere()
        verifyCaller(ctx, t1, t2, result)
        verifyBetween(cluster.contextOn(1, ctx.id))
        verifyBetween(cluster.contextOn(2, ctx.id))
        verifyCallee(cluster.contextOn(3, ctx.id))
      })
    }))

  test('back to the caller itself, in the same context', () =>
    overSeeds(SEEDS, 2, async (cluster) => {
      await distAutograd.context(async (ctx) => {
        const t1 = ones([3, 3], { requiresGrad: true })
        const t2 = zeros([3, 3], { requiresGrad: true })
        const result =
          nested === pyNested ? await call(1, pyNested, [t1, t2, 1, 2, 0]) : await remote(1, pyNestedRemote, [t1, t2, 1, 2, 0]).toHere()
        const [toOther, toSelf] = [...ctx.sendFunctions.values()]
        const [inputs, last] = [...ctx.recvFunctions.values()]
        expect(ctx.sendFunctions.size).toBe(2)
        expect(ctx.recvFunctions.size).toBe(2)
        expectLeaves(toOther!, t1, t2)
        expect(result.gradFn).toBe(last)
        expect(toSelf!.nextEdges.length).toBe(1)
        const addition = toSelf!.nextEdges[0]!.node
        expect(addition.name).toBe('AddBackward')
        expect(addition.nextEdges.map((edge) => edge!.node)).toEqual([inputs, inputs])
        verifyBetween(cluster.contextOn(1, ctx.id))
      })
    }))
})

describe('DA-7 known workers', () => {
  test.each([false, true])('all that were called, with requiresGrad %s', (requiresGrad) =>
    overSeeds(SEEDS, 4, async (cluster) => {
      await distAutograd.context(async (ctx) => {
        const t1 = ones([3, 3], { requiresGrad })
        const t2 = zeros([3, 3], { requiresGrad })
        for (const to of [1, 2, 3]) {
          await call(to, add, [t1, t2])
          await remote(to, pyAdd, [t1, t2]).toHere()
        }
        expect([...ctx.knownWorkerIds]).toEqual([1, 2, 3])
        for (const to of [1, 2, 3]) expect([...cluster.contextOn(to, ctx.id).knownWorkerIds]).toEqual([0])
      })
    }),
  )

  test('a call to oneself makes nobody known, and is recorded like any other', () =>
    overSeeds(SEEDS, 1, async () => {
      await distAutograd.context(async (ctx) => {
        const t1 = ones([3, 3], { requiresGrad: true })
        const result = await call('worker0', pyAdd, [t1, t1])
        expect(ctx.knownWorkerIds.size).toBe(0)
        expect([ctx.sendFunctions.size, ctx.recvFunctions.size]).toEqual([2, 2])
        expect(result.gradFn).toBe([...ctx.recvFunctions.values()][1])
      })
    }))

  test('DA-6 a served call sees the context of its caller, and no call made outside of it does', () =>
    overSeeds(SEEDS, 2, async () => {
      await distAutograd.context(async (ctx) => {
        expect(currentContext()).toBe(ctx)
        expect(await call(1, nothing)).toBe(1)
        await currentWorker().run(async () => expect(currentContext()).toBeNull())
      })
    }))
})

function expectLeaves(send: Node, ...leaves: Tensor[]): void {
  const nodes = send.nextEdges.map((edge) => edge!.node)
  expect(nodes.every((node) => node instanceof AccumulateGrad)).toBe(true)
  expect(nodes.map((node) => (node as AccumulateGrad).variable)).toEqual(leaves)
}

function verifyCaller(ctx: DistAutogradContext, t1: Tensor, t2: Tensor, result: Tensor): void {
  expect([ctx.sendFunctions.size, ctx.recvFunctions.size]).toEqual([1, 1])
  const [send] = [...ctx.sendFunctions.values()]
  const [recv] = [...ctx.recvFunctions.values()]
  expectLeaves(send!, t1, t2)
  expect(result.gradFn).toBe(recv)
}

function verifyCallee(ctx: DistAutogradContext): void {
  expect([ctx.sendFunctions.size, ctx.recvFunctions.size]).toEqual([1, 1])
  const [send] = [...ctx.sendFunctions.values()]
  const [recv] = [...ctx.recvFunctions.values()]
  expect(send!.nextEdges.length).toBe(1)
  const addition = send!.nextEdges[0]!.node
  expect(addition.name).toBe('AddBackward')
  expect(addition.nextEdges.map((edge) => edge!.node)).toEqual([recv, recv])
}

/** Two send functions: forwarded inputs (both edges into one recv) and the forwarded result (one edge into the other). */
function verifyBetween(ctx: DistAutogradContext): void {
  const [inputs, result] = [...ctx.recvFunctions.values()]
  const [forward, back] = [...ctx.sendFunctions.values()]
  expect([ctx.sendFunctions.size, ctx.recvFunctions.size]).toEqual([2, 2])
  expect(forward!.nextEdges.map((edge) => edge!.node)).toEqual([inputs, inputs])
  expect(back!.nextEdges.map((edge) => edge!.node)).toEqual([result])
}
