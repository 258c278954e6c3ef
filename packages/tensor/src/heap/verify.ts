/**
 * Checks the heap's books (HEAP-9), and what they say in numbers. It reads shared words only, so it is true when nobody is in the middle of
 * an operation: in tests after each round, in a program as a figure that may be a moment old.
 */
import type { Heap } from './heap.js'
import { KIND_HEAD, KIND_SMALL, KIND_TAIL, ownerKind, ownerWord, RECORD_HOLDERS, SLOT_LIVE, SLOTS_MAX, slotState } from './layout.js'
import { BLOCKS_PER_SEGMENT, CLASS_BYTES, SEGMENT_BYTES } from './size-classes.js'
import type { HeapWords } from './words.js'

/** What one worker says that it holds: `Heap.audit()`. */
export interface HeapHoldings {
  readonly slot: number
  readonly held: readonly { readonly id: number; readonly generation: number }[]
}

/**
 * Every contradiction, in words; none is right. With `holdings` of all living workers it also finds bits without a reference (a leak) and
 * references without a bit (a block that somebody else may get).
 */
export function verifyHeap(words: HeapWords, holdings?: readonly HeapHoldings[]): string[] {
  const problems: string[] = []
  const { layout } = words
  const states = words.slotStates()
  const live = (slot: number) => slotState(states[slot]!) === SLOT_LIVE
  const expected = new Map<number, number[]>()
  for (const { slot, held } of holdings ?? []) {
    if (!live(slot)) problems.push(`slot ${slot} has holdings and is not alive`)
    for (const { id, generation } of held) {
      const slots = expected.get(id)
      if (slots === undefined) expected.set(id, [slot])
      else slots.push(slot)
      if (words.generation(id) !== generation) problems.push(`block ${id} of slot ${slot} is of generation ${words.generation(id)}`)
    }
  }
  let bytes = 0
  for (let s = layout.firstSegment; s < layout.endSegment; ) {
    const word = words.owner(s)
    const kind = ownerKind(word)
    if (s >= words.high && word !== 0) problems.push(`segment ${s} is claimed above the mark ${words.high}`)
    if (word !== 0 && kind === 0) problems.push(`segment ${s} has the owner ${word}, which is none`)
    if (kind === KIND_TAIL) problems.push(`segment ${s} is a tail without a head`)
    const length = kind === KIND_HEAD ? words.info(s) : 1
    if (length < 1 || s + length > layout.endSegment) return [...problems, `the run at segment ${s} has length ${length}`]
    const tail = ownerWord(word & 63, KIND_TAIL, word >>> 8)
    for (let t = s + 1; t < s + length; t++) {
      if (words.owner(t) !== tail) problems.push(`segment ${t} of the run at ${s} has the owner ${words.owner(t)}`)
    }
    const cls = words.info(s)
    const small = kind === KIND_SMALL
    if (small && CLASS_BYTES[cls] === undefined) return [...problems, `segment ${s} has class ${cls}`]
    const blocks = small ? words.blocksIn(s, kind) : kind === KIND_HEAD ? 1 : 0
    if (small && blocks * CLASS_BYTES[cls]! > SEGMENT_BYTES) problems.push(`the blocks of segment ${s} do not fit in it`)
    for (let id = s * BLOCKS_PER_SEGMENT; id < (s + length) * BLOCKS_PER_SEGMENT; id++) {
      const any = words.ints[layout.recordAt(id) + RECORD_HOLDERS]! | words.ints[layout.recordAt(id) + RECORD_HOLDERS + 1]!
      const wanted = expected.get(id)
      if (any === 0 && wanted === undefined) continue
      const holders = words.holders(id)
      if (any !== 0 && id - s * BLOCKS_PER_SEGMENT >= blocks) problems.push(`block ${id} is held by ${holders} where no block is`)
      for (const slot of holders) if (!live(slot)) problems.push(`block ${id} is held by slot ${slot}, which is not alive`)
      if (holdings !== undefined && String(wanted?.sort((a, b) => a - b) ?? '') !== String(holders)) {
        problems.push(`block ${id} is held by ${holders}; references to it have ${wanted ?? 'none'}`)
      }
      expected.delete(id)
    }
    bytes += length * SEGMENT_BYTES
    s += length
  }
  for (const [id, slots] of expected) problems.push(`slot ${slots} holds block ${id}, which is outside of all segments`)
  const total = (layout.endSegment - layout.firstSegment) * SEGMENT_BYTES
  if (bytes !== total) problems.push(`segments cover ${bytes} of ${total} bytes`)
  return problems
}

export interface HeapStats {
  /** Address space of the heap. */
  readonly reservedBytes: number
  readonly limitBytes: number
  /** Up to where it was ever used: what it can have taken from the system at most. */
  readonly touchedBytes: number
  /** In segments of workers, free blocks among them. */
  readonly claimedBytes: number
  /** So many segments are these. */
  readonly segments: number
  /** In blocks that somebody holds; once each. */
  readonly liveBytes: number
  /** In blocks that each worker holds, by slot; only slots that are alive. A block with two holders counts in both. */
  readonly heldBytes: ReadonlyMap<number, number>
  /** Messages of this thread with a block that nobody has acknowledged. */
  readonly inFlight: number
}

/** One pass over all blocks: about a millisecond for each 256 MiB ever used. */
export function heapStats(heap: Heap): HeapStats {
  const { words } = heap
  const held = new Map<number, number>()
  for (let slot = 0; slot < SLOTS_MAX; slot++) if (slotState(words.slotState(slot)) === SLOT_LIVE) held.set(slot, 0)
  let claimedBytes = 0
  let liveBytes = 0
  words.walk((segment, word, length) => {
    claimedBytes += length * SEGMENT_BYTES
    const kind = ownerKind(word)
    if (kind === KIND_TAIL) return
    const capacityBytes = kind === KIND_SMALL ? CLASS_BYTES[words.info(segment)]! : length * SEGMENT_BYTES
    for (let i = 0; i < words.blocksIn(segment, kind); i++) {
      const holders = words.holders(segment * BLOCKS_PER_SEGMENT + i)
      if (holders.length > 0) liveBytes += capacityBytes
      for (const slot of holders) held.set(slot, (held.get(slot) ?? 0) + capacityBytes)
    }
  })
  return {
    reservedBytes: heap.buffer.byteLength,
    limitBytes: heap.limitBytes,
    touchedBytes: words.high * SEGMENT_BYTES,
    claimedBytes,
    segments: claimedBytes / SEGMENT_BYTES,
    liveBytes,
    heldBytes: held,
    inFlight: heap.inFlight,
  }
}
