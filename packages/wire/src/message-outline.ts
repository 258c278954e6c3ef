/**
 * Reads a message for traces, without the worker that it is for: its envelope and the plain values of its body. Tensors and references stay as they
 * were packed. `codec.ts` reads messages for workers.
 */
import type { Frame } from '@postgrad/transport'
import { Unpackr } from 'msgpackr/unpack'
import { CellReader, Cells } from './cells.js'
import { lengthIn, PREFIX_BYTES, readHead, typeIn } from './head.js'
import { DEFAULT_LIMITS } from './limits.js'
import { ReceivedMessage } from './message.js'
import { type MessageType, specOf } from './message-type.js'
import { align8 } from './tensor-codec.js'

export interface MessageOutline {
  readonly type: MessageType
  readonly name: string
  readonly requestId: number
  /** Packed values, not read. */
  readonly body: readonly unknown[]
  readonly context: bigint | null
  readonly autogradId: bigint | null
  readonly pass: bigint | null
}

/** Null if that much cannot be read. Never throws. */
export function messageOutline({ header }: Pick<Frame, 'header'>): MessageOutline | null {
  try {
    const type = typeIn(header) as MessageType
    const spec = specOf(type)
    if (spec === undefined) return null
    const end = PREFIX_BYTES + lengthIn(header)
    if (end > header.length) return null
    const bytes = new Uint8Array(align8(end))
    bytes.set(header.subarray(0, end))
    const cells = new Cells(bytes.buffer)
    const reader = new CellReader(DEFAULT_LIMITS)
    const message = new ReceivedMessage(type)
    reader.begin(cells, 1, end >> 3)
    let body: unknown
    if (readHead(reader, header, message)) {
      const unpackr = new Unpackr({ useRecords: false, mapsAsObjects: true, moreTypes: false })
      body = (unpackr.unpack(cells.bytes.subarray(8 * reader.at, end)) as unknown[])[0]
    } else body = spec.fields.map(() => reader.value(0))
    if (!Array.isArray(body)) return null
    const { requestId, context, autogradId, pass } = message
    return { type, name: spec.name, requestId, body, context, autogradId, pass }
  } catch {
    // The code that shows the trace handles an unreadable frame.
    return null
  }
}
