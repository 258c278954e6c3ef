/**
 * The engine: walks the graph backwards, one node task at a time, each node after everything that contributes to it. It keeps no state: what a
 * pass counts is in its GraphTask, so any number of passes may interleave, over the same nodes too. PyTorch: `torch/csrc/autograd/engine.cpp`.
 *
 * The way of a gradient: `start`(root) → ReadyQueue → `evaluate`(node) → `deliver`(next node) → its InputBuffer → ReadyQueue → …, until it
 * arrives at an AccumulateGrad, whose gradient goes to the task's GradSink. `backward` and `drive` run a local pass to its end with a heap; a
 * worker's engine (package `dist-autograd`) runs nodes in its turns of the mailbox, and calls `deliver` and `start` as messages arrive.
 *
 * Nothing here recurses, so the depth of a graph is bounded by memory alone.
 */
import assert from 'node:assert'
import { PostgradError } from '@postgrad/base'
import { currentScope, inSpan, tracing, withScope } from '@postgrad/base/internal'
import { type BackwardPassOptions, onesLike, type Tensor } from '@postgrad/tensor'
import {
  argumentText,
  beginTemporaries,
  broadcastsTo,
  CPU,
  deviceOf,
  endTemporaries,
  peekGrad,
  records,
  type Storage,
  sameShape,
  settle,
  sumToShape,
} from '@postgrad/tensor/internal'

import { AccumulateGrad } from '../graph/accumulate-grad.js'
import { anomalySeen, applyWatched, isWatched } from '../graph/anomaly.js'
import { giveBackUsed } from '../graph/give-back.js'
import { dotGradSink, returnable } from '../graph/grad-sink.js'
import { GraphRoot } from '../graph/graph-root.js'
import type { Grads } from '../graph/hooks.js'
import { leadingTo } from '../graph/needed.js'
import { type Edge, type InputMeta, isWanted, type Node, type PassView } from '../graph/node.js'
import { rootEdge } from '../graph/variable.js'
import { GraphTask, NodeTask } from './graph-task.js'
import { InputBuffer } from './input-buffer.js'
import { inputOrders } from './input-order.js'
import { HeapReadyQueue } from './ready-queue.js'

export class Engine {
  /**
   * Counts, for every node that can be reached from `roots`, the edges into it. May be called again with further roots: what has been counted is
   * not counted twice. Must not be called with new roots that lead into nodes which already ran in this task.
   */
  computeDependencies(task: GraphTask, roots: readonly Node[]): void {
    const { dependencies } = task
    const stack: Node[] = []
    for (const root of roots) {
      if (dependencies.has(root)) continue
      dependencies.set(root, 0)
      stack.push(root)
    }
    let shared = task.orders !== null
    for (let node = stack.pop(); node !== undefined; node = stack.pop()) {
      const edges = node.nextEdges
      for (let i = 0; i < edges.length; i++) {
        const edge = edges[i]
        if (edge === null || edge === undefined) continue
        const next = edge.node
        const count = dependencies.get(next)
        if (count === undefined) stack.push(next)
        else if (count >= 2) shared = true
        dependencies.set(next, (count ?? 0) + 1)
      }
    }
    if (!task.ordered || !shared) return
    if (task.notReady !== null && task.notReady.size > 0)
      assert.fail('in an ordered task all roots are known before gradients are delivered')
    task.orders = inputOrders(dependencies.keys(), dependencies, task.heldBack)
  }

  /**
   * Feeds one gradient (null: "nothing comes over this edge") into a node; pushes the NodeTask when it was the last that the node waited for.
   * With `exclusive` nobody else holds `grad`: it may be added to in place. A failed task ignores it. In an ordered task the source must be
   * named: the node that the edge belongs to.
   */
  deliver(task: GraphTask, edge: Edge, grad: Tensor | null, exclusive = false, source: Node | null = null): void {
    if (task.error !== null) return
    const node = edge.node
    if (task.needed !== null && !task.needed.has(node)) return
    const left = task.dependencies.get(node)
    // As an `assert` these would make their text for every gradient.
    if (left === undefined) assert.fail(`${node.name} is not part of this pass`)
    if (left === 0) assert.fail(`${node.name} received more gradients than there are edges into it`)
    task.dependencies.set(node, left - 1)
    const held = task.notReady === null ? undefined : task.notReady.get(node)
    const buffer = held ?? new InputBuffer(node.inputMeta.length)
    const order = task.orders === null ? undefined : task.orders.get(node)?.[edge.inputNr]
    if (order !== undefined) {
      if (source === null) assert.fail('in an ordered task the source of a gradient is named')
      order.admit(buffer, source, edge.inputNr, grad, exclusive)
    } else if (grad !== null) {
      buffer.add(edge.inputNr, grad, exclusive, task.ordered)
    }
    if (left > 1) {
      if (held !== undefined) return
      task.notReady ??= new Map()
      task.notReady.set(node, buffer)
      return
    }
    if (held !== undefined) task.notReady!.delete(node)
    this.start(task, node, buffer)
  }

  /** Pushes a node that waits for nothing (more): a root, a send function. Counts as outstanding until it has been evaluated. */
  start(task: GraphTask, node: Node, inputs: InputBuffer): void {
    task.outstanding++
    task.queue.push(new NodeTask(task, node, inputs))
  }

  /**
   * Runs one node task: hooks, `apply` under the task's grad mode, checks of what it returned, hooks, release, delivery to the next nodes.
   * Synchronous, never throws: a failure goes to `task.fail`. Of a failed task it only counts the node task as done. `gradEnabled` is that of the current scope.
   */
  evaluate(nodeTask: NodeTask, gradEnabled = currentScope().gradEnabled): void {
    const { task } = nodeTask
    if (task.error === null) {
      try {
        if (gradEnabled !== task.createGraph) withScope({ gradEnabled: task.createGraph }, () => runTapped(this, nodeTask))
        else if (tracing === null) run(this, nodeTask)
        else runTapped(this, nodeTask)
      } catch (error) {
        task.fail(error)
      }
    }
    task.outstanding--
    if (task.outstanding === 0 && task.onIdle !== null) task.onIdle(task)
  }

  /**
   * A whole local pass into `.grad`: a heap of its own, to the end, within this call. The roots have been validated.
   * @throws the first error of the pass
   */
  backward(roots: readonly Tensor[], grads: readonly (Tensor | null)[] | undefined, options: BackwardPassOptions<Tensor>): void {
    const { createGraph = false, retainGraph = createGraph, inputs } = options
    const queue = new HeapReadyQueue()
    const task = new GraphTask({ keepGraph: retainGraph, createGraph, sink: dotGradSink, queue })
    const root = graphRoot(roots, grads)
    this.computeDependencies(task, [root])
    if (inputs !== undefined) task.needed = leadingTo(root, new Set(inputs.map((input) => rootEdge(input).node)))
    this.start(task, root, new InputBuffer(0))
    this.drive(task, queue)
    if (records) settle([...task.dependencies.keys()].map(gradOfLeaf))
  }

  /** Runs what is in `queue`, and what comes into it, to the end. @throws the first error of the pass */
  drive(task: GraphTask, queue: HeapReadyQueue): void {
    const run = () => {
      for (let next = queue.pop(); next !== undefined; next = queue.pop()) {
        this.evaluate(next, task.createGraph)
        if (task.error !== null) throw task.error
      }
    }
    // One scope for the whole pass: entering it costs more than a small node does.
    if (currentScope().gradEnabled === task.createGraph) run()
    else withScope({ gradEnabled: task.createGraph }, run)
  }
}

function gradOfLeaf(node: Node): Tensor | null {
  return node instanceof AccumulateGrad ? peekGrad(node.variable) : null
}

/** @throws LEAF_MODIFIED */
function requiresGradStill(variable: Tensor): boolean {
  const { gradFn } = variable
  if (gradFn === null) return variable.requiresGrad
  throw new PostgradError('LEAF_MODIFIED', {
    op: 'backward',
    expected: 'leaves of the graph that are still leaves',
    got: `one of shape [${variable.shape.join(', ')}] that is now an output of ${gradFn.name}`,
    remedy: 'Run backward before you write to a leaf in place, or write to a clone() of it.',
    values: { shape: [...variable.shape] },
  })
}

/** A node that returns the roots' gradients (1 where none is given). The roots require grad. */
export function graphRoot(roots: readonly Tensor[], grads: readonly (Tensor | null)[] | undefined): GraphRoot {
  return new GraphRoot(
    roots.map(rootEdge),
    roots.map((root, i) => grads?.[i] ?? onesLike(root)),
  )
}

function runTapped(engine: Engine, nodeTask: NodeTask): void {
  if (tracing === null) run(engine, nodeTask)
  else inSpan('node', nodeTask.node.name, undefined, () => run(engine, nodeTask))
}

function run(engine: Engine, { task, node, inputs }: NodeTask): void {
  const { hooks } = node
  const arrived: Grads = inputs.take()
  let grads = arrived
  if (hooks !== null) {
    grads = checkHooked(
      node,
      hooks.runBefore(grads, (slot) => inputs.owns(slot)),
    )
  }
  if (task.captures !== null) {
    const captures = task.captures.get(node) ?? []
    for (const { slot, index } of captures) {
      const grad = grads[slot] ?? null
      // Nobody else holds the caller's gradient. Under createGraph it has a history, and stays as it is.
      const exclusive = hooks === null && captures.length === 1 && inputs.owns(slot)
      task.captured[index] = grad === null || task.createGraph ? grad : returnable(grad, exclusive)
    }
  }
  if (node instanceof AccumulateGrad) {
    const grad = grads[0] ?? null
    // A leaf that requires no grad any more is left alone, as in PyTorch.
    if (grad !== null && task.captures === null && requiresGradStill(node.variable))
      task.sink.accumulate(node.variable, grad, hooks === null && inputs.owns(0))
    if (hooks !== null) hooks.runAfter([], grads, nobodys, nobodys)
    if (task.captures === null) node.runLeafHooks(task, grad)
    return
  }
  if (!leadsToNeeded(task, node)) return
  const fresh = hooks === null && node.returnsFresh
  const watching = anomalySeen && isWatched(node)
  const leaves = task.leftovers !== null && node.nextEdges.some((edge) => edge !== null && !isWanted(edge, task))
  const apart = leaves && node.computesApart && hooks === null && !watching
  // A node that computes all of its gradients at once computes all.
  const pass: PassView = leaves && !apart ? { needed: null, passes: task.passes } : task
  // Under createGraph a recorded formula may have saved what it was given; what was captured is the caller's, what arrived is wanted again.
  const ours = fresh && !apart && !task.createGraph && (task.captures === null || !task.captures.has(node)) ? inputs : null
  let results: Grads
  let temporaries: readonly Storage[] | null = null
  if (watching || ours === null) {
    results = watching ? applyWatched(node, grads, pass) : node.apply(grads, pass)
  } else {
    beginTemporaries()
    try {
      results = node.apply(grads, pass)
    } finally {
      temporaries = endTemporaries()
    }
  }
  if (!task.keepGraph && !apart) node.release()
  if (hooks !== null) {
    const returned = results
    // Under createGraph formulas may have saved what they were given and what they returned.
    const known = node.returnsFresh && !task.createGraph && !leaves
    const ownsOutput = (slot: number) =>
      known && inputs.owns(slot) && grads[slot] === arrived[slot] && !returned.some((result) => result?.storage === grads[slot]?.storage)
    const ownsInput = (i: number) => known && returned[i] != null && isExclusive(returned[i], i, returned, grads, null)
    results = hooks.runAfter(returned, grads, ownsInput, ownsOutput)
  }
  if (leaves) task.leftovers!.push({ node, arrived: apart ? grads : null, computed: apart ? null : results })
  const edges = node.nextEdges
  if (results.length > edges.length) checkSurplus(node, results)
  for (let i = 0; i < edges.length; i++) {
    const edge = edges[i]
    if (edge === null || edge === undefined) continue
    const result = results[i]
    if (result === null || result === undefined) {
      engine.deliver(task, edge, null, false, node)
      continue
    }
    const meta = edge.node.inputMeta[edge.inputNr]
    if (meta === undefined) assert.fail(`${node.name} has an edge to output ${edge.inputNr} of ${edge.node.name}, which has no such output`)
    const grad = conform(node, i, result, meta)
    engine.deliver(task, edge, grad, fresh && isExclusive(grad, i, results, grads, ours), node)
  }
  if (ours !== null && !watching) giveBackUsed(grads, ours, results, temporaries)
}

const nobodys = () => false

/** The gradient in the shape and dtype of what it is the gradient of. @throws INVALID_GRADIENT */
function conform(node: Node, index: number, grad: Tensor, meta: InputMeta): Tensor {
  if (grad.shape === undefined) throw noGradient(node.name, index, grad)
  let result = grad
  if (!sameShape(grad.shape, meta.shape)) {
    if (!broadcastsTo(meta.shape, grad.shape)) throw invalidGradient(node.name, index, grad, meta)
    result = sumToShape(grad, meta.shape)
  }
  if (grad.storage.memory !== meta.memory) result = broughtTo(node.name, index, result, meta)
  if (grad.dtype === meta.dtype) return result
  if (grad.dtype !== 'float32' && grad.dtype !== 'float64') throw invalidGradient(node.name, index, grad, meta)
  return result.to(meta.dtype)
}

function noGradient(name: string, index: number, grad: unknown): PostgradError {
  return new PostgradError('INVALID_GRADIENT', {
    op: name,
    expected: `a tensor or null as gradient ${index}`,
    got: argumentText(grad),
    remedy: 'backward must return one gradient per input; a hook must return a tensor or nothing.',
    values: { index },
  })
}

function invalidGradient(name: string, index: number, grad: Tensor, meta: InputMeta): PostgradError {
  return new PostgradError('INVALID_GRADIENT', {
    op: name,
    expected: `gradient ${index} to fit shape [${meta.shape.join(', ')}] and dtype ${meta.dtype}`,
    got: `shape [${grad.shape.join(', ')}] and dtype ${grad.dtype}`,
    remedy: 'Let backward (or the hook) return a gradient of the shape and dtype of the value it belongs to.',
    values: { index, expected: [...meta.shape], got: [...grad.shape] },
  })
}

/** A gradient of the cpu without dimensions follows its value, as a number does. PyTorch: `validate_outputs`. @throws DEVICE_MISMATCH */
function broughtTo(name: string, index: number, grad: Tensor, meta: InputMeta): Tensor {
  const there = deviceOf(meta.memory)
  if (grad.storage.memory === CPU && grad.ndim === 0) return grad.to(there)
  throw new PostgradError('DEVICE_MISMATCH', {
    op: name,
    expected: `gradient ${index} on device '${there}', where the value that it belongs to is`,
    got: `one on '${grad.device}'`,
    remedy:
      grad.storage.memory === CPU
        ? `Let backward (or the hook) return grad.to('${there}').`
        : `Let backward (or the hook) compute the gradient on '${there}', since neither can await grad.cpu().`,
    values: { index, devices: [String(there), String(grad.device)] },
  })
}

/** Checks the results of hooks, and moves 0-d gradients from the cpu to the device of their values. */
function checkHooked(node: Node, grads: Grads): Grads {
  let checked: (Tensor | null)[] | null = null
  for (let i = 0; i < grads.length; i++) {
    const grad = grads[i]
    const meta = node.inputMeta[i]
    if (!grad || !meta) continue
    if (grad.shape === undefined) throw noGradient(`hook of ${node.name}`, i, grad)
    if (!(sameShape(grad.shape, meta.shape) && grad.dtype === meta.dtype)) throw invalidGradient(`hook of ${node.name}`, i, grad, meta)
    if (grad.storage.memory !== meta.memory) {
      checked ??= [...grads]
      checked[i] = broughtTo(`hook of ${node.name}`, i, grad, meta)
    }
  }
  return checked ?? grads
}

function checkSurplus(node: Node, results: Grads): void {
  const surplus = results.slice(node.nextEdges.length)
  if (surplus.every((grad) => grad === null || grad === undefined)) return
  throw new PostgradError('INVALID_GRADIENT', {
    op: node.name,
    expected: `at most ${node.nextEdges.length} gradients, one per input`,
    got: String(results.length),
    remedy: 'Return null for an input that needs none.',
  })
}

function leadsToNeeded(task: GraphTask, node: Node): boolean {
  const { needed } = task
  return needed === null || node.nextEdges.some((edge) => isWanted(edge, task))
}

/** Whether nobody but its receiver holds `result`: no other result shares its storage, and it is new or (a view of) a gradient that was ours. */
function isExclusive(result: Tensor, index: number, results: Grads, grads: Grads, ours: InputBuffer | null): boolean {
  const { storage } = result
  for (let k = 0; k < results.length; k++) if (k !== index && results[k]?.storage === storage) return false
  for (let i = 0; i < grads.length; i++) {
    const grad = grads[i]
    if (grad === null || grad === undefined || grad.storage !== storage) continue
    if (ours === null || !ours.owns(i)) return false
  }
  return true
}
