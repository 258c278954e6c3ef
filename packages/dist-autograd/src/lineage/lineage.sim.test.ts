/** What messages say about the origin of tensors, and how much. */
import { describe, expect, test } from '@jest/globals'
import { add, mul } from '@postgrad/autograd'
import { call, expose, stream } from '@postgrad/rpc'
import { ones, type Tensor } from '@postgrad/tensor'
import { MessageType } from '@postgrad/wire/internal'
import { distAutograd } from '../api.js'
import type { DistAutogradContext } from '../context/dist-autograd-context.js'
import { leaf, pyAdd, pyNested, wholeLeaf } from '../engine/programs.suite.js'
import { Cluster, overSeeds } from '../engine/sim-cluster.suite.js'

const addOne = (x: Tensor): Tensor => add(x, 1)
/** Around all workers `left` times, adding one at each. */
async function ring(x: Tensor, left: number, here: number, size: number): Promise<Tensor> {
  const next = (here + 1) % size
  return left === 0 ? add(x, 1) : await call(next, ring, [add(x, 1), left - 1, next, size])
}
async function* endless(x: Tensor): AsyncGenerator<Tensor> {
  for (;;) yield mul(x, 2)
}
expose({ addOne, ring, endless })

/** The fields of the messages with a send function that leave any worker from now on. */
function watchFields(cluster: Cluster): (readonly number[])[] {
  const fields: (readonly number[])[] = []
  for (const worker of cluster.workers) {
    worker.intercept({
      outgoing: ({ autogradId, lineage }) => {
        if (autogradId !== null) fields.push(lineage!)
      },
    })
  }
  return fields
}

const longest = (fields: readonly (readonly number[])[]) => Math.max(...fields.map(({ length }) => length))

/** One program on a cluster of its own; whatever it leaves fails the test. */
async function once(size: number, main: (ctx: DistAutogradContext, cluster: Cluster) => Promise<void>): Promise<void> {
  const cluster = new Cluster(1, size, { rpcTimeoutMs: 0 })
  await cluster.run(0, () => distAutograd.context((ctx) => main(ctx, cluster)))
  expect(await cluster.leftovers()).toEqual([])
}

test('DA-32 a receive function has the depth of the send function at its other end', () =>
  overSeeds(5, 3, async (cluster) => {
    await distAutograd.context(async (ctx) => {
      const a = leaf([2])
      const res = await call(1, pyNested, [add(add(a, 1), 1), a, 1, 3, 0])
      const depths = [0, 1, 2].flatMap((worker) => {
        const { sendFunctions, recvFunctions } = cluster.contextOn(worker, ctx.id)
        return [[...sendFunctions.values()].map(({ depth }) => depth), [...recvFunctions.values()].map(({ depth }) => depth)]
      })
      // The caller's two additions and its leaf, there and on; the third worker's addition; back twice.
      expect(depths).toEqual([[3], [7], [4, 7], [3, 6], [6], [4]])
      expect(res.gradFn!).toHaveProperty('depth', 7)
    })
  }))

describe('DA-36 how the lineage grows', () => {
  /** Numbers a message must not depend on how many there were; `npm run soak -- --messages 10000 lineage/lineage` sends more. */
  const MESSAGES = Number(process.env.POSTGRAD_SOAK_MESSAGES ?? 3_000)

  test(`${MESSAGES} messages to and fro: five numbers each, one node each on both sides, one interval in the plan`, () =>
    once(2, async (ctx, cluster) => {
      const fields = watchFields(cluster)
      const x = wholeLeaf([[1]])
      let y: Tensor = x
      for (let n = 0; n < MESSAGES / 2; n++) y = await call(1, addOne, [y])
      expect([fields.length, longest(fields)]).toEqual([MESSAGES, 5])
      expect([0, 1].map((worker) => cluster.contextOn(worker, ctx.id).lineage.size)).toEqual([MESSAGES, MESSAGES])
      await ctx.backward([y.sum()])
      expect(ctx.gradients().get(x)!.toArray()).toEqual([[1]])
    }))

  test(`a loop that adds up ${MESSAGES} results here: five numbers a message`, () =>
    once(2, async (ctx, cluster) => {
      const fields = watchFields(cluster)
      const x = wholeLeaf([[1]])
      let sum = await call(1, addOne, [x])
      for (let n = 1; n < MESSAGES; n++) sum = add(sum, await call(1, addOne, [x]))
      expect([fields.length, longest(fields)]).toEqual([2 * MESSAGES, 5])
      await ctx.backward([sum.sum()])
      expect(ctx.gradients().get(x)!.toArray()).toEqual([[MESSAGES]])
    }))

  test(`a loop that sends its sum on, ${MESSAGES} times: the union before and the new result, twelve numbers`, () =>
    once(2, async (ctx, cluster) => {
      const fields = watchFields(cluster)
      const x = wholeLeaf([[1]])
      let sum: Tensor = x
      for (let n = 0; n < MESSAGES; n++) sum = add(mul(sum, 0.5), await call(1, pyAdd, [sum, x]))
      expect([fields.length, longest(fields)]).toEqual([2 * MESSAGES, 12])
      // The messages, and the unions of the sums that were sent.
      expect([0, 1].map((worker) => cluster.contextOn(worker, ctx.id).lineage.size)).toEqual([3 * MESSAGES - 2, 3 * MESSAGES - 2])
    }))

  test('a fan-out to 31 workers, twice: a result is told to each worker once', () =>
    once(32, async (ctx, cluster) => {
      const x = wholeLeaf([[1]])
      const all = () => Array.from({ length: 31 }, (_, i) => i + 1)
      const first = watchFields(cluster)
      const sum = (await Promise.all(all().map((to) => call(to, addOne, [x])))).reduce((a, b) => add(a, b))
      expect([first.length, longest(first)]).toEqual([62, 5])
      const second = watchFields(cluster)
      const again = await Promise.all(all().map((to) => call(to, addOne, [sum])))
      // 5 for its own node; five unions of up to 8, and 30 results and 30 requests that they depend on and are not the receiver's.
      expect(second).toHaveLength(62)
      expect(longest(second)).toBeLessThan(5 + 5 * (3 + 2 * 8) + 30 * 5 + 30 * 3)
      await ctx.backward([again.reduce((a, b) => add(a, b)).sum()])
      expect(ctx.gradients().get(x)!.toArray()).toEqual([[31 * 31]])
    }))

  test('a ring of five workers, 400 times around: the nodes of the other four', () =>
    once(5, async (ctx, cluster) => {
      const fields = watchFields(cluster)
      const x = wholeLeaf([[1]])
      const y = await call(1, ring, [x, 2000, 1, 5])
      // The receiver knows its own node of the round before. Where the way turns, it lacks those of the last round out as well.
      expect(fields).toHaveLength(4002)
      expect(fields.filter(({ length }) => length > 5 + 3 * 5).map(({ length }) => length)).toEqual([25, 35])
      await ctx.backward([y.sum()])
      expect(ctx.gradients().get(x)!.toArray()).toEqual([[1]])
    }))
})

describe('DA-35 what a message tells is heard whatever becomes of it', () => {
  test('a reply that nobody waits for any more, items of a stream that nobody takes', () =>
    overSeeds(20, 2, async (cluster) => {
      await distAutograd.context(async (ctx) => {
        const x = wholeLeaf([[1, 2]])
        const y = await call(1, addOne, [x])
        const dropped = call(1, pyAdd, [y, x])
        dropped.cancel()
        await dropped.catch(() => {})
        const items = stream('worker1', endless, [y], { window: 4 })
        const item = (await items.next()).value as Tensor
        await items.return?.(undefined)
        // Nodes sent with those are not sent again.
        const z = await call(1, pyAdd, [add(item, y), y])
        await ctx.backward([z.sum()])
        expect(ctx.gradients().get(x)!.toArray()).toEqual([[4, 4]])
        const [mine, theirs] = [0, 1].map((worker) => cluster.contextOn(worker, ctx.id).lineage)
        for (const [knows, of] of [
          [mine, theirs],
          [theirs, mine],
        ] as const) {
          for (const [number, send] of of!.sends.entries()) {
            if (send !== null) expect({ number, told: knows!.find(of!.self, 2 * number)?.deps ?? null }).not.toEqual({ number, told: null })
          }
        }
      })
    }))

  test('a message whose bytes cannot be made has told nothing: the next one does', () =>
    overSeeds(3, 3, async (cluster) => {
      await distAutograd.context(async (ctx) => {
        const x = wholeLeaf([[1, 2]])
        const y = await call(1, addOne, [x])
        const { encode } = cluster.workers[0]!.codec
        cluster.workers[0]!.codec.encode = (message, ...rest) => {
          if (message.type !== MessageType.CALL) return encode.call(cluster.workers[0]!.codec, message, ...rest)
          cluster.workers[0]!.codec.encode = encode
          throw new RangeError('on purpose')
        }
        await expect(call(2, addOne, [y])).rejects.toThrow('on purpose')
        const z = await call(2, addOne, [y])
        const { lineage } = cluster.contextOn(2, ctx.id)
        expect(lineage.find(1, 0)!.deps).toHaveLength(1)
        await ctx.backward([z.sum()])
        expect(ctx.gradients().get(x)!.toArray()).toEqual([[1, 1]])
      })
    }))

  test('nor of what is the sender’s own behind it: the receiver may be the root of a pass', () =>
    overSeeds(3, 4, async (cluster) => {
      await distAutograd.context(async (ctx) => {
        const x = wholeLeaf([[1, 2]])
        // Two messages of this worker, and a union of the answers to them.
        const y = add(await call(1, addOne, [x]), await call(3, addOne, [x]))
        const refused = cluster.workers[0]!.interceptCalls({
          outgoing: () => {
            throw new RangeError('on purpose')
          },
        })
        await expect(call(2, addOne, [y]).wait()).rejects.toThrow('on purpose')
        refused()
        await call(2, backwardOver, [y])
        expect(ctx.gradients().get(x)!.toArray()).toEqual([[4, 4]])
      })
    }))
  const backwardOver = async (y: Tensor): Promise<void> => {
    await distAutograd.currentContext()!.backward([mul(y, 2).sum()])
  }
  expose({ backwardOver })

  test('a call that its callee had no room for', async () => {
    const cluster = new Cluster(3, 3)
    await cluster.run(0, () =>
      distAutograd.context(async (ctx) => {
        const x = wholeLeaf([[1, 2]])
        const y = await call(2, addOne, [x])
        // Worker 1 takes no more calls from now on; a refused call has y's node.
        const worker = cluster.workers[1]!
        worker.isDraining = true
        await expect(call(1, addOne, [y])).rejects.toMatchObject({ code: 'WORKER_DRAINING' })
        worker.isDraining = false
        const z = await call(1, addOne, [y])
        expect(cluster.contextOn(1, ctx.id).lineage.find(2, 0)!.deps).toHaveLength(1)
        await ctx.backward([z.sum()])
        expect(ctx.gradients().get(x)!.toArray()).toEqual([[1, 1]])
      }),
    )
    expect(await cluster.leftovers()).toEqual([])
  })
})

test('DA-41 a call whose lineage no worker writes fails, and the callee goes on', () =>
  overSeeds(3, 2, async (cluster) => {
    await distAutograd.context(async (ctx) => {
      const x = wholeLeaf([[1, 2]])
      let lie = true
      cluster.workers[0]!.intercept({
        outgoing: (message) => {
          if (lie && message.autogradId !== null) message.lineage = [1, 0, 1, 1, 77]
        },
      })
      await expect(call(1, addOne, [x])).rejects.toMatchObject({ code: 'LINEAGE_MALFORMED' })
      lie = false
      const y = await call(1, addOne, [x])
      await ctx.backward([y.sum()])
      expect(ctx.gradients().get(x)!.toArray()).toEqual([[1, 1]])
      expect(await call(1, addOne, [ones([1])])).toBeDefined()
    })
  }))

test('DA-71 a worker that joins behind 30,000 messages is told of all of them, and a pass goes back through them', () =>
  overSeeds(1, 3, async (cluster) => {
    const ahead = new Map<string, number>()
    for (const worker of cluster.workers) {
      const { post } = worker
      worker.post = (to, type, body, envelope) => {
        const way = `${worker.info.id}→${to}`
        if (type === MessageType.LINEAGE) ahead.set(way, (ahead.get(way) ?? 0) + 1)
        post.call(worker, to, type, body, envelope)
      }
    }
    await distAutograd.context(async (ctx) => {
      const x = wholeLeaf([[1]])
      let y: Tensor = x
      for (let n = 0; n < 15_000; n++) y = await call(1, addOne, [y])
      y = await call(2, addOne, [y])
      await ctx.backward([y.sum()])
      expect(ctx.gradients().get(x)!.toArray()).toEqual([[1]])
    })
    expect([...ahead]).toEqual([['0→2', 2]])
  }))

test('DA-41 an item of a stream whose lineage no worker writes ends the stream at both ends', () =>
  overSeeds(3, 2, async (cluster) => {
    await distAutograd.context(async () => {
      cluster.workers[1]!.intercept({
        outgoing: (message) => {
          if (message.type === MessageType.STREAM_ITEM) message.lineage = [1, 0, 1, 0, 77]
        },
      })
      const items = stream(1, endless, [wholeLeaf([[1]])], { window: 4 })
      await expect(items.next()).rejects.toMatchObject({ code: 'LINEAGE_MALFORMED' })
      expect(await items.next()).toEqual({ done: true, value: undefined })
    })
  }))

test('DA-41 gradients for a message that nobody sent, or with a lineage that no worker writes, fail the pass, and the next one is right', () =>
  overSeeds(5, 3, async (cluster) => {
    await distAutograd.context(async (ctx) => {
      const x = wholeLeaf([[1, 2]])
      const y = await call(1, pyNested, [x, x, 1, 3, 0])
      const worker = cluster.workers[1]!
      const { post } = worker
      for (const [code, forged] of [
        ['UNEXPECTED_GRADIENTS', { autogradId: 12_345n }],
        ['LINEAGE_MALFORMED', { lineage: [1] }],
        ['LINEAGE_MALFORMED', { lineage: [1, 2 ** 50] }],
        ['LINEAGE_MALFORMED', { lineage: [2 ** 50, 0] }],
      ] as const) {
        worker.post = (to, type, body, envelope) => {
          const isForged = to === 0 && type === MessageType.PROPAGATE_GRADIENTS
          post.call(worker, to, type, body, isForged ? { ...envelope, ...forged } : envelope)
        }
        await expect(ctx.backward([y.sum()], { createGraph: true })).rejects.toMatchObject({ code })
        worker.post = post
      }
      await ctx.backward([y.sum()], { retainGraph: true })
      expect(ctx.gradients().get(x)!.toArray()).toEqual([[2, 2]])
    })
  }))

test('DA-80 gradients that come from another worker than the tensors went to fail the pass, and the next one is right', () =>
  overSeeds(5, 3, async (cluster) => {
    await distAutograd.context(async (ctx) => {
      const x = wholeLeaf([[1, 2]])
      const y = await call(1, pyNested, [x, x, 1, 3, 0])
      const [, worker, other] = cluster.workers
      const { post } = worker!
      worker!.post = (to, type, ...rest) =>
        post.call(type === MessageType.PROPAGATE_GRADIENTS && to === 0 ? other! : worker!, to, type, ...rest)
      await expect(ctx.backward([y.sum()], { retainGraph: true })).rejects.toMatchObject({
        code: 'UNEXPECTED_GRADIENTS',
        message: expect.stringContaining('its tensors went to another worker'),
      })
      worker!.post = post
      await ctx.backward([y.sum()], { retainGraph: true })
      expect(ctx.gradients().get(x)!.toArray()).toEqual([[2, 2]])
    })
  }))

test('DA-41 a plan that no worker writes fails the pass, and the next one is as good as before', () =>
  overSeeds(5, 3, async (cluster) => {
    await distAutograd.context(async (ctx) => {
      const x = wholeLeaf([[1, 2]])
      const y = await call(1, pyNested, [x, x, 1, 3, 0])
      for (const plan of [null, [], [0, 1, 1, 5, 9], [0, 9, 1, 0, 1], [7]]) {
        const worker = cluster.workers[0]!
        const { post } = worker
        worker.post = (to, type, body, envelope) => post.call(worker, to, type, body, { ...envelope, lineage: plan })
        await expect(ctx.backward([y.sum()], { retainGraph: true })).rejects.toMatchObject({
          code: plan?.[1] === 9 ? 'UNEXPECTED_GRADIENTS' : 'LINEAGE_MALFORMED',
        })
        worker.post = post
      }
      await ctx.backward([y.sum()], { retainGraph: true })
      expect(ctx.gradients().get(x)!.toArray()).toEqual([[2, 2]])
    })
  }))
