/** Chunks without a socket: the reader reads them, split anywhere, and refuses damaged, cut, repeated and forged ones. */
import zlib from 'node:zlib'
import { describe, expect, test } from '@jest/globals'
import { isPostgradError } from '@postgrad/base'
import fc from 'fast-check'
import { EVERY_ORDER, type Frame, frameOrder, NO_ORDER, staysBehind } from '../link.js'
import { frame } from '../link.suite.js'
import { BATCH_BYTES_MAX, ChunkType, controlChunk, crc32Of, DATA_BYTES_MAX, HEAD_BYTES, tableCrc32, writeHead } from './chunk.js'
import { ChunkReader, ControlChunk } from './chunk-reader.js'
import { type ChunkSink, ChunkWriter } from './chunk-writer.js'
import { SOCKET_LIMITS, type SocketLimits, socketLimits } from './socket-limits.js'

/** A socket that takes everything at once, or nothing while it is full. */
class Sink implements ChunkSink {
  readonly writes: Uint8Array[] = []
  isFull = false
  writableLength = 0

  write(bytes: Uint8Array): boolean {
    this.writes.push(bytes)
    if (this.isFull) this.writableLength += bytes.length
    return !this.isFull
  }

  cork(): void {}
  uncork(): void {}

  get bytes(): Buffer {
    return Buffer.concat(this.writes)
  }
}

function written(frames: readonly Frame[], limits: SocketLimits = SOCKET_LIMITS, checksBytes = true): Buffer {
  const sink = new Sink()
  const writer = new ChunkWriter(sink, limits)
  writer.checksBytes = checksBytes
  for (const each of frames) writer.add(each)
  writer.flush()
  return sink.bytes
}

function reader(limits: SocketLimits = SOCKET_LIMITS, place?: (bytes: number) => Uint8Array): ChunkReader {
  const made = new ChunkReader(limits, place)
  made.admit()
  return made
}

/** All frames and chunks in the bytes, and the error that ended it. */
function readAll(parts: readonly Buffer[], from: ChunkReader = reader()): { got: (Frame | ControlChunk)[]; error: unknown } {
  const got: (Frame | ControlChunk)[] = []
  try {
    for (const part of parts) {
      from.push(part)
      for (let next = from.next(); next !== null; next = from.next()) got.push(next)
    }
  } catch (error) {
    return { got, error }
  }
  return { got, error: null }
}

const partsOf = (got: Frame | ControlChunk): Uint8Array[] => {
  if (got instanceof ControlChunk) throw new Error(`a chunk of type ${got.type}`)
  return [got.header, ...got.segments]
}
const hex = (got: Frame | ControlChunk): string[] => partsOf(got).map((part) => Buffer.from(part).toString('hex'))
const same = (x: Uint8Array | undefined, y: Uint8Array): boolean => x !== undefined && Buffer.compare(x, y) === 0
const bytesOf = (length: number, first: number): Uint8Array => {
  const bytes = new Uint8Array(length)
  for (let i = 0; i < length; i++) bytes[i] = first + i * 31
  return bytes
}

/** A chunk as a malicious peer would make it, in the right format. */
function forged(type: number, body: Uint8Array, sequence: number): Buffer {
  const chunk = Buffer.alloc(HEAD_BYTES + body.length)
  chunk.set(body, HEAD_BYTES)
  writeHead(chunk, 0, type as ChunkType, body.length, sequence)
  chunk.writeUInt32LE(crc32Of()(chunk.subarray(4)), 0)
  return chunk
}

const words = (...numbers: number[]): Buffer => {
  const body = Buffer.alloc(4 * numbers.length)
  for (const [i, n] of numbers.entries()) body.writeUInt32LE(n, 4 * i)
  return body
}

const invalid = expect.objectContaining({ code: 'CHUNK_INVALID' })

/** Small frames, large ones, and a small one after. */
const mixed = (): Frame[] => [
  frame('a'),
  frame(bytesOf(33, 1), bytesOf(7, 2), new Uint8Array(0), bytesOf(100, 3)),
  frame('large', bytesOf(9000, 4), bytesOf(5, 5)),
  frame(new Uint8Array(0)),
  frame(bytesOf(40_000, 6)),
  frame('z'),
]

describe('chunks', () => {
  test('CHK-1 the table makes the checksums that zlib makes', () => {
    const ours = tableCrc32()
    const theirs = (zlib as unknown as { crc32?: (bytes: Uint8Array, before?: number) => number }).crc32
    expect(ours(Buffer.from('123456789'))).toBe(0xcbf43926)
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 200 }), fc.nat(200), (bytes, at) => {
        const whole = ours(bytes)
        expect(ours(bytes.subarray(at), ours(bytes.subarray(0, at)))).toBe(whole)
        if (theirs !== undefined) expect(theirs(bytes)).toBe(whole)
      }),
    )
  })

  test('CHK-2 frames of any form are read as they were written, however the bytes are split', () => {
    const length = fc.oneof(fc.nat(40), fc.nat(3000), fc.constantFrom(8191, 8192, 8193, BATCH_BYTES_MAX, DATA_BYTES_MAX + 1))
    const shape = fc.record({ header: length, segments: fc.array(length, { maxLength: 4 }) })
    fc.assert(
      fc.property(
        fc.array(shape, { minLength: 1, maxLength: 12 }),
        fc.array(fc.integer({ min: 1, max: 5000 }), { minLength: 1 }),
        (shapes, splits) => {
          const frames = shapes.map(({ header, segments }, i) => frame(bytesOf(header, i), ...segments.map((n, k) => bytesOf(n, i + k))))
          const expected = frames.map(hex)
          const bytes = written(frames)
          const parts: Buffer[] = []
          for (let at = 0, i = 0; at < bytes.length; i++) {
            const take = splits[i % splits.length] as number
            parts.push(bytes.subarray(at, at + take))
            at += take
          }
          const { got, error } = readAll(parts)
          expect(error).toBeNull()
          expect(got.map(hex)).toEqual(expected)
          expect(got.every((each) => partsOf(each).every((part) => part.byteOffset % 8 === 0))).toBe(true)
        },
      ),
      { numRuns: 60 },
    )
  })

  test('CHK-2 large segments are read into shared memory, whatever their headers are modulo 8', () => {
    const shared = (bytes: number): Uint8Array => new Uint8Array(new SharedArrayBuffer(bytes))
    for (let length = 0; length < 20; length++) {
      const make = (): Uint8Array[] => [bytesOf(length, 1), bytesOf(70_000, 2), bytesOf(9000 + length, 3)]
      const [header, ...segments] = make()
      const read = reader(SOCKET_LIMITS, shared)
      const bytes = written([frame(header!, ...segments)])
      for (let at = 0; at < bytes.length; at += 20_001) read.push(bytes.subarray(at, at + 20_001))
      const got = read.next()!
      expect(partsOf(got).map((part, i) => Buffer.compare(part, make()[i]!))).toEqual([0, 0, 0])
      expect(partsOf(got).map(({ buffer }) => Object.prototype.toString.call(buffer))).toEqual([
        '[object ArrayBuffer]',
        '[object SharedArrayBuffer]',
        '[object SharedArrayBuffer]',
      ])
    }
  })

  test('CHK-11 what was pushed is its owner’s again behind keep, wherever the reading has stopped', () => {
    const bytes = written(Array.from({ length: 4 }, mixed).flat())
    const steps = fc.array(fc.record({ bytes: fc.integer({ min: 1, max: 12_000 }), reads: fc.nat(4) }), { minLength: 1 })
    fc.assert(
      fc.property(steps, (order) => {
        const from = reader()
        const got: (Frame | ControlChunk)[] = []
        const take = (most: number): void => {
          for (let next = most > 0 ? from.next() : null; next !== null; next = got.length < most ? from.next() : null) got.push(next)
        }
        for (let at = 0, i = 0; at < bytes.length; i++) {
          const step = order[i % order.length] as { bytes: number; reads: number }
          const lent = Buffer.from(bytes.subarray(at, at + step.bytes))
          at += lent.length
          from.push(lent)
          take(step.reads === 0 ? 0 : got.length + step.reads)
          from.keep()
          lent.fill(0xee)
        }
        take(Number.POSITIVE_INFINITY)
        expect(got.map(hex)).toEqual(Array.from({ length: 4 }, mixed).flat().map(hex))
      }),
      { numRuns: 100 },
    )
  })

  test('CHK-13 bytes of a large frame may be read straight to their place, wherever the reads end: the same frames', () => {
    const frames = (): Frame[] => [...mixed(), frame('', bytesOf(600_000, 9), bytesOf(3, 1), bytesOf(50_000, 2)), ...mixed()]
    for (const checksBytes of [true, false]) {
      const bytes = written(frames(), SOCKET_LIMITS, checksBytes)
      fc.assert(
        fc.property(fc.array(fc.integer({ min: 1, max: 70_000 }), { minLength: 1, maxLength: 30 }), (reads) => {
          const from = reader()
          const got: (Frame | ControlChunk)[] = []
          let placed = 0
          for (let at = 0, i = 0; at < bytes.length; i++) {
            const place = from.nextPlace()
            const take = Math.min(reads[i % reads.length] as number, bytes.length - at, place?.length ?? Number.POSITIVE_INFINITY)
            if (place === null) from.push(Buffer.from(bytes.subarray(at, at + take)))
            else {
              place.set(bytes.subarray(at, at + take))
              from.placed(take)
              placed += take
            }
            at += take
            for (let next = from.next(); next !== null; next = from.next()) got.push(next)
          }
          expect(got.map(hex)).toEqual(frames().map(hex))
          expect(placed).toBeGreaterThan(400_000)
        }),
        { numRuns: 15 },
      )
    }
  })

  test('CHK-13 what was dropped takes nothing more, and its memory is not left before another place is asked for', () => {
    const bytes = written([frame('', bytesOf(100_000, 1))])
    const given: Uint8Array[] = []
    const from = new ChunkReader(SOCKET_LIMITS, (length) => {
      given.push(new Uint8Array(length))
      return given.at(-1)!
    })
    from.admit()
    from.push(bytes.subarray(0, 200))
    expect(from.next()).toBeNull()
    const place = from.nextPlace()!
    expect([place.buffer === given[0]!.buffer, place.length > 90_000]).toEqual([true, true])
    from.drop()
    from.placed(1000)
    expect(from.next()).toBeNull()
    expect(from.nextPlace()).toBeNull()
  })

  test('CHK-13 nothing has a place while something is unread, nor in front of what is small', () => {
    const from = reader()
    const bytes = written([frame('', bytesOf(100_000, 1)), frame('behind')])
    expect(from.nextPlace()).toBeNull()
    from.push(bytes.subarray(0, 5000))
    expect(from.nextPlace()).toBeNull()
    expect(from.next()).toBeNull()
    expect(from.nextPlace()).not.toBeNull()
    const end = bytes.length - 60
    from.push(bytes.subarray(5000, end - 100))
    expect(from.next()).toBeNull()
    // Fewer than are worth a read of their own.
    expect(from.nextPlace()).toBeNull()
  })

  test('CHK-3 small frames of one turn leave in one write; a large segment is written from where it lies', () => {
    const sink = new Sink()
    const writer = new ChunkWriter(sink, SOCKET_LIMITS)
    writer.isLent = true
    for (let i = 0; i < 100; i++) writer.add(frame(`${i}`, bytesOf(20, i)))
    writer.flush()
    expect(sink.writes.length).toBe(1)
    const large = bytesOf(20_000, 1)
    writer.add(frame('x', large))
    writer.flush()
    expect(sink.writes.some((bytes) => bytes.buffer === large.buffer && bytes.length === 20_000)).toBe(true)
  })

  test('CHK-4 a sink that is full gets no more than its budget; control goes ahead of what waits', () => {
    const sink = new Sink()
    sink.isFull = true
    const writer = new ChunkWriter(sink, socketLimits({ handedBytesMax: 500_000 }))
    writer.add(frame('first'))
    writer.add(frame('large', new Uint8Array(2_000_000)))
    writer.add(frame('last'))
    writer.flush()
    expect(sink.writableLength).toBeLessThan(500_000 + DATA_BYTES_MAX + 100)
    expect(writer.queuedBytes).toBeGreaterThan(1_200_000)
    writer.control(ChunkType.PING, new Uint8Array(0))
    sink.isFull = false
    sink.writableLength = 0
    writer.flush()
    expect([writer.isWaiting, writer.queuedBytes]).toEqual([false, 0])
    const { got, error } = readAll([sink.bytes])
    expect(error).toBeNull()
    // Between two chunks of the large frame, so in front of it.
    expect(got.map((each) => (each instanceof ControlChunk ? each.type : Buffer.from(each.header).toString()))).toEqual([
      'first',
      ChunkType.PING,
      'large',
      'last',
    ])
  })

  test('CHK-12 while a large frame is under way small ones that share no order with what waits go ahead of it, and nothing overtakes these', () => {
    const sink = new Sink()
    sink.isFull = true
    const writer = new ChunkWriter(sink, socketLimits({ handedBytesMax: 300_000 }))
    const [CALL, REPLY, OTHER, BOTH] = [1, 2, 4, 3].map((bits) => frameOrder(bits)) as [number, number, number, number]
    const goOn = (): void => {
      sink.writableLength = 0
      writer.flush()
    }
    writer.add(frame('first'), REPLY)
    writer.add(frame('large', new Uint8Array(2_000_000)), CALL)
    writer.flush()
    writer.add(frame('reply 1'), REPLY)
    writer.add(frame('call 1'), CALL)
    // If a call waits, a later frame that shares its order waits too.
    writer.add(frame('both'), BOTH)
    writer.add(frame('reply 2'), REPLY)
    writer.add(frame('other'), OTHER)
    goOn()
    writer.add(frame('large 2', new Uint8Array(100_000)), NO_ORDER)
    writer.add(frame('every'))
    writer.add(frame('none'), NO_ORDER)
    writer.add(frame('other 2'), OTHER)
    while (writer.isWaiting) goOn()
    expect(writer.queuedBytes).toBe(0)
    // Without a large one in the queue nothing goes ahead.
    writer.add(frame('call 2'), CALL)
    writer.add(frame('reply 3'), REPLY)
    goOn()
    const { got, error } = readAll([sink.bytes])
    expect(error).toBeNull()
    const texts = (got as Frame[]).map(({ header, overtook }) => `${Buffer.from(header)}${overtook === 0 ? '' : ' (ahead)'}`)
    expect(texts).toEqual([
      'first',
      'reply 1 (ahead)',
      'other (ahead)',
      'none (ahead)',
      'large',
      'call 1',
      'both',
      'reply 2',
      'large 2',
      'every',
      'other 2',
      'call 2',
      'reply 3',
    ])
  })

  test('CHK-12 whatever is sent with whatever orders, however the sink takes it: all arrive once, no two that share an order change places, no large one overtakes', () => {
    const one = fc.record({
      order: fc.constantFrom(
        ...[1, 2, 4, 3, 6, 8].map((bits) => frameOrder(bits)),
        frameOrder(1, 2),
        frameOrder(2, 0),
        NO_ORDER,
        EVERY_ORDER,
      ),
      bytes: fc.oneof({ weight: 5, arbitrary: fc.nat(200) }, fc.constantFrom(9000, 30_000, 300_000, 700_000)),
      flushes: fc.nat(2),
    })
    let ahead = 0
    fc.assert(
      fc.property(fc.array(one, { minLength: 1, maxLength: 60 }), (list) => {
        const sink = new Sink()
        sink.isFull = true
        const writer = new ChunkWriter(sink, socketLimits({ handedBytesMax: 100_000 }))
        const goOn = (): void => {
          sink.writableLength = 0
          writer.flush()
        }
        for (const [i, { order, bytes, flushes }] of list.entries()) {
          writer.add(frame(words(i), bytesOf(bytes, i)), order)
          for (let k = 0; k < flushes; k++) goOn()
        }
        while (writer.isWaiting) goOn()
        const { got, error } = readAll([sink.bytes])
        expect(error).toBeNull()
        const numbers = (got as Frame[]).map(({ header }) => Buffer.from(header).readUInt32LE(0))
        expect([...numbers].sort((x, y) => x - y)).toEqual(list.map((_, i) => i))
        for (const [at, n] of numbers.entries()) {
          const { order, bytes } = list[n]!
          const passed = list.map((_, m) => m).filter((m) => m < n && numbers.indexOf(m) > at)
          expect(passed.filter((m) => staysBehind(order, list[m]!.order))).toEqual([])
          if (passed.length === 0) continue
          ahead++
          expect(bytes).toBeLessThan(9000)
          expect((got[at] as Frame).overtook).toBe(1)
        }
        for (const [i, each] of numbers.entries()) expect(same((got[i] as Frame).segments[0], bytesOf(list[each]!.bytes, each))).toBe(true)
      }),
      { numRuns: 150 },
    )
    expect(ahead).toBeGreaterThan(20)
  })

  test('CHK-5 each byte that is damaged, in each of its bits, ends the reading: what is delivered is what was sent', () => {
    const expected = mixed().map(hex)
    const bytes = written(mixed())
    // Every byte of the small chunks and heads; of long bodies one in 97.
    for (let at = 0; at < bytes.length; at += at > 1000 && at < bytes.length - 1000 ? 97 : 1) {
      const bit = 1 << (at % 8)
      bytes[at]! ^= bit
      const { got, error } = readAll([bytes])
      // A length that became greater waits for more bytes, which never come.
      if (error === null) expect(got.length).toBeLessThan(expected.length)
      else expect(error).toEqual(invalid)
      expect(got.map(hex)).toEqual(expected.slice(0, got.length))
      bytes[at]! ^= bit
    }
    expect(readAll([bytes]).got.map(hex)).toEqual(expected)
  })

  test('CHK-5 where something else guards the bytes of large frames, their heads and all small frames are guarded here', () => {
    const large = (): Frame[] => [frame('small'), frame('', bytesOf(300_000, 1)), frame('behind')]
    const expected = large().map(hex)
    const bytes = written(large(), SOCKET_LIMITS, false)
    expect(readAll([bytes]).got.map(hex)).toEqual(expected)
    for (let at = 0; at < bytes.length; at += at > 300 && at < bytes.length - 300 ? 9973 : 1) {
      bytes[at]! ^= 1
      const { got, error } = readAll([bytes])
      // In the middle of the large one, and there alone, nothing is noticed.
      if (error === null && got.length === 3) expect([got.map(hex)[0], got.map(hex)[2]]).toEqual([expected[0], expected[2]])
      else if (error !== null) expect(error).toEqual(invalid)
      bytes[at]! ^= 1
    }
  })

  test('CHK-6 bytes that end anywhere: the frames that are whole, and no more', () => {
    const expected = mixed().map(hex)
    const bytes = written(mixed())
    for (let at = 0; at < bytes.length; at += at > 1000 && at < bytes.length - 1000 ? 331 : 1) {
      const { got, error } = readAll([bytes.subarray(0, at)])
      expect(error).toBeNull()
      expect(got.length).toBeLessThan(expected.length)
      expect(got.map(hex)).toEqual(expected.slice(0, got.length))
    }
  })

  test('CHK-7 a chunk that is repeated, left out or moved ends the reading', () => {
    const chunks = [0, 1, 2].map((i) => controlChunk(ChunkType.PING, new Uint8Array(0), i))
    expect(readAll(chunks).got.length).toBe(3)
    for (const order of [[0, 0], [1], [0, 2], [0, 1, 0], [0, 1, 2, 1]]) {
      const { got, error } = readAll(order.map((i) => chunks[i]!))
      expect(error).toEqual(invalid)
      expect(got.length).toBeLessThan(order.length)
    }
  })

  test.each([
    ['a body that is too long', forged(ChunkType.FRAMES, new Uint8Array(BATCH_BYTES_MAX + 8), 0)],
    ['a control body that is too long', forged(ChunkType.PING, new Uint8Array(5000), 0)],
    ['a type that is none', forged(77, new Uint8Array(0), 0)],
    ['a handshake when it is over', forged(ChunkType.HANDSHAKE, new Uint8Array(8), 0)],
    ['FRAMES with nothing in it', forged(ChunkType.FRAMES, new Uint8Array(0), 0)],
    ['a frame without its lengths', forged(ChunkType.FRAMES, new Uint8Array(4), 0)],
    ['a header beyond its chunk', forged(ChunkType.FRAMES, words(9, 0, 0, 0), 0)],
    ['a header of 4 GiB', forged(ChunkType.FRAMES, words(0xffffffff, 0, 0, 0), 0)],
    ['segments beyond their chunk', forged(ChunkType.FRAMES, words(0, 1, 100, 0), 0)],
    ['2^32 segments', forged(ChunkType.FRAMES, words(0, 0xffffffff, 0, 0), 0)],
    ['an announcement without its lengths', forged(ChunkType.LARGE, words(8), 0)],
    ['an announcement of more lengths than it has', forged(ChunkType.LARGE, words(8, 2, 1), 0)],
    ['an announcement of 4 GiB', forged(ChunkType.LARGE, words(0, 1, 0xffffffff), 0)],
    ['an announcement of 8 GiB in two', forged(ChunkType.LARGE, words(0, 2, 0xffffffff, 0xffffffff), 0)],
    ['bytes that nobody announced', forged(ChunkType.DATA, new Uint8Array(10), 0)],
    [
      'more bytes than were announced',
      Buffer.concat([forged(ChunkType.LARGE, words(0, 1, 10), 0), forged(ChunkType.DATA, new Uint8Array(11), 1)]),
    ],
    ['DATA without a byte', Buffer.concat([forged(ChunkType.LARGE, words(0, 1, 10), 0), forged(ChunkType.DATA, new Uint8Array(0), 1)])],
    ['a frame inside a frame', Buffer.concat([forged(ChunkType.LARGE, words(0, 1, 10), 0), forged(ChunkType.FRAMES, words(0, 0), 1)])],
    [
      'an announcement inside a frame',
      Buffer.concat([forged(ChunkType.LARGE, words(0, 1, 10), 0), forged(ChunkType.LARGE, words(0, 1, 10), 1)]),
    ],
  ])('CHK-8 refused, with memory for nothing: %s', (_, bytes) => {
    const { got, error } = readAll([bytes])
    expect([got.length, error]).toEqual([0, invalid])
  })

  test('CHK-8 what a frame may need is the limit of a reader, whatever its chunks allow', () => {
    const limits = socketLimits({ frameBytesMax: 50_000, segmentsMax: 5 })
    expect(readAll([forged(ChunkType.LARGE, words(50_001, 0), 0)], reader(limits)).error).toEqual(invalid)
    expect(readAll([forged(ChunkType.LARGE, words(0, 6, 1, 1, 1, 1, 1, 1), 0)], reader(limits)).error).toEqual(invalid)
    expect(readAll([forged(ChunkType.FRAMES, words(0, 6, 0, 0, 0, 0, 0, 0), 0)], reader(limits)).error).toEqual(invalid)
    expect(readAll([forged(ChunkType.LARGE, words(50_000, 0), 0)], reader(limits)).error).toBeNull()
  })

  test('CHK-9 before the other end is known only a handshake and a goodbye are read', () => {
    for (const type of Object.values(ChunkType)) {
      const { error } = readAll([forged(type, new Uint8Array(8), 0)], new ChunkReader(SOCKET_LIMITS))
      expect([type, error]).toEqual([type, type === ChunkType.HANDSHAKE || type === ChunkType.BYE ? null : invalid])
    }
  })

  test('CHK-10 whatever a peer makes that knows the format: CHUNK_INVALID or frames within the limits, never anything else', () => {
    const limits = socketLimits({ frameBytesMax: 100_000, segmentsMax: 64 })
    const number = fc.oneof(fc.nat(20), fc.nat(40_000), fc.constantFrom(0xffffffff, 0x80000000, 0x7fffffff, 65_536))
    const body = fc.oneof(
      fc.array(number, { maxLength: 12 }).map((list) => words(...list)),
      fc.uint8Array({ maxLength: 300 }).map((bytes) => Buffer.from(bytes)),
    )
    const chunk = fc.record({
      type: fc.oneof(fc.integer({ min: 1, max: 11 }), fc.nat(255)),
      body,
      skip: fc.oneof({ weight: 30, arbitrary: fc.constant(0) }, fc.nat(3)),
    })
    fc.assert(
      fc.property(fc.array(chunk, { minLength: 1, maxLength: 12 }), fc.integer({ min: 1, max: 400 }), (chunks, split) => {
        let sequence = 0
        const bytes = Buffer.concat(
          chunks.map(({ type, body, skip }) => {
            const made = forged(type, body, sequence + skip)
            sequence++
            return made
          }),
        )
        const parts: Buffer[] = []
        for (let at = 0; at < bytes.length; at += split) parts.push(bytes.subarray(at, at + split))
        const { got, error } = readAll(parts, reader(limits))
        if (error !== null) expect(isPostgradError(error, 'CHUNK_INVALID')).toBe(true)
        for (const each of got) {
          if (each instanceof ControlChunk) continue
          expect(each.segments.length).toBeLessThanOrEqual(64)
          expect(partsOf(each).reduce((sum, part) => sum + part.length, 0)).toBeLessThanOrEqual(100_000)
        }
      }),
      { numRuns: 3000 },
    )
  })
})
