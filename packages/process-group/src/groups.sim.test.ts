/** Groups: how they are made, subgroups, handles, refused arguments, values and tensors from rank to rank. */
import { describe, expect, test } from '@jest/globals'
import { isPostgradError, type PostgradError } from '@postgrad/base'
import type { TraceEvent } from '@postgrad/base/internal'
import { call, expose, rolePolicy, rref } from '@postgrad/rpc'
import { traceWorker } from '@postgrad/rpc/internal'
import { ones, SparseTensor, type Tensor, tensor, zeros } from '@postgrad/tensor'
import { MessageType } from '@postgrad/wire/internal'
import * as pg from './index.js'
import { failure, Ranks, valuesOf } from './sim-ranks.suite.js'

const code = (error: unknown): string => (isPostgradError(error) ? error.code : String(error))

describe('the default group', () => {
  test('PG-1: ranks follow the ids, or the names that are given; a second one is refused', async () => {
    const ranks = new Ranks(1, 3)
    expect(await ranks.workers[0]!.run(async () => [pg.isInitialized(), code(await failure(pg.allReduce(ones([1]))))])).toEqual([
      false,
      'PROCESS_GROUP_NOT_INITIALIZED',
    ])
    const got = await ranks.inGroup(async (rank, group) => {
      const here = [pg.isInitialized(), pg.getRank(), pg.getWorldSize(), group.rank, group.size, group.name, group.ranks]
      expect(here).toEqual([true, rank, 3, rank, 3, 'default', [0, 1, 2]])
      expect(await failure(pg.initProcessGroup())).toMatchObject({ code: 'PROCESS_GROUP_EXISTS' })
      pg.destroyProcessGroup()
      await pg.initProcessGroup({ ranks: ['worker2', 'worker0', 'worker1'] })
      return pg.getRank()
    })
    expect(got).toEqual([1, 2, 0])
    expect(await ranks.leftovers()).toEqual([])
  })

  test('PG-1: two at once on one worker; who is missing; who says something else; who is no member', async () => {
    const ranks = new Ranks(1, 3)
    const outcomes = await ranks.all(async (rank) => {
      if (rank === 2) {
        await new Promise<void>((resolve) => void ranks.workers[2]!.clock.setTimer(500, resolve))
        return [await failure(pg.initProcessGroup({ ranks: ['worker0', 'worker1'] }))]
      }
      const first = failure(pg.initProcessGroup({ timeoutMs: 100 }))
      return [await failure(pg.initProcessGroup()), await first]
    })
    const [a, b, c] = valuesOf(outcomes)
    for (const each of [a!, b!]) {
      expect(each.map(code)).toEqual(['PROCESS_GROUP_EXISTS', 'GROUP_TIMEOUT'])
      expect(each[1]).toMatchObject({ op: 'initProcessGroup', values: { missing: ['worker2'], group: 'default' } })
      expect(each[1]!.message).toContain("the members of group 'default' have not met in 100 ms: 'worker2' did not come")
    }
    expect(c!.map(code)).toEqual(['INVALID_ARGUMENT'])
    const differ = new Ranks(1, 2)
    const ends = await differ.all((rank) => pg.initProcessGroup(rank === 0 ? {} : { debug: 'detail' }))
    expect(ends.map((end) => code((end as PromiseRejectedResult).reason))).toEqual(['COLLECTIVE_MISMATCH', 'COLLECTIVE_MISMATCH'])
    expect(await differ.leftovers()).toEqual([])
  })

  test('PG-1: who comes after the time of the others is told to call it again, and meets those that do', async () => {
    const ranks = new Ranks(1, 2)
    const ends = await ranks.all(async (rank) => {
      if (rank === 1) await new Promise<void>((resolve) => void ranks.workers[1]!.clock.setTimer(500, resolve))
      const error = await failure(pg.initProcessGroup({ timeoutMs: 100 }))
      await pg.initProcessGroup()
      return error
    })
    const [first, late] = valuesOf(ends)
    expect(first!.message).toContain("'worker1' did not come. Every member must call initProcessGroup()")
    expect(late).toMatchObject({ code: 'GROUP_TIMEOUT', op: 'initProcessGroup', values: { missing: ['worker1'], late: true } })
    expect(late!.message).toContain("'worker1' did not come, this call came after that. Call initProcessGroup() again")
    expect(await ranks.leftovers()).toEqual([])
  })

  test('PG-1: who waits in a group of another name is named with it, and nothing that users read names what they cannot call', async () => {
    const ranks = new Ranks(1, 2)
    const ends = await ranks.all((rank) =>
      failure(pg.initProcessGroup({ name: rank === 0 ? 'one' : 'other', timeoutMs: rank === 0 ? 100 : 5000 })),
    )
    const [first, second] = valuesOf(ends)
    expect(first!.message).toContain(
      "'worker1' did not come, 'worker1' waits in initProcessGroup 'other'. Every member must call initProcessGroup()",
    )
    expect(second!.message).toContain("'worker0' did not come. Every member")
    for (const { cause } of [first!, second!]) {
      expect(cause).toMatchObject({ code: 'GROUP_TIMEOUT', op: 'initProcessGroup' })
      expect((cause as Error).message).not.toMatch(/meet\b/)
    }
    expect(await ranks.leftovers()).toEqual([])
  })

  test('PG-1: a worker that is closed while it waits for the others reads what it has called', async () => {
    const ranks = new Ranks(1, 2)
    for (const rank of [0, 1]) {
      const forming = ranks.run(rank, () => failure(pg.initProcessGroup()))
      await ranks.workers[rank]!.close()
      expect(await forming).toMatchObject({ code: 'RPC_SHUT_DOWN', op: 'initProcessGroup' })
    }
  })

  test('PG-1: where no worker is current, the error says where to call it', async () => {
    const error = await failure(pg.initProcessGroup())
    expect(error).toMatchObject({ code: 'RPC_NOT_INITIALIZED', op: 'initProcessGroup' })
    expect(error.message).toContain('Call it on every worker, as in await Promise.all(cluster.workers.map(')
  })

  test('PG-1: wrong options', async () => {
    const ranks = new Ranks(1, 1)
    const wrong: readonly [unknown, string][] = [
      [{ rank: 0 }, 'INVALID_ARGUMENT'],
      [{ name: '' }, 'INVALID_ARGUMENT'],
      [{ ranks: [] }, 'INVALID_ARGUMENT'],
      [{ ranks: ['worker0', 'worker0'] }, 'INVALID_ARGUMENT'],
      [{ ranks: ['nobody'] }, 'UNKNOWN_WORKER'],
      [{ timeoutMs: -1 }, 'TIMEOUT_INVALID'],
      [{ debug: 'DETAIL' }, 'INVALID_ARGUMENT'],
      ['gloo', 'INVALID_ARGUMENT'],
      [{ backend: 'gloo', rank: 0, worldSize: 2 }, 'INVALID_ARGUMENT'],
    ]
    await ranks.run(0, async () => {
      for (const [options, expected] of wrong)
        expect([options, code(await failure(pg.initProcessGroup(options as never)))]).toEqual([options, expected])
      expect((await failure(pg.initProcessGroup('gloo' as never))).message).toContain('There is one backend')
      expect(() => pg.destroyProcessGroup()).toThrow(expect.objectContaining({ code: 'PROCESS_GROUP_NOT_INITIALIZED' }))
      // A group of one.
      const group = await pg.initProcessGroup()
      const x = tensor([1, 2])
      await pg.allReduce(x, { op: 'avg' })
      await pg.barrier()
      expect([x.toArray(), group.size]).toEqual([[1, 2], 1])
    })
  })

  test('PG-2, PG-28: what comes of a group that was made before is dropped, and who sends to one that does not know it learns so', async () => {
    const ranks = new Ranks(1, 2)
    await ranks.inGroup(async (rank, group) => {
      await pg.barrier()
      const old = group.id
      pg.destroyProcessGroup()
      await pg.initProcessGroup()
      const other = 1 - rank
      ranks.workers[rank]!.post(other, MessageType.COLLECTIVE, [old, 0, 0, 0, 'allReduce(sum) float32 [1]', [ones([1])], null])
      const x = ones([1])
      await pg.allReduce(x)
      expect(x.toArray()).toEqual([2])
    })
    expect(await ranks.leftovers()).toEqual([])
    ranks.workers[0]!.post(1, MessageType.COLLECTIVE, [99n, 0, 0, 0, 'barrier', [], null])
    await ranks.world.drain()
    const last = ranks.workers.map(({ letters }) => letters.last().map(({ what }) => what))
    // The answer is about a group that the asker does not know either.
    expect(last).toEqual([['COLLECTIVE: no such group'], ['COLLECTIVE: no such group']])
  })

  test('PG-28: no member, a part twice, what nobody sends: dead letters, and the collective is not disturbed', async () => {
    const ranks = new Ranks(1, 3)
    const wrong: (readonly unknown[])[] = []
    const outcomes = await ranks.all(async (rank) => {
      if (rank === 2) return null
      const group = await pg.initProcessGroup({ ranks: ['worker0', 'worker1'] })
      await pg.barrier()
      const head = 'allReduce(sum) float32 [1]'
      const { id } = group
      wrong.push([id, 9, 1, 0, head, [], null], [id, 0, 1, 3, head, [ones([1])], null], [id, 0, 1, 3, head, [ones([1])], null])
      if (rank === 0) for (const body of wrong.slice(0, 3)) ranks.workers[0]!.post(1, MessageType.COLLECTIVE, body)
      ranks.workers[2]!.post(rank, MessageType.COLLECTIVE, [id, 0, 1, 0, head, [ones([1])], null])
      const x = ones([1])
      await pg.allReduce(x)
      return x.toArray()
    })
    expect(valuesOf(outcomes)).toEqual([[2], [2], null])
    await ranks.world.drain()
    const letters = ranks.workers.map(({ letters }) => letters.last().map(({ reason, what }) => `${reason} ${what}`))
    expect(letters[0]).toEqual(['invalid COLLECTIVE: its sender is not another member of the group'])
    expect(letters[1]!.sort()).toEqual([
      'invalid COLLECTIVE: a message of kind 9 does not exist',
      'invalid COLLECTIVE: it was sent before, or nobody waits for it',
      'invalid COLLECTIVE: its sender is not another member of the group',
    ])
  })

  test('PG-28: a message that cannot be read breaks the group of its sender', async () => {
    const ranks = new Ranks(1, 2)
    const outcomes = await ranks.inGroup(async (rank, { id }) => {
      // No step is negative.
      if (rank === 0) ranks.workers[0]!.post(1, MessageType.COLLECTIVE, [id, 0, 0, -1, 'barrier', [], null])
      return failure(pg.recv(zeros([1])))
    })
    expect(outcomes.map(code)).toEqual(['GROUP_BROKEN', 'GROUP_BROKEN'])
  })

  test("AUT-1: a role that may not meet others is told, and a named role without 'groups' sends nothing of a group", async () => {
    const ranks = new Ranks(1, 2, { authority: rolePolicy({ observer: {} }) })
    ranks.workers[0]!.setPeerRole(1, 'observer')
    ranks.workers[1]!.post(0, MessageType.COLLECTIVE, [99n, 0, 0, 0, 'barrier', [], null])
    await ranks.world.drain()
    expect(ranks.workers[0]!.letters.last().map(({ what }) => what)).toEqual(["COLLECTIVE: not permitted to the role 'observer'"])
  })
})

describe('subgroups', () => {
  test('PG-3: newGroup: members by their ranks, roots by those of the default group, and -1 elsewhere', async () => {
    const ranks = new Ranks(1, 4)
    await ranks.inGroup(async (rank) => {
      const group = await pg.newGroup([3, 1])
      const isMember = rank % 2 === 1
      expect([group.ranks, group.rank, pg.getRank(group), pg.getWorldSize(group)]).toEqual([
        [1, 3],
        isMember ? (rank - 1) / 2 : -1,
        isMember ? (rank - 1) / 2 : -1,
        isMember ? 2 : -1,
      ])
      expect([pg.getGlobalRank(group, 1), pg.getGroupRank(group, 3)]).toEqual([3, 1])
      expect(() => pg.getGroupRank(group, 0)).toThrow(expect.objectContaining({ code: 'INVALID_ARGUMENT' }))
      expect(() => pg.getGlobalRank(group, 2)).toThrow(expect.objectContaining({ code: 'INVALID_ARGUMENT' }))
      const x = tensor([rank])
      if (isMember) {
        await pg.broadcast(x, 3, { group })
        expect(x.toArray()).toEqual([3])
        expect(await failure(pg.broadcast(x, 0, { group }))).toMatchObject({ code: 'INVALID_ARGUMENT' })
        pg.destroyProcessGroup(group)
      } else expect(await failure(pg.broadcast(x, 3, { group }))).toMatchObject({ code: 'PROCESS_GROUP_NOT_MEMBER' })
      expect((await pg.newGroup()).size).toBe(4)
      await pg.barrier()
    })
    expect(await ranks.leftovers()).toEqual([])
  })

  test('PG-3: newSubgroups and newSubgroupsByEnumeration', async () => {
    const ranks = new Ranks(1, 4)
    const sums = await ranks.inGroup(async (rank) => {
      const { current, all } = await pg.newSubgroups(2)
      const x = tensor([rank])
      await pg.allReduce(x, { group: current! })
      expect(all.map((each) => each.ranks)).toEqual([
        [0, 1],
        [2, 3],
      ])
      const other = await pg.newSubgroupsByEnumeration([[2, 0], [3]])
      expect(other.current?.ranks ?? null).toEqual([[0, 2], null, [0, 2], [3]][rank])
      return x.toArray()
    })
    expect(sums).toEqual([[1], [1], [5], [5]])
    expect(await ranks.leftovers()).toEqual([])
  })

  test('PG-3, PG-20: what cannot be a subgroup, in words close to PyTorch', async () => {
    const ranks = new Ranks(1, 4)
    await ranks.inGroup(async () => {
      const wrong: readonly [() => Promise<unknown>, string][] = [
        [() => pg.newGroup([4]), 'newGroup: expected ranks of the default group, from 0 to 3, got 4'],
        [() => pg.newGroup([1, 1]), 'newGroup: expected each rank once, got 1, 1'],
        [() => pg.newGroup([]), 'newGroup: expected a non-empty array of ranks'],
        [() => pg.newSubgroups(5), 'newSubgroups: expected a size that does not exceed the world size, 4, got 5'],
        [() => pg.newSubgroups(3), 'newSubgroups: expected a size by which the world size, 4, is divisible, got 3'],
        [() => pg.newSubgroups(0), 'newSubgroups: expected an integer ≥ 1'],
        [
          () =>
            pg.newSubgroupsByEnumeration([
              [0, 1],
              [1, 2],
            ]),
          'newSubgroupsByEnumeration: expected each rank in one subgroup at most, got rank 1 in two',
        ],
        [() => pg.newSubgroupsByEnumeration([]), 'newSubgroupsByEnumeration: expected a non-empty array'],
      ]
      for (const [make, text] of wrong) {
        const error = await failure(make())
        expect(error.message).toContain(text)
        expect(error.code).toBe('INVALID_ARGUMENT')
      }
      // None of it was counted.
      await pg.barrier()
    })
  })

  test('PG-5: a handle is its worker’s own', async () => {
    const ranks = new Ranks(1, 2)
    const handles: pg.ProcessGroup[] = []
    await ranks.inGroup(async (rank, group) => {
      handles[rank] = group
      await pg.barrier()
      const error = await failure(pg.allReduce(ones([1]), { group: handles[1 - rank]! }))
      expect(error.message).toContain('expected a process group of this worker as { group }')
      expect(await failure(pg.allReduce(ones([1]), { group: {} as never }))).toMatchObject({ code: 'INVALID_ARGUMENT' })
    })
  })
})

test('PG-20: what users may not pass is told before anything begins, and is not counted', async () => {
  const ranks = new Ranks(1, 2)
  const x = () => ones([2])
  const wrong: readonly [() => PromiseLike<unknown>, string][] = [
    [() => pg.allReduce([1] as never), 'INVALID_ARGUMENT allReduce'],
    [() => pg.allReduce(x(), { op: 'mean' as never }), 'INVALID_ARGUMENT allReduce'],
    [() => pg.allReduce(x(), { opp: 'sum' } as never), 'INVALID_ARGUMENT allReduce'],
    [() => pg.allReduce(x(), { op: pg.ReduceOp.BOR }), 'DTYPE_MISMATCH allReduce'],
    [() => pg.allReduce(x(), { timeoutMs: Number.NaN }), 'TIMEOUT_INVALID allReduce'],
    [() => pg.allReduce(x(), { signal: 1 as never }), 'INVALID_ARGUMENT allReduce'],
    [() => pg.allReduce(closed()), 'TENSOR_CLOSED allReduce'],
    [() => pg.allReduce(x().expand([3, 2])), 'INPLACE_OVERLAP allReduce'],
    [() => pg.broadcast(x().expand([3, 2]), 1 - pg.getRank()), 'INPLACE_OVERLAP broadcast'],
    [() => pg.recv(x().expand([3, 2]), 1 - pg.getRank()), 'INPLACE_OVERLAP recv'],
    [() => twice((t) => pg.allReduceCoalesced([t, x(), t])), 'INPLACE_OVERLAP allReduceCoalesced'],
    [() => twice((t) => pg.allReduceCoalesced([t.narrow(0, 0, 1), t])), 'INPLACE_OVERLAP allReduceCoalesced'],
    [() => twice((t) => pg.allGather([t, t], x())), 'INPLACE_OVERLAP allGather'],
    [
      () =>
        twice((t) =>
          pg.allGatherCoalesced(
            [
              [x(), t],
              [t, x()],
            ],
            [x(), x()],
          ),
        ),
      'INPLACE_OVERLAP allGatherCoalesced',
    ],
    [() => twice((t) => pg.gather(x(), { dst: pg.getRank(), gatherList: [t, t] })), 'INPLACE_OVERLAP gather'],
    [() => twice((t) => pg.allToAll([t, t], [x(), x()])), 'INPLACE_OVERLAP allToAll'],
    [() => pg.allReduce(tensor([4], { dtype: 'int32' }), { op: pg.premulSum(0.5) }), 'DTYPE_MISMATCH allReduce'],
    [() => pg.allReduce(x(), { op: { kind: 'premulSum', factor: '2' as never } }), 'INVALID_ARGUMENT premulSum'],
    [() => pg.allReduceCoalesced([]), 'INVALID_ARGUMENT allReduceCoalesced'],
    [() => pg.allReduceCoalesced([x(), tensor([1], { dtype: 'int32' })]), 'INVALID_ARGUMENT allReduceCoalesced'],
    [() => pg.broadcast(x(), 2), 'INVALID_ARGUMENT broadcast'],
    [() => pg.broadcast(x(), -1), 'INVALID_ARGUMENT broadcast'],
    [() => pg.broadcast(sparse([0], [1]), 0), 'SPARSE_TENSOR broadcast'],
    [() => pg.broadcastCoalesced(x() as never, 0), 'INVALID_ARGUMENT broadcastCoalesced'],
    [() => pg.reduce(x(), 7), 'INVALID_ARGUMENT reduce'],
    [() => pg.allGather([x()], x()), 'INVALID_ARGUMENT allGather'],
    [() => pg.allGather([x(), ones([3])], x()), 'SHAPE_MISMATCH allGather'],
    [() => pg.allGather([x(), ones([2], { dtype: 'float64' })], x()), 'INVALID_ARGUMENT allGather'],
    [() => pg.allGatherIntoTensor(ones([5]), x()), 'SHAPE_MISMATCH allGatherIntoTensor'],
    [() => pg.allGatherCoalesced([[x()]], [x()]), 'INVALID_ARGUMENT allGatherCoalesced'],
    [() => pg.gather(x(), { dst: 9 }), 'INVALID_ARGUMENT gather'],
    [() => pg.gather(x(), { dst: pg.getRank() }), 'INVALID_ARGUMENT gather'],
    [() => pg.gather(x(), { dst: 1 - pg.getRank(), gatherList: [x(), x()] }), 'INVALID_ARGUMENT gather'],
    [() => pg.scatter(x(), { src: pg.getRank(), scatterList: [x()] }), 'INVALID_ARGUMENT scatter'],
    [() => pg.scatter(x(), { src: 1 - pg.getRank(), scatterList: [x(), x()] }), 'INVALID_ARGUMENT scatter'],
    [() => pg.reduceScatter(x(), [x()]), 'INVALID_ARGUMENT reduceScatter'],
    [() => pg.reduceScatterTensor(x(), x()), 'SHAPE_MISMATCH reduceScatterTensor'],
    [() => pg.allToAll([x()], [x(), x()]), 'INVALID_ARGUMENT allToAll'],
    [() => pg.allToAllSingle(ones([3]), ones([3])), 'SHAPE_MISMATCH allToAllSingle'],
    [() => pg.allToAllSingle(x(), x(), { inputSplits: [1, 2] }), 'INVALID_ARGUMENT allToAllSingle'],
    [() => pg.send(x(), pg.getRank()), 'INVALID_ARGUMENT send'],
    [() => pg.send(x(), 5), 'INVALID_ARGUMENT send'],
    [() => pg.recv(x(), pg.getRank()), 'INVALID_ARGUMENT recv'],
    [() => pg.recv(x(), 1 - pg.getRank(), { tag: -1 }), 'INVALID_ARGUMENT recv'],
    // Those are the library's own.
    [() => pg.recv(x(), 1 - pg.getRank(), { tag: 2 ** 52 }), 'INVALID_ARGUMENT recv'],
    [() => pg.send(x(), 1 - pg.getRank(), { tag: 2 ** 52 + 1 }), 'INVALID_ARGUMENT send'],
    [() => pg.broadcastObjectList([]), 'INVALID_ARGUMENT broadcastObjectList'],
    [() => pg.scatterObjectList([1], { src: pg.getRank() }), 'INVALID_ARGUMENT scatterObjectList'],
    [async () => pg.batchIsendIrecv([]), 'INVALID_ARGUMENT batchIsendIrecv'],
    [async () => new pg.P2POp(pg.send as never, x(), 1), 'INVALID_ARGUMENT P2POp'],
    [async () => pg.premulSum(Number.NaN), 'INVALID_ARGUMENT premulSum'],
  ]
  await ranks.inGroup(async (_rank, group) => {
    for (const [begin, expected] of wrong) {
      const error = await failure(begin())
      expect(`${error.code} ${error.op}`).toBe(expected)
    }
    // As PyTorch has it, the group in its place.
    expect((await failure(pg.allReduce(x(), group as never))).message).toBe(
      'allReduce: expected an object with options, got a process group. Write { group } for it.',
    )
    const y = x()
    await pg.allReduce(y)
    expect(y.toArray()).toEqual([2, 2])
  })
  expect(await ranks.leftovers()).toEqual([])
})

function twice<T>(use: (t: Tensor) => T): T {
  return use(ones([2]))
}

function closed(): Tensor {
  const x = ones([2])
  x.close()
  return x
}

function sparse(rows: readonly number[], values: readonly number[]): SparseTensor {
  return new SparseTensor(tensor([...rows], { dtype: 'int32' }), tensor(values.map((value) => [value, value])), [5, 2])
}

describe('values', () => {
  test('PG-19: the sum of sparse tensors, which stay as they are', async () => {
    const ranks = new Ranks(1, 3)
    const got = await ranks.inGroup(async (rank) => {
      const x = rank === 0 ? sparse([1, 4], [1, 2]) : sparse([4, 0, 4], [10, 20, 30])
      const sum = await pg.allReduce(x)
      expect(await failure(pg.allReduce(x, { op: 'max' }))).toMatchObject({ code: 'INVALID_ARGUMENT' })
      return [sum.isCoalesced, sum.indices().toArray(), sum.values().toArray(), x.nnz]
    })
    const rows = [
      [40, 40],
      [1, 1],
      [82, 82],
    ]
    expect(got).toEqual([
      [true, [0, 1, 4], rows, 2],
      [true, [0, 1, 4], rows, 3],
      [true, [0, 1, 4], rows, 3],
    ])
  })

  test('PG-20: every reduction of every dtype is right, or refused before anything is sent', async () => {
    const ranks = new Ranks(1, 2)
    const ops = [...Object.values(pg.ReduceOp), ...[2, 0.5, -0, 2 ** 40, 1e300].map(pg.premulSum)]
    const dtypes = ['float32', 'float64', 'int32', 'bool'] as const
    const refused = await ranks.inGroup(async (rank, group) => {
      const found: string[] = []
      for (const op of ops) {
        for (const dtype of dtypes) {
          const x = () => tensor([rank, 1], { dtype })
          const name = `${typeof op === 'object' ? `premulSum(${op.factor})` : op} ${dtype}`
          const rows = () => new SparseTensor(tensor([1], { dtype: 'int32' }), x().reshape([1, 2]), [3, 2])
          const works: (readonly [string, () => PromiseLike<unknown>])[] = [
            ['allReduce', () => pg.allReduce(x(), { op })],
            ['allReduceCoalesced', () => pg.allReduceCoalesced([x(), x()], { op })],
            ['reduce', () => pg.reduce(x(), 1, { op })],
            ['reduceScatter', () => pg.reduceScatter(x(), [x(), x()], { op })],
            ['reduceScatterTensor', () => pg.reduceScatterTensor(x(), tensor([rank, 1, rank, 1], { dtype }), { op })],
          ]
          if (dtype !== 'bool') works.push(['sparse', () => pg.allReduce(rows(), { op })])
          const outcomes = []
          for (const [fn, start] of works) {
            const outcome = await Promise.resolve(start()).then(
              () => 'right',
              ({ code }) => code as string,
            )
            // Of sparse tensors there is the sum alone.
            if (fn === 'sparse') expect([name, outcome]).toEqual([name, op === 'sum' ? 'right' : 'INVALID_ARGUMENT'])
            else outcomes.push(outcome)
          }
          expect([name, new Set(outcomes).size]).toEqual([name, 1])
          if (outcomes[0] !== 'right') found.push(`${name} ${outcomes[0]}`)
          await pg.barrier({ group })
        }
      }
      return found
    })
    const bits = ['band', 'bor', 'bxor'].flatMap((op) => [`${op} float32 DTYPE_MISMATCH`, `${op} float64 DTYPE_MISMATCH`])
    const factors = [2, 0.5, 0, 2 ** 40, 1e300].flatMap((factor) => {
      const fits = Number.isInteger(factor) && factor < 2 ** 31
      return [...(fits ? [] : ['int32']), 'bool'].map((dtype) => `premulSum(${factor}) ${dtype} DTYPE_MISMATCH`)
    })
    for (const each of refused) expect(each).toEqual(['avg bool DTYPE_MISMATCH', ...bits, ...factors])
  })

  test('PG-11: what is read may lie where is written: inputs and outputs that share elements', async () => {
    const ranks = new Ranks(1, 3)
    const got = await ranks.inGroup(async (rank) => {
      const base = () => tensor(Array.from({ length: 8 }, (_, i) => 10 ** rank * (i + 1)))
      const list = (t: Tensor) => Array.from(t.toArray() as number[])
      // Of its own input this rank writes over what it has not read.
      const shifted = base()
      const inputs = Array.from({ length: 3 }, (_, i) => (i === rank ? shifted.narrow(0, 0, 4) : ones([4])))
      await pg.reduceScatter(shifted.narrow(0, 1, 4), inputs)
      const whole = base().narrow(0, 0, 6)
      await pg.reduceScatterTensor(whole.narrow(0, 2 * rank, 2), whole)
      const strided = base()
      await pg.reduceScatter(
        strided.narrow(0, 0, 4),
        Array.from({ length: 3 }, () => strided.reshape([4, 2]).select(1, 0)),
      )
      // Another rank's output lies over this one's tensor.
      const own = base().narrow(0, 0, 2)
      const gathered = [own, zeros([2]), zeros([2])]
      await pg.gather(own, rank === 1 ? { dst: 1, gatherList: gathered } : { dst: 1 })
      const mine = base().narrow(0, 0, 2)
      const spread = Array.from({ length: 3 }, (_, i) => (i === (rank + 2) % 3 ? mine : zeros([2])))
      await pg.allGather(spread, mine)
      const [a, b] = [tensor([rank]), tensor([rank + 10])]
      const lists = Array.from({ length: 3 }, (_, i) => (i === rank ? [b, a] : [zeros([1]), zeros([1])]))
      await pg.allGatherCoalesced(lists, [a, b])
      // Columns of a matrix: their ranges meet, their elements do not.
      const matrix = zeros([2, 3])
      await pg.allGather(
        [0, 1, 2].map((column) => matrix.select(1, column)),
        tensor([rank, -rank]),
      )
      return {
        shifted: list(shifted.narrow(0, 1, 4)),
        whole: list(whole.narrow(0, 2 * rank, 2)),
        strided: list(strided.narrow(0, 0, 4)),
        gathered: rank === 1 ? gathered.map(list) : null,
        spread: spread.map(list),
        swapped: lists.map((pair) => pair.flatMap(list)),
        matrix: matrix.toArray(),
      }
    })
    const sums = (of: readonly number[], rank: number, others: number) => of.map((value) => 10 ** rank * value + others)
    for (const [rank, found] of got.entries()) {
      expect(found).toEqual({
        shifted: sums([1, 2, 3, 4], rank, 2),
        whole: [111 * (2 * rank + 1), 111 * (2 * rank + 2)],
        strided: [1, 3, 5, 7].map((value) => 111 * value),
        gathered: rank === 1 ? [0, 1, 2].map((from) => [10 ** from, 2 * 10 ** from]) : null,
        spread: [0, 1, 2].map((from) => [10 ** from, 2 * 10 ** from]),
        swapped: [0, 1, 2].map((from) => [from, from + 10]),
        matrix: [
          [0, 1, 2],
          [-0, -1, -2],
        ],
      })
    }
    expect(await ranks.leftovers()).toEqual([])
  })

  test('PG-11: premulSum: each rank its own factor', async () => {
    const ranks = new Ranks(1, 2)
    const got = await ranks.inGroup(async (rank) => {
      const op = pg.premulSum(rank === 0 ? 10 : 1)
      const [x, y, z] = [tensor([1, 2]), tensor([1]), zeros([1])]
      await pg.allReduce(x, { op })
      await pg.reduce(y, 1, { op })
      await pg.reduceScatter(z, [tensor([3]), tensor([4])], { op })
      return [x.toArray(), y.toArray(), z.toArray()]
    })
    expect(got).toEqual([
      [[11, 22], [1], [33]],
      [[11, 22], [11], [44]],
    ])
  })

  test('PG-18: object collectives give copies, with references inside; what cannot travel breaks the group', async () => {
    const ranks = new Ranks(1, 2)
    const get = (value: { readonly n: number }): number => value.n
    expose({ 'pg.get': get })
    const got = await ranks.inGroup(async (rank) => {
      const own = { n: rank, list: [1] }
      const all = await pg.allGatherObject(own)
      all[1 - rank]!.list.push(2)
      using ref = rref({ n: 40 + rank })
      const refs = await pg.allGatherObject(ref)
      const theirs = await refs[1 - rank]!.toHere()
      await pg.barrier()
      refs[1 - rank]!.dispose()
      await pg.barrier()
      const error = await failure(pg.allGatherObject(() => {}))
      return [own.list, theirs, code(error)]
    })
    expect(got.map(([list, theirs]) => [list, theirs])).toEqual([
      [[1], { n: 41 }],
      [[1], { n: 40 }],
    ])
    expect(got.map(([, , end]) => end)).toContain('WIRE_UNSUPPORTED_VALUE')
  })

  test('PG-17: tags, any source, order of one sender, another shape; batchIsendIrecv', async () => {
    const ranks = new Ranks(1, 3)
    await ranks.inGroup(async (rank) => {
      if (rank === 0) {
        const [a, b, c] = [zeros([1]), zeros([1]), zeros([2])]
        expect(await pg.recv(a, 1, { tag: 7 })).toBe(1)
        expect(await pg.recv(b, 1)).toBe(1)
        expect([a.toArray(), b.toArray()]).toEqual([[30], [10]])
        const error = await failure(pg.recv(c, 1))
        expect(error).toMatchObject({ code: 'COLLECTIVE_MISMATCH', op: 'recv' })
        expect(error.message).toContain('rank 1 (worker1) sends float32 [1] with tag 0, and rank 0 (worker0) receives float32 [2]')
        const from = [await pg.recv(zeros([1]), undefined, { tag: 1 }), await pg.irecv(zeros([1]), undefined, { tag: 1 })]
        expect(from.sort()).toEqual([1, 2])
      } else {
        if (rank === 1)
          for (const [value, tag] of [
            [10, 0],
            [20, 0],
            [30, 7],
          ] as const)
            await pg.send(tensor([value]), 0, { tag })
        await pg.isend(tensor([rank]), 0, { tag: 1 })
      }
      const x = zeros([1])
      const works = pg.batchIsendIrecv([
        new pg.P2POp(pg.isend, tensor([rank]), (rank + 1) % 3),
        new pg.P2POp(pg.irecv, x, (rank + 2) % 3, { tag: 0 }),
      ])
      await Promise.all(works)
      expect(x.toArray()).toEqual([(rank + 2) % 3])
    })
    expect(await ranks.leftovers()).toEqual([])
  })

  test('PG-14: what is sent keeps its value; a work says how it stands', async () => {
    const ranks = new Ranks(1, 2)
    await ranks.inGroup(async (rank) => {
      const x = tensor([1])
      await pg.send(x, 1 - rank)
      x.fill_(9)
      const y = zeros([1])
      const work = pg.recv(y, 1 - rank, { asyncOp: true })
      const asked = work.isCompleted() ? [] : [code(await failure(Promise.reject(thrownBy(() => work.result()))))]
      expect(asked).toEqual(['FUTURE_NOT_DONE'].slice(0, asked.length))
      expect(work.getFuture()).toBe(work)
      await work.wait()
      expect([work.isCompleted(), work.isSuccess(), work.exception(), work.result(), y.toArray()]).toEqual([
        true,
        true,
        null,
        1 - rank,
        [1],
      ])
    })
  })

  test('PG-15: a barrier ends behind all that was called before it', async () => {
    for (let seed = 1; seed <= 10; seed++) {
      const ranks = new Ranks(seed, 3)
      await ranks.inGroup(async () => {
        const works = [1, 2, 3, 4].map((n) => pg.allReduce(ones([n])))
        await pg.barrier()
        expect(works.map((work) => work.isCompleted())).toEqual([true, true, true, true])
      })
    }
  })

  test('PG-12: the order of summation is that of the ranks', async () => {
    const ranks = new Ranks(1, 4)
    const values = [1e8, 1, -1e8, 1]
    const got = await ranks.inGroup(async (rank, group) => {
      const sums: unknown[] = []
      for (const [oneStepBytes, rootBytes] of [
        [0, 0],
        [0, 1 << 19],
        [1 << 19, 0],
      ] as const) {
        group.limits = { oneStepBytes, rootBytes, pieceBytes: 64 }
        const x = ones([70]).mul(values[rank]!)
        await pg.allReduce(x)
        sums.push(...new Set(x.toArray() as number[]))
      }
      return sums
    })
    const expected = Math.fround(Math.fround(Math.fround(1e8 + 1) - 1e8) + 1)
    for (const each of got) expect(each).toEqual([expected, expected, expected])
  })

  test('PG-24: the error of a call that meets a broken group goes to its caller whole', async () => {
    const ranks = new Ranks(1, 2)
    const reduces = async (): Promise<void> => {
      await pg.allReduce(ones([1]))
    }
    expose({ 'pg.reduces': reduces })
    await ranks.inGroup(async (rank, group) => {
      await pg.barrier()
      if (rank === 1) return
      const called = failure(call('worker1', reduces, []))
      group.abort('enough')
      const error = await called
      expect(error).toMatchObject({ code: 'GROUP_BROKEN' })
    })
    expect(await ranks.leftovers()).toEqual([])
  })
})

describe('the tracer', () => {
  test('TRC-4: the wait of a collective says which, and only a barrier waits for earlier ones', async () => {
    const ranks = new Ranks(1, 2)
    const waits: TraceEvent[] = []
    const stop = traceWorker(ranks.workers[0]!, (event) => event.kind === 'wait' && waits.push(event))
    await ranks.inGroup(async () => {
      await Promise.all([pg.allReduce(ones([2])), pg.barrier()])
      await pg.barrier()
    })
    stop()
    const begun = waits.filter(({ phase, values }) => phase === 'begin' && values.for === 'collective')
    expect(begun).toMatchObject([
      { name: 'allReduce', values: { for: 'collective', on: null, what: expect.stringMatching(/number 0 of group 'default'$/) } },
      { name: 'barrier', values: { what: "barrier, number 1 of group 'default', which waits for earlier ones" } },
      { name: 'barrier', values: { what: "barrier, number 2 of group 'default'" } },
    ])
    const ended = new Set(waits.filter(({ phase }) => phase === 'end').map(({ span }) => span))
    expect(begun.every(({ span }) => ended.has(span))).toBe(true)
    expect(await ranks.leftovers()).toEqual([])
  })
})

function thrownBy(fn: () => unknown): PostgradError {
  try {
    fn()
  } catch (error) {
    return error as PostgradError
  }
  throw new Error('nothing was thrown')
}
