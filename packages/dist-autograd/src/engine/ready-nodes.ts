/**
 * The ready queue of a worker: the nodes of all its passes that could run, the highest sequence number first. However many there are, one task in the mailbox
 * stands for them, and runs them one after the other for as long as the mailbox has nothing that goes before (DA-83). So a node costs neither a turn of the
 * mailbox nor a scope of its own. The engine above hears when a node has failed.
 */
import assert from 'node:assert'
import { type Engine, HeapReadyQueue, HIGHEST_PRIORITY, type NodeTask, type ReadyQueue } from '@postgrad/autograd/internal'
import { inOwnScope, inScope, Scope } from '@postgrad/base/internal'
import type { Runnable, WorkerRuntime } from '@postgrad/rpc/internal'
import type { DistAutogradContainer } from '../context/dist-autograd-container.js'
import { DistPass } from '../pass/pass.js'

export class ReadyNodes implements ReadyQueue, Runnable {
  private readonly queue = new HeapReadyQueue()
  private readonly runtime: WorkerRuntime
  private readonly container: DistAutogradContainer
  private readonly graph: Engine
  private readonly onError: (pass: DistPass, nodeTask: NodeTask) => void
  /** What nodes run in, but for the context: this worker's scope without grad mode. */
  private readonly scope: Scope
  /** Whether the task is in the mailbox, or runs. */
  private isQueued = false
  /** Whether a node runs, or a hook of it. */
  isRunning = false

  /** @param onError of a node that threw `pass.task.error`, in the scope that it ran in */
  constructor(
    runtime: WorkerRuntime,
    container: DistAutogradContainer,
    graph: Engine,
    onError: (pass: DistPass, nodeTask: NodeTask) => void,
  ) {
    this.runtime = runtime
    this.container = container
    this.graph = graph
    this.onError = onError
    this.scope = new Scope({ gradEnabled: false }, runtime.scope)
  }

  push(nodeTask: NodeTask): void {
    this.queue.push(nodeTask)
    if (!this.isQueued) this.enqueue()
  }

  private enqueue(): void {
    this.isQueued = true
    this.runtime.pushTask(this, HIGHEST_PRIORITY)
  }

  /** The task in the mailbox: enters a scope only where the next node needs another one. */
  run(): void {
    this.isRunning = true
    try {
      for (let next = this.queue.pop(); next !== undefined; ) {
        const first = next
        const scope = this.scopeOf(first)
        const run = () => this.runWithin(scope, first)
        const { stores } = passOf(first)
        // Another worker's pass runs in the stores of where this worker was made.
        next = stores === null ? inOwnScope(scope, run) : stores.runInAsyncScope(() => inScope(scope, run))
      }
    } finally {
      this.isRunning = false
      if (this.queue.size > 0) this.enqueue()
      else this.isQueued = false
    }
  }

  /** Runs `first` and those behind it, as long as they run in the same scope. Returns the next one; undefined when it is the mailbox's turn. */
  private runWithin(scope: Scope, first: NodeTask): NodeTask | undefined {
    let next: NodeTask | undefined = first
    do {
      const { task } = next
      const hadFailed = task.error !== null
      this.graph.evaluate(next)
      if (task.error !== null && !hadFailed) this.onError(passOf(next), next)
      next = this.queue.size > 0 && this.runtime.mayContinue() ? this.queue.pop() : undefined
    } while (next !== undefined && this.scopeOf(next) === scope)
    return next
  }

  /**
   * Hooks find the context of the pass as the current one. What they call takes no context with it, since gradients are off (DA-9); under createGraph it is
   * recorded, as everything else is.
   */
  scopeOf(nodeTask: NodeTask): Scope {
    const pass = passOf(nodeTask)
    pass.scope ??= new Scope({ context: this.container.find(pass.contextId) ?? null, gradEnabled: pass.task.createGraph }, this.scope)
    return pass.scope
  }
}

/** What a worker runs is of its passes, which are the sinks of their gradients. */
export function passOf({ task }: NodeTask): DistPass {
  const { sink } = task
  assert(sink instanceof DistPass, 'a node task of a worker is part of a distributed pass')
  return sink
}
