/**
 * The size of a block for a request: blocks of one segment (2 … 32 of equal size, so nothing is left over at its end) for small requests,
 * whole segments in a row for large ones. Between two classes lies at most a quarter up to 32 KiB, a half above.
 */

export const SEGMENT_BYTES = 128 * 1024
/** Blocks of a segment at most: one bit each in a word of 32. */
export const BLOCKS_PER_SEGMENT = 32
/** A cache line, and what the widest loads want. */
const ALIGNMENT = 64

/** Blocks in a segment, by class. The class is an index here. */
export const CLASS_BLOCKS: readonly number[] = [BLOCKS_PER_SEGMENT, 28, 24, 20, 16, 14, 12, 10, 8, 7, 6, 5, 4, 3, 2]
export const CLASS_BYTES: readonly number[] = CLASS_BLOCKS.map((k) => Math.floor(SEGMENT_BYTES / k / ALIGNMENT) * ALIGNMENT)
/** A word with one bit for each block of a segment of the class. */
export const CLASS_MASK: readonly number[] = CLASS_BLOCKS.map((k) => (k === 32 ? -1 : (1 << k) - 1))
/** The largest request that shares a segment. */
export const SMALL_BYTES_MAX = CLASS_BYTES.at(-1)!

/** By units of ALIGNMENT: the smallest class that holds so many. */
const CLASS_OF = Uint8Array.from({ length: SMALL_BYTES_MAX / ALIGNMENT + 1 }, (_, units) =>
  CLASS_BYTES.findIndex((bytes) => bytes >= units * ALIGNMENT),
)

/** The class for `bytes` ≤ SMALL_BYTES_MAX. */
export function classOf(bytes: number): number {
  return CLASS_OF[(bytes + ALIGNMENT - 1) >>> 6]!
}

/** Segments in a row for `bytes` > SMALL_BYTES_MAX. */
export function segmentsFor(bytes: number): number {
  return Math.ceil(bytes / SEGMENT_BYTES)
}
