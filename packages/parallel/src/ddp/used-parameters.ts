/** Which leaves a forward pass has used, found by walking the graph behind its outputs. What other workers hold of that graph is not seen. */
import { gradientEdge, type Node } from '@postgrad/autograd/internal'
import { isTensor, type Tensor } from '@postgrad/tensor/internal'

/** The tensors in a value, to any depth of arrays, Maps, Sets and plain objects. */
export function tensorsIn(value: unknown, found: Tensor[] = [], seen = new Set<unknown>()): Tensor[] {
  if (isTensor(value)) found.push(value)
  else if (typeof value === 'object' && value !== null && !seen.has(value)) {
    seen.add(value)
    const items = value instanceof Map || value instanceof Set || Array.isArray(value) ? value.values() : Object.values(value)
    for (const item of items) tensorsIn(item, found, seen)
  }
  return found
}

/** All nodes that a backward pass from these tensors could reach here, those of leaves included. */
export function nodesBehind(outputs: readonly Tensor[]): Set<Node> {
  const reached = new Set<Node>()
  const stack: Node[] = []
  const visit = (node: Node | undefined): void => {
    if (node === undefined || reached.has(node)) return
    reached.add(node)
    stack.push(node)
  }
  for (const output of outputs) visit(gradientEdge(output)?.node)
  for (let node = stack.pop(); node !== undefined; node = stack.pop()) for (const edge of node.nextEdges) visit(edge?.node)
  return reached
}
