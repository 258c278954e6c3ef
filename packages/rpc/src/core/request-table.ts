/**
 * A table of requests by number. Numbers are given in ascending order and requests mostly end soon, so a few slots, taken in turns, hold nearly all of
 * them. A request whose slot is taken (by a call that runs for long, or in a flood) goes into a Map. A Map alone costs three times as much
 * time per request and makes a new table every few of them, since it keeps the places of deleted entries.
 */

/** Slots at first and at most, powers of two. */
const SLOTS = 64
const SLOTS_MAX = 4096

/** Numbers are given once and in ascending order. */
export class RequestTable<T extends object> {
  private count = 0
  // Made when first used: a worker knows many peers that it never calls.
  private ids: number[] = NONE
  private values: (T | null)[] = NONE
  private mask = SLOTS - 1
  private others = new Map<number, T>()

  get size(): number {
    return this.count
  }

  set(id: number, value: T): void {
    if (this.values === NONE) this.lay(SLOTS)
    this.count++
    this.put(id, value)
    if (this.others.size > this.mask && this.mask + 1 < SLOTS_MAX) this.grow()
  }

  get(id: number): T | undefined {
    const slot = id & this.mask
    if (this.ids[slot] === id) {
      const value = this.values[slot]
      if (value !== null) return value
    }
    return this.others.size === 0 ? undefined : this.others.get(id)
  }

  /** Returns the entry and removes it. */
  take(id: number): T | undefined {
    const slot = id & this.mask
    if (this.ids[slot] === id) {
      const value = this.values[slot]
      if (value !== null) {
        this.values[slot] = null
        this.count--
        return value
      }
    }
    if (this.others.size === 0) return undefined
    const value = this.others.get(id)
    if (value !== undefined) {
      this.others.delete(id)
      this.count--
    }
    return value
  }

  private put(id: number, value: T): void {
    const slot = id & this.mask
    if (this.values[slot] === null) {
      this.ids[slot] = id
      this.values[slot] = value
    } else {
      this.others.set(id, value)
    }
  }

  /** The Map is as large as the slots. */
  private grow(): void {
    const all = [...this.entries()]
    this.others = new Map()
    this.lay(2 * (this.mask + 1))
    for (const [id, value] of all) this.put(id, value)
  }

  private lay(slots: number): void {
    this.mask = slots - 1
    this.ids = new Array<number>(slots).fill(0)
    this.values = new Array<T | null>(slots).fill(null)
  }

  /** In ascending order, without entries that are taken or added meanwhile. */
  *entries(): Generator<[id: number, value: T]> {
    if (this.count === 0) return
    const ids = [...this.ids.filter((_, slot) => this.values[slot] !== null), ...this.others.keys()]
    for (const id of ids.sort((a, b) => a - b)) {
      const value = this.get(id)
      if (value !== undefined) yield [id, value]
    }
  }
}

const NONE: never[] = []
