/**
 * Limits how fast this process works for its peers, by identity: an amount at once, and then an amount a second. Rates nest as budgets do (`budget.ts`): an identity has half of its role's rate, and a
 * role half of the rate of all. A peer over its rate waits; nothing is refused. An identity owes all that it has used. Its role, and all together, owe at most what one second gives back, so a
 * burst of one identity does not delay others for longer. `store/store-server.ts` has such rates.
 */
import { Allowance } from './allowance.js'
import { type Holder, levelsOf } from './budget.js'
import type { Clock } from './clock.js'

/** Holders that have used nothing for a while are forgotten when there are so many. */
const KNOWN_MAX = 1024

export class Rate {
  private readonly clock: Clock
  private readonly perSecond: number
  private readonly seconds: number
  private readonly allowances = new Map<string, Allowance>()

  /** @param seconds what is given in so many seconds may be used at once */
  constructor(clock: Clock, perSecond: number, seconds: number) {
    this.clock = clock
    this.perSecond = perSecond
    this.seconds = seconds
  }

  /** Uses so much. @returns how long, in ms, nothing more is to be done for this holder; 0: it is within its rate */
  spend(holder: Holder, amount: number): number {
    let pauseMs = 0
    let isFirst = true
    for (const { key, limit } of levelsOf(holder, false, this.perSecond)) {
      // One second gives this back.
      const debtMax = isFirst ? Number.POSITIVE_INFINITY : limit
      pauseMs = Math.max(pauseMs, this.allowanceOf(key, limit).spend(amount, debtMax))
      isFirst = false
    }
    return pauseMs
  }

  private allowanceOf(key: string, perSecond: number): Allowance {
    const known = this.allowances.get(key)
    if (known !== undefined) return known
    if (this.allowances.size >= KNOWN_MAX) {
      for (const [other, allowance] of this.allowances) if (allowance.isWhole) this.allowances.delete(other)
    }
    const made = new Allowance(this.clock, perSecond * this.seconds, perSecond)
    this.allowances.set(key, made)
    return made
  }
}
