/**
 * GraphTask: one backward pass over a graph; NodeTask: one node that is ready to run in it. All that a pass counts lives here and not in the
 * nodes, so that several passes over the same graph may be in flight at once (distributed contexts do that). PyTorch:
 * `torch/csrc/autograd/graph_task.h`.
 */
import assert from 'node:assert'
import type { Tensor } from '@postgrad/tensor'
import type { GradSink } from '../graph/grad-sink.js'
import type { Node, PassView } from '../graph/node.js'
import { InputBuffer } from './input-buffer.js'
import { HeldBack, type InputOrder } from './input-order.js'

/** Which of the nodes that could run, runs next: a heap of its own in a local backward (`ready-queue.ts`), one of the worker's in a distributed one. */
export interface ReadyQueue {
  /** Takes a node task; it will be given to `Engine.evaluate` once, later (never within this call). */
  push(task: NodeTask): void
}

export interface GraphTaskOptions {
  /** Saved variables survive the pass, so that another one may follow. */
  readonly keepGraph: boolean
  /** The backward pass is itself recorded; default false. */
  readonly createGraph?: boolean
  /**
   * Contributions to a gradient are summed in causal order, whatever the order in which nodes run (Note [Causal order] in `input-order.ts`); default
   * false, since a local backward runs its nodes in one order by itself.
   */
  readonly ordered?: boolean
  /** Counts what waits for the sake of that order; default one of the task's own. */
  readonly heldBack?: HeldBack
  /** Where the gradients of leaves go. */
  readonly sink: GradSink
  /** Where nodes go that are ready. */
  readonly queue: ReadyQueue
}

/** A node's rest for a later pass (`backward-parts.ts`): the gradients that arrived at it, or, if it computes all at once, those it computed. */
export interface Leftover {
  readonly node: Node
  readonly arrived: readonly (Tensor | null)[] | null
  readonly computed: readonly (Tensor | null)[] | null
}

/** Asked for by `grad(outputs, inputs)`: the gradient that arrives at `slot` of a node is put into `results[index]`. */
export interface Capture {
  readonly slot: number
  readonly index: number
}

export class GraphTask implements PassView {
  readonly keepGraph: boolean
  readonly createGraph: boolean
  readonly ordered: boolean
  readonly heldBack: HeldBack
  readonly sink: GradSink
  readonly queue: ReadyQueue
  /** Edges into a node over which nothing has come yet. Every node of the pass has an entry, 0 once it is ready or was a root. */
  readonly dependencies = new Map<Node, number>()
  /** Nodes that have received some of their gradients. Null: there was none yet, as in a chain. */
  notReady: Map<Node, InputBuffer> | null = null
  /** For an ordered task: of the nodes that more than two edges lead into, by slot. */
  orders: Map<Node, (InputOrder | undefined)[]> | null = null
  /** Node tasks queued or running. 0 means that the local graph is done, as far as gradients have arrived for it. */
  outstanding = 0
  /** The first error; once set, further node tasks are dropped. */
  error: unknown = null
  /** Called when `outstanding` falls to 0. */
  onIdle: ((task: GraphTask) => void) | null = null
  passes: readonly object[] = [this]
  /** The nodes that must run; null is all. */
  needed: { has(node: Node): boolean } | null = null
  /** Where nodes go whose edges lead to nodes that are not needed, in a pass that has a second part; else null. */
  leftovers: Leftover[] | null = null
  /** Gradients for `grad(…)`; null in a plain backward. */
  captures: ReadonlyMap<Node, readonly Capture[]> | null = null
  readonly captured: (Tensor | null)[] = []

  constructor({ keepGraph, createGraph = false, ordered = false, heldBack = new HeldBack(), sink, queue }: GraphTaskOptions) {
    this.keepGraph = keepGraph
    this.createGraph = createGraph
    this.ordered = ordered
    this.heldBack = heldBack
    this.sink = sink
    this.queue = queue
  }

  /**
   * Called by a running node. The pass does not end before `node`, to which no edge leads, has run. The returned function queues it: call it once, from any
   * turn. So passes wait for more than gradients.
   */
  waitFor(node: Node): () => void {
    this.outstanding++
    return () => this.queue.push(new NodeTask(this, node, new InputBuffer(0)))
  }

  /**
   * As `waitFor`, for a node with edges: the nodes that they lead to wait for its gradients in addition to those of the graph. They must not have run yet: the caller
   * leads to them itself.
   */
  awaitFrom(node: Node): () => void {
    for (const edge of node.nextEdges) {
      if (edge === null) continue
      const left = this.dependencies.get(edge.node)
      assert(left !== undefined && left > 0, 'a gradient is awaited by a node of the pass that has not run')
      this.dependencies.set(edge.node, left + 1)
    }
    return this.waitFor(node)
  }

  /** Notes the first error and lets go of the gradients that wait; node tasks already queued are dropped when their turn comes. Idempotent. */
  fail(error: unknown): void {
    if (this.error !== null) return
    this.error = error ?? new Error('a backward pass failed without saying why')
    this.notReady = null
    if (this.orders !== null) for (const slots of this.orders.values()) for (const order of slots) order?.drop()
    this.orders = null
  }
}

export class NodeTask {
  readonly task: GraphTask
  readonly node: Node
  readonly inputs: InputBuffer

  constructor(task: GraphTask, node: Node, inputs: InputBuffer) {
    this.task = task
    this.node = node
    this.inputs = inputs
  }
}
