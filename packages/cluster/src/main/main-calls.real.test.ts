/** The main thread as a guest of its cluster, on threads: calls, references, errors, cancellation and callbacks. */
import { afterEach, describe, expect, test } from '@jest/globals'
import { isPostgradError, type PostgradError } from '@postgrad/base'
import { fakeTimers } from '@postgrad/base/suite'
import { call, currentWorker, getDebugInfo, RRef, rref, stream } from '@postgrad/rpc'
import { tensor } from '@postgrad/tensor'
import type { RemoteErrorInfo } from '@postgrad/wire'
import { launcher } from '../clusters.fixture.js'
import * as program from '../fixtures/main-thread.js'

const { Counter, Policy } = program
const launch = launcher()
const url = new URL('../fixtures/main-thread.js', import.meta.url)

function rejection(promise: Promise<unknown>): Promise<PostgradError> {
  return promise.then(
    () => Promise.reject(new Error('it did not reject')),
    (error) => error,
  )
}

describe('calls and references', () => {
  test('CLU-75: a call of a function, with and without arguments; calls leave in their order', async () => {
    const cluster = await launch(url, { workers: 2 })
    expect(await cluster.call('worker1', program.who)).toBe('worker1')
    expect((await cluster.call(0, program.double, [tensor([1, 2])])).toArray()).toEqual([2, 4])
    const counter = await cluster.remote('worker0', Counter)
    const sums = Array.from({ length: 50 }, () => counter.call('add', [1]))
    const mixed = [counter.rpcAsync().add(1), cluster.call('worker0', program.who), counter.rpcAsync().add(1)]
    expect(await Promise.all(sums)).toEqual(Array.from({ length: 50 }, (_, i) => i + 1))
    expect(await Promise.all(mixed)).toEqual([51, 'worker0', 52])
  })

  test('CLU-75: a reference that the main thread holds: methods, value, passing it on, giving it up', async () => {
    const cluster = await launch(url, { workers: 2, referenceLeaks: 'error' })
    const policy = await cluster.remote('worker1', Policy, [[0.5, -1]])
    expect(policy).toBeInstanceOf(RRef)
    expect(policy.ownerName()).toBe('worker1')
    const action = await policy.rpcAsync().act(tensor([1, 2]))
    expect(action.toArray()).toEqual(new Policy([0.5, -1]).act(tensor([1, 2])).toArray())
    const list = await cluster.remote('worker1', program.keep, ['value'])
    await list.created()
    const counter = await cluster.remote('worker0', Counter)
    await cluster.call('worker1', program.keep, [counter])
    expect(await cluster.call('worker1', program.useKept, ['add'])).toBe(1)
    expect(await counter.rpcSync().add(10)).toBe(11)
    const held = (await cluster.references()).main!.held.map(({ owner }) => owner.name)
    expect(held.sort()).toEqual(['worker0', 'worker1', 'worker1'])
    counter.dispose()
    await expect(counter.rpcSync().add(1)).rejects.toMatchObject({ code: 'RREF_DELETED' })
  }, 20_000)

  test('CLU-75: large tensors both ways, which outlive the cluster', async () => {
    const cluster = await launch(url, { workers: 1 })
    const x = tensor(Float32Array.from({ length: 300_000 }, (_, i) => i))
    const y = await cluster.call('worker0', program.double, [x])
    await cluster.close()
    expect(y.dataSync()[299_999]).toBe(599_998)
    expect(x.dataSync()[299_999]).toBe(299_999)
  })

  test('CLU-76: in runHere everything works as in a worker: streams, references of its own, random numbers from the seed', async () => {
    const numbers = async (seed: number) => {
      const cluster = await launch(url, { workers: 1, seed })
      return cluster.runHere(async (count: number) => {
        const { rand } = await import('@postgrad/tensor')
        return [...(rand([count]).dataSync() as Float32Array)]
      }, 3)
    }
    const first = await numbers(7)
    expect(await numbers(7)).toEqual(first)
    expect(await numbers(8)).not.toEqual(first)

    const cluster = await launch(url, { workers: 2 })
    await cluster.runHere(async () => {
      expect(currentWorker().info).toEqual({ name: 'main', id: 65_535 })
      const items: number[] = []
      for await (const item of stream('worker0', program.count, [100])) items.push(item)
      expect(items).toHaveLength(100)
      // Its own reference, read by a worker that got it from another one.
      expect(await call('worker0', program.passOn, ['worker1', rref([1, 2, 3])])).toBe(6)
      // Within the scope the cluster's own methods keep it.
      expect(await cluster.call('worker1', program.who)).toBe('worker1')
    })
  })

  test('CLU-77: workers call the main thread, what it has exposed', async () => {
    const cluster = await launch(url, { workers: 2 })
    await cluster.call('worker0', program.who)
    expect(await cluster.call('worker0', program.ask, ['main'])).toBe('main')
    expect(await cluster.on('worker1').run(program.ask, 'main')).toBe('main')
    const counter = new Counter()
    await cluster.runHere(async () => {
      using here = rref(counter)
      await call('worker1', program.keep, [here])
      await call('worker1', program.useKept, ['add'])
    })
    expect(counter.add(0)).toBe(1)
  })
})

describe('errors, limits, cancellation', () => {
  test('CLU-75: an error arrives whole, with the stack of the callee and the worker that it comes from', async () => {
    const cluster = await launch(url, { workers: 1 })
    const error = await rejection(cluster.call('worker0', program.fail))
    expect(error).toBeInstanceOf(RangeError)
    expect(error.message).toBe('as asked')
    const { remoteStack, workers } = error as RemoteErrorInfo
    expect(remoteStack).toMatch(/fail .*fixtures\/main-thread\.js/)
    expect(workers).toMatchObject([{ name: 'worker0' }])
    const failed = await cluster.remote('worker0', program.fail)
    await expect(failed.toHere()).rejects.toThrow('as asked')
  })

  test('CLU-75: what rpc refuses is refused: a function that is not exposed, a worker that is none, a value that cannot be sent', async () => {
    const cluster = await launch(url, { workers: 1 })
    await expect(cluster.call('worker0', () => 1)).rejects.toMatchObject({ code: 'FUNCTION_NOT_EXPOSED' })
    await expect(cluster.call('worker7', program.who)).rejects.toMatchObject({ code: 'UNKNOWN_WORKER' })
    await expect(cluster.remote('worker7', Counter)).rejects.toMatchObject({ code: 'UNKNOWN_WORKER' })
    await expect(cluster.call('worker0', program.keep, [() => 1])).rejects.toMatchObject({ code: 'WIRE_UNSUPPORTED_VALUE' })
    await expect(cluster.call('worker0', program.never, [], { timeoutMs: 50 })).rejects.toMatchObject({ code: 'RPC_TIMEOUT' })
    expect(await cluster.runHere(() => getDebugInfo()['agent.clientActiveCalls'])).toBe(0)
  })

  test('CLU-75: an AbortSignal gives a call up, here and at the callee', async () => {
    const cluster = await launch(url, { workers: 1 })
    await cluster.call('worker0', program.who)
    const controller = new AbortController()
    const reason = new Error('no longer wanted')
    const waiting = rejection(cluster.call('worker0', program.untilAborted, [], { signal: controller.signal }))
    await cluster.call('worker0', program.who)
    controller.abort(reason)
    expect(await waiting).toMatchObject({ code: 'CALL_CANCELLED', cause: reason })
    expect(await cluster.call('worker0', program.abortedCalls)).toBe(1)
    const aborted = cluster.call('worker0', program.who, [], { signal: AbortSignal.abort(reason) })
    await expect(aborted).rejects.toMatchObject({ code: 'CALL_CANCELLED' })
  })

  test('CLU-75: more than the mailbox takes is refused, and what was taken is answered', async () => {
    const cluster = await launch(url, { workers: 1, mailbox: { callsMax: 100 } })
    await cluster.call('worker0', program.who)
    const blocked = cluster.call('worker0', program.block, [100])
    const calls = await Promise.allSettled(Array.from({ length: 1000 }, () => cluster.call('worker0', program.who)))
    const served = calls.filter((one) => one.status === 'fulfilled' && one.value === 'worker0').length
    const refused = calls.filter((one) => one.status === 'rejected' && isPostgradError(one.reason, 'MAILBOX_FULL')).length
    expect(served).toBeGreaterThan(90)
    expect(served + refused).toBe(1000)
    await blocked
    expect(await cluster.call('worker0', program.who)).toBe('worker0')
  })

  test('CLU-77: while the main thread is blocked who calls it waits, and runs into its own deadline', async () => {
    const cluster = await launch(url, { workers: 1, rpcTimeoutMs: 100 })
    await cluster.call('worker0', program.who)
    const asked = rejection(cluster.on('worker0').run(program.askLater, 'main', 100))
    await new Promise((resolve) => setTimeout(resolve, 0))
    program.block(2000)
    expect((await asked).code).toBe('RPC_TIMEOUT')
    expect(await cluster.on('worker0').run(program.ask, 'main')).toBe('main')
  })
})

describe('CLU-101 while a test fakes its timers', () => {
  let restore = (): void => {}
  afterEach(() => {
    restore()
  })

  test('a cluster starts, is called, keeps its deadlines, and closes', async () => {
    restore = fakeTimers()
    const cluster = await launch(url, { workers: 2 })
    expect(await cluster.call('worker1', program.who)).toBe('worker1')
    expect(await cluster.on('worker0').run(program.who)).toBe('worker0')
    expect(await rejection(cluster.call('worker1', program.never, [], { timeoutMs: 20 }))).toMatchObject({ code: 'RPC_TIMEOUT' })
    await cluster.close()
  })
})
