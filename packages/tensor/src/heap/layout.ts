/**
 * The heap's words: their places in the shared memory and how they are packed. Nothing here decides anything; the rules are in HEAP.md.
 *
 *     0          4 KiB      8 KiB                                          first segment (aligned)          last segment (unused)
 *     | header   | slots    | owners | infos | records: 32 per segment …   | data segments of 128 KiB …     |
 *
 * All words are Int32 and start as 0, which is a valid empty heap. Segments are numbered from the memory's first byte on; those under
 * the words and the last one (whose end would be address 2^32) are never given out. A block is named by `segment · 32 + index`.
 */
import { BLOCKS_PER_SEGMENT, SEGMENT_BYTES } from './size-classes.js'

/** Worker threads that can hold blocks at once; a thread beyond that computes on managed memory. */
export const SLOTS_MAX = 64

// The header, in words.
/** MAGIC when the first thread has laid the heap out. */
export const MAGIC_AT = 0
export const MAGIC = 0x706f7374
/** No segment from here on was ever claimed: scans end there. Only rises. */
export const HIGH_AT = 1
/** Raised when a segment goes back to all: a hint that a request that failed may now succeed. */
export const RETURNS_AT = 2
/** Raised when a request found no room: a hint to the others to give back what they keep in reserve. */
export const PRESSURE_AT = 3

// A slot, in words from `slotAt(slot)`.
const SLOTS_AT = 1024
const SLOT_WORDS = 16
/** state | reclaimer << 2 | epoch << 8 */
export const SLOT_STATE = 0
/** Raised when another worker has freed a block in one of this slot's segments: a hint to look for it. */
export const SLOT_REMOTE_FREES = 1
/** How many segments it has; written by its worker alone, and zeroed when that is dead. For the limit. */
export const SLOT_SEGMENTS = 2
/** Epoch + 1 of the incarnation whose worker has closed while blocks of it were on their way: who reads of them later learns that it has ended. */
export const SLOT_ENDED = 3

/** How many helper threads it has; written by its worker alone, and zeroed when that is dead: its helpers have ended with it. */
export const SLOT_HELPERS = 4

export function slotAt(slot: number): number {
  return SLOTS_AT + slot * SLOT_WORDS
}

export const SLOT_FREE = 0
export const SLOT_LIVE = 1
/** Its worker is dead and `reclaimer` is giving back what it held. */
export const SLOT_CLOSING = 2

/** Incarnations of a slot differ in their epoch. */
export const EPOCH_MASK = 0x7f_ffff

export function slotWord(state: number, reclaimer: number, epoch: number): number {
  return state | (reclaimer << 2) | (epoch << 8)
}
export function slotState(word: number): number {
  return word & 3
}
export function slotReclaimer(word: number): number {
  return (word >>> 2) & 63
}
export function epochOf(word: number): number {
  return word >>> 8
}

// The owner of a segment: slot | kind << 6 | epoch << 8; 0 is free.
/** Blocks of one class (its info). */
export const KIND_SMALL = 1
/** The first of `info` segments that are one block. */
export const KIND_HEAD = 2
/** The rest of one; without a head of the same slot and epoch before it, what is left of a claim or a return that was cut short. */
export const KIND_TAIL = 3

export function ownerWord(slot: number, kind: number, epoch: number): number {
  return slot | (kind << 6) | (epoch << 8)
}
export function ownerSlot(word: number): number {
  return word & 63
}
export function ownerKind(word: number): number {
  return (word >>> 6) & 3
}

// The record of a block, in words from `recordAt(id)`.
export const RECORD_WORDS = 4
/** Raised by each allocation: a later block at this place has another. */
export const RECORD_GENERATION = 0
/** Raised by each adoption, between setting the bit and acknowledging: if unchanged, two words of holders as read belong together. */
export const RECORD_ADOPTIONS = 1
/** Two words: bit `slot >> 1` of word `slot & 1` says that this slot's worker holds the block. No bit: the block is free. */
export const RECORD_HOLDERS = 2

export function holderWord(slot: number): number {
  return RECORD_HOLDERS + (slot & 1)
}
export function holderBit(slot: number): number {
  return 1 << (slot >> 1)
}

/** Where everything lies in a memory of some size. */
export class Layout {
  /** Segments of the memory, with those that are never given out. */
  readonly segments: number
  readonly firstSegment: number
  /** After the last segment that is given out. */
  readonly endSegment: number
  /** Words before the data. */
  readonly words: number
  readonly #owners = SLOTS_AT + SLOTS_MAX * SLOT_WORDS
  readonly #infos: number
  readonly #records: number

  constructor(reservedBytes: number) {
    this.segments = Math.floor(reservedBytes / SEGMENT_BYTES)
    this.#infos = this.#owners + this.segments
    this.#records = this.#infos + this.segments
    this.words = this.#records + this.segments * BLOCKS_PER_SEGMENT * RECORD_WORDS
    this.firstSegment = Math.ceil((this.words * 4) / SEGMENT_BYTES)
    this.endSegment = this.segments - 1
  }

  ownerAt(segment: number): number {
    return this.#owners + segment
  }
  infoAt(segment: number): number {
    return this.#infos + segment
  }
  recordAt(id: number): number {
    return this.#records + id * RECORD_WORDS
  }
}
