/**
 * Carries a frame's bytes over a simulated link, as any link does. It moves large segments that own their buffer (the sender's views
 * become empty), and copies everything else into one fresh buffer, each part at a multiple of 8 bytes.
 */
import { structuredClone } from '@postgrad/base/internal'
import type { Frame } from '@postgrad/transport'
import { align8, isMovable } from '@postgrad/transport/internal'

const NO_SEGMENTS: readonly Uint8Array[] = Object.freeze([])

/** The frame as the receiver will own it. */
export function carry(frame: Frame): Frame {
  const { header, segments } = frame
  if (segments.length === 0) return { header: new Uint8Array(header), segments: NO_SEGMENTS }
  let size = align8(header.length)
  let moved: Set<ArrayBuffer> | null = null
  for (const segment of segments) {
    if (isMovable(segment) && !moved?.has(segment.buffer as ArrayBuffer)) {
      moved ??= new Set()
      moved.add(segment.buffer as ArrayBuffer)
    } else {
      size += align8(segment.length)
    }
  }
  const bytes = new Uint8Array(size)
  let at = 0
  const copied = (part: Uint8Array): Uint8Array => {
    const copy = bytes.subarray(at, at + part.length)
    copy.set(part)
    at += align8(part.length)
    return copy
  }
  const copiedHeader = copied(header)
  // First the copies, of which one may be of a buffer that is moved as well; then the move, which empties the sender's views.
  const toMove = new Set(moved)
  const parts = segments.map((segment) => (toMove.delete(segment.buffer as ArrayBuffer) ? segment.buffer : copied(segment)))
  if (moved === null) return { header: copiedHeader, segments: parts as Uint8Array[] }
  const movedTo = structuredClone([...moved], { transfer: [...moved] })
  let next = 0
  return {
    header: copiedHeader,
    segments: parts.map((part) => (ArrayBuffer.isView(part) ? (part as Uint8Array) : new Uint8Array(movedTo[next++]!))),
  }
}
