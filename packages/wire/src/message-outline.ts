/**
 * Reads a message for traces, without the worker that it is for: its envelope and the plain values of its body. Tensors and references stay as they
 * were packed. `codec.ts` reads messages for workers.
 */
import type { Frame } from '@postgrad/transport'
import { Unpackr } from 'msgpackr/unpack'
import { PREFIX_BYTES } from './codec.js'
import { type MessageType, specOf } from './message-type.js'

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
  if (header.length < PREFIX_BYTES) return null
  const end = PREFIX_BYTES + (header[0]! | (header[1]! << 8) | (header[2]! << 16))
  try {
    const unpackr = new Unpackr({ useRecords: false, mapsAsObjects: true, moreTypes: false })
    const [type, requestId, body, context, autogradId, pass] = unpackr.unpack(Buffer.from(header.subarray(PREFIX_BYTES, end))) as unknown[]
    const spec = specOf(type)
    if (spec === undefined || !Array.isArray(body)) return null
    const id = (value: unknown): bigint | null => (typeof value === 'bigint' || typeof value === 'number' ? BigInt(value) : null)
    return {
      type: type as MessageType,
      name: spec.name,
      requestId: Number(requestId),
      body,
      context: id(context),
      autogradId: id(autogradId),
      pass: id(pass),
    }
  } catch {
    // The code that shows the trace handles an unreadable frame.
    return null
  }
}
