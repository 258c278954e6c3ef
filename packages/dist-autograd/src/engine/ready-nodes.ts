/**
 * Runs the nodes of all passes of a worker, each in the scope of its pass: it enters a scope only where the next node needs another one. It notifies
 * `dist-engine.ts` of a node that has failed.
 */
import assert from 'node:assert'
import { type Engine, HIGHEST_PRIORITY, type NodeTask, type ReadyQueue } from '@postgrad/autograd/internal'
import { inOwnScope, inScope, Scope } from '@postgrad/base/internal'
import type { WorkerRuntime } from '@postgrad/rpc/internal'
import type { DistAutogradContainer } from '../context/dist-autograd-container.js'
import { DistPass } from '../pass/pass.js'
import { MailboxQueue } from './mailbox-queue.js'

export class ReadyNodes implements ReadyQueue {
  private readonly queue: MailboxQueue
  private readonly container: DistAutogradContainer
  private readonly graph: Engine
  private readonly onError: (pass: DistPass, nodeTask: NodeTask) => void
  /** The scope of nodes, but for the context: this worker's without grad mode. */
  private readonly scope: Scope
  /** Whether a node runs, or a hook of it. */
  isRunning = false

  /** @param onError of a node that threw `pass.task.error`, in the scope that it ran in */
  constructor(
    runtime: WorkerRuntime,
    container: DistAutogradContainer,
    graph: Engine,
    onError: (pass: DistPass, nodeTask: NodeTask) => void,
  ) {
    this.queue = new MailboxQueue(runtime, HIGHEST_PRIORITY, (first) => this.run(first))
    this.container = container
    this.graph = graph
    this.onError = onError
    this.scope = new Scope({ gradEnabled: false }, runtime.scope)
  }

  push(nodeTask: NodeTask): void {
    this.queue.push(nodeTask)
  }

  private run(first: NodeTask): void {
    this.isRunning = true
    try {
      for (let next: NodeTask | undefined = first; next !== undefined; ) {
        const nodeTask: NodeTask = next
        const scope = this.scopeOf(nodeTask)
        const run = () => this.runWithin(scope, nodeTask)
        const { stores } = passOf(nodeTask)
        // Another worker's pass runs in the stores of where this worker was made.
        next = stores === null ? inOwnScope(scope, run) : stores.runInAsyncScope(() => inScope(scope, run))
      }
    } finally {
      this.isRunning = false
    }
  }

  /** Runs `first` and those after it, as long as they run in the same scope. Returns the next one; undefined when it is the mailbox's turn. */
  private runWithin(scope: Scope, first: NodeTask): NodeTask | undefined {
    let next: NodeTask | undefined = first
    do {
      const { task } = next
      const hadFailed = task.error !== null
      this.graph.evaluate(next, scope.gradEnabled)
      if (task.error !== null && !hadFailed) this.onError(passOf(next), next)
      next = this.queue.next()
    } while (next !== undefined && this.scopeOf(next) === scope)
    return next
  }

  /**
   * Hooks find the context of the pass as the current one. Their calls carry no context, since gradients are off (DA-9); under createGraph they are
   * recorded, as everything else is.
   */
  scopeOf(nodeTask: NodeTask): Scope {
    const pass = nodeTask.task.sink as DistPass
    pass.scope ??= new Scope({ context: this.container.find(pass.contextId) ?? null, gradEnabled: pass.task.createGraph }, this.scope)
    return pass.scope
  }
}

/** A worker runs nodes of its passes, which are the sinks of their gradients. */
export function passOf({ task }: NodeTask): DistPass {
  const { sink } = task
  if (!(sink instanceof DistPass)) assert.fail('a node task of a worker is part of a distributed pass')
  return sink
}
