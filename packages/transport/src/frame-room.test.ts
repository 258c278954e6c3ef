import { describe, expect, test } from '@jest/globals'
import type { Holder } from './budget.js'
import { RealClock } from './clock.js'
import { FrameRooms } from './frame-room.js'
import { ChunkType, type Crc, crc32Of, HEAD_BYTES, writeHead } from './socket/chunk.js'
import { ChunkReader } from './socket/chunk-reader.js'

const at = (address: string, role = 'member'): Holder => ({ identity: `${role} at ${address}`, role })
const crc: Crc = crc32Of()

function chunk(type: ChunkType, body: Uint8Array, sequence: number): Buffer {
  const bytes = Buffer.concat([Buffer.alloc(HEAD_BYTES), body])
  writeHead(bytes, 0, type, body.length, sequence)
  bytes.writeUInt32LE(crc(type === ChunkType.PLAIN ? bytes.subarray(4, HEAD_BYTES) : bytes.subarray(4)), 0)
  return bytes
}

function announced(bytes: number): Uint8Array {
  const body = Buffer.alloc(8)
  body.writeUInt32LE(bytes, 0)
  return body
}

/** A reader to which a frame was announced; it may have its bytes. */
function reading(rooms: FrameRooms, holder: Holder, bytes: number) {
  const reader = new ChunkReader({ frameBytesMax: 2 ** 30, segmentsMax: 16 })
  const room = rooms.of(holder)
  let freed = 0
  room.onFree = () => freed++
  reader.admit(room)
  reader.push(chunk(ChunkType.LARGE, announced(bytes), 0))
  const next = () => reader.next()
  next()
  return { reader, room, next, freed: () => freed, come: () => reader.push(chunk(ChunkType.PLAIN, new Uint8Array(bytes), 1)) }
}

const turn = () => new Promise((resolve) => setImmediate(() => setImmediate(resolve)))

describe('room for large frames', () => {
  test('BUD-6 a frame that is announced waits while its identity has no room for it, and is read when another one is whole; others are read meanwhile', async () => {
    const rooms = new FrameRooms(new RealClock(), () => false, 400)
    const [one, two, other] = [reading(rooms, at('a'), 60), reading(rooms, at('a'), 60), reading(rooms, at('b'), 60)]
    expect([one, two, other].map(({ reader }) => reader.isWaiting)).toEqual([false, true, false])
    two.come()
    expect(two.next()).toBeNull()
    other.come()
    expect(other.next()).toMatchObject({ header: new Uint8Array(60) })
    await turn()
    // It has looked, and that was another identity's.
    expect([two.freed(), two.next(), two.reader.isWaiting]).toEqual([1, null, true])
    one.come()
    expect(one.next()).toMatchObject({ header: new Uint8Array(60) })
    await turn()
    expect([two.freed(), two.next()]).toEqual([2, expect.objectContaining({ header: new Uint8Array(60) })])
  })

  test('BUD-6 a connection that ends gives its room back, and a reader that forgets, too', async () => {
    const rooms = new FrameRooms(new RealClock(), () => false, 400)
    const [one, two, three] = [reading(rooms, at('a'), 60), reading(rooms, at('a'), 60), reading(rooms, at('a'), 60)]
    one.room.close()
    await turn()
    expect([two.freed(), two.next(), two.reader.isWaiting, three.next(), three.reader.isWaiting]).toEqual([1, null, false, null, true])
    two.reader.drop()
    await turn()
    expect([three.next(), three.reader.isWaiting]).toEqual([null, false])
    expect(one.room.take(1)).toBe(false)
  })

  test('BUD-6 restricted roles have a room of their own, and no frame that is more than an identity’s part of it', () => {
    const rooms = new FrameRooms(new RealClock(), (role) => role === 'observer', 400)
    expect(() => reading(rooms, at('a', 'observer'), 2 ** 28 + 1)).toThrow(expect.objectContaining({ code: 'CHUNK_INVALID' }))
    expect(reading(rooms, at('a', 'observer'), 2 ** 28).reader.isWaiting).toBe(false)
    expect(reading(rooms, at('a', 'observer'), 1).reader.isWaiting).toBe(true)
    expect(reading(rooms, at('a'), 60).reader.isWaiting).toBe(false)
  })
})
