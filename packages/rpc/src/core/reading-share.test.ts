/** Whose messages cost reading time, and when: with a clock by hand, and a reader that takes a given time. */
import { expect, test } from '@jest/globals'
import type { Clock, Frame } from '@postgrad/transport'
import type { Allowance } from '@postgrad/transport/internal'
import type { Gate } from './hooks.js'
import { READING_MS_MAX } from './inflow.js'
import type { Peer } from './peer.js'
import { ReadingShare } from './reading-share.js'

function share(gate: object | null = { isRestricted: ({ role }: Peer) => role === 'observer' }) {
  let nowMs = 1e6
  const clock = { now: () => nowMs } as Clock
  const reader = {
    gate: gate as Gate | null,
    receive: (_: Peer, ms: Frame) => {
      nowMs += ms as unknown as number
    },
  }
  const counted: { readonly role: string; readonly ms: number; readonly pauseMs: number }[] = []
  const peerOf = (role: string): Peer =>
    ({ role, inflow: { onRead: (to: Allowance, ms: number) => counted.push({ role, ms, pauseMs: to.spend(ms) }) } }) as unknown as Peer
  const reading = new ReadingShare(clock, reader)
  const read = (peer: Peer, ms: number): void => reading.receive(peer, ms as unknown as Frame)
  const pass = (ms: number): void => {
    nowMs += ms
  }
  return { read, pass, peerOf, counted }
}

test('CRE-19: of a restricted role what it takes to read is counted, in one allowance, while others send something', () => {
  const { read, peerOf, counted } = share()
  const [first, second, member] = [peerOf('observer'), peerOf('observer'), peerOf('member')]
  read(member, 50)
  read(first, READING_MS_MAX)
  read(second, 8)
  expect(counted.map(({ ms }) => ms)).toEqual([READING_MS_MAX, 8])
  expect(counted.map(({ pauseMs }) => pauseMs > 0)).toEqual([false, true])
})

test('CRE-19: a worker that hears of nobody else reads as fast as it can, until a second after the next message of another', () => {
  const { read, pass, peerOf, counted } = share()
  const [observer, member] = [peerOf('observer'), peerOf('member')]
  read(observer, 400)
  expect(counted).toEqual([])
  read(member, 1)
  read(observer, 400)
  read(observer, 400)
  expect(counted).toHaveLength(2)
  pass(1001)
  read(observer, 8)
  expect(counted).toHaveLength(2)
})

test('CRE-19: where nothing is restricted nothing is counted', () => {
  const { read, peerOf, counted } = share(null)
  read(peerOf('member'), 1)
  read(peerOf('observer'), 400)
  expect(counted).toEqual([])
})
