/** A clock that a test moves by hand: time jumps from timer to timer, and everything that a turn sets going settles before the next. */
import type { Clock, Timer } from '@postgrad/transport'

interface Pending {
  readonly dueMs: number
  readonly fn: () => void
}

export class HandClock implements Clock {
  nowMs = 0
  private pending: Pending[] = []

  now(): number {
    return this.nowMs
  }

  defer(fn: () => void): void {
    this.setTimer(0, fn)
  }

  setTimer(delayMs: number, fn: () => void): Timer {
    const timer: Pending = { dueMs: this.nowMs + Math.max(0, delayMs), fn }
    this.pending.push(timer)
    return {
      cancel: () => {
        this.pending = this.pending.filter((other) => other !== timer)
      },
    }
  }

  get timers(): number {
    return this.pending.length
  }

  /** Lets `ms` pass. */
  async pass(ms: number): Promise<void> {
    const untilMs = this.nowMs + ms
    await settle()
    for (let next = this.next(); next !== undefined && next.dueMs <= untilMs; next = this.next()) {
      this.pending = this.pending.filter((other) => other !== next)
      this.nowMs = Math.max(this.nowMs, next.dueMs)
      next.fn()
      await settle()
    }
    this.nowMs = untilMs
  }

  private next(): Pending | undefined {
    let first: Pending | undefined
    for (const timer of this.pending) if (first === undefined || timer.dueMs < first.dueMs) first = timer
    return first
  }
}

/** Everything that can happen without time passing. */
export function settle(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve))
}
