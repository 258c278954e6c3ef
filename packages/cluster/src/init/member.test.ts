/** Which listeners a member calls, over fake parts that only report events to it. */
import { describe, expect, test } from '@jest/globals'
import { PostgradError } from '@postgrad/base'
import { type PeerHealth, type PeerName, RealClock } from '@postgrad/transport/internal'
import { Member, type MemberParts } from './member.js'

function setUp() {
  let health = (_peer: PeerName, _health: PeerHealth): void => {}
  let lost = (_error: PostgradError): void => {}
  const deferred: (() => void)[] = []
  const clock = Object.assign(new RealClock(), { defer: (fn: () => void) => deferred.push(fn) })
  const parts = {
    clock,
    suspectMs: 300,
    runtime: { onClose: () => {} },
    group: { whenStoreLost: (listener: typeof lost) => (lost = listener) },
    exchange: { onPeerHealth: (listener: typeof health) => (health = listener) },
  }
  const member = new Member(parts as unknown as MemberParts)
  return {
    member,
    deferred,
    health: (state: PeerHealth) => health({ name: 'one', id: 1 }, state),
    lost: (error: PostgradError) => lost(error),
  }
}

const failing = (): never => {
  throw new Error('a listener of the program')
}

test('INI-18 run hands its arguments on, as cluster.on(name).run does', async () => {
  const runtime = { run: (fn: () => unknown) => fn(), onClose: () => {} }
  const member = new Member({ group: { whenStoreLost: () => {} }, exchange: { onPeerHealth: () => {} }, runtime } as unknown as MemberParts)
  expect(await member.run((a: number, b: string) => `${a}${b}`, 1, 'x')).toBe('1x')
  expect(await member.run(async () => 2)).toBe(2)
})

test('INI-16 INI-17 a listener that is not a function is refused at once', () => {
  const { member } = setUp()
  for (const method of ['onStoreLost', 'onWorkerStalled', 'onWorkerRecovered'] as const) {
    const wrong = (): unknown => member[method]('no' as never)
    expect(wrong).toThrow(expect.objectContaining({ code: 'INVALID_ARGUMENT', op: `member.${method}` }))
  }
})

describe('a listener that throws', () => {
  test('INI-16 INI-17 keeps no other from being told, and what it throws is uncaught', () => {
    const { member, deferred, health, lost } = setUp()
    const told: unknown[] = []
    member.onWorkerStalled(failing)
    member.onWorkerStalled((worker, { code }) => told.push([worker, code]))
    member.onWorkerRecovered(failing)
    member.onWorkerRecovered((worker) => told.push([worker, 'recovered']))
    member.onStoreLost(failing)
    member.onStoreLost(({ code }) => told.push(code))
    health('standing-still')
    health('well')
    lost(new PostgradError('STORE_LOST', { op: 'init', message: 'it has ended', remedy: 'Come again.' }))
    const one = { name: 'one', id: 1 }
    expect(told).toEqual([[one, 'WORKER_STALLED'], [one, 'recovered'], 'STORE_LOST'])
    expect(deferred).toHaveLength(3)
    for (const thrown of deferred) expect(thrown).toThrow('a listener of the program')
  })
})
