/**
 * A binary heap, highest priority first and ties by insertion: the ready nodes of backward passes, the task lane of a mailbox. Three parallel arrays instead of
 * one of entries, so that a push allocates nothing.
 */
export class PriorityQueue<T> {
  private items: T[] = []
  private priorities: number[] = []
  private orders: number[] = []
  private nextOrder = 0

  get length(): number {
    return this.items.length
  }

  push(item: T, priority: number): void {
    const { items, priorities, orders } = this
    const order = this.nextOrder++
    let at = items.length
    items.push(item)
    priorities.push(priority)
    orders.push(order)
    while (at > 0) {
      const parent = (at - 1) >> 1
      // A new item has the greatest order, so on equal priority it stays below.
      if (priorities[parent]! >= priority) break
      items[at] = items[parent]!
      priorities[at] = priorities[parent]!
      orders[at] = orders[parent]!
      at = parent
    }
    items[at] = item
    priorities[at] = priority
    orders[at] = order
  }

  /** Takes the item of the highest priority; undefined when nothing waits. */
  pop(): T | undefined {
    const { items, priorities, orders } = this
    const top = items[0]
    const item = items.pop()
    if (item === undefined) return undefined
    const priority = priorities.pop()!
    const order = orders.pop()!
    const length = items.length
    if (length === 0) {
      this.nextOrder = 0
      return top
    }
    let at = 0
    for (;;) {
      let child = 2 * at + 1
      if (child >= length) break
      if (child + 1 < length && this.before(child + 1, child)) child++
      const childPriority = priorities[child]!
      if (priority > childPriority || (priority === childPriority && order < orders[child]!)) break
      items[at] = items[child]!
      priorities[at] = childPriority
      orders[at] = orders[child]!
      at = child
    }
    items[at] = item
    priorities[at] = priority
    orders[at] = order
    return top
  }

  private before(a: number, b: number): boolean {
    const byPriority = this.priorities[a]! - this.priorities[b]!
    return byPriority > 0 || (byPriority === 0 && this.orders[a]! < this.orders[b]!)
  }
}
