/** The contract of `worker-host.ts` as tests, which run on every kind of host. */
import { afterEach, describe, expect, test } from '@jest/globals'
import type { WorkerInfo } from '@postgrad/rpc'
import { MAIN_ID } from '../membership/roster.js'
import type { HostedBoot, Order } from './fixtures/hosted.js'
import type { HostedExit, HostedWorker, LinkEnd, WorkerHost } from './worker-host.js'

interface Worker extends HostedWorker {
  readonly heard: unknown[]
  readonly exits: HostedExit[]
  order(order: Order): void
}

const A: WorkerInfo = { name: 'a', id: 1 }
const B: WorkerInfo = { name: 'b', id: 2 }
const MAIN: WorkerInfo = { name: 'main', id: MAIN_ID }

/** @param makeHost one whose workers do what `obey` does */
export function describeHost(name: string, makeHost: () => WorkerHost): void {
  const alive: Worker[] = []
  const hosts: WorkerHost[] = []
  const make = (): WorkerHost => {
    const host = makeHost()
    hosts.push(host)
    return host
  }
  afterEach(async () => {
    await Promise.all(alive.splice(0).map((worker) => worker.kill()))
    await Promise.all(hosts.splice(0).map((host) => host.close()))
  })

  function start(host: WorkerHost, worker: WorkerInfo = A, ends: readonly LinkEnd[] = []): Worker {
    host.admit(worker)
    const [heard, exits]: [unknown[], HostedExit[]] = [[], []]
    const boot: HostedBoot = { greeting: 'hello', ends }
    const none = { stdout: () => {}, stderr: () => {}, resourceLimits: undefined, env: undefined }
    const hosted = host.spawn({ ...none, worker, boot, ends, onExit: (exit) => exits.push(exit) })
    hosted.control.onMessage((message) => {
      expect(exits).toEqual([])
      heard.push(message)
    })
    const started = { ...hosted, heard, exits, order: (order: Order) => hosted.control.postMessage(order) }
    alive.push(started)
    return started
  }

  async function until(isSo: () => boolean): Promise<void> {
    for (let looks = 0; looks < 1000 && !isSo(); looks++) await new Promise((resolve) => setTimeout(resolve, 5))
    expect(isSo()).toBe(true)
  }

  describe(name, () => {
    test('carries messages both ways in order, also those that were said before the worker was there', async () => {
      const worker = start(make())
      worker.order({ asks: 'boot' })
      for (let i = 0; i < 100; i++) worker.order({ echo: { i } })
      worker.order({ asks: 'usage' })
      await until(() => worker.heard.length === 102)
      expect(worker.heard).toEqual(['hello', ...Array.from({ length: 100 }, (_, i) => ({ i })), true])
    })

    test('delivers what a worker said last before it tells of its end, once', async () => {
      const worker = start(make())
      worker.order({ count: 50, thenExit: 3 })
      await until(() => worker.exits.length > 0)
      expect(worker.heard).toEqual(Array.from({ length: 50 }, (_, i) => i))
      worker.order({ echo: 'nobody hears this' })
      await worker.kill()
      expect(worker.exits).toEqual([{ exitCode: 3, thrown: undefined }])
    })

    test('tells what was thrown and nobody caught', async () => {
      const worker = start(make())
      worker.order({ throws: 'too far' })
      await until(() => worker.exits.length > 0)
      expect(worker.exits[0]!.thrown).toMatchObject({ name: 'RangeError', message: 'too far' })
    })

    test('ends a worker at any instruction; what it counts is read while it is busy', async () => {
      const worker = start(make())
      worker.order({ spins: true })
      await until(() => worker.beats.value > 0)
      const seen = worker.beats.value
      await until(() => worker.beats.value > seen)
      await worker.kill()
      expect(worker.exits).toHaveLength(1)
    })

    test('a count from this side is read there', async () => {
      const worker = start(make())
      for (let i = 0; i < 3; i++) worker.taken.add()
      worker.order({ asks: 'taken' })
      await until(() => worker.heard.length === 1)
      expect(worker.heard).toEqual([3])
    })

    test('links two workers, whichever opens its end first; the end of one closes it', async () => {
      const host = make()
      host.admit(A)
      host.admit(B)
      const [ofA, ofB] = host.link(A, B)
      const [a, b] = [start(host, A, [ofA]), start(host, B, [ofB])]
      a.order({ opens: 0 })
      b.order({ opens: 0 })
      await until(() => a.heard.length === 1 && b.heard.length === 1)
      expect([a.heard, b.heard]).toEqual([['heard 40'], ['heard 40']])
      await a.kill()
      await until(() => b.heard.length === 2)
      expect(b.heard[1]).toBe('closed by peer')
    })

    test('an end that is closed before anybody has opened it closes the other', async () => {
      const host = make()
      host.admit(A)
      host.admit(B)
      const [given, kept] = host.link(A, B)
      const worker = start(host, A, [given])
      worker.order({ opens: 0 })
      kept.close()
      await until(() => worker.heard.includes('closed by peer'))
    })

    test('an end that is sent to a worker that has ended closes the other', async () => {
      const host = make()
      host.admit(A)
      host.admit(B)
      const [ofA, ofB] = host.link(A, B)
      const [a, b] = [start(host, A, [ofA]), start(host, B)]
      a.order({ opens: 0 })
      b.order({ asks: 'boot' })
      await until(() => b.heard.length === 1)
      await b.kill()
      b.control.postMessage({ echo: 'nobody hears this' }, [ofB])
      await until(() => a.heard.includes('closed by peer'))
    })

    test('opens an end on this side', async () => {
      const host = make()
      host.admit(A)
      const [given, kept] = host.link(A, MAIN)
      const worker = start(host, A, [given])
      const { link } = host.open(kept)
      const heard: unknown[] = []
      link.open({ onFrame: ({ header }) => heard.push(header[0]), onTurnEnd: () => {}, onClose: () => heard.push('closed') })
      link.send({ header: Uint8Array.of(7), segments: [] })
      worker.order({ opens: 0 })
      await until(() => heard.length === 1 && worker.heard.length === 1)
      expect([heard, worker.heard]).toEqual([[40], ['heard 7']])
      await worker.kill()
      await until(() => heard.length === 2)
      expect(heard[1]).toBe('closed')
    })
  })
}
