/**
 * Puts frames together: head and body, then the small parts, at the next place of an arena; large parts are segments. `codec.ts` decides what is written.
 */
import type { Tensor } from '@postgrad/tensor'
import { BYTES_PER_ELEMENT, copyOfElements, isReadable, readElements, readLater } from '@postgrad/tensor/internal'
import type { Frame } from '@postgrad/transport'
import type { BlockTransport } from './block-transport.js'
import { CELL_BYTES_MAX, Cells, CellWriter } from './cells.js'
import { writeHead, writeLength } from './head.js'
import type { OutgoingMessage, Part } from './message.js'
import { align8, bufferOf, INLINE_BYTES_MAX, ROUND, Views } from './tensor-codec.js'

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

/** Shared by a thread's codecs, since a simulation makes them by the thousand. Null while a body is written. */
let cellWriter: CellWriter | null = new CellWriter()
let arena: Arena | null = null

/** Writes head, body and trace, which is packable, at the arena's next place. The number of bytes; 0 if they do not fit. */
export function writeCells(message: OutgoingMessage, trace: unknown): number {
  const own = arenaWithRoom()
  const start = own.used >> 3
  const end = start + CELL_BYTES_MAX / 8
  const bodyAt = writeHead(own.cells, start, end, message, false)
  if (bodyAt === 0) return 0
  const writer = cellWriter ?? new CellWriter()
  // A getter in the body is code of the user. A message that it sends gets an arena and a writer of its own.
  cellWriter = null
  arena = null
  try {
    writer.begin(own.cells, bodyAt, end)
    if (!writer.values(message.packed, 0) || (message.trace !== null && !writer.values([trace], 0))) return 0
    return 8 * (writer.at - start)
  } finally {
    cellWriter = writer
    arena = own
  }
}

/** The same for the head of a message whose body is packed by msgpack. */
export function writePackedHead(message: OutgoingMessage): number {
  const { cells, used } = arenaWithRoom()
  return 8 * writeHead(cells, used >> 3, 0, message, true) - used
}

/** There is room for all that cells may hold. */
function arenaWithRoom(): Arena {
  if (arena === null || arena.used + CELL_BYTES_MAX > ARENA_BYTES) arena = new Arena()
  return arena
}

/**
 * The frame whose first `bytes` are at the arena's next place; what is packed follows, then the parts. `late` takes a promise for each part whose bytes a device
 * has yet to give.
 */
export function frameOf(
  bytes: number,
  packed: Uint8Array | null,
  parts: readonly Part[],
  blocks: BlockTransport | null,
  late: Promise<void>[],
): Frame {
  const before = arena as Arena
  let { views, used: start } = before
  const length = packed === null ? bytes : bytes + packed.length
  writeLength(before.cells, start >> 3, length)
  let end = length
  for (let i = 0; i < parts.length; i++) {
    const partBytes = lengthOf(parts[i] as Part)
    if (partBytes <= INLINE_BYTES_MAX) end = ((end + ROUND) & ~ROUND) + ((partBytes + ROUND) & ~ROUND)
  }
  if (start + end <= ARENA_BYTES && end <= ARENA_HEADER_BYTES_MAX) before.used = (start + end + ROUND) & ~ROUND
  else {
    views = roomFor(end)
    views.bytes.set(before.cells.bytes.subarray(start, start + bytes))
    start = 0
  }
  const header = new Uint8Array(views.buffer, start, end)
  if (packed !== null) header.set(packed, bytes)
  return { header, segments: parts.length === 0 ? NO_SEGMENTS : placeParts(header, length, parts, views, blocks, late) }
}

/** At the beginning of a buffer. */
function roomFor(bytes: number): Views {
  if (bytes > ARENA_HEADER_BYTES_MAX) return new Views(new ArrayBuffer(align8(bytes)))
  arena = new Arena()
  arena.used = align8(bytes)
  return arena.views
}

/** Copies small parts into the header, from its byte `from` on; returns the segments of the large ones. */
function placeParts(
  header: Uint8Array,
  from: number,
  parts: readonly Part[],
  views: Views,
  blocks: BlockTransport | null,
  late: Promise<void>[],
): readonly Uint8Array[] {
  let at = from
  let segments: Uint8Array[] | null = null
  for (let i = 0; i < parts.length; i++) {
    const part = parts[i] as Part
    const bytes = lengthOf(part)
    const isLate = !ArrayBuffer.isView(part) && !isReadable(part)
    if (bytes > INLINE_BYTES_MAX) {
      segments ??= []
      if (isLate) {
        const segment = new Uint8Array(bytes)
        segments.push(segment)
        late.push(queued(part, segment))
      } else segments.push((ArrayBuffer.isView(part) ? null : blocks?.lend?.(part)) ?? ownBytes(part))
      continue
    }
    // In gaps there may be bytes of a message that did not fit.
    while ((at & ROUND) !== 0) header[at++] = 0
    if (ArrayBuffer.isView(part)) header.set(part, at)
    else if (isLate) late.push(queued(part, header.subarray(at, at + bytes)))
    else readElements(part, views.of[part.dtype], (header.byteOffset + at) / BYTES_PER_ELEMENT[part.dtype])
    at += bytes
    while ((at & ROUND) !== 0) header[at++] = 0
  }
  return segments ?? NO_SEGMENTS
}

/** The read of a device's tensor. Nobody may wait for it: if a later part is refused, the message is not sent. */
function queued(tensor: Tensor, into: Uint8Array): Promise<void> {
  const read = readLater(tensor, into)
  read.catch(() => {})
  return read
}

function lengthOf(part: Part): number {
  return ArrayBuffer.isView(part) ? part.byteLength : part.numel * BYTES_PER_ELEMENT[part.dtype]
}

/** A copy that fills its buffer, so that a link can move it. */
function ownBytes(part: Part): Uint8Array {
  if (ArrayBuffer.isView(part)) {
    return new Uint8Array(bufferOf(part))
  }
  return new Uint8Array(copyOfElements(part).buffer as ArrayBuffer)
}
