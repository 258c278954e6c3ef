/**
 * Priority-change schedules: chance that looks for rare orders. Every choice has a random priority, the highest is next, and at a few random steps this
 * one drops below all others. A bug that needs d things in one certain order, among n choices and k steps, is met with a probability of at least 1 / (n·k^(d−1)),
 * however small its share of all orders is (Burckhardt, Kothari, Musuvathi and Nagarakatte, "A Randomized Scheduler with Probabilistic Guarantees of
 * Finding Bugs", ASPLOS 2010; of threads there, of channels and workers' turns here).
 */
import type { DrawKind, Possible, Schedule } from '@postgrad/sim'
import { mix32, Random, SeedSchedule } from '@postgrad/sim/internal'

export interface PctOptions {
  /** How many things must come in one order for what is looked for; d − 1 changes of priority. At least 1. */
  readonly depth: number
  /** About how many decisions a run takes. */
  readonly decisions: number
}

export class PctSchedule implements Schedule {
  private readonly random: Random
  /** For draws inside steps. */
  private readonly draws: SeedSchedule
  private readonly priorities = new Map<number, number>()
  /** At which decisions a priority falls. */
  private readonly changes: ReadonlySet<number>
  private decided = 0
  private fallen = 0

  constructor(seed: number, { depth, decisions }: PctOptions) {
    this.random = new Random(mix32(seed ^ 0x9c7))
    this.draws = new SeedSchedule(seed)
    this.changes = new Set(Array.from({ length: depth - 1 }, () => this.random.below(Math.max(1, decisions))))
  }

  next(possible: Possible): number {
    let best = 0
    let highest = Number.NEGATIVE_INFINITY
    for (let i = 0; i < possible.size; i++) {
      const priority = this.priorityOf(possible.get(i).number)
      if (priority > highest) {
        highest = priority
        best = i
      }
    }
    // Below everything that has a priority, those that fell before included.
    if (this.changes.has(this.decided++)) this.priorities.set(possible.get(best).number, -++this.fallen)
    return best
  }

  draw(kind: DrawKind, label: string, count: number, chance: number): number {
    return this.draws.draw(kind, label, count, chance)
  }

  private priorityOf(choice: number): number {
    let priority = this.priorities.get(choice)
    if (priority === undefined) {
      priority = this.random.below(2 ** 30)
      this.priorities.set(choice, priority)
    }
    return priority
  }
}
