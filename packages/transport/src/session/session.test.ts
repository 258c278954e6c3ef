/** Sessions over a carrier that keeps a link's contract (`link.suite.ts`), and over one that keeps none of it, in virtual time. */
import { MessageChannel } from 'node:worker_threads'
import { describe, expect, test } from '@jest/globals'
import fc from 'fast-check'
import { type Clock, RealClock, type Timer } from '../clock.js'
import {
  EVERY_ORDER,
  type Frame,
  type FrameOrder,
  type Link,
  type LinkClosed,
  type LinkReceiver,
  NO_ORDER,
  type OnFlushed,
} from '../link.js'
import { describeLink, frame, Recorder, text } from '../link.suite.js'
import { memoryLinkPair } from '../memory-link.js'
import { messagePortLink } from '../message-port-link.js'
import { Session } from './session.js'
import { SessionKind, sessionFrame, sessionHead } from './session-frame.js'
import type { SessionOptions } from './session-options.js'

const realClock = new RealClock()
const turn = () => new Promise<void>((resolve) => realClock.defer(resolve))

describeLink('a session over a memory link', {
  make() {
    const [ofA, ofB] = memoryLinkPair(realClock)
    const a = new Session(ofA, { clock: realClock, self: 1, peer: 2 })
    const b = new Session(ofB, { clock: realClock, self: 2, peer: 1 })
    return {
      a,
      b,
      dispose() {
        a.close()
        b.close()
        ofA.close()
        ofB.close()
      },
    }
  },
  async until(done) {
    for (let i = 0; i < 200 && !done(); i++) await turn()
  },
  async turns() {
    for (let i = 0; i < 5; i++) await turn()
  },
  pauses: false,
})

/** Time that a test moves: turns first, then the next timer. */
class ByHand implements Clock {
  nowMs = 0
  private order = 0
  private readonly turns: (() => void)[] = []
  private readonly timers = new Map<number, { readonly dueMs: number; readonly fn: () => void }>()

  now(): number {
    return this.nowMs
  }

  setTimer(delayMs: number, fn: () => void): Timer {
    const id = this.order++
    this.timers.set(id, { dueMs: this.nowMs + delayMs, fn })
    return { cancel: () => this.timers.delete(id) }
  }

  defer(fn: () => void): void {
    this.turns.push(fn)
  }

  get timersSet(): number {
    return this.timers.size
  }

  /** Runs what is to be run up to a time, or to the end. */
  run(untilMs = Number.POSITIVE_INFINITY): void {
    for (;;) {
      const next = this.turns.shift()
      if (next !== undefined) {
        next()
        continue
      }
      let first: [number, { readonly dueMs: number; readonly fn: () => void }] | null = null
      for (const entry of this.timers) if (first === null || entry[1].dueMs < first[1].dueMs) first = entry
      if (first === null || first[1].dueMs > untilMs) break
      this.timers.delete(first[0])
      this.nowMs = Math.max(this.nowMs, first[1].dueMs)
      first[1].fn()
    }
    if (untilMs !== Number.POSITIVE_INFINITY) this.nowMs = untilMs
  }
}

/** When each copy of a frame arrives, in ms from now: none of them, if it is lost. */
type Weather = (frame: Frame, nth: number, order: FrameOrder) => readonly number[]

const fine: Weather = () => [0]

/** A carrier on which frames of no order arrive at once, and all others after the large one, which takes 100 ms. */
function overtaking(large: string): Weather {
  let isSlow = false
  return ({ header }, _, order) => {
    if (text(header).endsWith(large)) isSlow = true
    return [isSlow && order !== NO_ORDER ? 100 : 0]
  }
}

/** One end of a carrier that promises nothing but that what arrives is what was sent. */
class Carrier implements Link {
  closed = false
  other: Carrier | null = null
  receiver: LinkReceiver | null = null
  weather: Weather
  readonly sent: Frame[] = []
  /** It takes what it is sent and flushes nothing. */
  isFull = false
  readonly unflushed: OnFlushed[] = []
  private readonly clock: Clock

  constructor(clock: Clock, weather: Weather) {
    this.clock = clock
    this.weather = weather
  }

  open(receiver: LinkReceiver): void {
    this.receiver = receiver
  }

  send(sent: Frame, order = EVERY_ORDER, onFlushed: OnFlushed | null = null): void {
    if (this.closed) throw new Error('sent on a closed carrier')
    this.sent.push(sent)
    if (onFlushed !== null) this.unflushed.push(onFlushed)
    if (!this.isFull) for (const told of this.unflushed.splice(0)) told(true)
    for (const delayMs of this.weather(sent, this.sent.length, order)) {
      const overtook = order === NO_ORDER ? 1 : 0
      const copy = { header: sent.header.slice(), segments: sent.segments.map((segment) => segment.slice()), overtook }
      this.clock.setTimer(delayMs, () => this.other?.arrive(copy))
    }
  }

  private arrive(copy: Frame): void {
    if (this.closed) return
    this.receiver?.onFrame(copy)
    this.receiver?.onTurnEnd()
  }

  flush(): void {}

  poll(): number {
    return 0
  }

  close(): void {
    for (const [end, by] of [
      [this, 'self'],
      [this.other as Carrier, 'peer'],
    ] as const) {
      if (end.closed) continue
      end.closed = true
      this.clock.defer(() => end.receiver?.onClose({ by, detail: 'the carrier was closed' }))
    }
  }
}

function carriers(clock: Clock, there: Weather, back: Weather = there): [Carrier, Carrier] {
  const a = new Carrier(clock, there)
  const b = new Carrier(clock, back)
  a.other = b
  b.other = a
  return [a, b]
}

interface Pair {
  readonly clock: ByHand
  readonly a: Session
  readonly b: Session
  readonly ofA: Carrier
  readonly ofB: Carrier
  readonly atA: Recorder
  readonly atB: Recorder
}

function pair(there: Weather = fine, back: Weather = there, options: Partial<SessionOptions> = {}): Pair {
  const clock = new ByHand()
  const [ofA, ofB] = carriers(clock, there, back)
  const a = new Session(ofA, { clock, self: 1, peer: 2, ...options })
  const b = new Session(ofB, { clock, self: 2, peer: 1, ...options })
  const [atA, atB] = [new Recorder(), new Recorder()]
  a.open(atA)
  b.open(atB)
  return { clock, a, b, ofA, ofB, atA, atB }
}

/** Spreads 32 bits over 32 bits (the finalizer of MurmurHash3). */
function mixed(x: number): number {
  let h = Math.imul(x ^ (x >>> 16), 0x85ebca6b)
  h = Math.imul(h ^ (h >>> 13), 0xc2b2ae35)
  return h ^ (h >>> 16)
}

const numbers = (count: number, first = 0): string[] => Array.from({ length: count }, (_, i) => `${first + i}`)
/** The frames received, each with how many were still to come. */
const seen = ({ frames }: Recorder): string[] => frames.map(({ header, overtook }) => `${text(header)}:${overtook}`)
const kindOf = (sent: Frame): SessionKind | undefined => sessionHead(sent)?.kind
const isData = (sent: Frame): boolean => kindOf(sent) === SessionKind.DATA

describe('session', () => {
  test('SES-1 frames arrive once and in order, whatever the carrier loses, repeats, delays and reorders, and then the end', () => {
    const weather = fc.array(fc.oneof(fc.constant([]), fc.array(fc.nat(400), { minLength: 1, maxLength: 3 })), {
      minLength: 1,
      maxLength: 50,
    })
    const program = fc.array(fc.record({ fromA: fc.boolean(), frames: fc.nat(40), waitMs: fc.nat(200) }), { maxLength: 8 })
    fc.assert(
      fc.property(weather, weather, program, fc.boolean(), (there, back, steps, bothClose) => {
        // Half of the frames arrive, in an order that no rhythm of resending meets; and no link breaks for want of luck.
        const by =
          (list: readonly (readonly number[])[]): Weather =>
          (_, nth) =>
            mixed(nth) >>> 28 < 8 ? [1] : (list[nth % list.length] as number[])
        const { clock, a, b, atA, atB } = pair(by(there), by(back), { giveUpMs: 1e9 })
        const sent: [string[], string[]] = [[], []]
        for (const { fromA, frames, waitMs } of steps) {
          for (let i = 0; i < frames; i++) {
            const mine = sent[fromA ? 0 : 1]
            mine.push(`${mine.length}`)
            ;(fromA ? a : b).send(frame(mine.at(-1) as string, new Uint8Array(i % 4)))
          }
          clock.run(clock.nowMs + waitMs)
        }
        // An end that closes drops the other's frames, so first both get everything.
        clock.run()
        expect([atA.closed, atB.closed]).toEqual([null, null])
        expect([atB.texts, atA.texts]).toEqual(sent)
        a.close()
        if (bothClose) b.close()
        clock.run()
        expect(atA.closed).toMatchObject({ by: 'self' })
        expect(atB.closed).toMatchObject({ by: bothClose ? 'self' : 'peer' })
        expect([atA, atB].map((at) => at.events.filter((event) => event.startsWith('close')).length)).toEqual([1, 1])
        expect([a.unacknowledged, b.unacknowledged, clock.timersSet]).toEqual([0, 0, 0])
      }),
      { numRuns: 200 },
    )
  })

  test('SES-1 a receiver that throws gets every frame all the same', () => {
    const { clock, a, atB } = pair()
    let thrown = 0
    atB.onEach = () => {
      throw new Error('a receiver must not throw, but if it does')
    }
    // All but the first arrive before it, so that they are ready together.
    for (let i = 0; i < 4; i++) a.send(frame(`${i}`))
    for (let i = 0; i < 20; i++) {
      try {
        clock.run()
      } catch {
        thrown++
      }
    }
    expect(thrown).toBe(4)
    expect(atB.texts).toEqual(numbers(4))
  })

  test('SES-2 acknowledgements ride on what is sent back; without that they leave after a short delay, one for many frames', () => {
    const { clock, a, b, ofB, atB } = pair()
    atB.onEach = (got) => {
      if (text(got.header) === 'ask') b.send(frame('answer'))
    }
    a.send(frame('ask'))
    clock.run(4)
    expect(ofB.sent.map(kindOf)).toEqual([SessionKind.DATA])
    expect(a.unacknowledged).toBe(0)
    for (const each of numbers(50)) a.send(frame(each))
    clock.run(8)
    expect(a.unacknowledged).toBe(50)
    clock.run(10)
    expect(ofB.sent.map(kindOf)).toEqual([SessionKind.DATA, SessionKind.ACK])
    expect(a.unacknowledged).toBe(0)
  })

  test('SES-2 half a window is acknowledged at once', () => {
    const { clock, a, ofB } = pair(fine, fine, { windowFrames: 10 })
    for (const each of numbers(5)) a.send(frame(each))
    clock.run(0)
    expect(ofB.sent.map(kindOf)).toEqual([SessionKind.ACK])
  })

  test('SES-3 what is lost is sent again after 50 ms, then after 100, 200, … up to a second; what arrived is not', () => {
    const times: number[] = []
    const { clock, a, ofA, atB } = pair()
    ofA.weather = () => {
      times.push(clock.nowMs)
      return times.length < 8 ? [] : [0]
    }
    a.send(frame('x'))
    clock.run()
    expect(times).toEqual([0, 50, 150, 350, 750, 1550, 2550, 3550])
    expect(atB.texts).toEqual(['x'])
    expect(a.counts).toMatchObject({ sent: 1, resent: 7 })
  })

  test('SES-3 an acknowledgement of anything new begins at 50 ms again', () => {
    const times: number[] = []
    const { clock, a, ofA } = pair()
    ofA.weather = () => {
      times.push(clock.nowMs)
      // The first arrives at its third try, the second at its second.
      return [3, 5].includes(times.length) ? [0] : []
    }
    a.send(frame('x'))
    clock.run(1000)
    expect(times).toEqual([0, 50, 150])
    a.send(frame('y'))
    clock.run()
    expect(times).toEqual([0, 50, 150, 1000, 1050])
  })

  test('SES-3 an acknowledgement that is lost costs one resend and one duplicate, which is acknowledged at once', () => {
    const { clock, a, b, atB } = pair(fine, (_, nth) => (nth === 1 ? [] : [0]))
    a.send(frame('x'))
    clock.run()
    expect(atB.texts).toEqual(['x'])
    expect(a.counts).toMatchObject({ sent: 1, resent: 1 })
    expect(b.counts).toMatchObject({ delivered: 1, duplicates: 1, acks: 2 })
    expect(clock.nowMs).toBe(50)
  })

  test('SES-4 a repeated frame is delivered once, though its copy comes much later', () => {
    const { clock, a, b, atB } = pair((sent) => (isData(sent) ? [0, 1, 5000] : [0]))
    for (const each of numbers(3)) a.send(frame(each))
    clock.run()
    expect(atB.texts).toEqual(numbers(3))
    expect(b.counts.duplicates).toBe(6)
  })

  test('SES-5 what overtakes waits until the gap is filled, and is not sent again for it', () => {
    const { clock, a, b, atB } = pair((_, nth) => [nth === 1 ? 20 : 0])
    for (const each of numbers(3)) a.send(frame(each))
    clock.run(19)
    expect(atB.texts).toEqual([])
    clock.run()
    expect(atB.texts).toEqual(numbers(3))
    expect(atB.events).toEqual(['turn:3'])
    expect([a.counts.resent, b.counts.early]).toEqual([0, 2])
  })

  test('SES-6 no more than a window is under way; what is behind it leaves when the peer has acknowledged', () => {
    const { clock, a, ofA, atB } = pair(fine, fine, { windowFrames: 8 })
    const before = ofA.weather
    ofA.weather = () => []
    for (const each of numbers(30)) a.send(frame(each))
    expect(ofA.sent.length).toBe(8)
    clock.run(40)
    expect(ofA.sent.length).toBe(8)
    ofA.weather = before
    clock.run()
    expect(atB.texts).toEqual(numbers(30))
  })

  test('SES-7 a frame beyond the window is refused: a peer cannot make this end keep more', () => {
    const { clock, b, atB } = pair(fine, fine, { windowFrames: 4 })
    const forged = sessionFrame({ kind: SessionKind.DATA, from: 1, to: 2, seq: 6, ack: 0 }, frame('far ahead'))
    ;(b as unknown as { receive(frame: Frame): void }).receive(forged)
    clock.run()
    expect(atB.texts).toEqual([])
    expect(b.counts).toMatchObject({ refused: 1, early: 0 })
  })

  test('SES-7 an end that is not opened keeps a window and no more; once it is opened the rest comes', () => {
    const clock = new ByHand()
    const [ofA, ofB] = carriers(clock, fine)
    const a = new Session(ofA, { clock, self: 1, peer: 2, windowFrames: 10 })
    const b = new Session(ofB, { clock, self: 2, peer: 1, windowFrames: 10 })
    for (const each of numbers(35)) a.send(frame(each))
    clock.run(20_000)
    expect(a.unacknowledged).toBe(25)
    expect(b.counts.refused).toBeGreaterThan(0)
    const atB = new Recorder()
    b.open(atB)
    clock.run()
    expect(atB.texts).toEqual(numbers(35))
  })

  test.each([
    ['frames', { keptFramesMax: 100 }, 1, 100],
    ['bytes', { keptBytesMax: 150_000 }, 1000, 98],
  ])(
    'SES-8 when the peer acknowledges nothing and %s are too many, the link breaks: send throws, then onClose',
    (_, options, bytes, room) => {
      const { clock, a, ofA, ofB, atA, atB } = pair(() => [], fine, options)
      for (let i = 0; i < room; i++) a.send(frame(new Uint8Array(bytes)))
      const large = new Uint8Array(20_000)
      expect(() => a.send(frame('one too many', large))).toThrow(expect.objectContaining({ code: 'LINK_CLOSED' }))
      // The frame is still the caller's.
      expect(large.length).toBe(20_000)
      expect(a.closed).toBe(true)
      clock.run()
      expect(atA.closed).toMatchObject({ by: 'peer', detail: expect.stringContaining(`${room} frames`) })
      // The peer learns of it too, since the carrier is closed.
      expect([ofA.closed, ofB.closed]).toEqual([true, true])
      expect(atB.closed).toMatchObject({ by: 'peer' })
      expect(clock.timersSet).toBe(0)
    },
  )

  test('SES-8 what is acknowledged makes room: any number of frames passes under limits of a few', () => {
    const { clock, a, atB } = pair(fine, fine, { keptFramesMax: 4, keptBytesMax: 2000 })
    for (const each of numbers(50)) {
      a.send(frame(each, new Uint8Array(400)))
      clock.run()
    }
    expect(atB.texts).toEqual(numbers(50))
    expect(a.closed).toBe(false)
  })

  test('SES-9 when nothing is acknowledged for the deadline the link breaks at both ends, not before', () => {
    const { clock, a, atA, atB } = pair(() => [])
    a.send(frame('x'))
    clock.run(29_999)
    expect(atA.closed).toBeNull()
    clock.run()
    expect(clock.nowMs).toBe(30_000)
    expect(atA.closed).toEqual({ by: 'peer', detail: 'the other end has acknowledged nothing for 30000 ms' })
    expect(atB.closed).toMatchObject({ by: 'peer' })
    expect(() => a.send(frame('y'))).toThrow(expect.objectContaining({ code: 'LINK_CLOSED' }))
    expect(clock.timersSet).toBe(0)
  })

  test('SES-9 a deadline runs from the last sign of life', () => {
    const { clock, a, ofA, atA } = pair()
    ofA.weather = () => (clock.nowMs % 20_000 === 0 ? [0] : [])
    a.send(frame('0'))
    clock.run(20_000)
    for (let at = 20_000; at <= 60_000; at += 20_000) {
      a.send(frame(`${at}`))
      clock.run(at + 20_000)
    }
    expect(atA.closed).toBeNull()
  })

  test('SES-10 close delivers what was sent before, though all of it is lost at first, and ends when the peer knows', () => {
    const { clock, a, ofA, atA, atB } = pair((_, nth) => (nth <= 60 ? [] : [0]))
    for (const each of numbers(20)) a.send(frame(each))
    a.close()
    expect(() => a.send(frame('late'))).toThrow(expect.objectContaining({ code: 'LINK_CLOSED' }))
    clock.run(1)
    expect(atA.events).toEqual(['close:self:0'])
    expect(ofA.closed).toBe(false)
    clock.run()
    expect(atB.texts).toEqual(numbers(20))
    expect(atB.events.at(-1)).toBe('close:peer:20')
    expect(ofA.closed).toBe(true)
    expect(clock.timersSet).toBe(0)
  })

  test('SES-10 close drops what comes afterwards, and answers it, so that the peer can end', () => {
    const { clock, a, b, atA, atB } = pair((_, nth) => (nth < 3 ? [] : [30]))
    b.send(frame('too late'))
    a.close()
    clock.run()
    expect(atA.texts).toEqual([])
    expect(atB.events).toEqual(['close:peer:0'])
    expect(b.unacknowledged).toBe(0)
  })

  test('SES-11 after close a peer that does not answer is waited for no longer than the deadline', () => {
    const { clock, a, ofA, atA } = pair(() => [])
    a.send(frame('x'))
    clock.run(10_000)
    a.close()
    clock.run()
    expect(clock.nowMs).toBe(30_000)
    expect(ofA.closed).toBe(true)
    expect(atA.events).toEqual(['close:self:0'])
  })

  test("SES-12 the carrier's end is the link's end, behind everything that arrived in order before it", () => {
    const { clock, a, ofA, atA, atB } = pair((sent) => (sessionHead(sent)?.seq === 3 ? [] : [0]))
    for (const each of numbers(4)) a.send(frame(each))
    clock.run(10)
    ofA.close()
    clock.run()
    // The fourth had come, the third never did.
    expect(atB.texts).toEqual(numbers(2))
    expect(atB.closed).toEqual({ by: 'peer', detail: 'the carrier was closed' })
    expect(atA.closed).toEqual({ by: 'peer', detail: 'the carrier was closed' })
    expect(clock.timersSet).toBe(0)
  })

  test('SES-13 over a new carrier the session goes on where it was: nothing lost, nothing twice, in order', () => {
    const { clock, a, b, ofA, atA, atB } = pair((_, nth) => (nth % 3 === 0 ? [] : [nth % 7]), fine, { reconnectMs: 5000 })
    const sent: string[] = []
    let old = ofA
    for (let round = 0; round < 5; round++) {
      for (const each of numbers(10, 10 * round)) {
        sent.push(each)
        a.send(frame(each))
        b.send(frame(each))
      }
      clock.run(clock.nowMs + 3)
      old.close()
      clock.run(clock.nowMs + 1000)
      expect([a.closed, b.closed]).toEqual([false, false])
      a.send(frame(`between ${round}`))
      sent.push(`between ${round}`)
      const [ofNewA, ofNewB] = carriers(clock, (_, nth) => (nth % 4 === 0 ? [] : [nth % 5]))
      a.reconnect(ofNewA)
      b.reconnect(ofNewB)
      // Once more, before anything has passed: the one in between is closed.
      const [ofNewestA, ofNewestB] = carriers(clock, (_, nth) => (nth % 4 === 0 ? [] : [nth % 5]))
      a.reconnect(ofNewestA)
      b.reconnect(ofNewestB)
      expect([ofNewA.closed, ofNewB.closed]).toEqual([true, true])
      old = ofNewestA
    }
    clock.run()
    expect(atB.texts).toEqual(sent)
    expect(atA.texts).toEqual(sent.filter((each) => !each.startsWith('between')))
  })

  test('SES-13 what was under way when the carrier ended is sent again at once, and the peer is told at once what has arrived', () => {
    const { clock, a, b, ofA, atB } = pair(() => [], fine, { reconnectMs: 5000 })
    for (const each of numbers(10)) a.send(frame(each))
    b.send(frame('arrived'))
    clock.run(1)
    ofA.close()
    clock.run(2)
    const [ofNewA, ofNewB] = carriers(clock, fine)
    a.reconnect(ofNewA)
    b.reconnect(ofNewB)
    clock.run(2)
    expect(atB.texts).toEqual(numbers(10))
    expect(b.unacknowledged).toBe(0)
  })

  test('SES-13 a session that nobody reconnects breaks, and one that is over closes what it is given', () => {
    const { clock, a, ofA, atA } = pair(fine, fine, { reconnectMs: 5000 })
    ofA.close()
    clock.run(4999)
    expect(a.closed).toBe(false)
    clock.run()
    expect(atA.closed).toEqual({ by: 'peer', detail: 'the carrier was closed; nobody reconnected in 5000 ms' })
    const [late] = carriers(clock, fine)
    a.reconnect(late)
    expect(late.closed).toBe(true)
  })

  test('SES-13 so long as it waits for a carrier it does not wonder that nothing is acknowledged', () => {
    const { clock, a, b, ofA, atB } = pair(fine, fine, { reconnectMs: 60_000, giveUpMs: 1000 })
    ofA.close()
    a.send(frame('kept'))
    clock.run(50_000)
    expect(a.closed).toBe(false)
    const [ofNewA, ofNewB] = carriers(clock, fine)
    a.reconnect(ofNewA)
    b.reconnect(ofNewB)
    clock.run()
    expect(atB.texts).toEqual(['kept'])
    expect(a.unacknowledged).toBe(0)
  })

  test('SES-14 frames of another incarnation, of no session, or that acknowledge what was never sent are refused', () => {
    const { clock, a, b, atB } = pair()
    const receive = (got: Frame) => (b as unknown as { receive(frame: Frame): void }).receive(got)
    a.send(frame('mine'))
    clock.run()
    const head = { kind: SessionKind.DATA, from: 1, to: 2, seq: 2, ack: 0 }
    receive(sessionFrame({ ...head, from: 9 }, frame('of the former life of a')))
    receive(sessionFrame({ ...head, to: 9 }, frame('for the former life of b')))
    receive(sessionFrame({ ...head, ack: 1 }, frame('acknowledges nothing that there is')))
    receive(frame('not of a session'))
    const damaged = sessionFrame(head, frame('of a version to come'))
    damaged.header[1] = 2
    receive(damaged)
    clock.run()
    expect(atB.texts).toEqual(['mine'])
    expect(b.counts.refused).toBe(5)
  })

  test('SES-15 the same session over a carrier that keeps its promise sends each frame once, and is silent when all is said', () => {
    const { clock, a, b, atA, atB } = pair()
    atB.onEach = (got) => b.send(frame(`re ${text(got.header)}`))
    for (const each of numbers(100)) a.send(frame(each))
    clock.run()
    expect(atA.frames.length).toBe(100)
    expect([a.counts.resent, b.counts.resent, a.counts.duplicates, b.counts.duplicates]).toEqual([0, 0, 0, 0])
    expect(clock.timersSet).toBe(0)
    expect(clock.nowMs).toBeLessThan(10)
  })

  test('SES-16 a MessagePort link posts the frame and nothing of a session: no byte, no acknowledgement', async () => {
    const { port1, port2 } = new MessageChannel()
    const posts: unknown[] = []
    port2.on('message', (post: unknown) => posts.push(post))
    const link = messagePortLink(port1)
    link.open(new Recorder())
    link.send(frame('12345678'))
    await new Promise((resolve) => realClock.setTimer(30, () => resolve(null)))
    // The count of frames, the lengths of header and segments, the header: 8 bytes each (`post.ts`). A session would write 32 more.
    expect(posts.map((post) => (post as string).length)).toEqual([24])
    link.close()
    port2.close()
  })

  test('SES-19 a carrier that takes gets other bytes each time, and may write to them', () => {
    const { clock, a, ofA, atB } = pair((_, nth) => (nth === 1 ? [] : [0]), fine)
    a.send(frame('x'))
    ofA.sent[0]?.header.fill(0)
    clock.run()
    expect([atB.texts, a.counts.resent]).toEqual([['x'], 1])
  })

  describe('over a carrier that does not lose', () => {
    const lossless: Partial<SessionOptions> = { carrierLoses: false, carrierTakes: false, reconnectMs: Number.POSITIVE_INFINITY }

    test('SES-17 nothing is sent again and nobody is given up, however long it takes', () => {
      const { clock, a, ofA, ofB, atA, atB } = pair(() => [100_000], fine, lossless)
      for (const each of numbers(20)) a.send(frame(each))
      clock.run(90_000)
      expect([ofA.sent.length, a.counts.resent, clock.timersSet, atA.closed]).toEqual([20, 0, 20, null])
      clock.run()
      expect(atB.texts).toEqual(numbers(20))
      expect([a.unacknowledged, ofB.sent.length, clock.timersSet]).toEqual([0, 1, 0])
    })

    test('SES-17 on a new carrier what is not acknowledged is sent again, all of a window, and nothing arrives twice', () => {
      const { clock, a, b, ofA, atB } = pair(
        (_, nth) => (nth <= 5 ? [0] : []),
        () => [],
        lossless,
      )
      for (const each of numbers(20)) a.send(frame(each, new Uint8Array(10_000)))
      clock.run(100)
      expect(atB.texts).toEqual(numbers(5))
      ofA.close()
      a.send(frame('20'))
      clock.run(200_000)
      expect([a.closed, b.closed]).toEqual([false, false])
      const [ofNewA, ofNewB] = carriers(clock, fine)
      a.reconnect(ofNewA)
      b.reconnect(ofNewB)
      clock.run()
      expect(atB.texts).toEqual(numbers(21))
      expect(atB.frames.slice(0, 20).map(({ segments }) => segments[0]!.length)).toEqual(Array(20).fill(10_000))
      expect([a.unacknowledged, b.counts.duplicates, clock.timersSet]).toEqual([0, 5, 0])
    })

    test('SES-17 an end that is not opened holds the other back by a window, for nothing comes again; once it is opened the rest comes', () => {
      const clock = new ByHand()
      const [ofA, ofB] = carriers(clock, fine)
      const a = new Session(ofA, { clock, self: 1, peer: 2, windowFrames: 10, ...lossless })
      const b = new Session(ofB, { clock, self: 2, peer: 1, windowFrames: 10, ...lossless })
      for (const each of numbers(35)) a.send(frame(each))
      a.close()
      clock.run(1000)
      expect([a.unacknowledged, ofA.sent.length, b.counts.refused]).toEqual([36, 10, 0])
      const atB = new Recorder()
      b.open(atB)
      clock.run(2000)
      expect(atB.texts).toEqual(numbers(35))
      expect(atB.events.at(-1)).toBe('close:peer:35')
      expect([a.unacknowledged, clock.timersSet]).toEqual([0, 0])
    })

    test('SES-23 what has overtaken is delivered at once, with how many are still to come; each once, and nothing is acknowledged before its turn', () => {
      const { clock, a, b, ofA, atB } = pair(overtaking('large'), fine, lossless)
      for (const each of ['0', 'large', 'a', 'b', '4', 'c'])
        a.send(frame(each), each === 'a' || each === 'b' || each === 'c' ? NO_ORDER : EVERY_ORDER)
      clock.run(50)
      expect(seen(atB)).toEqual(['0:0', 'a:1', 'b:1', 'c:2'])
      expect([a.unacknowledged, b.counts.ahead, b.counts.early, b.counts.refused]).toEqual([5, 3, 0, 0])
      clock.run()
      expect(seen(atB)).toEqual(['0:0', 'a:1', 'b:1', 'c:2', 'large:0', '4:0'])
      expect([a.unacknowledged, ofA.sent.length, b.counts.duplicates, clock.timersSet]).toEqual([0, 6, 0, 0])
    })

    test('SES-23 on a new carrier it comes again and is dropped; what was overtaken comes in its turn', () => {
      const { clock, a, b, ofA, atB } = pair(overtaking('large'), fine, lossless)
      for (const each of ['large', 'a', '2']) a.send(frame(each), each === 'a' ? NO_ORDER : EVERY_ORDER)
      clock.run(50)
      ofA.close()
      clock.run(60)
      const [ofNewA, ofNewB] = carriers(clock, fine)
      a.reconnect(ofNewA)
      b.reconnect(ofNewB)
      a.send(frame('d'), NO_ORDER)
      clock.run()
      expect(seen(atB)).toEqual(['a:1', 'large:0', '2:0', 'd:0'])
      expect([b.counts.duplicates, b.counts.refused, a.unacknowledged]).toEqual([1, 0, 0])
    })

    test('SES-23 the end stands behind everything; who has closed drops what overtakes, and the other end still ends', () => {
      const one = pair(overtaking('large'), fine, lossless)
      one.a.send(frame('large'))
      one.a.send(frame('a'), NO_ORDER)
      one.a.close()
      one.clock.run()
      expect([...seen(one.atB), one.atB.events.at(-1)]).toEqual(['a:1', 'large:0', 'close:peer:2'])
      const two = pair(overtaking('large'), fine, lossless)
      two.a.send(frame('large'))
      two.a.send(frame('a'), NO_ORDER)
      two.b.close()
      two.a.close()
      two.clock.run()
      expect([seen(two.atB), two.a.unacknowledged, two.clock.timersSet]).toEqual([[], 0, 0])
    })

    test('SES-23 in front of `open` nothing overtakes; closed there, the other end still ends', () => {
      for (const opens of [true, false]) {
        const clock = new ByHand()
        const [ofA, ofB] = carriers(clock, overtaking('large'))
        const a = new Session(ofA, { clock, self: 1, peer: 2, ...lossless })
        const b = new Session(ofB, { clock, self: 2, peer: 1, ...lossless })
        const atB = new Recorder()
        for (const each of ['0', 'large', 'a', '3']) a.send(frame(each), each === 'a' ? NO_ORDER : EVERY_ORDER)
        clock.run(50)
        expect([b.counts.early, b.counts.ahead]).toEqual([1, 0])
        if (opens) b.open(atB)
        else b.close()
        clock.run(300)
        expect(seen(atB)).toEqual(opens ? ['0:0', 'large:0', 'a:0', '3:0'] : [])
        a.close()
        if (opens) b.close()
        clock.run()
        expect([a.unacknowledged, clock.timersSet]).toEqual([0, 0])
      }
    })

    test('SES-22 SES-23 a peer that lets frames overtake without end gets a window of them taken, and no more', () => {
      const clock = new ByHand()
      const [ofA, ofB] = carriers(clock, fine)
      const b = new Session(ofB, { clock, self: 2, peer: 1, windowFrames: 10, ...lossless })
      const atB = new Recorder()
      b.open(atB)
      for (let seq = 2; seq <= 40; seq++) {
        const sent = sessionFrame({ kind: SessionKind.DATA, from: 1, to: 2, seq, ack: 0 }, frame(`${seq}`))
        ofB.receiver?.onFrame({ ...sent, overtook: 1 })
        ofB.receiver?.onFrame({ ...sent, overtook: 1 })
      }
      ofA.flush()
      expect([atB.frames.length, b.counts.ahead, b.counts.duplicates, b.counts.refused]).toEqual([9, 9, 9, 60])
      expect(atB.frames.map(({ overtook }) => overtook)).toEqual(Array(9).fill(1))
    })

    test('SES-18 a session may begin without a carrier, and says when it wants one; the first is like any other', () => {
      const clock = new ByHand()
      let wanted = 0
      const a = new Session(null, { clock, self: 1, peer: null, onWant: () => wanted++, ...lossless })
      const atA = new Recorder()
      a.open(atA)
      expect(a.poll()).toBe(0)
      a.flush()
      expect(wanted).toBe(0)
      a.send(frame('0'))
      a.send(frame('1'))
      clock.run(100_000)
      expect([wanted, a.unacknowledged, a.counts.sent]).toEqual([2, 2, 0])
      const [ofA, ofB] = carriers(clock, fine)
      const b = new Session(ofB, { clock, self: 2, peer: 1, ...lossless })
      const atB = new Recorder()
      b.open(atB)
      a.reconnect(ofA, 2)
      clock.run()
      expect(atB.texts).toEqual(numbers(2))
      expect([a.counts.sent, a.counts.resent, a.unacknowledged]).toEqual([2, 0, 0])
    })

    test('SES-24 what waits for a carrier, or for the window, is not flushed; with the end of the session nobody waits', () => {
      const clock = new ByHand()
      const told: [text: string, isFlushed: boolean][] = []
      const send = (session: Session, text: string) => session.send(frame(text), EVERY_ORDER, (isFlushed) => told.push([text, isFlushed]))
      const a = new Session(null, { clock, self: 1, peer: null, windowFrames: 2, ...lossless })
      a.open(new Recorder())
      for (const each of numbers(3)) send(a, each)
      expect(told).toEqual([])
      const [ofA, ofB] = carriers(clock, fine)
      const b = new Session(ofB, { clock, self: 2, peer: 1, windowFrames: 2, ...lossless })
      b.open(new Recorder())
      a.reconnect(ofA, 2)
      // Of three frames two are under way.
      expect([a.counts.sent, told.length]).toEqual([2, 2])
      clock.run()
      expect([a.counts.sent, told]).toEqual([3, numbers(3).map((text) => [text, true])])
      const lone = new Session(null, { clock, self: 1, peer: null, ...lossless })
      send(lone, 'never')
      lone.abandon('enough')
      expect(told.at(-1)).toEqual(['never', false])
    })

    test('SES-24 what a carrier that breaks had not flushed is flushed by the next, or has come; each is told once, by its own frame', () => {
      const { clock, a, b, ofA, atB } = pair(fine, fine, { ...lossless, reconnectMs: Number.POSITIVE_INFINITY })
      const told: string[] = []
      const send = (text: string) => a.send(frame(text), EVERY_ORDER, (isFlushed) => told.push(`${text} ${isFlushed}`))
      send('0')
      expect(told).toEqual(['0 true'])
      ofA.isFull = true
      send('1')
      ofA.close()
      for (const fn of ofA.unflushed.splice(0)) fn(true)
      send('2')
      clock.run(100)
      // 2 was given to nobody, and 1 to a carrier that had not flushed it.
      expect(told.filter((text) => !text.startsWith('1'))).toEqual(['0 true'])
      const [toB, toA] = carriers(clock, fine)
      b.reconnect(toA)
      a.reconnect(toB)
      clock.run()
      expect([told, atB.texts]).toEqual([['0 true', '1 true', '2 true'], numbers(3)])
    })

    test('SES-25 a pause is passed on to the carrier, and to the one that takes its place; `close` ends it', () => {
      const { clock, a, b, ofB, atB } = pair(fine, fine, { ...lossless, reconnectMs: Number.POSITIVE_INFINITY })
      const pauses: string[] = []
      const watched = (name: string, link: Link): Link => Object.assign(link, { setPaused: (is: boolean) => pauses.push(`${name} ${is}`) })
      watched('first', ofB)
      b.setPaused(true)
      const [toB, toA] = carriers(clock, fine)
      b.reconnect(watched('second', toA))
      a.reconnect(toB)
      b.setPaused(false)
      a.send(frame('x'))
      clock.run(10)
      b.setPaused(true)
      b.close()
      expect([pauses, atB.texts]).toEqual([['first true', 'second true', 'second false', 'second true', 'second false'], ['x']])
    })

    test('SOCK-15 what brings nothing is told to the carrier: acknowledgements of nothing new, frames that were here, and those that are refused', () => {
      const { clock, a, ofA, ofB, atB } = pair(fine, fine, { ...lossless, reconnectMs: Number.POSITIVE_INFINITY })
      let idle = 0
      Object.assign(ofB, { idle: () => idle++ })
      for (let i = 0; i < 20; i++) a.send(frame(`${i}`))
      clock.run(50)
      expect([idle, atB.frames.length]).toEqual([0, 20])
      const say = (kind: SessionKind, seq: number, from = 1) => ofA.send(sessionFrame({ kind, from, to: 2, seq, ack: 0 }, null))
      for (let i = 0; i < 3; i++) say(SessionKind.ACK, 0)
      for (let i = 0; i < 3; i++) say(SessionKind.DATA, 5)
      for (let i = 0; i < 3; i++) say(SessionKind.DATA, 5000)
      for (let i = 0; i < 3; i++) say(SessionKind.DATA, 21, 9)
      clock.run(100)
      expect([idle, atB.frames.length]).toEqual([12, 20])
    })

    test('SES-18 one that never said anything closes at once; one that did waits for a carrier, but not for ever', () => {
      const clock = new ByHand()
      const over: string[] = []
      const session = (name: string) => new Session(null, { clock, self: 1, peer: null, onOver: () => over.push(name), ...lossless })
      const [silent, spoke] = [session('silent'), session('spoke')]
      const [atSilent, atSpoke] = [new Recorder(), new Recorder()]
      silent.open(atSilent)
      spoke.open(atSpoke)
      spoke.send(frame('x'))
      silent.close()
      spoke.close()
      expect(over).toEqual(['silent'])
      clock.run(29_999)
      expect([atSilent.events, atSpoke.events, over]).toEqual([['close:self:0'], ['close:self:0'], ['silent']])
      clock.run()
      expect([over, clock.timersSet, clock.nowMs]).toEqual([['silent', 'spoke'], 0, 30_000])
    })

    test('SES-19 a carrier that borrows gets large segments where they lie; their sender finds them empty, copies stay copies', () => {
      const { clock, a, ofA, atB } = pair(fine, fine, lossless)
      const large = new Uint8Array(10_000).fill(1)
      const whole = new Uint8Array(30_000).fill(2)
      const view = whole.subarray(8, 20_008)
      const shared = new Uint8Array(new SharedArrayBuffer(10_000)).fill(3)
      const sent: Frame = frame('header', large, new Uint8Array([4]), view, shared, large)
      a.send(sent)
      for (const each of [whole, shared]) each.fill(9)
      expect([large.length, view.length, shared.length]).toEqual([0, 20_000, 10_000])
      // Moved, so its buffer is the segment; sent twice, it is the same both times.
      const { segments } = ofA.sent[0] as Frame
      expect([segments[0]!.buffer.byteLength, segments[0] === segments[4]]).toEqual([10_000, true])
      clock.run()
      const got = atB.frames[0] as Frame
      expect(text(got.header)).toBe('header')
      expect(got.segments.map((segment) => [segment.length, segment[0], segment.at(-1)])).toEqual([
        [10_000, 1, 1],
        [1, 4, 4],
        [20_000, 2, 2],
        [10_000, 3, 3],
        [10_000, 1, 1],
      ])
    })

    test('SES-19 many small frames of any size keep their bytes until they are acknowledged', () => {
      const { clock, a, b, ofA, atB } = pair(() => [], fine, lossless)
      const sizes = Array.from({ length: 900 }, (_, i) => (i * 37) % 400)
      for (const [i, size] of sizes.entries()) a.send(frame(new Uint8Array(size).fill(i), new Uint8Array(size >> 1).fill(i + 1)))
      ofA.close()
      const [ofNewA, ofNewB] = carriers(clock, fine)
      a.reconnect(ofNewA)
      b.reconnect(ofNewB)
      clock.run()
      expect(atB.frames.length).toBe(900)
      for (const [i, { header, segments }] of atB.frames.entries()) {
        expect([header.length, segments[0]!.length]).toEqual([sizes[i], (sizes[i] as number) >> 1])
        expect(header.every((byte) => byte === (i & 0xff)) && segments[0]!.every((byte) => byte === ((i + 1) & 0xff))).toBe(true)
      }
    })

    test('SES-20 abandon ends the link as its carrier would, behind what has arrived', () => {
      const { clock, a, b, atA, atB } = pair(fine, fine, lossless)
      a.send(frame('0'))
      clock.run(1)
      b.abandon('its process has ended')
      b.abandon('again')
      clock.run()
      expect(atB.events).toEqual(['turn:1', 'close:peer:1'])
      expect(atB.closed).toEqual({ by: 'peer', detail: 'its process has ended' })
      expect(() => b.send(frame('late'))).toThrow(expect.objectContaining({ code: 'LINK_CLOSED' }))
      // Its carrier was closed with it. A waits for another, or for `abandon`.
      expect([a.closed, clock.timersSet]).toEqual([false, 0])
      a.abandon('told')
      clock.run()
      expect(atA.closed?.detail).toBe('told')
    })

    test('SES-21 what no carrier would take is refused at send, and stays its sender’s', () => {
      const check = ({ segments }: Frame) => {
        if (segments.length > 1) throw new Error('too many')
      }
      const { clock, a, atB } = pair(fine, fine, { ...lossless, check })
      const large = new Uint8Array(10_000)
      expect(() => a.send(frame('x', large, large))).toThrow('too many')
      a.send(frame('y', large))
      clock.run()
      expect([atB.texts, a.closed]).toEqual([['y'], false])
    })

    test('SES-22 a frame ahead of its turn, which nothing but malice sends, is refused and not kept', () => {
      const clock = new ByHand()
      const [ofA, ofB] = carriers(clock, fine)
      const b = new Session(ofB, { clock, self: 2, peer: 1, ...lossless })
      const atB = new Recorder()
      b.open(atB)
      const send = (seq: number, name: string) =>
        ofA.send(sessionFrame({ kind: SessionKind.DATA, from: 1, to: 2, seq, ack: 0 }, frame(name)))
      for (const seq of [2, 3, 1000, 1024]) send(seq, 'ahead')
      send(1, 'first')
      send(2, 'second')
      clock.run()
      expect([atB.texts, b.counts.refused, b.counts.early]).toEqual([['first', 'second'], 4, 0])
    })
  })

  test('what a link is told of its end fits LinkClosed', () => {
    const { clock, a, atA } = pair()
    a.close()
    clock.run()
    const closed: LinkClosed | null = atA.closed
    expect(closed).toEqual({ by: 'self', detail: expect.any(String) })
  })
})
