/**
 * Asks the local graph from which messages a tensor came: the receive functions that it depends on, as one node of the lineage (Note [SMART] in
 * `lineage.ts`). The graph's nodes, whose edges never change, keep the results, so that over the life of a context each is visited once.
 */
import type { Edge, Node } from '@postgrad/autograd/internal'
import { type Lineage, LineageNode } from './lineage.js'

/** Noted in nodes without a message. */
const NOTHING: object = Object.freeze({})

/** The lineage of the edges, each node once; nodes of another context are left out (a pass that reaches them fails). */
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
