/**
 * The heap that all workers of a process share: one memory, arenas per worker, and for each block a set of holders. Rules in HEAP.md.
 * Every fact is a shared word that one atomic operation changes. A `Heap` also has caches (free bits, counts of its own references,
 * reserves), which end with its thread and which nobody misses. So a thread may end at any instruction.
 *
 * One `Heap` per thread; its methods are synchronous and never wait for another thread.
 */
import assert from 'node:assert'
import { PostgradError } from '@postgrad/base'
import {
  HIGH_AT,
  holderBit,
  holderWord,
  KIND_HEAD,
  KIND_SMALL,
  KIND_TAIL,
  MAGIC,
  MAGIC_AT,
  ownerKind,
  ownerWord,
  PRESSURE_AT,
  RECORD_ADOPTIONS,
  RECORD_GENERATION,
  RETURNS_AT,
  SLOT_ENDED,
  SLOT_HELPERS,
  SLOT_LIVE,
  SLOT_REMOTE_FREES,
  SLOT_SEGMENTS,
  SLOTS_MAX,
  slotAt,
  slotWord,
} from './layout.js'
import { claimSlot, reclaimSlot } from './reclaim.js'
import { RESERVED_BYTES_MAX, reserve, type SharedMemory } from './shared-memory.js'
import {
  BLOCKS_PER_SEGMENT,
  CLASS_BLOCKS,
  CLASS_BYTES,
  CLASS_MASK,
  classOf,
  SEGMENT_BYTES,
  SMALL_BYTES_MAX,
  segmentsFor,
} from './size-classes.js'
import { HeapWords } from './words.js'

/** One incarnation of a slot: it names a dead worker to `reclaim`. */
export interface HeapSlot {
  readonly slot: number
  readonly epoch: number
}

/** With a handle, which can be posted, another thread attaches. Making the handle takes the slot: give it back with `reclaim`. */
export interface HeapHandle extends HeapSlot {
  readonly memory: SharedMemory
  readonly limitBytes: number
}

/** A reference to a block; its owner releases it once. */
export interface HeapBlock {
  readonly id: number
  readonly generation: number
  /** In bytes, a multiple of 64. */
  readonly address: number
  /** As requested, or more. */
  readonly capacityBytes: number
}

/** Names a block in a message. The sender holds it until it knows that the receiver does, or never will (`acknowledge`). */
export interface HeapDescriptor {
  readonly id: number
  readonly generation: number
  readonly sender: number
  readonly epoch: number
}

/** How often a claim is tried again after another thread was faster; each time means that somebody got on. */
const CLAIM_ATTEMPTS_MAX = 100
/**
 * A worker's reserve, its free runs and free segments, is at most this share of the limit, and at most a quarter of the bytes that it holds, or
 * RESERVE_BYTES if it holds little. Runs in reserve only serve this worker's requests of their own length, so a larger reserve would grow with
 * each new mixture of sizes. To give a run back and claim another costs some 3 µs, less than filling it.
 */
const RESERVE_SHARE = 1 / 8
const RESERVE_SHARE_OF_HELD = 1 / 4
const RESERVE_BYTES = 16 * 1024 * 1024
/** Lengths of claims that are searched apart; all longer ones together. */
const SEARCH_LENGTHS = 32
const SCRATCH_BYTES_MIN = 2 * SEGMENT_BYTES
/** References are counted in pages of so many blocks, made when a block of theirs is first held. */
const COUNTS_BITS = 12

export class Heap implements HeapSlot {
  readonly memory: SharedMemory
  readonly buffer: SharedArrayBuffer
  readonly slot: number
  readonly epoch: number
  /** Segments are claimed while all workers' segments together stay under it. */
  readonly limitBytes: number
  /** @internal For reclaim, verify, and tests. */
  readonly words: HeapWords
  readonly #ints: Int32Array
  readonly #holderWord: number
  readonly #holderBit: number
  readonly #small: number
  readonly #head: number
  readonly #tail: number

  // Caches of the shared words, by segment.
  /** Of own small segments: blocks that nobody holds and that this heap has not given out since. */
  readonly #freeBits: Int32Array
  readonly #mine = new Set<number>()
  /** The segment that each class allocates from; 0 is none. */
  readonly #current: Int32Array
  /** Others with free blocks, by class. */
  readonly #available: number[][] = CLASS_BYTES.map(() => [])
  readonly #empty: number[] = []
  /** Own runs that are held, by somebody. */
  readonly #runs = new Set<number>()
  /** Own runs that are free, by length. */
  readonly #freeRuns = new Map<number, number[]>()
  #reserveBytes = 0
  /** All that are marked as this worker's. */
  #segments = 0
  /** By length: as far as this worker knows, there is not enough room below it. */
  readonly #searchFrom: Int32Array
  #seenReturns = 0

  /** Own references by block, in pages; a page's absence means zeros. */
  readonly #counts: (Int32Array | undefined)[] = []
  /** The block of each token. */
  readonly #inFlight = new Map<number, number>()
  #nextToken = 1
  #heldBytes = 0
  #heldBytesPeak = 0
  #heldBytesMax = Number.POSITIVE_INFINITY

  #seenRemoteFrees = 0
  #seenPressure = 0
  /** The last failure: a claim of so many segments or more will fail again while nothing came back since. */
  #failedSegments = Number.POSITIVE_INFINITY
  #failedReturns = 0
  #scratch: HeapBlock | null = null

  private constructor(handle: HeapHandle, words: HeapWords) {
    this.memory = handle.memory
    this.buffer = handle.memory.buffer
    this.slot = handle.slot
    this.epoch = handle.epoch
    this.limitBytes = handle.limitBytes
    this.words = words
    this.#ints = words.ints
    this.#holderWord = holderWord(handle.slot)
    this.#holderBit = holderBit(handle.slot)
    this.#small = ownerWord(handle.slot, KIND_SMALL, handle.epoch)
    this.#head = ownerWord(handle.slot, KIND_HEAD, handle.epoch)
    this.#tail = ownerWord(handle.slot, KIND_TAIL, handle.epoch)
    this.#freeBits = new Int32Array(words.layout.segments)
    this.#current = new Int32Array(CLASS_BYTES.length)
    this.#searchFrom = new Int32Array(SEARCH_LENGTHS).fill(words.layout.firstSegment)
    this.#seenRemoteFrees = this.#remoteFrees()
  }

  /** A new heap on a new memory, with this thread in its first slot. @throws HEAP_UNAVAILABLE when no memory can be reserved */
  static create(options: { readonly reservedBytes?: number; readonly limitBytes?: number } = {}): Heap {
    const memory = reserve(options.reservedBytes ?? RESERVED_BYTES_MAX)
    const words = new HeapWords(memory)
    Atomics.store(words.ints, HIGH_AT, words.layout.firstSegment)
    Atomics.store(words.ints, MAGIC_AT, MAGIC)
    const own = claimSlot(words)
    assert(own !== null, 'a new heap has free slots')
    return new Heap({ memory, ...own, limitBytes: Math.min(options.limitBytes ?? Number.POSITIVE_INFINITY, capacityOf(words)) }, words)
  }

  /** This thread joins another's heap, in the slot that `handle` names. @throws HEAP_HANDLE unless it is a handle that was not reclaimed */
  static attach(handle: HeapHandle): Heap {
    const words = new HeapWords(handle.memory)
    const valid =
      Atomics.load(words.ints, MAGIC_AT) === MAGIC &&
      handle.slot >= 0 &&
      handle.slot < SLOTS_MAX &&
      words.slotState(handle.slot) === slotWord(SLOT_LIVE, 0, handle.epoch)
    if (valid) return new Heap(handle, words)
    throw new PostgradError('HEAP_HANDLE', {
      op: 'heap',
      expected: 'a handle from Heap.handle() whose slot is alive',
      got: `slot ${handle.slot}, epoch ${handle.epoch}`,
      remedy: 'Make a new handle for each thread; one that was reclaimed is not used again.',
      values: { slot: handle.slot, epoch: handle.epoch },
    })
  }

  /** A slot for another thread, or null when all SLOTS_MAX are taken: that thread computes on managed memory. */
  handle(): HeapHandle | null {
    const own = claimSlot(this.words)
    return own === null ? null : { memory: this.memory, limitBytes: this.limitBytes, ...own }
  }

  // ---- blocks

  /** A block of at least `bytes` that this thread holds, with unspecified contents; null beyond the limit or without room (HEAP-6). */
  allocate(bytes: number): HeapBlock | null {
    if (this.#heldBytes + bytes > this.#heldBytesMax) return null
    return bytes <= SMALL_BYTES_MAX ? this.#allocateSmall(classOf(bytes)) : this.#allocateRun(segmentsFor(bytes), false)
  }

  #allocateSmall(cls: number): HeapBlock | null {
    for (;;) {
      let segment = this.#current[cls]!
      let bits = this.#freeBits[segment]!
      if (bits === 0) {
        segment = this.#refill(cls)
        if (segment === 0) return null
        bits = this.#freeBits[segment]!
      }
      const bit = bits & -bits
      const index = 31 - Math.clz32(bit)
      this.#freeBits[segment] = bits & ~bit
      const id = segment * BLOCKS_PER_SEGMENT + index
      // Somebody with a stale descriptor may have its bit in it for a moment: the scan will find the block again.
      if (!this.words.isFree(id)) continue
      const bytes = CLASS_BYTES[cls]!
      return this.#give(id, segment * SEGMENT_BYTES + index * bytes, bytes)
    }
  }

  #allocateRun(length: number, always: boolean): HeapBlock | null {
    this.#heedPressure()
    if (this.#remoteFrees() !== this.#seenRemoteFrees) this.#scan()
    let segment = this.#freeRuns.get(length)?.pop() ?? 0
    if (segment !== 0) this.#reserveBytes -= length * SEGMENT_BYTES
    else {
      segment = this.#claim(length, always)
      if (segment === 0) return null
      Atomics.store(this.#ints, this.words.layout.infoAt(segment), length)
      Atomics.store(this.#ints, this.words.layout.ownerAt(segment), this.#head)
    }
    this.#runs.add(segment)
    return this.#give(segment * BLOCKS_PER_SEGMENT, segment * SEGMENT_BYTES, length * SEGMENT_BYTES)
  }

  /** The block becomes this thread's: a new generation first, then the bit, so that no old descriptor fits a block with a holder. */
  #give(id: number, address: number, capacityBytes: number): HeapBlock {
    const at = this.words.layout.recordAt(id)
    const generation = Atomics.add(this.#ints, at + RECORD_GENERATION, 1) + 1
    Atomics.or(this.#ints, at + this.#holderWord, this.#holderBit)
    this.#addReference(id, 1)
    this.#noteHeld(capacityBytes)
    return { id, generation: generation | 0, address, capacityBytes }
  }

  #noteHeld(capacityBytes: number): void {
    this.#heldBytes += capacityBytes
    if (this.#heldBytes > this.#heldBytesPeak) this.#heldBytesPeak = this.#heldBytes
  }

  /** One more reference of this thread. */
  retain(block: HeapBlock): void {
    assert(this.#references(block.id) > 0, 'only a block that is held can be retained')
    this.#addReference(block.id, 1)
  }

  /** One reference less; with the last, the block is this thread's no more, and free unless others hold it. */
  release(block: HeapBlock): void {
    this.#drop(block.id, block.capacityBytes)
  }

  #drop(id: number, capacityBytes: number): void {
    const left = this.#addReference(id, -1)
    assert(left >= 0, 'a block is released once per reference')
    if (left > 0) return
    this.#heldBytes -= capacityBytes
    this.#letGo(id)
  }

  /** Takes this thread's bit off; who takes the last one off sees to it that the owner learns of it. */
  #letGo(id: number): void {
    const { words } = this
    Atomics.and(this.#ints, words.layout.recordAt(id) + this.#holderWord, ~this.#holderBit)
    if (!words.isFree(id)) return
    const segment = Math.floor(id / BLOCKS_PER_SEGMENT)
    const owner = words.owner(segment)
    if (owner === this.#small) {
      this.#setFree(segment, this.#freeBits[segment]! | (1 << (id % BLOCKS_PER_SEGMENT)))
      this.#heedPressure()
    } else if (owner === this.#head) {
      this.#keepRun(segment)
      this.#heedPressure()
    } else if (owner !== 0 && !words.isAbandoned(owner)) words.noteRemoteFree(owner)
    else if (owner !== 0) words.returnAbandoned(segment, owner, this)
  }

  /**
   * True when somebody else could still read the block: another worker, another reference of this one (a value that came back to it), or a
   * message on its way. Writers copy it first (HEAP-8).
   */
  isShared(block: HeapBlock): boolean {
    return this.#references(block.id) !== 1 || !this.words.isHeldOnlyBy(this.slot, block.id)
  }

  // ---- between workers

  /** Names the block in a message; this thread holds it until `acknowledge(token)`. */
  share(block: HeapBlock): { readonly descriptor: HeapDescriptor; readonly token: number } {
    this.retain(block)
    const token = this.#nextToken++
    this.#inFlight.set(token, block.id)
    return { descriptor: { id: block.id, generation: block.generation, sender: this.slot, epoch: this.epoch }, token }
  }

  /** The receiver holds the block, has refused it, or will not read the message: its link is gone. Again does nothing. */
  acknowledge(token: number): void {
    const id = this.#inFlight.get(token)
    if (id === undefined) return
    this.#inFlight.delete(token)
    this.#drop(id, this.words.capacityOf(id))
  }

  get inFlight(): number {
    return this.#inFlight.size
  }

  /** This thread's worker closes: what it has sent and nobody has read is lost with it. Said before the blocks are acknowledged. */
  noteEnd(): void {
    Atomics.store(this.#ints, slotAt(this.slot) + SLOT_ENDED, this.epoch + 1)
  }

  #hasEnded({ sender, epoch }: HeapDescriptor): boolean {
    return (
      this.words.slotState(sender) !== slotWord(SLOT_LIVE, 0, epoch) || Atomics.load(this.#ints, slotAt(sender) + SLOT_ENDED) === epoch + 1
    )
  }

  /**
   * This thread holds the block that a message names; then the sender may let go. Nothing in the descriptor is trusted.
   * @throws HEAP_BLOCK_STALE when it names no block, or one that its sender does not hold (any more); `values.hasEnded` says whether the sender has ended
   */
  adopt(descriptor: HeapDescriptor): HeapBlock {
    const { id, generation, sender, epoch } = descriptor
    const { words } = this
    const named =
      Number.isSafeInteger(id) &&
      id >= words.layout.firstSegment * BLOCKS_PER_SEGMENT &&
      id < words.layout.endSegment * BLOCKS_PER_SEGMENT &&
      Number.isSafeInteger(sender) &&
      sender >= 0 &&
      sender < SLOTS_MAX
    if (!named) throw staleBlock(descriptor, false)
    if (!this.#isHeldBy(id, generation, sender, epoch)) throw staleBlock(descriptor, this.#hasEnded(descriptor))
    if (this.#references(id) === 0) {
      // Note [Adoption]. Bit, count, and only then the question whether the sender still holds this generation. If it does, it did when
      // this bit was already set, so the block cannot have become free since, nor can it while the bit stays. If not, the bit
      // was a mistake, which the owner may have seen (it passes the block over until a scan) but which gave nobody anything.
      const at = words.layout.recordAt(id)
      Atomics.or(this.#ints, at + this.#holderWord, this.#holderBit)
      Atomics.add(this.#ints, at + RECORD_ADOPTIONS, 1)
      if (!this.#isHeldBy(id, generation, sender, epoch)) {
        this.#letGo(id)
        throw staleBlock(descriptor, this.#hasEnded(descriptor))
      }
      this.#noteHeld(words.capacityOf(id))
    }
    this.#addReference(id, 1)
    return { id, generation, address: words.addressOf(id), capacityBytes: words.capacityOf(id) }
  }

  /** The bit is read before the generation: an allocation writes them in the opposite order. */
  #isHeldBy(id: number, generation: number, sender: number, epoch: number): boolean {
    const { words } = this
    return words.slotState(sender) === slotWord(SLOT_LIVE, 0, epoch) && words.holds(sender, id) && words.generation(id) === generation
  }

  // ---- the worker's arenas

  /** A segment with free blocks of the class, which becomes its current one; 0 when there is none. */
  #refill(cls: number): number {
    this.#heedPressure()
    let segment = this.#withFreeBlocks(cls)
    if (segment === 0 && this.#remoteFrees() !== this.#seenRemoteFrees) {
      this.#scan()
      segment = this.#withFreeBlocks(cls)
    }
    if (segment === 0) {
      segment = this.#empty.pop() ?? 0
      if (segment !== 0) this.#reserveBytes -= SEGMENT_BYTES
      else segment = this.#claim(1, false)
      // A claim that fails may have found blocks all the same: remote frees, or what a dead worker has left.
      if (segment !== 0) this.#cut(segment, cls)
      else segment = this.#withFreeBlocks(cls)
    }
    const before = this.#current[cls]!
    if (segment === 0 || segment === before) return segment
    // A trim on the way may have found blocks in the segment that was full.
    if (this.#freeBits[before] !== 0) this.#available[cls]!.push(before)
    this.#current[cls] = segment
    return segment
  }

  /** The current segment may have got some by a scan. */
  #withFreeBlocks(cls: number): number {
    const current = this.#current[cls]!
    return this.#freeBits[current] !== 0 ? current : (this.#available[cls]!.pop() ?? 0)
  }

  /** Makes a segment that this worker owns, and in which nothing is held, one of class `cls`. */
  #cut(segment: number, cls: number): void {
    const { layout } = this.words
    Atomics.store(this.#ints, layout.infoAt(segment), cls)
    Atomics.store(this.#ints, layout.ownerAt(segment), this.#small)
    this.#mine.add(segment)
    this.#freeBits[segment] = CLASS_MASK[cls]!
  }

  /** Files an own small segment again after its free bits have grown. */
  #setFree(segment: number, bits: number): void {
    const before = this.#freeBits[segment]!
    if (bits === before) return
    this.#freeBits[segment] = bits
    const cls = this.words.info(segment)
    if (segment === this.#current[cls]) return
    const list = this.#available[cls]!
    if (bits === CLASS_MASK[cls]) {
      if (before !== 0) {
        const at = list.lastIndexOf(segment)
        assert(at >= 0, 'a segment with free blocks is listed')
        list[at] = list.at(-1)!
        list.pop()
      }
      this.#keepEmpty(segment)
    } else if (before === 0) list.push(segment)
  }

  #keepEmpty(segment: number): void {
    if (this.#reserveBytes + SEGMENT_BYTES > this.#reserveBytesMax) this.#returnSegment(segment)
    else {
      this.#empty.push(segment)
      this.#reserveBytes += SEGMENT_BYTES
      this.#failedSegments = Number.POSITIVE_INFINITY
    }
  }

  #keepRun(segment: number): void {
    if (!this.#runs.delete(segment)) return
    const length = this.words.info(segment)
    if (this.#reserveBytes + length * SEGMENT_BYTES > this.#reserveBytesMax) this.#returnRun(segment)
    else {
      const list = this.#freeRuns.get(length)
      if (list === undefined) this.#freeRuns.set(length, [segment])
      else list.push(segment)
      this.#reserveBytes += length * SEGMENT_BYTES
      this.#failedSegments = Number.POSITIVE_INFINITY
    }
  }

  get #reserveBytesMax(): number {
    return Math.min(this.limitBytes * RESERVE_SHARE, Math.max(RESERVE_BYTES, this.#heldBytes * RESERVE_SHARE_OF_HELD))
  }

  #returnSegment(segment: number): void {
    this.#mine.delete(segment)
    this.#freeBits[segment] = 0
    this.#countSegments(-1)
    Atomics.store(this.#ints, this.words.layout.ownerAt(segment), 0)
    this.words.noteReturn()
  }

  /** The head becomes a tail first: if this thread ends in the middle, all that is left is tails without a head. */
  #returnRun(segment: number): void {
    const { layout } = this.words
    const length = this.words.info(segment)
    this.#countSegments(-length)
    Atomics.store(this.#ints, layout.ownerAt(segment), this.#tail)
    for (let s = segment + length - 1; s >= segment; s--) Atomics.store(this.#ints, layout.ownerAt(s), 0)
    this.words.noteReturn()
  }

  /** Finds the blocks of own segments that others were the last to let go. */
  #scan(): void {
    this.#seenRemoteFrees = this.#remoteFrees()
    for (const segment of [...this.#mine]) this.#scanSegment(segment)
    for (const segment of [...this.#runs]) if (this.words.isFree(segment * BLOCKS_PER_SEGMENT)) this.#keepRun(segment)
  }

  #scanSegment(segment: number): void {
    const blocks = CLASS_BLOCKS[this.words.info(segment)]!
    let bits = 0
    for (let i = 0; i < blocks; i++) if (this.words.isFree(segment * BLOCKS_PER_SEGMENT + i)) bits |= 1 << i
    // Only additions: a free block with somebody's bit in it for a moment stays where it is filed.
    this.#setFree(segment, this.#freeBits[segment]! | bits)
  }

  /** Gives back to all what this worker keeps in reserve; its live blocks stay. */
  trim(): void {
    this.#scan()
    this.#returnReserve()
  }

  /** Adjacent segments become one free range, for requests of any size. */
  #returnReserve(): void {
    for (const segment of this.#empty) this.#returnSegment(segment)
    this.#empty.length = 0
    for (const list of this.#freeRuns.values()) for (const segment of list) this.#returnRun(segment)
    this.#freeRuns.clear()
    this.#current.forEach((segment, cls) => {
      if (segment === 0 || this.#freeBits[segment] !== CLASS_MASK[cls]) return
      this.#current[cls] = 0
      this.#returnSegment(segment)
    })
    this.#reserveBytes = 0
  }

  /** Only between operations: code in the middle of filing a segment would find it gone. */
  #heedPressure(): void {
    const pressure = Atomics.load(this.#ints, PRESSURE_AT)
    if (pressure === this.#seenPressure) return
    this.#seenPressure = pressure
    this.trim()
  }

  #remoteFrees(): number {
    return Atomics.load(this.#ints, slotAt(this.slot) + SLOT_REMOTE_FREES)
  }

  /**
   * `length` segments in a row, all of which now carry this worker's mark as tails: the caller makes the first a head or a small one. 0 when
   * the limit or the memory does not hold them, after what this worker keeps in reserve was given back.
   */
  #claim(length: number, always: boolean): number {
    const returns = Atomics.load(this.#ints, RETURNS_AT)
    if (!always && length >= this.#failedSegments && returns === this.#failedReturns) return 0
    // Memory that was never used comes last: free runs of other lengths serve as well, once they are given back and lie together.
    let segment = this.#reserveBytes === 0 ? 0 : this.#tryClaim(length, always, false)
    if (segment === 0) {
      this.#returnReserve()
      segment = this.#tryClaim(length, always, true)
    }
    if (segment === 0) {
      this.trim()
      this.#collectAbandoned()
      this.#searchFrom.fill(this.words.layout.firstSegment)
      segment = this.#tryClaim(length, always, true)
    }
    if (segment === 0) {
      this.#failedReturns = Atomics.load(this.#ints, RETURNS_AT)
      this.#failedSegments = length
      Atomics.add(this.#ints, PRESSURE_AT, 1)
      this.#seenPressure = Atomics.load(this.#ints, PRESSURE_AT)
    } else this.#failedSegments = Number.POSITIVE_INFINITY
    return segment
  }

  /** @param grows whether it may lie after all that was ever claimed */
  #tryClaim(length: number, always: boolean, grows: boolean): number {
    if (!always && (this.words.segmentsUsed() + length) * SEGMENT_BYTES > this.limitBytes) return 0
    for (let attempt = 0; attempt < CLAIM_ATTEMPTS_MAX; attempt++) {
      const segment = this.#findRoom(length)
      if (segment !== 0 && !grows && segment + length > this.words.high) return 0
      if (segment === 0 || this.#mark(segment, length)) return segment
    }
    return 0
  }

  /** Looks where it found room last time, unless segments came back since. */
  #findRoom(length: number): number {
    const returns = Atomics.load(this.#ints, RETURNS_AT)
    if (returns !== this.#seenReturns) {
      this.#seenReturns = returns
      this.#searchFrom.fill(this.words.layout.firstSegment)
    }
    const by = Math.min(length, SEARCH_LENGTHS - 1)
    const segment = this.words.findFree(this.#searchFrom[by]!, length)
    if (segment !== 0) this.#searchFrom[by] = segment
    return segment
  }

  /** Takes segments of dead workers: for all, or, if others hold blocks in them, for this worker. */
  #collectAbandoned(): void {
    const { words } = this
    words.walk((segment, word) => {
      if (!words.isAbandoned(word) || words.returnAbandoned(segment, word, this)) return
      if (ownerKind(word) === KIND_SMALL) this.#takeOver(segment, word)
    })
  }

  #takeOver(segment: number, word: number): void {
    if (Atomics.compareExchange(this.#ints, this.words.layout.ownerAt(segment), word, this.#small) !== word) return
    this.#countSegments(1)
    this.#freeBits[segment] = 0
    this.#mine.add(segment)
    this.#scanSegment(segment)
  }

  /** Marks all or none. If this worker dies here, its cleanup gives back marks without a head. */
  #mark(segment: number, length: number): boolean {
    const { layout } = this.words
    this.words.raiseHigh(segment + length)
    for (let s = segment; s < segment + length; s++) {
      if (Atomics.compareExchange(this.#ints, layout.ownerAt(s), 0, this.#tail) === 0) continue
      for (let undo = s - 1; undo >= segment; undo--) Atomics.store(this.#ints, layout.ownerAt(undo), 0)
      return false
    }
    this.#countSegments(length)
    return true
  }

  #countSegments(by: number): void {
    this.#segments += by
    Atomics.store(this.#ints, slotAt(this.slot) + SLOT_SEGMENTS, this.#segments)
  }

  // ---- for kernels

  /**
   * The address of at least `bytes` that are this thread's alone until the next call, with unspecified contents; 64-byte aligned. It grows to
   * the largest request and stays; it does not count against the limit.
   * @throws STAGING_EXHAUSTED when the memory has no such room
   */
  scratch(bytes: number): number {
    if (this.#scratch !== null && this.#scratch.capacityBytes >= bytes) return this.#scratch.address
    const old = this.#scratch
    this.#scratch = null
    if (old !== null) this.release(old)
    const block = this.#allocateRun(segmentsFor(Math.max(bytes, SCRATCH_BYTES_MIN)), true)
    if (block === null) {
      throw new PostgradError('STAGING_EXHAUSTED', {
        op: 'kernel',
        expected: `${bytes} bytes in a row within the ${this.buffer.byteLength} bytes of the heap`,
        got: 'no free range of that length',
        remedy: 'Split the operands with narrow(), or close tensors that are not needed any more.',
        values: { bytes },
      })
    }
    this.#scratch = block
    return block.address
  }

  /**
   * See `KernelHeap`. A thread writes what it wants before it looks at the others: of two that ask at once, each sees the other, and neither gets too many. It keeps
   * what it has.
   */
  claimHelpers(wanted: number, max: number): number {
    const own = slotAt(this.slot) + SLOT_HELPERS
    const before = Atomics.exchange(this.#ints, own, wanted)
    let others = -wanted
    for (let slot = 0; slot < SLOTS_MAX; slot++) others += Atomics.load(this.#ints, slotAt(slot) + SLOT_HELPERS)
    const granted = Math.min(wanted, Math.max(before, max - others))
    Atomics.store(this.#ints, own, granted)
    return granted
  }

  /** See `KernelHeap`. */
  helpersMax(): number {
    let most = 0
    for (let slot = 0; slot < SLOTS_MAX; slot++) most = Math.max(most, Atomics.load(this.#ints, slotAt(slot) + SLOT_HELPERS))
    return most
  }

  // ---- ends

  /**
   * Gives back what a dead worker held; any survivor may call it, also twice or at the same time as another. Only for a thread that has ended:
   * a living one would lose its blocks. The slot is free afterwards.
   * @returns false when somebody else is at it
   */
  reclaim(dead: HeapSlot): boolean {
    assert(dead.slot !== this.slot || dead.epoch !== this.epoch, 'a worker that reclaims is not dead')
    return reclaimSlot(this.words, dead, this)
  }

  /** Runs `fn` with at most `bytes` held by this thread; further allocations get null. For tests that show that nothing depends on it. */
  withHeldBytesMax<T>(bytes: number, fn: () => T): T {
    const before = this.#heldBytesMax
    this.#heldBytesMax = bytes
    try {
      return fn()
    } finally {
      this.#heldBytesMax = before
    }
  }

  // ---- what can be seen

  /** Bytes of the blocks that this thread holds, scratch included. */
  get heldBytes(): number {
    return this.#heldBytes
  }

  /** The most that this thread has held. */
  get heldBytesPeak(): number {
    return this.#heldBytesPeak
  }

  /** The blocks that this thread holds by its own count, for checks against the shared words. */
  audit(): { readonly id: number; readonly generation: number; readonly references: number }[] {
    const held = []
    for (const [number, page] of this.#counts.entries()) {
      if (page === undefined) continue
      for (let i = 0; i < page.length; i++) {
        if (page[i] === 0) continue
        const id = (number << COUNTS_BITS) + i
        held.push({ id, generation: this.words.generation(id), references: page[i]! })
      }
    }
    return held
  }

  #references(id: number): number {
    return this.#counts[id >> COUNTS_BITS]?.[id & ((1 << COUNTS_BITS) - 1)] ?? 0
  }

  #addReference(id: number, by: number): number {
    let page = this.#counts[id >> COUNTS_BITS]
    if (page === undefined) {
      page = new Int32Array(1 << COUNTS_BITS)
      this.#counts[id >> COUNTS_BITS] = page
    }
    const index = id & ((1 << COUNTS_BITS) - 1)
    page[index] = page[index]! + by
    return page[index]!
  }
}

function capacityOf(words: HeapWords): number {
  return (words.layout.endSegment - words.layout.firstSegment) * SEGMENT_BYTES
}

function staleBlock(descriptor: HeapDescriptor, hasEnded: boolean): PostgradError {
  return new PostgradError('HEAP_BLOCK_STALE', {
    op: 'adopt',
    expected: 'a block that its sender holds',
    got: `block ${descriptor.id} of generation ${descriptor.generation} from slot ${descriptor.sender}`,
    remedy: 'A block is adopted once, before its sender is notified; if the sender has died, ask for the value again.',
    values: { ...descriptor, hasEnded },
  })
}
