/** Tests the rules of SPEC.md with children that the test controls, on a clock that it moves by hand. */
import { describe, expect, test } from '@jest/globals'
import { isPostgradError, type PostgradError } from '@postgrad/base'
import fc from 'fast-check'
import { HandClock, settle } from './hand-clock.fixture.js'
import { type Child, type ChildSpec, type Exit, type Restart, type Strategy, Supervisor, type SupervisorOptions } from './supervisor.js'

class TestChild implements Child {
  readonly exited: Promise<Exit>
  hasEnded = false
  private readonly house: House
  private readonly name: string
  private settle!: (exit: Exit) => void

  constructor(house: House, name: string) {
    this.house = house
    this.name = name
    this.exited = new Promise((resolve) => {
      this.settle = resolve
    })
  }

  end(exit: Exit): void {
    if (this.hasEnded) return
    this.hasEnded = true
    this.house.living--
    this.settle(exit)
  }

  stop(deadlineMs: number): void {
    this.house.log.push(`stop ${this.name}`)
    this.house.deadlines.push(deadlineMs)
    const { stopMs } = this.house.plan(this.name)
    if (stopMs === 0) this.end({ normal: true })
    else if (stopMs !== Number.POSITIVE_INFINITY) this.house.clock.setTimer(stopMs, () => this.end({ normal: true }))
  }

  kill(): void {
    this.house.log.push(`kill ${this.name}`)
    this.end({ normal: false, reason: new Error('killed') })
  }
}

interface Plan {
  startMs: number
  stopMs: number
  /** How many of the next starts fail. */
  failures: number
}

/** Shared by all children of a test: their log, their clock, and a plan for each of them. */
class House {
  readonly clock = new HandClock()
  readonly log: string[] = []
  readonly deadlines: number[] = []
  readonly current = new Map<string, TestChild>()
  living = 0
  /** Starts under a name that was running. */
  doubles = 0
  private readonly plans = new Map<string, Plan>()

  plan(name: string): Plan {
    let plan = this.plans.get(name)
    if (plan === undefined) {
      plan = { startMs: 0, stopMs: 0, failures: 0 }
      this.plans.set(name, plan)
    }
    return plan
  }

  spec(name: string, options: Partial<ChildSpec> = {}): ChildSpec<TestChild> {
    const start = async () => {
      const plan = this.plan(name)
      this.log.push(`start ${name}`)
      if (plan.startMs > 0) await new Promise<void>((resolve) => this.clock.setTimer(plan.startMs, resolve))
      if (plan.failures > 0) {
        plan.failures--
        this.log.push(`fail ${name}`)
        throw new Error(`${name} cannot start`)
      }
      if (this.current.get(name)?.hasEnded === false) this.doubles++
      const child = new TestChild(this, name)
      this.current.set(name, child)
      this.living++
      return child
    }
    return { ...options, name, start }
  }

  supervisor(strategy: Strategy, names: string, options: Partial<SupervisorOptions<TestChild>> & { restart?: Restart } = {}) {
    const { restart, ...rest } = options
    const children = [...names].map((name) => this.spec(name, restart === undefined ? {} : { restart }))
    return new Supervisor({ clock: this.clock, strategy, intensity: 3, periodMs: 1000, ...rest, children })
  }

  /** The entries of the log since the last call. */
  async said(): Promise<string[]> {
    await this.clock.pass(0)
    return this.log.splice(0)
  }

  async crash(name: string): Promise<string[]> {
    this.current.get(name)!.end({ normal: false, reason: new Error(`${name} crashed`) })
    return await this.said()
  }

  async finish(name: string): Promise<string[]> {
    this.current.get(name)!.end({ normal: true })
    return await this.said()
  }
}

async function rejection(promise: Promise<unknown>): Promise<PostgradError> {
  try {
    await promise
  } catch (error) {
    return error as PostgradError
  }
  throw new Error('expected a rejection')
}

describe('back-off and what nobody else hears', () => {
  /** When each start was, in ms. */
  async function starts(house: House, name: string, ms: number): Promise<number[]> {
    const at: number[] = []
    for (const untilMs = house.clock.nowMs + ms; house.clock.nowMs < untilMs; ) {
      await house.clock.pass(1)
      for (const word of house.log.splice(0)) if (word === `start ${name}`) at.push(house.clock.nowMs)
    }
    return at
  }

  test('SUP-16 a restart waits minBackoffMs, twice as long each time, at most maxBackoffMs; after a child has run for a period, it is minBackoffMs again', async () => {
    const house = new House()
    const supervisor = house.supervisor('one-for-one', 'ab', { intensity: 100, periodMs: 1000, minBackoffMs: 10, maxBackoffMs: 50 })
    await supervisor.start()
    await house.said()
    const waits: number[] = []
    for (let i = 0; i < 5; i++) {
      await house.crash('a')
      const sinceMs = house.clock.nowMs
      expect(supervisor.child('a')).toBeUndefined()
      waits.push((await starts(house, 'a', 60))[0]! - sinceMs)
    }
    expect(waits).toEqual([10, 20, 40, 50, 50])
    // Its neighbour waits by its own count.
    await house.crash('b')
    expect((await starts(house, 'b', 60)).length).toBe(1)
    await house.clock.pass(1000)
    const sinceMs = house.clock.nowMs
    await house.crash('a')
    expect((await starts(house, 'a', 60))[0]! - sinceMs).toBe(10)
    await supervisor.stop()
    expect(house.clock.timers).toBe(0)
  })

  test('SUP-16 starts that fail are held back too, and count; without the option nothing waits', async () => {
    const house = new House()
    const supervisor = house.supervisor('one-for-one', 'a', { intensity: 3, periodMs: 10_000, minBackoffMs: 100 })
    await supervisor.start()
    house.plan('a').failures = 9
    await house.crash('a')
    expect(await starts(house, 'a', 2000)).toEqual([100, 300, 700])
    expect(((await supervisor.exited).reason as PostgradError).code).toBe('SUPERVISOR_GAVE_UP')
    const hasty = new House()
    const other = hasty.supervisor('one-for-one', 'a', { intensity: 60 })
    await other.start()
    for (let i = 0; i < 50; i++) await hasty.crash('a')
    expect([hasty.clock.nowMs, other.restarts]).toEqual([0, 50])
    await other.stop()
  })

  test('SUP-16 of several that are bound, all wait for the one that ended; the rest goes on, and so do changes by hand and the end', async () => {
    for (const strategy of ['one-for-all', 'rest-for-one'] as const) {
      const house = new House()
      const supervisor = house.supervisor(strategy, 'abc', { intensity: 9, minBackoffMs: 100 })
      await supervisor.start()
      await house.said()
      expect(await house.crash('b')).toEqual(strategy === 'one-for-all' ? ['stop c', 'stop a'] : ['stop c'])
      await supervisor.add(house.spec('d'))
      expect(await house.said()).toEqual(['start d'])
      await house.clock.pass(99)
      expect(await house.said()).toEqual([])
      await house.clock.pass(1)
      expect(await house.said()).toEqual(strategy === 'one-for-all' ? ['start a', 'start b', 'start c'] : ['start b', 'start c'])
      await house.crash('b')
      await supervisor.restart('b')
      await house.clock.pass(5000)
      await house.said()
      expect(house.doubles).toBe(0)
      await house.crash('b')
      await supervisor.remove('b')
      await house.clock.pass(5000)
      expect(house.living).toBe(strategy === 'one-for-all' ? 3 : 3)
      await house.crash('c')
      await supervisor.stop()
      expect([house.living, house.clock.timers]).toEqual([0, 0])
      await house.clock.pass(5000)
      expect((await house.said()).filter((word) => word.startsWith('start c')).length).toBe(0)
    }
  })

  test('SUP-16 randomFactor makes a wait longer by a part that `random` draws', async () => {
    const house = new House()
    const draws = [0, 0.5]
    const supervisor = house.supervisor('one-for-one', 'a', {
      intensity: 9,
      minBackoffMs: 100,
      randomFactor: 0.2,
      random: () => draws.shift()!,
    })
    await supervisor.start()
    await house.said()
    for (const waitMs of [100, 220]) {
      await house.crash('a')
      await house.clock.pass(waitMs - 1)
      expect(await house.said()).toEqual([])
      await house.clock.pass(1)
      expect(await house.said()).toEqual(['start a'])
    }
    await supervisor.stop()
  })

  test('SUP-16 what is no time, or no part, is refused', () => {
    const house = new House()
    const codes = [
      { minBackoffMs: -1 },
      { minBackoffMs: Number.POSITIVE_INFINITY },
      { minBackoffMs: 10, maxBackoffMs: 5 },
      { maxBackoffMs: Number.NaN },
      { randomFactor: 2 },
    ].map((options) => {
      try {
        house.supervisor('one-for-one', 'a', options)
        return 'none'
      } catch (error) {
        return (error as PostgradError).code
      }
    })
    expect(codes).toEqual(['TIMEOUT_INVALID', 'INVALID_ARGUMENT', 'INVALID_ARGUMENT', 'TIMEOUT_INVALID', 'INVALID_ARGUMENT'])
  })

  test('SUP-17 a child that is asked to end and ends by an error, or must be killed, is told of; one that is killed at once is not', async () => {
    const house = new House()
    const told: string[] = []
    const children = [house.spec('a'), house.spec('b', { shutdownMs: 10 }), house.spec('c', { shutdownMs: 0 }), house.spec('d')]
    const onBadStop = (name: string, { reason }: Exit) => told.push(`${name}: ${(reason as Error).message}`)
    const supervisor = new Supervisor({ clock: house.clock, children, onBadStop })
    await supervisor.start()
    for (const name of 'ab') house.plan(name).stopMs = Number.POSITIVE_INFINITY
    const stopped = supervisor.stop()
    await house.clock.pass(10)
    house.current.get('a')!.end({ normal: false, reason: new Error('could not save') })
    await stopped
    expect(told).toEqual(['b: killed', 'a: could not save'])
  })

  test('SUP-18 a child that does not come back is told so once, with the reason', async () => {
    const house = new House()
    const told: string[] = []
    const spec = (name: string, restart: Restart) =>
      house.spec(name, {
        restart,
        onGone: (exit) => told.push(`${name} ${exit === null ? 'taken' : exit.normal ? 'normal' : (exit.reason as Error).message}`),
      })
    const children = [spec('p', 'permanent'), spec('t', 'transient'), spec('x', 'temporary'), spec('y', 'temporary')]
    const supervisor = new Supervisor({ clock: house.clock, intensity: 9, strategy: 'one-for-all', children })
    await supervisor.start()
    await house.finish('t')
    await house.crash('x')
    expect(told.splice(0)).toEqual(['t normal', 'x x crashed'])
    // It comes back with the others, the temporary one does not.
    await house.crash('p')
    expect(told.splice(0)).toEqual(['y taken'])
    house.plan('t').failures = 1
    await supervisor.restart('t').catch(() => {})
    await supervisor.remove('p')
    expect(told).toEqual(['t t cannot start', 'p taken'])
    await supervisor.stop()
  })
})

describe('Supervisor', () => {
  test('SUP-1 children start in order, each when the one before it has started', async () => {
    const house = new House()
    house.plan('a').startMs = 10
    const supervisor = house.supervisor('one-for-one', 'abc')
    const started = supervisor.start()
    await house.clock.pass(9)
    expect(house.log).toEqual(['start a'])
    expect(supervisor.child('a')).toBeUndefined()
    await house.clock.pass(1)
    await started
    expect(house.log).toEqual(['start a', 'start b', 'start c'])
    expect(supervisor.child('b')).toBe(house.current.get('b'))
    expect(supervisor.names).toEqual(['a', 'b', 'c'])
    expect((await rejection(supervisor.start())).code).toBe('SUPERVISOR_NOT_RUNNING')
  })

  test('SUP-2 a start that fails stops those that had started, in reverse order, and ends the supervisor', async () => {
    const house = new House()
    house.plan('c').failures = 1
    const supervisor = house.supervisor('one-for-all', 'abcd')
    const error = await rejection(supervisor.start())
    expect(error.code).toBe('SUPERVISOR_START_FAILED')
    expect(error.values).toEqual({ child: 'c' })
    expect((error.cause as Error).message).toBe('c cannot start')
    expect(house.log).toEqual(['start a', 'start b', 'start c', 'fail c', 'stop b', 'stop a'])
    expect(await supervisor.exited).toEqual({ normal: false, reason: error })
    expect(house.living).toBe(0)
  })

  test('SUP-3 permanent children are restarted whatever their end, transient ones after a crash, temporary ones never', async () => {
    const house = new House()
    const children = [
      house.spec('p', { restart: 'permanent' }),
      house.spec('t', { restart: 'transient' }),
      house.spec('x', { restart: 'temporary' }),
    ]
    const supervisor = new Supervisor({ clock: house.clock, intensity: 10, children })
    await supervisor.start()
    house.log.length = 0
    expect(await house.finish('p')).toEqual(['start p'])
    expect(await house.crash('p')).toEqual(['start p'])
    expect(await house.crash('t')).toEqual(['start t'])
    expect(await house.finish('t')).toEqual([])
    expect(supervisor.child('t')).toBeUndefined()
    expect(await house.crash('x')).toEqual([])
    expect(supervisor.names).toEqual(['p', 't'])
    expect(supervisor.restarts).toBe(3)
    await supervisor.stop()
    expect(house.log).toEqual(['stop p'])
  })

  test('SUP-4 one-for-one restarts the one that ended', async () => {
    const house = new House()
    const supervisor = house.supervisor('one-for-one', 'abc')
    await supervisor.start()
    house.log.length = 0
    expect(await house.crash('b')).toEqual(['start b'])
  })

  test('SUP-5 one-for-all stops the others in reverse order and starts all in order', async () => {
    const house = new House()
    const supervisor = house.supervisor('one-for-all', 'abc')
    await supervisor.start()
    house.log.length = 0
    expect(await house.crash('b')).toEqual(['stop c', 'stop a', 'start a', 'start b', 'start c'])
  })

  test('SUP-6 rest-for-one does so with those behind it', async () => {
    const house = new House()
    const supervisor = house.supervisor('rest-for-one', 'abcd')
    await supervisor.start()
    house.log.length = 0
    expect(await house.crash('b')).toEqual(['stop d', 'stop c', 'start b', 'start c', 'start d'])
  })

  test('SUP-7 a temporary child that goes with others does not come back; a transient one that had finished does', async () => {
    const house = new House()
    const children = [house.spec('a'), house.spec('x', { restart: 'temporary' }), house.spec('t', { restart: 'transient' })]
    const supervisor = new Supervisor({ clock: house.clock, strategy: 'one-for-all', intensity: 5, children })
    await supervisor.start()
    await house.finish('t')
    house.log.length = 0
    expect(await house.crash('a')).toEqual(['stop x', 'start a', 'start t'])
    expect(supervisor.names).toEqual(['a', 't'])
  })

  test('SUP-8 one restart more than `intensity` within `periodMs` ends it: all stop in reverse order, the last end is the cause', async () => {
    const house = new House()
    const supervisor = house.supervisor('one-for-one', 'ab', { intensity: 2, periodMs: 1000 })
    await supervisor.start()
    await house.crash('b')
    await house.clock.pass(1001)
    await house.crash('b')
    await house.clock.pass(400)
    await house.crash('b')
    await house.clock.pass(600)
    expect(supervisor.restarts).toBe(2)
    house.log.length = 0
    expect(await house.crash('b')).toEqual(['stop a'])
    const { normal, reason } = await supervisor.exited
    expect(normal).toBe(false)
    expect(isPostgradError(reason, 'SUPERVISOR_GAVE_UP')).toBe(true)
    expect((reason as PostgradError).values).toEqual({ child: 'b', intensity: 2, periodMs: 1000 })
    expect((reason as Error).cause).toMatchObject({ message: 'b crashed' })
    expect((await rejection(supervisor.add(house.spec('c')))).code).toBe('SUPERVISOR_NOT_RUNNING')
  })

  test('SUP-9 a restart that fails counts, and is tried again in a later turn', async () => {
    const house = new House()
    const supervisor = house.supervisor('one-for-one', 'ab', { intensity: 3 })
    await supervisor.start()
    house.plan('a').failures = 2
    house.log.length = 0
    expect(await house.crash('a')).toEqual(['start a', 'fail a', 'start a', 'fail a', 'start a'])
    expect(supervisor.restarts).toBe(3)
    house.plan('b').failures = 1
    expect(await house.crash('b')).toEqual(['stop a'])
    expect(await supervisor.exited).toMatchObject({ normal: false, reason: { code: 'SUPERVISOR_GAVE_UP', values: { child: 'b' } } })
  })

  test('SUP-9 those behind a start that fails wait for it; those that had started before it stay, unless all are bound to it', async () => {
    const rest = new House()
    const supervisor = rest.supervisor('rest-for-one', 'abc')
    await supervisor.start()
    rest.log.length = 0
    rest.plan('b').failures = 1
    expect(await rest.crash('a')).toEqual(['stop c', 'stop b', 'start a', 'start b', 'fail b', 'start b', 'start c'])

    const all = new House()
    const other = all.supervisor('one-for-all', 'abc')
    await other.start()
    all.log.length = 0
    all.plan('b').failures = 1
    expect(await all.crash('a')).toEqual(['stop c', 'stop b', 'start a', 'start b', 'fail b', 'stop a', 'start a', 'start b', 'start c'])
  })

  test('SUP-10 stop is in reverse order, each when the one behind it has ended', async () => {
    const house = new House()
    house.plan('c').stopMs = 20
    const supervisor = house.supervisor('one-for-one', 'abc')
    await supervisor.start()
    house.log.length = 0
    const stopped = supervisor.stop()
    await house.clock.pass(19)
    expect(house.log).toEqual(['stop c'])
    await house.clock.pass(1)
    await stopped
    await supervisor.stop()
    expect(house.log).toEqual(['stop c', 'stop b', 'stop a'])
    expect(await supervisor.exited).toEqual({ normal: true })
    expect(house.clock.timers).toBe(0)
  })

  test('SUP-11 who has no limit is waited for as long as it takes', async () => {
    const house = new House()
    house.plan('a').stopMs = 1_000_000
    const supervisor = new Supervisor({ clock: house.clock, children: [house.spec('a', { shutdownMs: Number.POSITIVE_INFINITY })] })
    await supervisor.start()
    const stopped = supervisor.stop()
    await house.clock.pass(999_999)
    expect([house.living, house.deadlines]).toEqual([1, [Number.POSITIVE_INFINITY]])
    await house.clock.pass(1)
    await stopped
    expect([house.living, await house.said()]).toEqual([0, ['start a', 'stop a']])
  })

  test('SUP-11 who has not ended after its `shutdownMs` is killed; 0 kills at once', async () => {
    const house = new House()
    for (const name of 'abc') house.plan(name).stopMs = Number.POSITIVE_INFINITY
    const children = [house.spec('a', { shutdownMs: 30 }), house.spec('b', { shutdownMs: 0 }), house.spec('c')]
    const supervisor = new Supervisor({ clock: house.clock, children })
    await supervisor.start()
    house.log.length = 0
    const stopped = supervisor.stop()
    await house.clock.pass(4999)
    expect(house.log).toEqual(['stop c'])
    await house.clock.pass(1)
    expect(house.log).toEqual(['stop c', 'kill c', 'kill b', 'stop a'])
    await house.clock.pass(30)
    await stopped
    expect(house.log.slice(4)).toEqual(['kill a'])
    expect(house.deadlines).toEqual([5000, 30])
  })

  test('SUP-11 who cannot be asked is killed', async () => {
    const house = new House()
    const made = house.spec('a')
    const spec = {
      ...made,
      start: async () =>
        Object.assign(await made.start(), {
          stop: () => {
            throw new Error('its worker is gone')
          },
        }),
    }
    const supervisor = new Supervisor({ clock: house.clock, children: [spec] })
    await supervisor.start()
    await supervisor.stop()
    expect(house.log).toEqual(['start a', 'kill a'])
  })

  test('SUP-12 a child that ends by itself while others are stopped is not restarted twice', async () => {
    const house = new House()
    house.plan('c').stopMs = 10
    const supervisor = house.supervisor('one-for-all', 'abc')
    await supervisor.start()
    house.log.length = 0
    await house.crash('b')
    expect(house.log.splice(0)).toEqual([])
    await house.crash('a')
    await house.clock.pass(10)
    expect(house.log).toEqual(['start a', 'start b', 'start c'])
    expect(supervisor.restarts).toBe(1)
    expect(house.living).toBe(3)
  })

  test('SUP-12 one that ends while others are started is restarted behind that', async () => {
    const house = new House()
    house.plan('a').startMs = 10
    const supervisor = house.supervisor('one-for-one', 'ab')
    void supervisor.start()
    await house.clock.pass(10)
    house.log.length = 0
    expect(await house.crash('a')).toEqual(['start a'])
    expect(await house.crash('b')).toEqual([])
    expect(supervisor.child('b')).toBeUndefined()
    await house.clock.pass(10)
    expect(house.log).toEqual(['start b'])
    expect(supervisor.child('a')).toBeDefined()
    expect(supervisor.child('b')).toBeDefined()
    expect(supervisor.restarts).toBe(2)
  })

  test('SUP-13 stop waits for a start that is under way, starts nothing behind it, and stops what it gave', async () => {
    const house = new House()
    house.plan('a').startMs = 10
    const supervisor = house.supervisor('one-for-one', 'ab')
    const started = supervisor.start()
    await settle()
    const stopped = supervisor.stop()
    await house.clock.pass(10)
    expect((await rejection(started)).code).toBe('SUPERVISOR_NOT_RUNNING')
    await stopped
    expect(house.log).toEqual(['start a', 'stop a'])
  })

  test('SUP-20 a start may await changes of other children: they are a part of its turn, and what ends meanwhile has its turn after it', async () => {
    for (const strategy of ['one-for-one', 'rest-for-one', 'one-for-all'] as const) {
      const house = new House()
      const within: string[] = []
      const supervisor: Supervisor<TestChild> = new Supervisor({
        clock: house.clock,
        strategy,
        intensity: 3,
        children: [
          house.spec('a'),
          {
            ...house.spec('b'),
            start: async () => {
              if (house.current.has('b') && within.length === 0) {
                await supervisor.restart('a')
                await supervisor.add(house.spec('d'))
                await supervisor.remove('c')
                house.current.get('a')!.end({ normal: false })
                within.push((await rejection(supervisor.restart('b'))).code, (await rejection(supervisor.remove('b'))).code)
                // Not awaited: the turn waits for it all the same.
                void supervisor.restart('d').then(() => within.push('d'))
              }
              return house.spec('b').start()
            },
          },
          house.spec('c'),
        ],
      })
      await supervisor.start()
      await house.said()
      await house.crash('b')
      await house.said()
      expect(within.slice(0, 3)).toEqual(['CHILD_STARTING', 'CHILD_STARTING', 'd'])
      expect(supervisor.names).toEqual(['a', 'b', 'd'])
      for (const name of supervisor.names) expect(supervisor.child(name)).toBe(house.current.get(name))
      expect(house.doubles).toBe(0)
      expect(house.living).toBe(3)
      // The turn is over: what its code asks for later waits its own.
      await supervisor.restart('b').catch(() => {})
      await supervisor.stop()
      expect(house.living).toBe(0)
    }
  })

  /** A program that asks for a change and does not wait for it, so many ticks later. */
  const ticks = async (count: number): Promise<void> => {
    for (let i = 0; i < count; i++) await null
  }

  test('SUP-12, SUP-20 a change that a start asks for and does not await never meets another start, whenever it comes', async () => {
    for (const from of ['start', 'stop']) {
      for (let i = 0; i < 40; i++) {
        const [after, until] = [i >> 2, i & 3]
        const house = new House()
        const failed: string[] = []
        let asks = false
        const ask = async () => {
          if (!asks) return
          asks = false
          await ticks(after)
          await supervisor.restart('c').catch((error: PostgradError) => failed.push(error.code))
        }
        const start = async (name: string) => {
          if (name === 'b' && from === 'start') void ask()
          await ticks(until)
          const child = await house.spec(name).start()
          const { stop } = child
          child.stop = (deadlineMs) => {
            if (name === 'b' && from === 'stop') void ask()
            stop.call(child, deadlineMs)
          }
          return child
        }
        const children = ['a', 'b', 'c'].map((name) => ({ ...house.spec(name), start: () => start(name) }))
        const supervisor: Supervisor<TestChild> = new Supervisor({ clock: house.clock, strategy: 'one-for-all', intensity: 3, children })
        await supervisor.start()
        asks = true
        house.current.get('a')!.end({ normal: false })
        await house.said()
        await supervisor.settled()
        const { doubles, living } = house
        expect({ from, after, until, failed, doubles, living }).toEqual({ from, after, until, failed: [], doubles: 0, living: 3 })
        for (const name of supervisor.names) expect(supervisor.child(name)).toBe(house.current.get(name))
        await supervisor.stop()
        expect(house.living).toBe(0)
      }
    }
  })

  test('SUP-20 what a start awaits while the supervisor starts is not started once more', async () => {
    const house = new House()
    const supervisor: Supervisor<TestChild> = new Supervisor({
      clock: house.clock,
      children: [
        {
          ...house.spec('a'),
          start: async () => {
            await supervisor.restart('b')
            await supervisor.add(house.spec('d'))
            await supervisor.remove('c')
            return house.spec('a').start()
          },
        },
        house.spec('b'),
        house.spec('c'),
      ],
    })
    await supervisor.start()
    expect(await house.said()).toEqual(['start b', 'start d', 'start a'])
    expect(supervisor.names).toEqual(['a', 'b', 'd'])
    expect([house.living, house.doubles]).toEqual([3, 0])
    await supervisor.stop()
    expect(house.living).toBe(0)
  })

  test('SUP-13 nor does a restart by hand start anything when it is stopped meanwhile', async () => {
    const house = new House()
    house.plan('a').stopMs = 10
    const supervisor = house.supervisor('one-for-one', 'ab')
    await supervisor.start()
    await house.said()
    const restarted = rejection(supervisor.restart('a'))
    await settle()
    const stopped = supervisor.stop()
    await house.clock.pass(10)
    expect((await restarted).code).toBe('SUPERVISOR_NOT_RUNNING')
    await stopped
    expect(house.log).toEqual(['stop a', 'stop b'])
    expect(house.living).toBe(0)
  })

  test('SUP-13 nor does a recovery that is under way when it is stopped', async () => {
    const house = new House()
    house.plan('b').stopMs = 10
    const supervisor = house.supervisor('one-for-all', 'ab')
    await supervisor.start()
    await house.said()
    expect(await house.crash('a')).toEqual(['stop b'])
    const stopped = supervisor.stop()
    await house.clock.pass(10)
    await stopped
    expect(await supervisor.exited).toEqual({ normal: true })
    expect(await house.said()).toEqual([])
    expect(house.living).toBe(0)
  })

  test('SUP-12 a child that ends before its supervisor is stopped, and has its turn behind that, is no reason to give up', async () => {
    const house = new House()
    house.plan('b').stopMs = 10
    const supervisor = house.supervisor('one-for-one', 'ab', { intensity: 0 })
    await supervisor.start()
    const restarted = rejection(supervisor.restart('b'))
    await settle()
    await house.crash('a')
    const stopped = supervisor.stop()
    await house.clock.pass(10)
    await stopped
    expect((await restarted).code).toBe('SUPERVISOR_NOT_RUNNING')
    expect(await supervisor.exited).toEqual({ normal: true })
  })

  test('SUP-14 children can be added, removed and restarted by hand, which does not count', async () => {
    const house = new House()
    const supervisor = house.supervisor('rest-for-one', 'ab', { intensity: 0 })
    expect((await rejection(supervisor.add(house.spec('c')))).code).toBe('SUPERVISOR_NOT_RUNNING')
    await supervisor.start()
    house.log.length = 0
    expect(await supervisor.add(house.spec('c'))).toBe(house.current.get('c'))
    expect((await rejection(supervisor.add(house.spec('c')))).code).toBe('CHILD_NAME_TAKEN')
    expect(await supervisor.restart('a')).toBe(house.current.get('a'))
    await supervisor.remove('b')
    expect(house.log).toEqual(['start c', 'stop a', 'start a', 'stop b'])
    expect(supervisor.names).toEqual(['a', 'c'])
    expect((await rejection(supervisor.remove('b'))).code).toBe('UNKNOWN_CHILD')
    expect(() => supervisor.child('b')).toThrow("expected one of the children 'a', 'c', got 'b'")
    house.plan('d').failures = 1
    expect((await rejection(supervisor.add(house.spec('d')))).message).toBe('d cannot start')
    house.plan('a').failures = 1
    expect((await rejection(supervisor.restart('a'))).message).toBe('a cannot start')
    expect(supervisor.names).toEqual(['a', 'c'])
    expect(supervisor.child('a')).toBeUndefined()
    expect(await supervisor.restart('a')).toBe(house.current.get('a'))
    expect(supervisor.restarts).toBe(0)
  })

  test('SUP-14 those that wait behind a start that fails are started when it is removed', async () => {
    const house = new House()
    const supervisor = house.supervisor('rest-for-one', 'abc', { intensity: 100 })
    await supervisor.start()
    house.plan('b').failures = 1
    house.current.get('b')!.end({ normal: false })
    await settle()
    expect(house.log.splice(0).at(-1)).toBe('fail b')
    await supervisor.remove('b')
    expect(await house.said()).toEqual(['start c'])
  })

  test('SUP-19 settled says whether anything will run unless somebody asks, and isDown of whom that is so', async () => {
    const house = new House()
    const supervisor = house.supervisor('one-for-one', 'ab', { intensity: 100 })
    await supervisor.start()
    expect(await supervisor.settled()).toBe(false)
    house.current.get('a')!.end({ normal: false })
    expect(await supervisor.settled()).toBe(false)
    expect(supervisor.isDown('a')).toBe(false)
    await supervisor.remove('b')
    house.plan('a').failures = 1
    await rejection(supervisor.restart('a'))
    expect(await supervisor.settled()).toBe(true)
    expect(supervisor.isDown('a')).toBe(true)
    await supervisor.restart('a')
    expect(supervisor.isDown('a')).toBe(false)
    await supervisor.remove('a')
    expect(await supervisor.settled()).toBe(true)
  })

  test('SUP-15 a supervisor is a child itself: what it gives up, the one above it restarts', async () => {
    const house = new House()
    let tries = 0
    const inner: ChildSpec = {
      name: 'inner',
      start: async () => {
        tries++
        const supervisor = house.supervisor('one-for-one', 'ab', { intensity: 0 })
        await supervisor.start()
        return supervisor
      },
    }
    const outer = new Supervisor<Child>({ clock: house.clock, strategy: 'one-for-all', intensity: 1, children: [house.spec('x'), inner] })
    await outer.start()
    house.log.length = 0
    expect(await house.crash('a')).toEqual(['stop b', 'stop x', 'start x', 'start a', 'start b'])
    expect(tries).toBe(2)
    outer.kill()
    await outer.exited
    expect(house.log).toEqual(['kill b', 'kill a', 'kill x'])
    expect(house.living).toBe(0)
  })

  test('options that mean nothing are refused', () => {
    const clock = new HandClock()
    const make = (options: object) => () => new Supervisor({ clock, children: [], ...options })
    expect(make({ strategy: 'all' })).toThrow('expected one-for-one, one-for-all, rest-for-one, got all')
    expect(make({ intensity: -1 })).toThrow('intensity')
    expect(make({ periodMs: Number.NaN })).toThrow('periodMs')
    expect(make({ children: [{ name: 'a', start: () => {}, restart: 'always' }] })).toThrow('restart')
    expect(make({ children: [{ name: 'a', start: () => {}, shutdownMs: -1 }] })).toThrow('shutdownMs')
    const twice = new House()
    expect(() => twice.supervisor('one-for-one', 'aa')).toThrow("there is a child 'a' already")
  })
})

// --- against a model: children start and stop at once, and events come one after the other

interface Happening {
  readonly afterMs: number
  readonly child: number
  readonly normal: boolean
  /** How many of the starts after it fail. */
  readonly failures: number
}

interface Program {
  readonly strategy: Strategy
  readonly restarts: readonly Restart[]
  readonly intensity: number
  readonly happenings: readonly Happening[]
}

const PERIOD_MS = 100

/** Erlang's supervisor, written straight from its manual: lists and a counter. */
function expected({ strategy, restarts, intensity, happenings }: Program): { log: string[]; over: boolean } {
  const log: string[] = []
  let names = restarts.map((_, i) => String(i))
  const running = new Set(names)
  const kind = (name: string) => restarts[Number(name)]!
  let past: number[] = []
  let nowMs = 0
  for (const name of names) log.push(`start ${name}`)
  for (const { afterMs, child, normal, failures } of happenings) {
    nowMs += afterMs
    const name = String(child)
    if (!running.delete(name)) continue
    if (kind(name) === 'temporary') names = names.filter((other) => other !== name)
    if (kind(name) === 'temporary' || (kind(name) === 'transient' && normal)) continue
    let left = failures
    for (let from: string | null = name; from !== null; ) {
      past = [...past.filter((ms) => ms >= nowMs - PERIOD_MS), nowMs]
      if (past.length > intensity) {
        for (const other of [...names].reverse()) if (running.has(other)) log.push(`stop ${other}`)
        return { log, over: true }
      }
      const at = names.indexOf(from)
      const bound: readonly string[] = strategy === 'one-for-one' ? [from] : strategy === 'one-for-all' ? [...names] : names.slice(at)
      for (const other of [...bound].reverse()) if (running.delete(other)) log.push(`stop ${other}`)
      names = names.filter((other) => !bound.includes(other) || kind(other) !== 'temporary')
      from = null
      for (const other of bound.filter((b) => kind(b) !== 'temporary')) {
        log.push(`start ${other}`)
        if (left > 0) {
          left--
          log.push(`fail ${other}`)
          from = other
          break
        }
        running.add(other)
      }
    }
  }
  for (const other of [...names].reverse()) if (running.has(other)) log.push(`stop ${other}`)
  return { log, over: false }
}

const programs: fc.Arbitrary<Program> = fc.integer({ min: 1, max: 5 }).chain((size) =>
  fc.record({
    strategy: fc.constantFrom<Strategy>('one-for-one', 'one-for-all', 'rest-for-one'),
    restarts: fc.array(fc.constantFrom<Restart>('permanent', 'permanent', 'transient', 'temporary'), { minLength: size, maxLength: size }),
    intensity: fc.integer({ min: 0, max: 6 }),
    happenings: fc.array(
      fc.record({
        afterMs: fc.constantFrom(1, 20, 50, 100, 101, 300),
        child: fc.nat(size - 1),
        normal: fc.boolean(),
        failures: fc.constantFrom(0, 0, 0, 1, 2),
      }),
      { maxLength: 14 },
    ),
  }),
)

test('SUP-3 to SUP-10 as the model has it, whatever ends and fails to start', async () => {
  await fc.assert(
    fc.asyncProperty(programs, async (program) => {
      const house = new House()
      const children = program.restarts.map((restart, i) => house.spec(String(i), { restart }))
      const { strategy, intensity } = program
      const supervisor = new Supervisor({ clock: house.clock, strategy, intensity, periodMs: PERIOD_MS, children })
      await supervisor.start()
      let over = false
      void supervisor.exited.then(({ normal }) => {
        over = !normal
      })
      for (const { afterMs, child, normal, failures } of program.happenings) {
        await house.clock.pass(afterMs)
        const current = house.current.get(String(child))!
        if (over || current.hasEnded) continue
        failNext(house, failures)
        current.end({ normal })
        await house.said().then((said) => house.log.push(...said))
        failNext(house, 0)
      }
      await supervisor.stop()
      const model = expected(program)
      expect(house.log).toEqual(model.log)
      expect(over).toBe(model.over)
      expect(house.living).toBe(0)
      expect(house.clock.timers).toBe(0)
    }),
    { numRuns: 300 },
  )
})

/** The next `count` starts fail, whichever children they are of. */
function failNext(house: House, count: number): void {
  const shared = { failures: count }
  for (let i = 0; i < 5; i++) {
    const plan = house.plan(String(i))
    Object.defineProperty(plan, 'failures', {
      configurable: true,
      get: () => shared.failures,
      set: (value: number) => {
        shared.failures = value
      },
    })
  }
}

// --- when everything takes time and overlaps, what must hold in every order

test('SUP-12 however starts, stops and ends overlap: one at a time of each name, everything ends, and no more restarts than allowed', async () => {
  const children = fc.array(
    fc.record({
      restart: fc.constantFrom<Restart>('permanent', 'transient', 'temporary'),
      startMs: fc.nat(30),
      stopMs: fc.oneof(fc.nat(30), fc.constant(Number.POSITIVE_INFINITY)),
      failures: fc.nat(2),
    }),
    { minLength: 1, maxLength: 4 },
  )
  const acts = fc.array(
    fc.record({ afterMs: fc.nat(25), child: fc.nat(3), what: fc.constantFrom('crash', 'finish', 'restart', 'remove', 'kill') }),
    {
      maxLength: 20,
    },
  )
  await fc.assert(
    fc.asyncProperty(
      fc.constantFrom<Strategy>('one-for-one', 'one-for-all', 'rest-for-one'),
      fc.integer({ min: 0, max: 8 }),
      children,
      acts,
      async (strategy, intensity, kinds, doings) => {
        const house = new House()
        const specs = kinds.map(({ restart }, i) => house.spec(String(i), { restart, shutdownMs: 20 }))
        const supervisor = new Supervisor({ clock: house.clock, strategy, intensity, periodMs: PERIOD_MS, children: specs })
        const problems: unknown[] = []
        const start = supervisor.start()
        start.catch((error) => problems.push(error))
        await house.clock.pass(0)
        for (const [i, { startMs, stopMs, failures }] of kinds.entries())
          Object.assign(house.plan(String(i)), { startMs, stopMs, failures })
        let killed = false
        for (const { afterMs, child, what } of doings) {
          await house.clock.pass(afterMs)
          const name = String(child)
          if (what === 'crash' || what === 'finish') house.current.get(name)?.end({ normal: what === 'finish' })
          else if (what === 'restart') supervisor.restart(name).catch((error) => problems.push(error))
          else if (what === 'remove') supervisor.remove(name).catch((error) => problems.push(error))
          else if (doings.length % 3 === 0) {
            killed = true
            supervisor.kill()
          }
          expect(supervisor.restarts).toBeLessThanOrEqual(intensity + 1)
        }
        const stopped = supervisor.stop()
        await house.clock.pass(10_000)
        await stopped
        const { normal, reason } = await supervisor.exited
        if (!normal) expect(reason).toMatchObject({ code: 'SUPERVISOR_GAVE_UP' })
        if (!killed && normal) expect(house.log.filter((word) => word.startsWith('start')).length).toBeGreaterThanOrEqual(kinds.length)
        const known = ['UNKNOWN_CHILD', 'SUPERVISOR_NOT_RUNNING']
        for (const problem of problems) {
          const { code, message } = problem as PostgradError
          if (!known.includes(code) && !/cannot start$/.test(message)) throw problem
        }
        expect(house.doubles).toBe(0)
        expect(house.living).toBe(0)
        expect(house.clock.timers).toBe(0)
      },
    ),
    { numRuns: 300 },
  )
})
