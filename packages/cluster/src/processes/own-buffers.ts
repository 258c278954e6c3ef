/**
 * Gives each part of a message its own buffer. Node's channel between processes delivers bytes as views on one buffer of the channel, and the receiver may
 * move the message's buffers on (`transferables`), which would take that one away.
 */

/** Changes the message in place, and returns it. Its objects are plain. */
export function withOwnBuffers<T>(message: T): T {
  return owned(message) as T
}

function owned(value: unknown): unknown {
  if (typeof value !== 'object' || value === null) return value
  if (ArrayBuffer.isView(value)) {
    const { buffer, byteOffset, byteLength } = value
    if (byteLength === buffer.byteLength) return value
    return new Uint8Array(buffer, byteOffset, byteLength).slice()
  }
  const record = value as Record<string, unknown>
  for (const key of Object.keys(record)) {
    const part = record[key]
    if (typeof part === 'object' && part !== null) record[key] = owned(part)
  }
  return value
}
