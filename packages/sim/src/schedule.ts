/**
 * A schedule makes the decisions of a simulated world. `world.ts` asks it wherever more than one thing can come next; the world says what is
 * possible, by labels that mean the same in every run of one program, and writes down the answer. Schedules decide by a seed, by an earlier
 * list (`ReplaySchedule`), by age (`FairSchedule`), or by a search through all orders: to the world it is the same.
 *
 * Note [Decisions]: what a world writes down, in `world.decisions`, one integer for each question that had more than one answer, in the order of
 * asking:
 *
 *      n > 0   `next`: the choice with `number` n − 1 happened
 *      0       `next`: no answer; a replay of the list asks its fallback (a world never writes 0, an edit of the list may)
 *      n < 0   `draw`: the answer was −1 − n
 *
 * Two runs of one program with the same options, whose schedules give the same answers, are the same run, event by event. So a list replays a
 * run exactly if program and options are the same (seeds too: `dataSeed`, `world.random` and the program's own numbers depend on them), and every
 * prefix of the list replays a prefix of the run. An edited list means what `ReplaySchedule` says, which is deterministic too.
 */
import assert from 'node:assert'
import { mix32, Random } from './random.js'

/**
 * A question that comes up inside a step.
 *
 * - `arrival`: has the next frame in flight arrived already (1), after one that was delivered or when its receiver polls? The label is the channel's.
 * - `turn`: a worker's oldest deferred turn (0) or its oldest due timer (1)? The label is the worker's.
 * - `cut`: how many of a crashed sender's frames still arrive, from 0 to all? The label is the channel's.
 * - `fault`: does a rule with a probability apply (1)? The label is the channel's; `chance` is the probability.
 * - `overtake`: which of the frames that may arrive next does (0: the oldest)? The label is the channel's.
 */
export type DrawKind = 'arrival' | 'turn' | 'cut' | 'fault' | 'overtake'

/**
 * Decides for one run of one world: it may have state, and is not shared between worlds. Both methods are called synchronously, in the order in which
 * the run needs the answers, and only where there is more than one. An answer must be an integer in its range. If one throws, the run ends.
 */
export interface Schedule {
  /**
   * Which of the possible things happens next: an index into `possible`, of which there are two at least. The order of `possible` depends on nothing but
   * the run so far, and is otherwise without meaning; labels and numbers name a choice. They mean the same in every run until workers crash or links are
   * made during the run: from then on, in runs with the same decisions.
   */
  next(possible: Possible): number
  /** From 0 to `count` − 1; `count` is at least 2. 0 is the answer that does least (nothing more arrives, no fault). */
  draw(kind: DrawKind, label: string, count: number, chance: number): number
}

/** The possible next choices. Valid during the call that gets them. */
export interface Possible {
  readonly size: number
  get(index: number): PossibleChoice
}

export interface PossibleChoice {
  /** `a→b`: frames from a to b (`a→b/2` of their second link, and so on). `a`: a deferred turn or a due timer of a; `` is the world's own. */
  readonly label: string
  /** The label as a small integer: how many choices were made before it. */
  readonly number: number
  /** The worker at which it happens. */
  readonly worker: string
  /** Grows: whose number is smallest has waited longest. */
  readonly since: number
}

/** All from one seed. */
export class SeedSchedule implements Schedule {
  private readonly seed: number
  private readonly random: Random
  /** Rules draw from a chance of their own, so that the order of delivery is the seed's whatever they ask. */
  private faults: Random | null = null
  private overtakes: Random | null = null

  constructor(seed: number) {
    this.seed = seed
    this.random = new Random(seed)
  }

  next(possible: Possible): number {
    return this.random.below(possible.size)
  }

  draw(kind: DrawKind, _label: string, count: number, chance: number): number {
    switch (kind) {
      case 'arrival':
        return this.random.coin() ? 1 : 0
      case 'turn':
        return this.random.coin() ? 0 : 1
      case 'cut':
        return this.random.below(count)
      case 'fault':
        this.faults ??= new Random(mix32(this.seed ^ 0xfa017))
        return this.faults.below(PARTS) < chance * PARTS ? 1 : 0
      case 'overtake':
        this.overtakes ??= new Random(mix32(this.seed ^ 0x07e27))
        return this.overtakes.coin() ? 0 : this.overtakes.below(count)
      default:
        return kind satisfies never
    }
  }
}

/** Probabilities are drawn in so many parts. */
const PARTS = 1 << 24

/** No chance: the choice that waits longest is next, each draw is 0. A shrunk run uses it where its list says nothing. */
export class FairSchedule implements Schedule {
  next(possible: Possible): number {
    let oldest = 0
    for (let i = 1; i < possible.size; i++) if (possible.get(i).since < possible.get(oldest).since) oldest = i
    return oldest
  }

  draw(): number {
    return 0
  }
}

/**
 * Answers from a list (Note [Decisions]), then from another schedule. A list that was not edited answers every question that it was written for. In an
 * edited one an entry may not fit: a `next` takes the first entry that is for a `next`, passing over draws; a choice that is not possible now is
 * left to the fallback, and so is a draw that finds an entry for a `next` (which stays) or a number that is too large.
 */
export class ReplaySchedule implements Schedule {
  private readonly decisions: readonly number[]
  private readonly fallback: Schedule
  private at = 0
  /** How many questions the fallback has answered while the list was not at its end: 0 for a list that fits. */
  misfits = 0

  /** `fallback`: default by age, so that a list alone says everything. */
  constructor(decisions: readonly number[], fallback: Schedule = new FairSchedule()) {
    this.decisions = decisions
    this.fallback = fallback
  }

  /** How many entries have been used. */
  get used(): number {
    return this.at
  }

  next(possible: Possible): number {
    const { decisions } = this
    while (this.at < decisions.length && decisions[this.at]! < 0) {
      this.at++
      this.misfits++
    }
    if (this.at < decisions.length) {
      const number = decisions[this.at++]! - 1
      for (let i = 0; i < possible.size; i++) if (possible.get(i).number === number) return i
      if (number >= 0) this.misfits++
    }
    return this.fallback.next(possible)
  }

  draw(kind: DrawKind, label: string, count: number, chance: number): number {
    const { decisions } = this
    if (this.at < decisions.length) {
      if (decisions[this.at]! < 0) {
        const value = -1 - decisions[this.at++]!
        if (value < count) return value
      }
      this.misfits++
    }
    return this.fallback.draw(kind, label, count, chance)
  }
}

/** Asks a schedule if there is more than one answer, and writes the answer down. */
export class Decider {
  /** See Note [Decisions]. */
  readonly decisions: number[] = []
  private readonly schedule: Schedule

  constructor(schedule: Schedule) {
    this.schedule = schedule
  }

  /** Of something; returns its index. */
  next(possible: Possible): number {
    const { size } = possible
    if (size === 1) return 0
    const index = this.schedule.next(possible)
    assert(Number.isInteger(index) && index >= 0 && index < size, `a schedule chose ${index} of ${size}`)
    this.decisions.push(possible.get(index).number + 1)
    return index
  }

  draw(kind: DrawKind, label: string, count: number, chance = 0.5): number {
    if (count === 1) return 0
    const value = this.schedule.draw(kind, label, count, chance)
    assert(Number.isInteger(value) && value >= 0 && value < count, `a schedule drew ${value} of ${count} for '${kind}'`)
    this.decisions.push(-1 - value)
    return value
  }
}
