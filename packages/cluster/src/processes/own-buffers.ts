/**
 * What comes over Node's channel between processes has its bytes as views on a buffer of the channel's own. Whoever gets a message may move its buffers on
 * (`transferables`), which would take that one away; so each part gets a buffer of its own here.
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
