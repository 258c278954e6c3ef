/** Programs that return while others wait for them: which waits are refused, and what is printed. */
import { describe, expect, test } from '@jest/globals'
import { isPostgradError, type PostgradError } from '@postgrad/base'
import { call, currentWorker, expose, remote } from '@postgrad/rpc'
import { meet, standstillOf } from '@postgrad/rpc/internal'
import type { ClusterOptions } from '@postgrad/rpc/suite'
import { ones, tensor, zeros } from '@postgrad/tensor'
import { NEVER, PROGRAMS } from './deaths.suite.js'
import { allReduce, barrier, broadcast, destroyProcessGroup, initProcessGroup, newGroup, newSubgroups, recv, type Work } from './index.js'
import { Draw } from './programs.suite.js'
import { Ranks, withSeed } from './sim-ranks.suite.js'

type Main = (rank: number, ranks: Mains) => Promise<unknown>

const later = (ms: number): Promise<void> => new Promise((resolve) => void currentWorker().clock.setTimer(ms, resolve))
const nowMs = (): number => currentWorker().clock.now()

/** Ranks as `postgrad run` has them: each runs one main, and is asked whether it is over. */
class Mains extends Ranks {
  readonly lines: string[] = []
  private readonly seed: number

  constructor(seed: number, size: number, options: ClusterOptions = {}) {
    super(seed, size, options)
    this.seed = seed
    for (const worker of this.workers) standstillOf(worker).watch((line) => this.lines.push(line))
  }

  /** The end of each main; nothing may be left. */
  async mains(main: Main): Promise<unknown[]> {
    return withSeed(this.seed, async () => {
      const ends = await this.all(async (rank) => {
        const value = await main(rank, this)
        standstillOf(this.workers[rank]!).isMainOver = true
        return value
      })
      expect(await this.leftovers({ letters: null })).toEqual([])
      return ends.map((end) => (end.status === 'fulfilled' ? end.value : end.reason))
    })
  }
}

/** The others' error by rank `rank`. */
const isOver = (rank: number) => ({
  code: 'GROUP_BROKEN',
  message: expect.stringContaining(`rank ${rank} (worker${rank}) has returned from its main`),
  values: expect.objectContaining({ because: 'PROGRAM_OVER', rank, worker: `worker${rank}` }),
})

/** Until the group is broken, in ms. */
async function failsIn(work: Promise<unknown>): Promise<{ readonly error: PostgradError; readonly ms: number }> {
  const beganMs = nowMs()
  try {
    await work
  } catch (error) {
    if (isPostgradError(error)) return { error, ms: nowMs() - beganMs }
    throw error
  }
  throw new Error('it has ended well')
}

describe('PG-40: a rank that returns early', () => {
  test.each(PROGRAMS)('before %s: all others get GROUP_BROKEN with its name within 5 s', async (_name, program) => {
    for (const gone of [0, 1, 2]) {
      for (const overtaking of [false, true]) {
        const ranks = new Mains(3 * gone + 1, 3, { overtaking })
        const ends = await ranks.mains(async (rank) => {
          const group = await initProcessGroup(NEVER)
          if (rank === gone) return null
          await later(17 * rank)
          return failsIn(program(rank, group).then(() => barrier()))
        })
        for (const rank of [0, 1, 2].filter((each) => each !== gone)) {
          const { error, ms } = ends[rank] as { error: PostgradError; ms: number }
          expect({ gone, overtaking, error }).toMatchObject({ error: isOver(gone) })
          expect(ms).toBeLessThan(5000)
        }
        expect(ranks.lines).toEqual([])
      }
    }
  })

  test('before initProcessGroup, or a meeting of all workers without a limit: the same', async () => {
    for (const gone of [0, 1, 2]) {
      const ranks = new Mains(gone + 1, 3)
      const ends = await ranks.mains(async (rank) => {
        if (rank === gone) return null
        await later(17 * rank)
        return [await failsIn(initProcessGroup({ ...NEVER })), await failsIn(meet(null, undefined, NEVER))]
      })
      for (const rank of [0, 1, 2].filter((each) => each !== gone)) {
        const [formed, met] = ends[rank] as Awaited<ReturnType<typeof failsIn>>[]
        expect(formed).toMatchObject({ error: { ...isOver(gone), op: 'initProcessGroup' } })
        const message = expect.stringContaining(`worker 'worker${gone}' has returned from its main or called shutdown()`)
        expect(met).toMatchObject({ error: { code: 'PROGRAM_OVER', op: 'meet', message, values: { worker: `worker${gone}` } } })
        expect(formed!.ms).toBeLessThan(5000)
        expect(met!.ms).toBeLessThan(5000)
      }
    }
  })

  test('in the middle of training, of some groups, one after the other', async () => {
    for (let seed = 1; seed <= 20; seed++) {
      const steps = [5, 1 + (seed % 4), 5, 5]
      const ends = await new Mains(seed, 4).mains(async (rank) => {
        await initProcessGroup(NEVER)
        for (let step = 0; step < steps[rank]!; step++) {
          await later((seed * 37 * (rank + 1)) % 900)
          const work = allReduce(ones([3]))
          if (step === 5 - 1 || step >= steps[1]!) return failsIn(work)
          await work
        }
        return null
      })
      for (const rank of [0, 2, 3]) expect(ends[rank]).toMatchObject({ error: isOver(1) })
    }
  })

  test('each in another group: both groups are broken', async () => {
    const ends = await new Mains(1, 4).mains(async (rank) => {
      await initProcessGroup(NEVER)
      const { current } = await newSubgroups(2)
      if (rank % 2 === 1) return null
      return failsIn(allReduce(ones([1]), { group: current! }))
    })
    expect(ends[0]).toMatchObject({ error: { code: 'GROUP_BROKEN', values: { worker: 'worker1' } } })
    expect(ends[2]).toMatchObject({ error: { code: 'GROUP_BROKEN', values: { worker: 'worker3' } } })
  })

  test('who has called shutdown counts as well, also where it may get another run', async () => {
    const ranks = new Mains(1, 3)
    const ends = await ranks.all(async (rank) => {
      await initProcessGroup(NEVER)
      if (rank !== 1) await failsIn(barrier())
      await ranks.workers[rank]!.shutdown()
      return nowMs()
    })
    for (const end of ends) expect(end).toMatchObject({ status: 'fulfilled' })
  })

  test('the group can be made again without it', async () => {
    const ends = await new Mains(1, 3).mains(async (rank) => {
      await initProcessGroup(NEVER)
      if (rank === 1) return null
      await failsIn(barrier())
      destroyProcessGroup()
      await initProcessGroup({ ranks: ['worker0', 'worker2'], ...NEVER })
      return (await allReduce(tensor([1, 2]))).toArray()
    })
    expect(ends).toEqual([[2, 4], null, [2, 4]])
  })
})

/** Served by a rank whose main has returned. */
async function joins(delayMs = 0): Promise<number[]> {
  await later(delayMs)
  return (await allReduce(tensor([1]))).toArray() as number[]
}
async function asks(worker: string, delayMs: number): Promise<number[]> {
  await later(delayMs)
  return call(worker, joins, [delayMs], NEVER)
}
async function makes(): Promise<number[]> {
  await initProcessGroup(NEVER)
  await meet(null, undefined, NEVER)
  return joins()
}
const rests = (ms: number): Promise<void> => later(ms)
class Joiner {
  async join(delayMs: number): Promise<number[]> {
    return joins(delayMs)
  }
}
expose({ joins, makes, asks, rests, Joiner })

/** Rank 1 returns at once; all others end well. */
const RIGHT: readonly (readonly [string, Main])[] = [
  [
    'one computes before it calls',
    (rank) => (rank === 0 ? later(20_000).then(() => Promise.all([joins(), call('worker1', joins, [], NEVER)])) : joins()),
  ],
  ['a call is under way', (rank) => (rank === 0 ? Promise.all([joins(), call('worker1', joins, [20_000], NEVER)]) : joins())],
  [
    'a reply is in flight',
    async (rank, ranks) => {
      if (rank !== 0) return joins()
      const gate = ranks.gate(1, 0)
      const first = call('worker1', rests, [1000], NEVER)
      await later(500)
      gate.shut()
      ranks.world.clockOf('worker0').setTimer(20_000, () => gate.unshut())
      return Promise.all([joins(), first.then(() => call('worker1', joins, [], NEVER))])
    },
  ],
  [
    'a method of a reference',
    async (rank) => {
      if (rank !== 0) return joins()
      using joiner = remote('worker1', Joiner, [])
      return Promise.all([joins(), joiner.call('join', [15_000], NEVER)])
    },
  ],
  ['a nested call', (rank) => (rank === 0 ? Promise.all([joins(), call('worker2', asks, ['worker1', 8000], NEVER)]) : joins())],
  ['a nested call of one that is in no group', (rank) => (rank === 3 ? asks('worker1', 12_000) : joins())],
  [
    'a call that its caller waits for no more',
    async (rank) => {
      if (rank !== 0) return joins()
      const work = joins()
      expect((await failsIn(call('worker1', joins, [15_000], { timeoutMs: 1000 }))).error.code).toBe('RPC_TIMEOUT')
      return work
    },
  ],
  [
    'one that does something else for a moment, while an operation is under way',
    async (rank) => {
      if (rank !== 0) return joins()
      const work = joins()
      await later(2600)
      return Promise.all([work, call('worker1', joins, [], NEVER)])
    },
  ],
  [
    'a recv that ends by itself',
    async (rank) => {
      if (rank !== 0) return joins()
      const { error } = await failsIn(recv(zeros([1]), 1, { timeoutMs: 9000 }))
      expect(error.code).toBe('COLLECTIVE_TIMEOUT')
      return Promise.all([joins(), call('worker1', joins, [], NEVER)])
    },
  ],
  [
    'subgroups, and one group after the other',
    async (rank) => {
      const group = await newGroup(ALL_OF_THREE)
      void group
      if (rank === 2) await later(20_000)
      return rank === 2 ? Promise.all([joins(), call('worker1', joins, [], NEVER)]) : joins()
    },
  ],
]
const ALL_OF_THREE = [0, 1, 2]

describe('PG-41: no right program is refused', () => {
  test.each(RIGHT)('%s', async (name, main) => {
    for (let seed = 1; seed <= 6; seed++) {
      const ranks = new Mains(seed, 4, { overtaking: seed % 2 === 0 })
      const hasSubgroup = name.startsWith('subgroups')
      const ends = await ranks.mains(async (rank) => {
        if (rank < 3) {
          await initProcessGroup({ ranks: ['worker0', 'worker1', 'worker2'], warnAfterMs: 0, ...NEVER })
          if (rank === 1) return hasSubgroup ? void (await newGroup(ALL_OF_THREE)) : null
        } else if (!name.endsWith('no group')) return null
        return main(rank, ranks)
      })
      for (const end of ends) if (end instanceof Error) throw end
      expect(JSON.stringify(ends[2])).toContain('[3]')
      expect(ranks.lines).toEqual([])
    }
  })

  test('random programs: each rank joins by itself, or, once it has returned, in a call, direct or by way of another', async () => {
    const size = 4
    const steps = 3
    for (let seed = 1; seed <= 40; seed++) {
      const draw = new Draw(seed)
      const driver = draw.below(size)
      const ownSteps = Array.from({ length: size }, (_, rank) => (rank === driver ? steps : draw.below(steps + 1)))
      const plan = Array.from({ length: steps }, () =>
        Array.from({ length: size }, () => ({
          beforeMs: draw.below(3) * draw.below(4000),
          thereMs: draw.below(3) * draw.below(4000),
          by: draw.below(size),
        })),
      )
      const ranks = new Mains(seed, size, { overtaking: seed % 2 === 0 })
      const ends = await ranks.mains(async (rank) => {
        await initProcessGroup({ warnAfterMs: 0, ...NEVER })
        const sums: unknown[] = []
        for (let step = 0; step < ownSteps[rank]!; step++) {
          await later(plan[step]![rank]!.beforeMs)
          const others = rank !== driver ? [] : ownSteps.flatMap((own, other) => (own > step ? [] : [other]))
          const calls = others.map((other) => {
            const { thereMs, by } = plan[step]![other]!
            return by === other || by === driver
              ? call(`worker${other}`, joins, [thereMs], NEVER)
              : call(`worker${by}`, asks, [`worker${other}`, thereMs], NEVER)
          })
          sums.push(...(await Promise.all([joins(), ...calls])))
        }
        return sums
      })
      for (const end of ends) if (end instanceof Error) throw new Error(`seed ${seed}: ${end.message}`, { cause: end })
      expect(ends[driver]).toEqual(expect.arrayContaining([[size]]))
    }
  })

  test('what it has sent before it returned is still under way', async () => {
    for (let seed = 1; seed <= 6; seed++) {
      const ranks = new Mains(seed, 3)
      const ends = await ranks.mains(async (rank) => {
        await initProcessGroup(NEVER)
        const pair = await newGroup([0, 2])
        const x = tensor([rank])
        if (rank === 0) await later(100)
        if (rank === 1) {
          const gate = ranks.gate(1, 0)
          gate.shut()
          ranks.world.clockOf('worker0').setTimer(20_000, () => gate.unshut())
        }
        await broadcast(x, 1)
        if (rank !== 1) await barrier({ group: pair })
        return x.toArray()
      })
      expect(ends).toEqual([[1], [1], [1]])
    }
  })

  test('one that has returned makes the group, and meets others, in a call', async () => {
    for (const joiner of [0, 1, 2]) {
      const ranks = new Mains(joiner + 1, 3)
      const first = joiner === 0 ? 1 : 0
      const ends = await ranks.mains(async (rank) => {
        if (rank === joiner) return [3]
        if (rank !== first) return makes()
        await later(12_000)
        return (await Promise.all([makes(), call(`worker${joiner}`, makes, [], NEVER)]))[0]
      })
      expect(ends).toEqual([[3], [3], [3]])
    }
  })

  test('a rank that has waited for a moment says for whom while the group is made', async () => {
    const ranks = new Mains(1, 3)
    await ranks.mains(async (rank) => {
      if (rank === 2) await later(15_000)
      return makes()
    })
    expect(ranks.lines).toEqual([
      "postgrad: rank 0 (worker0) has waited 10 s for rank 2 (worker2) in initProcessGroup 'default' of 3 workers",
    ])
  })

  test('PG-43: a word that a worker is over changes nothing where the sender, or that worker, is no member', async () => {
    const ranks = new Mains(1, 4)
    let key = ''
    const ends = await ranks.mains(async (rank) => {
      if (rank === 3) {
        await later(1000)
        ranks.workers[3]!.post(0, 15 as never, [9, [key, 1], null])
        return [3]
      }
      const group = await initProcessGroup({ ranks: ['worker0', 'worker1', 'worker2'], ...NEVER })
      key = group.key
      if (rank === 1) {
        await later(2000)
        ranks.workers[1]!.post(0, 15 as never, [9, [key, 3], null])
        ranks.workers[1]!.post(0, 15 as never, [9, [key, 0], null])
        await later(1000)
      }
      return joins()
    })
    expect(ends).toEqual([[3], [3], [3], [3]])
    expect(ranks.workers[0]!.letters.total).toBe(3)
  })

  test('workers that may get another run are never gone', async () => {
    const ranks = new Mains(1, 3)
    const [first] = await ranks.all(async (rank) => {
      await initProcessGroup(NEVER)
      return rank === 1 ? null : failsIn(barrier({ timeoutMs: 30_000 }))
    })
    expect(first).toMatchObject({ value: { error: { code: 'COLLECTIVE_TIMEOUT' } } })
  })

  test('a deadlock of ranks that all go on is none of a rank that has returned', async () => {
    const ends = await new Mains(1, 3).mains(async (rank) => {
      await initProcessGroup({ timeoutMs: 40_000 })
      if (rank === 1) return null
      // Each waits for the other first.
      const work: Work<unknown> = recv(zeros([1]), 2 - rank, { timeoutMs: 3_000_000 })
      void later(60_000).then(() => work.cancel())
      return (await failsIn(work)).error.code
    })
    expect(ends).toEqual(['CALL_CANCELLED', null, 'CALL_CANCELLED'])
  })
})

describe('PG-42: the line', () => {
  const waiting =
    (warnAfterMs: number | undefined, delays: readonly number[]): Main =>
    async (rank) => {
      await initProcessGroup(warnAfterMs === undefined ? NEVER : { warnAfterMs, ...NEVER })
      for (let step = 0; step < 2; step++) {
        await later(delays[rank]!)
        await allReduce(ones([2]))
      }
    }

  test('the first rank that waits says once for whom, and in what', async () => {
    for (let seed = 1; seed <= 10; seed++) {
      const ranks = new Mains(seed, 4)
      await ranks.mains(waiting(undefined, [25_000, 0, 0, 3000]))
      expect(ranks.lines).toEqual(
        [0, 1].map(
          (n) =>
            `postgrad: rank 1 (worker1) has waited 10 s for rank 0 (worker0) in allReduce(sum) float32 [2], number ${n} of group 'default'`,
        ),
      )
    }
  })

  test('also while one of those that are waited for does not answer, since it computes in one go', async () => {
    const ranks = new Mains(1, 4)
    await ranks.mains(async (rank) => {
      await initProcessGroup(NEVER)
      if (rank === 0) {
        for (const other of [1, 2, 3]) ranks.gate(0, other).shut()
        await later(25_000)
        for (const other of [1, 2, 3]) ranks.gate(0, other).unshut()
      }
      await allReduce(ones([2]))
    })
    expect(ranks.lines).toHaveLength(1)
    expect(ranks.lines[0]).toContain('rank 1 (worker1) has waited 10 s for rank 0 (worker0) in')
  })

  test('0 turns it off, and the option sets it', async () => {
    const off = new Mains(1, 3)
    await off.mains(waiting(0, [25_000, 0, 0]))
    expect(off.lines).toEqual([])
    const soon = new Mains(1, 3)
    await soon.mains(waiting(4000, [6000, 0, 0]))
    expect(soon.lines).toHaveLength(2)
    expect(soon.lines[1]).toContain('has waited 4 s for rank 0 (worker0) in')
  })
})
