/** A run that starts all workers, with the test's own cluster instead of the bridge's. */
import { expect, test } from '@jest/globals'
import { type Cluster, PostgradError, type WorkerInfo } from 'postgrad'
import type { Bridge } from '../bridge.js'
import { EXIT } from '../exit-codes.js'
import { surroundings } from '../surroundings.fixture.js'
import { run } from './run-command.js'

test.each([
  ['plain', /\[worker1\] stalled: no turn for 10 s\n\[worker1\] recovered\n/],
  ['json', /"worker":"worker1","event":"stalled","silentMs":10000}\n.*"worker":"worker1","event":"recovered"}\n/],
] as const)('CLI-23 a worker that stands still, and goes on, is told of: %s', async (output, expected) => {
  const workers = ['worker0', 'worker1'].map((name, id) => ({ name, id }) as WorkerInfo)
  let stalls: Parameters<Cluster['onWorkerStalled']>[0] | null = null
  let recoveries: Parameters<Cluster['onWorkerRecovered']>[0] | null = null
  const cluster = {
    workers,
    on: () => ({
      runMain: async () => {
        if (stalls === null) return
        stalls(
          workers[1]!,
          new PostgradError('WORKER_STALLED', { op: 'cluster', message: 'it stands still', values: { silentMs: 10_000 } }),
        )
        stalls = null
        recoveries?.(workers[1]!)
      },
    }),
    onWorkerDeath: () => () => {},
    onWorkerStalled: (fn: typeof stalls) => {
      stalls = fn
      return () => {}
    },
    onWorkerRecovered: (fn: typeof recoveries) => {
      recoveries = fn
      return () => {}
    },
    close: async () => {},
    closed: Promise.resolve({ deaths: [], leaks: [] }),
  }
  const bridge = { launch: async () => cluster as unknown as Cluster } as unknown as Bridge
  const around = surroundings()
  expect(await run('p.js', [], { workers: 2, status: false, output }, around, bridge)).toBe(0)
  expect(output === 'json' ? around.out() : around.err()).toMatch(expected)
})

test.each([
  ['', undefined, 0, EXIT.lost],
  [', also under --restart failed', 'failed', 0, EXIT.lost],
  [', but not one that was started again', 'failed', 1, EXIT.done],
] as const)('CLU-24 what a worker throws, uncaught, when its main is done fails the run%s', async (_, restart, id, code) => {
  const worker = { name: 'worker0', id } as WorkerInfo
  const values = { worker: 'worker0', workerId: 0, cause: 'uncaught-exception' }
  const death = new PostgradError('WORKER_DIED', { op: 'cluster', message: 'it threw RangeError: after main', values })
  const cluster = {
    workers: [worker],
    on: () => ({ runMain: async () => {} }),
    onWorkerDeath: () => () => {},
    onWorkerStalled: () => () => {},
    onWorkerRecovered: () => () => {},
    close: async () => {},
    closed: Promise.resolve({ deaths: [death], leaks: [] }),
  }
  const bridge = { launch: async () => cluster as unknown as Cluster } as unknown as Bridge
  const around = surroundings()
  expect(await run('p.js', [], { workers: 1, status: false, output: 'plain', restart }, around, bridge)).toBe(code)
  expect(around.err().includes('RangeError: after main')).toBe(code !== EXIT.done)
})

test('CLU-63 a shell sends SIGHUP twice when its terminal closes: the run keeps its grace', async () => {
  const around = surroundings()
  let stop: (error: Error) => void = () => {}
  const cluster = {
    workers: [{ name: 'worker0', id: 0 } as WorkerInfo],
    on: () => ({
      runMain: () =>
        new Promise<void>((_, reject) => {
          stop = reject
          setImmediate(() => {
            for (let i = 0; i < 2; i++) around.signal('SIGHUP')
          })
        }),
    }),
    onWorkerDeath: () => () => {},
    onWorkerStalled: () => () => {},
    onWorkerRecovered: () => () => {},
    close: async () => stop(new Error('closed')),
    closed: Promise.resolve({ deaths: [], leaks: [] }),
  }
  const bridge = { launch: async () => cluster as unknown as Cluster } as unknown as Bridge
  expect(await run('p.js', [], { workers: 1, status: false, output: 'plain' }, around, bridge)).toBe(129)
  expect(around.exited).toEqual([])
})
