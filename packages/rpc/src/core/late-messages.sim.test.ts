/** Tensors of devices in messages, which wait for their bytes: values, order, failures, ends. The device is the resident one of the tests. */
import { describe, expect, test } from '@jest/globals'
import { type Tensor, tensor } from '@postgrad/tensor'
import { residentDevice } from '@postgrad/tensor/suite'
import { call, currentRuntime, currentWorker, remote, stream } from '../api/api.js'
import { expose } from '../common/function-registry.js'
import type { RRef } from '../references/rref.js'
import { Cluster, failure, overSeeds, thrown, withSeed } from '../worker/sim-cluster.suite.js'
import type { DeviceMap } from './device-map.js'

const there = residentDevice()
const other = residentDevice()
const spec = there.spec as string
const log: string[] = []
const double = (x: Tensor) => x.mul(2)
const same = (x: Tensor) => x
const deviceOf = (x: Tensor) => x.device.spec as string
const note = (text: string, _x?: Tensor) => {
  log.push(text)
}
/** A tensor whose values cannot be had. */
const broken = () => tensor([1, 2], { device: there }).indexSelect(0, tensor([7], { dtype: 'int32', device: there }))
const make = () => ({ made: true })
const use = async (reference: RRef, _x: Tensor) => {
  using held = reference
  return await held.toHere()
}
const begins = (_x: Tensor) => {
  log.push('begins')
}
const result = () => x(5, 6)
function* items(isLarge: boolean): Generator<Tensor, unknown> {
  yield x(1)
  yield x(2)
  return isLarge ? new Float32Array(100_000) : 7
}
/** In simulated time. */
const sleep = (ms: number) =>
  new Promise<void>((resolve) => {
    currentWorker().clock.setTimer(ms, resolve)
  })
const keep = (_reference: RRef, _x: Tensor) => {}
expose({ double, same, deviceOf, note, broken, make, keep, use, begins, result, items })

const setDeviceMap = (to: string, devices: DeviceMap) => currentRuntime().setDeviceMap(to, devices)
const map = (to = 'worker1') => setDeviceMap(to, { [spec]: spec })
const x = (...values: number[]) => tensor(values, { device: there })

describe('a tensor of a device', () => {
  test('DEV-1: arrives on the device that the map names, and results return by the inverse', async () => {
    await overSeeds(3, 2, async () => {
      setDeviceMap('worker1', { [spec]: other.spec })
      expect(await call('worker1', deviceOf, [x(1, 2)])).toBe(other.spec)
      const doubled = (await call('worker1', double, [x(1, 2)])) as Tensor
      expect(doubled.device.spec).toBe(spec)
      expect((await doubled.cpu()).toArray()).toEqual([2, 4])
      expect(await call('worker1', deviceOf, [tensor([1])])).toBe('cpu')
      for (const dtype of ['float64', 'int32', 'bool'] as const) {
        const back = (await call('worker1', same, [tensor([0, 1, 1], { dtype, device: there })])) as Tensor
        expect([back.dtype, back.device.spec, [...(await back.data())].map(Number)]).toEqual([dtype, spec, [0, 1, 1]])
      }
      const empty = (await call('worker1', same, [tensor([], { device: there }).reshape([0, 3])])) as Tensor
      expect([empty.shape, empty.device.spec]).toEqual([[0, 3], spec])
      const closed = x(1)
      closed.close()
      expect(await failure(call('worker1', same, [closed]))).toMatchObject({ code: 'TENSOR_CLOSED' })
    })
  })

  test('DEV-2: without an entry is refused before anything is sent', async () => {
    await overSeeds(2, 2, async (cluster) => {
      const before = cluster.messages
      const error = await failure(call('worker1', double, [x(1)]))
      expect(error).toMatchObject({ code: 'DEVICE_MAP_MISSING', values: { device: spec, worker: 'worker1' } })
      expect(cluster.messages).toBe(before)
      // To itself it needs none.
      expect(await call('worker0', deviceOf, [x(1)])).toBe(spec)
    })
  })

  test('DEV-3: a map names each device once, and devices that there are', async () => {
    await withSeed(1, async () => {
      const cluster = new Cluster(1, 2)
      await cluster.run(0, async () => {
        expect(thrown(() => setDeviceMap('worker1', { [spec]: 'gpu', [other.spec]: 'gpu' })).code).toBe('INVALID_ARGUMENT')
        expect(thrown(() => setDeviceMap('worker1', { [spec]: 'cpu' })).code).toBe('INVALID_ARGUMENT')
        expect(thrown(() => setDeviceMap('worker1', new Map([[spec, spec]]) as never)).code).toBe('INVALID_ARGUMENT')
        expect(thrown(() => setDeviceMap('worker1', null as never)).code).toBe('INVALID_ARGUMENT')
        expect(thrown(() => setDeviceMap('worker1', { cpu: 'gpu' })).code).toBe('DEVICE_UNKNOWN')
        setDeviceMap('worker1', { [spec]: 'nowhere' })
        expect(await failure(call('worker1', double, [x(1)]))).toMatchObject({ code: 'DEVICE_UNKNOWN' })
      })
      expect(await cluster.leftovers({ letters: 1 })).toEqual([])
    })
  })

  test('LATE-1: has the values of the call, whatever is written later', async () => {
    await overSeeds(3, 2, async () => {
      map()
      const [small, large, strided] = [x(1, 2), tensor(new Float32Array(5000).fill(3), { device: there }), x(1, 2, 3, 4).reshape([2, 2]).T]
      const release = there.home.holdReads()
      const futures = [small, large, strided].map((each) => call('worker1', double, [each]))
      for (const each of [small, large, strided]) each.fill_(0)
      release()
      const [a, b, c] = (await Promise.all(futures)) as Tensor[]
      expect((await a!.cpu()).toArray()).toEqual([2, 4])
      expect((await b!.cpu()).toArray()).toEqual(Array(5000).fill(6))
      expect((await c!.cpu()).toArray()).toEqual([
        [2, 6],
        [4, 8],
      ])
    })
  })
})

describe('a late message', () => {
  test('LATE-2: keeps its order among calls, and what has another order goes ahead', async () => {
    await overSeeds(5, 2, async (cluster) => {
      map()
      log.length = 0
      const release = there.home.holdReads()
      const late = call('worker1', note, ['late', x(1)])
      const next = call('worker1', note, ['next'])
      const { workers } = cluster
      expect(workers[0]!.debugInfo().lateMessages).toBe(2)
      // A message of the control lane need not wait.
      setDeviceMap('worker1', { [spec]: spec, [other.spec]: other.spec })
      expect(workers[0]!.debugInfo().lateMessages).toBe(2)
      expect(await call('worker0', note, ['own'])).toBeUndefined()
      expect(log).toEqual(['own'])
      release()
      await Promise.all([late, next])
      expect(log).toEqual(['own', 'late', 'next'])
      expect(workers[0]!.debugInfo().lateMessages).toBe(0)
    })
  })

  test('LATE-3: a value that fails ends its call with the error, and nothing else', async () => {
    await overSeeds(3, 2, async (cluster) => {
      map()
      const error = await failure(call('worker1', double, [broken()]))
      expect(error).toMatchObject({ code: 'INDEX_OUT_OF_RANGE' })
      expect(await failure(call('worker1', broken))).toMatchObject({ code: 'INDEX_OUT_OF_RANGE' })
      const rref = remote('worker1', broken)
      expect(await failure(rref.toHere())).toMatchObject({ code: 'INDEX_OUT_OF_RANGE' })
      rref.dispose()
      expect((await ((await call('worker1', double, [x(2)])) as Tensor).cpu()).toArray()).toEqual([4])
      for (const worker of cluster.workers) expect(worker.debugInfo()).toMatchObject({ lateMessages: 0, pendingCalls: 0 })
    })
  })

  test('LATE-3: of several messages that wait, the one with the value that fails gets its error, whichever bytes come first', async () => {
    await overSeeds(3, 2, async () => {
      map()
      const arrivals: (() => void)[] = []
      there.home.arrival = () => new Promise((resolve) => arrivals.push(resolve))
      const before = call('worker1', double, [x(1)])
      const failed = call('worker1', double, [broken()])
      there.home.arrival = () => Promise.resolve()
      for (const arrive of arrivals.reverse()) arrive()
      expect(await failure(failed)).toMatchObject({ code: 'INDEX_OUT_OF_RANGE' })
      expect((await before).shape).toEqual([1])
    })
  })

  test('LATE-2: a large result arrives after the items of its stream', async () => {
    await overSeeds(2, 2, async () => {
      map()
      // The inverse is known there.
      await call('worker1', same, [x(1)])
      for (const isLarge of [true, false]) {
        const release = there.home.holdReads()
        const got: string[] = []
        const reads = (async () => {
          for await (const item of stream('worker1', items, [isLarge])) got.push(String((item as Tensor).shape))
          got.push('end')
        })()
        await sleep(20)
        release()
        await reads
        expect(got).toEqual(['1', '1', 'end'])
      }
    })
  })

  test('LATE-2: a call that is cancelled while it waits does not begin, ordered or not', async () => {
    for (const ordered of [true, false]) {
      const cluster = new Cluster(1, 2)
      log.length = 0
      await cluster.run(0, async () => {
        map()
        const release = there.home.holdReads()
        const waits = call('worker1', begins, [x(1)], { ordered })
        waits.cancel()
        expect(await failure(waits)).toMatchObject({ code: 'CALL_CANCELLED' })
        await sleep(5)
        release()
        await sleep(50)
      })
      expect(log).toEqual([])
      expect(await cluster.leftovers({ letters: 1 })).toEqual([])
    }
  })

  test('LATE-2: a reference may be disposed of while a message with it waits', async () => {
    await overSeeds(3, 3, async () => {
      map()
      const reference = remote('worker2', make)
      await reference.toHere()
      const release = there.home.holdReads()
      const used = call('worker1', use, [reference, x(1)])
      reference.dispose()
      await sleep(20)
      release()
      expect(await used).toEqual({ made: true })
    })
  })

  test('LATE-2: a worker ends after its results that wait', async () => {
    for (const how of ['drain', 'leave', 'close'] as const) {
      const cluster = new Cluster(1, 3)
      await cluster.run(0, async () => {
        map()
        await call('worker1', same, [x(1)])
        const release = there.home.holdReads()
        const waits = call('worker1', result)
        await sleep(5)
        const [, worker1] = cluster.workers
        expect(worker1!.debugInfo().lateMessages).toBe(1)
        const end = how === 'close' ? worker1!.close({ drainMs: 10_000 }) : worker1![how]()
        await sleep(50)
        expect(worker1!.isClosed).toBe(false)
        release()
        expect(((await waits) as Tensor).shape).toEqual([2])
        await end
      })
    }
  })

  test('LATE-3: a failure takes no room, and says where the value failed', async () => {
    const cluster = new Cluster(1, 2, { mailbox: { bytesMax: 10_000 } })
    await cluster.run(0, async () => {
      map()
      const indices = tensor(new Int32Array(5000).fill(7), { dtype: 'int32', device: there })
      const own = await failure(call('worker1', double, [x(1, 2).indexSelect(0, indices)]))
      // It arose on this worker, so no hop is named.
      expect([own.code, own.workers]).toEqual(['INDEX_OUT_OF_RANGE', []])
      expect(await call('worker1', note, ['has room'])).toBeUndefined()
      expect((await failure(call('worker1', broken))).workers).toEqual([{ name: 'worker1', id: 1 }])
    })
    expect(await cluster.leftovers()).toEqual([])
  })

  test('LATE-3: references in a message whose value fails are given back, also if others have gone ahead of it', async () => {
    await overSeeds(5, 3, async () => {
      map()
      using reference = remote('worker2', make)
      await reference.toHere()
      const release = there.home.holdReads()
      const late = call('worker1', keep, [reference, broken()])
      setDeviceMap('worker1', { [spec]: spec })
      release()
      expect(await failure(late)).toMatchObject({ code: 'INDEX_OUT_OF_RANGE' })
    })
  })

  test('LATE-2: keeps its order also if its bytes come last', async () => {
    await overSeeds(3, 2, async () => {
      map()
      log.length = 0
      const arrivals: (() => void)[] = []
      there.home.arrival = () => new Promise((resolve) => arrivals.push(resolve))
      const calls = ['first', 'second', 'third'].map((text) => call('worker1', note, [text, x(1)]))
      there.home.arrival = () => Promise.resolve()
      for (const arrive of arrivals.reverse()) {
        arrive()
        await call('worker0', note, ['own'])
      }
      await Promise.all(calls)
      expect(log.filter((text) => text !== 'own')).toEqual(['first', 'second', 'third'])
    })
  })

  test('LATE-4: a call fails with its peer, and no buffer or block stays', async () => {
    await overSeeds(3, 2, async (cluster) => {
      map()
      const release = there.home.holdReads()
      const late = call('worker1', double, [x(1)])
      const { outbox } = cluster.workers[0]!.peers.get(1)!
      expect(outbox.size).toBe(1)
      cluster.workers[1]!.end()
      expect(await failure(late)).toMatchObject({ code: 'WORKER_DIED' })
      expect(cluster.workers[0]!.debugInfo()).toMatchObject({ lateMessages: 0, pendingCalls: 0 })
      expect(outbox.size).toBe(0)
      release()
    })
  })
})
