/** The accounts of one pair, without a link: the counts, notices to the sender, and who gets the room. */
import { describe, expect, test } from '@jest/globals'
import { thrown } from '../worker/sim-cluster.suite.js'
import { checkMailbox, IncomingCalls, OutgoingCalls } from './call-credits.js'

/** A clock on which only `defer` happens, when the test says so. */
function handClock() {
  const deferred: (() => void)[] = []
  return {
    now: () => 0,
    setTimer: () => ({ cancel: () => {} }),
    defer: (fn: () => void) => void deferred.push(fn),
    turn: () => {
      for (const fn of deferred.splice(0)) fn()
    },
  }
}

function pair(callsMax: number, bytesMax = 1000) {
  const clock = handClock()
  const window = checkMailbox({ callsMax, bytesMax })
  return { clock, outgoing: new OutgoingCalls(window, clock), incoming: new IncomingCalls(window) }
}

describe('the window of a pair', () => {
  test('CRE-1: is full with callsMax calls, or when their bytes have reached bytesMax, whichever comes first', () => {
    const { outgoing } = pair(3)
    for (let i = 0; i < 3; i++) {
      expect(outgoing.isFull).toBe(false)
      outgoing.onSent(10)
    }
    expect(outgoing.isFull).toBe(true)

    const byBytes = pair(3).outgoing
    byBytes.onSent(999)
    expect(byBytes.isFull).toBe(false)
    byBytes.onSent(5000)
    expect(byBytes.isFull).toBe(true)
  })

  test('CRE-4: the sender is told after half a window of begun calls or bytes, and not before', () => {
    const { incoming } = pair(8)
    for (let i = 0; i < 8; i++) incoming.onReceived(10)
    const told = Array.from({ length: 8 }, () => {
      const isDue = incoming.onBegun(10)
      if (isDue) incoming.onTold()
      return isDue
    })
    expect(told).toEqual([false, false, false, true, false, false, false, true])
    incoming.onReceived(499)
    expect(incoming.onBegun(499)).toBe(false)
    incoming.onReceived(1)
    expect(incoming.onBegun(1)).toBe(true)
  })

  test('CRE-4: a sender that sees no room has enough waiting for the receiver to tell it, whatever the window (no stall)', () => {
    for (const [callsMax, bytesMax] of [
      [1, 1],
      [1, 1000],
      [2, 7],
      [3, 1000],
      [5, 33],
      [1000, 10],
    ] as const) {
      const { outgoing, incoming } = pair(callsMax, bytesMax)
      const waiting: number[] = []
      let told = 0
      for (let step = 0; step < 400; step++) {
        const bytes = 1 + (step % 11)
        if (!outgoing.isFull) {
          outgoing.onSent(bytes)
          expect(incoming.onReceived(bytes)).toBe(true)
          waiting.push(bytes)
        } else {
          // Full: only what the receiver does by itself can help.
          expect(waiting.length).toBeGreaterThan(0)
          if (incoming.onBegun(waiting.shift()!)) {
            incoming.onTold()
            told++
            outgoing.onProgress(incoming.begun, incoming.begunBytes)
          }
        }
        expect(outgoing.calls).toBeGreaterThanOrEqual(incoming.calls)
        expect(incoming.calls).toBeLessThanOrEqual(callsMax)
      }
      expect(told).toBeGreaterThan(0)
    }
  })

  test('CRE-6: what is beyond the window is not within it, and counts all the same until it has been answered', () => {
    const { incoming } = pair(2)
    expect([incoming.onReceived(1), incoming.onReceived(1), incoming.onReceived(1)]).toEqual([true, true, false])
    expect(incoming.calls).toBe(3)
    incoming.onBegun(1)
    expect(incoming.calls).toBe(2)
    expect(incoming.onReceived(1)).toBe(false)
  })

  test('CRE-6: a total that the receiver cannot have begun gives no room', () => {
    const { outgoing } = pair(2)
    outgoing.onSent(10)
    outgoing.onSent(10)
    expect([outgoing.hasSent(1e9, 20), outgoing.hasSent(2, 1e12), outgoing.hasSent(2, 20)]).toEqual([false, false, true])
    outgoing.onProgress(1, 10)
    expect([outgoing.calls, outgoing.bytes]).toEqual([1, 10])
    outgoing.onProgress(0, 0)
    expect([outgoing.calls, outgoing.bytes]).toEqual([1, 10])
  })

  test('CRE-7: a place that was promised is kept until a call takes it or the turn ends', () => {
    const { outgoing, clock } = pair(2)
    expect([outgoing.reserve(), outgoing.reserve(), outgoing.reserve()]).toEqual([true, true, false])
    outgoing.onSent(1)
    expect(outgoing.reserve()).toBe(false)
    clock.turn()
    expect([outgoing.reserve(), outgoing.reserve()]).toEqual([true, false])
  })

  test('CRE-8: room goes to those who wait, in order, one place each; the rest is offered when a place was not used', () => {
    const { outgoing, clock } = pair(2)
    outgoing.onSent(1)
    outgoing.onSent(1)
    const log: string[] = []
    for (const name of ['a', 'b', 'c']) {
      const waiter = {
        resolve: () => {
          outgoing.waiters.delete(waiter)
          log.push(name)
        },
        reject: () => {},
      }
      outgoing.waiters.add(waiter)
    }
    outgoing.onProgress(2, 2)
    expect(log).toEqual(['a', 'b'])
    outgoing.onSent(1)
    clock.turn()
    expect(log).toEqual(['a', 'b', 'c'])
  })

  test('CRE-2: the window is integers from 1 on', () => {
    expect(checkMailbox()).toEqual({ callsMax: 16_384, bytesMax: 67_108_864 })
    for (const bad of [0, -1, 1.5, Number.NaN, Number.POSITIVE_INFINITY]) {
      expect(thrown(() => checkMailbox({ callsMax: bad })).code).toBe('INVALID_ARGUMENT')
      expect(thrown(() => checkMailbox({ bytesMax: bad })).code).toBe('INVALID_ARGUMENT')
    }
  })
})
