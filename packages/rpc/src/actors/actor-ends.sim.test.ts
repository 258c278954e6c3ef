/** The end of an actor with open streams, running methods, and calls that these have made. */

import { describe, expect, test } from '@jest/globals'
import { Future } from '@postgrad/base'
import { Actor } from '../api/actor.js'
import { call, currentSignal, currentWorker, ready, remote } from '../api/api.js'
import { stopActor } from '../api/monitor.js'
import { workerLocal } from '../api/worker-local.js'
import type { RemoteStream } from '../calls/stream.js'
import { asyncExecution } from '../common/async-execution.js'
import { expose } from '../common/function-registry.js'
import type { RRef } from '../references/rref.js'
import { Cluster, failure, withSeed } from '../worker/sim-cluster.suite.js'

const SEEDS = 15

const sleep = (ms: number): Promise<void> => {
  const { clock } = currentWorker()
  return new Promise((resolve) => {
    clock.setTimer(ms, resolve)
  })
}
const codeOf = (signal: AbortSignal): string => (signal.reason as { code?: string } | undefined)?.code ?? 'none'

const log = workerLocal((): string[] => [])
const readLog = (): string[] => log().splice(0)
/** Until nobody waits for it. */
const waitLong = async (): Promise<void> => {
  const signal = currentSignal()
  await new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve()))
  log().push(`long: ${codeOf(signal)}`)
}

class Feed extends Actor {
  private last = -1
  private readonly answer = new Future<string>()

  async *items(n: number, ms = 5): AsyncGenerator<number> {
    try {
      for (let i = 0; i < n; i++) {
        this.last = i
        yield i
        await sleep(ms)
      }
    } finally {
      log().push('finally')
    }
  }
  async later(n: number): Promise<AsyncGenerator<number>> {
    await sleep(10)
    return this.items(n)
  }
  *now(n: number): Generator<number> {
    try {
      for (let i = 0; i < n; i++) yield i
    } finally {
      log().push('finally')
    }
  }
  /** Waits for nothing that ends. */
  async *stuck(): AsyncGenerator<number> {
    yield 0
    await new Promise(() => {})
  }
  async *stopsItself(): AsyncGenerator<number> {
    yield 1
    this.stop()
  }
  async *tidies(): AsyncGenerator<number> {
    try {
      yield* this.items(100)
    } finally {
      log().push(`tidied ${await call('worker0', add, [1, 1])}`)
    }
  }
  crash(): void {
    this.send(this.boom, [])
  }
  private boom(): never {
    throw new RangeError('boom')
  }
  async work(): Promise<void> {
    const signal = currentSignal()
    await new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve()))
    log().push(`work: ${codeOf(signal)}`)
  }
  async callsLong(to: string): Promise<void> {
    await call(to, waitLong, []).catch((error) => log().push(`its call: ${error.code}`))
  }
  poll(to: string): void {
    this.send(this.polls, [to])
    this.setTimer(1, this.polls, [to])
  }
  private async polls(to: string): Promise<void> {
    const signal = currentSignal()
    const called = call(to, waitLong, []).catch((error) => log().push(`its call: ${error.code}`))
    while (!signal.aborted) await sleep(1)
    log().push(`poll: ${codeOf(signal)}`)
    await called
  }
  ping(): number {
    return this.last
  }
  readonly shared = asyncExecution((): Future<string> => this.answer)
  answers = ''
  setAnswer(answer: string): void {
    this.answers = answer
  }
  protected override onStop(): void {
    log().push('onStop')
    if (this.answers !== '') this.answer.setResult(this.answers)
  }
}
class Timers extends Actor {
  never(): void {
    this.setTimer(Number.POSITIVE_INFINITY, this.never, [])
  }
}
class SerialFeed extends Feed {
  static readonly serial = true
}
const add = (a: number, b: number): number => a + b
expose({ Feed, Timers, SerialFeed, readLog, waitLong, add })

async function seeds(size: number, main: (cluster: Cluster) => Promise<void>, letters = 0) {
  for (let seed = 1; seed <= SEEDS; seed++) {
    await withSeed(seed, async () => {
      const cluster = new Cluster(seed, size)
      await cluster.run(0, () => main(cluster))
      expect(await cluster.leftovers({ letters })).toEqual([])
      for (const { actors } of cluster.workers) expect(actors.count).toBe(0)
    })
  }
}

/** Takes all, and says what ended it. */
async function drain(items: RemoteStream<number>): Promise<{ readonly taken: number; readonly error: Error & { readonly code: string } }> {
  let taken = 0
  const loop = async () => {
    for await (const _ of items) {
      taken++
      await sleep(1)
    }
  }
  return { error: await failure(loop()), taken }
}

type End = (feed: RRef<Feed>) => Promise<unknown>
const ends: Record<string, End> = {
  crashed: (feed) => feed.call('crash', []),
  killed: (feed) => stopActor(feed, { shutdownMs: 0 }),
  stopped: (feed) => stopActor(feed),
}

describe('ACT-17: the open streams of an actor end with it', () => {
  for (const [how, end] of Object.entries(ends)) {
    test(`ACT-17: it is ${how}: the consumer is told ACTOR_STOPPED behind what was sent, the generator runs its finally`, () =>
      seeds(
        2,
        async () => {
          for (const make of [Feed, SerialFeed]) {
            for (const to of ['worker1', 'worker0']) {
              using feed = remote(to, make, []) as RRef<Feed>
              const streamed = drain(feed.stream('items', [200]))
              const sync = drain(feed.stream('now', [1e9], { window: 2 }))
              await sleep(50)
              await end(feed)
              const { taken, error } = await streamed
              expect(error).toMatchObject({ code: 'ACTOR_STOPPED', op: "call of 'items'", values: { crashed: how !== 'stopped' } })
              expect(taken).toBeGreaterThan(5)
              expect(taken).toBeLessThan(15)
              expect((await sync).error.code).toBe('ACTOR_STOPPED')
              if (how === 'crashed') expect(error.message).toContain('boom')
              await sleep(20)
              // Before onStop: what is tidied up may still be used by the generator.
              expect(await call(to, readLog)).toEqual(how === 'stopped' ? ['finally', 'finally', 'onStop'] : ['finally', 'finally'])
              expect((await failure(feed.stream('items', [1]).next())).code).toBe('ACTOR_STOPPED')
            }
          }
        },
        // Nobody watched them.
        how === 'stopped' ? 0 : 4,
      ))
  }

  test('ACT-17: whenever it ends, no stream goes on, and none ends as if it were whole', async () => {
    for (let seed = 1; seed <= 60; seed++) {
      await withSeed(seed, async () => {
        const cluster = new Cluster(seed, 2)
        await cluster.run(0, async () => {
          const feed = remote('worker1', Feed, [])
          const methods = ['items', 'later', 'now'] as const
          const streams = methods.map((method) => drain(feed.stream(method, [1000], { window: 1 + (seed % 3) })))
          await sleep((seed % 20) / 2)
          await Object.values(ends)[seed % 3]!(feed)
          for (const { error, taken } of await Promise.all(streams)) {
            expect(error.code).toBe('ACTOR_STOPPED')
            expect(taken).toBeLessThan(1000)
          }
          feed.dispose()
          await sleep(50)
        })
        const { servingCalls, pendingCalls } = cluster.info(1)
        expect([servingCalls, pendingCalls]).toEqual([0, 0])
      })
    }
  })

  test('ACT-17: a generator that is stuck keeps its consumer from nothing, when its actor is killed', () =>
    seeds(
      2,
      async () => {
        using feed = remote('worker1', Feed, [])
        const streamed = drain(feed.stream('stuck', []))
        await sleep(10)
        const { clock } = currentWorker()
        const startMs = clock.now()
        // It is asked first.
        await stopActor(feed, { shutdownMs: 30 })
        expect((await streamed).error.code).toBe('ACTOR_STOPPED')
        expect(clock.now() - startMs).toBeLessThan(40)
        expect(await call('worker1', readLog)).toEqual([])
      },
      1,
    ))

  test('ACT-17: a generator may stop its actor as its last act, and its finally may call when the actor is stopped', () =>
    seeds(2, async () => {
      using first = remote('worker1', Feed, [])
      const items: number[] = []
      for await (const item of first.stream('stopsItself', [])) items.push(item)
      expect(items).toEqual([1])
      await sleep(5)
      using second = remote('worker1', Feed, [])
      const streamed = drain(second.stream('tidies', []))
      await sleep(20)
      await stopActor(second)
      expect((await streamed).error.code).toBe('ACTOR_STOPPED')
      expect(await call('worker1', readLog)).toEqual(['onStop', 'finally', 'tidied 2', 'onStop'])
    }))

  test('ACT-12, ACT-17: with the last reference it ends when its open streams have: these are what was called before', () =>
    seeds(2, async () => {
      const feed = remote('worker1', Feed, [])
      const streams = [feed.stream('items', [20]), feed.stream('now', [40])]
      feed.dispose()
      const counts = streams.map(async (items) => {
        let taken = 0
        for await (const _ of items) taken++
        return taken
      })
      expect(await Promise.all(counts)).toEqual([20, 40])
      await sleep(5)
      expect(await call('worker1', readLog)).toEqual(['finally', 'finally', 'onStop'])
    }))
})

describe('ACT-18: what an actor serves finds its signal aborted when the actor has ended', () => {
  for (const how of ['crashed', 'killed']) {
    test(`ACT-18: it is ${how}: its running methods hear of it, and what they have called is cancelled`, () =>
      seeds(
        3,
        async () => {
          using feed = remote('worker1', Feed, [])
          const calls = [feed.call('work', []), feed.call('callsLong', ['worker2'])]
          const failures = calls.map((called) => failure(called))
          await sleep(20)
          await ends[how]!(feed)
          for (const error of await Promise.all(failures)) expect(error).toMatchObject({ code: 'ACTOR_STOPPED', values: { crashed: true } })
          await sleep(20)
          expect((await call('worker1', readLog)).sort()).toEqual(['its call: CALL_CANCELLED', 'work: ACTOR_STOPPED'])
          expect(await call('worker2', readLog)).toEqual(['long: CALL_CANCELLED'])
        },
        1,
      ))
  }

  test('ACT-18: so do methods that it sent to itself or set a timer for', () =>
    seeds(
      3,
      async () => {
        using feed = remote('worker1', Feed, [])
        await feed.call('poll', ['worker2'])
        await sleep(20)
        await stopActor(feed, { shutdownMs: 0 })
        await sleep(20)
        expect((await call('worker1', readLog)).sort()).toEqual([
          'its call: CALL_CANCELLED',
          'its call: CALL_CANCELLED',
          'poll: ACTOR_STOPPED',
          'poll: ACTOR_STOPPED',
        ])
        expect((await call('worker2', readLog)).length).toBe(2)
      },
      1,
    ))

  test('ACT-18, CAN-10: and they hear of the shutdown of their worker', async () => {
    const cluster = new Cluster(1, 3)
    await cluster.run(0, async () => {
      const feed = remote('worker1', Feed, [])
      await feed.call('poll', ['worker2'])
      await sleep(20)
      await cluster.workers[1]!.close()
      await sleep(5)
      expect(cluster.workers[1]!.run(readLog)).toEqual(expect.arrayContaining(['poll: RPC_SHUT_DOWN', 'poll: RPC_SHUT_DOWN']))
      feed.dispose()
    })
  })

  test('ACT-18: callers of an asyncExecution method that has no answer when the actor has stopped are told; what onStop answers is theirs', () =>
    seeds(2, async () => {
      for (const answer of ['', 'at last']) {
        using feed = remote('worker1', Feed, [])
        await feed.call('setAnswer', [answer])
        const shared = feed.call('shared', []).then(
          (value) => value,
          (error: { readonly code: string }) => error.code,
        )
        await sleep(5)
        await stopActor(feed)
        expect(await shared).toBe(answer === '' ? 'ACTOR_STOPPED' : answer)
      }
    }))
})

test('ACT-7: a timer that never fires is refused', () =>
  seeds(2, async () => {
    using timers = remote('worker1', Timers, [])
    expect(await failure(timers.call('never', []))).toMatchObject({ code: 'TIMEOUT_INVALID', op: 'setTimer' })
  }))

test('ACT-16: one that is ended at once says so, and one that was given time how much', () =>
  seeds(
    2,
    async () => {
      for (const shutdownMs of [0, 20]) {
        using feed = remote('worker1', Feed, [])
        const work = failure(feed.call('work', []))
        await sleep(5)
        await stopActor(feed, { shutdownMs })
        const { message, remedy } = (await work).cause as Error & { readonly remedy: string }
        expect(message).toContain(
          shutdownMs === 0 ? 'was ended at once, as { shutdownMs: 0 } asks' : 'had not ended by itself within 20 ms',
        )
        expect(remedy).toContain(shutdownMs === 0 ? 'Give it a { shutdownMs } if' : 'Give it a longer { shutdownMs }')
      }
    },
    2,
  ))

test('CAN-2: what is no AbortSignal is refused before anything is sent', () =>
  seeds(2, async () => {
    using feed = remote('worker1', Feed, [])
    for (const signal of [{}, null, new AbortController()]) {
      const options = { signal: signal as AbortSignal }
      const refusals = [
        call('worker1', add, [1, 2], options),
        feed.call('ping', [], options),
        feed.stream('items', [1], options).next(),
        ready('worker1', options),
        feed.toHere(options),
        (async () => remote('worker1', Feed, [], options))(),
      ]
      for (const refusal of refusals)
        expect(await failure(refusal)).toMatchObject({ code: 'INVALID_ARGUMENT', remedy: expect.stringContaining('AbortController') })
    }
  }))
