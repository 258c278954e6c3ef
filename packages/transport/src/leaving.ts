/** Who waits until what a link was given has left it (`Link.whenLeft`); each link says when. */
export class Leaving {
  private waiting: (() => void)[] = []

  get isEmpty(): boolean {
    return this.waiting.length === 0
  }

  add(fn: () => void): void {
    this.waiting.push(fn)
  }

  /** All that wait now; whoever comes meanwhile waits on. */
  run(): void {
    if (this.waiting.length === 0) return
    const due = this.waiting
    this.waiting = []
    for (const fn of due) fn()
  }
}
