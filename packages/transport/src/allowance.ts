/** Limits how fast a peer uses something (refusals, time, requests, empty chunks): an amount at once, refilled with time. A peer beyond it waits; nothing is refused. */
import type { Clock } from './clock.js'

/** A pause is so long at least: fewer and longer ones cost less. */
const PAUSE_MS_MIN = 100

export class Allowance {
  private readonly clock: Clock
  private readonly atOnce: number
  private readonly perSecond: number
  private spent = 0
  private atMs = 0

  constructor(clock: Clock, atOnce: number, perSecond: number) {
    this.clock = clock
    this.atOnce = atOnce
    this.perSecond = perSecond
  }

  /**
   * Uses so much. @returns how long, in ms, nothing more is to be used; 0: there was room
   * @param debtMax this use makes no more debt than that
   */
  spend(amount = 1, debtMax = Number.POSITIVE_INFINITY): number {
    const left = this.refill()
    this.spent = Math.max(left, Math.min(left + amount, this.atOnce + debtMax))
    const beyond = this.spent - this.atOnce
    return beyond <= 0 ? 0 : Math.max(PAUSE_MS_MIN, (beyond * 1000) / this.perSecond)
  }

  /** Whether all of it is there again. */
  get isWhole(): boolean {
    return this.refill() === 0
  }

  /** @returns what is spent still */
  private refill(): number {
    const nowMs = this.clock.now()
    this.spent = Math.max(0, this.spent - ((nowMs - this.atMs) * this.perSecond) / 1000)
    this.atMs = nowMs
    return this.spent
  }
}
