/**
 * Asks the local graph from which messages a tensor came: the receive functions behind it, as one node of the lineage (Note [SMART] in `lineage.ts`).
 * What is found is noted in the nodes of the graph, which never change behind their backs, so that over the life of a context each is looked at once.
 */
import type { Edge, Node } from '@postgrad/autograd/internal'
import { type Lineage, LineageNode } from './lineage.js'

/** Noted where no message lies behind. */
const NOTHING: object = Object.freeze({})

/** What lies behind the edges, each node once; what belongs to another context is none of ours (a pass that reaches it fails). */
export function lineageBehind(edges: readonly (Edge | null)[], home: Lineage): LineageNode[] {
  // First all walks: they make unions, which mark nodes with visits of their own.
  for (const edge of edges) if (edge !== null && edge.node.lineage === null) walk(edge.node, home)
  const found: LineageNode[] = []
  const visit = home.nextVisit()
  for (const edge of edges) {
    const lineage = edge?.node.lineage
    if (!(lineage instanceof LineageNode) || lineage.home !== home || lineage.visit === visit) continue
    lineage.visit = visit
    found.push(lineage)
  }
  return found
}

/** Depth first with a stack of its own: a graph may be deeper than the thread's. */
function walk(root: Node, home: Lineage): void {
  const stack = [root]
  while (stack.length > 0) {
    const node = stack[stack.length - 1]!
    if (node.lineage === null) {
      const { nextEdges } = node
      const before = stack.length
      for (let i = 0; i < nextEdges.length; i++) {
        const next = nextEdges[i]?.node
        if (next !== undefined && next.lineage === null) stack.push(next)
      }
      if (stack.length > before) continue
      node.lineage = joined(nextEdges, home)
    }
    stack.pop()
  }
}

/** The lineage of a node from those of its next ones, which are all known. */
function joined(edges: readonly (Edge | null)[], home: Lineage): object {
  let only: object = NOTHING
  for (let i = 0; i < edges.length; i++) {
    const lineage = edges[i]?.node.lineage ?? NOTHING
    if (lineage === NOTHING || lineage === only) continue
    if (only !== NOTHING) return several(edges, home)
    only = lineage
  }
  return only
}

/** Of a graph that mixes contexts, which no pass can get through, the part that belongs to the one that asks. */
function several(edges: readonly (Edge | null)[], home: Lineage): object {
  const all = new Set<LineageNode>()
  for (const edge of edges) if (edge?.node.lineage instanceof LineageNode) all.add(edge.node.lineage)
  const members = [...all]
  const owner = members.some((node) => node.home === home) ? home : members[0]!.home
  const ours = members.filter((node) => node.home === owner)
  return ours.length === 1 ? ours[0]! : owner.unionOf(ours)
}
