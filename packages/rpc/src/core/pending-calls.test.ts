/** Deadlines of many calls under one timer, on a clock that a test moves. */
import { describe, expect, test } from '@jest/globals'
import { PostgradError } from '@postgrad/base'
import type { Clock, Timer } from '@postgrad/transport'
import type { Message } from '@postgrad/wire/internal'
import { Activity, Deadlines, GRAIN_MS, type PendingCall, PendingCalls, STAND_MS } from './pending-calls.js'
import { ServedCall } from './served-call.js'

/** Moves only by `to`; fires what is due at its exact time. */
class HandClock implements Clock {
  nowMs = 1000
  armed: { atMs: number; fn: () => void }[] = []
  fired = 0
  set = 0
  held = false

  now(): number {
    return this.nowMs
  }

  setTimer(delayMs: number, fn: () => void): Timer {
    const entry = { atMs: this.nowMs + delayMs, fn }
    this.armed.push(entry)
    this.set++
    return { cancel: () => (this.armed = this.armed.filter((one) => one !== entry)) }
  }

  defer(): void {
    throw new Error('nothing is deferred here')
  }

  isHeld(): boolean {
    return this.held
  }

  to(ms: number): void {
    for (;;) {
      const next = this.armed.filter(({ atMs }) => atMs <= 1000 + ms).sort((a, b) => a.atMs - b.atMs)[0]
      if (next === undefined) break
      this.armed = this.armed.filter((one) => one !== next)
      this.nowMs = next.atMs
      this.fired++
      next.fn()
    }
    this.nowMs = 1000 + ms
  }
}

/** Notes when it timed out. */
class Call implements PendingCall {
  deadlineMs = 0
  parent: ServedCall | null = null
  readonly op = 'test'
  endedMs: number | null = null
  error: unknown = null
  private readonly clock: HandClock
  private readonly after: () => void

  constructor(clock: HandClock, after: () => void = () => {}) {
    this.clock = clock
    this.after = after
  }

  onReply(_message: Message): void {}

  onError(error: unknown): void {
    expect(this.endedMs).toBeNull()
    this.endedMs = this.clock.nowMs - 1000
    this.error = error
    this.after()
  }

  timedOut(): PostgradError {
    return new PostgradError('RPC_TIMEOUT', { op: 'test' })
  }
}

const PEER = { name: 'worker1', id: 1 }

function setUp(peers = 1, onGivenUp: (requestId: number) => void = () => {}) {
  const clock = new HandClock()
  const deadlines = new Deadlines({ clock, activity: new Activity(), observer: null })
  const pending = Array.from({ length: peers }, () => deadlines.watch(new PendingCalls(deadlines, PEER, onGivenUp)))
  return { clock, deadlines, pending, one: pending[0]! }
}

describe('deadlines', () => {
  test.each([1, 5, 10, 50, 999, 1000, 1001, 60_000, 1e8])(
    'RPC-25: a call of %d ms ends then, not earlier and at most GRAIN_MS later',
    (timeoutMs) => {
      const { clock, one } = setUp()
      const call = new Call(clock)
      one.add(1, call, timeoutMs)
      clock.to(timeoutMs - 0.5)
      expect(call.endedMs).toBeNull()
      clock.to(timeoutMs + GRAIN_MS)
      expect(call.endedMs).toBeGreaterThanOrEqual(timeoutMs)
      expect(call.error).toMatchObject({ code: 'RPC_TIMEOUT' })
      expect(one.size).toBe(0)
    },
  )

  test('RPC-25: of 2,000 calls with all kinds of deadlines, to three peers, each ends in its own time', () => {
    const { clock, pending } = setUp(3)
    const calls: { call: Call; deadlineMs: number }[] = []
    let x = 12345
    for (let i = 0; i < 2000; i++) {
      x = (Math.imul(x, 1103515245) + 12345) >>> 0
      const timeoutMs = 1 + (x % 30_000) / 7
      const call = new Call(clock)
      pending[i % 3]!.add(i, call, timeoutMs)
      calls.push({ call, deadlineMs: clock.nowMs - 1000 + timeoutMs })
      if (i % 10 === 0) clock.to(clock.nowMs - 1000 + (x % 13))
    }
    expect(clock.armed.length).toBe(1)
    clock.to(20_000)
    for (const { call, deadlineMs } of calls) {
      expect(call.endedMs).toBeGreaterThanOrEqual(deadlineMs - 1e-6)
      expect(call.endedMs).toBeLessThanOrEqual(deadlineMs + GRAIN_MS + 1e-6)
    }
    expect(clock.armed).toEqual([])
  })

  test('RPC-25: a call without a limit never ends so, and sets no timer', () => {
    const { clock, one } = setUp()
    const call = new Call(clock)
    one.add(1, call, Number.POSITIVE_INFINITY)
    expect(clock.armed).toEqual([])
    clock.to(1e9)
    expect(call.endedMs).toBeNull()
    expect(one.size).toBe(1)
  })

  test('RPC-25: while a debugger may hold the program no deadline ends a call; then those that have passed do', () => {
    const { clock, one } = setUp()
    const call = new Call(clock)
    clock.held = true
    one.add(1, call, 50)
    clock.to(10_000)
    expect(call.endedMs).toBeNull()
    clock.held = false
    clock.to(20_000)
    expect(call.endedMs).toBeLessThanOrEqual(10_000 + STAND_MS)
    expect(clock.armed).toEqual([])
  })

  test('RPC-26: one timer for all calls; calls with later deadlines set none', () => {
    const { clock, one } = setUp()
    for (let i = 0; i < 1000; i++) one.add(i, new Call(clock), 500 + i)
    expect(clock.set).toBe(1)
    one.add(1000, new Call(clock), 20)
    expect(clock.set).toBe(2)
    expect(clock.armed.map(({ atMs }) => atMs)).toEqual([1020])
  })

  test('RPC-26: calls that follow each other for a minute, each answered at once, set a timer once a second', () => {
    const { clock, one } = setUp()
    for (let ms = 0; ms < 60_000; ms++) {
      clock.to(ms)
      one.add(ms, new Call(clock), 60_000)
      one.take(ms)
    }
    expect(clock.set).toBeLessThanOrEqual(60_000 / STAND_MS)
  })

  test('RPC-26: when nothing waits any more, no timer is left after STAND_MS', () => {
    const { clock, one } = setUp()
    one.add(1, new Call(clock), 60_000)
    one.take(1)
    clock.to(STAND_MS)
    expect(clock.armed).toEqual([])
  })

  test('RPC-26: it fires no more often than every GRAIN_MS, however close deadlines lie', () => {
    const { clock, one } = setUp()
    for (let i = 0; i < 1000; i++) one.add(i, new Call(clock), 5 + i / 10)
    clock.to(200)
    expect(one.size).toBe(0)
    expect(clock.fired).toBeLessThanOrEqual(1 + 100 / GRAIN_MS + 1)
  })

  test('RPC-26: an answered call is forgotten by the timer', () => {
    const { clock, one } = setUp()
    const answered = new Call(clock)
    const late = new Call(clock)
    one.add(1, answered, 50)
    one.add(2, late, 80)
    expect(one.take(1)).toBe(answered)
    expect(one.take(1)).toBeUndefined()
    clock.to(200)
    expect(answered.endedMs).toBeNull()
    expect(late.endedMs).not.toBeNull()
  })

  test('RPC-25: a call that is made while another times out keeps its own deadline, shorter or longer than those that wait', () => {
    for (const [timeoutMs, others] of [
      [5, 500],
      [500, 30],
      [3, 4],
    ] as const) {
      const { clock, one } = setUp()
      const second = new Call(clock)
      const first = new Call(clock, () => one.add(2, second, timeoutMs))
      const other = new Call(clock)
      one.add(1, first, 100)
      one.add(3, other, 100 + others)
      clock.to(2000)
      const madeMs = first.endedMs!
      expect(second.endedMs).toBeGreaterThanOrEqual(madeMs + timeoutMs)
      expect(second.endedMs).toBeLessThanOrEqual(madeMs + timeoutMs + GRAIN_MS)
      expect(other.endedMs).toBeGreaterThanOrEqual(100 + others)
      expect(other.endedMs).toBeLessThanOrEqual(100 + others + GRAIN_MS)
      expect(clock.armed).toEqual([])
    }
  })

  test('RPC-25: each of a chain of calls made from the end of the one before has its whole time', () => {
    const { clock, one } = setUp()
    const ends: number[] = []
    const next = (n: number) => {
      if (n === 0) return
      const call: Call = new Call(clock, () => {
        ends.push(call.endedMs!)
        next(n - 1)
      })
      one.add(n, call, 7)
    }
    next(20)
    clock.to(1000)
    expect(ends.length).toBe(20)
    ends.reduce((before, at) => {
      expect(at - before).toBeGreaterThanOrEqual(7)
      expect(at - before).toBeLessThanOrEqual(7 + GRAIN_MS)
      return at
    }, 0)
  })
})

describe('ends of all', () => {
  test('RPC-27: failAll ends every call once, each with an error of its own', () => {
    const { clock, one } = setUp()
    const calls = Array.from({ length: 5 }, () => new Call(clock))
    for (const [i, call] of calls.entries()) one.add(i, call, 100)
    one.failAll(() => new PostgradError('WORKER_DIED', { op: 'test' }))
    expect(one.size).toBe(0)
    expect(new Set(calls.map(({ error }) => error)).size).toBe(5)
    clock.to(500)
    for (const call of calls) expect(call.error).toMatchObject({ code: 'WORKER_DIED' })
  })

  test('RPC-27: a peer that is unwatched has no deadlines any more, the others keep theirs', () => {
    const { clock, deadlines, pending } = setUp(2)
    const gone = new Call(clock)
    const stays = new Call(clock)
    pending[0]!.add(1, gone, 50)
    pending[1]!.add(1, stays, 60)
    deadlines.unwatch(pending[0]!)
    clock.to(200)
    expect(gone.endedMs).toBeNull()
    expect(stays.endedMs).not.toBeNull()
  })

  test('RPC-31: close leaves no timer', () => {
    const { clock, deadlines, one } = setUp()
    one.add(1, new Call(clock), 50)
    deadlines.close()
    expect(clock.armed).toEqual([])
  })
})

describe('cancellation', () => {
  test('CAN-1: ends one call, once, and tells that the callee may be at it; so does a deadline, but no reply', () => {
    const told: number[] = []
    const { clock, one } = setUp(1, (requestId) => told.push(requestId))
    const calls = [1, 2, 3].map((requestId) => {
      const call = new Call(clock)
      one.add(requestId, call, 50)
      return call
    })
    expect([one.cancel(1, 'why'), one.cancel(1, 'why')]).toEqual([true, false])
    expect(calls[0]!.error).toMatchObject({ code: 'CALL_CANCELLED', op: 'test', values: { worker: 'worker1', workerId: 1 }, cause: 'why' })
    one.take(2)
    clock.to(100)
    expect(told).toEqual([1, 3])
    expect(calls[2]!.error).toMatchObject({ code: 'RPC_TIMEOUT' })
  })

  test('CAN-5: ends the calls of these parents, and no others', () => {
    const { clock, one } = setUp()
    const [parent, other] = [new ServedCall(PEER, 1, Number.POSITIVE_INFINITY), new ServedCall(PEER, 2, Number.POSITIVE_INFINITY)]
    const calls = [parent, other, null, parent].map((of, requestId) => {
      const call = new Call(clock)
      one.add(requestId, call, 50, of)
      return call
    })
    parent.giveUp(new PostgradError('WORKER_DIED', { op: 'test' }))
    one.cancelChildren(new Set([parent]))
    expect(calls.map(({ error }) => (error as PostgradError | null)?.code)).toEqual([
      'CALL_CANCELLED',
      undefined,
      undefined,
      'CALL_CANCELLED',
    ])
    expect((calls[0]!.error as PostgradError).cause).toMatchObject({ code: 'WORKER_DIED' })
  })
})
