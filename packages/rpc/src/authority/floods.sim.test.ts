/** Floods of every kind of message by an observer: its messages wait at the member within bounds, others are served meanwhile, and all have their turn. */
import { describe, expect, test } from '@jest/globals'
import type { Frame } from '@postgrad/transport'
import { MESSAGE_TABLE, type MessageBodies, MessageType } from '@postgrad/wire/internal'
import { currentRuntime } from '../api/api.js'
import { OTHERS_WAITING_MAX, REFUSALS_MAX, REFUSALS_PER_SECOND } from '../core/inflow.js'
import { GroupWhat } from '../groups/group-protocol.js'
import { call, expose } from '../index.js'
import { Cluster, cutShort, failure } from '../worker/sim-cluster.suite.js'
import type { WorkerRuntime } from '../worker/worker-runtime.js'
import { rolePolicy } from './role-policy.js'

const may = (x: number): number => x + 1
let ran = 0
const mayNot = (): number => ++ran
/** Each gives as much as an observer leaves unread at once. */
const much = (): Uint8Array => new Uint8Array(2 ** 20)
expose({ 'floods.may': may, 'floods.mayNot': mayNot, 'floods.much': much })

const [MEMBER, OTHER, OBSERVER] = [0, 1, 2]
const WINDOW = 64
/** Of each kind, in one go. */
const FLOOD = OTHERS_WAITING_MAX + 400
const ID = (BigInt(OBSERVER) << 48n) | 5n
const error = new Error('forged')

/** Total by type: a kind that is added does not compile without one. */
const BODIES: { readonly [T in MessageType]: MessageBodies[T] } = {
  [MessageType.CALL]: ['floods.mayNot', []],
  [MessageType.RESULT]: [1],
  [MessageType.EXCEPTION]: [error, false],
  [MessageType.REMOTE_CALL]: ['floods.mayNot', [], ID, ID + 1n],
  [MessageType.REMOTE_RET]: [ID, ID, null],
  [MessageType.RREF_FETCH]: [ID],
  [MessageType.RREF_USER_DELETE]: [ID, ID],
  [MessageType.RREF_FORK_REQUEST]: [ID, ID],
  [MessageType.RREF_CHILD_ACCEPT]: [ID],
  [MessageType.RREF_ACK]: [ID],
  [MessageType.CALL_CANCEL]: [99_999, false],
  [MessageType.STREAM_ITEM]: [1],
  [MessageType.GROUP_UPDATE]: [GroupWhat.SEEN, null, null],
  [MessageType.PROPAGATE_GRADIENTS]: [[null], 0],
  [MessageType.PASS_REPORT]: [1, 1, [], 0, []],
  [MessageType.PASS_ERROR]: [error],
  [MessageType.PASS_ABORT]: [error],
  [MessageType.CLEANUP_CONTEXT]: [],
  [MessageType.PASS_COMMIT]: [],
  [MessageType.LINEAGE]: [],
  [MessageType.ACTOR_DOWN]: [7, true, null],
  [MessageType.ACTOR_UNWATCH]: [7],
  [MessageType.UNREADABLE]: [99_999],
  [MessageType.PROGRESS]: [0, 0, 0, 0, 0, []],
  [MessageType.DEVICE_MAP]: [[['gpu', 'gpu']]],
  [MessageType.COLLECTIVE]: [ID, 0, 0, 0, '', [], null],
}

function clusterOf(seed: number): Cluster {
  const authority = rolePolicy({ observer: { call: ['floods.may', 'floods.much'] } })
  const mailboxOf = (id: number) => (id === OBSERVER ? {} : { callsMax: WINDOW })
  const cluster = new Cluster(seed, 3, { authority, mailboxOf })
  for (const worker of cluster.workers) if (worker.info.id !== OBSERVER) worker.setPeerRole(OBSERVER, 'observer')
  return cluster
}

/** As fast as it goes, past what its own library would refuse. */
function flood(observer: WorkerRuntime, type: MessageType, count: number): void {
  const peer = observer.peers.resolve(MEMBER)
  for (let i = 0; i < count; i++) {
    const out = observer.messages.prepare(peer, type, BODIES[type], 'flood')
    out.requestId = 100_000 + i
    if (MESSAGE_TABLE[type].ids.length > 0) Object.assign(out, { context: ID, autogradId: ID, pass: ID })
    observer.messages.send(peer, out)
  }
}

/** The member computes: what comes is read, and nothing has its turn. */
function busy({ pump }: WorkerRuntime): () => void {
  const { runNow, wake } = pump
  pump.runNow = pump.wake = () => {}
  return () => Object.assign(pump, { runNow, wake }).wake()
}

const wait = (ms: number): Promise<void> => new Promise((resolve) => currentRuntime().clock.setTimer(ms, resolve))

const allArrived = async ({ world }: Cluster): Promise<void> => {
  for (let seconds = 0; world.framesInFlight > 0 && seconds < 60; seconds++) await wait(1000)
  expect(world.framesInFlight).toBe(0)
}

const KINDS = Object.entries(MESSAGE_TABLE).map(([type, { name }]) => [name, Number(type) as MessageType] as const)

describe('a flood by an observer', () => {
  test.each(KINDS)(
    'CRE-16, CRE-17, AUT-10: of %s: what waits is bounded, a member is served meanwhile, and each has its turn',
    async (_, type) => {
      const cluster = clusterOf(1)
      const [member, other, observer] = cluster.workers as [WorkerRuntime, WorkerRuntime, WorkerRuntime]
      const { inflow } = member.peers.resolve(OBSERVER)
      await cluster.run(OTHER, async () => {
        const free = busy(member)
        flood(observer, type, FLOOD)
        await wait(50)
        expect(member.pump.mailbox.size).toBeLessThanOrEqual(OTHERS_WAITING_MAX + 2 * WINDOW + 1)
        expect(cluster.world.framesInFlight).toBeGreaterThan(0)
        free()
        const beganMs = other.clock.now()
        for (let i = 0; i < 20; i++) expect(await call(MEMBER, may, [i])).toBe(i + 1)
        // Virtual time passes with the pauses alone: the member's answers do not wait for them.
        expect(other.clock.now() - beganMs).toBeLessThan(100)
        // Messages that come to nothing are served no faster than the role may be refused.
        await wait(1000)
        expect(inflow!.pauses).toBeGreaterThan(0)
        expect(member.letters.total).toBeLessThanOrEqual(REFUSALS_MAX + OTHERS_WAITING_MAX / 2 + 2 * REFUSALS_PER_SECOND)
        await allArrived(cluster)
        // Calls beyond the window are refused, at 100 a second.
        await wait(20_000)
        expect(inflow!.waiting).toBe(0)
      })
      expect(await cluster.leftovers({ letters: null })).toEqual([])
      expect([ran, member.pump.mailbox.size, inflow!.waiting, inflow!.bytes]).toEqual([0, 0, 0, 0])
    },
  )

  test('CRE-16, CRE-17: of what cannot be read', async () => {
    const cluster = clusterOf(1)
    const [member, , observer] = cluster.workers as [WorkerRuntime, WorkerRuntime, WorkerRuntime]
    const { inflow } = member.peers.resolve(OBSERVER)
    await cluster.run(OTHER, async () => {
      const free = busy(member)
      const unreadable = ({ header, segments }: Frame): Frame => ({ header: header.slice().fill(0xc1), segments })
      for (const tamper of [unreadable, cutShort]) {
        cluster.gate(OBSERVER, MEMBER).tamper = tamper
        flood(observer, MessageType.CALL, FLOOD)
      }
      await wait(50)
      expect(member.pump.mailbox.size).toBeLessThanOrEqual(OTHERS_WAITING_MAX + WINDOW + 2)
      free()
      for (let i = 0; i < 20; i++) expect(await call(MEMBER, may, [i])).toBe(i + 1)
      await allArrived(cluster)
    })
    await cluster.world.drain()
    expect([inflow!.waiting, inflow!.bytes, member.letters.counts.unreadable]).toEqual([0, 0, 2 * FLOOD])
  })

  test('CRE-18: one that reads no answer and is refused over and over loses its link, and is dead to the member', async () => {
    const cluster = clusterOf(4)
    const [member, other, observer] = cluster.workers as [WorkerRuntime, WorkerRuntime, WorkerRuntime]
    Object.defineProperty(member.peers.resolve(OBSERVER).link!, 'unreadBytes', { get: () => 2 ** 27 })
    await cluster.run(OTHER, async () => {
      flood(observer, MessageType.CALL, 1)
      flood(observer, MessageType.CALL_CANCEL, FLOOD)
      await wait(10_000)
      expect(member.deathOf(OBSERVER)).toMatchObject({ code: 'WORKER_DIED', message: expect.stringContaining('unread meanwhile') })
      expect(other.deathOf(OBSERVER)).toBeNull()
      expect(await call(MEMBER, may, [1])).toBe(2)
    })
    expect(await cluster.leftovers({ letters: null })).toEqual([])
  })

  test('CRE-18: the calls of one that reads no answer stay where they are; it reads, and all are answered', async () => {
    const cluster = clusterOf(2)
    const [member, , observer] = cluster.workers as [WorkerRuntime, WorkerRuntime, WorkerRuntime]
    const { source } = member.peers.resolve(OBSERVER)
    const link = member.peers.resolve(OBSERVER).link!
    let unreadBytes = 0
    Object.defineProperty(link, 'unreadBytes', { get: () => unreadBytes })
    await cluster.run(OBSERVER, async () => {
      unreadBytes = 2 ** 27
      const calls = Array.from({ length: WINDOW }, () => call(MEMBER, much, []))
      await wait(500)
      expect(source.isHeld).toBe(true)
      expect(member.peers.resolve(OBSERVER).ledger.incoming.calls).toBeGreaterThan(0)
      expect(await observer.run(() => failure(call(OTHER, mayNot, [])))).toMatchObject({ code: 'NOT_PERMITTED' })
      unreadBytes = 0
      for (const each of await Promise.all(calls)) expect(each.length).toBe(2 ** 20)
    })
    expect(await cluster.leftovers({ letters: null })).toEqual([])
  })
})
