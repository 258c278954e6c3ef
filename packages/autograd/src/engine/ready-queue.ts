/**
 * The ready queue of a local backward: highest sequence number first, ties in order of insertion. Leaves have the highest number, and wait in a list of their own. PyTorch: `ReadyQueue`
 * in `torch/csrc/autograd/engine.h`.
 */
import { PriorityQueue } from '@postgrad/base/internal'
import { HIGHEST_PRIORITY } from '../graph/node.js'
import type { NodeTask, ReadyQueue } from './graph-task.js'

export class HeapReadyQueue implements ReadyQueue {
  private readonly tasks = new PriorityQueue<NodeTask>()
  /** The ones before `next` have been taken. */
  private readonly leaves: NodeTask[] = []
  private next = 0

  get size(): number {
    return this.tasks.length + this.leaves.length - this.next
  }

  push(task: NodeTask): void {
    if (task.node.sequenceNr === HIGHEST_PRIORITY) this.leaves.push(task)
    else this.tasks.push(task, task.node.sequenceNr)
  }

  pop(): NodeTask | undefined {
    if (this.leaves.length === 0) return this.tasks.pop()
    const leaf = this.leaves[this.next++]!
    if (this.next === this.leaves.length) this.leaves.length = this.next = 0
    return leaf
  }
}
