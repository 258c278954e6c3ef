/** A worker whose role may not make contexts takes part only in those of others. The rules AUT are in rpc's SPEC.md. */
import { expect, test } from '@jest/globals'
import { mul } from '@postgrad/autograd'
import { call, expose, rolePolicy } from '@postgrad/rpc'
import { ones, type Tensor, tensor } from '@postgrad/tensor'
import { MessageType } from '@postgrad/wire/internal'
import { distAutograd } from '../api.js'
import { Cluster, withSeed } from './sim-cluster.suite.js'

const SEEDS = 8
const OBSERVER = 2
const triple = (x: Tensor): Tensor => mul(x, 3)
/** Through the observer. */
const via = (x: Tensor): Promise<Tensor> => call(OBSERVER, triple, [x])
/** The observer calls a member in the middle of a member's pass. */
const back = (x: Tensor): Promise<Tensor> => call(0, triple, [x])
expose({ 'authority.triple': triple, 'authority.via': via, 'authority.back': back })

/** Worker 2 is an observer for the others. */
async function overSeeds(main: (cluster: Cluster) => Promise<void>, from = 0, call: readonly string[] = []): Promise<void> {
  for (let seed = 1; seed <= SEEDS; seed++) {
    await withSeed(seed, async () => {
      const cluster = new Cluster(seed, 3, { authority: rolePolicy({ observer: { call } }) })
      for (const id of [0, 1]) cluster.workers[id]!.setPeerRole(OBSERVER, 'observer')
      await cluster.run(from, () => main(cluster))
      expect(await cluster.leftovers()).toEqual([])
    })
  }
}

/** The gradient of a leaf that goes through `fn` on worker `to`. */
function gradientOf(to: number, fn: (x: Tensor) => Tensor | Promise<Tensor>, during = () => {}): Promise<number[]> {
  return distAutograd.context(async (ctx) => {
    const x = tensor([1]).requiresGrad_()
    const y = await call(to, fn as (x: Tensor) => Promise<Tensor>, [x])
    during()
    await ctx.backward([y.sum()], { timeoutMs: 500 })
    return ctx.gradients().get(x)!.toArray() as number[]
  })
}

test('AUT-9 an observer does its part in the passes of members, whoever has called it', () =>
  overSeeds(async ({ workers }) => {
    expect(await gradientOf(OBSERVER, triple)).toEqual([3])
    expect(await gradientOf(1, via)).toEqual([3])
    for (const id of [0, 1]) expect(workers[id]!.letters.counts.invalid).toBe(0)
  }))

test('AUT-9 it may call, in the context of a member, who knows of it from that member', () =>
  overSeeds(async () => expect(await gradientOf(OBSERVER, back)).toEqual([3]), 0, ['authority.triple']))

test('AUT-9 it makes no context: what it would call in one is refused, and nothing of it is kept', () =>
  overSeeds(
    async (cluster) => {
      const code = await gradientOf(0, triple).then(
        () => 'done',
        (error: { code: string }) => error.code,
      )
      expect(code).toBe('NOT_PERMITTED')
      expect(cluster.parts(0).container.size).toBe(0)
      // Outside of a context it may.
      expect((await call(0, triple, [ones([1])])).toArray()).toEqual([3])
    },
    OBSERVER,
    ['authority.triple'],
  ))

test('AUT-9 what it says of a pass in which it has no part changes nothing', () =>
  overSeeds(async (cluster) => {
    const observer = cluster.workers[OBSERVER]!
    const during = () => {
      const [context] = cluster.parts(0).container.values()
      const ids = { context: context!.contextId, autogradId: 9n, pass: context!.contextId + 1n }
      for (const to of [0, 1]) {
        observer.post(to, MessageType.PASS_ABORT, [new Error('forged')], ids)
        observer.post(to, MessageType.PASS_ERROR, [new Error('forged')], ids)
        observer.post(to, MessageType.PASS_REPORT, [9, 0, [], 0, []], ids)
        observer.post(to, MessageType.PASS_COMMIT, [], ids)
        observer.post(to, MessageType.PROPAGATE_GRADIENTS, [[ones([1])], 0], { ...ids, lineage: [1, 0, 0] })
        observer.post(to, MessageType.CLEANUP_CONTEXT, [], ids)
      }
    }
    expect(await gradientOf(1, triple, during)).toEqual([3])
    await new Promise<void>((resolve) => observer.clock.setTimer(50, resolve))
    for (const id of [0, 1]) expect(cluster.workers[id]!.letters.counts.invalid).toBeGreaterThanOrEqual(5)
  }))
