/** What could happen next: the set that each step of a simulated world draws from, in O(1) and in an order that depends on nothing but the run. */

export abstract class Choice {
  /** Where it stands in the set; −1 while it is not in it. Only `Choices` writes it. */
  at = -1

  abstract happen(): void
}

export class Choices {
  private readonly list: Choice[] = []

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
}
