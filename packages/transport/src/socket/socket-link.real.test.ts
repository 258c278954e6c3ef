/** The contract over real sockets, then what only a socket can do: be cut, stop, bring garbage, take nothing. */
import type { Socket } from 'node:net'
import { describe, expect, test } from '@jest/globals'
import type { Clock } from '../clock.js'
import { EVERY_ORDER, type Frame, frameOrder, NO_ORDER } from '../link.js'
import { describeLink, frame, Recorder, text } from '../link.suite.js'
import type { StayAwake } from '../stay-awake.js'
import { ChunkType, controlChunk, HEAD_BYTES } from './chunk.js'
import { ChunkWriter } from './chunk-writer.js'
import { READ_BYTES, ReadBuffer } from './read-buffer.js'
import { SOCKET_LIMITS, socketLimits } from './socket-limits.js'
import { SocketLink, type SocketLinkOptions } from './socket-link.js'
import { clock, sleep, socketPair, until } from './socket-pair.fixture.js'

/** All links of a thread share one. */
const reads = new ReadBuffer()

async function linkPair(kind: 'tcp' | 'unix', more: Partial<SocketLinkOptions> = {}) {
  const sockets = await socketPair(kind)
  const options = { reads, ...more }
  const a = new SocketLink(sockets.a, { clock, name: 'a', ...options })
  const b = new SocketLink(sockets.b, { clock, name: 'b', ...options })
  return { a, b, sockets, dispose: sockets.dispose }
}

for (const kind of ['tcp', 'unix'] as const) {
  describeLink(`SOCK-1 the socket link over ${kind}`, {
    make: () => linkPair(kind),
    until,
    turns: () => sleep(5),
    arrivesAtOnce: false,
  })
}

// As on a Node that lacks the other way, and as over TLS.
describeLink(`SOCK-1 the socket link over tcp by 'data' events`, {
  make: () => linkPair('tcp', { reads: undefined }),
  until,
  turns: () => sleep(5),
  arrivesAtOnce: false,
})

const bytesOf = (length: number, first: number): Uint8Array => {
  const bytes = new Uint8Array(length)
  for (let i = 0; i < length; i++) bytes[i] = (first + i * 7) & 0xff
  return bytes
}
const same = (x: Uint8Array | undefined, y: Uint8Array): boolean => x !== undefined && Buffer.compare(x, y) === 0

describe('the socket link', () => {
  test('AWK-6 frames that leave and arrive keep their threads awake, and heartbeats do not', async () => {
    const told: string[] = []
    const stayAwake = { onSend: () => told.push('sent'), onArrival: () => {}, onRead: () => told.push('read') } as unknown as StayAwake
    const limits = socketLimits({ heartbeatMs: 5 })
    const { a, b, dispose } = await linkPair('unix', { stayAwake, limits })
    const atB = new Recorder()
    a.open(new Recorder())
    b.open(atB)
    let beats = 0
    const ping = a.control.bind(a)
    a.control = (type, body) => {
      beats++
      ping(type, body)
    }
    await until(() => beats > 3)
    expect(told).toEqual([])
    a.send(frame('one'))
    a.send(frame('two'))
    await until(() => atB.frames.length === 2)
    expect(told).toEqual(['sent', 'read'])
    dispose()
  })

  test('SOCK-2 a large frame is moved, not copied, and arrives whole, whatever stands around it', async () => {
    const { a, b, dispose } = await linkPair('tcp')
    const atB = new Recorder()
    b.open(atB)
    const large = bytesOf(20_000_003, 1)
    const copy = large.slice()
    a.send(frame('before'))
    a.send(frame(bytesOf(100_000, 2), large, bytesOf(3, 3), new Uint8Array(0)))
    expect(large.length).toBe(0)
    a.send(frame('behind'))
    await until(() => atB.frames.length === 3)
    expect([text(atB.frames[0]!.header), text(atB.frames[2]!.header)]).toEqual(['before', 'behind'])
    const got = atB.frames[1] as Frame
    expect(got.segments.map((segment) => segment.length)).toEqual([20_000_003, 3, 0])
    expect(same(got.header, bytesOf(100_000, 2)) && same(got.segments[0], copy) && same(got.segments[1], bytesOf(3, 3))).toBe(true)
    expect([got.header, ...got.segments].every((part) => part.byteOffset % 8 === 0)).toBe(true)
    dispose()
  })

  test.each(['tcp', 'unix'] as const)(
    'SOCK-13 over %s what the other end does not read is not flushed, until it reads, or never, where the link ends',
    async (kind) => {
      for (const ending of ['read', 'cut'] as const) {
        const { a, b, sockets, dispose } = await linkPair(kind)
        a.open(new Recorder())
        const atB = new Recorder()
        b.open(atB)
        // `open` lets the socket read, but later.
        await sleep(5)
        sockets.b.pause()
        const told: string[] = []
        const send = (text: string, large?: Uint8Array, order = EVERY_ORDER) =>
          a.send(frame(text, ...(large === undefined ? [] : [large])), order, (isFlushed) => told.push(`${text} ${isFlushed}`))
        // More than a kernel takes, and than is handed to the socket at once.
        send('large', bytesOf(32_000_000, 1))
        send('small')
        send('behind', bytesOf(8_000_000, 2))
        await sleep(50)
        expect(told).toEqual([])
        if (ending === 'read') sockets.b.resume()
        else sockets.a.destroy()
        await until(() => told.length === 3)
        expect([...told].sort()).toEqual(['behind', 'large', 'small'].map((text) => `${text} ${ending === 'read'}`))
        if (ending === 'read') {
          expect(told[2]).toBe('behind true')
          await until(() => atB.frames.length === 3)
        }
        expect(atB.texts).toEqual(ending === 'read' ? ['large', 'small', 'behind'] : [])
        dispose()
      }
    },
  )

  test('SOCK-13 a frame that overtakes is flushed before what it has overtaken, and a socket that is never empty keeps nobody waiting', async () => {
    const { a, b, dispose } = await linkPair('unix')
    a.open(new Recorder())
    b.open(new Recorder())
    const told: string[] = []
    const large = (): void => a.send(frame('large', bytesOf(16_000_000, 1)), EVERY_ORDER, () => told.push('large'))
    large()
    a.send(frame('ahead'), NO_ORDER, () => told.push('ahead'))
    await until(() => told.length > 0)
    expect(told).toEqual(['ahead'])
    // Each time that one is flushed, the next waits already.
    let left = 20
    const busy = (): void => a.send(frame('busy', bytesOf(4_000_000, 1)), EVERY_ORDER, () => void (left-- > 0 && queueMicrotask(busy)))
    busy()
    busy()
    a.send(frame('one of many'), EVERY_ORDER, () => told.push(`with ${left} to come`))
    await until(() => left <= 0)
    expect(Number(told.at(-1)!.match(/with (\d+) to come/)![1])).toBeGreaterThan(10)
    dispose()
  })

  test('SOCK-2 a link that is lent its frames takes nothing away', async () => {
    const { a, b, dispose } = await linkPair('unix', { isLent: true })
    const atB = new Recorder()
    b.open(atB)
    const large = bytesOf(100_000, 1)
    a.send(frame('x', large))
    a.send(frame('y', large))
    await until(() => atB.frames.length === 2)
    expect(large.length).toBe(100_000)
    expect(atB.frames.every((got) => same(got.segments[0], large))).toBe(true)
    dispose()
  })

  test.each([600_000, 8_000_000])(
    'SOCK-2 what was lent is its owner’s again at `close`: of %d bytes no changed one is delivered',
    async (bytes) => {
      const { a, b, sockets, dispose } = await linkPair('unix', { isLent: true, checksBytes: false })
      const atB = new Recorder()
      b.open(atB)
      await sleep(5)
      sockets.b.pause()
      const lent = new Uint8Array(new SharedArrayBuffer(bytes)).fill(1)
      a.send(frame('x', lent))
      await sleep(20)
      a.close()
      lent.fill(2)
      sockets.b.resume()
      await until(() => atB.closed !== null)
      expect(atB.frames.filter(({ segments }) => segments[0]!.includes(2))).toEqual([])
      dispose()
    },
  )

  test('SOCK-3 what the other end does not read waits in the link, and a heartbeat goes ahead of it', async () => {
    const limits = socketLimits({ heartbeatMs: 20, handedBytesMax: 300_000 })
    const { a, sockets, dispose } = await linkPair('tcp', { limits })
    sockets.b.pause()
    for (let i = 0; i < 20; i++) a.send(frame(`${i}`, new Uint8Array(2_000_000)))
    await sleep(100)
    expect(a.queuedBytes).toBeGreaterThan(20_000_000)
    expect(sockets.a.writableLength).toBeLessThan(2 * 300_000)
    dispose()
  })

  test('SOCK-3 beyond its limit the queue breaks the link: send throws, then onClose', async () => {
    const { a, sockets, dispose } = await linkPair('tcp', { limits: socketLimits({ queuedBytesMax: 10_000_000 }) })
    const atA = new Recorder()
    a.open(atA)
    sockets.b.pause()
    const sendAll = () => {
      for (let i = 0; i < 30; i++) a.send(frame(`${i}`, new Uint8Array(1_000_000)))
    }
    expect(sendAll).toThrow(expect.objectContaining({ code: 'LINK_CLOSED' }))
    await until(() => atA.closed !== null)
    expect(atA.closed).toMatchObject({ by: 'peer', detail: expect.stringContaining('unread') })
    dispose()
  })

  test('SOCK-4 a frame that no peer takes is refused where it is sent, and stays its sender’s', async () => {
    const { a, dispose } = await linkPair('unix', { limits: socketLimits({ frameBytesMax: 1_000_000, segmentsMax: 10 }) })
    const large = new Uint8Array(1_000_001)
    const error = expect.objectContaining({ code: 'FRAME_TOO_LARGE' })
    expect(() => a.send(frame('', large))).toThrow(error)
    expect(() => a.send(frame('', ...Array.from({ length: 11 }, () => new Uint8Array(9000))))).toThrow(error)
    expect([large.length, a.closed]).toEqual([1_000_001, false])
    dispose()
  })

  test('SOCK-5 a socket that is cut: onClose by peer, once, behind what had arrived, with what happened', async () => {
    const { a, b, sockets, dispose } = await linkPair('tcp')
    const [atA, atB] = [new Recorder(), new Recorder()]
    a.open(atA)
    b.open(atB)
    a.send(frame('arrives'))
    await until(() => atB.frames.length === 1)
    sockets.a.resetAndDestroy()
    await until(() => atA.closed !== null && atB.closed !== null)
    expect(atB.closed).toMatchObject({ by: 'peer', detail: expect.stringContaining('ECONNRESET') })
    expect(atA.closed?.by).toBe('peer')
    expect(() => b.send(frame('late'))).toThrow(expect.objectContaining({ code: 'LINK_CLOSED' }))
    await sleep(5)
    expect(atB.events).toEqual(['turn:1', 'close:peer:1'])
    dispose()
  })

  test('SOCK-5 an end without a goodbye is no orderly close', async () => {
    const { b, sockets, dispose } = await linkPair('unix')
    const atB = new Recorder()
    b.open(atB)
    sockets.a.end()
    await until(() => atB.closed !== null)
    expect(atB.closed).toMatchObject({ by: 'peer', detail: expect.stringContaining('without a goodbye') })
    dispose()
  })

  test('SOCK-6 a peer that says nothing is suspected, then dead; one that only answers PINGs is neither', async () => {
    const limits = socketLimits({ heartbeatMs: 10, suspectMs: 40, deadMs: 120 })
    const silent = await socketPair('tcp')
    const events: unknown[] = []
    const a = new SocketLink(silent.a, { clock, limits, onSuspected: (is) => events.push(is), onEnd: (end) => events.push(end.detail) })
    silent.b.resume()
    const atA = new Recorder()
    a.open(atA)
    await until(() => atA.closed !== null)
    expect(events).toEqual([true, expect.stringContaining('nothing came from the other end for 120 ms')])
    silent.dispose()

    const answering = await linkPair('tcp', { limits })
    answering.b.open(new Recorder())
    const atC = new Recorder()
    answering.a.open(atC)
    await sleep(400)
    expect(atC.closed).toBeNull()
    answering.dispose()
  })

  test('SOCK-14 a link that is paused takes no silence for a death, and neither does its peer; what it sends arrives, and the end comes behind what was read', async () => {
    const limits = socketLimits({ heartbeatMs: 10, suspectMs: 40, deadMs: 120 })
    const { a, b, sockets, dispose } = await linkPair('tcp', { limits })
    const [atA, atB] = [new Recorder(), new Recorder()]
    a.open(atA)
    b.open(atB)
    atB.onEach = () => b.setPaused(true)
    for (let i = 0; i < 5; i++) a.send(frame(`${i}`))
    await until(() => atB.frames.length > 0)
    const before = a.queuedBytes
    await sleep(400)
    b.send(frame('still here'))
    await until(() => atA.frames.length === 1)
    expect([atA.closed, atB.closed, atB.texts, before]).toEqual([null, null, ['0'], 0])
    // Its kernel reports the end when this end writes.
    sockets.a.resetAndDestroy()
    await until(() => atB.closed !== null)
    expect([atB.texts, atB.events.at(-1)]).toEqual([['0', '1', '2', '3', '4'], 'close:peer:5'])
    dispose()
  })

  test('SOCK-14 what a paused link does not read waits at its sender', async () => {
    const { a, b, dispose } = await linkPair('tcp')
    const atB = new Recorder()
    b.open(atB)
    b.setPaused(true)
    const bytes = new Uint8Array(8 * 2 ** 20)
    for (let i = 0; i < 4; i++) a.send(frame(`${i}`, bytes.slice()))
    await sleep(100)
    expect([atB.frames.length, a.queuedBytes > 2 ** 23]).toEqual([0, true])
    b.setPaused(false)
    await until(() => atB.frames.length === 4)
    expect(atB.frames.map(({ segments }) => segments[0]!.length)).toEqual(Array(4).fill(bytes.length))
    dispose()
  })

  test('SOCK-15 a link that gets too much that brings nothing rests, and delivers what comes behind that later', async () => {
    const { a, b, dispose } = await socketPair('tcp')
    let rests = 0
    // A busy machine may take half a second over this, in which the link would be given as much as it gets: so no time passes for the link before it rests.
    const startMs = clock.now()
    const still: Clock = {
      now: () => (rests === 0 ? startMs : clock.now()),
      setTimer: (delayMs, fn) => clock.setTimer(delayMs, fn),
      defer: (fn) => clock.defer(fn),
    }
    const link = new SocketLink(a, { clock: still })
    const at = new Recorder()
    link.open(at)
    const state = link as unknown as { rest: unknown; idling: { isWhole: boolean } }
    let rest: unknown = null
    Object.defineProperty(link, 'rest', {
      get: () => rest,
      set: (timer: unknown) => {
        rest = timer
        if (timer !== null) rests++
      },
    })
    let sequence = 0
    for (let i = 0; i < 2040; i++) b.write(controlChunk(i % 2 ? ChunkType.PING : ChunkType.PONG, new Uint8Array(0), sequence++))
    await until(() => !state.idling.isWhole)
    await sleep(20)
    expect(state.rest).toBeNull()
    for (let i = 0; i < 500; i++) b.write(controlChunk(ChunkType.PING, new Uint8Array(0), sequence++))
    b.write(controlChunk(ChunkType.BYE, Buffer.from([0]), sequence++))
    await until(() => at.closed !== null)
    expect(rests).toBeGreaterThan(0)
    dispose()
  })

  test('SOCK-6 where one kernel has both ends, a peer that says nothing is suspected, and its end is what the kernel tells', async () => {
    const limits = socketLimits({ heartbeatMs: 10, suspectMs: 40, deadMs: 60 })
    const { a, b, dispose } = await socketPair('tcp')
    const events: unknown[] = []
    const link = new SocketLink(a, { clock, limits, isAdmitted: false })
    link.hook({ onSuspected: (is) => events.push(is), onEnd: ({ isDead }) => events.push({ isDead }) })
    link.admit({ isOfMachine: true })
    b.resume()
    link.open(new Recorder())
    await sleep(400)
    expect(events).toEqual([true])
    b.destroy()
    await until(() => events.length === 2)
    expect(events).toEqual([true, { isDead: false }])
    dispose()
  })

  test('SOCK-7 garbage ends the connection with what was wrong, and nothing of it is delivered', async () => {
    for (const [garbage, sentence] of [
      [Buffer.from('GET / HTTP/1.1\r\nHost: x\r\n\r\n'), 'version'],
      [Buffer.alloc(64), 'version'],
      [controlChunk(ChunkType.RESUME, new Uint8Array(8), 0), 'type 8'],
      [controlChunk(ChunkType.PING, new Uint8Array(0), 5), 'chunk 5'],
      [Buffer.concat([controlChunk(ChunkType.PING, new Uint8Array(0), 0), controlChunk(ChunkType.PING, new Uint8Array(0), 0)]), 'chunk 0'],
      [controlChunk(ChunkType.BYE, Buffer.from([99]), 0), 'goodbye 99'],
    ] as const) {
      const { a, b } = await socketPair('tcp')
      const link = new SocketLink(b, { clock })
      const got = new Recorder()
      link.open(got)
      a.on('error', () => {})
      a.write(garbage)
      await until(() => got.closed !== null)
      expect(got.frames.length).toBe(0)
      expect(got.closed).toMatchObject({ by: 'peer', detail: expect.stringContaining(sentence) })
      a.destroy()
      b.destroy()
    }
  })

  test('SOCK-8 before the other end is known nothing but a handshake is taken, and little of it', async () => {
    for (const [bytes, sentence] of [
      [controlChunk(ChunkType.PING, new Uint8Array(0), 0), 'handshake first'],
      [Buffer.concat([controlChunk(ChunkType.HANDSHAKE, new Uint8Array(4000), 0), Buffer.alloc(HEAD_BYTES * 20)]), 'more than 4096 bytes'],
    ] as const) {
      const { a, b } = await socketPair('tcp')
      const ends: string[] = []
      new SocketLink(b, { clock, isAdmitted: false, onControl: () => {}, onEnd: (end) => ends.push(end.detail) })
      a.on('error', () => {})
      a.write(bytes)
      await until(() => ends.length > 0)
      expect(ends).toEqual([expect.stringContaining(sentence)])
      a.destroy()
      b.destroy()
    }
  })

  test.each(['tcp', 'unix'] as const)(
    'SOCK-9 over %s: what the other end said before it was gone is heard by one who wrote first',
    async (kind) => {
      const sockets = await socketPair(kind)
      const a = new SocketLink(sockets.a, { clock })
      const atA = new Recorder()
      a.open(atA)
      await sleep(5)
      // All that follows, up to the wait, is in one turn: nothing is read meanwhile, as in a thread that computes.
      const writer = new ChunkWriter(sockets.b, SOCKET_LIMITS)
      for (let i = 0; i < 3; i++) {
        writer.add(frame(`${i}`, bytesOf(40_000, i)))
        writer.flush()
      }
      sockets.b.destroy()
      const untilMs = clock.now() + 10
      while (clock.now() < untilMs);
      for (const word of ['x', 'y']) {
        a.send(frame(word))
        a.flush()
      }
      await until(() => atA.closed !== null)
      expect(atA.texts).toEqual(['0', '1', '2'])
      expect(atA.frames.every(({ segments }, i) => same(segments[0], bytesOf(40_000, i)))).toBe(true)
      sockets.dispose()
    },
  )

  test('SOCK-11 a burst leaves while it is made; in a turn that has lasted long it waits until what came has been read', async () => {
    // The thread may lose its core in the middle of a burst: for the link no time passes then.
    let nowMs = 0
    const held: Clock = { now: () => nowMs, setTimer: (delayMs, fn) => clock.setTimer(delayMs, fn), defer: (fn) => clock.defer(fn) }
    const { a, b, sockets, dispose } = await linkPair('unix', { clock: held })
    const [atA, atB] = [new Recorder(), new Recorder()]
    a.open(atA)
    b.open(atB)
    const leaves: number[] = []
    const burst = (): void => {
      const before = sockets.a.bytesWritten
      for (let i = 0; i < 11; i++) a.send(frame('x', bytesOf(1000, i)))
      leaves.push(sockets.a.bytesWritten - before)
    }
    atA.onEach = () => {
      burst()
      nowMs += 10
      burst()
    }
    b.send(frame('go'))
    await until(() => atB.frames.length === 22)
    expect([leaves[0]! > 8000, leaves[0]! < 9000, leaves[1]]).toEqual([true, true, 0])
    expect(atB.frames.every(({ segments }, i) => same(segments[0], bytesOf(1000, i % 11)))).toBe(true)
    dispose()
  })

  test.each(['tcp', 'unix'] as const)('SOCK-10 over %s, dialled or accepted: no read brings memory of its own', async (kind) => {
    const sockets = await socketPair(kind)
    const given: { readonly memory: ArrayBufferLike; readonly bytes: number }[] = []
    let placed = 0
    const watched: Pick<ReadBuffer, 'take'> = {
      take: (socket, to) =>
        reads.take(socket, {
          ...to,
          onBytes: (bytes) => {
            given.push({ memory: bytes.buffer, bytes: bytes.length })
            to.onBytes(bytes)
          },
          onPlaced: (bytes, isAll) => {
            placed += bytes
            to.onPlaced(bytes, isAll)
          },
        }),
    }
    const [a, b] = [sockets.a, sockets.b].map((socket) => new SocketLink(socket, { clock, reads: watched })) as [SocketLink, SocketLink]
    let events = 0
    for (const socket of [sockets.a, sockets.b]) socket.on('data', () => events++)
    for (const [from, to] of [
      [a, b],
      [b, a],
    ] as const) {
      const got = new Recorder()
      to.open(got)
      from.send(frame('x', bytesOf(1_000_000, 1)))
      await until(() => got.frames.length === 1)
      expect(same(got.frames[0]!.segments[0], bytesOf(1_000_000, 1))).toBe(true)
    }
    expect(events).toBe(0)
    expect(placed + given.reduce((sum, { bytes }) => sum + bytes, 0)).toBeGreaterThan(2_000_000)
    // Nearly all: what is read before the announcement of a frame is known comes to the buffer.
    expect(placed).toBeGreaterThan(1_000_000)
    expect(new Set(given.map(({ memory }) => memory)).size).toBe(1)
    sockets.dispose()
  })

  test.each(['tcp', 'unix'] as const)(
    'SOCK-12 over %s small frames overtake a large one that is under way, where they share no order with it',
    async (kind) => {
      const { a, b, dispose } = await linkPair(kind)
      const atB = new Recorder()
      b.open(atB)
      const large = bytesOf(32 * 2 ** 20, 1)
      a.send(frame('first'), frameOrder(1))
      await until(() => atB.frames.length === 1)
      a.send(frame('large', large.slice()), frameOrder(1))
      a.send(frame('same order'), frameOrder(1))
      a.send(frame('another', bytesOf(100, 2)), frameOrder(2))
      a.send(frame('none'), NO_ORDER)
      await until(() => atB.frames.length === 3)
      const began = [...atB.texts]
      a.send(frame('later'), NO_ORDER)
      await until(() => atB.frames.length === 6)
      expect(began).toEqual(['first', 'another', 'none'])
      expect(atB.texts.slice(-2)).toEqual(['large', 'same order'])
      expect(atB.frames.map(({ header, overtook }) => `${text(header)} ${overtook}`)).toEqual(
        expect.arrayContaining(['another 1', 'none 1', 'later 1', 'large 0', 'same order 0']),
      )
      expect(same(atB.frames.find(({ header }) => text(header) === 'large')!.segments[0], large)).toBe(true)
      expect(same(atB.frames.find(({ header }) => text(header) === 'another')!.segments[0], bytesOf(100, 2))).toBe(true)
      dispose()
    },
  )

  test('SOCK-10 a receiver that throws at what was read to its place: the next bytes are read elsewhere', async () => {
    const [kBuffer, kBufferCb, kBufferGen] = [Symbol('kBuffer'), Symbol('kBufferCb'), Symbol('kBufferGen')]
    const used: Uint8Array[] = []
    const socket: Record<string | symbol, unknown> = {
      [kBuffer]: null,
      [kBufferCb]: null,
      [kBufferGen]: null,
      readableLength: 0,
      _handle: { useUserBuffer: (buffer: Uint8Array) => used.push(buffer) },
      resume() {},
    }
    let place: Uint8Array | null = new Uint8Array(100)
    const taken = new ReadBuffer().take(socket as unknown as Socket, {
      onBytes() {},
      nextPlace: () => place,
      onPlaced() {
        place = null
        throw new Error('of the receiver')
      },
    })
    const next = socket[kBufferGen] as () => Uint8Array
    expect([taken, next() === place]).toEqual([true, true])
    const uncaught = new Promise((resolve) => process.setUncaughtExceptionCaptureCallback(resolve))
    try {
      expect((socket[kBufferCb] as (bytes: number, into: Uint8Array) => boolean)(100, place)).toBe(true)
      expect(next()).toBe(used[0])
      expect(await uncaught).toEqual(new Error('of the receiver'))
    } finally {
      process.setUncaughtExceptionCaptureCallback(null)
    }
  })

  test('SOCK-10 what has come before the link was made is read, too', async () => {
    const sockets = await socketPair('unix')
    sockets.b.on('readable', () => {})
    new SocketLink(sockets.a, { clock, reads }).send(frame('early', bytesOf(100, 1)))
    await until(() => sockets.b.readableLength > 0)
    sockets.b.removeAllListeners('readable')
    const b = new SocketLink(sockets.b, { clock, reads })
    const got = new Recorder()
    b.open(got)
    await until(() => got.frames.length === 1)
    expect(got.texts).toEqual(['early'])
    sockets.dispose()
  })

  test('SOCK-10 what waits for open stays what it is while other links read into the same buffer', async () => {
    const pairs = await Promise.all([linkPair('unix'), linkPair('tcp'), linkPair('unix')])
    for (const [i, { a }] of pairs.entries()) {
      for (let k = 0; k < 50; k++) a.send(frame(`${i}:${k}`, bytesOf(1000, i + k)))
      a.flush()
    }
    await sleep(50)
    const busy = await linkPair('tcp')
    const noise = new Recorder()
    busy.b.open(noise)
    busy.a.send(frame('noise', new Uint8Array(1_000_000).fill(0xee)))
    await until(() => noise.frames.length === 1)
    for (const [i, { b, dispose }] of pairs.entries()) {
      const got = new Recorder()
      b.open(got)
      await until(() => got.frames.length === 50)
      expect(got.texts).toEqual(Array.from({ length: 50 }, (_, k) => `${i}:${k}`))
      expect(got.frames.every(({ segments }, k) => same(segments[0], bytesOf(1000, i + k)))).toBe(true)
      dispose()
    }
    busy.dispose()
  })

  test('SOCK-10 what is behind a receiver that threw stays what it is', async () => {
    const { a, dispose } = await socketPair('unix')
    let read: (bytes: Buffer) => void = () => {}
    const link = new SocketLink(a, {
      clock,
      reads: {
        take: (_, { onBytes }) => {
          read = onBytes
          return true
        },
      },
    })
    const got = new Recorder()
    got.onEach = ({ header }) => {
      if (text(header) === '1') throw new Error('of the receiver')
    }
    link.open(got)
    await sleep(5)
    const written: Uint8Array[] = []
    const sink = { writableLength: 0, write: (bytes: Uint8Array) => written.push(bytes) > 0, cork() {}, uncork() {} }
    const writer = new ChunkWriter(sink, SOCKET_LIMITS)
    // Frames of a chunk each, so that most are unread when the receiver throws.
    for (let i = 0; i < 8; i++) {
      writer.add(frame(`${i}`, bytesOf(500, i)))
      writer.flush()
    }
    const bytes = Buffer.concat(written)
    const shared = Buffer.alloc(READ_BYTES)
    const lend = (from: number, to: number): void => {
      const length = bytes.copy(shared, 0, from, to)
      try {
        read(shared.subarray(0, length))
      } finally {
        shared.fill(0xee)
      }
    }
    // The second and third come before the rest of the first is delivered.
    const [first, second] = [Math.floor(bytes.length / 2) + 3, Math.floor((3 * bytes.length) / 4) + 3]
    expect(() => lend(0, first)).toThrow('of the receiver')
    lend(first, second)
    lend(second, bytes.length)
    expect(got.frames.length).toBe(2)
    await until(() => got.frames.length === 8)
    expect(got.texts).toEqual(Array.from({ length: 8 }, (_, i) => `${i}`))
    expect(got.frames.every(({ segments }, i) => same(segments[0], bytesOf(500, i)))).toBe(true)
    dispose()
  })
})
