/** `send` and the room that it needs at its receiver: without room it waits, and each such wait ends. */
import { describe, expect, test } from '@jest/globals'
import { tensor, zeros } from '@postgrad/tensor'
import { MessageType } from '@postgrad/wire/internal'
import { barrier, destroyProcessGroup, type ProcessGroup, recv, send, type Work } from './index.js'
import { failure, Ranks, withSeed } from './sim-ranks.suite.js'

const NEVER = { timeoutMs: 0 }
/** On all ranks, before anything is sent. */
const narrow = async (group: ProcessGroup, tensorsMax: number, bytesMax = 1e9): Promise<void> => {
  group.direct.window = { tensorsMax, bytesMax }
  await barrier()
}
const states = (works: readonly Work<unknown>[]): boolean[] => works.map((work) => work.isCompleted())
const after = (ranks: Ranks, rank: number, ms: number) =>
  new Promise<void>((resolve) => void ranks.workers[rank]!.clock.setTimer(ms, resolve))

describe('room', () => {
  test('PG-17: as many leave at once as the window has; the rest leaves, in order, when the receiver takes', async () => {
    for (let seed = 1; seed <= 8; seed++) {
      await withSeed(seed, async () => {
        const ranks = new Ranks(seed, 2)
        const got = await ranks.inGroup(async (rank, group) => {
          await narrow(group, 4)
          if (rank === 0) {
            const works = Array.from({ length: 10 }, (_, n) => send(tensor([n]), 1, { tag: n % 2 }))
            const first = states(works)
            await after(ranks, 0, 50)
            const second = states(works)
            await Promise.all(works)
            return [first, second]
          }
          await after(ranks, 1, 100)
          const most = group.direct.arrived
          const values: unknown[] = []
          for (let n = 0; n < 10; n++) {
            const x = zeros([1])
            await recv(x, 0, { tag: n % 2 })
            values.push(...(x.toArray() as number[]))
          }
          return [most, values]
        }, NEVER)
        const four = Array.from({ length: 10 }, (_, n) => n < 4)
        expect(got).toEqual([
          [four, four],
          [4, [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]],
        ])
        expect(await ranks.leftovers()).toEqual([])
      })
    }
  })

  test('PG-17: bytes count too: the tensor that reaches the bound is the last that leaves; and each receiver has a window of its own', async () => {
    const ranks = new Ranks(1, 3)
    const got = await ranks.inGroup(async (rank, group) => {
      await narrow(group, 100, 32)
      if (rank > 0) {
        for (let n = 0; n < 3; n++) await recv(zeros([6]), 0)
        return null
      }
      const works = [1, 2].flatMap((to) => [0, 1, 2].map(() => send(zeros([6]), to)))
      const first = states(works)
      await Promise.all(works)
      return first
    }, NEVER)
    expect(got[0]).toEqual([true, true, false, true, true, false])
    expect(await ranks.leftovers()).toEqual([])
  })
})

describe('ends', () => {
  test('PG-17, PG-23: one that has waited too long, or is cancelled, leaves nothing and breaks nothing', async () => {
    const ranks = new Ranks(1, 2)
    await ranks.inGroup(async (rank, group) => {
      await narrow(group, 1)
      if (rank === 1) {
        await after(ranks, 1, 100)
        const x = zeros([1])
        await recv(x, 0)
        await recv(x, 0)
        expect(x.toArray()).toEqual([4])
        await barrier()
        return
      }
      await send(tensor([1]), 1)
      const error = await failure(send(tensor([2]), 1, { tag: 7, timeoutMs: 20 }))
      expect(error).toMatchObject({
        code: 'COLLECTIVE_TIMEOUT',
        op: 'send',
        values: { missing: [1], missingWorkers: ['worker1'], timeoutMs: 20 },
      })
      expect(error.message).toContain('send(rank 1, tag 7), which waits for room there')
      const work = send(tensor([3]), 1)
      expect(work.cancel('enough')).toBe(true)
      expect(await failure(work)).toMatchObject({ code: 'CALL_CANCELLED' })
      await send(tensor([4]), 1)
      await barrier()
    }, NEVER)
    expect(await ranks.leftovers()).toEqual([])
  })

  test('PG-4, PG-24, PG-26: a receiver that goes, and a group that breaks, end the waits', async () => {
    for (const end of ['destroy', 'abort'] as const) {
      const ranks = new Ranks(1, 2)
      const got = await ranks.inGroup(async (rank, group) => {
        await narrow(group, 1)
        if (rank === 0) {
          const works = [send(tensor([1]), 1), send(tensor([2]), 1)]
          await works[0]
          return failure(works[1]!)
        }
        await after(ranks, 1, 20)
        if (end === 'destroy') destroyProcessGroup()
        else group.abort()
        return null
      }, NEVER)
      expect(got[0]).toMatchObject({ code: 'GROUP_BROKEN', op: 'send' })
      expect(await ranks.leftovers()).toEqual([])
    }
  })
})

test('PG-28: more than there is room for, and more taken than was sent, are dead letters', async () => {
  const ranks = new Ranks(1, 2)
  await ranks.inGroup(async (rank, group) => {
    await narrow(group, 2)
    if (rank === 0) {
      for (let n = 0; n < 3; n++) ranks.workers[0]!.post(1, MessageType.COLLECTIVE, [group.id, 1, 0, 0, 'float32 [1]', [tensor([n])], null])
      ranks.workers[0]!.post(1, MessageType.COLLECTIVE, [group.id, 5, 1, 0, '', [], null])
    }
    await barrier()
    if (rank === 1) for (let n = 0; n < 2; n++) await recv(zeros([1]), 0)
  })
  await ranks.world.drain()
  expect(ranks.workers[1]!.letters.last().map(({ what }) => what)).toEqual([
    'COLLECTIVE: its sender had no room left for it',
    'COLLECTIVE: more was taken there than has left here',
  ])
})
