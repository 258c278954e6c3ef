/** Which nodes a pass has to run when only the gradients of some tensors are wanted. PyTorch: `GraphTask::init_to_execute`. */
import type { Node } from './node.js'

/** The nodes from which one of `targets` can be reached, these included. Depth first, with a stack of its own. */
export function leadingTo(root: Node, targets: { has(node: Node): boolean }): Set<Node> {
  const leads = new Map<Node, boolean>()
  const path: { node: Node; edge: number }[] = [{ node: root, edge: 0 }]
  leads.set(root, targets.has(root))
  for (let top = path.at(-1); top !== undefined; top = path.at(-1)) {
    const edge = top.node.nextEdges[top.edge]
    if (edge === undefined) {
      path.pop()
      const from = path.at(-1)
      if (from !== undefined && leads.get(top.node)) leads.set(from.node, true)
      continue
    }
    top.edge++
    if (edge === null) continue
    const known = leads.get(edge.node)
    if (known === undefined) {
      leads.set(edge.node, targets.has(edge.node))
      path.push({ node: edge.node, edge: 0 })
    } else if (known) {
      leads.set(top.node, true)
    }
  }
  return new Set([...leads].filter(([, leadsThere]) => leadsThere).map(([node]) => node))
}
