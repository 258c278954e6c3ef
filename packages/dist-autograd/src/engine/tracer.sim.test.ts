/** Taps of calls, messages, waits and nodes on several simulated workers: both ends of a request name each other, and a seed repeats a trace. */
import { describe, expect, test } from '@jest/globals'
import { mul } from '@postgrad/autograd'
import { type TraceEvent, tracerOf } from '@postgrad/base/internal'
import { call, currentWorker, expose, remote, stream } from '@postgrad/rpc'
import { traceWorker, type WorkerRuntime } from '@postgrad/rpc/internal'
import { distAutograd } from '../api.js'
import { wholeLeaf } from './programs.suite.js'
import { Cluster, overSeeds } from './sim-cluster.suite.js'

const sleep = (ms: number) => new Promise<void>((resolve) => void currentWorker().clock.setTimer(ms, resolve))
const fails = () => {
  throw new RangeError('on purpose')
}
const slow = async (ms: number): Promise<number> => {
  await sleep(ms)
  return ms
}
class Careful {
  static readonly serial = true
  step = slow
}
const late = async (ms: number): Promise<Careful> => {
  await sleep(ms)
  return new Careful()
}
function* upTo(to: number): Generator<number> {
  for (let n = 0; n < to; n++) yield n
}
expose({ 'tracer.slow': slow, 'tracer.fails': fails, 'tracer.Careful': Careful, 'tracer.late': late, 'tracer.upTo': upTo })

/** The events of each worker until `stop`. */
function listen(workers: readonly WorkerRuntime[]) {
  const events: Record<string, TraceEvent[]> = {}
  const stops = workers.map((worker) => {
    const own: TraceEvent[] = []
    events[worker.info.name] = own
    return traceWorker(worker, (event) => own.push(event))
  })
  return { events, stop: () => stops.map((end) => end()) }
}

/** Whole spans of a kind: name, values of both ends, how long. */
function spans(events: readonly TraceEvent[], kind: TraceEvent['kind']): (Record<string, unknown> & { name: string; ms: number | null })[] {
  return events
    .filter((event) => event.phase === 'begin' && event.kind === kind)
    .map((begin) => {
      const end = events.find(({ phase, span }) => phase === 'end' && span === begin.span)
      return { name: begin.name, ms: end === undefined ? null : end.atMs - begin.atMs, ...begin.values, ...end?.values }
    })
}

async function designNote(): Promise<unknown> {
  return distAutograd.context(async (ctx) => {
    const weight = wholeLeaf([[1, 2]])
    const loss = (await call(1, mul, [weight, 3])).sum()
    await ctx.backward([loss])
    return ctx.gradients().get(weight)!.toArray()
  })
}

describe('the tracer of a worker', () => {
  test('TRC-3: the two ends of a call name each other and the same request, and messages lie between them', () =>
    overSeeds(5, 2, async ({ workers }) => {
      const { events, stop } = listen(workers)
      await call(1, slow, [20])
      await call(1, fails).catch(() => {})
      stop()
      const [ofSlow, ofFails] = spans(events.worker0!, 'call')
      expect(ofSlow).toMatchObject({ name: 'tracer.slow', to: 'worker1' })
      expect(ofFails).toMatchObject({ name: 'tracer.fails', to: 'worker1' })
      const served = spans(events.worker1!, 'serve')
      expect(served).toMatchObject([
        { name: 'tracer.slow', from: 'worker0', outcome: 'value' },
        { name: 'tracer.fails', from: 'worker0', outcome: 'error' },
      ])
      expect(served.map((span) => span.requestId)).toEqual([ofSlow, ofFails].map((span) => span!.requestId))
      expect(served[0]!.ms).toBeGreaterThanOrEqual(20)
      expect(ofSlow!.ms).toBeGreaterThanOrEqual(served[0]!.ms!)
      const messages = (worker: string) =>
        events[worker]!.filter(({ kind }) => kind === 'message').map(
          ({ name, values }) => `${values.way} ${name} ${values.peer} ${values.what}`,
        )
      expect(messages('worker0')).toEqual([
        'sent CALL worker1 tracer.slow',
        'received RESULT worker1 ',
        'sent CALL worker1 tracer.fails',
        'received EXCEPTION worker1 ',
      ])
      expect(messages('worker1').slice(0, 2)).toEqual(['received CALL worker0 tracer.slow', 'sent RESULT worker0 '])
      expect(workers.map(tracerOf)).toEqual([null, null])
    }))

  test('TRC-3: a call that a serial actor puts off is served in two spans, also if its value is still being made', () =>
    overSeeds(5, 2, async ({ workers }) => {
      const outcomes = (events: readonly TraceEvent[]) => {
        const of: Record<number, unknown[]> = {}
        for (const { name, requestId, outcome } of spans(events, 'serve')) {
          const id = requestId as number
          if (name.includes('step')) of[id] = [...(of[id] ?? []), outcome]
        }
        return Object.values(of).sort((a, b) => a.length - b.length)
      }
      for (const careful of [await remote(1, Careful), remote(1, late, [30])]) {
        const { events, stop } = listen(workers)
        const metrics = workers[1]!.metrics()
        await Promise.all([careful.call('step', [10]), careful.call('step', [10])])
        stop()
        expect(outcomes(events.worker1!)).toEqual([['value'], ['put-off', 'value']])
        expect(workers[1]!.metrics()).toMatchObject({ depth: metrics.depth })
        careful.dispose()
      }
      workers[1]!.stopMetrics()
    }))

  test('TRC-3: a call ends at its caller by the deadline, by cancelling, and by the close of the caller', () =>
    overSeeds(5, 3, async ({ workers }) => {
      const { events, stop } = listen(workers)
      await call(1, slow, [500], { timeoutMs: 100 }).catch(() => {})
      const given = call(1, slow, [500])
      await sleep(50)
      given.cancel()
      await given.catch(() => {})
      const [, , third] = workers
      const cut = third!.run(() => call(1, slow, [500])).catch(() => {})
      await sleep(20)
      await third!.close()
      expect(tracerOf(third!)).toBeNull()
      await cut
      await sleep(600)
      stop()
      const [timedOut, cancelled] = spans(events.worker0!, 'call')
      expect(timedOut!.ms).toBeGreaterThanOrEqual(100)
      expect(timedOut!.ms).toBeLessThan(200)
      expect(cancelled!.ms).toBeGreaterThanOrEqual(50)
      expect(cancelled!.ms).toBeLessThan(100)
      expect(spans(events.worker2!, 'call')).toMatchObject([{ name: 'tracer.slow', ms: expect.any(Number) }])
      expect(spans(events.worker1!, 'serve')).toMatchObject([{ outcome: 'given-up' }, { outcome: 'given-up' }, { outcome: 'given-up' }])
    }))

  test('TRC-3: fetches, streams, and calls of a worker to itself have both ends', () =>
    overSeeds(5, 2, async ({ workers }) => {
      const { events, stop } = listen(workers)
      const there = remote(1, slow, [10])
      await there.toHere()
      for await (const n of stream(1, upTo, [3])) expect(n).toBeLessThan(3)
      await call(0, slow, [10])
      stop()
      const ends = (worker: string, kind: TraceEvent['kind']) =>
        spans(events[worker]!, kind).map(({ name, ms }) => `${name}${ms === null ? ' open' : ''}`)
      expect(ends('worker0', 'call')).toEqual(['tracer.slow', 'toHere', 'tracer.upTo', 'tracer.slow'])
      expect(ends('worker1', 'serve')).toEqual(['tracer.slow', 'RREF_FETCH', 'postgrad.stream'])
      expect(ends('worker0', 'serve')).toEqual(['tracer.slow'])
      there.dispose()
    }))

  test('TRC-4: a wait for what is no request says what for, and on whom', () =>
    overSeeds(5, 2, async ({ workers }) => {
      const { events, stop } = listen(workers)
      await designNote()
      const own = remote(0, late, [30])
      await own.toHere()
      stop()
      expect(spans(events.worker0!, 'wait')).toMatchObject([
        { name: 'backward', for: 'pass', ms: expect.any(Number) },
        { name: 'toHere', for: 'value', on: null, ms: expect.any(Number) },
      ])
      expect(spans(events.worker1!, 'wait')).toEqual([])
      own.dispose()
    }))

  test('TRC-1: each worker has its own nodes, operations and kernels of a pass', () =>
    overSeeds(5, 2, async ({ workers }) => {
      const { events, stop } = listen(workers)
      expect(await designNote()).toEqual([[3, 3]])
      stop()
      const names = (worker: string, kind: TraceEvent['kind']) => spans(events[worker]!, kind).map(({ name }) => name)
      expect(names('worker0', 'node')).toEqual(
        expect.arrayContaining(['SumBackward', 'RecvRpcBackward', 'SendRpcBackward', 'AccumulateGrad']),
      )
      expect(names('worker1', 'node')).toEqual(['SendRpcBackward', 'MulBackward', 'RecvRpcBackward'])
      expect(names('worker1', 'operation')).toContain('mul')
      expect(names('worker1', 'kernel')).toEqual(['mul', 'mul'])
      expect(names('worker0', 'operation')).not.toContain('mul')
    }))

  test('TRC-5: a seed repeats the trace of its run, times included', async () => {
    const runOf = async (seed: number) => {
      const cluster = new Cluster(seed, 2)
      const { events, stop } = listen(cluster.workers)
      await cluster.run(0, designNote)
      stop()
      return events
    }
    const once = await runOf(7)
    expect(once.worker0!.length).toBeGreaterThan(10)
    expect(await runOf(7)).toEqual(once)
  })

  test('TRC-2: after its last reader nothing is told, and a span that has begun before gives no end', () =>
    overSeeds(5, 2, async ({ workers }) => {
      const { events, stop } = listen(workers)
      const under = call(1, slow, [20])
      await sleep(5)
      stop()
      const before = { ...events }
      const counts = Object.values(before).map(({ length }) => length)
      await under
      await designNote()
      expect(Object.values(events).map(({ length }) => length)).toEqual(counts)
      expect(spans(events.worker0!, 'call')).toMatchObject([{ name: 'tracer.slow', ms: null }])
      expect(workers.map((worker) => worker.observer)).toEqual([null, null])
    }))
})
