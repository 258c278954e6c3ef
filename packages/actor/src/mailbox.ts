/**
 * The queue of all that a worker does next, in five lanes. The highest lane with an item goes first; lanes never break
 * causality, and lower lanes age, so none starves. A source has a share of each lane; its further items wait in a line of its own. The rules MB-1 to MB-21 are in
 * SPEC.md. `pump.ts` takes the items; rings and a heap hold them.
 *
 *   pushFrom(source, lane, item, id) ─┐                 ┌ signal    ring ─┐
 *   push(lane, item) ─────────────────┼─ join a deeper ─┼ control   ring ─┤
 *   pushLast(source, lane, item) ─ held until the       ├ gradient  ring ─┼─ highest, or aged ─→ take()
 *   pushTask(item, priority) ─────────  source is empty ┼ task      heap ─┤
 *                                                       └ call      ring ─┘
 */

import assert from 'node:assert'
import { LANE_COUNT, Lane, type MessageLane, PriorityQueue } from '@postgrad/base/internal'
import { Ring } from './ring.js'

/** A lane that was passed over this many times while something waited in it gets the next turn. */
export const PASSED_MAX = 64
/** So many items of one source are in a lane at a time. Each that is taken lets the next of its source in, at the end of the lane. */
export const SHARE_MAX = 32
const ABOVE_TASKS = (1 << Lane.task) - 1

/** The items of one source under one id (of a context or an RRef). Dropped when none waits, unless it is the source's `recent`. */
class CausalKey {
  readonly id: bigint
  /** How many items were pushed under it, and how many of them taken: an item's ticket is what `pushed` was. */
  pushed = 0
  taken = 0
  /** The deepest lane that an item of it waits in. It never rises while something waits: the items of a key are taken in order, the deepest last. */
  deepest: Lane = Lane.signal

  constructor(id: bigint) {
    this.id = id
  }
}

/** The mark of an item from a source: that source, and the item's tickets. */
class Mark {
  readonly source: Source
  readonly first: CausalKey | null
  readonly firstTicket: number
  readonly second: CausalKey | null
  readonly secondTicket: number

  constructor(source: Source, first: CausalKey | null, second: CausalKey | null) {
    this.source = source
    this.first = first
    this.firstTicket = first === null ? 0 : first.pushed++
    this.second = second
    this.secondTicket = second === null ? 0 : second.pushed++
  }

  /** Whether nothing earlier under the same ids still waits. */
  get isNext(): boolean {
    return (
      (this.first === null || this.first.taken === this.firstTicket) && (this.second === null || this.second.taken === this.secondTicket)
    )
  }
}

interface Held {
  readonly lane: MessageLane
  readonly item: unknown
}

/**
 * One sender, as one mailbox sees it. Each link has its own source, dropped with the link. A worker that comes back has a new
 * link and a new source. A source belongs to one mailbox.
 */
export class Source {
  readonly name: string
  /** How many of its items wait. */
  waiting = 0
  /** Whether its last item (`pushLast`) was pushed. */
  ended = false
  /** The last item, while earlier ones still wait. */
  held: Held | null = null
  readonly keys = new Map<bigint, CausalKey>()
  /** The key that was emptied last stays in `keys` until another takes its place: traffic in one context then costs no map work (150 ns). */
  recent: CausalKey | null = null
  /** Shared by all its items that have no id. */
  readonly plainMark: Mark
  /** How many of its items are in each lane. */
  readonly inLanes: number[] = new Array(LANE_COUNT).fill(0)
  /** For each lane the items beyond its share, in order. Made when first needed. */
  readonly lines: (Ring<NonNullable<unknown>, Mark> | undefined)[] = []
  /** Its calls stay in their line (`holdCalls`). */
  isHeld = false

  constructor(name: string) {
    this.name = name
    this.plainMark = new Mark(this, null, null)
  }
}

/** `T` is anything but undefined, which is `take`'s word for empty. */
export class Mailbox<T extends NonNullable<unknown>> {
  /** How many items wait, held notices included. */
  size = 0
  /** The lane that the last `take` took from. */
  takenLane: Lane = Lane.signal
  private readonly rings: readonly Ring<T, Mark>[] = Array.from({ length: LANE_COUNT }, () => new Ring<T, Mark>())
  private readonly tasks = new PriorityQueue<T>()
  /** How often each lane was passed over since it was last served or empty. */
  private readonly passed: number[] = new Array(LANE_COUNT).fill(0)
  /** Bit n is set while lane n has something. */
  private waitingLanes = 0
  private heldCount = 0
  /** How many items of each lane are in lines, and of them those that are held. */
  private readonly lined: number[] = new Array(LANE_COUNT).fill(0)
  private readonly heldSources = new Set<Source>()

  /** Queues an item that nobody sent (or whose order among its sender's messages does not matter). */
  push(lane: MessageLane, item: T): void {
    this.rings[lane]!.push(item, null)
    this.waitingLanes |= 1 << lane
    this.size++
  }

  /** Queues a node task; of those that wait the highest `priority` is taken first, ties in order of pushing. */
  pushTask(item: T, priority: number): void {
    this.tasks.push(item, priority)
    this.waitingLanes |= 1 << Lane.task
    this.size++
  }

  /**
   * Queues a message from `source`. With an id, and `secondId` where a message is about two (a call in a context that makes an RRef), it
   * is taken after every earlier message from the same source under one of these ids: while one of those waits in a lower lane, the
   * message joins that lane. After `pushLast` nothing may come from the source.
   */
  pushFrom(source: Source, lane: MessageLane, item: T, id: bigint | null = null, secondId: bigint | null = null): void {
    if (source.ended) assert.fail(`a message from ${source.name} was pushed after the last one of its link`)
    let joined: Lane = lane
    let mark = source.plainMark
    if (id !== null || secondId !== null) {
      const first = id === null ? null : this.key(source, id)
      const second = secondId === null || secondId === id ? null : this.key(source, secondId)
      if (first !== null && first.deepest > joined) joined = first.deepest
      if (second !== null && second.deepest > joined) joined = second.deepest
      if (first !== null) first.deepest = joined
      if (second !== null) second.deepest = joined
      mark = new Mark(source, first, second)
    }
    source.waiting++
    const isHeld = source.isHeld && joined === Lane.call
    if (isHeld || source.inLanes[joined]! >= SHARE_MAX) {
      let line = source.lines[joined]
      if (line === undefined) source.lines[joined] = line = new Ring()
      line.push(item, mark)
      this.lined[joined]!++
      if (isHeld) return
    } else {
      source.inLanes[joined]!++
      this.rings[joined]!.push(item, mark)
      this.waitingLanes |= 1 << joined
    }
    this.size++
  }

  /**
   * Lets the calls of a source, with what has joined their lane, wait in its line until `releaseCalls`; what is in the lane already is still taken. Only for calls: nothing is
   * deeper, so nothing of the source can wait for them elsewhere and go ahead of what they come before.
   */
  holdCalls(source: Source): void {
    // After a link's last item nothing would release it.
    if (source.isHeld || source.ended) return
    source.isHeld = true
    this.heldSources.add(source)
    this.size -= source.lines[Lane.call]?.length ?? 0
  }

  releaseCalls(source: Source): void {
    if (!source.isHeld) return
    source.isHeld = false
    this.heldSources.delete(source)
    this.size += source.lines[Lane.call]?.length ?? 0
    while (source.inLanes[Lane.call]! < SHARE_MAX && this.letIn(source, Lane.call));
  }

  /** Releases all sources, since nothing else will. */
  releaseAll(): void {
    for (const source of [...this.heldSources]) this.releaseCalls(source)
  }

  /** The next item of a line enters the lane. Returns whether there was one. */
  private letIn(source: Source, lane: Lane): boolean {
    const line = source.lines[lane]
    if (line === undefined || line.length === 0) return false
    const mark = line.headMark!
    this.rings[lane]!.push(line.shift() as T, mark)
    this.waitingLanes |= 1 << lane
    source.inLanes[lane]!++
    this.lined[lane]!--
    return true
  }

  /**
   * Queues the last item of a source, the notice that its link is closed: it enters its lane once everything that the source sent before
   * has been taken, whatever its lane and with or without an id. It does not wait for what others sent.
   */
  pushLast(source: Source, lane: MessageLane, item: T): void {
    if (source.ended) assert.fail(`two last messages from ${source.name}`)
    source.ended = true
    if (source.waiting === 0) {
      this.push(lane, item)
      return
    }
    source.held = { lane, item }
    this.heldCount++
    this.size++
  }

  /** Takes what is to be done next; undefined when nothing waits. `takenLane` then says where it waited. */
  take(): T | undefined {
    const lanes = this.waitingLanes
    if (lanes === 0) return undefined
    let lane = 31 - Math.clz32(lanes & -lanes)
    if ((lanes & (lanes - 1)) !== 0) lane = this.choose(lane, lanes)
    else this.passed[lane] = 0
    this.takenLane = lane as Lane
    this.size--
    if (lane === Lane.task) {
      const task = this.tasks.pop()
      if (this.tasks.length === 0) this.emptied(lane)
      return task
    }
    const ring = this.rings[lane]!
    const mark = ring.headMark
    const item = ring.shift()
    if (mark !== null) {
      const { source } = mark
      source.inLanes[lane]!--
      if (source.lines.length > 0 && !(source.isHeld && lane === Lane.call)) this.letIn(source, lane as Lane)
    }
    if (ring.length === 0) this.emptied(lane)
    if (mark !== null) this.settle(mark)
    return item
  }

  /**
   * Whether the task that was just taken would be taken next, if it were pushed again with the highest priority. Then it has its turn again: lanes below that wait
   * were passed over.
   */
  mayContinueTask(): boolean {
    const lanes = this.waitingLanes
    if (lanes === 0) return true
    if ((lanes & ABOVE_TASKS) !== 0) return false
    if ((lanes & (1 << Lane.call)) === 0) return true
    const mark = this.rings[Lane.call]!.headMark
    if (this.passed[Lane.call]! >= PASSED_MAX && (mark === null || mark.isNext)) return false
    this.passed[Lane.call]!++
    return true
  }

  depth(lane: Lane): number {
    return lane === Lane.task ? this.tasks.length : this.rings[lane]!.length + this.lined[lane]!
  }

  /** How many last items wait for earlier ones of their source. */
  get held(): number {
    return this.heldCount
  }

  private emptied(lane: number): void {
    this.waitingLanes &= ~(1 << lane)
    this.passed[lane] = 0
  }

  /**
   * Several lanes wait: the highest, unless a lower one has aged and its oldest item is the next of its keys. (An item can wait in a lane
   * while an earlier one of its key waits in a higher lane; it then lets that one go first, which its own lane's order brings up.)
   */
  private choose(highest: number, lanes: number): number {
    const { passed } = this
    let chosen = highest
    let most = PASSED_MAX - 1
    for (let lane = highest + 1; lane < LANE_COUNT; lane++) {
      if ((lanes & (1 << lane)) === 0 || passed[lane]! <= most) continue
      const mark = lane === Lane.task ? null : this.rings[lane]!.headMark
      if (mark !== null && !mark.isNext) continue
      chosen = lane
      most = passed[lane]!
    }
    for (let lane = highest; lane < LANE_COUNT; lane++) if ((lanes & (1 << lane)) !== 0) passed[lane]!++
    passed[chosen] = 0
    return chosen
  }

  private key(source: Source, id: bigint): CausalKey {
    const { recent } = source
    let key = recent !== null && recent.id === id ? recent : source.keys.get(id)
    if (key === undefined) {
      key = new CausalKey(id)
      source.keys.set(id, key)
    } else if (key.pushed === key.taken) {
      key.deepest = Lane.signal
    }
    return key
  }

  /** Counts a taken item for its keys, and lets in the source's last item when it is due. */
  private settle(mark: Mark): void {
    const { source, first, second } = mark
    if (first !== null && ++first.taken === first.pushed && first !== source.recent) {
      const { recent } = source
      if (recent !== null && recent.taken === recent.pushed) source.keys.delete(recent.id)
      source.recent = first
    }
    if (second !== null && ++second.taken === second.pushed && second !== source.recent) source.keys.delete(second.id)
    if (--source.waiting === 0 && source.held !== null) {
      const { lane, item } = source.held
      source.held = null
      this.heldCount--
      this.size--
      this.push(lane, item as T)
    }
  }
}
