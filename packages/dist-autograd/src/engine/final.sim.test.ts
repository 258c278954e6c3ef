/** When the gradients of one worker are final, though the pass still runs elsewhere: an optimizer may then begin early. */
import { describe, expect, test } from '@jest/globals'
import { defineFunction, mul } from '@postgrad/autograd'
import { call, currentWorker, expose, workerLocal } from '@postgrad/rpc'
import { ones, type Tensor, tensor } from '@postgrad/tensor'
import { distAutograd } from '../api.js'
import { overSeeds } from './sim-cluster.suite.js'

const weight = workerLocal(() => tensor([currentWorker().info.id + 1, 1], { requiresGrad: true }))
const timesWeight = (x: Tensor): Tensor => mul(x, weight())
const failsBackward = defineFunction({
  name: 'FailsBackward',
  forward: (_ctx: unknown, x: Tensor) => mul(x, 1),
  backward: () => {
    throw new TypeError('a backward that fails on purpose')
  },
}) as unknown as (x: Tensor) => Tensor
expose({ 'final.timesWeight': timesWeight, 'final.failsBackward': failsBackward })

describe('DA-60 final gradients', () => {
  test('DA-60 each worker of a chain is told in its turn, once per pass, with its gradients in place and the pass still running', () =>
    overSeeds(8, 3, async (cluster) => {
      const told: string[] = []
      await distAutograd.context(async (ctx) => {
        const x = ones([2], { requiresGrad: true })
        const z = await call(2, timesWeight, [await call(1, timesWeight, [x])])
        let isOver = false
        for (const id of [0, 1, 2]) {
          cluster.contextOn(id, ctx.id).onFinal((pass) => {
            told.push(`${id}: ${[...pass.gradients.values()].map((grad) => String(grad.toArray())).join(' ')}${isOver ? ' late' : ''}`)
          })
        }
        await ctx.backward([z.sum()], { retainGraph: true }).then(() => {
          isOver = true
        })
        // Worker 0 is last, and notified only if the others' reports are still on their way.
        expect(told.filter((line) => !line.startsWith('0: 6,1'))).toEqual(['2: 2,1', '1: 3,1'])
        told.length = 0
        isOver = false
        await ctx.backward([z.sum()])
        expect(told.filter((line) => !line.startsWith('0: 6,1'))).toEqual(['2: 2,1', '1: 3,1'])
        expect(told.join()).not.toContain('late')
      })
    }))

  test('DA-60 who asks late is told at once; who has ended it, and who asked in a released context, never', () =>
    overSeeds(8, 3, async (cluster) => {
      const told: string[] = []
      await distAutograd.context(async (ctx) => {
        const x = ones([2], { requiresGrad: true })
        const z = await call(2, timesWeight, [x])
        const there = cluster.contextOn(2, ctx.id)
        there.onFinal(() => told.push('ended'))()
        await ctx.backward([z.sum()])
        there.onFinal(() => told.push('late'))
      })
      expect(told).toEqual(['late'])
    }))

  test('DA-60 a pass that fails on a worker is never final there', () =>
    overSeeds(8, 3, async (cluster) => {
      const told: number[] = []
      await distAutograd.context(async (ctx) => {
        const x = ones([2], { requiresGrad: true })
        const z = await call(2, timesWeight, [await call(1, failsBackward, [x])])
        for (const id of [0, 1, 2]) cluster.contextOn(id, ctx.id).onFinal(() => told.push(id))
        await expect(ctx.backward([z.sum()])).rejects.toThrow('on purpose')
      })
      expect(told).toEqual([2])
    }))
})
