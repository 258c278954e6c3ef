/** How workers may be named. */
import { describe, expect, test } from '@jest/globals'
import { RealClock } from '@postgrad/transport/internal'
import { thrown } from '../worker/sim-cluster.suite.js'
import { WorkerRuntime } from '../worker/worker-runtime.js'
import { unknownWorker } from './rpc-errors.js'
import { checkWorkerName } from './worker-info.js'

describe('names of workers', () => {
  test.each(['w', 'worker0', 'trainer-1', 'ps_2', 'host:7', 'x'.repeat(127)])('RPC-2: %s', (name) => {
    expect(() => checkWorkerName(name)).not.toThrow()
  })

  test.each(['', 'x'.repeat(128), 'two words', 'ümlaut', 'a.b', 'a/b', 'a\n'])('RPC-2: %p is refused, with the rule', (name) => {
    expect(thrown(() => checkWorkerName(name))).toMatchObject({ code: 'WORKER_NAME_INVALID' })
    expect(thrown(() => checkWorkerName(name)).message).toContain('1 to 127 letters')
  })

  test('RPC-1: who is asked for when there is no worker is told that there is none', () => {
    expect(unknownWorker('call', 'w', []).message).toContain('a worker of the cluster, which has none now')
    expect(unknownWorker('call', 'w', [{ name: 'v', id: 3 }]).message).toContain("one of the workers 'v' (3)")
  })

  test.each([-1, 65_536, 1.5, Number.NaN])('RPC-2: id %d is refused', (id) => {
    expect(thrown(() => new WorkerRuntime({ name: 'w', id, clock: new RealClock() })).code).toBe('WORKER_ID_OUT_OF_RANGE')
  })

  test.each([-1, Number.NaN, '5' as unknown as number])('RPC-21: a default timeout of %p is refused', (rpcTimeoutMs) => {
    expect(thrown(() => new WorkerRuntime({ name: 'w', id: 0, clock: new RealClock(), rpcTimeoutMs })).code).toBe('TIMEOUT_INVALID')
  })
})
