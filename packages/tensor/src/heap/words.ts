/**
 * Reads and changes the heap's shared words: is a block free, who holds it, is a segment abandoned; it gives abandoned segments back. It has
 * no other state, so it serves living workers (`heap.ts`) and the cleanup after dead ones (`reclaim.ts`).
 */
import {
  HIGH_AT,
  holderBit,
  holderWord,
  KIND_HEAD,
  KIND_SMALL,
  KIND_TAIL,
  Layout,
  ownerKind,
  ownerSlot,
  ownerWord,
  RECORD_ADOPTIONS,
  RECORD_GENERATION,
  RECORD_HOLDERS,
  RETURNS_AT,
  SLOT_LIVE,
  SLOT_REMOTE_FREES,
  SLOT_SEGMENTS,
  SLOTS_MAX,
  slotAt,
  slotWord,
} from './layout.js'
import type { SharedMemory } from './shared-memory.js'
import { BLOCKS_PER_SEGMENT, CLASS_BLOCKS, CLASS_BYTES, SEGMENT_BYTES } from './size-classes.js'

export class HeapWords {
  readonly layout: Layout
  readonly ints: Int32Array

  constructor(memory: SharedMemory) {
    this.layout = new Layout(memory.buffer.byteLength)
    this.ints = new Int32Array(memory.buffer, 0, this.layout.words)
  }

  get high(): number {
    return Atomics.load(this.ints, HIGH_AT)
  }

  /** Scans will reach up to `segment`. Called before anything is written there. */
  raiseHigh(segment: number): void {
    for (;;) {
      const high = this.high
      if (high >= segment || Atomics.compareExchange(this.ints, HIGH_AT, high, segment) === high) return
    }
  }

  slotState(slot: number): number {
    return Atomics.load(this.ints, slotAt(slot))
  }

  /** The word of each slot, at about one time. */
  slotStates(): Int32Array {
    return Int32Array.from({ length: SLOTS_MAX }, (_, slot) => this.slotState(slot))
  }

  owner(segment: number): number {
    return Atomics.load(this.ints, this.layout.ownerAt(segment))
  }

  info(segment: number): number {
    return Atomics.load(this.ints, this.layout.infoAt(segment))
  }

  generation(id: number): number {
    return Atomics.load(this.ints, this.layout.recordAt(id) + RECORD_GENERATION)
  }

  holds(slot: number, id: number): boolean {
    return (Atomics.load(this.ints, this.layout.recordAt(id) + holderWord(slot)) & holderBit(slot)) !== 0
  }

  /** Slots whose bits are set, ascending. */
  holders(id: number): number[] {
    const slots: number[] = []
    for (let slot = 0; slot < SLOTS_MAX; slot++) if (this.holds(slot, id)) slots.push(slot)
    return slots
  }

  /** True when no bit is set. */
  isFree(id: number): boolean {
    return this.#hasHolders(id, 0, 0)
  }

  /** True when this slot's bit is set and no other. */
  isHeldOnlyBy(slot: number, id: number): boolean {
    const bit = holderBit(slot)
    return (slot & 1) === 0 ? this.#hasHolders(id, bit, 0) : this.#hasHolders(id, 0, bit)
  }

  /**
   * Two words cannot be read at once: between the two reads a holder of the second could have passed the block to a worker whose bit is in
   * the first, and let go. An adoption raises the count before the giver lets go, so an unchanged count rules that out.
   */
  #hasHolders(id: number, even: number, odd: number): boolean {
    const { ints } = this
    const at = this.layout.recordAt(id)
    for (;;) {
      const adoptions = Atomics.load(ints, at + RECORD_ADOPTIONS)
      if (Atomics.load(ints, at + RECORD_HOLDERS) !== even || Atomics.load(ints, at + RECORD_HOLDERS + 1) !== odd) return false
      if (Atomics.load(ints, at + RECORD_ADOPTIONS) === adoptions) return true
    }
  }

  /** True when the incarnation that owns the segment is not alive. Nobody will ever write that word again except to take it over. */
  isAbandoned(word: number): boolean {
    return word !== 0 && this.slotState(ownerSlot(word)) !== slotWord(SLOT_LIVE, 0, word >>> 8)
  }

  /** Blocks that the segment is cut into. */
  blocksIn(segment: number, kind: number): number {
    return kind === KIND_SMALL ? CLASS_BLOCKS[this.info(segment)]! : 1
  }

  isSegmentFree(segment: number, kind: number): boolean {
    const blocks = this.blocksIn(segment, kind)
    for (let i = 0; i < blocks; i++) if (!this.isFree(segment * BLOCKS_PER_SEGMENT + i)) return false
    return true
  }

  /** Bytes that a live block can hold. */
  capacityOf(id: number): number {
    const segment = Math.floor(id / BLOCKS_PER_SEGMENT)
    return ownerKind(this.owner(segment)) === KIND_SMALL ? CLASS_BYTES[this.info(segment)]! : this.info(segment) * SEGMENT_BYTES
  }

  addressOf(id: number): number {
    const segment = Math.floor(id / BLOCKS_PER_SEGMENT)
    const index = id % BLOCKS_PER_SEGMENT
    return segment * SEGMENT_BYTES + (index === 0 ? 0 : index * CLASS_BYTES[this.info(segment)]!)
  }

  /** A hint, so that the owner looks: true is only what its scan finds. */
  noteRemoteFree(owner: number): void {
    Atomics.add(this.ints, slotAt(ownerSlot(owner)) + SLOT_REMOTE_FREES, 1)
  }

  noteReturn(): void {
    Atomics.add(this.ints, RETURNS_AT, 1)
  }

  /**
   * Gives an abandoned segment (with its run) back to all if nothing in it is held. Several threads may try at once, and each may die at it:
   * the thread that wins the exchange of the head owns the run and zeroes it; if it dies, it leaves tails without a head.
   * @param by slot and epoch of the caller
   */
  returnAbandoned(segment: number, word: number, by: { readonly slot: number; readonly epoch: number }): boolean {
    const { ints, layout } = this
    const kind = ownerKind(word)
    if (kind === KIND_TAIL || !this.isSegmentFree(segment, kind)) return false
    // Once free it stays so: nobody allocates from it, and adopting needs a holder.
    if (kind === KIND_SMALL) {
      if (Atomics.compareExchange(ints, layout.ownerAt(segment), word, 0) !== word) return false
    } else {
      const length = this.info(segment)
      const mine = ownerWord(by.slot, KIND_TAIL, by.epoch)
      if (Atomics.compareExchange(ints, layout.ownerAt(segment), word, mine) !== word) return false
      const tail = ownerWord(ownerSlot(word), KIND_TAIL, word >>> 8)
      for (let s = segment + 1; s < segment + length; s++) Atomics.compareExchange(ints, layout.ownerAt(s), tail, 0)
      Atomics.store(ints, layout.ownerAt(segment), 0)
    }
    this.noteReturn()
    return true
  }

  /**
   * One pass over all segments that were ever claimed. `visit` gets each claimed one, except tails of runs, with its owner's word and its
   * length in segments. Tails of dead incarnations without a head are given back on the way.
   */
  walk(visit: (segment: number, word: number, length: number) => void): void {
    const { ints, layout } = this
    const high = this.high
    for (let s = layout.firstSegment; s < high; ) {
      const word = this.owner(s)
      if (word === 0) {
        s++
        continue
      }
      const kind = ownerKind(word)
      // The length may be torn, that of the next run at this place: then some segments are not visited, or tails are met without their head.
      const length = kind === KIND_HEAD ? Math.max(1, this.info(s)) : 1
      if (kind !== KIND_TAIL) visit(s, word, length)
      else if (this.isAbandoned(word) && this.#isHeadless(s, word)) {
        if (Atomics.compareExchange(ints, layout.ownerAt(s), word, 0) === word) this.noteReturn()
      }
      s += length
    }
  }

  /**
   * Whether no head of a dead incarnation's run covers this tail of it. A head goes before its tails do and never comes back, so what is
   * found missing stays missing.
   */
  #isHeadless(segment: number, tail: number): boolean {
    let s = segment - 1
    while (s >= this.layout.firstSegment && this.owner(s) === tail) s--
    const head = ownerWord(ownerSlot(tail), KIND_HEAD, tail >>> 8)
    return s < this.layout.firstSegment || this.owner(s) !== head || s + this.info(s) <= segment
  }

  /** The first `length` free segments in a row from `from` on, perhaps after all that were ever claimed; 0 if none. */
  findFree(from: number, length: number): number {
    const { ints, layout } = this
    const high = this.high
    let start = from
    for (let s = from; s < high; ) {
      const word = Atomics.load(ints, layout.ownerAt(s))
      s += ownerKind(word) === KIND_HEAD ? Math.max(1, this.info(s)) : 1
      if (word !== 0) start = s
      else if (s - start === length) return start
    }
    return start + length <= layout.endSegment ? start : 0
  }

  /** Segments of all living workers. A dead worker's segment that others hold counts again when a worker takes it over. */
  segmentsUsed(): number {
    let sum = 0
    for (let slot = 0; slot < SLOTS_MAX; slot++) sum += Atomics.load(this.ints, slotAt(slot) + SLOT_SEGMENTS)
    return sum
  }
}
