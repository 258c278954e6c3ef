/** Batches of events on their way to the main thread, without threads: what is dropped, and how that is reported. */
import { describe, expect, test } from '@jest/globals'
import { WorkerRuntime } from '@postgrad/rpc/internal'
import { SimWorld } from '@postgrad/sim/internal'
import { SharedCounter } from '../host/shared-counter.js'
import { type ClusterEvent, ClusterInspection, InspectSender } from './inspect-events.js'
import type { InspectPost } from './protocol.js'

const expose = () => 7

function worker() {
  const world = new SimWorld(1)
  const runtime = new WorkerRuntime({ name: 'a', id: 0, clock: world.clockOf('a'), finalizers: 'report' })
  runtime.registry.expose({ inspectRoadSeven: expose })
  const posts: InspectPost[] = []
  const taken = new SharedCounter()
  const sender = new InspectSender(runtime, taken, (post) => posts.push(post))
  const call = (times: number) =>
    world.run(runtime.run(() => Promise.all(Array.from({ length: times }, () => runtime.call('a', expose, [])))))
  return { runtime, posts, sender, taken, call, world }
}

test('CLU-56 what is gathered when one stops listening is its own, however far ahead the worker is', async () => {
  const { sender, posts, call, runtime } = worker()
  sender.listen(true)
  for (let i = 0; i < 20; i++) {
    await call(1)
    sender.flush()
  }
  expect(posts.length).toBe(16)
  sender.listen(false)
  expect(posts.length).toBe(17)
  expect(posts.at(-1)!.dropped).toBeGreaterThan(0)
  sender.listen(true)
  await call(1)
  sender.flush()
  expect(posts.slice(17)).toMatchObject([{ dropped: 0 }])
  await runtime.close()
})

describe('a worker that tells', () => {
  test('CLU-50 tells nothing before it is asked to and after it was asked to stop', async () => {
    const { sender, posts, call, runtime } = worker()
    await call(1)
    sender.listen(true)
    sender.listen(false)
    await call(1)
    sender.flush()
    expect(posts).toEqual([])
    await runtime.close()
  })

  test('CLU-51 events come in order, none twice, the last ones with flush', async () => {
    const { sender, posts, call, runtime } = worker()
    sender.listen(true)
    await call(3)
    sender.flush()
    sender.flush()
    const events = posts.flatMap((post) => post.events)
    expect(events.map(({ seq }) => seq)).toEqual(events.map((_event, i) => i + 1))
    expect(events.filter(({ kind }) => kind === 'ended').length).toBe(3)
    expect(posts.every(({ dropped }) => dropped === 0)).toBe(true)
    await runtime.close()
  })

  test('CLU-52 what is not taken is dropped and counted, and told when there is room again', async () => {
    const { sender, taken, posts, call, runtime } = worker()
    sender.listen(true)
    for (let i = 0; i < 40; i++) {
      await call(1)
      sender.flush()
    }
    expect(posts.length).toBe(16)
    for (let batch = 0; batch < 16; batch++) taken.add()
    await call(1)
    sender.flush()
    const last = posts.at(-1)!
    expect(posts.length).toBe(17)
    expect(last.dropped).toBeGreaterThan(0)
    // The numbers count dropped events, too.
    const told = posts.flatMap(({ events }) => events).length
    expect(last.events.at(-1)!.seq).toBe(told + last.dropped)
    await runtime.close()
  })
})

test('CLU-53 times are those of the main thread, and dropped events have a word of their own', () => {
  const heard: ClusterEvent[] = []
  const inspection = new ClusterInspection((fn) => fn())
  inspection.add((event) => heard.push(event))
  const event = { seq: 4, atMs: 10, kind: 'dead-letter', reason: 'expired', from: 'b', what: 'CALL f' } as const
  inspection.onPost({ name: 'a', id: 3 }, { event: 'inspect', events: [event], dropped: 5, originMs: performance.timeOrigin + 100 })
  expect(heard).toMatchObject([
    { on: 'a', onId: 3, kind: 'dead-letter', seq: 4 },
    { on: 'a', onId: 3, kind: 'dropped', count: 5 },
  ])
  expect(heard[0]!.atMs).toBeCloseTo(110, 6)
})
