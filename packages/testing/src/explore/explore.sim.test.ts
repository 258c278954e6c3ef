/** `explore` on whole workers: how many orders there are, what it says of a body that fails in some, and how it ends when there are too many. */
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, describe, expect, test } from '@jest/globals'
import type { PostgradError } from '@postgrad/base'
import { call, expose, workerLocal } from '@postgrad/rpc'
import { bitsText, designNoteOn, type Plains, readGolden } from '@postgrad/testing-cases'
import { generate, runProgram } from '@postgrad/testing-cases/programs'
import { inlined } from '../inlined/inlined.js'
import { decodeToken, encodeToken, type TestIdentity } from '../replay/replay-token.js'
import { type SimCluster, simulate } from '../simulate/simulate.js'
import { inlinedRun } from '../suites/programs/oracle.suite.js'
import { type Exploration, type ExploreOptions, explore } from './explore.js'

/** Says what was found where a person reads the tests' output. */
const print = (what: string, { text }: Exploration) => process.stdout.write(`      ${what}: ${text}\n`)

const heard = workerLocal((): string[] => [])
/** Adds a word; gives all so far. */
const hear = (word: string): string => {
  heard().push(word)
  return heard().join('')
}
expose({ hear })

/** Each of these workers sends its word to another one, so many times, one after the other. Gives the last answer of each. */
async function talk(sim: SimCluster, who: readonly (readonly [from: string, to: string, word: string])[], times: number) {
  const one = async (to: string, word: string) => {
    let last = ''
    for (let n = 0; n < times; n++) last = await call(to, hear, [word])
    return last
  }
  return Promise.all(who.map(([from, to, word]) => sim.on(from).run(one, to, word)))
}

const golden = await readGolden()
const inputs = golden.design_note!.inputs as Plains
const designNote = (sim: SimCluster) => sim.on('worker0').run(() => designNoteOn('worker1', inputs))

afterEach(() => {
  delete process.env.POSTGRAD_REPLAY
})

describe('all orders', () => {
  test.each([
    ['each message in a turn of its own', {}],
    ['several in one turn too', { world: { arrival: 'seeded' } }],
  ] as [string, Partial<ExploreOptions>][])(
    "TK-4: of the design note's example, %s: the bits of the inlined program",
    async (name, options) => {
      const oracle = bitsText(await inlined({ workers: 2 }, (cluster) => cluster.on('worker0').run(() => designNoteOn('worker1', inputs))))
      const found = await explore({ workers: ['worker0', 'worker1'], ...options }, async (sim) => {
        const result = await designNote(sim)
        expect(bitsText(result)).toBe(oracle)
        return result
      })
      print(`the design note's example, ${name}`, found)
      expect(found).toMatchObject({ exhausted: true, outcomes: 1, drawn: 0, aborted: false })
    },
  )

  test('TK-4: as it stands in the design: a body that gives nothing', async () => {
    const found = await explore({ workers: ['worker0', 'worker1'] }, async (sim) => {
      await designNote(sim)
    })
    expect(found.exhausted).toBe(true)
  })

  test('TK-4, TK-9: of both workers running it at once', async () => {
    const found = await explore({ workers: 2 }, (sim) =>
      Promise.all([0, 1].map((i) => sim.on(`worker${i}`).run(() => designNoteOn(`worker${1 - i}`, inputs)))),
    )
    print('both workers run it at once', found)
    expect(found).toMatchObject({ exhausted: true, outcomes: 1 })
    expect(found.orders).toBe(2)
  })

  test.each([
    [1, 6],
    [2, 8],
    [3, 60],
    [8, 60],
    [12, 60],
  ])(
    'TK-60 of a random program of several roots and passes (seed %i): the bits of the inlined program in each of the %i orders and more',
    async (seed, orders) => {
      const program = generate(seed, { workers: 3, scalars: true, rootsMin: 3, passesMin: 3 })
      const { bits } = await inlinedRun(program)
      const found = await explore({ workers: 3, ordersMax: 60, seeds: 20 }, async (sim) => {
        const outcome = await sim.on('worker0').run(runProgram, JSON.stringify(program))
        expect(bitsText(outcome)).toBe(bits)
        return outcome
      })
      print(`random program ${seed}`, found)
      expect(found.outcomes).toBe(1)
      expect(found.orders).toBeGreaterThanOrEqual(orders)
    },
  )

  test('TK-4: as many as there are: two workers with two and three messages each to a third', async () => {
    // A third worker can get two rows of n words in 2n over n orders. Each order of answers is another one too where nobody waits for them.
    const heardOf = async (times: number) => {
      const all = new Set<string>()
      const found = await explore({ workers: 3, sameResult: false }, async (sim) => {
        const said = await talk(
          sim,
          [
            ['worker1', 'worker0', 'a'],
            ['worker2', 'worker0', 'b'],
          ],
          times,
        )
        all.add(said.reduce((a, b) => (a.length > b.length ? a : b)))
        return said
      })
      expect(found.exhausted).toBe(true)
      expect(found.outcomes).toBe(all.size)
      return all.size
    }
    expect([await heardOf(1), await heardOf(2), await heardOf(3)]).toEqual([2, 6, 20])
  })
})

test('TK-3, TK-4: a worker that crashes before the first step: as much of what it sent arrives as may', async () => {
  const arrived = new Set<string>()
  const found = await explore({ workers: 2 }, async (sim) => {
    for (const word of ['a', 'b'])
      sim
        .on('worker0')
        .run(() => call('worker1', hear, [word]))
        .catch(() => {})
    sim.crash('worker0')
    await new Promise<void>((resolve) => void sim.world.clock.setTimer(5, resolve))
    arrived.add(await sim.on('worker1').run(() => heard().join('')))
  })
  expect([...arrived].sort()).toEqual(['', 'a', 'ab'])
  expect(found).toMatchObject({ exhausted: true, orders: 3 })
})

describe('a body that fails in some orders', () => {
  /** One order in 70 is wrong. */
  const planted = (wrong: string) => async (sim: SimCluster) => {
    const [, b] = await talk(
      sim,
      [
        ['worker1', 'worker0', 'a'],
        ['worker2', 'worker0', 'b'],
      ],
      4,
    )
    if (b === wrong) throw new RangeError('the order that nobody thought of')
  }

  test('TK-5: is found where seeds do not find it, with the run and its decisions, which give it again', async () => {
    const bySeeds = await explore({ workers: 3, strategy: 'seeds', seeds: 60 }, planted('abbbaaab'))
    expect(bySeeds).toMatchObject({ runs: 60, drawn: 60, exhausted: false })
    const error = await explore({ workers: 3 }, planted('abbbaaab')).catch(
      (e: unknown) => e as RangeError & { order: number; decisions: number[] },
    )
    expect(error).toMatchObject({ name: 'RangeError', message: 'the order that nobody thought of' })
    const { order, decisions, stack } = error as RangeError & { order: number; decisions: number[] }
    expect(stack).toContain(`(run ${order} of explore)`)
    // `simulate` with a seed gives another run.
    expect(stack).not.toContain('(seed')
    const { ReplaySchedule } = await import('@postgrad/sim/internal')
    const again = simulate({ workers: 3, world: { arrival: 'alone', schedule: new ReplaySchedule(decisions) } }, planted('abbbaaab'))
    await expect(again).rejects.toThrow('the order that nobody thought of')
    const { replay: token } = error as { replay?: string }
    expect(stack).toContain(`POSTGRAD_REPLAY=${token}`)
    // In front of the same command: the run is made in the place of the exploration, and reported like the first.
    const { of, variant } = decodeToken(token as string)
    const tokenOf = (run: number) => encodeToken({ of: { ...(of as TestIdentity), run }, variant })
    const { run } = of as TestIdentity
    process.env.POSTGRAD_REPLAY = tokenOf(run + 2)
    const repeated = await explore({ workers: 3 }, planted('abbbaaab')).catch((e: unknown) => e as Error)
    expect(repeated).toMatchObject({ message: 'the order that nobody thought of', replay: tokenOf(run + 2) })
    process.env.POSTGRAD_REPLAY = tokenOf(run + 3)
    expect(await explore({ workers: 3 }, planted(''))).toMatchObject({ runs: 1, exhausted: false })
  })

  test('TK-5: priority-change schedules find it in far fewer runs than seeds', async () => {
    const error = await explore({ workers: 3, strategy: 'pct', seeds: 150, depth: 2 }, planted('aaaabbbb')).catch(
      (e: unknown) => e as { order: number },
    )
    expect(error).toMatchObject({ name: 'RangeError', order: expect.any(Number) })
    expect((error as { order: number }).order).toBeLessThan(60)
  })

  test('TK-5: results that differ are an error that shows both; or are counted', async () => {
    const body = async (sim: SimCluster) => ({
      said: await talk(
        sim,
        [
          ['worker1', 'worker0', 'a'],
          ['worker2', 'worker0', 'b'],
        ],
        1,
      ),
    })
    const error = await explore({ workers: 3 }, body).catch((e: unknown) => e as Error)
    expect(error).toMatchObject({ code: 'ORDERS_DIFFER', order: expect.any(Number), decisions: expect.any(Array) })
    expect((error as Error).message).toMatch(/said\[[01]\] differs\n {2}expected (a|b|ab|ba)\n {2}got {6}(a|b|ab|ba)\n/)
    // It ends as a run that fails does, and its line repeats it: that order, held against the first one.
    const { replay: token, stack } = error as { replay?: string; stack?: string }
    expect(stack).toContain(`Repeat it, in front of the same test command: POSTGRAD_REPLAY=${token}`)
    const { of, variant } = decodeToken(token as string)
    process.env.POSTGRAD_REPLAY = encodeToken({ of: { ...(of as TestIdentity), run: (of as TestIdentity).run + 1 }, variant })
    const repeated = await explore({ workers: 3 }, body).catch((e: unknown) => e as Error)
    expect(repeated).toMatchObject({ code: 'ORDERS_DIFFER', order: 1, replay: process.env.POSTGRAD_REPLAY })
    delete process.env.POSTGRAD_REPLAY
    expect(await explore({ workers: 3, sameResult: false }, body)).toMatchObject({ exhausted: true, outcomes: 2 })
    // A value without bits hides none.
    const withFunction = async (sim: SimCluster) => ({ first: () => {}, ...(await body(sim)) })
    await expect(explore({ workers: 3 }, withFunction)).rejects.toMatchObject({ code: 'ORDERS_DIFFER' })
    expect(await explore({ workers: 3, sameResult: false }, withFunction)).toMatchObject({ exhausted: true, outcomes: 2 })
  })

  test('TK-65: results that differ leave a trace where one is asked for', async () => {
    const traceDir = mkdtempSync(join(tmpdir(), 'orders-'))
    try {
      const body = async (sim: SimCluster) => {
        const words = [
          ['worker1', 'worker0', 'a'],
          ['worker2', 'worker0', 'b'],
        ] as const
        return { said: await talk(sim, words, 1) }
      }
      for (const strategy of ['exhaustive', 'seeds', 'pct'] as const) {
        const error = await explore({ workers: 3, strategy, seeds: 50, traceDir, name: strategy }, body).catch((e: unknown) => e)
        const { stack, code } = error as PostgradError
        expect(code).toBe('ORDERS_DIFFER')
        const [, path] = /Trace: (.*\.txt), as a diagram/.exec(stack!)!
        expect(readFileSync(path!, 'utf8')).toContain('call hear')
        expect(stack!.trimEnd().match(/POSTGRAD_REPLAY=pg1/g)).toHaveLength(1)
      }
    } finally {
      rmSync(traceDir, { recursive: true })
    }
  })

  test('TK-5: a body that waits for what cannot come fails as in any simulation', async () => {
    await expect(explore({ workers: 2 }, () => new Promise(() => {}))).rejects.toMatchObject({ code: 'SIM_DEADLOCK', order: 1 })
  })
})

describe('what breaks the search', () => {
  test('TK-6: workers that share a variable are told of', async () => {
    const shared = async (sim: SimCluster) => {
      // worker0 and worker1 share this without messages: no search can know of it.
      let turns = ''
      const at = async (peer: string, word: string) => {
        await call(peer, hear, ['x'])
        turns += word
        if (turns.startsWith('b')) await call(peer, hear, ['y'])
      }
      await Promise.all([sim.on('worker0').run(at, 'worker2', 'a'), sim.on('worker1').run(at, 'worker3', 'b')])
    }
    await expect(explore({ workers: 4 }, shared)).rejects.toMatchObject({ code: 'ORDERS_MISSED' })
  })

  test('TK-6: what outlives a run, or comes from elsewhere, is told of', async () => {
    let runs = 0
    const body = async (sim: SimCluster) => {
      const word = runs++ === 1 ? 'z' : 'a'
      await talk(
        sim,
        [
          ['worker1', 'worker0', word],
          ['worker2', 'worker0', 'b'],
        ],
        1,
      )
    }
    await expect(explore({ workers: 3 }, body)).rejects.toMatchObject({ code: 'NOT_DETERMINISTIC', values: { order: 2 } })
  })
})

describe('too many orders', () => {
  const ring = (sim: SimCluster) =>
    talk(
      sim,
      [0, 1, 2].map((i) => [`worker${i}`, `worker${(i + 1) % 3}`, `${i}`] as const),
      3,
    )

  test('TK-7: the search stops at its bound and seeds go on; it says so', async () => {
    const found = await explore({ workers: 3, ordersMax: 40, seeds: 30, sameResult: false }, ring)
    expect(found).toMatchObject({ exhausted: false, runs: 70, drawn: 30 })
    expect(found.text).toMatch(/^explored \d+ orders of delivery, not all: 40 by search, the rest by 30 seeds \(70 runs/)
  })

  test('TK-7: a signal ends it between two runs, with what there is', async () => {
    const abort = new AbortController()
    const onProgress = ({ runs }: { runs: number }) => runs === 7 && abort.abort()
    const found = await explore({ workers: 3, signal: abort.signal, onProgress, sameResult: false }, ring)
    expect(found).toMatchObject({ exhausted: false, aborted: true, runs: 7, orders: 7 })
    expect(found.text).toMatch(/; aborted$/)
    expect(await explore({ workers: 3, signal: AbortSignal.abort() }, ring)).toMatchObject({ runs: 0, orders: 0, aborted: true })
  })

  test('TK-7: options that make no sense are refused', async () => {
    const worlds = [{ arrival: 'at-once' }, { overtaking: true }].map((world) => ({ world }))
    for (const options of [{ strategy: 'all' }, { ordersMax: -1 }, { seeds: 1.5 }, { depth: 0 }, ...worlds]) {
      await expect(explore({ workers: 2, ...(options as object) }, designNote)).rejects.toMatchObject({ code: 'INVALID_ARGUMENT' })
    }
  })
})
