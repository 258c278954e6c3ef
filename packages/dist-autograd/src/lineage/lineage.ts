/**
 * The lineage of one context as one worker knows it: from which messages the tensors of which messages came. `lineage-walk.ts` asks the local
 * graph, `lineage-field.ts` has nodes in messages, `pass-plan.ts` plans a pass by it.
 *
 * Note [SMART]
 * ~~~~~~~~~~~~
 * A worker that takes part in a pass must know which of its send functions will get gradients: before all of those have come, it does not know
 * whether a node's gradient is complete. FAST, which is PyTorch's, counts all of the context; a tensor that no root depends on then keeps the pass from
 * ending well (UNUSED_SEND; PyTorch hangs). SMART counts those that the pass reaches, and knows them before it begins.
 *
 *   worker0                        worker1                  lineage
 *   t ── m0 ───────────────────→ recv m0
 *                                a = f(t)
 *                       recv m1 ←─ m1 ── a                  m1 {m0}
 *   loss = a·b + …                                          the roots: {m1}
 *   backward([loss])                                        the plan: {m1, m0}
 *
 * The lineage is a directed acyclic graph. A node is a message that left a send function, and its dependencies are the messages whose receive functions
 * the sender's local graph reaches from that send function. **The plan is what can be reached from the receive functions that the local graph reaches
 * from the roots.** It is exact, which means that the send functions of the plan are those that get gradients, each once:
 *   - A node of the local graph that is reached runs as soon as all edges into it have delivered, and it delivers over each of its edges, if only a null
 *     (an undefined gradient is one too). So whatever the values are, if a node runs, all nodes that it reaches run.
 *   - A RecvRpcBackward that runs posts one message, with nulls where nothing came. So a message of the plan gets its gradients, and gets them once,
 *     since a node runs once. By induction along the lineage: all of the plan.
 *   - Nothing else: gradients come from receive functions that run, and these are reached from the roots or from send functions of the plan.
 *   - Edges of a node never change once it is recorded, and a send function takes its edges when its message leaves: what was noted then stays true. A write in
 *     place gives its tensor another node.
 * With an exact plan nobody waits for gradients that do not come, waits have no cycle (the lineage has none), and each participant knows its own end: it
 * is passive and misses nothing. It reports to the root once, then. Note [Termination] in `pass-ledger.ts` holds with fewer reports: it speaks of rows that were
 * taken while their worker was passive, whenever that was.
 *
 * **What travels.** A worker that calls `backward` needs the whole lineage of its roots, so a message carries the nodes of its tensors' lineage that its receiver
 * lacks. The sender remembers, per receiver, which it sent to it and got from it; links keep their order, so these are there when the message is.
 * Knowledge is closed: a worker that knows a node knows all its dependencies; so the search for lacking nodes ends at known ones.
 * A worker knows its own nodes. A sender sends a receiver each node once, so that
 *   - over a ping-pong, of any length, a message carries its own node and nothing else: 5 numbers, which are 5 bytes at first and 11 after some hundred messages;
 *   - in a ring of w workers a message carries the w − 1 nodes that its receiver has not seen;
 *   - a worker that joins late gets the whole lineage of what it is sent, once: 5 to 9 bytes a message, in several messages where it is very much;
 *   - in all, the bytes are bounded by nodes × pairs of workers, and never grow with the square of the number of messages.
 * A tensor that depends on several messages would carry ever larger sets, if it is added up in a loop (message n depends on n − 1 others). So sets
 * are nodes too: a **union** is one node for several, and is published, like a message, by the worker whose graph it belongs to. A sum that grows by one
 * result per call has the union {the union before, the new one}; see `unionOf`.
 * A context costs one node in memory per message that a worker sent, received or learned of; it goes with the context.
 *
 * **The plan travels with the gradients**, on the first message of each pair of workers (`pass-plan.ts`): no message of its own, no round trip, nobody waits.
 * It names the participants, to the root at least: the death of any other worker does not matter, and an abort goes only to them.
 */
import type { WorkerId } from '@postgrad/base'
import type { SendRpcBackward } from '../functions/send-rpc-backward.js'

const NONE: readonly LineageNode[] = Object.freeze([])
/** Peers that have a bit in each node; further ones have a set. Small integers have 30 bits to spare. */
const PEER_BITS = 30
/** Worker ids have 16 bits. */
const WORKERS = 2 ** 16
/** Unions with up to so many members are made of their members' members: most graphs of one operation are small, and never travel. */
const FLAT_MAX = 8
/** The most dependencies of a union. */
const MEMBERS_MAX = 2 ** 15

export class LineageNode {
  readonly home: Lineage
  /** The worker whose local graph knows it: the sender of a message. */
  readonly worker: WorkerId
  /** Its name among that worker's: twice its number for a message, one more for a union; -1 for a union that has not been published. */
  code: number
  /** Null for one that is only mentioned: the message that describes it has not come, or never will. */
  deps: readonly LineageNode[] | null
  /** One bit per peer that knows it. @internal */
  knownBy = 0
  /** The last walk that came here. @internal */
  visit = 0

  constructor(home: Lineage, worker: WorkerId, code: number, deps: readonly LineageNode[] | null) {
    this.home = home
    this.worker = worker
    this.code = code
    this.deps = deps
  }

  get isMessage(): boolean {
    return (this.code & 1) === 0
  }

  get isUnpublished(): boolean {
    return this.code === -1
  }
}

/** A sender's knowledge of one receiver; it leaves out the receiver's own nodes. */
class Peer {
  /** 0: see `known`. */
  private readonly bit: number
  private readonly known: Set<LineageNode> | null

  constructor(index: number) {
    this.bit = index < PEER_BITS ? 1 << index : 0
    this.known = index < PEER_BITS ? null : new Set()
  }

  /** Whether it is news to the receiver; from now on it is not. */
  learns(node: LineageNode): boolean {
    const { bit, known } = this
    if (known === null) {
      if ((node.knownBy & bit) !== 0) return false
      node.knownBy |= bit
      return true
    }
    if (known.has(node)) return false
    known.add(node)
    return true
  }

  forgets(node: LineageNode): void {
    if (this.known === null) node.knownBy &= ~this.bit
    else this.known.delete(node)
  }
}

export class Lineage {
  readonly self: WorkerId
  /** This worker's send functions by their numbers, each with the node of its message; one that did not leave is none. */
  readonly sends: (SendRpcBackward | null)[] = []
  /** This worker's unions by their numbers. Most contexts are small: what is not needed is not made. */
  private unions: LineageNode[] | null = null
  /** The nodes of others, by worker and code. */
  private others: Map<number, LineageNode> | null = null
  private peers: Map<WorkerId, Peer> | null = null
  private visits = 0

  constructor(self: WorkerId) {
    this.self = self
  }

  /** How many nodes this worker knows. */
  get size(): number {
    return this.sends.length + (this.unions?.length ?? 0) + (this.others?.size ?? 0)
  }

  find(worker: WorkerId, code: number): LineageNode | undefined {
    if (worker !== this.self) return this.others?.get(code * WORKERS + worker)
    return code % 2 === 0 ? (this.sends[code / 2]?.lineage as LineageNode | undefined) : this.unions?.[(code - 1) / 2]
  }

  /** The node of that name of another worker; it may not have been described yet. */
  mention(worker: WorkerId, code: number): LineageNode {
    this.others ??= new Map()
    const key = code * WORKERS + worker
    const known = this.others.get(key)
    if (known !== undefined) return known
    const node = new LineageNode(this, worker, code, null)
    this.others.set(key, node)
    return node
  }

  /** A message of this worker leaves; its number is its place in `sends`. Dependencies that are unions are published. */
  addMessage(send: SendRpcBackward, deps: readonly LineageNode[]): LineageNode {
    for (const dep of deps) if (dep.isUnpublished) this.publish(dep)
    const number = this.sends.push(send) - 1
    const message = new LineageNode(this, this.self, 2 * number, deps)
    send.lineage = message
    return message
  }

  /** With the unions that it is made of, as far as they have no names yet. */
  private publish(union: LineageNode): void {
    this.unions ??= []
    const stack = [union]
    for (let next = stack.pop(); next !== undefined; next = stack.pop()) {
      if (!next.isUnpublished) continue
      next.code = 2 * this.unions.push(next) - 1
      for (const dep of next.deps!) if (dep.isUnpublished) stack.push(dep)
    }
  }

  /**
   * One node for several: `members` are distinct. Small unions that no other worker knows are taken apart first, and nodes that a member contains are left
   * out, so that the operations of one graph, each of which may join the same few messages, share one union.
   */
  unionOf(members: readonly LineageNode[]): LineageNode {
    const visit = this.nextVisit()
    const flat: LineageNode[] = []
    for (const member of members) {
      if (!member.isUnpublished || member.deps!.length > FLAT_MAX) {
        if (seenFirst(member, visit)) flat.push(member)
        continue
      }
      for (const dep of member.deps!) if (seenFirst(dep, visit)) flat.push(dep)
    }
    const least = flat.length > FLAT_MAX ? flat : withoutCovered(flat, this.nextVisit())
    if (least.length === 1) return least[0]!
    // If one of the members has them all: that one.
    const whole = least.length > FLAT_MAX ? undefined : members.find((member) => isAllOf(member, least))
    if (whole !== undefined) return whole
    return this.union(least.length > FLAT_MAX ? members : least)
  }

  /** Unions of unions where there are very many: each node must fit into a message. */
  private union(members: readonly LineageNode[]): LineageNode {
    let nodes = members
    while (nodes.length > MEMBERS_MAX) {
      const groups: LineageNode[] = []
      for (let at = 0; at < nodes.length; at += MEMBERS_MAX)
        groups.push(new LineageNode(this, this.self, -1, nodes.slice(at, at + MEMBERS_MAX)))
      nodes = groups
    }
    return new LineageNode(this, this.self, -1, [...nodes])
  }

  nextVisit(): number {
    return ++this.visits
  }

  // --- who knows what

  /**
   * The nodes of `deps` and below that the receiver lacks, each of which counts as sent from now on. Mentioned nodes cannot be sent.
   */
  lackedBy(receiver: WorkerId, deps: readonly LineageNode[]): readonly LineageNode[] {
    let lacking = NONE as LineageNode[]
    for (let i = -1; i < lacking.length; i++) {
      for (const node of i < 0 ? deps : lacking[i]!.deps!) {
        if (node.worker === receiver || node.deps === null || !this.peer(receiver).learns(node)) continue
        if (lacking.length === 0) lacking = []
        lacking.push(node)
      }
    }
    return lacking
  }

  /** The receiver has not got these after all. */
  untold(receiver: WorkerId, nodes: Iterable<LineageNode>): void {
    for (const node of nodes) this.peer(receiver).forgets(node)
  }

  /** A peer sent this node, or took it for known here: it knows the node and all below. */
  heardFrom(sender: WorkerId, node: LineageNode): void {
    if (node.worker !== sender) this.peer(sender).learns(node)
  }

  private peer(worker: WorkerId): Peer {
    this.peers ??= new Map()
    const known = this.peers.get(worker)
    if (known !== undefined) return known
    const peer = new Peer(this.peers.size)
    this.peers.set(worker, peer)
    return peer
  }

  /** Lets go of everything: a local graph that outlives its context keeps single nodes without dependencies. */
  clear(): void {
    for (const send of this.sends) if (send !== null) (send.lineage as LineageNode).deps = NONE
    for (const node of this.unions ?? NONE) node.deps = NONE
    for (const node of this.others?.values() ?? NONE) node.deps = NONE
    this.unions = null
    this.others = null
    this.peers = null
    this.sends.length = 0
  }
}

function seenFirst(node: LineageNode, visit: number): boolean {
  if (node.visit === visit) return false
  node.visit = visit
  return true
}

function isAllOf({ isMessage, deps }: LineageNode, list: readonly LineageNode[]): boolean {
  return !isMessage && list.every((node) => deps!.includes(node))
}

/** Without nodes that are members of a union of the list. */
function withoutCovered(list: LineageNode[], visit: number): LineageNode[] {
  let covers = false
  for (const { isMessage, deps } of list) {
    if (isMessage || deps === null) continue
    for (const dep of deps) dep.visit = visit
    covers = true
  }
  return covers ? list.filter((node) => node.visit !== visit) : list
}
