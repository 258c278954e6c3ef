/**
 * Puts frames together: head and body, then the small parts, at the next place of an arena; large parts are segments. `codec.ts` decides what is written.
 */
import { BYTES_PER_ELEMENT, copyOfElements, readElements } from '@postgrad/tensor/internal'
import type { Frame } from '@postgrad/transport'
import type { BlockTransport } from './block-transport.js'
import { CELL_BYTES_MAX, Cells, CellWriter } from './cells.js'
import { PREFIX_BYTES, writeHead, writeLength } from './head.js'
import type { OutgoingMessage, Part } from './message.js'
import { align8, bufferOf, byteLengthOf, INLINE_BYTES_MAX, Views } from './tensor-codec.js'

/** Headers are put together here, one after the other; longer ones have a buffer of their own. */
const ARENA_BYTES = 32_768
const ARENA_HEADER_BYTES_MAX = 8192
const NO_SEGMENTS: readonly Uint8Array[] = Object.freeze([])

/** Memory of which each byte is given out once, since frames own their bytes. */
class Arena {
  readonly views: Views
  readonly cells: Cells
  used = 0

  constructor() {
    const buffer = new ArrayBuffer(ARENA_BYTES)
    this.views = new Views(buffer)
    this.cells = new Cells(buffer)
  }
}

/** Shared by a thread's codecs, since a simulation makes them by the thousand: no user code runs while a frame is written. */
const cellWriter = new CellWriter()
let arena: Arena | null = null

class EncodedFrame implements Frame {
  readonly header: Uint8Array
  readonly segments: readonly Uint8Array[]

  constructor(header: Uint8Array, segments: readonly Uint8Array[]) {
    this.header = header
    this.segments = segments
  }
}

/** Writes head and body at the arena's next place. The number of bytes; 0 if they do not fit. */
export function writeCells(message: OutgoingMessage): number {
  const start = beginCells()
  const { packed } = message
  let fits = writeHead(cellWriter, message, false)
  for (let i = 0; fits && i < packed.length; i++) fits = cellWriter.value(packed[i])
  return fits ? 8 * (cellWriter.at - start) : 0
}

/** The same for the head of a message whose body is packed by msgpack. */
export function writePackedHead(message: OutgoingMessage): number {
  const start = beginCells()
  writeHead(cellWriter, message, true)
  return 8 * (cellWriter.at - start)
}

/** The number of the cell. */
function beginCells(): number {
  if (arena === null || arena.used + CELL_BYTES_MAX > ARENA_BYTES) arena = new Arena()
  const start = arena.used >> 3
  cellWriter.begin(arena.cells, start)
  return start
}

/** The frame whose first `bytes` are at the arena's next place; what is packed follows, then the parts. */
export function frameOf(bytes: number, packed: Uint8Array, parts: readonly Part[], blocks: BlockTransport | null): Frame {
  const { cells, views } = arena as Arena
  let start = (arena as Arena).used
  const length = bytes + packed.length
  writeLength(cellWriter, start >> 3, length - PREFIX_BYTES)
  let end = length
  for (let i = 0; i < parts.length; i++) {
    const partBytes = lengthOf(parts[i] as Part)
    if (partBytes <= INLINE_BYTES_MAX) end = align8(align8(end) + partBytes)
  }
  let target = views
  if (start + end <= ARENA_BYTES && end <= ARENA_HEADER_BYTES_MAX) (arena as Arena).used = align8(start + end)
  else {
    const head = cells.bytes.subarray(start, start + bytes)
    start = 0
    if (end > ARENA_HEADER_BYTES_MAX) target = new Views(new ArrayBuffer(align8(end)))
    else {
      arena = new Arena()
      arena.used = align8(end)
      target = arena.views
    }
    target.bytes.set(head)
  }
  const header = new Uint8Array(target.buffer, start, end)
  if (packed.length > 0) header.set(packed, bytes)
  return new EncodedFrame(header, parts.length === 0 ? NO_SEGMENTS : placeParts(header, length, parts, target, blocks))
}

/** Copies small parts into the header, from its byte `from` on; returns the segments of the large ones. */
function placeParts(
  header: Uint8Array,
  from: number,
  parts: readonly Part[],
  views: Views,
  blocks: BlockTransport | null,
): readonly Uint8Array[] {
  let at = from
  let segments: Uint8Array[] | null = null
  for (let i = 0; i < parts.length; i++) {
    const part = parts[i] as Part
    const bytes = lengthOf(part)
    if (bytes > INLINE_BYTES_MAX) {
      segments ??= []
      segments.push((ArrayBuffer.isView(part) ? null : blocks?.lend?.(part)) ?? ownBytes(part))
      continue
    }
    at = padded(header, at)
    if (ArrayBuffer.isView(part)) header.set(part, at)
    else readElements(part, views.of(part.dtype), (header.byteOffset + at) / BYTES_PER_ELEMENT[part.dtype])
    at = padded(header, at + bytes)
  }
  return segments ?? NO_SEGMENTS
}

/** The next multiple of 8. A message that did not fit may have been in the gap. */
function padded(header: Uint8Array, at: number): number {
  const end = align8(at)
  for (let i = at; i < end; i++) header[i] = 0
  return end
}

function lengthOf(part: Part): number {
  return ArrayBuffer.isView(part) ? part.byteLength : byteLengthOf(part)
}

/** A copy that fills its buffer, so that a link can move it. */
function ownBytes(part: Part): Uint8Array {
  if (ArrayBuffer.isView(part)) {
    return new Uint8Array(bufferOf(part))
  }
  return new Uint8Array(copyOfElements(part).buffer as ArrayBuffer)
}
