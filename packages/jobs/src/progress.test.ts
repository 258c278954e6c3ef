/** Tests reports of progress: thinned out, in order, the last one always. */

import { describe, expect, test } from '@jest/globals'
import type { Clock, Timer } from '@postgrad/transport'
import { ProgressReporter } from './progress.js'

/** A clock that is moved by hand. */
class HandClock implements Clock {
  private nowMs = 0
  private timers: { atMs: number; fn: () => void }[] = []

  now(): number {
    return this.nowMs
  }

  setTimer(delayMs: number, fn: () => void): Timer {
    const timer = { atMs: this.nowMs + delayMs, fn }
    this.timers.push(timer)
    return {
      cancel: () => {
        this.timers = this.timers.filter((other) => other !== timer)
      },
    }
  }

  defer(fn: () => void): void {
    this.setTimer(0, fn)
  }

  get pending(): number {
    return this.timers.length
  }

  /** Time passes; nothing else happens. */
  passWithoutTurns(ms: number): void {
    this.nowMs += ms
  }

  advance(ms: number): void {
    this.nowMs += ms
    const due = this.timers.filter(({ atMs }) => atMs <= this.nowMs)
    this.timers = this.timers.filter(({ atMs }) => atMs > this.nowMs)
    for (const { fn } of due) fn()
  }
}

function reporter(): { clock: HandClock; seen: number[]; reporter: ProgressReporter } {
  const clock = new HandClock()
  const seen: number[] = []
  return { clock, seen, reporter: new ProgressReporter(clock, ({ done }) => seen.push(done)) }
}

describe('ProgressReporter', () => {
  test('the first at once, then the latest of each interval', () => {
    const { clock, seen, reporter: it } = reporter()
    for (const done of [1, 2, 3]) it.report({ done })
    expect(seen).toEqual([1])
    clock.advance(50)
    expect(seen).toEqual([1, 3])
    it.report({ done: 4 })
    clock.advance(50)
    expect(seen).toEqual([1, 3, 4])
    clock.advance(50)
    expect(clock.pending).toBe(0)
  })

  test('JOB-4 in a loop without an await, where no timer fires, one report per interval', () => {
    const { clock, seen, reporter: it } = reporter()
    for (let done = 0; done <= 120; done++) {
      it.report({ done })
      clock.passWithoutTurns(1)
    }
    it.flush()
    expect(seen).toEqual([0, 50, 100, 120])
    expect(clock.pending).toBe(0)
  })

  test('flush posts what waits, once, and leaves no timer', () => {
    const { clock, seen, reporter: it } = reporter()
    for (const done of [1, 2]) it.report({ done })
    it.flush()
    it.flush()
    expect(seen).toEqual([1, 2])
    expect(clock.pending).toBe(0)
  })
})
