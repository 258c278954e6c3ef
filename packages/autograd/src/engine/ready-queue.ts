/**
 * The ready queue of a local backward: a binary heap. A worker's mailbox is another implementation. PyTorch: `ReadyQueue` in
 * `torch/csrc/autograd/engine.h`.
 */
import type { NodeTask, ReadyQueue } from './graph-task.js'

/** Highest sequence number first, ties in order of insertion. */
export class HeapReadyQueue implements ReadyQueue {
  private readonly heap: NodeTask[] = []
  private inserted = 0

  get size(): number {
    return this.heap.length
  }

  push(task: NodeTask): void {
    task.order = this.inserted++
    const heap = this.heap
    let at = heap.length
    heap.push(task)
    while (at > 0) {
      const up = (at - 1) >> 1
      const parent = heap[up]!
      if (before(parent, task)) break
      heap[at] = parent
      at = up
    }
    heap[at] = task
  }

  pop(): NodeTask | undefined {
    const heap = this.heap
    const last = heap.pop()
    if (last === undefined || heap.length === 0) return last
    const first = heap[0]!
    const size = heap.length
    let at = 0
    for (let child = 1; child < size; child = 2 * at + 1) {
      if (child + 1 < size && before(heap[child + 1]!, heap[child]!)) child++
      if (before(last, heap[child]!)) break
      heap[at] = heap[child]!
      at = child
    }
    heap[at] = last
    return first
  }
}

function before(a: NodeTask, b: NodeTask): boolean {
  return a.sequenceNr > b.sequenceNr || (a.sequenceNr === b.sequenceNr && a.order < b.order)
}
