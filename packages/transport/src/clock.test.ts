import { MessageChannel } from 'node:worker_threads'
import { afterEach, describe, expect, test } from '@jest/globals'
import { fakeTimers } from '@postgrad/base/suite'
import { type Clock, RealClock, setDeadline } from './clock.js'
import { EndOfTurn } from './end-of-turn.js'
import { messagePortLink } from './message-port-link.js'

describe('RealClock', () => {
  test('deferred calls keep their order', async () => {
    const clock = new RealClock()
    const seen: number[] = []
    for (let i = 0; i < 3; i++) clock.defer(() => seen.push(i))
    expect(seen).toEqual([])
    await new Promise<void>((resolve) => clock.defer(resolve))
    expect(seen).toEqual([0, 1, 2])
  })

  test('CLK-2 a delay longer than Node can wait does not end at once, and one of Infinity never', async () => {
    const clock = new RealClock()
    let fired = false
    const fire = () => {
      fired = true
    }
    const timers = [2 ** 31, 2 ** 60, Number.POSITIVE_INFINITY].map((delayMs) => clock.setTimer(delayMs, fire))
    await new Promise<void>((resolve) => clock.setTimer(10, resolve))
    for (const timer of timers) timer.cancel()
    expect(fired).toBe(false)
    expect(() => clock.setTimer(Number.NaN, () => {})).toThrow('a timer of NaN ms')
  })

  test('CLK-1 a thread that stood still reads what came meanwhile, and does what that asks of it, before a timer that fell due', async () => {
    const clock = new RealClock()
    const seen: string[] = []
    const { port1, port2 } = new MessageChannel()
    port2.on('message', () => clock.defer(() => seen.push('message')))
    const stoodStill = (): Promise<void> =>
      new Promise((resolve) => {
        port1.postMessage('')
        clock.setTimer(5, () => {
          seen.push('timer')
          resolve()
        })
        const cancelled = clock.setTimer(5, () => seen.push('cancelled'))
        // It is due by then, and waits.
        setImmediate(() => cancelled.cancel())
        const endMs = clock.now() + 50
        while (clock.now() < endMs);
      })
    // Timers are what Node comes to next.
    await new Promise<void>((resolve) => setImmediate(() => resolve(stoodStill())))
    port1.close()
    expect(seen).toEqual(['message', 'timer'])
  })

  test('now never goes back and a cancelled timer does not fire', async () => {
    const clock = new RealClock()
    const before = clock.now()
    let fired = false
    clock
      .setTimer(1, () => {
        fired = true
      })
      .cancel()
    await new Promise<void>((resolve) => clock.setTimer(10, resolve))
    expect(fired).toBe(false)
    expect(clock.now() - before).toBeGreaterThan(5)
  })
})

describe('EndOfTurn', () => {
  const seenFrom = async (from: 'macrotask' | 'microtask' | 'tick') => {
    const seen: string[] = []
    const endOfTurn = new EndOfTurn(() => seen.push('end'))
    const start = () => {
      endOfTurn.arm()
      endOfTurn.arm()
      let hops: Promise<unknown> = Promise.resolve()
      for (let i = 0; i < 3; i++) hops = hops.then(() => seen.push('microtask'))
    }
    await new Promise<void>((resolve) => {
      setImmediate(() => {
        if (from === 'macrotask') start()
        else if (from === 'microtask') Promise.resolve().then(start)
        else process.nextTick(start)
        setImmediate(resolve)
      })
    })
    return seen
  }

  test('runs once, behind all microtasks, when a microtask armed it', async () => {
    expect(await seenFrom('microtask')).toEqual(['microtask', 'microtask', 'microtask', 'end'])
  })

  test.each(['macrotask', 'tick'] as const)('runs once, when the running code is through, when a %s armed it', async (from) => {
    expect(await seenFrom(from)).toEqual(['end', 'microtask', 'microtask', 'microtask'])
  })
})

describe('CLK-3 while a test fakes the timers of the global object', () => {
  let restore = (): void => {}
  afterEach(() => {
    restore()
  })

  test('the clock keeps its time, its timers and its turns', async () => {
    restore = fakeTimers()
    const clock = new RealClock()
    const startMs = clock.now()
    await new Promise<void>((resolve) => clock.setTimer(5, resolve))
    await new Promise<void>((resolve) => clock.defer(resolve))
    expect(clock.now() - startMs).toBeGreaterThanOrEqual(4)
    const never = clock.setTimer(3, () => expect(true).toBe(false))
    never.cancel()
    await new Promise<void>((resolve) => clock.setTimer(6, resolve))
  }, 10_000)

  test('a thread that stood still is told so in real time as well', async () => {
    restore = fakeTimers()
    const clock = new RealClock()
    const fired = new Promise<void>((resolve) => clock.setTimer(1, resolve))
    const endMs = clock.now() + 30
    while (clock.now() < endMs);
    await fired
  })

  test('a link sends at the end of the turn, and its end comes', async () => {
    restore = fakeTimers()
    const { port1, port2 } = new MessageChannel()
    const [a, b] = [messagePortLink(port1), messagePortLink(port2)]
    const received = new Promise<void>((resolve) => b.open({ onFrame: () => resolve(), onTurnEnd: () => {}, onClose: () => {} }))
    const closed = new Promise<void>((resolve) => a.open({ onFrame: () => {}, onTurnEnd: () => {}, onClose: () => resolve() }))
    const { nextTick } = process
    process.nextTick = () => {}
    a.send({ header: new Uint8Array(1), segments: [] })
    process.nextTick = nextTick
    await received
    b.close()
    await closed
    // One whose other end has closed before it is opened.
    const late = new MessageChannel()
    late.port2.close()
    await new Promise<void>((resolve) => new RealClock().setTimer(5, resolve))
    const link = messagePortLink(late.port1)
    await new Promise<void>((resolve) => link.open({ onFrame: () => {}, onTurnEnd: () => {}, onClose: () => resolve() }))
  })
})

test('CLU-115 while a debugger may hold the program a deadline waits; without one it ends what waits', () => {
  const timers: (() => void)[] = []
  let [isHeld, ended] = [true, 0]
  const clock: Clock = {
    now: () => 0,
    setTimer: (_delayMs, fn) => {
      const at = timers.push(fn) - 1
      return { cancel: () => delete timers[at] }
    },
    defer: () => {},
    isHeld: () => isHeld,
  }
  const deadline = setDeadline(clock, 5, () => ended++)!
  timers.at(-1)!()
  expect([timers.length, ended]).toEqual([2, 0])
  isHeld = false
  timers.at(-1)!()
  expect([timers.length, ended]).toEqual([2, 1])
  deadline.cancel()
  expect(timers.at(-1)).toBeUndefined()
  expect(setDeadline(clock, Number.POSITIVE_INFINITY, () => {})).toBeNull()
})
