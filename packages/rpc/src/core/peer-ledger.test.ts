/** The counts of two ends of a pair, without a link: which totals the sender gets, when, and which it refuses. */
import { expect, test } from '@jest/globals'
import { Random } from '@postgrad/sim/internal'
import type { Clock, Frame } from '@postgrad/transport'
import { MessageType } from '@postgrad/wire/internal'
import { checkMailbox } from './call-credits.js'
import { bytesOf, PeerLedger } from './peer-ledger.js'

const CLOCK: Clock = { now: () => 0, setTimer: () => ({ cancel: () => {} }), defer: () => {} }
const FRAME: Frame = { header: new Uint8Array(10), segments: [] }
const { CALL, RREF_FETCH, RESULT, GROUP_UPDATE } = MessageType

function pair(callsMax: number) {
  const ledger = () => new PeerLedger(checkMailbox({ callsMax }), CLOCK, null)
  const [a, b] = [ledger(), ledger()]
  /** A message from `a` to `b`; returns what it counts at `b`. */
  const pass = (type: MessageType, isReadable = true): number => {
    a.onWriting()
    a.onSent(type, bytesOf(FRAME))
    b.onReading(FRAME)
    const bytes = b.onRead(type, FRAME, isReadable)
    b.incomingOf(type)?.onReceived(bytes)
    return bytes
  }
  return { a, b, pass }
}

test('CRE-14: one word says how far the receiver has come with everything, and nothing of it is said twice', () => {
  const { a, b, pass } = pair(4)
  for (const type of [CALL, RREF_FETCH, CALL, RESULT]) pass(type)
  expect(b.onBegun(CALL, 10)).toBe(false)
  expect(b.take()).toBeNull()
  expect(b.onBegun(RREF_FETCH, 10)).toBe(false)
  expect(b.onBegun(CALL, 10)).toBe(true)
  b.onTaken(7, 16)
  expect(a.outgoing.calls + a.outgoingFetches.calls).toBe(3)
  const said = b.take()!
  expect(said).toEqual([4, 2, 20, 1, 10, [[7, 16]]])
  expect(b.take()).toBeNull()
  // The fetch was in the same totals.
  expect([b.incoming.untold, b.incomingFetches.untold]).toEqual([0, 0])
  expect(a.onProgress(said)).toBe(true)
  expect([a.outgoing.calls, a.outgoing.bytes, a.outgoingFetches.calls, a.outgoingFetches.bytes]).toEqual([0, 0, 0, 0])
})

test('CRE-14: what was said earlier, or twice, takes nothing back', () => {
  const { a, b, pass } = pair(2)
  const words = [CALL, CALL].map((type) => {
    b.onBegun(type, pass(type))
    return b.take()!
  })
  for (const word of [words[1]!, words[0]!, words[1]!]) expect(a.onProgress(word)).toBe(true)
  expect([a.outgoing.calls, a.outgoing.bytes]).toEqual([0, 0])
})

test('RPC-50: more than has left is refused as a whole, whichever number it is', () => {
  const { a, pass } = pair(8)
  for (const type of [CALL, CALL, RREF_FETCH]) pass(type)
  const most = [3, 2, 20, 1, 10] as const
  for (const at of most.keys()) {
    const [read, begun, bytes, fetches, fetchBytes] = most.map((total, i) => (i === at ? total + 1 : total)) as [
      number,
      number,
      number,
      number,
      number,
    ]
    expect(a.onProgress([read, begun, bytes, fetches, fetchBytes, []])).toBe(false)
  }
  expect([a.outgoing.calls, a.outgoingFetches.calls]).toEqual([2, 1])
  expect(a.onProgress([...most, []])).toBe(true)
  expect([a.outgoing.calls, a.outgoingFetches.calls]).toEqual([0, 0])
})

test('HEAP-4: while a message to the peer is written, nothing else is said to it; behind that it is', () => {
  const { b } = pair(8)
  b.onWriting()
  b.onTaken(7, 16)
  expect(b.take()).toBeNull()
  b.onSent(RESULT, bytesOf(FRAME))
  expect(b.take()).toEqual([0, 0, 0, 0, 0, [[7, 16]]])
})

test('SHD-1: messages of groups, and what could not be read, have numbers, and the end of a group counts without the former', () => {
  const { a, b, pass } = pair(8)
  pass(CALL)
  pass(GROUP_UPDATE)
  pass(RESULT, false)
  expect([a.sent, b.received]).toEqual([3, 3])
  expect([a.traffic.sent, b.traffic.received]).toEqual([2, 2])
})

test('CRE-15 what has overtaken others counts with all that came, but is not said to be read before them', () => {
  const { b } = pair(4)
  const come = (overtook: number) => b.onReading({ ...FRAME, overtook })
  const said = (): number => {
    b.isDue = true
    return b.take()![0]
  }
  expect([come(0), come(2), come(2), said(), b.traffic.received]).toEqual([1, 4, 5, 1, 1])
  // The number of each is its place among those that were sent, whenever it comes.
  expect([come(0), said()]).toEqual([2, 2])
  expect([come(1), said()]).toEqual([6, 2])
  // The gap is filled, and the peer learns of those after it too.
  expect([come(0), b.take()![0], b.traffic.received]).toEqual([3, 6, 6])
  expect([come(0), said()]).toEqual([7, 7])
})

test('CRE-15 whatever overtakes whatever: each gets the number that it was sent under, and no more is said to be read than has come', () => {
  const random = new Random(11)
  for (let run = 0; run < 200; run++) {
    const { b } = pair(4)
    const left = Array.from({ length: 30 }, (_, i) => i + 1)
    const come = new Set<number>()
    while (left.length > 0) {
      const overtook = random.below(Math.min(left.length, 5))
      const [sent] = left.splice(overtook, 1) as [number]
      come.add(sent)
      expect({ run, number: b.onReading({ ...FRAME, overtook }) }).toEqual({ run, number: sent })
      let read = 0
      while (come.has(read + 1)) read++
      expect({ run, read: b.received }).toEqual({ run, read })
    }
  }
})

test('LATE-2 a message that waits counts as sent, takes room, and gets its number when it leaves', () => {
  const { a, pass } = pair(2)
  a.onWriting()
  const call = a.onPlaced(CALL, 10)
  a.onWriting()
  const dropped = a.onPlaced(RESULT, 10)
  expect([a.traffic.sent, a.sent, a.outgoing.calls]).toEqual([2, 0, 1])
  pass(RESULT)
  expect(a.sent).toBe(1)
  expect(a.onLeft(CALL, call, null)).toBe(2)
  a.onDropped(dropped)
  expect([a.traffic.sent, a.sent, a.outgoing.calls, a.outgoing.bytes]).toEqual([3, 2, 1, 10])
})

test('LATE-3 a failure takes the room of its own bytes, as its receiver counts them', () => {
  const { a } = pair(2)
  a.onWriting()
  const call = a.onPlaced(CALL, 1000)
  expect(a.outgoing.bytes).toBe(1000)
  expect(a.onLeft(CALL, call, 40)).toBe(1)
  expect(a.outgoing.bytes).toBe(40)
})
