/**
 * The order in which the contributions to one node are summed, whatever the order in which they arrive: that of a local backward, from the last
 * operation of the forward pass to the first. A distributed pass needs it, because floating-point sums depend on their order and messages
 * arrive as they like; it keeps only what came too early.
 *
 *     sources   9   7   7   2        by sequence number, then by place among the source's edges
 *     arrived   ✓   ✓   –   ✓        9 and the first of 7 are in the sum, 2 waits for the second of 7
 *
 * Why a local backward has this order by itself: of the nodes that still have to run, the one with the highest number is always ready, since all
 * that use its outputs were made later.
 */
import assert from 'node:assert'
import type { Tensor } from '@postgrad/tensor'
import type { InputBuffer } from './input-buffer.js'
import type { Node } from './node.js'

interface Source {
  readonly node: Node
  /** Which of the node's edges. */
  readonly index: number
}

interface Waiting {
  readonly slot: number
  readonly grad: Tensor | null
  readonly exclusive: boolean
}

export class InputOrder {
  private readonly sources: readonly Source[]
  private readonly waiting: (Waiting | undefined)[]
  private next = 0

  constructor(sources: readonly Source[]) {
    this.sources = [...sources].sort(bySequence)
    this.waiting = new Array<Waiting | undefined>(sources.length).fill(undefined)
  }

  /** Adds the contribution of a source's edge to `buffer` as soon as its turn has come, and those that waited for it. */
  admit(buffer: InputBuffer, node: Node, index: number, slot: number, grad: Tensor | null, exclusive: boolean): void {
    const at = this.placeOf(node, index)
    assert(at >= this.next && this.waiting[at] === undefined, `${node.name} delivered twice over edge ${index}`)
    this.waiting[at] = { slot, grad, exclusive }
    for (let turn = this.waiting[this.next]; turn !== undefined; turn = this.waiting[++this.next]) {
      if (turn.grad !== null) buffer.add(turn.slot, turn.grad, turn.exclusive)
      this.waiting[this.next] = undefined
    }
  }

  /** Binary search. */
  private placeOf(node: Node, index: number): number {
    const wanted = { node, index }
    let low = 0
    let high = this.sources.length
    while (low < high) {
      const middle = (low + high) >> 1
      if (bySequence(this.sources[middle]!, wanted) < 0) low = middle + 1
      else high = middle
    }
    const found = this.sources[low]
    assert(found !== undefined && found.node === node && found.index === index, `${node.name} is not a source of this node`)
    return low
  }
}

/** One InputOrder for every node that more than one edge leads into. */
export function inputOrders(nodes: Iterable<Node>, counts: ReadonlyMap<Node, number>): Map<Node, InputOrder> {
  const sources = new Map<Node, Source[]>()
  for (const node of nodes) {
    for (const [index, edge] of node.nextEdges.entries()) {
      if (edge === null || counts.get(edge.node)! < 2) continue
      const list = sources.get(edge.node)
      if (list === undefined) sources.set(edge.node, [{ node, index }])
      else list.push({ node, index })
    }
  }
  return new Map([...sources].map(([node, list]) => [node, new InputOrder(list)]))
}

function bySequence(a: Source, b: Source): number {
  return b.node.sequenceNr - a.node.sequenceNr || a.index - b.index
}
