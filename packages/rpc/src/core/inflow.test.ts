/** The bounds of one peer by hand: a clock, and a link that says when it is paused. */
import { describe, expect, test } from '@jest/globals'
import { Pump, Source } from '@postgrad/actor/internal'
import { Lane } from '@postgrad/base/internal'
import type { Clock, Link, Timer } from '@postgrad/transport'
import { Allowance, Session } from '@postgrad/transport/internal'
import {
  Inflow,
  OTHER_BYTES_WAITING_MAX,
  OTHERS_WAITING_MAX,
  READING_MS_MAX,
  READING_MS_PER_SECOND,
  REFUSALS_MAX,
  REFUSALS_PER_SECOND,
  UNREAD_BYTES_MAX,
} from './inflow.js'

class ByHand implements Clock {
  nowMs = 0
  timers: { readonly dueMs: number; readonly fn: () => void }[] = []

  now(): number {
    return this.nowMs
  }

  defer(fn: () => void): void {
    this.setTimer(0, fn)
  }

  setTimer(delayMs: number, fn: () => void): Timer {
    const timer = { dueMs: this.nowMs + delayMs, fn }
    this.timers.push(timer)
    return { cancel: () => (this.timers = this.timers.filter((other) => other !== timer)) }
  }

  pass(ms: number): void {
    const untilMs = this.nowMs + ms
    for (;;) {
      const [next] = this.timers.filter(({ dueMs }) => dueMs <= untilMs).sort((a, b) => a.dueMs - b.dueMs)
      if (next === undefined) break
      this.timers = this.timers.filter((other) => other !== next)
      this.nowMs = next.dueMs
      next.fn()
    }
    this.nowMs = untilMs
  }
}

function bounded() {
  const clock = new ByHand()
  const state = { isPaused: false, isHeld: false, ended: '', unreadBytes: 0 }
  const link = {
    setPaused: (isPaused: boolean) => {
      state.isPaused = isPaused
    },
    abandon: (detail: string) => {
      state.ended = detail
    },
    get unreadBytes() {
      return state.unreadBytes
    },
  } as unknown as Link
  const inflow = new Inflow(clock, link, (isHeld) => {
    state.isHeld = isHeld
  })
  return { clock, state, inflow }
}

describe('what waits', () => {
  test('CRE-16: too many messages, or too many bytes of them, pause the link until half have had their turn', () => {
    for (const [count, bytes] of [
      [OTHERS_WAITING_MAX, 100],
      [4, OTHER_BYTES_WAITING_MAX / 4],
    ] as const) {
      const { state, inflow } = bounded()
      for (let i = 1; i <= count; i++) {
        expect(state.isPaused).toBe(false)
        inflow.onReceived(bytes)
      }
      expect(state.isPaused).toBe(true)
      for (let i = 1; i < count / 2; i++) inflow.onTurn(bytes)
      expect(state.isPaused).toBe(true)
      inflow.onTurn(bytes)
      expect([state.isPaused, state.isHeld]).toEqual([false, false])
    }
  })
})

describe('what takes long to read', () => {
  test('CRE-19: so many ms at once, then so many a second; meanwhile the link is not read, and its calls begin', () => {
    const { clock, state, inflow } = bounded()
    const allowance = new Allowance(clock, READING_MS_MAX, READING_MS_PER_SECOND)
    clock.pass(1e6)
    let readMs = 0
    const beganMs = clock.nowMs
    while (clock.nowMs < beganMs + 10_000) {
      if (state.isPaused) clock.pass(1)
      else {
        clock.pass(8)
        inflow.onRead(allowance, 8)
        readMs += 8
      }
      expect(state.isHeld).toBe(false)
    }
    expect(readMs).toBeLessThanOrEqual(READING_MS_MAX + 10 * READING_MS_PER_SECOND + 8)
    expect(readMs).toBeGreaterThanOrEqual(0.9 * 10 * READING_MS_PER_SECOND)
  })

  test('CRE-19: peers of one allowance share it: one that takes little is read, whatever the others have used up', () => {
    const { clock, state, inflow } = bounded()
    const other = bounded()
    const allowance = new Allowance(clock, READING_MS_MAX, READING_MS_PER_SECOND)
    inflow.onRead(allowance, 2 * READING_MS_MAX)
    other.inflow.onRead(allowance, 9)
    expect([state.isPaused, other.state.isPaused]).toEqual([true, false])
    other.inflow.onRead(allowance, 2)
    expect([state.isPaused, other.state.isPaused]).toEqual([true, true])
  })
})

describe('what is refused', () => {
  test('CRE-17: so many at once, then so many a second; meanwhile the link is not read, and its calls are held', () => {
    const { clock, state, inflow } = bounded()
    const allowance = new Allowance(clock, REFUSALS_MAX, REFUSALS_PER_SECOND)
    clock.pass(1e6)
    for (let i = 0; i < REFUSALS_MAX; i++) inflow.onRefused(allowance)
    expect([state.isPaused, state.isHeld]).toEqual([false, false])
    // Messages that waited before the pause are refused as well, and make it longer.
    for (let i = 0; i < REFUSALS_PER_SECOND; i++) inflow.onRefused(allowance)
    expect([state.isPaused, state.isHeld]).toEqual([true, true])
    clock.pass(990)
    expect(state.isPaused).toBe(true)
    clock.pass(20)
    expect([state.isPaused, state.isHeld]).toEqual([false, false])
    let refused = 0
    const beganMs = clock.nowMs
    for (; clock.nowMs < beganMs + 10_000; clock.pass(1)) {
      if (state.isPaused) continue
      inflow.onRefused(allowance)
      refused++
    }
    expect(refused).toBeLessThanOrEqual(10 * REFUSALS_PER_SECOND)
    expect(refused).toBeGreaterThanOrEqual(90)
  })

  test('CRE-17: peers of one allowance share it: one that is refused more than ten times is paused, and no other', () => {
    const { clock, state, inflow } = bounded()
    const other = bounded()
    const allowance = new Allowance(clock, REFUSALS_MAX, REFUSALS_PER_SECOND)
    for (let i = 0; i < REFUSALS_MAX; i++) inflow.onRefused(allowance)
    expect([state.isPaused, other.state.isPaused]).toEqual([false, false])
    // It is refused now and then, as an honest worker may be: what others have used up does not pause it.
    for (let i = 0; i < 10; i++) other.inflow.onRefused(allowance)
    expect([state.isPaused, other.state.isPaused]).toEqual([false, false])
    other.inflow.onRefused(allowance)
    expect([state.isPaused, other.state.isPaused]).toEqual([false, true])
  })

  test('CRE-17: a refusal may cost more than one', () => {
    const { state, inflow, clock } = bounded()
    const allowance = new Allowance(clock, REFUSALS_MAX, REFUSALS_PER_SECOND)
    let refused = 0
    for (; !state.isPaused && refused < REFUSALS_MAX; refused++) inflow.onRefused(allowance, 5)
    expect(refused).toBe(Math.floor(REFUSALS_MAX / 5) + 1)
  })

  test('CRE-16, CRE-17: a link that is paused for two reasons is read when both are over', () => {
    const { clock, state, inflow } = bounded()
    const allowance = new Allowance(clock, REFUSALS_MAX, REFUSALS_PER_SECOND)
    for (let i = 0; i < OTHERS_WAITING_MAX; i++) inflow.onReceived(1)
    for (let i = 0; i <= REFUSALS_MAX; i++) inflow.onRefused(allowance)
    for (let i = 0; i < OTHERS_WAITING_MAX; i++) inflow.onTurn(1)
    expect(state.isPaused).toBe(true)
    clock.pass(200)
    expect(state.isPaused).toBe(false)
    inflow.close()
    expect(clock.timers).toEqual([])
  })
})

describe('what is not read', () => {
  test('CRE-18: the calls of a peer that leaves too much unread are held until it has read half; its link is read all the time', () => {
    const { clock, state, inflow } = bounded()
    inflow.onCall()
    expect(state.isHeld).toBe(false)
    state.unreadBytes = UNREAD_BYTES_MAX + 1
    inflow.onCall()
    clock.pass(60_000)
    expect([state.isHeld, state.isPaused]).toEqual([true, false])
    state.unreadBytes = UNREAD_BYTES_MAX / 2
    clock.pass(20)
    expect([state.isHeld, clock.timers]).toEqual([false, []])
  })

  test('CRE-18: while one large answer is under way to a slow peer, its calls are served; the second one holds them', () => {
    const clock = new ByHand()
    const options = { clock, self: 1, peer: 2, carrierLoses: false, carrierTakes: false, keptBytesMax: 2 ** 31 }
    const session = new Session(null, options)
    let isHeld = false
    const inflow = new Inflow(clock, session, (is) => {
      isHeld = is
    })
    for (const expected of [false, true]) {
      session.send({ header: new Uint8Array(8), segments: [new Uint8Array(100 * 2 ** 20)] })
      for (let i = 0; i < 10; i++) inflow.onCall()
      expect(isHeld).toBe(expected)
    }
    inflow.close()
    session.abandon('the test is over')
  })

  test('CRE-16, CRE-18: a link that is full of what waits behind held calls lets them begin, and then the peer’s acknowledgements are read', () => {
    const clock = new ByHand()
    const box = new Pump<{ turn(): void }>({ clock, dispatch: (item) => item.turn(), onBug: () => {} }).mailbox
    const source = new Source('peer')
    let isPaused = false
    let unreadBytes = UNREAD_BYTES_MAX + 1
    const link = {
      setPaused: (is: boolean) => {
        isPaused = is
      },
      get unreadBytes() {
        return unreadBytes
      },
    } as unknown as Link
    const inflow = new Inflow(clock, link, (isHeld) => (isHeld ? box.holdCalls(source) : box.releaseCalls(source)))
    const work = () => {
      for (let item = box.take(); item !== undefined; item = box.take()) item.turn()
    }
    const count = 2 * OTHERS_WAITING_MAX
    for (let id = 0; id < count; id++) box.pushFrom(source, Lane.call, { turn: () => inflow.onCall() }, BigInt(id), null)
    work()
    for (let id = 0; id < count && !isPaused; id++) {
      // The last message of the context that the call came in.
      inflow.onReceived(100)
      box.pushFrom(source, Lane.control, { turn: () => inflow.onTurn(100) }, BigInt(count - 1 - id), null)
    }
    for (let seconds = 0; seconds < 10; seconds++) {
      work()
      if (!isPaused) unreadBytes = 0
      clock.pass(1000)
    }
    work()
    expect([isPaused, source.isHeld, inflow.waiting, box.size, clock.timers]).toEqual([false, false, 0, 0, []])
  })

  test('CRE-18: one that is refused over and over meanwhile loses its link', () => {
    const { clock, state, inflow } = bounded()
    const allowance = new Allowance(clock, REFUSALS_MAX, REFUSALS_PER_SECOND)
    state.unreadBytes = UNREAD_BYTES_MAX + 1
    inflow.onCall()
    for (let i = 0; i <= REFUSALS_MAX; i++) {
      expect(state.ended).toBe('')
      clock.pass(1000)
      inflow.onRefused(allowance)
    }
    expect(state.ended).toMatch(`refused ${REFUSALS_MAX + 1} times, and has left ${UNREAD_BYTES_MAX + 1} bytes unread`)
  })
})
