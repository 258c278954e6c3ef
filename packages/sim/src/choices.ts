/** The events that could happen next: each step of a simulated world takes one, in O(1). Their order depends on nothing but the run. */
import type { Possible, PossibleChoice } from './schedule.js'

export abstract class Choice implements PossibleChoice {
  readonly label: string
  readonly number: number
  readonly worker: string
  /** Its index in the set; −1 while it is not in it. Only `Choices` writes it. */
  at = -1
  /** Since when it waits, counted in entries and steps. Only `Choices` writes it. */
  since = 0

  /** `name`: what happens; a later choice of the same name gets a number appended. `worker`: where it happens. */
  constructor(choices: Choices, name: string, worker: string) {
    this.worker = worker
    this.number = choices.made
    this.label = choices.labelFor(name)
  }

  abstract happen(): void
}

export class Choices implements Possible {
  private readonly list: Choice[] = []
  private readonly names = new Map<string, number>()
  private clock = 0
  /** How many choices there have been, possible or not. */
  made = 0

  get size(): number {
    return this.list.length
  }

  get(index: number): Choice {
    return this.list[index]!
  }

  /** Puts it in or takes it out; without effect where it already is as asked. */
  set(choice: Choice, possible: boolean): void {
    if (possible === choice.at >= 0) return
    if (possible) {
      choice.at = this.list.length
      choice.since = this.clock++
      this.list.push(choice)
      return
    }
    const last = this.list.pop()!
    if (last !== choice) {
      this.list[choice.at] = last
      last.at = choice.at
    }
    choice.at = -1
  }

  /** It has been chosen, and is the youngest now. */
  renew(choice: Choice): void {
    choice.since = this.clock++
  }

  labelFor(name: string): string {
    this.made++
    const times = (this.names.get(name) ?? 0) + 1
    this.names.set(name, times)
    return times === 1 ? name : `${name}/${times}`
  }
}
