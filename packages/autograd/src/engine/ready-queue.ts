/**
 * The ready queue of a local backward: highest sequence number first, ties in order of insertion. PyTorch: `ReadyQueue` in `torch/csrc/autograd/engine.h`.
 */
import { PriorityQueue } from '@postgrad/base/internal'
import type { NodeTask, ReadyQueue } from './graph-task.js'

export class HeapReadyQueue implements ReadyQueue {
  private readonly tasks = new PriorityQueue<NodeTask>()

  get size(): number {
    return this.tasks.length
  }

  push(task: NodeTask): void {
    this.tasks.push(task, task.node.sequenceNr)
  }

  pop(): NodeTask | undefined {
    return this.tasks.pop()
  }
}
