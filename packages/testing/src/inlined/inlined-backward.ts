/**
 * Backward of the inlined program (`inlined-caller.ts` has its calls): one engine runs every pass through the graphs of all workers. A node runs as the worker
 * on whose side of the calls it was recorded, as it does where each worker has an engine: in its scope, under its name, with the gradients of its leaves.
 */
import { gradientEdge, type Node } from '@postgrad/autograd/internal'
import { currentScope, Scope } from '@postgrad/base/internal'
import { installDistAutograd, passOf, shareDistAutograd } from '@postgrad/dist-autograd/internal'
import { WorkerRuntime } from '@postgrad/rpc/internal'
import type { Tensor } from '@postgrad/tensor'
import { CallBoundary } from './inlined-caller.js'

/** Gives all workers of the program their one container and engine, and has every part of a pass run as the worker that it belongs to. */
export function installInlinedBackward(workers: readonly WorkerRuntime[]): void {
  const [first] = workers as readonly [WorkerRuntime, ...WorkerRuntime[]]
  const { container, engine } = installDistAutograd(first)
  for (const worker of workers) shareDistAutograd(worker, first)
  const sides = new WeakMap<Node, WorkerRuntime>()

  const { ready } = engine
  const push = ready.push.bind(ready)
  ready.push = (nodeTask) => {
    // The worker that begins the pass pushes its first node; all others are known by then.
    if (!sides.has(nodeTask.node)) sides.set(nodeTask.node, here(first))
    push(nodeTask)
  }
  let last: { readonly task: object; readonly side: WorkerRuntime; readonly scope: Scope } | null = null
  ready.scopeOf = (nodeTask) => {
    const { node, task } = nodeTask
    const side = sides.get(node) as WorkerRuntime
    const behind = node instanceof CallBoundary ? node.sender : side
    for (const edge of node.nextEdges) if (edge !== null) sides.set(edge.node, behind)
    if (last?.task !== task || last.side !== side) {
      const context = container.find(passOf(nodeTask).contextId) ?? null
      last = { task, side, scope: new Scope({ context, gradEnabled: task.createGraph }, side.scope) }
    }
    return last.scope
  }

  const newContext = container.newContext.bind(container)
  container.newContext = (mode) => {
    const context = newContext(mode)
    const gradients = context.gradientsSoFar.bind(context)
    // The context has the leaves of all workers, and shows each its own.
    context.gradientsSoFar = () => {
      const worker = here(first)
      return new Map([...gradients()].filter(([leaf]) => sides.get(nodeOf(leaf)) === worker))
    }
    return context
  }
}

const nodeOf = (leaf: Tensor): Node => gradientEdge(leaf)!.node

function here(first: WorkerRuntime): WorkerRuntime {
  const { worker } = currentScope()
  return worker instanceof WorkerRuntime ? worker : first
}
