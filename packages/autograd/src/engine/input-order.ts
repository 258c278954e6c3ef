/**
 * The order in which the contributions to one gradient are summed, whatever the order in which they arrive. A distributed pass needs it, because
 * floating-point sums depend on their order and messages arrive as they like. It keeps only what came too early (`HeldBack` counts that).
 *
 * Note [Causal order]
 * ~~~~~~~~~~~~~~~~~~~
 * A contribution's place is the depth of the node that it comes from (`Node.depth`): the deepest first, down to the leaves' neighbours. Contributions of
 * equal depth wait for each other and are added element by element, in the order of their bits (`orderedSum` in tensor's `ordered-sum.ts`).
 *
 *     depth     9    7    7    7    2
 *     arrived   ✓    ✓    ✓    –    ✓      9 is in the sum; the two of 7 wait for the third, 2 waits for all
 *
 * Why depth. It is a fact of the dataflow. Numbers given while the program runs are not: if two calls of one context are served at once, or a
 * function continues after two awaits, the machine's order decides which operation is made first, so neither sequence numbers nor "the n-th
 * operation of the n-th call" are the same on every run (`causal-order.sim.test.ts` has the smallest such program). And a local backward, which
 * always runs the node that was made last, mostly meets its contributions in the order of falling depth, so little waits.
 *
 * Why bits. Of two nodes of equal depth neither was computed from the other: they are concurrent, and the dataflow does not distinguish them,
 * unless each operation carried a name. But a sum of elements needs no names: it is the same for the same elements in any order, once these are sorted. Minimum and
 * maximum sort them, so nothing is read, and every device has this order.
 *
 * Claim: two runs of one program whose forward passes compute the same dataflow (the same operations on the same values, at whatever times) give every
 * node the same gradient, to the bit. Proof: the nodes of the two runs correspond, and corresponding nodes have equal depth, by induction over the
 * dataflow (a RecvRpcBackward takes over the depth of its SendRpcBackward, as the identity node of the inlined program has it). Now by
 * induction over the same graph backwards: if the gradients of all sources of a node have the same bits, then so have their
 * contributions, since what a node computes depends on its gradient and on what it saved. The sum takes them by depth, and those of one depth sorted, so it has the
 * same bits. ∎ When a contribution arrived is nowhere in it. Two contributions need no order at all, since a + b = b + a (of sparse tensors each adds up its own
 * repeated rows first). So does a source without a gradient: it counts as arrived and adds nothing, so FAST, SMART and the inlined program agree, though
 * they know of different sources. Under createGraph the sum is one node, so that the order of arrival is in no depth either.
 *
 * Waiting costs memory: up to n gradients of n concurrent uses are held at once. Sorting costs time, n (log n)² / 2 minima and maxima: of 3 gradients of 128×128 the sum takes 47 µs,
 * where adding them takes 19, of 32 it takes 1.9 ms instead of 75 µs. A kernel that keeps the terms of an element in registers would do better. Sums that are exact in any order would hold
 * no gradient. Of float32 they need a sum in float64, the error of each addition (and room for it, where it is not 0) and one rounding: 290 µs in SIMD for the 32. But they would do for
 * dense leaves without a history only.
 *
 * It does not hold where the dataflow itself depends on arrival (Promise.race, results pushed onto a list as they come, hooks that count), and of the bits of
 * a NaN (the sum of two has those of either).
 */
import assert from 'node:assert'
import type { Tensor } from '@postgrad/tensor'
import type { Node } from '../graph/node.js'
import type { Contribution, InputBuffer } from './input-buffer.js'

/** Up to so many contributions have no order. */
const COMMUTING = 2

/** How many gradients wait for others only for the sake of the order, over all passes that share the count. */
export class HeldBack {
  now = 0
  /** The most that there have been; a measurement may set it back. */
  peak = 0

  add(count: number): void {
    this.now += count
    if (this.now > this.peak) this.peak = this.now
  }
}

/** Contributions of one depth. */
interface Group {
  readonly depth: number
  readonly size: number
  /** How many have not come. */
  left: number
  waiting: Contribution[] | null
}

/** Of one slot of one node. */
export class InputOrder {
  /** From the greatest depth on. */
  private readonly groups: readonly Group[]
  private readonly heldBack: HeldBack
  private next = 0

  /** @param depths of the sources, one for each edge, in any order */
  constructor(depths: readonly number[], heldBack: HeldBack) {
    const counts = new Map<number, number>()
    for (const depth of depths) counts.set(depth, (counts.get(depth) ?? 0) + 1)
    this.groups = [...counts].sort(([a], [b]) => b - a).map(([depth, size]) => ({ depth, size, left: size, waiting: null }))
    this.heldBack = heldBack
  }

  /** Adds a source's contribution to slot `slot` of `buffer` as soon as its turn has come, and those that waited for it. */
  admit(buffer: InputBuffer, source: Node, slot: number, grad: Tensor | null, exclusive: boolean): void {
    const group = this.groupOf(source.depth)
    if (group === undefined || group.left === 0) assert.fail(`${source.name} is not a source of this node, or delivered twice`)
    group.left--
    const isTurn = group === this.groups[this.next]
    // Those of the first group have nothing before them: up to two of them need not wait for each other.
    if (grad !== null && isTurn && (group.size === 1 || (this.next === 0 && group.size <= COMMUTING)))
      buffer.add(slot, grad, exclusive, this.next === 0)
    else if (grad !== null) {
      this.heldBack.add(1)
      const waiting = { grad, exclusive }
      if (group.waiting === null) group.waiting = [waiting]
      else group.waiting.push(waiting)
    }
    if (isTurn) this.advance(buffer, slot)
  }

  private advance(buffer: InputBuffer, slot: number): void {
    for (let group = this.groups[this.next]; group !== undefined && group.left === 0; group = this.groups[++this.next]) {
      const { waiting } = group
      if (waiting === null) continue
      group.waiting = null
      this.heldBack.add(-waiting.length)
      buffer.addAll(slot, waiting)
    }
  }

  /** Lets go of what waits: the pass has failed. */
  drop(): void {
    for (const group of this.groups) {
      if (group.waiting !== null) this.heldBack.add(-group.waiting.length)
      group.waiting = null
    }
  }

  /** Binary search. */
  private groupOf(depth: number): Group | undefined {
    const { groups } = this
    let low = this.next
    let high = groups.length
    while (low < high) {
      const middle = (low + high) >> 1
      if (groups[middle]!.depth > depth) low = middle + 1
      else high = middle
    }
    const found = groups[low]
    return found?.depth === depth ? found : undefined
  }
}

/** By node, one order for each slot that more than two edges lead into; null where none has so many. */
export function inputOrders(
  nodes: Iterable<Node>,
  counts: ReadonlyMap<Node, number>,
  heldBack: HeldBack,
): Map<Node, (InputOrder | undefined)[]> | null {
  const depths = new Map<Node, number[][]>()
  for (const node of nodes) {
    for (const edge of node.nextEdges) {
      if (edge === null || counts.get(edge.node)! <= COMMUTING) continue
      let slots = depths.get(edge.node)
      if (slots === undefined) {
        slots = []
        depths.set(edge.node, slots)
      }
      const slot = slots[edge.inputNr]
      if (slot === undefined) slots[edge.inputNr] = [node.depth]
      else slot.push(node.depth)
    }
  }
  const orders = new Map<Node, (InputOrder | undefined)[]>()
  for (const [node, slots] of depths) {
    if (!slots.some((slot) => slot.length > COMMUTING)) continue
    const of = slots.map((slot) => (slot.length > COMMUTING ? new InputOrder(slot, heldBack) : undefined))
    orders.set(node, of)
  }
  return orders.size === 0 ? null : orders
}
