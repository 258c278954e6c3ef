/**
 * A first-in-first-out queue over a circular array; each item has a mark. The mailbox's message lanes are rings.
 * A library would take longer to know than these forty lines to read. Push and shift are O(1), and a ring gives back a burst's memory
 * when it runs empty. It allocates at its first push: a worker has several rings, and a short-lived one fills one or two.
 *
 *     head             head + length
 *      ↓                ↓
 *   [ · a b c d e f g h · · · ]     capacity is a power of two: an index is wrapped by `& mask`
 */
const CAPACITY_MIN = 16
/** A ring that grew beyond this shrinks when it runs empty. */
const CAPACITY_KEPT = 1024

export class Ring<T, M> {
  length = 0
  private items: (T | undefined)[] = []
  private marks: (M | null)[] = []
  private head = 0
  private mask = -1

  push(item: T, mark: M | null): void {
    if (this.length > this.mask) this.resize(Math.max(CAPACITY_MIN, (this.mask + 1) * 2))
    const at = (this.head + this.length) & this.mask
    this.items[at] = item
    this.marks[at] = mark
    this.length++
  }

  /** The mark of the item that `shift` takes next, null when it has none; the caller knows that there is an item. */
  get headMark(): M | null {
    return this.marks[this.head]!
  }

  /** Takes the oldest item; the caller knows that there is one. */
  shift(): T {
    const at = this.head
    const item = this.items[at]!
    this.items[at] = undefined
    this.marks[at] = null
    this.head = (at + 1) & this.mask
    if (--this.length === 0 && this.mask >= CAPACITY_KEPT) this.resize(CAPACITY_MIN)
    return item
  }

  get capacity(): number {
    return this.mask + 1
  }

  private resize(capacity: number): void {
    const items: (T | undefined)[] = new Array(capacity).fill(undefined)
    const marks: (M | null)[] = new Array(capacity).fill(null)
    for (let i = 0; i < this.length; i++) {
      items[i] = this.items[(this.head + i) & this.mask]
      marks[i] = this.marks[(this.head + i) & this.mask]!
    }
    this.items = items
    this.marks = marks
    this.head = 0
    this.mask = capacity - 1
  }
}
