/** The events of a worker, their order, and the metrics, in the simulation. */
import { describe, expect, test } from '@jest/globals'
import { call, currentWorker, ready, remote, rref } from '../api/api.js'
import { expose } from '../common/function-registry.js'
import { Cluster, failure, overSeeds, thrown } from '../worker/sim-cluster.suite.js'
import type { InspectEvent } from './inspection.js'
import { ACTORS_MAX } from './metrics.js'

const echo = (value: unknown) => value
const nothing = () => {}
const sleep = (ms: number) => {
  const { clock } = currentWorker()
  return new Promise<void>((resolve) => {
    clock.setTimer(ms, resolve)
  })
}
const fails = () => {
  throw new Error('no')
}
class Observer {
  async step(ms: number): Promise<number> {
    await sleep(ms)
    return ms
  }
  boom(): void {
    throw new Error('boom')
  }
  nothing(): void {}
}
const makeLate = async (ms: number): Promise<Observer> => {
  await sleep(ms)
  return new Observer()
}
class Careful {
  static readonly serial = true
  async step(ms: number): Promise<number> {
    await sleep(ms)
    return ms
  }
}
expose({ echo, nothing, sleep, fails, makeLate, Observer, Careful })

/** `kind type what` of each event. */
const short = (events: readonly InspectEvent[]) =>
  events.map((event) =>
    [event.kind, 'type' in event ? event.type : '', 'what' in event ? event.what : ''].filter((part) => part !== '').join(' '),
  )

describe('inspection', () => {
  test('INS-1: tells what happens at both ends of a call, in order, with numbers that have no gap', async () => {
    await overSeeds(5, 2, async ({ workers }) => {
      const here: InspectEvent[] = []
      const there: InspectEvent[] = []
      const stop = workers[0]!.inspect((event) => here.push(event))
      workers[1]!.inspect((event) => there.push(event))
      await call('worker1', echo, [1])
      await failure(call('worker1', fails))
      await call('worker1', sleep, [20])
      stop()
      await call('worker1', nothing)
      expect(short(here)).toEqual(
        ['echo', 'fails', 'sleep'].flatMap((what) => [`sent CALL ${what}`, `received ${what === 'fails' ? 'EXCEPTION' : 'RESULT'}`]),
      )
      expect(short(there.slice(0, 4))).toEqual(['received CALL echo', 'begun CALL echo', 'ended CALL echo', 'sent RESULT'])
      expect(there.filter(({ kind }) => kind === 'ended')).toMatchObject([
        { what: 'echo', outcome: 'value', from: 'worker0' },
        { what: 'fails', outcome: 'error' },
        { what: 'sleep', outcome: 'value' },
        { what: 'nothing', outcome: 'value' },
      ])
      const slept = there.find((event) => event.kind === 'ended' && event.what === 'sleep') as InspectEvent & { kind: 'ended' }
      expect(slept.runMs).toBeGreaterThanOrEqual(20)
      expect(there.map(({ seq }) => seq)).toEqual(there.map((_, i) => i + 1))
      // A request and its reply have one number.
      const sent = there.filter((event) => event.kind === 'sent')
      const received = there.filter((event) => event.kind === 'received')
      expect(sent.map((event) => (event as { requestId: number }).requestId)).toEqual(
        received.map((event) => (event as { requestId: number }).requestId),
      )
    })
  })

  test('INS-1: methods are told with their actor; deaths and dead letters too', async () => {
    const cluster = new Cluster(1, 2)
    const events: InspectEvent[] = []
    await cluster.run(0, async () => {
      const observer = remote('worker1', Observer)
      const stop = cluster.workers[1]!.inspect((event) => events.push(event))
      await observer.call('step', [1])
      stop()
      expect(events.filter(({ kind }) => kind === 'begun')).toMatchObject([{ what: 'Observer' }, { what: 'Observer#0.0.step' }])
      const deaths: InspectEvent[] = []
      cluster.workers[0]!.inspect((event) => deaths.push(event))
      await failure(call('worker1', sleep, [1000], { timeoutMs: 20 }))
      cluster.world.crash('worker1')
      await sleep(50)
      expect(deaths.filter(({ kind }) => kind === 'death')).toMatchObject([{ worker: 'worker1', workerId: 1, cause: 'link-closed' }])
    })
  })

  test('INS-2: costs nothing and tells nothing when nobody listens; numbers go on when somebody listens again', async () => {
    await overSeeds(1, 2, async ({ workers }) => {
      expect(workers[0]!.observer).toBeNull()
      const events: InspectEvent[] = []
      workers[0]!.inspect((event) => events.push(event))()
      expect(workers[0]!.observer).toBeNull()
      const stop = workers[0]!.inspect((event) => events.push(event))
      await call('worker1', nothing)
      stop()
      await call('worker1', nothing)
      workers[0]!.inspect((event) => events.push(event))
      await call('worker1', nothing)
      expect(events.map(({ seq }) => seq)).toEqual([1, 2, 3, 4])
    })
  })

  test('INS-3: what a listener throws is reported, and the others and the call go on', async () => {
    const cluster = new Cluster(1, 2)
    const events: InspectEvent[] = []
    await cluster.run(0, async () => {
      cluster.workers[1]!.inspect(() => {
        throw new Error('listener')
      })
      cluster.workers[1]!.inspect((event) => events.push(event))
      expect(await call('worker1', echo, [2])).toBe(2)
    })
    expect(events).toHaveLength(4)
    expect(cluster.bugs.map((bug) => (bug as Error).message)).toEqual(Array(4).fill('listener'))
  })

  test('INS-4: full mailboxes and waits for room are told', async () => {
    await overSeeds(
      2,
      2,
      async ({ workers }) => {
        const events: InspectEvent[] = []
        workers[0]!.inspect((event) => events.push(event))
        const calls = [call('worker1', nothing), call('worker1', nothing)]
        await failure(call('worker1', echo, [1]))
        await ready('worker1')
        await Promise.all(calls)
        expect(events.filter(({ kind }) => kind === 'mailbox-full')).toMatchObject([{ to: 'worker1', what: 'echo', calls: 2 }])
        expect(events.filter(({ kind }) => kind === 'credit-stall')).toMatchObject([{ to: 'worker1', calls: 2 }])
      },
      { mailbox: { callsMax: 2 } },
    )
  })

  test('INS-2: who only counts is told nothing, of full mailboxes and of the end either', async () => {
    const cluster = new Cluster(1, 2, { mailbox: { callsMax: 2 } })
    await cluster.run(0, async () => {
      const worker = currentWorker()
      worker.metrics()
      const calls = [call('worker1', nothing), call('worker1', nothing)]
      expect((await failure(call('worker1', echo, [1]))).code).toBe('MAILBOX_FULL')
      await Promise.all(calls)
      await worker.close()
      expect(worker.metrics().messages).toBe(0)
    })
  })

  test('INS-5: a stream gives the events in order, drops the oldest beyond its capacity, counts them, and ends', async () => {
    await overSeeds(1, 2, async ({ workers }) => {
      const stream = workers[1]!.inspectStream({ capacity: 3 })
      for (let i = 0; i < 3; i++) await call('worker1', echo, [i])
      expect(stream.dropped).toBe(9)
      stream.close()
      const events: InspectEvent[] = []
      for await (const event of stream) events.push(event)
      expect(events.map(({ seq }) => seq)).toEqual([10, 11, 12])
      expect(workers[1]!.observer).toBeNull()

      // A reader that waits gets each as it happens; leaving the loop ends the stream.
      const kinds: string[] = []
      const reading = (async () => {
        for await (const { kind } of workers[1]!.inspectStream()) if (kinds.push(kind) === 4) break
      })()
      await call('worker1', nothing)
      await reading
      expect(kinds).toEqual(['received', 'begun', 'ended', 'sent'])
      expect(workers[1]!.observer).toBeNull()
    })
  })

  test('INS-5: closing a stream, once or twice, ends the reader that waits', async () => {
    await overSeeds(1, 1, async ({ workers }) => {
      const stream = workers[0]!.inspectStream()
      const waits = stream.next()
      stream.close()
      stream.close()
      expect(await waits).toEqual({ done: true, value: undefined })
    })
  })

  test('INS-1, INS-6: dead letters that arose here are told as those that came', async () => {
    const { workers } = new Cluster(1, 1)
    const told: InspectEvent[] = []
    workers[0]!.inspect((event) => told.push(event))
    workers[0]!.letter('unwatched-crash', 'Observer#0.1: no')
    expect(told).toMatchObject([{ kind: 'dead-letter', reason: 'unwatched-crash', from: null, what: 'Observer#0.1: no' }])
    expect(workers[0]!.deadLetters().total).toBe(1)
  })

  test('INS-5: a capacity that holds nothing is refused', () => {
    const { workers } = new Cluster(1, 1)
    for (const capacity of [0, -1, 1.5, Number.NaN]) {
      expect(thrown(() => workers[0]!.inspectStream({ capacity })).code).toBe('INVALID_ARGUMENT')
    }
    expect(workers[0]!.observer).toBeNull()
  })

  test('INS-6: dead letters can be read, with counts, reasons and the last few', async () => {
    const cluster = new Cluster(1, 2)
    await cluster.run(0, async () => {
      expect(cluster.workers[0]!.deadLetters()).toMatchObject({ total: 0, last: [] })
      for (let i = 0; i < 40; i++) cluster.workers[1]!.letter('stopped', `letter ${i}`, cluster.workers[0]!.info)
      const { total, counts, last } = cluster.workers[1]!.deadLetters()
      expect({ total, stopped: counts.stopped, expired: counts.expired }).toEqual({ total: 40, stopped: 40, expired: 0 })
      expect(last).toHaveLength(32)
      expect(last.at(-1)).toMatchObject({ reason: 'stopped', from: 'worker0', what: 'letter 39' })
    })
  })
})

describe('metrics', () => {
  test('MET-1, MET-2: count calls by worker and by actor: how many, how long they waited and ran', async () => {
    await overSeeds(3, 2, async ({ workers }) => {
      const there = workers[1]!
      const observers = [remote('worker1', Observer), remote('worker1', Observer)] as const
      for (const observer of observers) await observer.call('step', [0])
      expect(there.metrics()).toMatchObject({ messages: 0, depth: 0, actors: {} })
      await Promise.all([observers[0].call('step', [30]), observers[0].call('step', [10]), failure(observers[1].call('boom', []))])
      await call('worker1', nothing)
      const { messages, failed, depth, depthMax, runMs, runMaxMs, waitMs, actors, lanes } = there.metrics()
      expect({ messages, failed, depth, lanes }).toEqual({
        messages: 4,
        failed: 1,
        depth: 0,
        lanes: { signal: 0, control: 0, gradient: 0, task: 0, call: 0 },
      })
      expect(depthMax).toBeGreaterThanOrEqual(1)
      expect(waitMs).toBeGreaterThanOrEqual(0)
      expect(runMs).toBeGreaterThanOrEqual(40)
      expect(runMaxMs).toBeGreaterThanOrEqual(30)
      expect(Object.entries(actors)).toEqual([
        [expect.stringMatching(/^Observer#0\.\d+$/), expect.objectContaining({ messages: 2, failed: 0, depth: 0 })],
        [expect.stringMatching(/^Observer#0\.\d+$/), expect.objectContaining({ messages: 1, failed: 1 })],
      ])
      for (const observer of observers) observer.dispose()
    })
  })

  test('MET-3: what waits is the depth; what ends before it begins leaves it', async () => {
    const cluster = new Cluster(1, 2)
    await cluster.run(0, async () => {
      const there = cluster.workers[1]!
      there.metrics()
      const { pump } = there
      const run = pump.runNow
      pump.runNow = () => {}
      const late = Array.from({ length: 3 }, () => failure(call('worker1', nothing, [], { timeoutMs: 20 })))
      const calls = Array.from({ length: 2 }, () => call('worker1', nothing))
      await Promise.all(late)
      await sleep(30)
      expect(there.metrics()).toMatchObject({ depth: 5, depthMax: 5, messages: 0, lanes: { call: 5 } })
      pump.runNow = run
      there.pushTask({ run: () => {} }, 0)
      await Promise.all(calls)
      expect(there.metrics()).toMatchObject({ depth: 0, depthMax: 5, messages: 2, lanes: { call: 0 } })
      expect(there.metrics().waitMaxMs).toBeGreaterThanOrEqual(30)
    })
  })

  test('INS-1, MET-3: what a serial actor puts off begins when its turn comes, and waits until then', async () => {
    await overSeeds(3, 2, async ({ workers }) => {
      const there = workers[1]!
      using careful = remote('worker1', Careful)
      await careful.call('step', [0])
      const events: InspectEvent[] = []
      const stop = there.inspect((event) => events.push(event))
      there.metrics()
      const [first, second, third] = [careful.call('step', [30]), careful.call('step', [30]), careful.call('step', [30])]
      await sleep(10)
      expect(there.metrics()).toMatchObject({ depth: 2, messages: 1, actors: { 'Careful#0.0': { depth: 2, messages: 1 } } })
      third.cancel()
      await failure(third)
      await Promise.all([first, second])
      expect(there.metrics()).toMatchObject({ depth: 0, messages: 2, actors: { 'Careful#0.0': { depth: 0, messages: 2 } } })
      expect(there.metrics().waitMaxMs).toBeGreaterThanOrEqual(30)
      const ofSecond = events.filter(
        (event) => 'requestId' in event && event.requestId === (events.at(-1) as { requestId: number }).requestId,
      )
      expect(ofSecond.map(({ kind }) => kind)).toEqual(['received', 'begun', 'put-off', 'begun', 'ended', 'sent'])
      stop()
      await sleep(10)
      expect(there.deadLetters().last).toMatchObject([{ reason: 'cancelled' }])
      there.letters.counts.cancelled = 0
    })
  })

  test('MET-4: nothing is counted before the first look, nor after stopMetrics', async () => {
    await overSeeds(1, 2, async ({ workers }) => {
      await call('worker1', nothing)
      expect(workers[1]!.observer).toBeNull()
      expect(workers[1]!.metrics().messages).toBe(0)
      await call('worker1', nothing)
      expect(workers[1]!.metrics().messages).toBe(1)
      workers[1]!.stopMetrics()
      expect(workers[1]!.observer).toBeNull()
      expect(workers[1]!.metrics().messages).toBe(0)
    })
  })

  test('MET-4: a call that came while others counted is not counted by those who begin later', async () => {
    await overSeeds(3, 2, async ({ workers }, seed) => {
      const there = workers[1]!
      there.metrics()
      const calls = [call('worker1', sleep, [5]), call('worker1', sleep, [5])]
      // Some of them wait, some run.
      await sleep(seed - 1)
      there.stopMetrics()
      there.metrics()
      await Promise.all(calls)
      const { depth, messages, runMs, turnMs } = there.metrics()
      if (seed > 1) expect({ depth, messages, runMs, turnMs }).toEqual({ depth: 0, messages: 0, runMs: 0, turnMs: 0 })
      expect(depth).toBe(0)
    })
  })

  test('MET-4: nor is one that waited then: what begins, is put off or ends unbegun counts for nobody', async () => {
    const cluster = new Cluster(1, 2)
    await cluster.run(0, async () => {
      const there = cluster.workers[1]!
      using careful = remote('worker1', Careful)
      await careful.created()
      there.metrics()
      const busy = careful.call('step', [100])
      await sleep(5)
      const { pump } = there
      const run = pump.runNow
      pump.runNow = () => {}
      const late = failure(call('worker1', nothing, [], { timeoutMs: 20 }))
      const others = [call('worker1', nothing), careful.call('step', [0])]
      await late
      await sleep(10)
      expect(there.metrics()).toMatchObject({ depth: 3, messages: 1 })
      there.stopMetrics()
      there.metrics()
      pump.runNow = run
      there.pushTask({ run: () => {} }, 0)
      await Promise.all([busy, ...others])
      expect(there.metrics()).toMatchObject({ depth: 0, messages: 0, runMs: 0, turnMs: 0, actors: {} })
    })
  })

  test('MET-2: an actor that is called before it is made gets its name when it is, and only so many are told apart', async () => {
    await overSeeds(1, 2, async ({ workers }) => {
      workers[1]!.metrics()
      using late = remote('worker1', makeLate, [20])
      expect(await late.call('step', [1])).toBe(1)
      expect(Object.keys(workers[1]!.metrics().actors)).toEqual([expect.stringMatching(/^Observer#/)])
      workers[0]!.metrics()
      for (let n = 0; n <= ACTORS_MAX; n++) {
        using own = rref(new Observer())
        await own.call('nothing', [])
      }
      const { messages, actors } = workers[0]!.metrics()
      expect([messages, Object.keys(actors).length]).toEqual([ACTORS_MAX + 1, ACTORS_MAX])
    })
  })

  test('INS-7: getDebugInfo has PyTorch’s keys of the agent beside those of references, each once', async () => {
    await overSeeds(1, 2, async ({ workers }) => {
      const observer = remote('worker1', Observer)
      const step = observer.call('step', [20])
      await call('worker1', nothing)
      expect(workers[0]!.getDebugInfo()).toMatchObject({ 'agent.clientActiveCalls': 1, 'agent.serverActiveCalls': 0, userRRefs: 1 })
      expect(workers[1]!.getDebugInfo()).toMatchObject({ 'agent.serverActiveCalls': 1, 'agent.serverActiveAsyncCalls': 1, ownerRRefs: 1 })
      await step
      observer.dispose()
    })
    const [worker] = new Cluster(1, 1).workers
    worker!.contribute(() => ({ userRRefs: 5 }))
    expect(() => worker!.debugInfo()).toThrow('two counts are called userRRefs')
  })
})
