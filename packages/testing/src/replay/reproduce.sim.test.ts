/** Runs that fail: that they shrink to what matters, and that the line that they print repeats them. */
import { afterEach, describe, expect, test } from '@jest/globals'
import { call, currentWorker, expose } from '@postgrad/rpc'
import { checkLiveness } from '../check/liveness.js'
import { explore } from '../explore/explore.js'
import { RACY_WORKERS, racy } from '../explore/racy.fixture.js'
import { randomFaults } from '../faults/fault-plan.js'
import { replayProgram, simulateProgram } from '../simulate/program-run.js'
import { type RunOptions, runSimulation, type SimCluster, type SimulateOptions, simulate } from '../simulate/simulate.js'
import { decodeToken, encodeToken } from './replay-token.js'
import { nextRun, shrinkTimeMs, testEnd, testLimitMs } from './run-identity.js'
import { choices } from './shrink.js'

/** A run of a variant, as a replay makes it. */
const repeated = <T>(options: RunOptions, body: (sim: SimCluster) => Promise<T>) =>
  runSimulation(options, body, ({ world }, main) => world.run(main))

const echo = (value: unknown) => value
expose({ 'reproduce.echo': echo })

const workers = RACY_WORKERS

interface Failure extends Error {
  readonly seed: number
  readonly replay: string
  readonly code?: string
}

async function failure(options: Partial<SimulateOptions>, body: (sim: SimCluster) => Promise<unknown> = racy): Promise<Failure | null> {
  return simulate({ workers, ...options }, body).then(
    () => null,
    (error: Failure) => error,
  )
}

/** The first seed under which it fails, with the error. */
async function firstFailure(options: Partial<SimulateOptions>, body: (sim: SimCluster) => Promise<unknown> = racy): Promise<Failure> {
  for (let seed = 0; seed < 200; seed++) {
    const error = await failure({ ...options, seed }, body)
    if (error !== null) return error
  }
  throw new Error('no seed fails')
}

afterEach(() => {
  delete process.env.POSTGRAD_REPLAY
})

const world = globalThis as unknown as Record<symbol, unknown>
/** Where jest keeps what it knows of the test that runs: in this realm, unless Node itself has loaded this file. */
const jestSymbol = (): symbol | undefined =>
  Object.getOwnPropertySymbols(world).find(({ description }) => description === 'JEST_STATE_SYMBOL')
const jestState = (): unknown => world[jestSymbol() ?? Symbol()]

/** What `fn` gives where jest says this; undefined: without jest. */
function withJestState<T>(state: unknown, fn: () => T): T {
  const symbol = jestSymbol()
  const kept = jestState()
  if (symbol !== undefined) delete world[symbol]
  const mine = symbol ?? Symbol('JEST_STATE_SYMBOL')
  if (state !== undefined) world[mine] = state
  try {
    return fn()
  } finally {
    delete world[mine]
    if (symbol !== undefined) world[symbol] = kept
  }
}

describe('replay', () => {
  test('TK-27 the error of a failed run ends in a line whose token repeats it: in front of the same command, in its place', async () => {
    const error = await firstFailure({})
    expect(error.stack).toMatch(/\(seed \d+\)\nRepeat it, in front of the same test command: POSTGRAD_REPLAY=pg1\./)
    const { of, variant } = decodeToken(error.replay)
    expect(of).toMatchObject({
      kind: 'test',
      file: 'reproduce.sim.test.js',
      name: expect.stringContaining('TK-27 the error of a failed run'),
    })
    // The seed says it all.
    expect(variant).toEqual({ seed: error.seed, decisions: null, faults: null })
    // The run after this many others of the same test, were the test run again.
    const { run } = of as { run: number }
    const again = encodeToken({ of: { ...of, run: run + 2 } as typeof of, variant })
    process.env.POSTGRAD_REPLAY = again
    expect(await failure({ seed: 0 }, async () => {})).toBeNull()
    const repeated = await failure({ seed: 1_000_000 })
    expect(repeated).toMatchObject({ message: error.message, seed: error.seed, replay: again })
    expect(await failure({ seed: 0 }, async () => {})).toBeNull()
  })

  test('TK-27 a token of another test, of a program, or what is none, is refused', async () => {
    const variant = { seed: 3, decisions: null, faults: null }
    process.env.POSTGRAD_REPLAY = encodeToken({ of: { kind: 'test', name: 'another test', file: 'other.test.js', run: 0 }, variant })
    const other = await failure({})
    expect(other).toMatchObject({ code: 'REPLAY_OTHER_TEST' })
    expect(other!.message).toMatch(/the test 'another test' of other\.test\.js, got the test 'replay TK-27 a token of another test/)
    const program = { kind: 'program', program: './p.js', export: 'main', options: {} } as const
    process.env.POSTGRAD_REPLAY = encodeToken({ of: program, variant })
    expect((await failure({}))!.message).toContain('postgrad replay <token>')
    for (const wrong of ['hello', 'pg1.00000000.abc', `${encodeToken({ of: program, variant })}x`, 'pg9.00000000.abc', 'pg1.']) {
      process.env.POSTGRAD_REPLAY = wrong
      expect(await failure({})).toMatchObject({ code: 'REPLAY_TOKEN_INVALID' })
    }
  })

  test('TK-27 a token holds what it is given, long lists in few bytes', () => {
    const decisions = [...new Array<number>(10_000).fill(0), 7, -3, ...new Array<number>(5000).fill(-1), 2]
    const faults = [{ frame: 'a→b CALL 3/1', action: 'drop', delayMs: 0, worker: 'b' }] as const
    const variant = { seed: -5, decisions, faults }
    const of = { kind: 'test', name: 'ü', file: '', run: 2 } as const
    const token = encodeToken({ of, variant })
    expect(decodeToken(token)).toEqual({ of, variant })
    expect(token.length).toBeLessThan(250)
  })
})

describe('programs', () => {
  const program = new URL('../explore/racy.fixture.js', import.meta.url)
  const options: SimulateOptions = {
    workers: RACY_WORKERS,
    rpcTimeoutMs: 9000,
    faults: [{ match: { kind: 'RESULT', nth: 2 }, do: 'delay' }],
  }

  test('TK-27 the run of a program’s function is repeated by its token alone, with its options and its shrunk order', async () => {
    let error: Failure | null = null
    for (let seed = 0; error === null; seed++) {
      error = await simulateProgram({ program, export: 'racy' }, { ...options, seed, shrink: { runs: 100, timeMs: 60_000 } }).then(
        () => null,
        (thrown: Failure) => thrown,
      )
    }
    expect(error.stack).toContain(`Repeat it: npx postgrad replay ${error.replay}`)
    const { of, variant } = decodeToken(error.replay)
    expect(of).toMatchObject({ kind: 'program', export: 'racy', options: { workers: RACY_WORKERS, rpcTimeoutMs: 9000 } })
    expect(variant.decisions).not.toBeNull()
    await expect(replayProgram(error.replay)).rejects.toMatchObject({ message: error.message, seed: error.seed })
    const passes = encodeToken({ of, variant: { ...variant, decisions: [] } })
    expect((await replayProgram(passes)).result).toHaveLength(3)
  })

  test('TK-27, TK-32 a program that is not the same twice is made twice again by its token', async () => {
    const error = await simulateProgram({ program, export: 'chancy' }, { workers: 2, twice: true }).then(
      () => null,
      (thrown: Failure) => thrown,
    )
    expect(error).toMatchObject({ code: 'NOT_DETERMINISTIC' })
    await expect(replayProgram(error!.replay)).rejects.toMatchObject({ code: 'NOT_DETERMINISTIC' })
  })

  test('TK-27 what is no program is refused; rules that are functions have no token', async () => {
    for (const wrong of [{ program, export: 'notAProgram' }, { program: './nowhere.js' }, { program }]) {
      await expect(simulateProgram(wrong, options)).rejects.toMatchObject({ code: 'PROGRAM_INVALID' })
    }
    const of = { kind: 'test', name: 'a test', file: '', run: 0 } as const
    const ofTest = encodeToken({ of, variant: { seed: 0, decisions: null, faults: null } })
    await expect(replayProgram(ofTest)).rejects.toMatchObject({ code: 'REPLAY_OTHER_TEST' })
    await expect(replayProgram('pg1')).rejects.toMatchObject({ code: 'REPLAY_TOKEN_INVALID' })
    let failed: Failure | null = null
    for (let seed = 0; failed === null; seed++) {
      failed = await simulateProgram({ program, export: 'racy' }, { ...options, seed, faults: [{ match: () => false, do: 'drop' }] }).then(
        () => null,
        (thrown: Failure) => thrown,
      )
    }
    expect(failed.replay).toBeUndefined()
    expect(failed.stack).toContain('its rules hold functions')
  })
})

describe('shrinking', () => {
  test('TK-28 a run whose order is wrong shrinks to the few decisions that make it so, and its token repeats that', async () => {
    const error = await firstFailure({ shrink: { runs: 500, timeMs: 60_000 } })
    expect(error.message).toBe('worker3 came first of 3')
    const [, runs, before, after] = /Shrunk in (\d+) runs: from (\d+) decisions and 0 faults to (\d+) decision/
      .exec(error.stack!)!
      .map(Number)
    expect(runs).toBeLessThan(500)
    expect(before).toBeGreaterThan(10)
    expect(after).toBeLessThanOrEqual(6)
    const { variant } = decodeToken(error.replay)
    expect(choices(variant.decisions)).toBe(after)
    const again = await repeated({ workers, variant }, racy).catch((repeated: Error) => repeated.message)
    expect(again).toBe(error.message)
  })

  test('TK-28 of the faults those are left without which it does not fail', async () => {
    // Wrong only if the message with which worker1 arrives is lost twice.
    const body = (sim: SimCluster) =>
      sim.on('worker0').run(async () => {
        for (let i = 0; i < 5; i++) await call('worker2', echo, [i])
        const startMs = currentWorker().clock.now()
        await call('worker1', echo, ['slow'], { timeoutMs: 60_000 })
        if (currentWorker().clock.now() - startMs >= 150) throw new RangeError(`it took ${currentWorker().clock.now() - startMs} ms`)
      })
    const faults = randomFaults({ crashes: 0, restarts: 0, partitions: 2, drop: 0.5 })
    const error = await firstFailure({ faults, shrink: { runs: 500, timeMs: 60_000 } }, body)
    const { variant } = decodeToken(error.replay)
    expect(error.stack).toMatch(/Shrunk in \d+ runs: from \d+ decisions and [1-9]\d* faults to \d+ decisions? and [1-4] faults?/)
    expect(error.stack).toMatch(/These faults .*:\n {2}1\. (drop|delay) at worker[01]→worker[01] (CALL|RESULT) 1/)
    expect(variant.faults?.length).toBeLessThanOrEqual(4)
    const run = repeated({ workers, faults, variant }, body)
    await expect(run).rejects.toThrow('it took')
  })

  test('TK-28 it ends at its bounds, keeps to the same failure, and is left out when it is not wanted', async () => {
    let runs = 0
    const body = async (sim: SimCluster) => {
      runs++
      await racy(sim)
    }
    const bounded = await firstFailure({ shrink: { runs: 7 } }, body)
    const { seed } = bounded
    expect(bounded.stack).toContain('in 7 runs, and then stopped by its bounds')
    runs = 0
    await failure({ seed, shrink: false }, body)
    expect(runs).toBe(1)
    await failure({ seed }, body)
    expect(runs).toBe(2)
    // A run that fails in another way does not count as smaller: every second one does so.
    let turn = 0
    const fickle = async (sim: SimCluster) => {
      await racy(sim).catch((error: Error) => {
        throw turn++ % 2 === 0 ? error : new TypeError('something else')
      })
    }
    expect(await failure({ seed, shrink: { runs: 30 } }, fickle)).toMatchObject({ message: 'worker3 came first of 3' })
  })

  test('TK-28 a failure in the default order without faults has nothing to shrink, and nothing is said of it', async () => {
    const fails = (sim: SimCluster) => sim.on('worker0').run(() => Promise.reject(new RangeError('always')))
    const error = await failure({ seed: 1, faults: randomFaults({ crashes: 0, restarts: 0, partitions: 0, drop: 0 }) }, fails)
    expect(error).toMatchObject({ message: 'always', stack: expect.stringContaining('POSTGRAD_REPLAY=') })
    expect(error?.stack).not.toMatch(/shrunk/i)
  })

  test('TK-28 a test in which no time is left says so', async () => {
    const error = await firstFailure({ shrink: { timeMs: 0 } })
    expect(error.stack).toMatch(/Not shrunk, since no time was left to the test: \d+ decisions/)
  })

  test('TK-28 by default it ends before the timeout of the test does', () => {
    const identity = nextRun('timed')
    expect(withJestState(jestState() ?? { currentlyRunningTest: { timeout: 7_777 } }, testLimitMs)).toBe(7_777)
    expect(shrinkTimeMs(identity)).toBeLessThanOrEqual(5000)
    expect(shrinkTimeMs(identity)).toBeGreaterThan(0)
    const left = shrinkTimeMs(identity, 5000)
    expect(left).toBeLessThanOrEqual(3500)
    expect(shrinkTimeMs(identity, 1e-6)).toBe(0)
    expect(shrinkTimeMs(identity, Number.POSITIVE_INFINITY)).toBe(5000)
  }, 7_777)

  test('TK-28 where no test runner says a timeout there is none: a script that has run for long has its failures shrunk as well', () => {
    const identity = nextRun('in a script')
    expect(withJestState(undefined, testLimitMs)).toBe(Number.POSITIVE_INFINITY)
    expect(withJestState(undefined, () => shrinkTimeMs(identity))).toBe(5000)
    expect(withJestState({ testTimeout: 0 }, testLimitMs)).toBe(Number.POSITIVE_INFINITY)
    expect(withJestState({ testTimeout: 50 }, testLimitMs)).toBe(50)
  })

  test('TK-89 an exploration with too many orders ends before its test does, and says how far it came', async () => {
    const body = (sim: SimCluster) =>
      Promise.all(workers.map((from) => sim.on(from).run(() => Promise.all(workers.map((to) => call(to, echo, [1]))))))
    const explored = () => explore({ workers, ordersMax: 1e9 }, body)
    const startMs = performance.now()
    const error = await withJestState({ testTimeout: 1000 }, explored).then(String, (thrown: Failure) => thrown)
    expect(performance.now() - startMs).toBeLessThan(1000)
    expect(error).toMatchObject({ code: 'RUN_TIMEOUT', values: { timeoutMs: 1000, runs: expect.any(Number) } })
    expect((error as Failure).message).toMatch(
      /^explore: not all orders are run, and the test's timeout of 1000 ms is almost over: \d+ runs so far, \d+ different orders\. Pass the test a longer timeout/,
    )
    // It is not the failure of a run, which could be repeated.
    expect((error as Failure).stack).not.toContain('POSTGRAD_REPLAY')
  })

  test('TK-89 the time of a test begins again with each attempt, and tests that run at the same time have none', () => {
    const state = (more: object) => ({ currentlyRunningTest: { timeout: 1000, ...more } })
    const ends = (more: object) => withJestState(state(more), () => testEnd(nextRun('attempts')))
    const first = ends({ invocations: 1 })
    expect(first.limitMs).toBe(1000)
    for (let spin = performance.now(); performance.now() < spin + 2; );
    expect(ends({ invocations: 1 })).toEqual(first)
    expect(ends({ invocations: 2 }).endMs).toBeGreaterThan(first.endMs)
    expect(ends({ concurrent: true })).toEqual({ endMs: Number.POSITIVE_INFINITY, limitMs: Number.POSITIVE_INFINITY })
  })

  test('TK-28 liveness runs shrink as well, by default since their faults are drawn', async () => {
    const never = async (sim: SimCluster) => {
      await sim.on('worker0').run(() => call('worker1', echo, [1], { timeoutMs: 0 }))
      await new Promise(() => {})
    }
    const error = await checkLiveness({ workers, seed: 5, faultsEndMs: 100, withinMs: 1000 }, never).catch((thrown: Failure) => thrown)
    expect(error).toMatchObject({ code: 'LIVENESS_VIOLATED' })
    const { variant } = decodeToken((error as Failure).replay)
    expect(choices(variant.decisions)).toBe(0)
    expect((error as Failure).stack).toMatch(/to 0 decisions and 0 faults/)
  })
})
