/** Looks at the graph that one worker has recorded. */

/** The nodes that can be reached from these, each once, nearest first. */
export function nodesFrom(roots) {
  const nodes = [...new Set(roots)]
  for (let at = 0; at < nodes.length; at++) {
    for (const edge of nodes[at].nextEdges) if (edge !== null && !nodes.includes(edge.node)) nodes.push(edge.node)
  }
  return nodes
}
