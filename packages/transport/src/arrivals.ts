/** The numbers of a sequence that have arrived: all up to `last`, and after a gap the numbers that overtook. Sessions count frames this way, rpc's ledgers messages. */
export class Arrivals {
  private upTo = 0
  private readonly ahead = new Set<number>()
  private aheadMax = 0

  /** All up to this one have come. */
  get last(): number {
    return this.upTo
  }

  get hasGap(): boolean {
    return this.ahead.size > 0
  }

  has(number: number): boolean {
    return number <= this.upTo || this.ahead.has(number)
  }

  /** The next one has come. Returns it. */
  addNext(): number {
    return ++this.upTo
  }

  /** One has come that is not the next. */
  addAhead(number: number): void {
    this.ahead.add(number)
    this.aheadMax = Math.max(this.aheadMax, number)
  }

  /** If the number after `last` had overtaken, it is the last now. */
  passGap(): boolean {
    if (!this.ahead.delete(this.upTo + 1)) return false
    this.upTo++
    return true
  }

  /** How many are missing before this one, which has not come. */
  missingBefore(number: number): number {
    let before = this.ahead.size
    // Rarely: on a new carrier one may overtake that had not on the last.
    if (number < this.aheadMax) for (const each of this.ahead) if (each > number) before--
    return number - 1 - this.upTo - before
  }

  /** The one that has not come, and before which so many are missing. */
  numberBehind(missing: number): number {
    // Nearly always: the last that was sent of all that have come.
    const number = this.upTo + this.ahead.size + missing + 1
    if (number > this.aheadMax) return number
    let at = this.upTo + 1
    for (let left = missing; left > 0 || this.ahead.has(at); at++) if (!this.ahead.has(at)) left--
    return at
  }

  /** Nobody asks any more. */
  clear(): void {
    this.ahead.clear()
  }
}
