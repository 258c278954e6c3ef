/** User actors: serial ones and their chains, self-sends, timers, stash, and their ends. */

import { describe, expect, test } from '@jest/globals'
import { Future } from '@postgrad/base'
import { currentScope } from '@postgrad/base/internal'
import { Actor } from '../api/actor.js'
import { call, currentRuntime, ready, remote, rref } from '../api/api.js'
import { monitor, stopActor } from '../api/monitor.js'
import { workerLocal } from '../api/worker-local.js'
import { asyncExecution } from '../common/async-execution.js'
import { expose } from '../common/function-registry.js'
import type { RRef } from '../references/rref.js'
import { Cluster, failure, thrown, withSeed } from '../worker/sim-cluster.suite.js'
import { ACTOR_WAITING_MAX } from './actor-cell.js'

const SEEDS = 15

const sleep = (ms: number): Promise<void> => {
  const { clock } = currentRuntime()
  return new Promise((resolve) => {
    clock.setTimer(ms, resolve)
  })
}

/** The events on this worker, in order. */
const log = workerLocal((): string[] => [])
const readLog = (): string[] => log()
/** Notes several names from here, one after the other, none awaited. */
const noteAll = async (journal: RRef<Journal>, names: readonly string[], ms: number): Promise<readonly string[]> => {
  using ref = journal
  return await Promise.all(names.map((name) => ref.call('note', [name, ms])))
}

class Journal {
  static readonly serial: boolean = true
  private inside = 0
  private mostInside = 0

  async note(name: string, ms: number): Promise<string> {
    this.inside++
    this.mostInside = Math.max(this.mostInside, this.inside)
    log().push(`${name} in`)
    await sleep(ms)
    log().push(`${name} out`)
    this.inside--
    return name
  }

  /** How many methods ran at once. */
  most(): number {
    return this.mostInside
  }

  fails(): never {
    throw new RangeError('not today')
  }

  take(ref: RRef<Open>): void {
    ref.dispose()
  }
}

class Open extends Journal {
  static override readonly serial: boolean = false
}

const disposeOf = (ref: RRef<Chatty>): void => ref.dispose()
const introduce = async (to: string): Promise<readonly string[]> => {
  const shy = remote(to, Shy, [])
  using self = await shy.call('introduce', [])
  shy.dispose()
  return await self.call('list', [])
}

const counter = workerLocal(() => ({ n: 0 }))
const countHere = (): number => ++counter().n
const made = workerLocal(({ name }) => {
  const { deadlineMs, chain } = currentScope()
  return { name, deadlineMs, chain }
})
const madeIn = () => made()
const tries = workerLocal(() => ({ n: 0 }))
const bad = workerLocal((): number => {
  throw new Error(`try ${++tries().n}`)
})
const madeBadly = (): number => bad()

class Observer {
  async run(agent: RRef<Agent>, name: string, steps: number): Promise<number> {
    using ref = agent
    let sum = 0
    for (let i = 0; i < steps; i++) {
      sum += await ref.call('act', [name, i])
      await sleep(1)
    }
    return sum
  }
}

/** PyTorch's tutorial: an agent that awaits its observers, which ask it for actions. */
class Agent extends Actor {
  static readonly serial = true
  private episode = ''
  private readonly seen: string[] = []

  act(name: string, state: number): number {
    this.seen.push(`${this.episode}:${name}`)
    return state
  }

  async runEpisode(episode: string, observers: readonly RRef<Observer>[]): Promise<readonly number[]> {
    if (this.episode !== '') throw new Error(`${episode} began during ${this.episode}`)
    this.episode = episode
    const sums = await Promise.all(observers.map((observer, i) => observer.call('run', [this.self, `o${i}`, 3])))
    this.episode = ''
    for (const observer of observers) observer.dispose()
    return sums
  }

  all(): readonly string[] {
    return this.seen
  }
}

class Probe {
  static readonly serial = true
  async look(ms: number): Promise<{ readonly deadlineMs: number; readonly chain: bigint | null }> {
    const { deadlineMs, chain } = currentScope()
    await sleep(ms)
    return { deadlineMs, chain }
  }
}

class Chatty extends Actor {
  static readonly serial: boolean = true
  private ready = false
  private readonly heard: string[] = []

  async talk(words: readonly string[]): Promise<void> {
    for (const word of words) this.send(this.hear, [word])
    await sleep(2)
    this.heard.push('end of talk')
  }

  hear(word: string): void {
    this.heard.push(word)
  }

  /** Its callers wait for others of it, which do not come. */
  shared(): Future<void> {
    return new Future()
  }

  laterOrNot(word: string, ms: number): void {
    this.setTimer(ms, this.hear, [word]).cancel()
  }

  later(word: string, ms: number): void {
    this.setTimer(ms, this.hear, [word])
  }

  laterFails(ms: number): void {
    this.setTimer(ms, this.fails, [])
  }

  sendFails(): void {
    this.send(this.fails, [])
  }

  async fails(): Promise<never> {
    await sleep(1)
    throw new RangeError('to nobody')
  }

  async list(): Promise<readonly string[]> {
    return this.heard
  }

  wanted(name: string): Promise<string> | string {
    if (!this.ready) return this.stash()
    this.heard.push(`wanted ${name}`)
    return name
  }

  open(): void {
    this.ready = true
    this.unstashAll()
  }

  async stashLate(): Promise<string> {
    await sleep(1)
    return await this.stash()
  }

  async forever(): Promise<never> {
    return await new Promise<never>(() => {})
  }

  quit(): void {
    this.stop()
  }

  protected override onStop(): void {
    log().push('onStop')
  }
}

class ChattyOpen extends Chatty {
  static override readonly serial: boolean = false
}

/** Puts aside what it says to itself. */
class Restless extends Actor {
  private isOpen = false
  begin(): void {
    this.send(this.work, ['sent'])
    this.setTimer(1, this.work, ['timed'])
  }
  work(name: string): unknown {
    if (!this.isOpen) return this.stash()
    log().push(name)
    return undefined
  }
  sendAndQuit(): void {
    this.send(this.work, ['sent'])
    this.setTimer(1, this.work, ['timed'])
    this.stop()
  }
  /** Puts one self-send aside and takes it back, so often. */
  async again(times: number): Promise<void> {
    this.send(this.work, ['again'])
    for (let i = 0; i < times; i++) {
      await sleep(1)
      this.unstashAll()
    }
    await sleep(1)
  }
  fill(): number {
    let sent = 0
    try {
      for (; ; sent++) this.send(this.nothing, [])
    } catch {
      return sent
    }
  }
  nothing(): void {}
  /** Outside of any method. */
  openAndQuit(): void {
    void sleep(1).then(() => {
      this.isOpen = true
      this.unstashAll()
      this.stop()
    })
  }
  protected override async onStop(): Promise<void> {
    log().push('stopping')
    await sleep(5)
    log().push('stopped')
  }
}

class RestlessSerial extends Restless {
  static readonly serial = true
}

/** Each has one of its own class, made in its constructor. */
class Nested extends Actor {
  private readonly inner: Nested | null
  constructor(depth: number) {
    super()
    this.inner = depth === 0 ? null : new Nested(depth - 1)
  }
  depth(): number {
    return this.inner === null ? 0 : 1 + this.inner.depth()
  }
  me(): RRef<Nested> {
    return this.self
  }
  innermost(): RRef<Nested> {
    return this.inner === null ? this.self : this.inner.innermost()
  }
  quitInner(): void {
    this.inner?.stop()
  }
  protected override onStop(): void {
    log().push(`${this.depth()} stopped`)
  }
}

class Keeper extends Actor {
  keep(_ref: RRef<Observer>): Promise<never> {
    return this.stash()
  }
}

class Shy extends Actor {
  private readonly me: RRef<Shy>
  constructor() {
    super()
    this.me = this.self
  }
  introduce(): RRef<Shy> {
    if (this.me !== this.self) throw new Error('two references')
    return this.me
  }
  list(): readonly string[] {
    return ['hello']
  }
}

class BadEnd extends Actor {
  ping(): string {
    return 'pong'
  }
  quit(): void {
    this.stop()
  }
  protected override onStop(): never {
    throw new TypeError('cannot end')
  }
}

class Unborn extends Actor {
  constructor() {
    super()
    this.setTimer(5, this.ping, [])
    throw new TypeError('never born')
  }
  ping(): void {
    log().push('ping of the unborn')
  }
}

const failsAfter = async (ms: number): Promise<never> => {
  if (ms > 0) await sleep(ms)
  throw new RangeError(`failed after ${ms} ms`)
}

/** Throws a text, not an error. */
class Blurts extends Actor {
  soon(): void {
    this.send(this.blurt, [])
  }
  private blurt(): never {
    throw 'a text'
  }
}

class Stubborn {
  constructor() {
    throw 'not made'
  }
  ping(): void {}
}

const Nameless = (() =>
  class extends Actor {
    quit(): void {
      this.stop()
    }
    ping(): void {}
  })()

/** Takes a while to end. */
class Lingers extends Actor {
  ping(): void {}
  protected override async onStop(): Promise<void> {
    await sleep(30)
    log().push('lingered')
  }
}

/** While it serves a call it is asked to end, and is asked by those that it waits for. */
class Asked extends Actor {
  static readonly serial = true
  async begin(observer: RRef<Observer>): Promise<number> {
    using ref = observer
    const sum = ref.call('run', [this.self as unknown as RRef<Agent>, 'o', 3])
    this.stop()
    return await sum
  }
  act(_name: string, state: number): number {
    return state
  }
}

asyncExecution(Chatty.prototype.shared)
expose({
  Restless,
  RestlessSerial,
  Nested,
  Keeper,
  Journal,
  Open,
  Probe,
  Observer,
  Agent,
  Chatty,
  ChattyOpen,
  Blurts,
  Stubborn,
  Nameless,
  Lingers,
  Asked,
  BadEnd,
  failsAfter,
  Unborn,
  Shy,
  readLog,
  noteAll,
  disposeOf,
  introduce,
  countHere,
  madeIn,
  madeBadly,
})

/** Runs `main` on worker 0 of fresh clusters, one per seed; nothing may be left but so many dead letters. */
async function seeds(size: number, main: (cluster: Cluster) => Promise<void>, letters = 0): Promise<void> {
  for (let seed = 1; seed <= SEEDS; seed++) {
    await withSeed(seed, async () => {
      const cluster = new Cluster(seed, size)
      await cluster.run(0, () => main(cluster))
      expect(await cluster.leftovers({ letters })).toEqual([])
      for (const { actors } of cluster.workers) expect(actors.count).toBe(0)
    })
  }
}

describe('serial actors', () => {
  test('ACT-1 methods interleave at awaits; of a serial class one runs at a time, until it has ended', () =>
    seeds(3, async () => {
      for (const Class of [Journal, Open]) {
        using journal = remote('worker1', Class, [])
        const here = noteAll(journal, ['a', 'b'], 3)
        const there = call('worker2', noteAll, [journal, ['c', 'd'], 2])
        expect(await there).toEqual(['c', 'd'])
        expect(await here).toEqual(['a', 'b'])
        using again = remote('worker1', Class, [])
        await Promise.all([again.call('note', ['e', 2]), again.call('note', ['f', 2])])
        expect(await again.call('most', [])).toBe(Class === Journal ? 1 : 2)
      }
    }))

  test('ACT-1 so are instances that were made without `remote`, and those of this worker', () =>
    seeds(1, async () => {
      const journal = rref(new Journal())
      const own = remote('worker0', Journal, [])
      await Promise.all([
        journal.call('note', ['a', 3]),
        journal.call('note', ['b', 1]),
        own.call('note', ['c', 1]),
        own.call('note', ['d', 1]),
      ])
      expect([await journal.call('most', []), await own.call('most', [])]).toEqual([1, 1])
    }))

  test('ACT-2 the queue is in the order of arrival, an error frees the actor, and typed proxies stand in it as well', () =>
    seeds(2, async () => {
      using journal = remote('worker1', Journal, [])
      const first = journal.call('note', ['a', 3])
      const error = failure(journal.call('fails', []))
      const second = journal.rpcAsync().note('b', 1)
      using made = journal.remote().note('c', 1)
      const last = journal.rpcAsync().note('d', 0)
      expect(await first).toBe('a')
      expect((await error).name).toBe('RangeError')
      expect([await second, await made.toHere(), await last]).toEqual(['b', 'c', 'd'])
      expect(await call('worker1', readLog)).toEqual(['a in', 'a out', 'b in', 'b out', 'c in', 'c out', 'd in', 'd out'])
    }))

  test('ACT-3 an agent that awaits its observers is asked by them, and nothing hangs', () =>
    seeds(4, async () => {
      using agent = remote('worker1', Agent, [])
      const observers = [remote('worker2', Observer, []), remote('worker3', Observer, []), remote('worker1', Observer, [])]
      expect(await agent.call('runEpisode', ['e', observers])).toEqual([3, 3, 3])
      expect((await agent.call('all', [])).length).toBe(9)
      for (const observer of observers) observer.dispose()
    }))

  test('ACT-3 two chains take their turns, also where their calls meet on other workers', () =>
    seeds(4, async () => {
      using agent = remote('worker1', Agent, [])
      const observers = [remote('worker2', Observer, []), remote('worker3', Observer, [])]
      const episodes = ['e1', 'e2', 'e3'].map((name) => agent.call('runEpisode', [name, observers]))
      const stranger = observers[0]!.call('run', [agent, 'stranger', 3])
      await Promise.all(episodes)
      await stranger
      const seen = await agent.call('all', [])
      const own = seen.filter((word) => !word.endsWith('stranger')).map((word) => word.slice(0, 2))
      expect(own).toEqual(['e1', 'e2', 'e3'].flatMap((name) => Array.from({ length: 6 }, () => name)))
      expect(seen.filter((word) => word.endsWith('stranger'))).toEqual([':stranger', ':stranger', ':stranger'])
      for (const observer of observers) observer.dispose()
    }))

  test('ACT-4 what is cancelled before its turn is not run; what runs keeps the actor until its function has ended', () =>
    seeds(
      2,
      async () => {
        using journal = remote('worker1', Journal, [])
        const running = failure(journal.call('note', ['a', 100], { timeoutMs: 40 }))
        const late = failure(journal.call('note', ['b', 1], { timeoutMs: 60 }))
        const cancelled = journal.call('note', ['c', 1])
        const why = failure(cancelled)
        const last = journal.call('note', ['d', 1])
        await sleep(30)
        cancelled.cancel()
        expect((await why).code).toBe('CALL_CANCELLED')
        expect((await running).code).toBe('RPC_TIMEOUT')
        expect((await late).code).toBe('RPC_TIMEOUT')
        expect(await last).toBe('d')
        expect(await call('worker1', readLog)).toEqual(['a in', 'a out', 'd in', 'd out'])
      },
      2,
    ))

  test('ACT-4, RREF-17 references in calls that were cancelled while they waited are disposed', () =>
    seeds(
      3,
      async () => {
        using actor = remote('worker1', Journal, [])
        using open = remote('worker2', Open, [])
        const busy = actor.call('note', ['busy', 20])
        const expired = failure(actor.call('take', [open], { timeoutMs: 5 }))
        const cancelled = actor.call('take', [open])
        await sleep(5)
        cancelled.cancel()
        expect([(await expired).code, (await failure(cancelled)).code]).toEqual(['RPC_TIMEOUT', 'CALL_CANCELLED'])
        await busy
        await sleep(5)
        expect(currentRuntime().debugInfo().pendingChildren).toBe(0)
      },
      2,
    ))

  test('ACT-5 what waits for a serial actor has not begun: its sender has no room for more until its turn comes', async () => {
    for (let seed = 1; seed <= SEEDS; seed++) {
      const cluster = new Cluster(seed, 2, { mailboxOf: () => ({ callsMax: 20 }) })
      await cluster.run(0, async () => {
        using journal = remote('worker1', Journal, [])
        await journal.created()
        const first = journal.call('note', ['first', 100])
        const others = Array.from({ length: 14 }, (_, i) => journal.call('note', [`${i}`, 0]))
        await sleep(50)
        const more = Array.from({ length: 10 }, (_, i) => journal.call('note', [`more ${i}`, 0]))
        const codes = await Promise.all(
          more.map((future) =>
            future.then(
              () => 'done',
              ({ code }: { code: string }) => code,
            ),
          ),
        )
        expect(codes.filter((code) => code === 'MAILBOX_FULL').length).toBeGreaterThanOrEqual(4)
        expect(await first).toBe('first')
        await Promise.all(others)
        await ready('worker1')
        expect(await journal.call('most', [])).toBe(1)
      })
      expect(await cluster.leftovers()).toEqual([])
    }
  })

  test(`ACT-5 at most ${ACTOR_WAITING_MAX} self-sends wait`, async () => {
    const cluster = new Cluster(1, 1)
    await cluster.run(0, async () => {
      const cell = currentRuntime().actors.find(new Journal())!
      let runs = 0
      const send = () => cell.send('count', () => runs++)
      for (let i = 0; i < ACTOR_WAITING_MAX; i++) send()
      const error = thrown(send)
      expect(error.code).toBe('MAILBOX_FULL')
      expect(error.values).toEqual({ actor: 'Journal', waiting: ACTOR_WAITING_MAX })
      await sleep(1)
      expect(runs).toBe(ACTOR_WAITING_MAX)
      send()
      await sleep(1)
      expect(runs).toBe(ACTOR_WAITING_MAX + 1)
    })
  })

  test('ACT-6 a call that waited runs in its own scope: its deadline, and a chain of its own', () =>
    seeds(2, async () => {
      using probe = remote('worker1', Probe, [])
      const [a, b] = await Promise.all([probe.call('look', [5], { timeoutMs: 500 }), probe.call('look', [5], { timeoutMs: 1000 })])
      expect(a.deadlineMs).toBeLessThanOrEqual(520)
      expect(b.deadlineMs).toBeGreaterThan(900)
      expect(typeof a.chain).toBe('bigint')
      expect(typeof b.chain).toBe('bigint')
      expect(a.chain).not.toBe(b.chain)
      expect(currentScope().chain).toBeNull()
    }))
})

describe('what an actor does by itself', () => {
  test('ACT-7 self-sends come in their order, behind the method of a serial actor that sends them; timers in their turn', () =>
    seeds(2, async () => {
      using chatty = remote('worker1', Chatty, [])
      await chatty.call('later', ['timer', 50])
      await chatty.call('talk', [['x', 'y', 'z']])
      await sleep(100)
      expect(await chatty.call('list', [])).toEqual(['end of talk', 'x', 'y', 'z', 'timer'])
    }))

  test.each(['sendFails', 'laterFails'] as const)(
    'ACT-8 an error that nobody asked for ends the actor (%s): who waits and who calls later meets ACTOR_STOPPED, which names it',
    (how) =>
      seeds(
        2,
        async () => {
          using chatty = remote('worker1', ChattyOpen, [])
          const waits = failure(chatty.call('forever', []))
          const stashed = failure(chatty.call('wanted', ['w']))
          const shared = failure(chatty.call('shared', []))
          await (how === 'sendFails' ? chatty.call('sendFails', []) : chatty.call('laterFails', [5]))
          const errors = [await waits, await stashed, await shared, await failure(chatty.call('list', []))]
          expect(errors.map(({ op }) => op)).toEqual(['forever', 'wanted', 'shared', 'list'].map((method) => `call of '${method}'`))
          for (const error of errors) {
            expect(error.code).toBe('ACTOR_STOPPED')
            expect(error.message).toContain('this ChattyOpen has crashed: to nobody')
            expect(error.values).toEqual({ actor: 'ChattyOpen', crashed: true })
            expect((error.cause as Error).name).toBe('RangeError')
          }
        },
        1,
      ),
  )

  test('ACT-8 an error of a method that somebody called is theirs, and the actor goes on', () =>
    seeds(2, async () => {
      using chatty = remote('worker1', Chatty, [])
      expect((await failure(chatty.call('fails', []))).name).toBe('RangeError')
      expect(await chatty.call('list', [])).toEqual([])
    }))

  test('ACT-9 stash puts a call aside, unstashAll runs what was put aside, in order; the caller gets that result', () =>
    seeds(3, async () => {
      for (const Class of [Chatty, ChattyOpen]) {
        using chatty = remote('worker1', Class, [])
        const wanted = ['a', 'b', 'c'].map((name) => chatty.call('wanted', [name]))
        await chatty.call('hear', ['not blocked'])
        await chatty.call('open', [])
        const late = chatty.call('wanted', ['d'])
        expect(await Promise.all([...wanted, late])).toEqual(['a', 'b', 'c', 'd'])
        expect(await chatty.call('list', [])).toEqual(['not blocked', 'wanted a', 'wanted b', 'wanted c', 'wanted d'])
      }
    }))

  test('ACT-9 a stashed call keeps its deadline; after an await there is nothing to put aside', () =>
    seeds(
      2,
      async () => {
        using chatty = remote('worker1', Chatty, [])
        const late = failure(chatty.call('wanted', ['a'], { timeoutMs: 20 }))
        expect((await failure(chatty.call('stashLate', []))).code).toBe('STASH_OUTSIDE_CALL')
        expect((await late).code).toBe('RPC_TIMEOUT')
        await chatty.call('open', [])
        expect(await chatty.call('list', [])).toEqual([])
      },
      1,
    ))

  test('ACT-10 what `Actor` gives its subclasses is not for others to call', () =>
    seeds(2, async () => {
      using chatty = remote('worker1', Chatty, [])
      for (const word of ['stop', 'send', 'onStop', 'unstashAll', 'self']) {
        expect((await failure(chatty.call(word as 'list', []))).code).toBe('METHOD_NOT_FOUND')
      }
    }))

  test('ACT-11 it knows its reference, in its constructor too, and others can use what it gives them', () =>
    seeds(3, async () => {
      expect(await call('worker2', introduce, ['worker1'])).toEqual(['hello'])
    }))
})

describe('what is too late', () => {
  test('ACT-7 a timer that was cancelled does not fire', () =>
    seeds(
      2,
      async () => {
        using chatty = remote('worker1', Chatty, [])
        await chatty.call('laterOrNot', ['never', 5])
        await sleep(20)
        expect(await chatty.call('list', [])).toEqual([])
      },
      0,
    ))

  test('ACT-5 at most so many calls are put aside', async () => {
    const cluster = new Cluster(1, 1)
    await cluster.run(0, async () => {
      const cell = currentRuntime().actors.find(new Journal())!
      const put = () => cell.invoke('note', () => cell.stash())
      const first = failure(Promise.resolve(put()))
      for (let i = 1; i < ACTOR_WAITING_MAX; i++) put()
      expect(thrown(put)).toMatchObject({ code: 'MAILBOX_FULL', values: { actor: 'Journal', waiting: ACTOR_WAITING_MAX } })
      expect(cell.waiting).toBe(ACTOR_WAITING_MAX)
      await cell.stop(0)
      expect((await first).code).toBe('ACTOR_STOPPED')
    })
  })

  test('ACT-13 an actor that has ended says nothing to itself, and sets no timer', async () => {
    const cluster = new Cluster(1, 1)
    await cluster.run(0, async () => {
      const cell = currentRuntime().actors.find(new ChattyOpen())!
      const aside = failure(Promise.resolve(cell.invoke('note', () => cell.stash())))
      // Taken back, and ended before its turn.
      cell.unstashAll()
      // Of no call, as in an inlined program.
      const running = failure(Promise.resolve(cell.invoke('note', () => new Promise(() => {}))))
      expect(cell.timerCount).toBe(0)
      await cell.stop(0)
      for (const ended of [aside, running]) expect((await ended).code).toBe('ACTOR_STOPPED')
      expect(thrown(() => cell.send('note', () => {})).code).toBe('ACTOR_STOPPED')
      expect(thrown(() => cell.setTimer(1, 'note', () => {})).code).toBe('ACTOR_STOPPED')
      await cell.stop(5)
    })
  })

  test('ACT-16 one that is ended by its deadline while it waits for its last method runs no onStop', () =>
    seeds(
      2,
      async () => {
        using chatty = remote('worker1', Chatty, [])
        const never = failure(chatty.call('forever', []))
        await sleep(5)
        await stopActor(chatty, { shutdownMs: 10 })
        expect((await never).code).toBe('ACTOR_STOPPED')
        expect(await call('worker1', readLog)).toEqual([])
      },
      1,
    ))

  test('ACT-16 what it does at its end, when its time is over, changes nothing of it', () =>
    seeds(
      2,
      async () => {
        using lingers = remote('worker1', Lingers, [])
        await stopActor(lingers, { shutdownMs: 10 })
        expect(await failure(lingers.call('ping', []))).toMatchObject({ code: 'ACTOR_STOPPED', cause: { code: 'ACTOR_KILLED' } })
        await sleep(50)
        expect(await call('worker1', readLog)).toEqual(['lingered'])
        expect(await failure(lingers.call('ping', []))).toMatchObject({ cause: { code: 'ACTOR_KILLED' } })
      },
      1,
    ))

  test('ACT-3, ACT-13 while it is asked to end, calls of the chain that it serves are still let in, and others are not', () =>
    seeds(3, async () => {
      using asked = remote('worker1', Asked, [])
      const observer = remote('worker2', Observer, [])
      const sum = asked.call('begin', [observer])
      await sleep(1)
      const stranger = failure(asked.call('act', ['stranger', 1]))
      expect(await sum).toBe(3)
      expect((await stranger).code).toBe('ACTOR_STOPPED')
      observer.dispose()
    }))

  test('RPC-24, ACT-4 a call whose time passes while the actor is busy is not run, also when no word of its caller comes', async () => {
    for (let seed = 1; seed <= SEEDS; seed++) {
      const cluster = new Cluster(seed, 2)
      await cluster.run(0, async () => {
        using journal = remote('worker1', Journal, [])
        const busy = journal.call('note', ['busy', 50])
        const late = failure(journal.call('note', ['late', 1], { timeoutMs: 20 }))
        await sleep(10)
        cluster.gate(0, 1).shut()
        expect((await late).code).toBe('RPC_TIMEOUT')
        await busy
        await sleep(10)
        cluster.gate(0, 1).unshut()
        expect(await call('worker1', readLog)).toEqual(['busy in', 'busy out'])
      })
      expect(await cluster.leftovers({ letters: 1 })).toEqual([])
    }
  })
})

describe('the end of an actor', () => {
  test('ACT-12 it ends with the last reference that other workers have to it: what was called is done, then onStop runs', () =>
    seeds(3, async () => {
      const chatty = remote('worker1', Chatty, [])
      const talk = chatty.call('talk', [[]])
      const list = chatty.call('list', [])
      await call('worker2', disposeOf, [chatty])
      chatty.dispose()
      await talk
      expect(await list).toEqual(['end of talk'])
      await sleep(10)
      expect(await call('worker1', readLog)).toEqual(['onStop'])
    }))

  test('ACT-13 its own stop does the same; what is called later is refused, what is stashed too', () =>
    seeds(2, async () => {
      using chatty = remote('worker1', Chatty, [])
      const stashed = failure(chatty.call('wanted', ['a']))
      const talk = chatty.call('talk', [['x']])
      const quit = chatty.call('quit', [])
      const list = chatty.call('list', [])
      await Promise.all([talk, quit])
      expect(await list).toEqual(['end of talk', 'x'])
      expect((await stashed).code).toBe('ACTOR_STOPPED')
      const error = await failure(chatty.call('list', []))
      expect(error).toMatchObject({ code: 'ACTOR_STOPPED', values: { crashed: false } })
      expect(error.message).toContain('this Chatty has been stopped')
      expect(await call('worker1', readLog)).toEqual(['onStop'])
    }))

  test('ACT-13, RREF-17 references in calls that an actor did not take are disposed', () =>
    seeds(3, async ({ workers }) => {
      using keeper = remote('worker1', Keeper, [])
      await keeper.created()
      const made = Array.from({ length: 3 }, () => remote('worker2', Observer, []))
      const kept = failure(keeper.call('keep', [made[0]!]))
      await sleep(10)
      await stopActor(keeper)
      expect((await kept).code).toBe('ACTOR_STOPPED')
      for (const ref of made) expect((await failure(keeper.call('keep', [ref]))).code).toBe('ACTOR_STOPPED')
      for (const ref of made) ref.dispose()
      await sleep(20)
      expect(workers[1]!.debugInfo().userRRefs).toBe(0)
    }))

  test.each([
    ['any', Restless],
    ['a serial', RestlessSerial],
  ])('ACT-13 what %s actor said to itself and put aside is dropped, and its end is normal', (_, target) =>
    seeds(2, async () => {
      using actor = remote('worker1', target, []) as RRef<Restless>
      await actor.call('begin', [])
      await sleep(5)
      const watch = monitor(actor)
      await stopActor(actor)
      expect(await watch.down).toEqual({ normal: true, reason: null })
      expect(await call('worker1', readLog)).toEqual(['stopping', 'stopped'])
    }),
  )

  test.each([
    ['any', Restless],
    ['a serial', RestlessSerial],
  ])('ACT-9, ACT-13 what %s actor took back before it was stopped is done', (_, target) =>
    seeds(2, async () => {
      using actor = remote('worker1', target, []) as RRef<Restless>
      await actor.call('begin', [])
      const work = actor.call('work', ['called'])
      await sleep(5)
      const watch = monitor(actor)
      await actor.call('openAndQuit', [])
      expect(await work).toBe(undefined)
      expect(await watch.down).toEqual({ normal: true, reason: null })
      const seen = await call('worker1', readLog)
      expect([...seen.slice(0, -2)].sort()).toEqual(['called', 'sent', 'timed'])
      expect(seen.slice(-2)).toEqual(['stopping', 'stopped'])
    }),
  )

  test('ACT-13 so is what it said to itself before it was stopped, and what comes of its timers while it ends', () =>
    seeds(2, async () => {
      using actor = remote('worker1', Restless, [])
      const watch = monitor(actor)
      await actor.call('sendAndQuit', [])
      expect(await watch.down).toEqual({ normal: true, reason: null })
      await sleep(5)
      expect(await call('worker1', readLog)).toEqual(['stopping', 'stopped'])
    }))

  test('ACT-5 a self-send that is put aside and taken back is counted once', () =>
    seeds(2, async () => {
      using actor = remote('worker1', Restless, [])
      await actor.call('again', [5])
      expect(await actor.call('fill', [])).toBe(ACTOR_WAITING_MAX)
      await stopActor(actor)
    }))

  test('ACT-11, ACT-12 an actor that makes another of its class in its constructor keeps its reference, and its end', () =>
    seeds(2, async () => {
      const actor = remote('worker1', Nested, [2])
      using outer = await actor.call('me', [])
      using inner = await actor.call('innermost', [])
      expect([await outer.call('depth', []), await inner.call('depth', [])]).toEqual([2, 0])
      await actor.call('quitInner', [])
      await sleep(5)
      expect(await call('worker1', readLog)).toEqual(['1 stopped'])
      expect(await actor.call('depth', [])).toBe(2)
      actor.dispose()
      outer.dispose()
      await sleep(5)
      expect(await call('worker1', readLog)).toEqual(['1 stopped', '2 stopped'])
    }))

  test('ACT-14 a constructor that fails is the end: every use throws its error, and no timer of it fires', () =>
    seeds(2, async () => {
      using unborn = remote('worker1', Unborn, [])
      const error = await failure(unborn.call('ping', []))
      expect([error.name, error.message]).toEqual(['TypeError', 'never born'])
      await sleep(20)
      expect(await call('worker1', readLog)).toEqual([])
    }))

  const makers: Record<string, () => RRef> = {
    'an actor': () => remote('worker1', Unborn, []),
    'an instance of a class': () => remote('worker1', Stubborn, []),
    'what a function gives': () => remote('worker1', failsAfter, [0]),
    'what an async function gives': () => remote('worker1', failsAfter, [3]),
    'what a method gives': () => {
      using shy = remote('worker1', Shy, [])
      return (shy.remote() as unknown as { none(): RRef }).none()
    },
  }
  for (const [what, make] of Object.entries(makers)) {
    test(`RREF-37 ${what}, which could not be made and which nobody used, is a dead letter with the last reference, or when its worker closes`, async () => {
      for (const waitMs of [0, 10]) {
        await seeds(
          2,
          async ({ workers }) => {
            const unused = make()
            await sleep(waitMs)
            unused.dispose()
            await sleep(20)
            expect(workers[1]!.deadLetters().counts['unwatched-crash']).toBe(1)
          },
          1,
        )
      }
      const cluster = new Cluster(1, 2)
      const owner = cluster.workers[1]!
      await cluster.run(0, async () => {
        using _held = make()
        await sleep(20)
        expect(owner.deadLetters().counts['unwatched-crash']).toBe(0)
        owner.end()
        expect(owner.deadLetters().counts['unwatched-crash']).toBe(1)
      })
    })
  }

  test('RREF-37 the letter names what was to be made and the error; of what a worker made for itself as well', () =>
    new Cluster(1, 1).run(0, async () => {
      const worker = currentRuntime()
      const made = [remote('worker0', Unborn, []), remote('worker0', failsAfter, [3]), remote('worker0', failsAfter, [4])]
      await sleep(10)
      await failure(made[2]!.toHere())
      worker.end()
      expect(worker.deadLetters().last.map(({ what }) => what)).toEqual(['Unborn: never born', 'failsAfter: failed after 3 ms'])
    }))

  const uses: Record<string, (unborn: RRef<Unborn>) => Promise<unknown>> = {
    'toHere()': (unborn) => failure(unborn.toHere()),
    'created()': (unborn) => failure(unborn.created()),
    'a call': (unborn) => failure(unborn.call('ping', [])),
    'a stream': (unborn) => failure((unborn as RRef as RRef<Shy>).stream('list', []).next()),
    'a monitor': (unborn) => monitor(unborn).down,
    stopActor: (unborn) => failure(stopActor(unborn)),
  }
  test('RREF-37 an error that a use of the reference has met is no dead letter', () =>
    seeds(2, async () => {
      for (const use of Object.values(uses)) {
        for (const waitMs of [0, 5]) {
          using unborn = remote('worker1', Unborn, [])
          await sleep(waitMs)
          await use(unborn)
        }
      }
      for (const name of ['toHere()', 'created()', 'a call']) {
        // It fails while the use waits.
        using failing = remote('worker1', failsAfter, [3])
        await uses[name]!(failing as RRef as RRef<Unborn>)
      }
      const ending = new AbortController()
      using _cancelled = remote('worker1', failsAfter, [50], { signal: ending.signal })
      await sleep(5)
      ending.abort()
      await sleep(60)
    }))

  test('ACT-15 an onStop that throws makes the end a crash', () =>
    seeds(
      2,
      async () => {
        using bad = remote('worker1', BadEnd, [])
        expect(await bad.call('ping', [])).toBe('pong')
        await bad.call('quit', [])
        expect(await failure(bad.call('ping', []))).toMatchObject({ message: expect.stringContaining('has crashed: cannot end') })
      },
      1,
    ))
})

test('ACT-8, ACT-14 what is thrown need be no error, and a class needs no name', () =>
  seeds(
    2,
    async ({ workers }) => {
      const heard: string[] = []
      const remove = workers[1]!.inspect((event) => {
        if (event.kind === 'actor-ended') heard.push(`${event.what.split('#')[0]}: ${event.reason}`)
      })
      using blurts = remote('worker1', Blurts, [])
      await blurts.call('soon', [])
      await sleep(5)
      expect((await failure(blurts.call('soon', []))).message).toContain('this Blurts has crashed: a text')
      expect(workers[1]!.deadLetters().last.at(-1)).toMatchObject({ reason: 'unwatched-crash', what: 'Blurts: a text' })
      using stubborn = remote('worker1', Stubborn, [])
      expect((await failure(stubborn.call('ping', []))).code).toBe('REMOTE_EXCEPTION')
      using nameless = remote('worker1', Nameless, [])
      await nameless.call('quit', [])
      await sleep(5)
      expect((await failure(nameless.call('ping', []))).message).toContain('this an actor has been stopped')
      remove()
      expect(heard).toEqual(['Blurts: a text', 'Stubborn: not made', 'an actor: '])
    },
    1,
  ))

test('INS-8 who inspects a worker hears which actors start and end there, and how', () =>
  seeds(2, async ({ workers }) => {
    const heard: string[] = []
    const remove = workers[1]!.inspect((event) => {
      if (event.kind === 'actor-started') heard.push(`+ ${event.what.split('#')[0]}`)
      if (event.kind === 'actor-ended') heard.push(`- ${event.what.split('#')[0]} ${event.normal} ${event.reason}`)
    })
    for (const make of [() => remote('worker1', Observer, []), () => remote('worker1', Journal, []), () => remote('worker1', Chatty, [])]) {
      const actor = make()
      await actor.created()
      actor.dispose()
      await sleep(10)
    }
    using unborn = remote('worker1', Unborn, [])
    await failure(unborn.created())
    using free = remote('worker1', ChattyOpen, [])
    const { down } = monitor(free)
    await free.call('sendFails', [])
    await down
    remove()
    expect(heard).toEqual([
      ...['Observer', 'Journal', 'Chatty'].flatMap((name) => [`+ ${name}`, `- ${name} true `]),
      '+ Unborn',
      '- Unborn false never born',
      '+ ChattyOpen',
      '- ChattyOpen false to nobody',
    ])
  }))

test('LOC-1 workerLocal: one value per worker, made once, in the scope of none of its calls', () =>
  seeds(2, async () => {
    const before = await call('worker1', countHere)
    expect([before, await call('worker1', countHere), await call('worker0', countHere)]).toEqual([1, 2, 1])
    expect(await call('worker1', madeIn)).toEqual({ name: 'worker1', deadlineMs: Number.POSITIVE_INFINITY, chain: null })
    expect(await failure(call('worker1', madeBadly))).toMatchObject({ message: 'try 1' })
    expect(await failure(call('worker1', madeBadly))).toMatchObject({ message: 'try 2' })
  }))

test('LOC-1 outside of any worker there is none', () => {
  expect(thrown(readLog).code).toBe('RPC_NOT_INITIALIZED')
  expect(thrown(() => new Chatty()).code).toBe('RPC_NOT_INITIALIZED')
})
