/** The strikes of each round, from a seed: network faults by the proxies, signals to processes, and how the group is healed. */
import { Random } from '@postgrad/sim/internal'
import type { Fault } from './fault-proxy.fixture.js'

/** In front of a worker's port, or of the store's. */
export type Place = 'worker0' | 'worker1' | 'worker2' | 'store'

/** How a group's processes meet, and what they prove themselves with: at rank 0 with nothing, with a key or with certificates; or by a file, with nothing. */
export type World = 'tcp' | 'key' | 'tls' | 'file'
export const WORLDS: readonly World[] = ['tcp', 'key', 'tls', 'file']

export interface NetworkStrike {
  readonly atMs: number
  readonly lastsMs: number
  readonly where: Place
  readonly fault: Fault
}

export type Strike =
  | NetworkStrike
  | { readonly atMs: number; readonly lastsMs: number; readonly rank: number; readonly signal: 'SIGSTOP' }
  | { readonly atMs: number; readonly rank: number; readonly signal: 'SIGKILL' }

export interface Round {
  readonly strikes: readonly Strike[]
  /** All processes are restarted afterwards, and continue from the checkpoint. */
  readonly isRestarted: boolean
  /** The fault that processes meet when they join again afterwards; null: none. */
  readonly joining: NetworkStrike | null
}

/** When a connection is given up in these groups, in ms: soon, which keeps such a round short. */
export const CONNECTION = { heartbeatMs: 100, suspectMs: 200, deadMs: 600, graceMs: 500, connectMs: 150 } as const

/** The trainer, worker1, has dialled the others: most messages go through their proxies. */
const PLACES: readonly Place[] = ['worker0', 'worker0', 'worker2', 'worker2', 'worker1', 'store']
const RANKS = 3
const BEGIN_MS_MAX = 80
/** Within what is healed, and beyond it. */
const SHORT_MS = [10, 200] as const
const LONG_MS = [800, 1200] as const
/** A group has so many rounds at most: each world has its turn within four times that. */
const GROUP_ROUNDS_MAX = 12
/** Of 100 rounds. */
const PERCENT = { quiet: 8, stopped: 15, killed: 15, restarted: 2, joining: 40, long: 10 } as const

export class FirePlan {
  private readonly random: Random
  private readonly worlds: World[] = []
  private roundsOfGroup = 0

  constructor(seed: number) {
    this.random = new Random(seed)
  }

  /** Of the next group. All have had their turn when one comes again. */
  world(): World {
    if (this.worlds.length === 0) this.worlds.push(...WORLDS)
    return this.worlds.splice(this.random.below(this.worlds.length), 1)[0]!
  }

  next(): Round {
    const isRestarted = this.isDrawn(PERCENT.restarted) || this.roundsOfGroup === GROUP_ROUNDS_MAX
    this.roundsOfGroup = isRestarted ? 0 : this.roundsOfGroup + 1
    const joining = this.isDrawn(PERCENT.joining) ? this.joining() : null
    if (this.isDrawn(PERCENT.quiet)) return { strikes: [], isRestarted, joining }
    const strikes: Strike[] = []
    if (this.isDrawn(PERCENT.killed))
      strikes.push({ atMs: this.between(0, BEGIN_MS_MAX), rank: this.random.below(RANKS), signal: 'SIGKILL' })
    if (this.isDrawn(PERCENT.stopped)) strikes.push({ ...this.times(), rank: this.random.below(RANKS), signal: 'SIGSTOP' })
    if (strikes.length === 0 || this.random.coin()) {
      const count = 1 + this.random.below(2)
      // One fault at a place at a time.
      let places = PLACES
      for (let i = 0; i < count; i++) {
        const where = places[this.random.below(places.length)]!
        places = places.filter((place) => place !== where)
        strikes.push({ ...this.times(), where, fault: this.fault() })
      }
    }
    return { strikes, isRestarted, joining }
  }

  /** A process takes half a second to load, and then is there within some milliseconds. */
  private joining(): NetworkStrike {
    const where = PLACES[this.random.below(PLACES.length)]!
    return { atMs: this.between(0, 400), lastsMs: this.between(200, 600), where, fault: this.fault() }
  }

  private fault(): Fault {
    const faults: readonly Fault[] = [
      { what: 'delay', ms: this.between(1, 30) },
      { what: 'throttle', bytesPerMs: this.between(5, 100) },
      { what: 'stall' },
      { what: 'cut' },
      { what: 'half-open', direction: this.random.coin() ? 'inbound' : 'outbound' },
      { what: 'inject', bytes: this.between(1, 200) },
      { what: 'flip' },
      { what: 'reorder' },
    ]
    return faults[this.random.below(faults.length)]!
  }

  private times(): { readonly atMs: number; readonly lastsMs: number } {
    const [from, to] = this.isDrawn(PERCENT.long) ? LONG_MS : SHORT_MS
    return { atMs: this.between(0, BEGIN_MS_MAX), lastsMs: this.between(from, to) }
  }

  private between(from: number, to: number): number {
    return from + this.random.below(to - from + 1)
  }

  private isDrawn(percent: number): boolean {
    return this.random.below(100) < percent
  }
}
