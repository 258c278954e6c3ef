/**
 * The head of every frame, in cells (`cells.ts`), so that all of it is known where the rest is damaged:
 *
 *     ┌────────────┬─────────┬──────┬───────┬──────────┬───────────┬─────────┬────────────┬──────┬────────────┬──────────┬──────────┐
 *     │ length: 24 │ version │ type │ flags │ count of │ requestId │ context │ autogradId │ pass │ deadlineMs │ lineage… │ the body │
 *     │ bits       │ 8 bits  │ 8    │ 8     │ lineage  │           │         │            │      │            │          │          │
 *     └────────────┴─────────┴──────┴───────┴──────────┴───────────┴─────────┴────────────┴──────┴────────────┴──────────┴──────────┘
 *       one cell: the length is that of head and body, without these 4 bytes      fields from the context on are there if the flag is
 *
 * The body follows as cells, one value for each field that `MESSAGE_TABLE` names; or packed by msgpack, as `[body]`, `[body, trace]` or `[body, trace, lineage]`. The
 * second form has room for objects, errors and long lists, and the trace field exists in it alone.
 */
import type { Frame } from '@postgrad/transport'
import type { CellReader, CellWriter } from './cells.js'
import type { OutgoingMessage, ReceivedMessage } from './message.js'
import { type HeadId, MESSAGE_TABLE, type MessageType, specOf } from './message-type.js'
import { badField, corrupt } from './wire-errors.js'

/** Of the wire format: other numbers are refused. */
export const WIRE_VERSION = 4
/** The length and the version. */
export const PREFIX_BYTES = 4
/** The first cell and the request id, which every frame has. */
export const HEAD_BYTES_MIN = 16

const TYPE_AT = 4
const FLAGS_AT = 5
const REQUEST_ID_AT = 8
const IDS_AT = 16
const FLAGS_SHIFT = 8
const COUNT_SHIFT = 16
const VERSION_SHIFT = 24

const Flag = {
  context: 0x01,
  autogradId: 0x02,
  pass: 0x04,
  deadlineMs: 0x08,
  lineage: 0x10,
  /** The body is packed by msgpack. */
  packed: 0x20,
} as const
const FLAGS_KNOWN = 0x3f

const ID_MAX = 2n ** 64n - 1n

/** From the writer's cell on; a packed body has the lineage itself. False: it does not fit. @throws WIRE_BAD_FIELD for an id that is none */
export function writeHead(writer: CellWriter, message: OutgoingMessage, isPacked: boolean): boolean {
  const { type, context, autogradId, pass, deadlineMs, lineage } = message
  const start = writer.at++
  let flags = 0
  let count = 0
  writer.float(message.requestId)
  if (context !== null) {
    flags |= Flag.context
    writer.bigint(idOf(message, 'context', context))
  }
  if (autogradId !== null) {
    flags |= Flag.autogradId
    writer.bigint(idOf(message, 'autogradId', autogradId))
  }
  if (pass !== null) {
    flags |= Flag.pass
    writer.bigint(idOf(message, 'pass', pass))
  }
  if (deadlineMs !== null) {
    flags |= Flag.deadlineMs
    writer.float(deadlineMs)
  }
  if (isPacked) flags |= Flag.packed
  else if (lineage !== null) {
    flags |= Flag.lineage
    count = lineage.length
    if (!writer.numbers(lineage)) return false
  }
  writer.pair(start, 0, type | (flags << FLAGS_SHIFT) | (count << COUNT_SHIFT))
  return true
}

/** Writes into the first cell how long head and body are, in bytes. */
export function writeLength(writer: CellWriter, start: number, length: number): void {
  writer.low(start, length | (WIRE_VERSION << VERSION_SHIFT))
}

/** Of the frame's head and body, without the first four bytes. */
export function lengthIn(header: Uint8Array): number {
  return (header[0] as number) | ((header[1] as number) << 8) | ((header[2] as number) << 16)
}

/** Not checked. */
export const typeIn = (header: Uint8Array): number => header[TYPE_AT] as number

/** Fills in the message from the reader's second cell on. Whether the body is packed. @throws WIRE_CORRUPT, WIRE_BAD_FIELD, WIRE_TOO_LARGE */
export function readHead(reader: CellReader, header: Uint8Array, message: ReceivedMessage): boolean {
  const flags = header[FLAGS_AT] as number
  const { name } = MESSAGE_TABLE[message.type]
  if ((flags & ~FLAGS_KNOWN) !== 0) throw corrupt('flags of no meaning')
  const requestId = reader.float()
  if (!isCount(requestId)) throw badField(name, 'requestId', 'an integer ≥ 0', requestId)
  message.requestId = requestId
  if ((flags & Flag.context) !== 0) message.context = reader.bigint()
  if ((flags & Flag.autogradId) !== 0) message.autogradId = reader.bigint()
  if ((flags & Flag.pass) !== 0) message.pass = reader.bigint()
  if ((flags & Flag.deadlineMs) !== 0) {
    const deadlineMs = reader.float()
    if (!(deadlineMs >= 0 && deadlineMs < Number.POSITIVE_INFINITY))
      throw badField(name, 'deadlineMs', 'milliseconds ≥ 0 or null', deadlineMs)
    message.deadlineMs = deadlineMs
  }
  if ((flags & Flag.lineage) !== 0) {
    const lineage = reader.numbers((header[FLAGS_AT + 1] as number) | ((header[FLAGS_AT + 2] as number) << 8))
    checkLineage(name, lineage)
    message.lineage = lineage
  }
  return (flags & Flag.packed) !== 0
}

/** @throws WIRE_BAD_FIELD */
export function checkLineage(name: string, lineage: readonly unknown[]): asserts lineage is readonly number[] {
  for (let i = 0; i < lineage.length; i++) {
    if (!isCount(lineage[i])) throw badField(name, 'lineage', 'an array of integers ≥ 0 or null', lineage)
  }
}

function isCount(value: unknown): value is number {
  return typeof value === 'number' && Number.isSafeInteger(value) && value >= 0
}

function idOf(message: OutgoingMessage, field: HeadId, id: bigint): bigint {
  if (typeof id === 'bigint' && id >= 0n && id <= ID_MAX) return id
  throw badField(MESSAGE_TABLE[message.type].name, field, 'an id of 64 bits or null', id, 'encode')
}

/** What is known of a frame that `Codec.decode` refused, so that rpc can notify the worker that waits. */
export interface RequestHead {
  readonly type: MessageType
  readonly requestId: number
}

/** Null if that much cannot be read either. Never throws. */
export function requestHead({ header }: Pick<Frame, 'header'>): RequestHead | null {
  if (header.length < HEAD_BYTES_MIN) return null
  const type = typeIn(header)
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
