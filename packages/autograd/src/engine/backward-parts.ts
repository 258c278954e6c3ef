/**
 * A backward pass in two parts: first, as fast as possible, the gradients of some inputs, later those of all other leaves. Zero-bubble pipelines
 * (`parallel`) send the first part on and fill their gaps with the second. PyTorch: `stage_backward_input` and `stage_backward_weight`.
 *
 *     x ──▸ linear ──▸ relu ──▸ linear ──▸ loss        first    loss → linear → relu → linear → x, each node only its gradient along this way
 *             ▴                   ▴
 *             w₁                  w₂                   then     each linear its gradient of w, from what arrived at it in the first part
 *
 * So no node computes anything twice. A node that must compute all at once (a custom function, a fused norm, a node with hooks) does so in the first
 * part and keeps the rest. Nodes run in the same order as in a pass of one part, by falling sequence number, so sums have the same bits.
 */
import type { Tensor } from '@postgrad/tensor'
import type { GradSink } from '../graph/grad-sink.js'
import { leadingTo } from '../graph/needed.js'
import { Node } from '../graph/node.js'
import { rootEdge } from '../graph/variable.js'
import { Engine, graphRoot } from './engine.js'
import { type Capture, GraphTask, type Leftover } from './graph-task.js'
import { InputBuffer } from './input-buffer.js'
import { HeapReadyQueue } from './ready-queue.js'

type Grads = readonly (Tensor | null)[]

const engine = new Engine()

/** A whole pass whose gradients go to `sink`. The roots have been validated. */
export function backwardInto(sink: GradSink, roots: readonly Tensor[], grads: Grads | undefined): void {
  const queue = new HeapReadyQueue()
  const task = new GraphTask({ keepGraph: false, sink, queue })
  const root = graphRoot(roots, grads)
  engine.computeDependencies(task, [root])
  engine.start(task, root, new InputBuffer(0))
  engine.drive(task, queue)
}

export interface BackwardParts {
  /** Of the inputs, null for one that the roots do not depend on. */
  readonly inputGrads: (Tensor | null)[]
  /** For `backwardRest`. */
  readonly leftovers: Leftover[]
  readonly done: ReadonlySet<Node>
  readonly passes: readonly object[]
}

/** The first part, with what the second one needs. The roots have been validated; the inputs are leaves that require grad. */
export function backwardInputs(roots: readonly Tensor[], grads: Grads | undefined, inputs: readonly Tensor[]): BackwardParts {
  const captures = new Map<Node, Capture[]>(inputs.map((input, index) => [rootEdge(input).node, [{ slot: 0, index }]]))
  const queue = new HeapReadyQueue()
  const task = new GraphTask({ keepGraph: false, sink: nowhere, queue })
  const root = graphRoot(roots, grads)
  const needed = leadingTo(root, captures)
  const { passes } = task
  const leftovers: Leftover[] = needed.has(root) ? [] : [{ node: root, arrived: [], computed: null }]
  if (needed.has(root)) {
    engine.computeDependencies(task, [root])
    task.captures = captures
    task.needed = needed
    task.leftovers = leftovers
    engine.start(task, root, new InputBuffer(0))
    engine.drive(task, queue)
  }
  return { inputGrads: inputs.map((_, i) => task.captured[i] ?? null), leftovers, done: needed, passes }
}

/** Captures take what arrives at the inputs, and nothing arrives at other leaves. */
const nowhere: GradSink = { accumulate: () => {} }

/**
 * The second part, once: every other leaf's gradient goes to `sink`. Of several passes over parts of one model, whose graphs meet in leaves alone, their second parts are one pass:
 * a leaf gets one gradient, with the bits of a pass over the whole model.
 */
export function backwardRest(parts: readonly BackwardParts[], sink: GradSink): void {
  const queue = new HeapReadyQueue()
  const task = new GraphTask({ keepGraph: false, sink, queue })
  const nodes = parts.flatMap(({ leftovers, done }) => leftovers.splice(0).map((leftover) => new RestNode(leftover, done)))
  engine.computeDependencies(task, nodes)
  task.passes = parts.flatMap(({ passes }) => passes)
  task.needed = { has: (node) => parts.every(({ done }) => !done.has(node)) }
  for (const node of nodes) engine.start(task, node, node.inputs())
  engine.drive(task, queue)
}

/** The rest of a node: its edges into the second part. It has the node's place in the order. */
class RestNode extends Node {
  private readonly leftover: Leftover

  constructor(leftover: Leftover, done: ReadonlySet<Node>) {
    const { node } = leftover
    super(
      node.nextEdges.map((edge) => (edge === null || done.has(edge.node) ? null : edge)),
      node.inputMeta,
      node.sequenceNr,
    )
    this.leftover = leftover
  }

  get name(): string {
    return this.leftover.node.name
  }

  override get returnsFresh(): boolean {
    return this.leftover.computed === null && this.leftover.node.returnsFresh
  }

  inputs(): InputBuffer {
    const buffer = new InputBuffer(this.inputMeta.length)
    this.leftover.arrived?.forEach((grad, slot) => {
      if (grad !== null) buffer.add(slot, grad)
    })
    return buffer
  }

  apply(grads: Grads, pass: GraphTask): Grads {
    return this.leftover.computed ?? this.leftover.node.apply(grads, pass)
  }

  override release(): void {
    this.leftover.node.release()
  }
}
