/**
 * Another worker may send what this code never sends: odd arguments of the calls that rpc itself makes are refused with a typed error,
 * odd messages are dead letters, and the worker continues.
 */
import { expect, test } from '@jest/globals'
import { MessageType } from '@postgrad/wire/internal'
import { WHEREIS } from '../actors/actor-register-host.js'
import { LINK_ACTOR, STOP_ACTOR, UNLINK_ACTOR, WATCH_ACTOR } from '../actors/watches.js'
import { call, currentRuntime, currentSignal, remote, stream } from '../api/api.js'
import { METHOD_CALL, STREAM_CALL, VALUE_READY } from '../common/built-in-names.js'
import { expose } from '../common/function-registry.js'
import { ARRIVE, type Coming } from '../groups/gather.js'
import { GroupWhat } from '../groups/group-protocol.js'
import { STORE_CALL } from '../groups/store-host.js'
import { Cluster, overSeeds } from './sim-cluster.suite.js'
import type { WorkerRuntime } from './worker-runtime.js'

const echo = <T>(value: T) => value
class Plain {
  get(): number {
    return 1
  }
}
let counted = 0
function* countTo(n: number): Generator<number> {
  for (counted = 1; counted <= n; counted++) yield counted
}
const later = async <T>(value: T): Promise<T> => {
  await new Promise<void>((resolve) => currentRuntime().clock.setTimer(200, resolve))
  return value
}
expose({ countTo, echo, later, Plain })

/** A call of a built-in function with whatever arguments. */
function callBuiltIn(name: string, args: readonly unknown[], options: { timeoutMs?: number } = {}): Promise<string> {
  return currentRuntime()
    .caller.call(1, name, args, options)
    .then(
      () => 'done',
      ({ code }: { code: string }) => code,
    )
}

test('RPC-16: a built-in function that is called with odd arguments refuses them', () =>
  overSeeds(3, 2, async ({ workers }) => {
    expect(await callBuiltIn(VALUE_READY, [5])).toBe('INVALID_ARGUMENT')
    expect(await callBuiltIn(WATCH_ACTOR, [5, 0, 1])).toBe('NOT_AN_ACTOR')
    expect(await callBuiltIn(LINK_ACTOR, ['no', 5])).toBe('NOT_AN_ACTOR')
    using plain = remote('worker1', Plain, [])
    expect(await callBuiltIn(LINK_ACTOR, [plain, 5])).toBe('NOT_AN_ACTOR')
    expect(await callBuiltIn(UNLINK_ACTOR, [plain, 5])).toBe('NOT_AN_ACTOR')
    expect(await callBuiltIn(STOP_ACTOR, [null, 5])).toBe('NOT_AN_ACTOR')
    expect(await callBuiltIn(STREAM_CALL, ['echo', [1], 0])).toBe('INVALID_ARGUMENT')
    expect(await callBuiltIn(STREAM_CALL, ['echo', 1, 8])).toBe('INVALID_ARGUMENT')
    expect(await callBuiltIn(STREAM_CALL, [5, [1], 8])).toBe('INVALID_ARGUMENT')
    expect(await callBuiltIn(STORE_CALL, ['destroy', []])).toBe('METHOD_NOT_FOUND')
    // Also where who counts calls looks for the actor.
    workers[1]!.metrics()
    expect(await callBuiltIn(METHOD_CALL, [5, 'get'])).not.toBe('done')
    // Of a value that its owner would have made itself, and has not.
    expect(await callBuiltIn(METHOD_CALL, [(1n << 48n) + 999n, 'get', []])).toBe('RREF_DELETED')
    expect(workers[1]!.metrics()).toMatchObject({ messages: 2, failed: 2 })
    workers[1]!.stopMetrics()
    expect(await call('worker1', echo, [1])).toBe(1)
  }))

test('RPC-16, STA-4: a word about the group that makes no sense is a dead letter', () =>
  overSeeds(3, 2, async ({ workers }) => {
    const worker = workers[0]!
    const odd: readonly [number, unknown][] = [
      [99, null],
      [GroupWhat.JOIN, 'soon'],
      [GroupWhat.REPORT, [1]],
      [GroupWhat.RELEASE, 7],
      [GroupWhat.FAILED, null],
      [GroupWhat.ASK, [1]],
      [GroupWhat.ASK, [1, [5]]],
      [GroupWhat.ANSWER, [1, [true, [['g', [1]]], []]]],
      [GroupWhat.OVER, ['g']],
      // To what was not asked.
      [GroupWhat.ANSWER, [1, null]],
    ]
    for (const [what, data] of odd) worker.post(1, MessageType.GROUP_UPDATE, [what, data, null])
    // Of an end of the group that this worker takes no part in.
    worker.post(1, MessageType.GROUP_UPDATE, [GroupWhat.RELEASE, [0, 1], null])
    worker.post(1, MessageType.PROGRESS, [0, 0, 0, 0, 0, [[1_000_000, 4]]])
    expect(await call('worker1', echo, [1])).toBe(1)
    using plain = remote('worker1', Plain, [])
    expect(await plain.call('get', [])).toBe(1)
    const letters = workers[1]!.letters
    expect(letters.counts.invalid).toBe(odd.length)
    letters.counts.invalid = 0
  }))

/** A request with a body and a number of one's own choice; its answer, or the error of the one who waits. */
function ask(type: MessageType, body: readonly unknown[]): Promise<unknown> {
  const worker = currentRuntime()
  return worker.requests
    .ask(worker.peers.resolve(1), type, body, 'ask', { timeoutMs: 100 }, (message) => message.body[0])
    .then(
      (value) => value,
      ({ code }: { code: string }) => code,
    )
}

/** Sends the other worker a message, with a number of one's own choice. */
function say(type: MessageType, body: readonly unknown[], requestId: number, from = currentRuntime() as WorkerRuntime, to = 1): void {
  const peer = from.peers.resolve(to)
  const out = from.messages.prepare(peer, type, body, 'say')
  out.requestId = requestId
  from.messages.send(peer, out)
}

const ofWorker = (worker: number, counter: number) => (BigInt(worker) << 48n) + BigInt(counter)

/** Dead letters of a kind that are meant. */
function expectInvalid({ letters: deadLetters }: WorkerRuntime, ...what: readonly string[]): void {
  const found = deadLetters.last().filter(({ reason }) => reason === 'invalid')
  expect(found.map((letter) => letter.what)).toEqual(what)
  deadLetters.counts.invalid = 0
}

test("RPC-50: a second request with the number of one that is served is no request, and its answer is not taken for the first one's", () =>
  overSeeds(3, 2, async ({ workers }) => {
    const slow = call('worker1', later, ['first'])
    const [[requestId]] = [...workers[0]!.peers.resolve(1).pending.entries()] as [[number, unknown]]
    say(MessageType.CALL, ['echo', ['second']], requestId)
    expect(await slow).toBe('first')
    expectInvalid(workers[1]!, `CALL: a second request ${requestId}`)
  }))

test('RPC-50: a reply that does not answer what was asked is RPC_WRONG_REPLY for who waits', () =>
  overSeeds(3, 2, async ({ workers }) => {
    const odd: readonly [MessageType, readonly unknown[]][] = [
      [MessageType.RREF_ACK, [5n]],
      [MessageType.REMOTE_RET, [5n, 6n, null]],
    ]
    for (const [type, body] of odd) {
      const called = call('worker1', later, ['value'])
      const [[requestId]] = [...workers[0]!.peers.resolve(1).pending.entries()] as [[number, unknown]]
      say(type, body, requestId, workers[1]!, 0)
      await expect(called).rejects.toMatchObject({ code: 'RPC_WRONG_REPLY', values: { worker: 'worker1' } })
    }
    // The reply to another remote call.
    const made = remote('worker1', later, ['value'])
    const [[requestId]] = [...workers[0]!.peers.resolve(1).pending.entries()] as [[number, unknown]]
    say(MessageType.REMOTE_RET, [ofWorker(0, 900), ofWorker(0, 901), null], requestId, workers[1]!, 0)
    await expect(made.toHere({ timeoutMs: 100 })).rejects.toMatchObject({ code: expect.stringMatching('RPC_WRONG_REPLY|RREF_DELETED') })
    await call('worker1', later, [1])
    expectInvalid(workers[0]!, 'RREF_ACK: it does not answer what was asked', 'REMOTE_RET: it does not answer what was asked')
    const letters = workers[0]!.letters
    expect(letters.counts['unknown-request']).toBe(3)
    letters.counts['unknown-request'] = 0
  }))

test('RREF-5: an error in the place of the confirmation is the error of every use of the reference', () =>
  overSeeds(3, 2, async ({ workers }) => {
    const made = remote('worker1', later, ['value'])
    const [[requestId]] = [...workers[0]!.peers.resolve(1).pending.entries()] as [[number, unknown]]
    const { rrefId, forkId } = made as unknown as { readonly rrefId: bigint; readonly forkId: bigint }
    say(MessageType.REMOTE_RET, [rrefId, forkId, new RangeError('not made')], requestId, workers[1]!, 0)
    expect(await call('worker1', echo, [1])).toBe(1)
    await expect(made.created()).rejects.toMatchObject({ name: 'RangeError', message: 'not made' })
    await expect(made.toHere({ timeoutMs: 100 })).rejects.toMatchObject({ name: 'RangeError', message: 'not made' })
    await call('worker1', later, [1])
    const { letters } = workers[0]!
    expect(letters.counts['unknown-request']).toBe(1)
    letters.counts['unknown-request'] = 0
  }))

test('RPC-51: a request whose answer its reader cannot take ends with what the reader threw', async () => {
  const cluster = new Cluster(1, 2)
  const bug = new TypeError('bug')
  const read = () => {
    throw bug
  }
  await cluster.run(0, async () => {
    const { requests, peers } = currentRuntime()
    const asked = requests.ask(peers.resolve(1), MessageType.CALL, ['echo', [1]], 'ask', { timeoutMs: 100 }, read)
    await expect(asked).rejects.toBe(bug)
    expect(await call('worker1', echo, [1])).toBe(1)
    expect(peers.resolve(1).pending.size).toBe(0)
  })
  expect(cluster.bugs).toEqual([bug])
})

test('RPC-50: nobody makes a value under the id of another, nor takes over a fork', () =>
  overSeeds(3, 2, async ({ workers }) => {
    using kept = remote('worker1', Plain, [])
    await kept.created()
    const { rrefId, forkId } = kept as unknown as { readonly rrefId: bigint; readonly forkId: bigint }
    expect(await ask(MessageType.REMOTE_CALL, ['echo', [1], rrefId, ofWorker(0, 900)])).toBe('RREF_INVALID')
    expect(await ask(MessageType.REMOTE_CALL, ['echo', [1], ofWorker(1, 900), ofWorker(0, 901)])).toBe('RREF_INVALID')
    expect(await ask(MessageType.REMOTE_CALL, ['echo', [1], ofWorker(0, 900), ofWorker(1, 901)])).toBe('RREF_INVALID')
    expect(await kept.call('get', [])).toBe(1)
    // As another worker would, were there one.
    const holders = workers[1]!.rrefs
    expect(() => holders.onForkRequest(rrefId, forkId, 1)).toThrow(expect.objectContaining({ code: 'RREF_INVALID' }))
  }))

test('RPC-50: more progress than was possible is a dead letter and changes nothing', () =>
  overSeeds(3, 2, async ({ workers }) => {
    say(MessageType.PROGRESS, [0, 2 ** 40, 2 ** 40, 0, 0, []], 0)
    expect(await call('worker1', echo, [1])).toBe(1)
    expectInvalid(workers[1]!, 'PROGRESS: more was taken there than has left here')
    const items = stream('worker1', countTo, [5], { window: 2 })
    expect(await items.next()).toEqual({ done: false, value: 1 })
    const [[requestId]] = [...workers[0]!.peers.resolve(1).pending.entries()] as [[number, unknown]]
    say(MessageType.PROGRESS, [0, 0, 0, 0, 0, [[requestId, 99]]], 0)
    expect(await call('worker1', echo, [1])).toBe(1)
    expectInvalid(workers[1]!, 'PROGRESS: more was taken there than has left here', 'PROGRESS: more was taken there than has left here')
    expect(counted).toBeLessThanOrEqual(3)
    await items.return()
  }))

test('GRP-6: a member arrives under its own name, and with what a member says', () =>
  overSeeds(3, 2, async ({ workers }) => {
    const members = workers.map(({ info }) => info)
    const coming: Coming = { op: 'meet', members, round: null, era: 0, from: 'worker0', value: null, timeoutMs: 50 }
    const odd = [
      { op: 3 },
      { from: 'worker1' },
      { from: 'nobody' },
      { members: [{}] },
      { members: 2 },
      { round: 3 },
      { era: 'first' },
      { era: 0.5 },
    ]
    for (const part of odd) expect(await callBuiltIn('postgrad.arrive', [{ ...coming, ...part }])).toBe('INVALID_ARGUMENT')
    for (const args of [[], [null], ['worker0', members]]) expect(await callBuiltIn('postgrad.arrive', args)).toBe('INVALID_ARGUMENT')
    expect(await callBuiltIn('postgrad.arrive', [{ ...coming, timeoutMs: -1 }])).toBe('TIMEOUT_INVALID')
    // Twice without an answer is two rounds, as two meetings that nobody has awaited yet.
    const both = [callBuiltIn('postgrad.arrive', [coming]), callBuiltIn('postgrad.arrive', [coming])]
    expect(await Promise.all(both)).toEqual(['GROUP_TIMEOUT', 'GROUP_TIMEOUT'])
    expect(await callBuiltIn('postgrad.arrive', [{ ...coming, era: 2 ** 40 }])).toBe('GROUP_TIMEOUT')
  }))

test('SHD-3: only who leads says that references are disposed, and that all is over', () =>
  overSeeds(3, 3, async ({ workers }) => {
    const [, member] = workers as [WorkerRuntime, WorkerRuntime]
    const ended = member.shutdown({ timeoutMs: 500 }).then(
      () => 'ended',
      ({ code }: { code: string }) => code,
    )
    for (const [what, data] of [
      [GroupWhat.DONE, null],
      [GroupWhat.RELEASE, [1, 2]],
      [GroupWhat.RELEASE, [0, 2]],
    ] as const) {
      workers[2]!.post(1, MessageType.GROUP_UPDATE, [what, data, null])
    }
    expect(await workers[2]!.run(() => call('worker1', echo, [1]))).toBe(1)
    member.letters.counts.invalid -= 3
    expect(member.letters.counts.invalid).toBe(0)
    await Promise.all([workers[0]!, workers[2]!].map((worker) => worker.shutdown({ timeoutMs: 500 })))
    expect(await ended).toBe('ended')
  }))

/** Its items come when a test says so. */
const waits = async function* (): AsyncGenerator<number> {
  await new Promise<void>((resolve) => currentSignal().addEventListener('abort', () => resolve()))
  yield 0
}
expose({ waits })

test('STR-11: a callee that sends more items than its caller has room for ends that stream, and nothing of more than that is kept', () =>
  overSeeds(3, 2, async ({ workers }) => {
    const items = stream('worker1', waits, [], { window: 4 })
    const [[requestId]] = [...workers[0]!.peers.resolve(1).pending.entries()] as [[number, unknown]]
    for (let i = 1; i <= 10; i++) say(MessageType.STREAM_ITEM, [i], requestId, workers[1]!, 0)
    await later(0)
    const got: unknown[] = []
    const end = await (async () => {
      for await (const item of items) got.push(item)
    })().catch(({ code }: { code: string }) => code)
    expect([got, end]).toEqual([[1, 2, 3, 4], 'RPC_WRONG_REPLY'])
    expectInvalid(workers[0]!, 'STREAM_ITEM: more than its stream has room for')
    expect(await call('worker1', echo, [1])).toBe(1)
  }))

test('STR-11: a window that is no window, or so large that its generator would keep its worker from all else, is refused at either end', () =>
  overSeeds(3, 2, async () => {
    for (const window of [0, 1.5, 16_385, Number.POSITIVE_INFINITY]) {
      expect(await callBuiltIn(STREAM_CALL, ['countTo', [3], window])).toBe('INVALID_ARGUMENT')
      await expect(stream('worker1', countTo, [3], { window }).next()).rejects.toMatchObject({ code: 'INVALID_ARGUMENT' })
    }
  }))

/** Values that a peer can send in place of a name: `String` of any of these throws. */
const UNNAMED: readonly unknown[] = [
  { toString: 1 },
  { toString: null, valueOf: null },
  [[{ toString: 1 }]],
  { [Symbol.toPrimitive]: 1, toString: 1 },
]

test('RPC-55: a name that is no text is refused by a typed error wherever one is wanted, while somebody looks too, and no handler throws', () =>
  overSeeds(2, 2, async ({ workers, bugs }) => {
    using plain = remote('worker1', Plain, [])
    const stop = workers[1]!.inspect(() => {})
    workers[1]!.metrics()
    const intercepted = workers[1]!.interceptCalls({ incoming: (_, next) => next() })
    for (const odd of UNNAMED) {
      for (const [name, args] of [
        [STREAM_CALL, [odd, [1], 8]],
        [STREAM_CALL, [METHOD_CALL, [plain, odd, []], 8]],
        [STREAM_CALL, odd],
        [METHOD_CALL, [plain, odd, []]],
        [METHOD_CALL, [odd, odd, odd]],
        [VALUE_READY, [odd]],
        [WHEREIS, [odd, odd]],
        [ARRIVE, [odd]],
        [ARRIVE, [{ op: odd }]],
        [STORE_CALL, [odd, odd]],
        [STORE_CALL, ['get', ['key', odd]]],
        [WATCH_ACTOR, [plain, odd, odd]],
        [STOP_ACTOR, [plain, odd]],
      ] as const) {
        const code = await callBuiltIn(name, args as readonly unknown[])
        expect([name, code]).toEqual([name, expect.stringMatching(/^[A-Z]+(_[A-Z]+)+$/)])
      }
    }
    expect(bugs).toEqual([])
    intercepted()
    stop()
    workers[1]!.stopMetrics()
    expect(await plain.call('get', [])).toBe(1)
  }))

test('RREF-36: calls of methods that are refused, for want of room or at their turn, keep nothing of the values that they name', async () => {
  const cluster = new Cluster(3, 2, { mailboxOf: (id) => (id === 1 ? { callsMax: 4 } : {}) })
  const { pump } = cluster.workers[1]!
  await cluster.run(0, async () => {
    // Worker 1 computes while they come.
    const { runNow } = pump
    pump.runNow = () => {}
    // Ids that worker 0 might have made there, and has not.
    const calls = Array.from({ length: 50 }, (_, i) =>
      callBuiltIn(METHOD_CALL, [ofWorker(0, 1000 + i), 'get', []], { timeoutMs: i % 2 === 0 ? 50 : 500 }),
    )
    await later(0)
    pump.runNow = runNow
    cluster.workers[1]!.pushTask({ run: () => {} }, 0)
    const codes = await Promise.all(calls)
    // The first four have room; of these two expire in the mailbox, and two begin, and wait.
    expect(codes.filter((code) => code === 'MAILBOX_FULL').length).toBeGreaterThanOrEqual(23)
    expect(codes.filter((code) => code === 'RPC_TIMEOUT').length).toBeGreaterThanOrEqual(4)
    await later(0)
  })
  cluster.workers[1]!.letters.counts['mailbox-full'] = 0
  expect(await cluster.leftovers({ letters: null })).toEqual([])
})
