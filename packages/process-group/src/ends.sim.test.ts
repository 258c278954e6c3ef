/** How collectives end when they cannot succeed: deaths at every point, mismatches, deadlines, cancellation, abort, the end of a group; and that groups can be made again. */
import { describe, expect, test } from '@jest/globals'
import type { PostgradError } from '@postgrad/base'
import { call, expose } from '@postgrad/rpc'
import { ones, tensor, zeros } from '@postgrad/tensor'
import { diesAtPoints, NEVER, PROGRAMS, three } from './deaths.suite.js'
import {
  allGather,
  allReduce,
  barrier,
  broadcast,
  destroyProcessGroup,
  initProcessGroup,
  monitoredBarrier,
  newGroup,
  type ProcessGroup,
  recv,
  send,
  type Work,
} from './index.js'
import { failure, Ranks, withSeed } from './sim-ranks.suite.js'

const after = (ranks: Ranks, rank: number, ms: number) =>
  new Promise<void>((resolve) => void ranks.workers[rank]!.clock.setTimer(ms, resolve))

/** This rank is not notified of its flushed messages before the returned function is called. */
function heldBack({ runtime: { messages } }: ProcessGroup): () => void {
  const waiting: ((isFlushed: boolean) => void)[] = []
  const post = messages.postIfReachable.bind(messages)
  messages.postIfReachable = (id, type, body, onFlushed) => {
    if (onFlushed != null) waiting.push(onFlushed)
    post(id, type, body)
  }
  return () => {
    for (const onFlushed of waiting.splice(0)) onFlushed(true)
  }
}

describe('what a rank has sent is not flushed', () => {
  const works = (rank: number) =>
    rank === 0 ? [broadcast(ones([1]), 0), send(ones([1]), 1)] : [broadcast(zeros([1]), 0), recv(zeros([1]), 0)]

  test('PG-17, PG-32: works end when it has, each once', async () => {
    const ranks = new Ranks(1, 2)
    await ranks.inGroup(async (rank, group) => {
      const leave = rank === 0 ? heldBack(group) : () => {}
      const under = works(rank)
      await after(ranks, rank, 100)
      expect(under.map((work) => work.isCompleted())).toEqual([rank === 1, rank === 1])
      leave()
      await Promise.all(under)
    }, NEVER)
    expect(await ranks.leftovers()).toEqual([])
  })

  test.each([
    ['a deadline', 'COLLECTIVE_TIMEOUT', () => {}],
    ['an abort', 'GROUP_BROKEN', (group: ProcessGroup) => group.abort()],
    ['the end of the group', 'PROCESS_GROUP_DESTROYED', () => destroyProcessGroup()],
  ] as const)('PG-23, PG-26, PG-32: %s ends them all the same, and then it makes no difference', async (_, code, end) => {
    const ranks = new Ranks(1, 2)
    await ranks.inGroup(async (rank, group) => {
      if (rank === 1) return after(ranks, 1, 200)
      const leave = heldBack(group)
      const options = { timeoutMs: code === 'COLLECTIVE_TIMEOUT' ? 40 : 0 }
      const under = [send(ones([1]), 1, options), broadcast(ones([1]), 0, options)]
      const ends = under.map(failure)
      await after(ranks, 0, 10)
      end(group)
      const errors = await Promise.all(ends)
      for (const error of errors) expect(error.code).toBe(code)
      if (code === 'COLLECTIVE_TIMEOUT') {
        expect(errors[0]!.message).toContain('send(rank 1, tag 0), which nobody has read')
        expect(errors[1]!.message).toContain('rank 1 (worker1) did not read what was sent')
      }
      leave()
      expect(group.pending).toBe(0)
    }, NEVER)
  })
})

describe('a rank dies', () => {
  test.each(PROGRAMS)(
    'PG-24, PG-25: in %s, at every seventh point: each of the others ends, well or with the death, and nothing begins any more',
    async (_name, program) => {
      expect(await diesAtPoints(program, { seed: 1, stride: 7 })).toBeGreaterThan(3)
    },
  )

  test('PG-24: the error has the rank, the worker and its death', async () => {
    const ranks = new Ranks(3, 3)
    const run = async (rank: number): Promise<PostgradError> => {
      await initProcessGroup(NEVER)
      await barrier()
      if (rank < 2) return failure(barrier())
      ranks.world.crash('worker2')
      return new Promise(() => {})
    }
    const runs = ranks.workers.map((worker, rank) => worker.run(() => run(rank)))
    const [first] = await ranks.world.run(Promise.all(runs.slice(0, 2)))
    expect(first).toMatchObject({ code: 'GROUP_BROKEN', values: { group: 'default', worker: 'worker2' } })
    expect(first!.message).toBe(
      "barrier: process group 'default' is broken: rank 2 (worker2) has ended. destroyProcessGroup(), then initProcessGroup({ ranks }) with the workers that live.",
    )
    expect((first!.cause as PostgradError).code).toBe('WORKER_DIED')
  })

  test('PG-27: the others make the group again without it, and then with a new worker; nothing of the old one reaches the new', async () => {
    for (let seed = 1; seed <= 10; seed++) {
      await withSeed(seed, async () => {
        const ranks = new Ranks(seed, 4)
        const x = () => tensor([1, 2])
        const survivor = async (rank: number): Promise<number[]> => {
          await initProcessGroup({ ranks: ['worker0', 'worker1', 'worker2'], ...NEVER })
          // Some learn of the death before this has ended.
          await allReduce(x()).catch(() => {})
          if (rank === 2) return []
          if (rank === 0) ranks.world.crash('worker2')
          const error = await failure(allReduce(x()))
          expect(error.code).toBe('GROUP_BROKEN')
          destroyProcessGroup()
          await initProcessGroup({ ranks: ['worker0', 'worker1'], ...NEVER })
          return (await allReduce(x())).toArray() as number[]
        }
        const runs = ranks.workers.slice(0, 3).map((worker, rank) => worker.run(() => survivor(rank)))
        expect(await ranks.world.run(Promise.all(runs.slice(0, 2)))).toEqual([
          [2, 4],
          [2, 4],
        ])
        const again = async (): Promise<number[]> => {
          await initProcessGroup({ ranks: ['worker3', 'worker0', 'worker1'], name: 'again', ...NEVER })
          return (await allReduce(x())).toArray() as number[]
        }
        for (const rank of [0, 1]) ranks.workers[rank]!.run(() => destroyProcessGroup())
        const three = [0, 1, 3].map((at) => ranks.workers[at]!.run(again))
        expect(await ranks.world.run(Promise.all(three))).toEqual([
          [3, 6],
          [3, 6],
          [3, 6],
        ])
        expect(await ranks.leftovers({ except: [2], letters: null })).toEqual([])
      })
    }
  })
})

describe('ranks that do not call the same', () => {
  const cases: readonly (readonly [string, string, string, (rank: number) => Work<unknown>])[] = [
    ['shapes', 'allReduce(sum) float32 [2]', 'allReduce(sum) float32 [3]', (rank) => allReduce(ones([rank === 1 ? 3 : 2]))],
    [
      'dtypes',
      'allReduce(sum) float32 [2]',
      'allReduce(sum) int32 [2]',
      (rank) => allReduce(ones([2], { dtype: rank === 1 ? 'int32' : 'float32' })),
    ],
    [
      'reductions',
      'allReduce(sum) float32 [2]',
      'allReduce(max) float32 [2]',
      (rank) => allReduce(ones([2]), { op: rank === 1 ? 'max' : 'sum' }),
    ],
    ['order', 'allReduce(sum) float32 [1]', 'barrier', (rank) => (rank === 1 ? barrier() : allReduce(ones([1])))],
    [
      'operations',
      'allReduce(sum) float32 [1]',
      'allGather float32 [1]',
      (rank) => (rank === 1 ? allGather(three(), ones([1])) : allReduce(ones([1]))),
    ],
  ]

  test.each(cases)(
    'PG-21: %s: COLLECTIVE_MISMATCH on all ranks, which names both sides; the group is broken',
    async (_name, first, second, begin) => {
      for (let seed = 1; seed <= 10; seed++) {
        const ranks = new Ranks(seed, 3)
        const got = await ranks.inGroup(async (rank) => [await failure(begin(rank)), await failure(barrier())], NEVER)
        for (const [error, next] of got) {
          expect(error).toMatchObject({ code: 'COLLECTIVE_MISMATCH', values: { group: 'default', sequence: 0 } })
          expect(error!.message).toContain("debug: 'detail'")
          const calls = error!.values.calls as { rank: number; call: string }[]
          expect(calls.map(({ call: text }) => text).sort()).toEqual([first, second].sort())
          expect(calls.find(({ call: text }) => text === second)?.rank).toBe(1)
          expect(next).toMatchObject({ code: 'GROUP_BROKEN', cause: { code: 'COLLECTIVE_MISMATCH' } })
        }
        expect(await ranks.leftovers()).toEqual([])
      }
    },
  )

  test('PG-21: two roots that wait for nobody learn of it with their next', async () => {
    const ranks = new Ranks(1, 2)
    const got = await ranks.inGroup(async (rank) => {
      const [first, next] = await Promise.allSettled([broadcast(ones([1]), rank), allReduce(ones([1]))])
      expect(next.status).toBe('rejected')
      return (first.status === 'rejected' ? first.reason : (next as PromiseRejectedResult).reason) as PostgradError
    }, NEVER)
    for (const error of got) {
      const codes = [error.code, (error.cause as PostgradError | undefined)?.code]
      expect(codes).toContain('COLLECTIVE_MISMATCH')
    }
    expect(await ranks.leftovers()).toEqual([])
  })

  test("PG-22: with debug 'detail' all see it before anything begins, and the group goes on", async () => {
    for (let seed = 1; seed <= 10; seed++) {
      const ranks = new Ranks(seed, 3)
      const got = await ranks.inGroup(
        async (rank) => {
          const x = tensor(rank === 2 ? [1, 2, 3] : [1, 2])
          const error = await failure(allReduce(x))
          const untouched = x.toArray()
          const y = ones([1])
          const root = await failure(broadcast(ones([1]), rank === 0 ? 0 : 1))
          await allReduce(y)
          return { error, untouched, root, y: y.toArray() }
        },
        { ...NEVER, debug: 'detail' },
      )
      for (const [rank, { error, untouched, root, y }] of got.entries()) {
        expect(error).toMatchObject({ code: 'COLLECTIVE_MISMATCH', values: { sequence: 0 } })
        expect(error.message).toContain(
          'rank 1 (worker1) calls allReduce(sum) float32 [2], rank 2 (worker2) calls allReduce(sum) float32 [3]',
        )
        // debug is on already.
        expect(error.message).not.toContain('debug')
        expect(root).toMatchObject({ code: 'COLLECTIVE_MISMATCH', values: { sequence: 1 } })
        expect(untouched).toEqual(rank === 2 ? [1, 2, 3] : [1, 2])
        expect(y).toEqual([3])
      }
      expect(await ranks.leftovers()).toEqual([])
    }
  })

  test('PG-16: behind a collective that hangs it names who has not come to that', async () => {
    const ranks = new Ranks(1, 4)
    const got = await ranks.inGroup(
      async (rank) => {
        if (rank === 2) return after(ranks, rank, 100).then(() => null)
        const hung = failure(allReduce(ones([1])))
        const error = await failure(monitoredBarrier({ timeoutMs: rank === 0 ? 40 : 0 }))
        await hung
        return error
      },
      { timeoutMs: 200 },
    )
    expect(got[0]).toMatchObject({ code: 'COLLECTIVE_TIMEOUT', values: { missing: [2] } })
    for (const rank of [1, 3]) expect(got[rank]).toMatchObject({ code: 'GROUP_BROKEN', cause: { code: 'COLLECTIVE_TIMEOUT' } })
    expect(await ranks.leftovers()).toEqual([])
  })
})

describe('deadlines and cancellation', () => {
  test('PG-23, PG-25: COLLECTIVE_TIMEOUT names who has not come; who waits elsewhere and who comes late get GROUP_BROKEN', async () => {
    const ranks = new Ranks(1, 3)
    const got = await ranks.inGroup(async (rank) => {
      if (rank === 2) {
        await after(ranks, 2, 200)
        return failure(allReduce(ones([1])))
      }
      return failure(allReduce(ones([1]), { timeoutMs: rank === 0 ? 50 : 0 }))
    })
    expect(got[0]).toMatchObject({
      code: 'COLLECTIVE_TIMEOUT',
      values: {
        group: 'default',
        sequence: 0,
        missing: [2],
        missingWorkers: ['worker2'],
        timeoutMs: 50,
        call: 'allReduce(sum) float32 [1]',
      },
    })
    for (const rank of [1, 2]) {
      expect(got[rank]).toMatchObject({ code: 'GROUP_BROKEN', cause: { code: 'COLLECTIVE_TIMEOUT', values: { missing: [2] } } })
      // The message alone has the reason.
      expect(got[rank]!.message).toMatch(
        /has given up .*number 0, because of COLLECTIVE_TIMEOUT \(allReduce: .* rank 2 \(worker2\) did not come/,
      )
    }
    expect(await ranks.leftovers()).toEqual([])
  })

  test("PG-22: with debug 'info' it says what was called before", async () => {
    const ranks = new Ranks(1, 2)
    const got = await ranks.inGroup(
      async (rank) => {
        await barrier()
        await broadcast(ones([1]), 0)
        return rank === 0 ? failure(allReduce(ones([1]), { timeoutMs: 20 })) : null
      },
      { debug: 'info' },
    )
    expect(got[0]).toMatchObject({ code: 'COLLECTIVE_TIMEOUT', values: { recent: ['0: barrier', '1: broadcast(src 0) float32 [1]'] } })
  })

  test('PG-23: a signal, cancel(), and the end of the call that it is part of; before it begins nothing is counted', async () => {
    const ways: readonly ((rank: number) => Promise<PostgradError>)[] = [
      async () => {
        const controller = new AbortController()
        const work = allReduce(ones([1]), { signal: controller.signal })
        controller.abort('enough')
        return failure(work)
      },
      async () => {
        const work = allReduce(ones([1]))
        expect(work.cancel('enough')).toBe(true)
        expect([work.isCompleted(), work.isSuccess(), (work.exception() as PostgradError).code]).toEqual([true, false, 'CALL_CANCELLED'])
        return failure(work)
      },
    ]
    for (const way of ways) {
      const ranks = new Ranks(1, 3)
      const got = await ranks.inGroup((rank) => (rank === 1 ? way(rank) : failure(allReduce(ones([1])))), NEVER)
      expect(got.map(({ code }) => code)).toEqual(['GROUP_BROKEN', 'CALL_CANCELLED', 'GROUP_BROKEN'])
      expect(got[0]!.cause).toMatchObject({ code: 'CALL_CANCELLED' })
      expect(await ranks.leftovers()).toEqual([])
    }
    const ranks = new Ranks(1, 2)
    await ranks.inGroup(async (rank) => {
      if (rank === 0) expect(await failure(allReduce(ones([1]), { signal: AbortSignal.abort() }))).toMatchObject({ code: 'CALL_CANCELLED' })
      await allReduce(ones([1]))
    })
  })

  test('PG-23: within a call its deadline counts too', async () => {
    const waiting = async (): Promise<void> => {
      await allReduce(ones([1]))
    }
    expose({ 'pg.waiting': waiting })
    const ranks = new Ranks(1, 2)
    const got = await ranks.inGroup(async (rank) => {
      await barrier()
      return rank === 0 ? failure(call('worker1', waiting, [], { timeoutMs: 30 })) : null
    }, NEVER)
    expect(got[0]).toMatchObject({ code: 'RPC_TIMEOUT' })
    await ranks.world.drain()
    expect(await ranks.workers[1]!.run(() => failure(barrier()))).toMatchObject({ code: 'GROUP_BROKEN' })
    expect(await ranks.leftovers()).toEqual([])
  })

  test('PG-23: a recv that has waited too long, or is cancelled, breaks nothing', async () => {
    const ranks = new Ranks(1, 2)
    await ranks.inGroup(async (rank) => {
      if (rank === 0) {
        expect(await failure(recv(zeros([1]), 1, { timeoutMs: 20 }))).toMatchObject({
          code: 'COLLECTIVE_TIMEOUT',
          message: expect.stringContaining(
            "recv(rank 1, tag 0) of group 'default' timed out after 20 ms: rank 1 (worker1) sent nothing with this tag",
          ),
          values: { missing: [1], tag: 0 },
        })
        const work = recv(zeros([1]))
        work.cancel()
        expect(await failure(work)).toMatchObject({ code: 'CALL_CANCELLED' })
      }
      await barrier()
    })
    expect(await ranks.leftovers()).toEqual([])
  })

  test('PG-16: monitoredBarrier names the first who is missing, or all', async () => {
    for (const [waitAllRanks, missing] of [
      [false, [1]],
      [true, [1, 3]],
    ] as const) {
      const ranks = new Ranks(1, 4)
      const got = await ranks.inGroup(async (rank) => {
        if (rank % 2 === 0) return failure(monitoredBarrier({ timeoutMs: rank === 0 ? 40 : 0, waitAllRanks }))
        await after(ranks, rank, 100)
        return failure(monitoredBarrier())
      })
      expect(got[0]).toMatchObject({ code: 'COLLECTIVE_TIMEOUT', values: { missing } })
      expect(got[0]!.message).toContain('rank 1 (worker1)')
      expect(got[0]!.message).toContain('failed to pass monitoredBarrier in 40 ms')
      for (const rank of [1, 2, 3]) expect(got[rank]).toMatchObject({ code: 'GROUP_BROKEN', cause: { code: 'COLLECTIVE_TIMEOUT' } })
      expect(await ranks.leftovers()).toEqual([])
    }
  })
})

test('PG-3, PG-23: newGroup that not all ranks call says that all must', async () => {
  const ranks = new Ranks(1, 2)
  const got = await ranks.inGroup(async (rank) => (rank === 0 ? failure(newGroup([0], { timeoutMs: 20 })) : null), NEVER)
  expect(got[0]).toMatchObject({ code: 'COLLECTIVE_TIMEOUT', op: 'newGroup', values: { missing: [1] } })
  expect(got[0]!.message).toContain('All ranks of the default group must call it, also ranks that will not be members')
  expect(await ranks.leftovers()).toEqual([])
})

describe('abort and destroy', () => {
  test('PG-26: abort frees all ranks, with its reason as the cause', async () => {
    const ranks = new Ranks(1, 3)
    const got = await ranks.inGroup(async (rank, group) => {
      const works = [allReduce(ones([1])), recv(zeros([1]), (rank + 1) % 3)]
      if (rank !== 1) return Promise.all(works.map(failure))
      group.abort(new RangeError('out of luck'))
      return [...(await Promise.all(works.map(failure))), group.error!]
    }, NEVER)
    for (const errors of got)
      for (const error of errors)
        expect({ code: error.code, cause: String(error.cause), message: error.message }).toEqual({
          code: 'GROUP_BROKEN',
          cause: 'RangeError: out of luck',
          message: expect.stringContaining('because of RangeError: out of luck'),
        })
    expect(await ranks.leftovers()).toEqual([])
  })

  test('PG-4, PG-28: what a rank has sent before it destroys the group stays good; what needs it afterwards ends', async () => {
    for (let seed = 1; seed <= 10; seed++) {
      const ranks = new Ranks(seed, 3)
      const got = await ranks.inGroup(async (rank) => {
        const x = tensor([rank + 1])
        await allReduce(x)
        if (rank === 0) {
          destroyProcessGroup()
          return x.toArray()
        }
        const y = tensor([rank])
        const error = await failure(allReduce(tensor([1])))
        expect(error).toMatchObject({ code: 'GROUP_BROKEN' })
        expect(error.message).toMatch(/rank 0 \(worker0\) has destroyed it|has given up/)
        return y === null ? null : x.toArray()
      }, NEVER)
      expect(got).toEqual([[6], [6], [6]])
      expect(await ranks.leftovers()).toEqual([])
    }
  })

  test('PG-4: what is under way where it is destroyed fails there', async () => {
    const ranks = new Ranks(1, 2)
    await ranks.inGroup(async (rank, group) => {
      if (rank === 1) {
        await after(ranks, 1, 50)
        destroyProcessGroup()
        return
      }
      const works = [allReduce(ones([1])), recv(zeros([1]))]
      destroyProcessGroup()
      for (const work of works) expect(await failure(work)).toMatchObject({ code: 'PROCESS_GROUP_DESTROYED' })
      expect(await failure(allReduce(ones([1]), { group }))).toMatchObject({ code: 'PROCESS_GROUP_DESTROYED' })
      expect(await failure(allReduce(ones([1])))).toMatchObject({ code: 'PROCESS_GROUP_NOT_INITIALIZED' })
    })
    expect(await ranks.leftovers()).toEqual([])
  })

  test('PG-29: a worker that closes ends what it waits for', async () => {
    const ranks = new Ranks(1, 2)
    const got = await ranks.inGroup(async (rank) => {
      if (rank === 1) return failure(recv(zeros([1]), 0))
      const work = recv(zeros([1]), 1)
      await after(ranks, 0, 1)
      await ranks.workers[0]!.close()
      return failure(work)
    }, NEVER)
    expect(got.map(({ code }) => code)).toEqual(['RPC_SHUT_DOWN', 'GROUP_BROKEN'])
  })
})
