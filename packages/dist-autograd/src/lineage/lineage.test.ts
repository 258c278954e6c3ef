/** The lineage without messages: in drawn local graphs, it must find the same as a plain search. */
import { describe, expect, test } from '@jest/globals'
import { type Edge, Node } from '@postgrad/autograd/internal'
import { SendRpcBackward } from '../functions/send-rpc-backward.js'
import { planOf, readPlan } from '../pass/pass-plan.js'
import { Lineage, type LineageNode } from './lineage.js'
import { FIELD_LENGTH_MAX, readLineage, readNodes, type Told, unwriteLineage, writeLineage } from './lineage-field.js'
import { lineageBehind } from './lineage-walk.js'

class Plain extends Node {
  constructor(next: readonly (Node | null)[]) {
    super(
      next.map((node) => (node === null ? null : { node, inputNr: 0 })),
      [],
    )
  }
  get name(): string {
    return 'Plain'
  }
  apply(): [] {
    return []
  }
}

const edgeTo = (node: Node): Edge => ({ node, inputNr: 0 })

function generator(seed: number): (n: number) => number {
  let state = (seed * 2654435761) | 0
  return (n) => {
    state = (Math.imul(state ^ (state >>> 15), 2246822519) + 374761393) | 0
    return ((state ^ (state >>> 13)) >>> 0) % n
  }
}

/** A worker: its part of the lineage, and the nodes of its local graph. */
class Worker {
  readonly lineage: Lineage
  readonly nodes: Node[] = []
  constructor(id: number) {
    this.lineage = new Lineage(id)
  }
}

/** Sends what `from` computed to another worker; gives the numbers that travelled. */
function send(from: Worker, to: Worker, nodes: readonly Node[]): readonly number[] {
  return sendInParts(from, to, nodes).field
}

function sendInParts(from: Worker, to: Worker, nodes: readonly Node[]): Told {
  const edges = nodes.map(edgeTo)
  const message = new SendRpcBackward(0n, to.lineage.self, edges, [])
  const told = writeLineage(
    from.lineage,
    from.lineage.addMessage(message, lineageBehind(edges, from.lineage)),
    message.depth,
    to.lineage.self,
  )
  const { field, ahead } = told
  for (const part of ahead) readNodes(to.lineage, part, 0, from.lineage.self)
  readLineage(to.lineage, field, from.lineage.self)
  const received = new Plain([])
  received.lineage = to.lineage.find(from.lineage.self, 2 * field[1]!)!
  to.nodes.push(received)
  twin.set(received, message)
  sender.set(message, from.lineage.self)
  return told
}
const twin = new Map<Node, SendRpcBackward>()
const sender = new Map<SendRpcBackward, number>()

/** The send functions that a pass reaches, by walking all of the graph. */
function reached(roots: readonly Node[]): Set<SendRpcBackward> {
  const seen = new Set<Node>(roots)
  const sends = new Set<SendRpcBackward>()
  for (const node of seen) {
    const message = twin.get(node)
    if (message !== undefined) {
      sends.add(message)
      seen.add(message)
    }
    for (const edge of node.nextEdges) if (edge !== null) seen.add(edge.node)
  }
  return sends
}

describe('DA-34 the plan', () => {
  test('is what a walk over all of the graph reaches, for drawn graphs on four workers', () => {
    for (let seed = 1; seed <= 400; seed++) {
      const below = generator(seed)
      const workers = [0, 1, 2, 3].map((id) => new Worker(id))
      for (const { nodes } of workers) nodes.push(new Plain([]))
      for (let step = 0; step < 60; step++) {
        const worker = workers[below(4)]!
        const any = () => worker.nodes[below(worker.nodes.length)]!
        if (below(3) > 0) worker.nodes.push(new Plain(Array.from({ length: 1 + below(4) }, () => (below(6) === 0 ? null : any()))))
        else send(worker, workers[below(4)]!, Array.from({ length: 1 + below(6) }, any))
      }
      for (const { nodes, lineage } of workers) {
        // The last nodes are those that no walk has been to yet. Some roots occur twice.
        const roots = Array.from({ length: 1 + below(6) }, () => nodes[Math.max(0, nodes.length - 1 - below(5))]!)
        const plan = planOf(lineage, lineageBehind(roots.map(edgeTo), lineage), [])
        const planned = workers.flatMap((worker) => plan.sendsOf(worker.lineage))
        const wanted = reached(roots)
        expect({ seed, planned: planned.length, missing: planned.filter((one) => !wanted.has(one)).length }).toEqual({
          seed,
          planned: wanted.size,
          missing: 0,
        })
        // A worker that gets the plan has all parts that it needs.
        for (const { lineage: other } of workers) {
          if (!plan.has(other.self) || other.self === lineage.self) continue
          const told = readPlan(plan.fieldFor(other.self, lineage.self))
          expect({ seed, sends: told.sendsOf(other) }).toEqual({ seed, sends: plan.sendsOf(other) })
        }
      }
    }
  })
})

describe('DA-36 unions', () => {
  test('operations that join the same messages share one, which never travels alone', () => {
    const [a, b] = [new Worker(0), new Worker(1)]
    for (let n = 0; n < 3; n++) send(a, b, [new Plain([])])
    const [x, y, z] = b.nodes as [Node, Node, Node]
    const xy = new Plain([x, y])
    const again = new Plain([new Plain([xy, x]), new Plain([y, xy, x])])
    const xyz = new Plain([again, z])
    const behind = (node: Node) => lineageBehind([edgeTo(node)], b.lineage)
    expect(behind(again)[0]).toBe(behind(xy)[0])
    expect(behind(xyz)[0]!.deps).toHaveLength(3)
    expect(behind(new Plain([xyz, xy, x]))[0]).toBe(behind(xyz)[0])
    // Messages that a published union brings are left out.
    send(b, a, [xy])
    const joined = behind(new Plain([xy, x, z]))[0]!.deps!
    expect(joined.map(({ isMessage }) => isMessage).sort()).toEqual([false, true])
  })

  test('a sum over 10,000 messages and its partial sums, sent one by one in any order: numbers in proportion', () => {
    const count = 10_000
    const [a, b] = [new Worker(0), new Worker(1)]
    for (let n = 0; n < count; n++) send(a, b, [new Plain([])])
    const sums: Node[] = [b.nodes[0]!]
    for (const node of b.nodes.slice(1)) sums.push(new Plain([sums[sums.length - 1]!, node]))
    let numbers = 0
    const c = new Worker(2)
    for (const sum of [...sums].reverse()) numbers += send(b, c, [sum]).length
    expect(numbers).toBeLessThan(60 * count)
    const last = c.nodes[0]!
    expect([...planOf(c.lineage, [last.lineage as LineageNode], []).workers()].sort()).toEqual([0, 1])
    expect(planOf(c.lineage, [last.lineage as LineageNode], []).sendsOf(a.lineage)).toHaveLength(count)
  })

  test('one node over 10,000 messages', () => {
    const [a, b] = [new Worker(0), new Worker(1)]
    for (let n = 0; n < 10_000; n++) send(a, b, [new Plain([])])
    const all = new Plain(b.nodes)
    expect(send(b, a, [all]).length).toBeLessThan(25_000)
    expect(send(b, a, [new Plain([all])])).toHaveLength(5)
  })

  test('a graph as deep as 100,000 nodes', () => {
    const [a, b] = [new Worker(0), new Worker(1)]
    send(a, b, [new Plain([])])
    let node: Node = b.nodes[0]!
    for (let n = 0; n < 100_000; n++) node = new Plain([node])
    expect(lineageBehind([edgeTo(node)], b.lineage)).toEqual([b.nodes[0]!.lineage])
  })
})

describe('DA-35 who knows what', () => {
  test('more peers than there are bits in a number', () => {
    const hub = new Worker(0)
    const spokes = Array.from({ length: 70 }, (_, i) => new Worker(i + 1))
    for (const spoke of spokes) send(spoke, hub, [new Plain([])])
    const all = new Plain(hub.nodes)
    for (let round = 0; round < 2; round++) {
      for (const spoke of spokes) {
        const field = send(hub, spoke, [all])
        // The union and the messages of 69 others, once.
        if (round === 0) expect(field).toHaveLength(5 + 3 + 2 * 70 + 3 * 69)
        else expect(field).toHaveLength(5)
        expect(planOf(spoke.lineage, [spoke.nodes[0]!.lineage as LineageNode], []).sendsOf(spokes[3]!.lineage)).toHaveLength(1)
      }
    }
  })

  test('what has not left is news again, for the first peers and for those beyond the bits', () => {
    const hub = new Worker(0)
    const spokes = Array.from({ length: 40 }, (_, i) => new Worker(i + 1))
    send(new Worker(99), hub, [new Plain([])])
    const received = [hub.nodes[0]!]
    for (const spoke of spokes) {
      unwriteLineage(hub.lineage, send(hub, spoke, received), spoke.lineage.self)
      expect(send(hub, spoke, received)).toHaveLength(5 + 3)
      expect(send(hub, spoke, received)).toHaveLength(5)
    }
  })

  test('a worker that comes late is told all of it, once', () => {
    const [a, b, late] = [new Worker(0), new Worker(1), new Worker(2)]
    a.nodes.push(new Plain([]))
    for (let n = 0; n < 500; n++) {
      send(a, b, [a.nodes[a.nodes.length - 1]!])
      send(b, a, [b.nodes[b.nodes.length - 1]!])
    }
    const whole = send(a, late, [a.nodes[a.nodes.length - 1]!])
    expect(whole).toHaveLength(3 + 2 + 5 * 1000 - 2)
    expect(send(b, late, [b.nodes[b.nodes.length - 1]!]).length).toBeGreaterThan(4000)
    expect(send(a, late, [a.nodes[a.nodes.length - 1]!])).toHaveLength(5)
    expect(planOf(late.lineage, [late.nodes[0]!.lineage as LineageNode], []).sendsOf(b.lineage)).toHaveLength(500)
  })
})

describe('DA-71 more than one message can carry', () => {
  /** Two workers whose last node comes after a ping-pong of so many messages. */
  function pingPong(messages: number): [Worker, Worker, Node] {
    const [a, b] = [new Worker(0), new Worker(1)]
    a.nodes.push(new Plain([]))
    for (let n = 0; n < messages; n += 2) {
      send(a, b, [a.nodes[a.nodes.length - 1]!])
      send(b, a, [b.nodes[b.nodes.length - 1]!])
    }
    return [a, b, a.nodes[a.nodes.length - 1]!]
  }

  test('goes ahead of the message that needs it, in parts, once', () => {
    const [a, b, last] = pingPong(60_000)
    const late = new Worker(2)
    const { field, ahead } = sendInParts(a, late, [last])
    expect(ahead.length).toBe(Math.ceil(60_000 / Math.floor(FIELD_LENGTH_MAX / 5)))
    expect(Math.max(...ahead.map(({ length }) => length))).toBeLessThanOrEqual(FIELD_LENGTH_MAX)
    expect(field).toHaveLength(5)
    const plan = planOf(late.lineage, [late.nodes[0]!.lineage as LineageNode], [])
    // A worker keeps its own half by its send functions.
    expect([plan.sendsOf(a.lineage), plan.sendsOf(b.lineage)].map(({ length }) => length)).toEqual([30_001, 30_000])
    expect(sendInParts(a, late, [last]).ahead).toEqual([])
  })

  test('a message that has not left behind its parts leaves the receiver with all of them', () => {
    const [a, , last] = pingPong(60_000)
    const late = new Worker(2)
    unwriteLineage(a.lineage, send(a, late, [last]), 2)
    late.nodes.length = 0
    const { ahead } = sendInParts(a, late, [new Plain([last])])
    expect(ahead).toEqual([])
    expect(planOf(late.lineage, [late.nodes[0]!.lineage as LineageNode], []).sendsOf(a.lineage)).toHaveLength(30_001)
  })

  test('one operation over 80,000 messages', () => {
    const [a, b, c] = [new Worker(0), new Worker(1), new Worker(2)]
    for (let n = 0; n < 80_000; n++) send(a, b, [new Plain([])])
    const { ahead } = sendInParts(b, c, [new Plain(b.nodes)])
    expect(Math.max(...ahead.map(({ length }) => length))).toBeLessThanOrEqual(FIELD_LENGTH_MAX)
    expect(planOf(c.lineage, [c.nodes[0]!.lineage as LineageNode], []).sendsOf(a.lineage)).toHaveLength(80_000)
  })

  // A million nodes: seconds. `lineage.soak.test.ts` sets it.
  if (process.env.POSTGRAD_SOAK === '1') {
    test('PLAN_TOO_LARGE where a plan could not be sent: every second of half a million messages', () => {
      const [a, b] = [new Worker(0), new Worker(1)]
      for (let n = 0; n < 2 * (2 ** 18 + 1); n++) send(a, b, [new Plain([])])
      const halves = (count: number) => new Plain(b.nodes.filter((_, n) => n % 2 === 0).slice(0, count))
      const plan = (node: Node) => planOf(b.lineage, lineageBehind([edgeTo(node)], b.lineage), [])
      expect(plan(halves(2 ** 18)).sendsOf(a.lineage)).toHaveLength(2 ** 18)
      expect(() => plan(halves(2 ** 18 + 1))).toThrow(expect.objectContaining({ code: 'PLAN_TOO_LARGE' }))
    })
  }
})

describe('DA-42 clear', () => {
  test('a graph that outlives its context keeps nothing of the lineage but single nodes', () => {
    const [a, b] = [new Worker(0), new Worker(1)]
    for (let n = 0; n < 20; n++) send(a, b, [new Plain([])])
    const sum = new Plain(b.nodes)
    send(b, a, [sum, b.nodes[0]!])
    expect(b.lineage.size).toBe(22)
    const message = a.nodes[0]!.lineage as LineageNode
    a.lineage.clear()
    b.lineage.clear()
    expect([a.lineage.size, b.lineage.size, message.deps]).toEqual([0, 0, []])
    expect((sum.lineage as LineageNode).deps).toEqual([])
    expect(lineageBehind([edgeTo(sum)], new Lineage(1))).toEqual([])
  })
})
