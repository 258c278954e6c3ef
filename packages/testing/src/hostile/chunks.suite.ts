/** Chunks of a socket: of every type, with bodies that are wrong inside though their checksums fit, moved, repeated, cut and damaged; split anywhere. */
import { BATCH_BYTES_MAX, ChunkReader, ChunkType, ControlChunk, controlChunk, HEAD_BYTES } from '@postgrad/transport/internal'
import {
  bytesOf,
  EDGES,
  type Input,
  joined,
  mutated,
  type Outcome,
  pick,
  promised,
  type Random,
  refusedWith,
  type Target,
} from './case.suite.js'

const LIMITS = { frameBytesMax: 200_000, segmentsMax: 64 }
const ARENA_BYTES = 65_536
/** The largest body that is taken before it has come, and what it is rounded up by. */
const BODY_BYTES = BATCH_BYTES_MAX + 8 * LIMITS.segmentsMax
const TYPES = Object.values(ChunkType)

const words = (...numbers: readonly number[]): Uint8Array => {
  const bytes = new Uint8Array(4 * numbers.length)
  const view = new DataView(bytes.buffer)
  for (const [i, n] of numbers.entries()) view.setUint32(4 * i, n, true)
  return bytes
}
const padded = (bytes: Uint8Array): Uint8Array => joined([bytes, new Uint8Array(-bytes.length & 7)])

/** A small frame as it lies in FRAMES. */
function smallFrame(random: Random): Uint8Array {
  const header = bytesOf(random, random.below(40))
  const segments = Array.from({ length: random.below(4) }, () => bytesOf(random, random.below(30)))
  const lengths = padded(words(header.length, segments.length, ...segments.map(({ length }) => length)))
  return joined([lengths, padded(header), ...segments.map(padded)])
}

function body(random: Random, type: number): Uint8Array {
  switch (type) {
    case ChunkType.FRAMES:
    case ChunkType.AHEAD:
      return joined(Array.from({ length: 1 + random.below(3) }, () => smallFrame(random)))
    case ChunkType.LARGE: {
      const lengths = Array.from({ length: random.below(5) }, () => pick(random, [0, 3, 8, 100, 9000, pick(random, EDGES)]))
      return words(pick(random, [0, 8, 50, pick(random, EDGES)]), lengths.length, ...lengths)
    }
    case ChunkType.RESUME:
      return words(1, 2, 3)
    case ChunkType.BYE:
      return joined([Uint8Array.of(random.below(4)), bytesOf(random, random.below(20))])
    default:
      return bytesOf(random, pick(random, [0, 0, 1, 4, 8, 60, 300]))
  }
}

function make(random: Random): Input {
  const count = 1 + random.below(6)
  const chunks: Uint8Array[] = []
  let sequence = 0
  // Mostly the bytes that were announced.
  let owed = 0
  for (let i = 0; i < count; i++) {
    const isOwed = owed > 0 && random.below(8) > 0
    const type = isOwed ? ChunkType.DATA : random.below(30) === 0 ? random.below(256) : pick(random, TYPES)
    let content = isOwed ? new Uint8Array(Math.min(owed, 1 + random.below(9000))) : body(random, type)
    if (random.below(4) === 0) content = mutated(random, content)
    owed -= isOwed ? content.length : 0
    if (type === ChunkType.LARGE && content.length >= 8) {
      const view = new DataView(content.buffer, content.byteOffset, content.length)
      for (let at = 0; at + 4 <= content.length; at += 4) if (at !== 4) owed += view.getUint32(at, true)
      if (owed > LIMITS.frameBytesMax) owed = 0
    }
    const chunk = controlChunk(type as ChunkType, content, random.below(25) === 0 ? pick(random, EDGES) : sequence++)
    chunks.push(random.below(12) === 0 ? mutated(random, chunk, chunks[0]) : chunk)
  }
  if (random.below(10) === 0) chunks.splice(random.below(chunks.length), 0, pick(random, chunks))
  if (random.below(10) === 0) chunks.push(...chunks.splice(random.below(chunks.length), 1))
  const isAdmitted = random.below(10) > 0 ? 1 : 0
  return [Uint8Array.of(isAdmitted, pick(random, [0, 0, 0, 1, 7, 64, 255])), joined(chunks)]
}

/** The first arena of every reader: no case outlives the next. */
const ARENA = Buffer.from(new ArrayBuffer(ARENA_BYTES))

/** @returns what was allocated for it: everything that the reader takes goes by this. */
function counting<T>(run: () => T): { readonly result: T; readonly bytes: number } {
  const { allocUnsafeSlow } = Buffer
  let bytes = 0
  let arenas = 0
  Buffer.allocUnsafeSlow = (size) => {
    bytes += size
    if (size === ARENA_BYTES && arenas++ === 0) return ARENA
    promised(
      size <= LIMITS.frameBytesMax + 8 * LIMITS.segmentsMax + ARENA_BYTES,
      `${size} bytes for a frame of ${LIMITS.frameBytesMax} at most`,
    )
    return allocUnsafeSlow(size)
  }
  try {
    return { result: run(), bytes }
  } finally {
    Buffer.allocUnsafeSlow = allocUnsafeSlow
  }
}

function read([flags, bytes]: Input): Outcome {
  const [isAdmitted, split] = flags as Uint8Array
  const reader = new ChunkReader(LIMITS)
  if (isAdmitted === 1) reader.admit()
  const all = Buffer.from(bytes!.buffer, bytes!.byteOffset, bytes!.length)
  const step = split === 0 ? Math.max(1, all.length) : (split as number)
  let outcome = 'more'
  try {
    for (let at = 0; at < all.length; at += step) {
      reader.push(all.subarray(at, at + step))
      for (let got = reader.next(); got !== null; got = reader.next()) {
        outcome = 'taken'
        if (got instanceof ControlChunk) {
          promised(got.body.length <= 4096, 'a control chunk of 4 KiB at most')
          continue
        }
        promised(isAdmitted === 1, 'no frame before the other end is known')
        let sum = got.header.length
        for (const segment of got.segments) sum += segment.length
        promised(sum <= LIMITS.frameBytesMax && got.segments.length <= LIMITS.segmentsMax, 'a frame within the limits')
      }
    }
  } catch (error) {
    return refusedWith(error, /^CHUNK_INVALID$/)
  } finally {
    reader.drop()
  }
  return outcome
}

export const chunks: Target = {
  name: 'chunks',
  share: 30,
  make,
  feed(input) {
    const { result, bytes } = counting(() => read(input))
    const length = input[1]!.length
    const arenas = ARENA_BYTES * (2 + Math.floor(length / 48_000))
    const frames = Math.floor(length / HEAD_BYTES) * 8 * LIMITS.segmentsMax
    promised(
      bytes <= arenas + BODY_BYTES + LIMITS.frameBytesMax + 2 * length + frames,
      `${bytes} bytes taken for ${length} that came, with a frame of ${LIMITS.frameBytesMax} at most`,
    )
    return result
  },
}
