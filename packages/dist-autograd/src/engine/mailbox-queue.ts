/**
 * The nodes that could run, the highest sequence number first. However many there are, one task in the mailbox runs them one after the other, until
 * the mailbox has something more urgent (DA-83): a node costs no turn of the mailbox.
 */
import type { NodeTask, ReadyQueue } from '@postgrad/autograd/internal'
import { PriorityQueue } from '@postgrad/base/internal'
import type { Runnable, WorkerRuntime } from '@postgrad/rpc/internal'

export class MailboxQueue implements ReadyQueue, Runnable {
  private readonly nodes = new PriorityQueue<NodeTask>()
  private readonly worker: WorkerRuntime
  private readonly priority: number
  private readonly runNodes: (first: NodeTask) => void
  /** Whether the task is in the mailbox, or runs. */
  private isQueued = false

  /** @param runNodes runs the first node and those that `next` gives */
  constructor(worker: WorkerRuntime, priority: number, runNodes: (first: NodeTask) => void) {
    this.worker = worker
    this.priority = priority
    this.runNodes = runNodes
  }

  push(nodeTask: NodeTask): void {
    this.nodes.push(nodeTask, nodeTask.node.sequenceNr)
    if (!this.isQueued) this.enqueue()
  }

  /** The next node; undefined when it is the mailbox's turn. */
  next(): NodeTask | undefined {
    return this.nodes.length > 0 && this.worker.pump.mayContinue() ? this.nodes.pop() : undefined
  }

  run(): void {
    try {
      this.runNodes(this.nodes.pop()!)
    } finally {
      if (this.nodes.length > 0) this.enqueue()
      else this.isQueued = false
    }
  }

  private enqueue(): void {
    this.isQueued = true
    this.worker.pushTask(this, this.priority)
  }
}
