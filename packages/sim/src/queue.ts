/** A small first-in-first-out queue that can be cut at its end; frames in flight and deferred turns wait in it. */

/** Taken places are given back when there are this many and they are the greater part. */
const SLACK = 64

export class Queue<T> {
  private items: (T | undefined)[] = []
  private head = 0

  get length(): number {
    return this.items.length - this.head
  }

  push(item: T): void {
    this.items.push(item)
  }

  get first(): T | undefined {
    return this.items[this.head]
  }

  get last(): T | undefined {
    return this.length === 0 ? undefined : this.items[this.items.length - 1]
  }

  shift(): T | undefined {
    if (this.head === this.items.length) return undefined
    const item = this.items[this.head]
    this.items[this.head++] = undefined
    if (this.head === this.items.length) {
      this.items.length = 0
      this.head = 0
    } else if (this.head >= SLACK && this.head * 2 > this.items.length) {
      this.items = this.items.slice(this.head)
      this.head = 0
    }
    return item
  }

  /** 0: the first. */
  at(index: number): T | undefined {
    return this.items[this.head + index]
  }

  /** Removes the item at `index`. */
  takeAt(index: number): T | undefined {
    return index === 0 ? this.shift() : this.items.splice(this.head + index, 1)[0]
  }

  /** Removes one item from any place; returns whether it was there. */
  remove(item: T): boolean {
    const at = this.items.indexOf(item, this.head)
    if (at < 0) return false
    this.items.splice(at, 1)
    return true
  }

  /** Keeps the first `length` items. */
  truncate(length: number): void {
    this.items.length = this.head + length
  }
}
