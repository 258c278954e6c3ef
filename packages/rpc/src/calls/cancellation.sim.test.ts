/** Cancellation of calls: at once at the caller, at the callee by its signal, and of all calls that the callee had made. */
import { getEventListeners } from 'node:events'
import { setImmediate } from 'node:timers/promises'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { describe, expect, test } from '@jest/globals'
import { callCancelled } from '@postgrad/base/internal'
import { call, currentSignal, currentWorker, remote, rref } from '../api/api.js'
import { expose } from '../common/function-registry.js'
import type { RRef } from '../references/rref.js'
import { Cluster, failure, overSeeds, runWithCrash, thrown, withSeed } from '../worker/sim-cluster.suite.js'

const log: string[] = []
const sleep = (ms: number): Promise<number> => {
  const { clock } = currentWorker()
  return new Promise((resolve) => {
    clock.setTimer(ms, () => resolve(ms))
  })
}
const echo = <T>(value: T): T => value
/** Ends when it is cancelled. */
const untilCancelled = (): Promise<string> => {
  const signal = currentSignal()
  const { name } = currentWorker().info
  return new Promise((resolve) => {
    const end = () => {
      log.push(`${name}: ${(signal.reason as { code: string }).code}`)
      resolve('cancelled')
    }
    if (signal.aborted) end()
    else signal.addEventListener('abort', end)
  })
}
/** Notes which worker and which signal a listener of its signal finds. */
const listens = (): Promise<unknown> => {
  const signal = currentSignal()
  return new Promise((resolve) => {
    signal.addEventListener('abort', () => {
      log.push(`${currentWorker().info.name} ${currentSignal() === signal}`)
      resolve('heard')
    })
  })
}
/** Calls on through these workers; the last waits until it is cancelled. */
const chain = async (to: readonly string[]): Promise<string> => {
  const [next, ...rest] = to
  if (next === undefined) return untilCancelled()
  try {
    return await call(next, chain, [rest])
  } catch (error) {
    log.push(`${currentWorker().info.name}: ${(error as { code: string }).code}`)
    throw error
  }
}
const note = (text: string) => {
  log.push(text)
}
const take = (_ref: RRef) => {
  log.push('took')
}
/** Gives a reference, late, whether or not anybody waits for it. */
const giveLater = async (ms: number) => {
  await sleep(ms)
  return rref('given')
}
/** After its call was cancelled, calls others: as part of the call, and as what the worker does by itself. */
const callsLater = async (ms: number) => {
  await sleep(ms)
  log.push((await failure(call('worker0', note, ['never']))).code)
  await currentWorker().run(() => call('worker0', note, ['cleaned up']))
}
const fetchIt = async (ref: RRef) => {
  try {
    return await ref.toHere()
  } finally {
    ref.dispose()
  }
}
const servingHere = () => currentWorker().debugInfo().servingCalls
const tellsSignals = () => {
  const [first, again] = [currentSignal(), currentSignal()]
  return [first === again, first.aborted]
}
/** The second is awaited only when the first has come. */
const callsTwice = async (to: string) => {
  const [first, second] = [call(to, untilCancelled), call(to, untilCancelled)]
  return [await first, await second]
}
/** Waits for two values that are never made. */
const reads = async () => {
  const [first, second] = [remote('worker0', makeSlowly).toHere(), remote(currentWorker().info.name, makeSlowly).toHere()]
  try {
    return [await first, await second]
  } catch (error) {
    log.push(`${(error as { code: string }).code}: ${(error as Error).message.split(': ')[1]!.split(', so')[0]}`)
    throw error
  }
}
class Slow {
  async wait(): Promise<string> {
    return untilCancelled()
  }
}
const makeSlowly = async (): Promise<string> => untilCancelled()
expose({
  sleep,
  echo,
  untilCancelled,
  listens,
  chain,
  note,
  take,
  giveLater,
  callsLater,
  fetchIt,
  servingHere,
  tellsSignals,
  Slow,
  makeSlowly,
  callsTwice,
  reads,
})

async function inCluster(size: number, main: (cluster: Cluster) => Promise<void>, seed = 1): Promise<Cluster> {
  const cluster = new Cluster(seed, size)
  log.length = 0
  await cluster.run(0, () => main(cluster))
  return cluster
}

/** Worker 1 does nothing but receive until the function that is returned is called. */
function busy(cluster: Cluster): () => void {
  const worker = cluster.workers[1]!
  const { pump } = worker
  const { runNow, wake } = pump
  pump.runNow = () => {}
  pump.wake = () => {}
  return () => {
    pump.runNow = runNow
    pump.wake = wake
    worker.pushTask({ run: () => {} }, 0)
  }
}

/** Dead letters of all workers but one, when everything has been delivered. */
async function lettersOf({ world, workers }: Cluster, except?: number): Promise<number> {
  await world.drain()
  return workers.reduce((sum, { info, letters }) => sum + (info.id === except ? 0 : letters.total), 0)
}

describe('a call that is cancelled', () => {
  test('CAN-1, CAN-4: ends at once, with the reason as its cause; the function finds its signal aborted', async () => {
    for (const to of ['worker1', 'worker0']) {
      await overSeeds(3, 2, async (cluster) => {
        log.length = 0
        const future = call(to, untilCancelled)
        await sleep(10)
        const reason = new Error('no longer')
        expect(future.cancel(reason)).toBe(true)
        expect(future.done).toBe(true)
        const error = await failure(future)
        expect(error).toMatchObject({ code: 'CALL_CANCELLED', op: 'untilCancelled', values: { worker: to }, cause: reason })
        expect(future.cancel()).toBe(false)
        await sleep(10)
        expect(log).toEqual([`${to}: CALL_CANCELLED`])
        if (to === 'worker1') expect(cluster.gate(0, 1).sent).toEqual(['CALL', 'CALL_CANCEL'])
        expect(cluster.gate(1, 0).sent).toEqual([])
      })
    }
  })

  test('CAN-1: by a signal, of call, rref.call and toHere, on a user and on the owner', async () => {
    await overSeeds(3, 2, async () => {
      log.length = 0
      for (const to of ['worker1', 'worker0']) {
        const slow = remote(to, Slow)
        const making = new AbortController()
        const value = remote(to, makeSlowly, [], { signal: making.signal })
        await sleep(5)
        const controller = new AbortController()
        const { signal } = controller
        const waits = [call(to, untilCancelled, [], { signal }), slow.call('wait', [], { signal }), value.toHere({ signal })]
        await sleep(5)
        controller.abort('enough')
        for (const wait of waits) expect(await failure(wait)).toMatchObject({ code: 'CALL_CANCELLED', cause: 'enough' })
        await sleep(5)
        expect(log).toEqual([`${to}: CALL_CANCELLED`, `${to}: CALL_CANCELLED`])
        expect(currentWorker().debugInfo()).toMatchObject({ pendingCalls: 0, servingCalls: to === 'worker0' ? 1 : 0 })
        log.length = 0
        slow.dispose()
        // The fetch was cancelled, not the making.
        const again = new AbortController()
        const late = value.toHere({ signal: again.signal })
        await sleep(5)
        again.abort()
        await failure(late)
        expect(log).toEqual([])
        making.abort()
        await sleep(5)
        expect(log).toEqual([`${to}: CALL_CANCELLED`])
        value.dispose()
        log.length = 0
      }
    })
  })

  test('CAN-1: a fetch, by its Future, on a user and on the owner', async () => {
    const cluster = await inCluster(2, async () => {
      for (const to of ['worker1', 'worker0']) {
        using ref = remote(to, makeSlowly)
        const fetch = ref.toHere()
        expect(fetch.cancel(new Error('no more'))).toBe(true)
        expect(fetch.cancel()).toBe(false)
        expect(await failure(fetch)).toMatchObject({ code: 'CALL_CANCELLED', cause: { message: 'no more' } })
      }
    })
    await cluster.world.drain()
    expect(cluster.info(0).pendingCalls).toBe(0)
  })

  test('RPC-21: a wait for a value on its owner refuses what is no time', async () => {
    await inCluster(1, async () => {
      using ref = remote('worker0', makeSlowly)
      expect((await failure(ref.toHere({ timeoutMs: -1 }))).code).toBe('TIMEOUT_INVALID')
    })
  })

  test('CAN-2: with a signal that had aborted it never leaves', async () => {
    const cluster = await inCluster(2, async (cluster) => {
      const signal = AbortSignal.abort('before')
      const made = remote('worker1', echo, [1])
      await made.toHere()
      const before = cluster.messages
      expect(await failure(call('worker1', note, ['no'], { signal }))).toMatchObject({ code: 'CALL_CANCELLED', cause: 'before' })
      expect(await failure(made.toHere({ signal }))).toMatchObject({ code: 'CALL_CANCELLED', cause: 'before' })
      expect(thrown(() => remote('worker1', note, ['no'], { signal }))).toMatchObject({ code: 'CALL_CANCELLED', cause: 'before' })
      expect(cluster.messages).toBe(before)
      made.dispose()
    })
    expect(await cluster.leftovers()).toEqual([])
  })

  test('CAN-3: is not run when it has not begun, and the references in it are disposed', async () => {
    const cluster = await inCluster(2, async (cluster) => {
      const goOn = busy(cluster)
      const mine = rref('mine')
      const futures = [call('worker1', note, ['no']), call('worker1', take, [mine]), call('worker1', note, ['yes'])]
      await sleep(5)
      futures[0]!.cancel()
      futures[1]!.cancel()
      await sleep(5)
      goOn()
      await futures[2]
      for (const cancelled of futures.slice(0, 2)) expect(await failure(cancelled)).toMatchObject({ code: 'CALL_CANCELLED' })
      expect(log).toEqual(['yes'])
    })
    expect(cluster.workers[1]!.letters.counts.cancelled).toBe(2)
    expect(await cluster.leftovers({ letters: 2 })).toEqual([])
  })

  test('CAN-3: is not run while a reference in it waits for its confirmation', async () => {
    const cluster = await inCluster(3, async (cluster) => {
      const theirs = remote('worker2', echo, ['theirs'])
      await theirs.toHere()
      cluster.gate(1, 2).shut()
      const future = call('worker1', take, [theirs])
      await sleep(5)
      future.cancel()
      await sleep(5)
      cluster.gate(1, 2).unshut()
      expect(await failure(future)).toMatchObject({ code: 'CALL_CANCELLED' })
      await sleep(5)
      expect(log).toEqual([])
      theirs.dispose()
    })
    expect(await cluster.leftovers({ letters: 1 })).toEqual([])
  })

  test('CAN-5: takes the calls with it that were made for it, over any number of workers, and no others', async () => {
    await overSeeds(5, 4, async () => {
      log.length = 0
      const kept = call('worker1', sleep, [30])
      const future = call('worker1', chain, [['worker2', 'worker3', 'worker1', 'worker0']])
      await sleep(20)
      future.cancel()
      expect(await failure(future)).toMatchObject({ code: 'CALL_CANCELLED' })
      await sleep(20)
      expect(log.sort()).toEqual([
        'worker0: CALL_CANCELLED',
        'worker1: CALL_CANCELLED',
        'worker1: CALL_CANCELLED',
        'worker2: CALL_CANCELLED',
        'worker3: CALL_CANCELLED',
      ])
      expect(await kept).toBe(30)
    })
  })

  test('CAN-5: later calls of its function are refused, but for those that the worker makes by itself', async () => {
    const cluster = await inCluster(2, async () => {
      const future = call('worker1', callsLater, [10])
      await sleep(5)
      future.cancel()
      await failure(future)
      await sleep(20)
      expect(log).toEqual(['CALL_CANCELLED', 'cleaned up'])
    })
    expect(await cluster.leftovers()).toEqual([])
  })

  test('CAN-5: a wait for a value on its owner ends with the call that waits', async () => {
    const cluster = await inCluster(2, async () => {
      const making = new AbortController()
      const value = remote('worker1', makeSlowly, [], { signal: making.signal })
      await sleep(5)
      const waits = call('worker1', fetchIt, [value])
      await sleep(5)
      waits.cancel()
      await failure(waits)
      await sleep(5)
      // The making of the value, and this call itself.
      expect(await call('worker1', servingHere)).toBe(2)
      making.abort()
      await sleep(5)
      value.dispose()
    })
    expect(await cluster.leftovers()).toEqual([])
  })

  test('CAN-6: a reply that crosses the cancellation is a dead letter, and its references are disposed', async () => {
    const cluster = await inCluster(2, async (cluster) => {
      const future = call('worker1', giveLater, [10])
      await sleep(5)
      cluster.gate(0, 1).shut()
      future.cancel()
      await failure(future)
      await sleep(10)
      cluster.gate(0, 1).unshut()
      await sleep(10)
      expect(cluster.gate(0, 1).sent).toEqual(['CALL', 'CALL_CANCEL', 'RREF_USER_DELETE'])
    })
    expect(cluster.workers[0]!.letters.counts['unknown-request']).toBe(1)
    expect(await cluster.leftovers({ letters: 1 })).toEqual([])
  })

  test('CAN-4: what it gives in the end goes to nobody, references in it are never made', async () => {
    const cluster = await inCluster(2, async (cluster) => {
      const future = call('worker1', giveLater, [10])
      await sleep(5)
      future.cancel()
      await failure(future)
      await sleep(10)
      expect(cluster.gate(1, 0).sent).toEqual([])
    })
    expect(await cluster.leftovers()).toEqual([])
  })

  test('CAN-1: at whatever moment, it ends once, with the value or with CALL_CANCELLED, and nothing is left', async () => {
    const ends = new Set<string>()
    for (let seed = 1; seed <= 60; seed++) {
      await withSeed(seed, async () => {
        const cluster = new Cluster(seed, 3)
        await cluster.run(0, async () => {
          const theirs = remote('worker2', echo, ['theirs'])
          const future = call('worker1', fetchIt, [theirs])
          for (let turn = 0; turn < seed % 20; turn++) await sleep(0.05)
          const cancelled = future.cancel()
          const end = await future.then(
            (value) => `${value}`,
            (error) => error.code as string,
          )
          expect(end).toBe(cancelled ? 'CALL_CANCELLED' : 'theirs')
          ends.add(end)
          theirs.dispose()
        })
        const letters = await lettersOf(cluster)
        expect(letters).toBeLessThanOrEqual(2)
        expect(await cluster.leftovers({ letters })).toEqual([])
      })
    }
    expect(ends).toEqual(new Set(['CALL_CANCELLED', 'theirs']))
  })
})

describe('whose caller is gone', () => {
  test('CAN-7: a caller that dies or shuts down cancels its calls, and those that were made for them', async () => {
    for (const end of ['crash', 'close'] as const) {
      for (let seed = 1; seed <= 5; seed++) {
        await withSeed(seed, async () => {
          const cluster = await inCluster(
            3,
            async ({ workers, world }) => {
              workers[1]!.run(() => call('worker0', chain, [['worker2']])).catch(() => {})
              workers[1]!.run(() => call('worker2', untilCancelled)).catch(() => {})
              await sleep(10)
              if (end === 'crash') world.crash('worker1')
              else await workers[1]!.close()
              await sleep(10)
            },
            seed,
          )
          expect([...log].sort()).toEqual(['worker0: CALL_CANCELLED', 'worker2: CALL_CANCELLED', 'worker2: WORKER_DIED'])
          expect(await cluster.leftovers({ except: [1] })).toEqual([])
        })
      }
    }
  })

  test('CAN-7: what it was making goes on while others refer to it, and ends otherwise', async () => {
    const cluster = await inCluster(3, async ({ workers, world }) => {
      const given = workers[1]!.run(async () => {
        const [shared, own] = [remote('worker2', sleepAndNote, ['shared']), remote('worker2', makeSlowly)]
        await call('worker0', keep, [shared])
        return own
      })
      given.catch(() => {})
      while (kept.length === 0) await sleep(1)
      world.crash('worker1')
      expect(await kept[0]!.toHere()).toBe('shared')
      kept.pop()!.dispose()
    })
    expect(log).toEqual(['worker2: WORKER_DIED', 'shared'])
    expect(await cluster.leftovers({ except: [1] })).toEqual([])
  })

  test('CAN-5: at whatever step the caller dies, nothing is left of what it had called', async () => {
    for (let seed = 1; seed <= 3; seed++) {
      for (let step = 0; ; step++) {
        const { crashed } = await withSeed(`${seed}, step ${step}`, async () => {
          const cluster = new Cluster(seed, 4)
          const future = cluster.workers[1]!.run(() => call('worker2', chain, [['worker3', 'worker2']], { timeoutMs: 50 }))
          const ended = await runWithCrash(cluster, future, 'worker1', step)
          const letters = await lettersOf(cluster, 1)
          expect(await cluster.leftovers({ except: [1], letters })).toEqual([])
          return ended
        })
        if (!crashed) break
      }
    }
  })
})

const kept: RRef[] = []
const keep = (ref: RRef) => {
  kept.push(ref)
}
const sleepAndNote = async (text: string) => {
  await sleep(50)
  log.push(text)
  return text
}
expose({ keep, sleepAndNote })

describe('a remote call that is cancelled', () => {
  test('CAN-8: before it has begun, it is not run; the reference fails for everybody', async () => {
    const cluster = await inCluster(3, async (cluster) => {
      const goOn = busy(cluster)
      const controller = new AbortController()
      const made = remote('worker1', note, ['no'], { signal: controller.signal })
      const shared = call('worker2', fetchIt, [made as RRef])
      await sleep(5)
      controller.abort()
      expect(await failure(made.toHere())).toMatchObject({ code: 'CALL_CANCELLED' })
      await sleep(5)
      goOn()
      expect(await failure(shared)).toMatchObject({ code: 'CALL_CANCELLED' })
      expect(log).toEqual([])
      made.dispose()
    })
    const letters = await lettersOf(cluster)
    expect(cluster.workers[1]!.letters.counts.cancelled).toBe(1)
    expect(await cluster.leftovers({ letters })).toEqual([])
  })

  test('CAN-8: while it runs, also after it was confirmed, on another worker and on this one', async () => {
    for (const to of ['worker1', 'worker0']) {
      const cluster = await inCluster(2, async () => {
        const controller = new AbortController()
        const made = remote(to, makeSlowly, [], { signal: controller.signal })
        const waits = made.toHere()
        await sleep(5)
        expect(made.confirmedByOwner()).toBe(true)
        controller.abort()
        expect(await failure(waits)).toMatchObject({ code: 'CALL_CANCELLED' })
        await sleep(5)
        expect(log).toEqual([`${to}: CALL_CANCELLED`])
        made.dispose()
      })
      expect(await cluster.leftovers()).toEqual([])
    }
  })

  test('CAN-8: once the value is there, or the reference has been disposed, an abort is nothing', async () => {
    const cluster = await inCluster(2, async (cluster) => {
      for (const to of ['worker1', 'worker0']) {
        const controller = new AbortController()
        const made = remote(to, echo, [5], { signal: controller.signal })
        expect(await made.toHere()).toBe(5)
        controller.abort()
        await sleep(5)
        expect(await made.toHere()).toBe(5)
        made.dispose()
      }
      const given = new AbortController()
      remote('worker1', echo, [5], { signal: given.signal }).dispose()
      const { messages } = cluster
      given.abort()
      expect(cluster.messages).toBe(messages)
    })
    expect(await cluster.leftovers()).toEqual([])
  })
})

test('CAN-12: what has ended, or was collected, is no more heard of when its signal aborts', async () => {
  setFlagsFromString('--expose-gc')
  const collect = runInNewContext('gc') as () => void
  const cluster = new Cluster(1, 2, { finalizers: 'release' })
  await cluster.run(0, async () => {
    const controller = new AbortController()
    const { signal } = controller
    await Promise.all(Array.from({ length: 100 }, (_, i) => call('worker1', echo, [i], { signal })))
    expect(getEventListeners(signal, 'abort').length).toBe(1)
    await (async () => {
      await remote('worker1', echo, [1], { signal }).toHere()
    })()
    for (let i = 0; i < 50 && cluster.info(0).userRRefs! > 0; i++) {
      collect()
      await setImmediate()
      await sleep(1)
    }
    expect(cluster.workers[0]!.rrefs.finalized).toBe(1)
    await sleep(10)
    const { messages } = cluster
    controller.abort()
    expect(cluster.messages).toBe(messages)
  })
  expect(await cluster.leftovers()).toEqual([])
})

describe('what nobody awaits', () => {
  /** An unhandled rejection, which on threads would end a worker, fails the test: jest listens for it. */
  async function inClusterToTheEnd(main: (cluster: Cluster) => Promise<void>): Promise<void> {
    const { world } = await inCluster(2, main)
    await world.drain()
    await setImmediate()
  }

  test('CAN-11: a call that was cancelled is no unhandled rejection, at either end', async () => {
    await inClusterToTheEnd(async () => {
      call('worker1', sleep, [5]).cancel()
      const calling = call('worker1', callsTwice, ['worker0'])
      await sleep(10)
      calling.cancel()
      await sleep(10)
    })
  })

  test('CAN-11: nor is one whose callee dies, or whose worker shuts down', async () => {
    await inClusterToTheEnd(async ({ world, workers }) => {
      const served = call('worker0', callsTwice, ['worker1'])
      await sleep(5)
      world.crash('worker1')
      expect(await failure(served)).toMatchObject({ code: 'WORKER_DIED' })
      void call('worker0', untilCancelled)
      await workers[0]!.close()
    })
  })

  test('CAN-11: nor is one whose time was that of the call which it is part of, in whichever order the two ends notice', async () => {
    await inClusterToTheEnd(async (cluster) => {
      const [first, second] = [call('worker1', callsTwice, ['worker0'], { timeoutMs: 20 }), call('worker1', reads, [], { timeoutMs: 20 })]
      await sleep(5)
      // The word of the caller's own deadline does not come.
      cluster.gate(0, 1).shut()
      for (const called of [first, second]) expect((await failure(called)).code).toBe('RPC_TIMEOUT')
      await sleep(100)
      cluster.gate(0, 1).unshut()
    })
    expect(log).toContain('RPC_TIMEOUT: nothing is left of the time of the call that is being served here')
  })
})

describe('a deadline', () => {
  test('CAN-9: that passes cancels at the callee, and whatever it has called', async () => {
    const cluster = await inCluster(3, async () => {
      expect(await failure(call('worker1', chain, [['worker2']], { timeoutMs: 20 }))).toMatchObject({ code: 'RPC_TIMEOUT' })
      await sleep(20)
      expect(log).toContain('worker2: CALL_CANCELLED')
    })
    // The two deadlines pass at about the same time, so an error may cross.
    const letters = await lettersOf(cluster)
    expect(letters).toBeLessThanOrEqual(1)
    expect(await cluster.leftovers({ letters })).toEqual([])
  })
})

describe('currentSignal', () => {
  test('CAN-10: is the one of the served call, made once; outside of one the one of the worker, which its shutdown aborts', async () => {
    expect(thrown(() => currentSignal()).code).toBe('RPC_NOT_INITIALIZED')
    await inCluster(2, async ({ workers }) => {
      expect(await call('worker1', tellsSignals)).toEqual([true, false])
      const signal = workers[1]!.run(() => currentSignal())
      expect(workers[1]!.run(() => currentSignal())).toBe(signal)
      const served = failure(call('worker1', untilCancelled))
      await sleep(5)
      expect(signal.aborted).toBe(false)
      await workers[1]!.close()
      expect(signal.reason).toMatchObject({ code: 'RPC_SHUT_DOWN' })
      expect(workers[1]!.run(() => currentSignal()).aborted).toBe(true)
      expect(await served).toMatchObject({ code: 'WORKER_DIED' })
      expect(log).toEqual(['worker1: RPC_SHUT_DOWN'])
    })
  })

  test('CAN-10: listeners of the signal run in the scope in which it was asked for, however the call ends', async () => {
    await inCluster(3, async ({ workers }) => {
      for (const to of ['worker1', 'worker0']) {
        const future = call(to, listens)
        await sleep(5)
        future.cancel()
        await sleep(5)
        expect(await failure(call(to, listens, [], { timeoutMs: 20 }))).toMatchObject({ code: 'RPC_TIMEOUT' })
        await sleep(5)
        expect(log.splice(0)).toEqual([`${to} true`, `${to} true`])
      }
      const ofWorker = workers[2]!.run(() => listens())
      const served = failure(call('worker2', listens))
      const { result } = workers[2]!.runCancellable(listens)
      await sleep(5)
      await workers[2]!.close()
      expect([await ofWorker, await result]).toEqual(['heard', 'heard'])
      expect(await served).toMatchObject({ code: 'WORKER_DIED' })
      expect(log).toEqual(['worker2 true', 'worker2 true', 'worker2 true'])
    })
  })
})

describe('what somebody outside of all workers has run', () => {
  test('CAN-13: may be cancelled: its signal aborts, its calls are cancelled, later ones are not made; what has ended is not', async () => {
    await inCluster(2, async ({ workers }) => {
      const [worker] = workers
      const ended = worker!.runCancellable(() => echo(1))
      const { result, cancel } = worker!.runCancellable(async () => {
        const called = failure(call('worker1', untilCancelled))
        await untilCancelled()
        return [(await called).code, (await failure(call('worker1', note, ['never']))).code]
      })
      expect(await ended.result).toBe(1)
      await sleep(5)
      const reason = callCancelled('outside', null, 'not wanted')
      cancel(reason)
      ended.cancel(reason)
      expect(await result).toEqual(['CALL_CANCELLED', 'CALL_CANCELLED'])
      await sleep(20)
      expect(log).toEqual(['worker0: CALL_CANCELLED', 'worker1: CALL_CANCELLED'])
    })
  })

  test('CAN-13: the end of its worker aborts its signal as well', async () => {
    await inCluster(1, async ({ workers }) => {
      const { result } = workers[0]!.runCancellable(untilCancelled)
      await sleep(5)
      const late = workers[0]!.runCancellable(async () => {
        await sleep(10)
        return (currentSignal().reason as { code: string }).code
      })
      await workers[0]!.close()
      expect(await result).toBe('cancelled')
      expect(log).toEqual(['worker0: RPC_SHUT_DOWN'])
      expect(await late.result).toBe('RPC_SHUT_DOWN')
    })
  })
})
