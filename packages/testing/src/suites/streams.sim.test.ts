/** Streams under a distributed context: gradients go back through each item, as through results. */
import { describe, expect, test } from '@jest/globals'
import { distAutograd } from '@postgrad/dist-autograd'
import { currentWorker, expose, stream } from '@postgrad/rpc'
import { type Tensor, tensor } from '@postgrad/tensor'
import { expectClean } from '../check/expect-clean.js'
import { inlined } from '../inlined/inlined.js'
import { simulate } from '../simulate/simulate.js'

/** x, 2x, 3x, … */
async function* multiples(x: Tensor, count: number) {
  for (let k = 1; k <= count; k++) yield x.mul(k)
}
expose({ multiples })

const gradientOfMultiples = () =>
  distAutograd.context(async (ctx) => {
    const x = tensor([0.1, 0.2, 0.3], { requiresGrad: true })
    let sum: Tensor | null = null
    for await (const item of stream('worker1', multiples, [x, 5], { window: 2 })) sum = sum === null ? item : sum.add(item)
    await ctx.backward([sum!.mul(sum!).sum()])
    return ctx.gradients().get(x)!.toArray() as number[]
  })

describe('a stream in a context', () => {
  test('STR-9: the gradient of an argument is the sum over all items, the same bits under any order and inlined', async () => {
    const oracle = await inlined({ workers: 2 }, (cluster) => cluster.on('worker0').run(gradientOfMultiples))
    for (const [i, gradient] of oracle.entries()) expect(gradient).toBeCloseTo(2 * 15 * 15 * [0.1, 0.2, 0.3][i]!, 4)
    for (let seed = 1; seed <= 10; seed++) {
      const simulation = await simulate({ workers: 2, seed }, (sim) => sim.on('worker0').run(gradientOfMultiples))
      expect({ seed, gradient: simulation.result }).toEqual({ seed, gradient: oracle })
      expectClean(simulation)
    }
  })

  test('STR-3, STR-4: inlined, a stream ends as elsewhere', async () => {
    await inlined({ workers: 2 }, (cluster) =>
      cluster.on('worker0').run(async () => {
        ended.length = 0
        for await (const item of stream('worker1', endless)) if (item === 3) break
        expect(ended).toEqual(['finally'])
        const items = stream('worker1', fails)
        expect(await items.next()).toEqual({ done: false, value: 1 })
        await expect(items.next()).rejects.toThrow('in the middle')
        expect(await items.next()).toEqual({ done: true, value: undefined })
      }),
    )
  })
})

describe('next() by hand', () => {
  /** What a `next` comes to that was asked for before `return`, and what `return` does. */
  const crossing = async (to: string, ms: number) => {
    const items = stream(to, failsLater, [ms])
    await items.next()
    const second = items.next()
    const ended = items.return('left')
    return { outcomes: await Promise.allSettled([second, ended]), after: await items.next() }
  }

  test('STR-3: a next() that waits when the stream is left rejects with the error with which the generator ends by itself, also inlined', async () => {
    const expected = {
      outcomes: [
        { status: 'rejected', reason: expect.objectContaining({ message: 'by itself' }) },
        { status: 'fulfilled', value: { done: true, value: 'left' } },
      ],
      after: { done: true, value: undefined },
    }
    for (const ms of [0, 5, 20]) {
      expect(await inlined({ workers: 2 }, (cluster) => cluster.on('worker0').run(() => crossing('worker1', ms)))).toEqual(expected)
      for (const to of ['worker0', 'worker1']) {
        const simulation = await simulate({ workers: 2, seed: ms }, (sim) => sim.on('worker0').run(() => crossing(to, ms)))
        expect({ ms, to, ...simulation.result }).toEqual({ ms, to, ...expected })
        expectClean(simulation)
      }
    }
  })
})

const sleep = (ms: number): Promise<void> => {
  const { clock } = currentWorker()
  return new Promise((resolve) => {
    clock.setTimer(ms, resolve)
  })
}
async function* failsLater(ms: number) {
  yield 1
  await sleep(ms)
  throw new RangeError('by itself')
}

const ended: string[] = []
async function* endless() {
  try {
    for (let i = 0; ; i++) yield i
  } finally {
    ended.push('finally')
  }
}
async function* fails() {
  yield 1
  throw new Error('in the middle')
}
expose({ endless, fails, failsLater })
