/** A server that asks a guard about each request. */
import { describe, expect, jest, test } from '@jest/globals'
import { PostgradError } from '@postgrad/base'
import type { Link, LinkReceiver } from '../link.js'
import { memoryLinkPair } from '../memory-link.js'
import { clock, failure, inFolder, Net, until } from './served.fixture.js'
import { decodeReply, encodeFrame, type StoreReply } from './store-protocol.js'
import { type GuardedRequest, type StoreGuard, StoreServer } from './store-server.js'

const notPermitted = ({ op }: GuardedRequest) =>
  new PostgradError('NOT_PERMITTED', {
    op,
    expected: 'something else',
    got: op,
    remedy: 'Ask for something else.',
    values: { op },
  })

/** Nothing is permitted of what is in the list; what it is asked is noted. */
function guarding(refused: readonly string[]): StoreGuard & { readonly asked: string[] } {
  const asked: string[] = []
  return {
    asked,
    check(request, segments) {
      asked.push(`${request.op} ${segments.map((segment) => Buffer.from(segment).toString()).join(' ')}`.trim())
      if (refused.includes(request.op)) throw notPermitted(request)
    },
  }
}

const EVERY = ['set', 'add', 'compareSet', 'deleteKey', 'get', 'wait', 'check', 'numKeys']

describe('STO-24 a guard', () => {
  test('is asked about each request, with its values; what it refuses is answered with its error, changes nothing, and the connection goes on', async () => {
    const net = new Net()
    const { store } = net.server!
    await store.set('there', 'as before')
    net.guard = guarding(EVERY)
    const refused = net.client()
    const tries: Promise<unknown>[] = [
      refused.set('there', 'new'),
      refused.add('counter', 1),
      refused.compareSet('free', '', 'mine'),
      refused.deleteKey('there'),
      refused.get('there'),
      refused.wait(['there']),
      refused.check(['there']),
      refused.numKeys(),
    ]
    for (const [i, error] of (await Promise.all(tries.map(failure))).entries()) {
      expect(error).toMatchObject({ code: 'NOT_PERMITTED', op: EVERY[i], remedy: 'Ask for something else.', values: { op: EVERY[i] } })
      expect(error!.message).toContain(`expected something else, got ${EVERY[i]}`)
    }
    expect((net.guard as ReturnType<typeof guarding>).asked.toSorted()).toEqual(
      ['set new', 'add', 'compareSet  mine', 'deleteKey', 'get', 'wait', 'check', 'numKeys'].toSorted(),
    )
    expect([await store.getText('there'), await store.numKeys(), net.server!.counts().waits]).toEqual(['as before', 1, 0])
    expect(net.cables.map(({ closed }) => closed)).toEqual([false])
    net.guard = guarding(['set'])
    const other = net.client()
    expect((await failure(other.set('there', 'new')))?.code).toBe('NOT_PERMITTED')
    expect([await other.getText('there'), await other.add('counter', 2), await other.numKeys()]).toEqual(['as before', 2, 2])
    net.close()
  })

  test('STO-26 that fails refuses, and says why in a warning of its own process alone, which each server prints once', async () => {
    const warn = jest.spyOn(process, 'emitWarning').mockImplementation(() => {})
    const net = new Net()
    net.guard = {
      check() {
        throw new Error('a secret')
      },
    }
    try {
      const client = net.client()
      const error = await failure(client.set('k', 'v'))
      expect([error?.code, error?.message.includes('secret'), await net.server!.store.numKeys()]).toEqual(['STORE_SERVER_FAILED', false, 0])
      const again: Promise<unknown>[] = [client.set('k', 'v'), client.get('k')]
      for (const one of await Promise.all(again.map(failure))) expect(one?.code).toBe('STORE_SERVER_FAILED')
      expect(warn.mock.calls).toEqual([
        [
          'the store that this process keeps threw an unexpected error: a secret',
          { type: 'STORE_SERVER_FAILED', detail: expect.stringContaining('store-guard.test') },
        ],
      ])
    } finally {
      warn.mockRestore()
      net.close()
    }
  })

  test('STO-26 that throws a value whose getters throw refuses, too', async () => {
    const warn = jest.spyOn(process, 'emitWarning').mockImplementation(() => {})
    const net = new Net()
    const hostile = (): never => {
      throw new Error('a getter was called')
    }
    net.guard = {
      check() {
        throw Object.defineProperties({}, { name: { get: hostile }, stack: { get: hostile }, message: { get: hostile } })
      },
    }
    try {
      const client = net.client()
      const tries: Promise<unknown>[] = [client.get('k'), client.wait(['k']), client.set('k', 'v')]
      for (const one of await Promise.all(tries.map(failure))) expect(one?.code).toBe('STORE_SERVER_FAILED')
      expect(warn.mock.calls).toEqual([
        ['the store that this process keeps threw an unexpected error: an object', { type: 'STORE_SERVER_FAILED' }],
      ])
    } finally {
      warn.mockRestore()
      net.close()
    }
  })

  test('is answered for with the whole message of its error, also if that has a list, or its remedy twice', async () => {
    const net = new Net()
    const errors = ['not these:\n  k\n', 'Ask for less. is not enough'].map(
      (message) => new PostgradError('NOT_PERMITTED', { op: 'set', message, remedy: 'Ask for less.' }),
    )
    let at = 0
    net.guard = {
      check() {
        throw errors[at]
      },
    }
    const client = net.client()
    for (; at < errors.length; at++) expect((await failure(client.set('k', 'v')))?.message).toBe(errors[at]!.message)
    net.close()
  })

  test('is not asked again about a change that was done: sent again it has the same answer, of another server of the file too', async () => {
    await inFolder(async (path) => {
      const net = new Net({ file: path })
      const guard = guarding([])
      // Each change is the last one that it permits.
      net.guard = {
        check(request, segments) {
          guard.check(request, segments)
          if (guard.asked.filter((asked) => asked === request.op).length > 1) throw notPermitted(request)
        },
      }
      const client = net.client()
      for (const restarts of [false, true]) {
        await client.check(['k'])
        guard.asked.length = 0
        const cable = net.cables.at(-1)!
        cable.isDeaf = true
        const sum = client.add('n', 5)
        await until(() => guard.asked.includes('add'))
        if (restarts) net.stop()
        cable.cut()
        if (restarts) net.start({ file: path })
        expect([restarts, await sum]).toEqual([restarts, restarts ? 10 : 5])
        expect(guard.asked.filter((asked) => asked === 'add')).toHaveLength(1)
      }
      net.close()
    })
  })

  test('may restrict its clients: they do not take the room of others, who are gone a moment ago included', async () => {
    const net = new Net({ limits: { clients: 12 } })
    const guard: StoreGuard = { check() {}, isRestricted: true }
    let id = 0
    const connect = (of: StoreGuard | null): { link: Link; replies: StoreReply[] } => {
      const [link, far] = memoryLinkPair(clock)
      const replies: StoreReply[] = []
      link.open({ onFrame: (frame) => replies.push(decodeReply(frame)), onTurnEnd() {}, onClose() {} })
      net.server!.accept(far, of)
      link.send(encodeFrame({ op: 'hello', version: 1, client: `${id++}`.padStart(32, '0') }))
      return { link, replies }
    }
    const said = async (connection: { replies: StoreReply[] }) => {
      await until(() => connection.replies.length > 0)
      return connection.replies[0]!.op
    }
    const first = connect(guard)
    expect(await said(first)).toBe('welcome')
    first.link.close()
    await until(() => net.server!.counts().connected === 0)
    const guarded = Array.from({ length: 4 }, () => connect(guard))
    expect(await Promise.all(guarded.map(said))).toEqual(['welcome', 'welcome', 'refused', 'refused'])
    // Nor by connections that say nothing.
    for (let i = 0; i < 10; i++) net.server!.accept(memoryLinkPair(clock)[1], guard)
    const free = Array.from({ length: 9 }, () => connect(null))
    expect(new Set(await Promise.all(free.map(said)))).toEqual(new Set(['welcome']))
    net.close()
  })

  test('BUD-5 a new connection of an identity that is over its rate is not read before that has passed, and then has its time to say hello', () => {
    let nowMs = 0
    let timers: { readonly dueMs: number; readonly fn: () => void }[] = []
    const byHand = {
      now: () => nowMs,
      defer: (fn: () => void) => fn(),
      setTimer: (ms: number, fn: () => void) => {
        const timer = { dueMs: nowMs + ms, fn }
        timers.push(timer)
        return { cancel: () => (timers = timers.filter((other) => other !== timer)) }
      },
    }
    const pass = (ms: number) => {
      nowMs += ms
      const due = timers.filter(({ dueMs }) => dueMs <= nowMs)
      timers = timers.filter(({ dueMs }) => dueMs > nowMs)
      for (const { fn } of due) fn()
    }
    const server = new StoreServer({ clock: byHand })
    const open = () => {
      const state = { closed: false, isPaused: false, receiver: null as LinkReceiver | null }
      const link: Link = {
        closed: false,
        open(to) {
          state.receiver = to
        },
        send() {},
        flush() {},
        poll: () => 0,
        close() {
          state.closed = true
        },
        setPaused(is) {
          state.isPaused = is
        },
      }
      server.accept(link, { check() {}, isRestricted: true }, { identity: 'observer at 10.0.0.1', role: 'observer' })
      return state
    }
    open().receiver!.onFrame({ header: encodeFrame({ op: 'bye' }).header, segments: [new Uint8Array(2 ** 26)] })
    const next = open()
    const seen: unknown[] = []
    for (const ms of [0, 14_000, 1000, 4000, 1500]) {
      pass(ms)
      seen.push([next.isPaused, next.closed])
    }
    expect(seen).toEqual([
      [true, false],
      [true, false],
      [false, false],
      [false, false],
      [false, true],
    ])
    server.close()
  })

  test('BUD-5 a restricted client that asks too fast is not read for a while, on another connection neither, and others are', async () => {
    const net = new Net()
    const paused = new Map<string, boolean[]>()
    const open = (name: string, address: string, of: StoreGuard | null) => {
      let receiver: LinkReceiver | null = null
      const link: Link = {
        closed: false,
        open(to) {
          receiver = to
        },
        send: (_frame, _order, onFlushed) => onFlushed?.(true),
        flush() {},
        poll: () => 0,
        close() {},
        setPaused: (is) => paused.get(name)!.push(is),
      }
      paused.set(name, [])
      const role = of === null ? 'member' : 'observer'
      net.server!.accept(link, of, { identity: `${role} at ${address}`, role })
      receiver!.onFrame(encodeFrame({ op: 'hello', version: 1, client: `${paused.size}`.padStart(32, '0') }))
      return (times: number) => {
        for (let n = 1; n <= times; n++) receiver!.onFrame(encodeFrame({ op: 'check', n, keys: ['k'] }))
      }
    }
    const restricted: StoreGuard = { check() {}, isRestricted: true }
    const [one, again, other, member] = [
      open('one', '10.0.0.1', restricted),
      open('again', '10.0.0.1', restricted),
      open('other', '10.0.0.2', restricted),
      open('member', '10.0.0.1', null),
    ]
    // More than an identity may use at once, and far from what its role may: a fast machine gives nothing back meanwhile.
    one(1100)
    again(1)
    other(100)
    member(5000)
    expect(Object.fromEntries(paused)).toEqual({ one: [true], again: [true], other: [], member: [] })
    await until(() => paused.get('one')!.includes(false))
    net.close()
  })
})
