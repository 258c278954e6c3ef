/**
 * How a link that keeps frames in memory takes their segments: without a copy where possible. `kept.ts` and `socket/chunk-writer.ts` use it.
 */
import { structuredClone } from '@postgrad/base/internal'
import { isMovable, SEGMENT_MOVED_BYTES_MIN } from './post.js'

/**
 * The segments' bytes as the link's own: a buffer that can be moved is taken, and reads as empty at its sender; a large part of shared memory stays where it lies, as
 * its sender has promised (`Link.send`); anything else is copied by `copy`.
 */
export function takeSegments(
  segments: readonly Uint8Array[],
  copy: (segment: Uint8Array) => Uint8Array = (segment) => segment.slice(),
): readonly Uint8Array[] {
  if (segments.length === 0) return segments
  // Copies first: another segment may be a view of a moved one.
  const copies = segments.map((segment) => (isMovable(segment) ? null : isLent(segment) ? segment : copy(segment)))
  const moved = new Map<ArrayBufferLike, Uint8Array>()
  return copies.map((copied, i) => {
    if (copied !== null) return copied
    const segment = segments[i] as Uint8Array
    const { buffer } = segment
    // The same segment may come once more, and is empty by then.
    const bytes = moved.get(buffer) ?? move(segment)
    moved.set(buffer, bytes)
    return bytes
  })
}

/** By tag: `instanceof` fails across realms. */
function isLent({ length, buffer }: Uint8Array): boolean {
  return length >= SEGMENT_MOVED_BYTES_MIN && Object.prototype.toString.call(buffer) === '[object SharedArrayBuffer]'
}

function move(segment: Uint8Array): Uint8Array {
  try {
    const buffer = segment.buffer as ArrayBuffer
    return new Uint8Array(structuredClone(buffer, { transfer: [buffer] }))
  } catch (error) {
    // A buffer that may not be moved (a WebAssembly memory) is copied, as by any link.
    if ((error as { name?: unknown }).name !== 'DataCloneError') throw error
    return segment.slice()
  }
}
