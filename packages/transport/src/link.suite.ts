/**
 * The contract of `link.ts` as tests: written once, run on every implementation by a fixture. Other packages that implement a link
 * import it as `@postgrad/transport/suite`.
 */
import { describe, expect, test } from '@jest/globals'
import { EVERY_ORDER, type Frame, type Link, type LinkClosed, type LinkReceiver } from './link.js'
import { SEGMENT_MOVED_BYTES_MIN } from './post.js'

export interface LinkPair {
  readonly a: Link
  readonly b: Link
  /** Leaves nothing open. */
  dispose(): void | Promise<void>
}

export interface LinkFixture {
  make(): LinkPair | Promise<LinkPair>
  /** Lets the event loop of the pair turn until `done` holds, or gives up after some time (the test then fails on what it expects). */
  until(done: () => boolean): Promise<void>
  /** Lets some turns go by, for what must not happen. */
  turns(): Promise<void>
  /**
   * Whether flushed frames have arrived when `flush` returns, so that `poll` finds them in the same turn. Default true. Only the event loop reads
   * from a kernel: `poll` then delivers the frames that the event loop has read so far.
   */
  readonly arrivesAtOnce?: boolean
  /** False: what is below it has no `setPaused`. Default: whether the link has it. */
  readonly pauses?: boolean
}

/** Remembers every call, in order. */
export class Recorder implements LinkReceiver {
  readonly frames: Frame[] = []
  readonly events: string[] = []
  closed: LinkClosed | null = null
  onEach: ((frame: Frame) => void) | null = null
  private sinceTurn = 0

  get texts(): string[] {
    return this.frames.map((frame) => text(frame.header))
  }

  onFrame(frame: Frame): void {
    this.frames.push(frame)
    this.sinceTurn++
    this.onEach?.(frame)
  }

  onTurnEnd(): void {
    this.events.push(`turn:${this.sinceTurn}`)
    this.sinceTurn = 0
  }

  onClose(reason: LinkClosed): void {
    this.closed = reason
    this.events.push(`close:${reason.by}:${this.frames.length}`)
  }
}

export const frame = (header: string | Uint8Array, ...segments: Uint8Array[]): Frame => ({
  header: typeof header === 'string' ? new Uint8Array(Buffer.from(header)) : header,
  segments,
})
export const text = (bytes: Uint8Array): string => Buffer.from(bytes).toString()
const bytesOf = (length: number, first = 0): Uint8Array => Uint8Array.from({ length }, (_, i) => (first + i * 7) & 0xff)
const same = (x: Uint8Array | undefined, y: Uint8Array): boolean => x !== undefined && Buffer.compare(x, y) === 0

export function describeLink(name: string, fixture: LinkFixture): void {
  const withPair = (fn: (a: Link, b: Link) => Promise<void>) => async () => {
    const pair = await fixture.make()
    try {
      await fn(pair.a, pair.b)
    } finally {
      await pair.dispose()
    }
  }

  describe(`${name} keeps the contract of a link`, () => {
    test(
      'frames arrive in the order of send, over many turns and both ways',
      withPair(async (a, b) => {
        const atA = new Recorder()
        const atB = new Recorder()
        a.open(atA)
        b.open(atB)
        const count = 1000
        for (let i = 0; i < count; i++) {
          a.send(frame(`a${i}`))
          b.send(frame(`b${i}`, bytesOf(i % 5)))
          if (i % 97 === 0) await fixture.turns()
        }
        await fixture.until(() => atA.frames.length >= count && atB.frames.length >= count)
        expect(atB.texts).toEqual(Array.from({ length: count }, (_, i) => `a${i}`))
        expect(atA.texts).toEqual(Array.from({ length: count }, (_, i) => `b${i}`))
      }),
    )

    test(
      'frames of one turn, its microtasks included, leave in one post',
      withPair(async (a, b) => {
        const atB = new Recorder()
        b.open(atB)
        await fixture.turns()
        a.send(frame('1'))
        a.send(frame('2'))
        let hops: Promise<unknown> = Promise.resolve()
        for (let i = 0; i < 10; i++) hops = hops.then(() => undefined)
        await hops
        a.send(frame('3'))
        await fixture.until(() => atB.frames.length === 3)
        expect(atB.texts).toEqual(['1', '2', '3'])
        expect(atB.events).toEqual(['turn:3'])
      }),
    )

    test(
      'who waits for a frame is told once: true when it is flushed, also where the link is then closed',
      withPair(async (a, b) => {
        const atB = new Recorder()
        a.open(new Recorder())
        b.open(atB)
        await fixture.turns()
        const told: string[] = []
        const send = (text: string) => a.send(frame(text), EVERY_ORDER, (isFlushed) => told.push(`${text} ${isFlushed}`))
        send('1')
        a.send(frame('2'))
        send('3')
        await fixture.until(() => told.length === 2 && atB.frames.length === 3)
        send('4')
        a.close()
        await fixture.until(() => told.length === 3 && atB.frames.length === 4)
        await fixture.turns()
        expect(told).toEqual(['1 true', '3 true', '4 true'])
      }),
    )

    test(
      'nothing is delivered before open, and nothing that was sent before it is lost',
      withPair(async (a, b) => {
        a.send(frame('early'))
        expect(b.poll()).toBe(0)
        await fixture.turns()
        expect(b.poll()).toBe(0)
        const atB = new Recorder()
        b.open(atB)
        expect(atB.frames.length).toBe(0)
        await fixture.until(() => atB.frames.length > 0)
        expect(atB.texts).toEqual(['early'])
      }),
    )

    test(
      'the bytes belong to the receiver: writing to what was sent does not reach it, and what it holds stays',
      withPair(async (a, b) => {
        const atB = new Recorder()
        b.open(atB)
        const header = bytesOf(40)
        const small = bytesOf(100, 1)
        const large = bytesOf(SEGMENT_MOVED_BYTES_MIN, 2)
        const shared = new Uint8Array(4 * SEGMENT_MOVED_BYTES_MIN)
        const view = shared.subarray(64, 64 + 2 * SEGMENT_MOVED_BYTES_MIN)
        view.set(bytesOf(view.length, 3))
        const sent = [header, small, large, view].map((x) => x.slice())
        a.send({ header, segments: [small, large, view] })
        a.flush()
        for (const x of [header, small, shared]) x.fill(0xee)
        expect(large.length).toBe(0)
        expect(view.length).toBe(2 * SEGMENT_MOVED_BYTES_MIN)
        for (let i = 0; i < 100; i++) {
          a.send(frame(bytesOf(40, i), bytesOf(300, i)))
          if (i % 10 === 0) await fixture.turns()
        }
        await fixture.until(() => atB.frames.length === 101)
        const first = atB.frames[0] as Frame
        expect([first.header, ...first.segments].map((x, i) => same(x, sent[i] as Uint8Array))).toEqual([true, true, true, true])
      }),
    )

    test(
      'a segment that is shared memory, or that is sent twice in one turn, arrives whole',
      withPair(async (a, b) => {
        const atB = new Recorder()
        b.open(atB)
        const shared = new Uint8Array(new SharedArrayBuffer(SEGMENT_MOVED_BYTES_MIN))
        shared.set(bytesOf(shared.length, 5))
        const twice = bytesOf(SEGMENT_MOVED_BYTES_MIN, 6)
        const expected = [shared.slice(), twice.slice()]
        a.send(frame('x', shared, twice, twice))
        await fixture.until(() => atB.frames.length === 1)
        const { segments } = atB.frames[0] as Frame
        expect(shared.length).toBe(SEGMENT_MOVED_BYTES_MIN)
        expect([same(segments[0], expected[0] as Uint8Array), same(segments[1], expected[1] as Uint8Array)]).toEqual([true, true])
        expect(same(segments[2], expected[1] as Uint8Array)).toBe(true)
      }),
    )

    test(
      'headers and segments of any length arrive whole and aligned to 8 bytes',
      withPair(async (a, b) => {
        const atB = new Recorder()
        b.open(atB)
        const lengths = [
          0,
          1,
          3,
          4,
          7,
          8,
          9,
          31,
          33,
          255,
          256,
          257,
          1023,
          4096,
          SEGMENT_MOVED_BYTES_MIN - 1,
          SEGMENT_MOVED_BYTES_MIN,
          70_000,
          300_001,
        ]
        const sent: Uint8Array[][] = []
        for (const [i, length] of lengths.entries()) {
          const parts = [bytesOf(length, i), ...lengths.slice(0, i).map((n) => bytesOf(n, i + n))]
          sent.push(parts.map((x) => x.slice()))
          a.send({ header: parts[0] as Uint8Array, segments: parts.slice(1) })
        }
        await fixture.until(() => atB.frames.length === lengths.length)
        expect(atB.frames.length).toBe(lengths.length)
        for (const [i, got] of atB.frames.entries()) {
          const parts = [got.header, ...got.segments]
          expect(parts.map((x) => x.length)).toEqual((sent[i] as Uint8Array[]).map((x) => x.length))
          expect(parts.every((x, k) => same(x, (sent[i] as Uint8Array[])[k] as Uint8Array))).toBe(true)
          expect(parts.every((x) => x.byteOffset % 8 === 0)).toBe(true)
        }
      }),
    )

    test(
      'close delivers what was sent before, then onClose once at each end, and send throws LINK_CLOSED',
      withPair(async (a, b) => {
        const atA = new Recorder()
        const atB = new Recorder()
        a.open(atA)
        b.open(atB)
        for (let i = 0; i < 100; i++) a.send(frame(`${i}`))
        a.close()
        a.close()
        expect(a.closed).toBe(true)
        expect(atA.events).toEqual([])
        expect(() => a.send(frame('late'))).toThrow(expect.objectContaining({ code: 'LINK_CLOSED' }))
        await fixture.until(() => atA.closed !== null && atB.closed !== null)
        await fixture.turns()
        expect(atB.texts).toEqual(Array.from({ length: 100 }, (_, i) => `${i}`))
        expect(atB.events.filter((e) => e.startsWith('close'))).toEqual(['close:peer:100'])
        expect(atB.events.at(-1)).toBe('close:peer:100')
        expect(atA.events).toEqual(['close:self:0'])
        expect(b.closed).toBe(true)
        expect(() => b.send(frame('late'))).toThrow(expect.objectContaining({ code: 'LINK_CLOSED' }))
        b.close()
        await fixture.turns()
        expect([a.poll(), b.poll()]).toEqual([0, 0])
        expect(atB.events.at(-1)).toBe('close:peer:100')
      }),
    )

    test(
      'an end that is opened after its peer has closed gets the frames, then onClose',
      withPair(async (a, b) => {
        a.send(frame('last words'))
        a.close()
        await fixture.turns()
        const atB = new Recorder()
        b.open(atB)
        expect(atB.events).toEqual([])
        await fixture.until(() => atB.closed !== null)
        expect(atB.texts).toEqual(['last words'])
        expect(atB.events).toEqual(['turn:1', 'close:peer:1'])
      }),
    )

    test(
      'both ends may close at once',
      withPair(async (a, b) => {
        const atA = new Recorder()
        const atB = new Recorder()
        a.open(atA)
        b.open(atB)
        a.close()
        b.close()
        await fixture.until(() => atA.closed !== null && atB.closed !== null)
        expect([atA.events, atB.events]).toEqual([['close:self:0'], ['close:self:0']])
      }),
    )

    test(
      'poll delivers what has arrived without a turn, in order, and does not end a turn',
      withPair(async (a, b) => {
        const atB = new Recorder()
        b.open(atB)
        for (let i = 0; i < 200; i++) {
          a.send(frame(`${i}`))
          if (i % 50 === 49) a.flush()
        }
        expect(atB.frames.length).toBe(0)
        if (fixture.arrivesAtOnce ?? true) {
          expect(b.poll()).toBe(200)
        } else {
          let polled = 0
          atB.onEach = () => {
            // The poll also delivers the frames that came with the first, before it returns.
            atB.onEach = null
            polled = b.poll()
            expect(atB.frames.length).toBe(1 + polled)
          }
          await fixture.until(() => atB.frames.length >= 200)
          expect(polled).toBeGreaterThan(0)
        }
        expect(atB.texts).toEqual(Array.from({ length: 200 }, (_, i) => `${i}`))
        if (fixture.arrivesAtOnce ?? true) expect(atB.events).toEqual([])
        expect(b.poll()).toBe(0)
      }),
    )

    test(
      'poll from inside onFrame continues behind the frame that is being delivered',
      withPair(async (a, b) => {
        const atB = new Recorder()
        let polls = 0
        atB.onEach = () => {
          if (polls++ % 3 === 0) b.poll()
        }
        b.open(atB)
        for (let i = 0; i < 100; i++) {
          a.send(frame(`${i}`))
          if (i % 7 === 0) a.flush()
        }
        await fixture.until(() => atB.frames.length === 100)
        expect(atB.texts).toEqual(Array.from({ length: 100 }, (_, i) => `${i}`))
      }),
    )

    test(
      'poll reaches the end of a closed link and onClose still comes once, in a turn of its own',
      withPair(async (a, b) => {
        const atB = new Recorder()
        b.open(atB)
        a.send(frame('1'))
        a.close()
        if (fixture.arrivesAtOnce ?? true) {
          expect(b.poll()).toBe(1)
          expect(b.poll()).toBe(0)
          expect(atB.events).toEqual([])
        } else {
          // The poll from inside finds the end, which is in the same bytes.
          let polled = -1
          atB.onEach = () => {
            polled = b.poll()
            expect(atB.events).toEqual([])
          }
          await fixture.until(() => atB.frames.length > 0)
          expect(polled).toBe(0)
        }
        await fixture.until(() => atB.closed !== null)
        await fixture.turns()
        expect(atB.events.filter((e) => e.startsWith('close'))).toEqual(['close:peer:1'])
      }),
    )

    test(
      'close from inside onFrame drops the rest of what this end has received',
      withPair(async (a, b) => {
        const atB = new Recorder()
        atB.onEach = () => {
          if (atB.frames.length === 3) b.close()
        }
        b.open(atB)
        for (let i = 0; i < 10; i++) a.send(frame(`${i}`))
        await fixture.until(() => atB.closed !== null)
        expect(atB.texts).toEqual(['0', '1', '2'])
        expect(atB.events.at(-1)).toBe('close:self:3')
      }),
    )

    test(
      'send from inside onFrame, onTurnEnd and onClose is safe',
      withPair(async (a, b) => {
        const atA = new Recorder()
        const atB = new Recorder()
        atB.onEach = (got) => b.send(frame(`re:${text(got.header)}`))
        a.open(atA)
        b.open(atB)
        for (let i = 0; i < 120; i++) a.send(frame(`${i}`))
        await fixture.until(() => atA.frames.length === 120)
        expect(atA.texts).toEqual(Array.from({ length: 120 }, (_, i) => `re:${i}`))
      }),
    )

    test(
      'paused, also from inside onFrame, it delivers nothing, by poll neither, and hears of no end; resumed, all of it in order, then the end',
      withPair(async (a, b) => {
        if (b.setPaused === undefined || fixture.pauses === false) return
        const atB = new Recorder()
        atB.onEach = () => {
          if (atB.frames.length === 3) b.setPaused!(true)
        }
        b.open(atB)
        for (let i = 0; i < 10; i++) a.send(frame(`${i}`))
        await fixture.until(() => atB.frames.length >= 3)
        await fixture.turns()
        expect([b.poll(), atB.texts]).toEqual([0, ['0', '1', '2']])
        b.setPaused(false)
        await fixture.until(() => atB.frames.length === 10)
        b.setPaused(true)
        for (let i = 10; i < 15; i++) a.send(frame(`${i}`))
        a.close()
        await fixture.turns()
        expect([atB.frames.length, atB.closed]).toEqual([10, null])
        b.setPaused(false)
        await fixture.until(() => atB.closed !== null)
        expect([atB.texts, atB.events.at(-1)]).toEqual([Array.from({ length: 15 }, (_, i) => `${i}`), 'close:peer:15'])
      }),
    )

    test(
      'abandon ends a link as the end of its peer does, at both ends',
      withPair(async (a, b) => {
        if (b.abandon === undefined || b.setPaused === undefined || fixture.pauses === false) return
        const [atA, atB] = [new Recorder(), new Recorder()]
        a.open(atA)
        b.open(atB)
        a.send(frame('first'))
        await fixture.until(() => atB.frames.length === 1)
        b.setPaused(true)
        a.send(frame('second'))
        b.abandon('it is too much')
        expect(b.closed).toBe(true)
        await fixture.until(() => atB.closed !== null && atA.closed !== null)
        expect([atB.texts, atB.closed, atA.closed?.by]).toEqual([['first'], { by: 'peer', detail: 'it is too much' }, 'peer'])
      }),
    )

    test(
      'a link that is paused at both ends is closed as any other',
      withPair(async (a, b) => {
        if (b.setPaused === undefined || fixture.pauses === false) return
        const [atA, atB] = [new Recorder(), new Recorder()]
        a.open(atA)
        b.open(atB)
        a.send(frame('first'))
        await fixture.until(() => atB.frames.length === 1)
        a.setPaused!(true)
        b.setPaused(true)
        a.send(frame('second'))
        a.close()
        await fixture.until(() => atA.closed !== null)
        expect(atA.events.at(-1)).toBe('close:self:0')
        b.setPaused(false)
        await fixture.until(() => atB.closed !== null)
        expect(atB.texts).toEqual(['first', 'second'])
      }),
    )
  })
}
