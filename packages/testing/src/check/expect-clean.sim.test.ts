/** The leak check finds leaks. */
import { expect, test } from '@jest/globals'
import { distAutograd } from '@postgrad/dist-autograd'
import { call, currentWorker, remote } from '@postgrad/rpc'
import { myAdd, never } from '@postgrad/testing-cases'
import { simulate } from '../simulate/simulate.js'
import { expectClean, leaks } from './expect-clean.js'

test('a reference that was not disposed, on both of its ends', async () => {
  const kept: unknown[] = []
  const simulation = await simulate({ workers: 2 }, (sim) =>
    sim.on('worker0').run(async () => {
      const ref = remote('worker1', myAdd, [1 as never, 2 as never])
      kept.push(ref)
      await ref.toHere().catch(() => {})
    }),
  )
  expect(() => expectClean(simulation)).toThrow(
    /has not cleaned up(.|\n)*'worker0': userRRefs 1(.|\n)*'worker1': ownerRRefs 1(.|\n)*forks 1/,
  )
  expect(leaks(simulation.debugInfo, { except: ['worker1'], allow: ['userRRefs'] })).toEqual([])
  expect(kept).toHaveLength(1)
  // RREF-32
  expect(simulation.leaks).toMatchObject([{ owner: 'worker1', holder: 'worker0' }])
})

test('a call that nobody waits for, and the served function that never returns', async () => {
  const simulation = await simulate({ workers: 2, rpcTimeoutMs: 0 }, (sim) =>
    sim.on('worker0').run(async () => {
      call('worker1', never).catch(() => {})
    }),
  )
  expect(leaks(simulation.debugInfo).map((line) => line.replace(/ \(.*/, ''))).toEqual([
    "worker 'worker0': pendingCalls 1",
    "worker 'worker1': servingCalls 1",
  ])
})

test('a context that is still open', async () => {
  const simulation = await simulate({ workers: 2 }, (sim) =>
    sim.on('worker0').run(async () => {
      void distAutograd.context(() => new Promise<never>(() => {}))
      expect(currentWorker().info.name).toBe('worker0')
    }),
  )
  expect(leaks(simulation.debugInfo)).toEqual([expect.stringContaining("'worker0': autogradContexts 1")])
})
