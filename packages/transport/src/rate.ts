/**
 * How fast this process does something for its peers, by who they are: so much at once, and then so much a second. Rates nest as budgets do (`budget.ts`): an identity has half of what its role has, and a
 * role half of what all have. Nothing is refused: a peer over its rate waits. Only the identity owes all that it has used. Its role, and all together, owe what one second gives back at most: one identity
 * that asks for much at once does not make others wait for longer.
 */
import { type Holder, levelsOf } from './budget.js'
import type { Clock } from './clock.js'

/** A pause is so long at least: fewer and longer ones cost less. */
const PAUSE_MS_MIN = 100
/** Holders that have used nothing for a while are forgotten when there are so many. */
const KNOWN_MAX = 1024

interface Bucket {
  spent: number
  atMs: number
}

export class Rate {
  private readonly clock: Clock
  private readonly perSecond: number
  private readonly seconds: number
  private readonly buckets = new Map<string, Bucket>()

  /** @param seconds what is given in so many seconds may be used at once */
  constructor(clock: Clock, perSecond: number, seconds: number) {
    this.clock = clock
    this.perSecond = perSecond
    this.seconds = seconds
  }

  /** Uses so much. @returns how long, in ms, nothing more is to be done for this holder; 0: it is within its rate */
  spend(holder: Holder, amount: number): number {
    const nowMs = this.clock.now()
    let pauseMs = 0
    let isFirst = true
    for (const { key, limit } of levelsOf(holder, false, this.perSecond)) {
      const bucket = this.bucketOf(key, nowMs)
      const spent = Math.max(0, bucket.spent - ((nowMs - bucket.atMs) * limit) / 1000)
      bucket.spent = isFirst ? spent + amount : Math.max(spent, Math.min(spent + amount, limit * (this.seconds + 1)))
      bucket.atMs = nowMs
      isFirst = false
      const beyond = bucket.spent - limit * this.seconds
      if (beyond > 0) pauseMs = Math.max(pauseMs, PAUSE_MS_MIN, (beyond * 1000) / limit)
    }
    return pauseMs
  }

  private bucketOf(key: string, nowMs: number): Bucket {
    const known = this.buckets.get(key)
    if (known !== undefined) return known
    if (this.buckets.size >= KNOWN_MAX) {
      for (const [other, { spent, atMs }] of this.buckets) {
        // Even the smallest part of the rate has refilled it since.
        if (nowMs - atMs > (8000 * spent) / this.perSecond) this.buckets.delete(other)
      }
    }
    const made = { spent: 0, atMs: nowMs }
    this.buckets.set(key, made)
    return made
  }
}
