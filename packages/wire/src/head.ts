/**
 * The head of every frame, in cells (`cells.ts`), so that all of it is known where the rest is damaged:
 *
 *     ┌────────────┬─────────┬──────┬───────┬──────────┬───────────┬─────────┬────────────┬──────┬────────────┬──────────┬──────────┐
 *     │ length: 24 │ version │ type │ flags │ count of │ requestId │ context │ autogradId │ pass │ deadlineMs │ lineage… │ the body │
 *     │ bits       │ 8 bits  │ 8    │ 8     │ lineage  │           │         │            │      │            │          │          │
 *     └────────────┴─────────┴──────┴───────┴──────────┴───────────┴─────────┴────────────┴──────┴────────────┴──────────┴──────────┘
 *       one cell: the length is that of head and body, without these 4 bytes      each field from the context on is there if its flag is set
 *
 * The body follows as cells, one value for each field that `MESSAGE_TABLE` names, and the trace as another; or packed by msgpack, as `[body]`, `[body, trace]` or
 * `[body, trace, lineage]`. The second form has room for long texts and lists.
 */
import type { Frame } from '@postgrad/transport'
import type { Cells } from './cells.js'
import type { OutgoingMessage, ReceivedMessage } from './message.js'
import { type HeadId, MESSAGE_TABLE, type MessageName, type MessageType, specOf } from './message-type.js'
import { badField, corrupt } from './wire-errors.js'

/** Of the wire format: other numbers are refused. */
export const WIRE_VERSION = 5
/** The length and the version. */
export const PREFIX_BYTES = 4
/** The first cell and the request id, which every frame has. */
export const HEAD_BYTES_MIN = 16

const TYPE_AT = 4
const FLAGS_AT = 5
const REQUEST_ID_AT = 8
const IDS_AT = 16
const LENGTH_MASK = 0xff_ffff
const VERSION_SHIFT = 24
const BYTE_MASK = 0xff
const FLAGS_SHIFT = 8
const COUNT_SHIFT = 16

const Flag = {
  context: 0x01,
  autogradId: 0x02,
  pass: 0x04,
  deadlineMs: 0x08,
  lineage: 0x10,
  /** The body is packed by msgpack. */
  packed: 0x20,
  /** A value more follows the body's cells. A packed body has the trace itself. */
  trace: 0x40,
  /** The body is one error: the message's own could not be had. */
  failure: 0x80,
} as const

const ID_MAX = 2n ** 64n - 1n
const LOW_BITS = 0x7f
const MORE = 0x80
/** Of 53 bits. */
const NUMBER_BYTES_MAX = 8
const SCALE_MAX = MORE ** (NUMBER_BYTES_MAX - 1)

/**
 * From the cell `at` on; a packed body has the lineage itself. The cell after the head; 0: it does not fit before the cell `end`.
 * @throws WIRE_BAD_FIELD for an id that is none
 */
export function writeHead(
  { bytes, words, floats, bigints }: Cells,
  at: number,
  end: number,
  message: OutgoingMessage,
  isPacked: boolean,
): number {
  const { type, context, autogradId, pass, deadlineMs, lineage } = message
  let flags = 0
  let count = 0
  let next = at + 2
  floats[at + 1] = message.requestId
  if (context !== null) {
    if (!(context >= 0n && context <= ID_MAX)) throw badId(message, 'context')
    flags = Flag.context
    bigints[next++] = context
  }
  if (autogradId !== null) {
    if (!(autogradId >= 0n && autogradId <= ID_MAX)) throw badId(message, 'autogradId')
    flags |= Flag.autogradId
    bigints[next++] = autogradId
  }
  if (pass !== null) {
    if (!(pass >= 0n && pass <= ID_MAX)) throw badId(message, 'pass')
    flags |= Flag.pass
    bigints[next++] = pass
  }
  if (deadlineMs !== null) {
    flags |= Flag.deadlineMs
    floats[next++] = deadlineMs
  }
  if (message.isFailure) flags |= Flag.failure
  if (isPacked) flags |= Flag.packed
  else {
    if (message.trace !== null) flags |= Flag.trace
    if (lineage !== null) {
      flags |= Flag.lineage
      count = lineage.length
      next = writeLineage(bytes, 8 * next, 8 * end, lineage)
      if (next === 0) return 0
    }
  }
  words[2 * at + 1] = type | (flags << FLAGS_SHIFT) | (count << COUNT_SHIFT)
  return next
}

/** Writes into the first cell how long head and body are, in bytes. */
export function writeLength({ words }: Cells, at: number, length: number): void {
  words[2 * at] = (length - PREFIX_BYTES) | (WIRE_VERSION << VERSION_SHIFT)
}

/** The length of a head and its body, by the frame's first word. */
export const lengthIn = (word: number): number => PREFIX_BYTES + (word & LENGTH_MASK)
/** The type, not checked, by the second word. */
export const typeIn = (word: number): number => word & BYTE_MASK
/** Whether the body is packed, by the second word. */
export const isPackedIn = (word: number): boolean => ((word >> FLAGS_SHIFT) & Flag.packed) !== 0
/** Whether the trace follows the body's cells, by the second word. */
export const hasTraceIn = (word: number): boolean => ((word >> FLAGS_SHIFT) & Flag.trace) !== 0
/** Whether the body is an error in place of the message's own, by the second word. */
export const isFailureIn = (word: number): boolean => ((word >> FLAGS_SHIFT) & Flag.failure) !== 0

/** Fills in the message from the beginning of the cells. The cell after the head. @throws WIRE_CORRUPT, WIRE_BAD_FIELD */
export function readHead({ bytes, words, floats, bigints }: Cells, end: number, message: ReceivedMessage): number {
  const word = words[1] as number
  const flags = (word >> FLAGS_SHIFT) & BYTE_MASK
  const count = word >>> COUNT_SHIFT
  let next = 2
  const requestId = whole(floats[1] as number)
  if (!isCount(requestId)) throw badField(nameOf(message), 'requestId', 'an integer ≥ 0', requestId)
  message.requestId = requestId
  // There is room for them in every buffer that is read; whether they belong to the head is checked below.
  if ((flags & Flag.context) !== 0) message.context = bigints[next++] as bigint
  if ((flags & Flag.autogradId) !== 0) message.autogradId = bigints[next++] as bigint
  if ((flags & Flag.pass) !== 0) message.pass = bigints[next++] as bigint
  let deadlineMs: number | null = null
  if ((flags & Flag.deadlineMs) !== 0) deadlineMs = floats[next++] as number
  if (next > end) throw corrupt('it ends too early')
  if (deadlineMs !== null) {
    if (!(deadlineMs >= 0 && deadlineMs < Number.POSITIVE_INFINITY))
      throw badField(nameOf(message), 'deadlineMs', 'milliseconds ≥ 0 or null', deadlineMs)
    message.deadlineMs = deadlineMs
  }
  if ((flags & Flag.lineage) === 0) {
    if (count !== 0) throw corrupt('a count of nothing')
    return next
  }
  const lineage: number[] = []
  message.lineage = lineage
  return readLineage(bytes, 8 * next, 8 * end, count, lineage)
}

/**
 * Numbers as bytes of 7 bits, the lowest first, of which the last has its highest bit clear, filled up to whole cells: most numbers of a lineage are small.
 * The cell after them; 0: they do not fit.
 */
function writeLineage(bytes: Uint8Array, from: number, end: number, lineage: readonly number[]): number {
  if (!Array.isArray(lineage)) return 0
  let at = from
  for (let i = 0; i < lineage.length; i++) {
    let rest = lineage[i] as number
    if (!(Number.isSafeInteger(rest) && rest >= 0) || at + NUMBER_BYTES_MAX > end) return 0
    while (rest > LOW_BITS) {
      bytes[at++] = (rest & LOW_BITS) | MORE
      rest = Math.floor(rest / MORE)
    }
    bytes[at++] = rest
  }
  for (; (at & 7) !== 0; at++) bytes[at] = 0
  return at >> 3
}

/** The cell after them. @throws WIRE_CORRUPT */
function readLineage(bytes: Uint8Array, from: number, end: number, count: number, lineage: number[]): number {
  if (count > end - from) throw corrupt('more elements than bytes')
  let at = from
  for (let i = 0; i < count; i++) {
    let number = 0
    let scale = 1
    for (;;) {
      if (at >= end) throw corrupt('it ends too early')
      const byte = bytes[at++] as number
      number += (byte & LOW_BITS) * scale
      if (byte < MORE) break
      scale *= MORE
      if (scale > SCALE_MAX) throw corrupt('a number without an end')
    }
    if (number > Number.MAX_SAFE_INTEGER) throw corrupt('a number beyond 2^53')
    lineage.push(number)
  }
  return (at + 7) >> 3
}

/** @throws WIRE_BAD_FIELD */
export function checkLineage(message: ReceivedMessage, lineage: readonly unknown[]): asserts lineage is readonly number[] {
  for (let i = 0; i < lineage.length; i++) {
    if (!isCount(lineage[i])) throw badField(nameOf(message), 'lineage', 'an array of integers ≥ 0 or null', lineage)
  }
}

function isCount(value: unknown): value is number {
  return typeof value === 'number' && Number.isSafeInteger(value) && value >= 0
}

/** The same number, as a small integer where it is one: V8 keeps those apart, and what they reach stays fast. */
function whole(value: number): number {
  const small = value | 0
  return small === value ? small : value
}

const nameOf = ({ type }: { readonly type: MessageType }): MessageName => MESSAGE_TABLE[type].name

function badId(message: OutgoingMessage, field: HeadId): Error {
  return badField(nameOf(message), field, 'an id of 64 bits or null', message[field], 'encode')
}

/** The part of a refused frame that can be read, so that rpc can notify the worker that waits. */
export interface RequestHead {
  readonly type: MessageType
  readonly requestId: number
}

/** Null if that much cannot be read either. Never throws. */
export function requestHead({ header }: Pick<Frame, 'header'>): RequestHead | null {
  if (header.length < HEAD_BYTES_MIN) return null
  const type = header[TYPE_AT]
  if (specOf(type) === undefined) return null
  const requestId = viewOf(header).getFloat64(REQUEST_ID_AT, true)
  return isCount(requestId) ? { type: type as MessageType, requestId } : null
}

/** Of a message about a pass. */
export interface PassHead {
  readonly context: bigint
  readonly pass: bigint
}

/** Null if there is none, or if that much cannot be read. Never throws. */
export function passHead(frame: Pick<Frame, 'header'>): PassHead | null {
  if (requestHead(frame) === null) return null
  const { header } = frame
  const flags = header[FLAGS_AT] as number
  if ((flags & Flag.context) === 0 || (flags & Flag.pass) === 0) return null
  const passAt = IDS_AT + ((flags & Flag.autogradId) === 0 ? 8 : 16)
  if (header.length < passAt + 8) return null
  const view = viewOf(header)
  return { context: view.getBigUint64(IDS_AT, true), pass: view.getBigUint64(passAt, true) }
}

function viewOf({ buffer, byteOffset, length }: Uint8Array): DataView {
  return new DataView(buffer, byteOffset, length)
}
