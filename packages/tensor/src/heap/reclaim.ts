/**
 * Slots: how a thread gets one, and how a dead thread's blocks go back. Note [Reclaim]:
 *
 * The word of a slot goes FREE → LIVE (a worker, with a new epoch) → CLOSING (it is dead; the word names who cleans up) → FREE. Only one
 * thread cleans up at a time, so that none can clear a bit of the slot's next incarnation; if that thread dies too, the thread that reclaims it
 * takes over. Nothing is waited for. In order: the dead worker's bits are cleared in every record (also of segments that nobody
 * owns: a bit set by mistake for a moment may be there), its segments in which nothing is held go back to all, and half-made or half-returned
 * runs with them. Segments in which others hold blocks stay abandoned: the last holder returns them, or the next search.
 */
import {
  EPOCH_MASK,
  epochOf,
  holderBit,
  holderWord,
  KIND_TAIL,
  ownerKind,
  SLOT_CLOSING,
  SLOT_FREE,
  SLOT_HELPERS,
  SLOT_LIVE,
  SLOT_SEGMENTS,
  SLOTS_MAX,
  slotAt,
  slotReclaimer,
  slotState,
  slotWord,
} from './layout.js'
import { BLOCKS_PER_SEGMENT } from './size-classes.js'
import type { HeapWords } from './words.js'

interface Incarnation {
  readonly slot: number
  readonly epoch: number
}

/** Takes the first free slot for a new worker; null when all are taken. */
export function claimSlot(words: HeapWords): Incarnation | null {
  for (let slot = 0; slot < SLOTS_MAX; slot++) {
    const word = words.slotState(slot)
    if (slotState(word) !== SLOT_FREE) continue
    const epoch = (epochOf(word) + 1) & EPOCH_MASK
    if (Atomics.compareExchange(words.ints, slotAt(slot), word, slotWord(SLOT_LIVE, 0, epoch)) === word) return { slot, epoch }
  }
  return null
}

/** See `Heap.reclaim`. */
export function reclaimSlot(words: HeapWords, dead: Incarnation, by: Incarnation): boolean {
  const at = slotAt(dead.slot)
  const closing = slotWord(SLOT_CLOSING, by.slot, dead.epoch)
  const word = Atomics.compareExchange(words.ints, at, slotWord(SLOT_LIVE, 0, dead.epoch), closing)
  if (epochOf(word) !== dead.epoch || slotState(word) === SLOT_FREE) return true
  if (slotState(word) === SLOT_CLOSING && word !== closing) return false
  finish(words, dead, by)
  return true
}

/** The word says that `by` cleans up after `dead`. */
function finish(words: HeapWords, dead: Incarnation, by: Incarnation): void {
  clearBits(words, dead.slot)
  returnSegments(words, by)
  // Slots that the dead worker was reclaiming. The exchange decides which thread continues.
  for (let slot = 0; slot < SLOTS_MAX; slot++) {
    const word = words.slotState(slot)
    if (slotState(word) !== SLOT_CLOSING || slotReclaimer(word) !== dead.slot || slot === dead.slot) continue
    const epoch = epochOf(word)
    if (Atomics.compareExchange(words.ints, slotAt(slot), word, slotWord(SLOT_CLOSING, by.slot, epoch)) === word) {
      finish(words, { slot, epoch }, by)
    }
  }
  Atomics.store(words.ints, slotAt(dead.slot) + SLOT_SEGMENTS, 0)
  Atomics.store(words.ints, slotAt(dead.slot) + SLOT_HELPERS, 0)
  Atomics.store(words.ints, slotAt(dead.slot), slotWord(SLOT_FREE, 0, dead.epoch))
}

function clearBits(words: HeapWords, slot: number): void {
  const { ints, layout } = words
  const word = holderWord(slot)
  const bit = holderBit(slot)
  const end = words.high * BLOCKS_PER_SEGMENT
  for (let id = layout.firstSegment * BLOCKS_PER_SEGMENT; id < end; id++) {
    const at = layout.recordAt(id) + word
    if ((Atomics.load(ints, at) & bit) === 0) continue
    Atomics.and(ints, at, ~bit)
    const owner = words.owner(Math.floor(id / BLOCKS_PER_SEGMENT))
    if (owner !== 0 && words.isFree(id) && !words.isAbandoned(owner)) words.noteRemoteFree(owner)
  }
}

/** All abandoned segments, those of earlier deaths too: the bits that were cleared may have been their last. */
function returnSegments(words: HeapWords, by: Incarnation): void {
  words.walk((segment, word) => {
    if (ownerKind(word) !== KIND_TAIL && words.isAbandoned(word)) words.returnAbandoned(segment, word, by)
  })
}
