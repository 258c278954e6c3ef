/**
 * The format of the bytes on a socket: chunks, each with a head of 16 bytes. `chunk-writer.ts` and `chunk-reader.ts` make and read them;
 * `socket-link.ts` decides which are sent when. All numbers are little-endian.
 *
 *      0           4         8           12      13         14       16
 *     ┌───────────┬─────────┬───────────┬───────┬──────────┬────────┬───────────────┐
 *     │ checksum  │ length  │ sequence  │ type  │ version  │ stream │ body (length) │
 *     └───────────┴─────────┴───────────┴───────┴──────────┴────────┴───────────────┘
 *     checksum: CRC-32 of everything after it, the body included; of DATA another (`data-sum.ts`). sequence: counts the chunks of one direction from 0, modulo 2^32, so a
 *     chunk that is repeated, left out or moved breaks the connection. stream: 0 of the connection itself, 1 of its link's frames, 2 of those frames
 *     that overtake.
 *
 *     FRAMES: small frames, whole, one after another, each part starting at a multiple of 8 bytes of the body:
 *     ┌───────────────┬──────────────────┬────────────────────┬──────────────┬───────────┐
 *     │ header length │ segments (count) │ length per segment │ header bytes │ segments… │   and the next frame
 *     └───────────────┴──────────────────┴────────────────────┴──────────────┴───────────┘
 *     LARGE: announces one frame: header length, segments (count), length per segment. Its bytes follow in DATA (or PLAIN) chunks, header
 *     first, without gaps. Between two of them there may be chunks of streams 0 and 2, none other.
 *     AHEAD: as FRAMES, of small frames that were sent after the one that is under way, and need not wait for it.
 *
 *     LARGE(h, n, l1 … ln)  DATA(256 KiB)  DATA(256 KiB)  PING  DATA(256 KiB)  AHEAD(f, f) …  DATA(rest)  FRAMES(f, f, f)
 */
import { PostgradError } from '@postgrad/base'
import { builtin } from '@postgrad/base/internal'

export const ChunkType = {
  /** One message of the handshake (`handshake.ts`). Nothing else is taken before the other end is known. */
  HANDSHAKE: 1,
  /** Small frames. */
  FRAMES: 2,
  /** Announces a frame whose bytes follow. */
  LARGE: 3,
  /** Bytes of the frame that was announced. */
  DATA: 4,
  /** Is the other end alive? Any chunk says yes; PONG is what answers when nothing else would. No body. */
  PING: 5,
  PONG: 6,
  /** The sender ends the connection in order. Body: a `Bye` (1 byte), then a sentence in UTF-8. */
  BYE: 7,
  /**
   * Which lives a session's connection joins: the sender's (4 bytes), the receiver's as the sender knows it (4 bytes, 0: not yet), and the last
   * ATTACH that the sender knows of (4 bytes, 0: none).
   */
  RESUME: 8,
  /** The worker with the smaller id has made this connection the session's. Body: the number of the choice (4 bytes); the greatest holds. */
  ATTACH: 9,
  /** As DATA, but the checksum is of the head alone: what is below guards the bytes already (TLS, or the memory of one machine). */
  PLAIN: 10,
  /** Small frames that overtake a large one. */
  AHEAD: 11,
} as const

export type ChunkType = (typeof ChunkType)[keyof typeof ChunkType]

/** Why a connection ends in order. */
export const Bye = {
  /** The link was closed, or the session is over: it will not come back. */
  CLOSED: 0,
  /** Another connection of the same session has taken its place. */
  REPLACED: 1,
  /** Nobody here has a link to the worker that dialled; it may try again. */
  STRANGER: 2,
} as const

export type Bye = (typeof Bye)[keyof typeof Bye]

export const HEAD_BYTES = 16
export const CHUNK_VERSION = 1
/** Of stream 0: these chunks are small. */
export const CONTROL_BYTES_MAX = 4096
/** Of a BYE: its code and a sentence. */
export const BYE_BYTES_MAX = 512
/** A FRAMES body holds at most so many bytes. A frame that needs more, or has a segment that is worth moving, is announced by LARGE. */
export const BATCH_BYTES_MAX = 32 * 1024
/** A DATA body holds at most so many bytes, so that a heartbeat waits for no more. */
export const DATA_BYTES_MAX = 256 * 1024
const FIRST_TYPE = ChunkType.HANDSHAKE
const LAST_TYPE = ChunkType.AHEAD
const LINK_STREAM = 1
const AHEAD_STREAM = 2

/** How large a frame may be. The sender checks it too, so that `send` can still throw. */
export interface FrameLimits {
  /** Header and segments together. */
  readonly frameBytesMax: number
  readonly segmentsMax: number
}

/** The most bytes that a body of this type may have. */
export function bodyBytesMax(type: ChunkType, limits: FrameLimits): number {
  if (isData(type)) return DATA_BYTES_MAX
  if (type === ChunkType.FRAMES || type === ChunkType.AHEAD) return BATCH_BYTES_MAX
  if (type === ChunkType.LARGE) return 8 + 4 * limits.segmentsMax
  return type === ChunkType.BYE ? BYE_BYTES_MAX : CONTROL_BYTES_MAX
}

export function streamOf(type: ChunkType): number {
  if (type === ChunkType.AHEAD) return AHEAD_STREAM
  return type === ChunkType.FRAMES || type === ChunkType.LARGE || isData(type) ? LINK_STREAM : 0
}

/** Whether the body is bytes of the frame that was announced. */
export const isData = (type: ChunkType | 0): boolean => type === ChunkType.DATA || type === ChunkType.PLAIN

export const isChunkType = (type: number): type is ChunkType => type >= FIRST_TYPE && type <= LAST_TYPE

/** Everything but the checksum, which `sealHead` writes when the body is there. */
export function writeHead(at: Buffer, offset: number, type: ChunkType, length: number, sequence: number): void {
  at.writeUInt32LE(length, offset + 4)
  at.writeUInt32LE(sequence, offset + 8)
  at[offset + 12] = type
  at[offset + 13] = CHUNK_VERSION
  at.writeUInt16LE(streamOf(type), offset + 14)
}

/** A chunk of stream 0 in one buffer. */
export function controlChunk(type: ChunkType, body: Uint8Array, sequence: number): Buffer {
  const chunk = Buffer.allocUnsafe(HEAD_BYTES + body.length)
  chunk.set(body, HEAD_BYTES)
  writeHead(chunk, 0, type, body.length, sequence)
  chunk.writeUInt32LE(crc32Of()(chunk.subarray(4)), 0)
  return chunk
}

export const nextSequence = (sequence: number): number => (sequence + 1) >>> 0

/** The bytes cannot be a chunk of this connection, which ends. */
export function chunkInvalid(got: string, expected: string, values: Record<string, unknown> = {}): PostgradError {
  return new PostgradError('CHUNK_INVALID', {
    op: 'socket.read',
    expected,
    got,
    remedy:
      'The connection is ended. Either something on the way damages bytes, or the program at the other end is not a worker of this version.',
    values,
  })
}

/** The frame is larger than any peer would take; it is still the caller's. */
export function frameTooLarge(bytes: number, segments: number, limits: FrameLimits): PostgradError {
  const { frameBytesMax, segmentsMax } = limits
  return new PostgradError('FRAME_TOO_LARGE', {
    op: 'link.send',
    expected: `at most ${frameBytesMax} bytes in ${segmentsMax} segments`,
    got: `${bytes} bytes in ${segments} segments`,
    remedy: 'Send it in parts.',
    values: { bytes, segments, frameBytesMax, segmentsMax },
  })
}

export type Crc = (bytes: Uint8Array, before?: number) => number

/** CRC-32 of some bytes that follow the bytes of which `before` is the CRC. Node has it since 20.15. A worker without a socket loads no zlib. */
export const crc32Of = (): Crc => (builtin<typeof import('node:zlib')>('node:zlib') as unknown as { crc32?: Crc }).crc32 ?? tableCrc32()

/** The same by a table: 0.4 GB/s where zlib has 5. */
export function tableCrc32(): Crc {
  const table = Uint32Array.from({ length: 256 }, (_, byte) => {
    let c = byte
    for (let bit = 0; bit < 8; bit++) c = c & 1 ? (c >>> 1) ^ 0xedb88320 : c >>> 1
    return c
  })
  return (bytes, before = 0) => {
    let c = ~before
    for (let i = 0; i < bytes.length; i++) c = (table[(c ^ (bytes[i] as number)) & 0xff] as number) ^ (c >>> 8)
    return ~c >>> 0
  }
}
