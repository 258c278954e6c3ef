/**
 * Reads a message for traces, without the worker that it is for: its envelope and the plain values of its body. Tensors and references stay as they
 * were packed. `codec.ts` reads messages for workers.
 */
import type { Frame } from '@postgrad/transport'
import { Unpackr } from 'msgpackr/unpack'
import { CellReader, Cells } from './cells.js'
import { isPackedIn, lengthIn, readHead, typeIn } from './head.js'
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
    const cells = new Cells(aligned(header))
    const [first = 0, second = 0] = cells.words
    const type = typeIn(second) as MessageType
    const spec = specOf(type)
    const end = lengthIn(first)
    if (spec === undefined || end > header.length) return null
    const message = new ReceivedMessage(type)
    const bodyAt = readHead(cells, end >> 3, message)
    let body: unknown
    if (isPackedIn(second)) {
      const unpackr = new Unpackr({ useRecords: false, mapsAsObjects: true, moreTypes: false })
      body = (unpackr.unpack(cells.bytes.subarray(8 * bodyAt, end)) as unknown[])[0]
    } else {
      const reader = new CellReader(DEFAULT_LIMITS)
      reader.begin(cells, bodyAt, end >> 3)
      body = reader.values([], spec.fields.length, 1)
    }
    if (!Array.isArray(body)) return null
    const { requestId, context, autogradId, pass } = message
    return { type, name: spec.name, requestId, body, context, autogradId, pass }
  } catch {
    // The code that shows the trace handles an unreadable frame.
    return null
  }
}

/** A copy, filled up to whole cells. */
function aligned(header: Uint8Array): ArrayBuffer {
  const bytes = new Uint8Array(align8(header.length))
  bytes.set(header)
  return bytes.buffer
}
