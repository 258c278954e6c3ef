/**
 * What came from another worker need not be what this code sends: odd arguments of the calls that rpc itself makes are refused with a typed error,
 * odd messages are dead letters, and the worker goes on.
 */
import { expect, test } from '@jest/globals'
import { MessageType } from '@postgrad/wire/internal'
import { call, currentWorker, remote } from './api.js'
import { expose } from './function-registry.js'
import { GroupWhat } from './group-protocol.js'
import { METHOD_CALL, VALUE_READY } from './rref-context.js'
import { overSeeds } from './sim-cluster.suite.js'
import { STORE_CALL } from './store-host.js'
import { STREAM_CALL } from './stream.js'
import { LINK_ACTOR, STOP_ACTOR, WATCH_ACTOR } from './watches.js'
import type { WorkerRuntime } from './worker-runtime.js'

const echo = <T>(value: T) => value
class Plain {
  get(): number {
    return 1
  }
}
expose({ echo, Plain })

/** A call of a built-in function with whatever arguments. */
function callBuiltIn(name: string, args: readonly unknown[]): Promise<string> {
  const worker = currentWorker() as unknown as {
    readonly agent: WorkerRuntime['agent']
    callByName(peer: unknown, name: string, args: readonly unknown[], options: object): Promise<unknown>
  }
  return worker.callByName(worker.agent.resolve(1), name, args, {}).then(
    () => 'done',
    ({ code }: { code: string }) => code,
  )
}

test('RPC-16: a built-in function that is called with odd arguments refuses them', () =>
  overSeeds(3, 2, async ({ workers }) => {
    expect(await callBuiltIn(VALUE_READY, [5])).toBe('INVALID_ARGUMENT')
    expect(await callBuiltIn(WATCH_ACTOR, [5, 0, 1])).toBe('NOT_AN_ACTOR')
    expect(await callBuiltIn(LINK_ACTOR, ['no', 5])).toBe('NOT_AN_ACTOR')
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

test('RPC-16: a word about the group that makes no sense is a dead letter', () =>
  overSeeds(3, 2, async ({ workers }) => {
    const { agent } = workers[0]!
    const peer = agent.resolve(1)
    const odd: readonly [number, unknown][] = [
      [99, null],
      [GroupWhat.JOIN, 'soon'],
      [GroupWhat.REPORT, [1]],
      [GroupWhat.RELEASE, 7],
      [GroupWhat.FAILED, null],
    ]
    for (const [what, data] of odd) agent.post(peer, MessageType.GROUP_UPDATE, [what, data, null])
    // Of an end of the group that this worker takes no part in.
    agent.post(peer, MessageType.GROUP_UPDATE, [GroupWhat.RELEASE, [0, 1], null])
    agent.post(peer, MessageType.STREAM_CREDIT, [1_000_000, 4])
    expect(await call('worker1', echo, [1])).toBe(1)
    using plain = remote('worker1', Plain, [])
    expect(await plain.call('get', [])).toBe(1)
    const letters = workers[1]!.agent.deadLetters
    expect(letters.counts.unreadable).toBe(odd.length)
    letters.counts.unreadable = 0
  }))
