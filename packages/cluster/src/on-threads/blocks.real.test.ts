/** Large tensors between worker threads: messages name their block in the shared heap, with the semantics of a copy. */
import { expect, test } from '@jest/globals'
import { threadHeap } from '@postgrad/tensor/internal'
import { launcher } from '../clusters.fixture.js'
import * as blocks from './fixtures/blocks.js'

const launch = launcher()
const PROGRAM = new URL('./fixtures/blocks.js', import.meta.url)

async function quiet(run: () => Promise<number>): Promise<number> {
  for (let tries = 0; ; tries++) {
    const left = await run()
    // The word that a message was read is one-way; it gets a moment.
    if (left === 0 || tries === 50) return left
    await new Promise((resolve) => setTimeout(resolve, 20))
  }
}

test('HEAP-4 a tensor lies at one place for all workers, there and back; nothing stays on its way', async () => {
  const cluster = await launch(PROGRAM, { workers: ['a', 'b'] })
  const { here, there, back } = await cluster.on('a').run(blocks.travels)
  expect(here[0]).toBe('heap')
  expect(there).toEqual(here)
  expect(back).toEqual(here)
  for (const worker of ['a', 'b']) expect(await quiet(() => cluster.on(worker).run(blocks.inFlight))).toBe(0)
})

test('HEAP-8 calls have value semantics: what the sender or the receiver writes afterwards stays with them', async () => {
  const cluster = await launch(PROGRAM, { workers: ['a', 'b'] })
  expect(await cluster.on('a').run(blocks.values)).toEqual({ there: 0, written: 6, here: 6 })
})

test('gradients of a distributed pass travel so, too', async () => {
  const cluster = await launch(PROGRAM, { workers: ['a', 'b'] })
  expect(await cluster.on('a').run(blocks.gradients)).toEqual([6, [1_000_000]])
})

test('HEAP-2 a worker that got no slot is sent the bytes, and sends them, with the same results', async () => {
  const heap = threadHeap()
  const handles = []
  for (let handle = heap.handle(); handle !== null; handle = heap.handle()) handles.push(handle)
  try {
    heap.reclaim(handles.pop()!)
    const cluster = await launch(PROGRAM, { workers: ['a', 'b'] })
    const { here, there, back } = await cluster.on('a').run(blocks.travels)
    expect([here[0], there[0], back[0]]).toEqual(['heap', 'managed', 'managed'])
    expect(await cluster.on('a').run(blocks.values)).toEqual({ there: 0, written: 6, here: 6 })
    expect(await cluster.on('a').run(blocks.gradients)).toEqual([6, [1_000_000]])
    await cluster.close()
  } finally {
    for (const handle of handles) heap.reclaim(handle)
  }
})

test('HEAP-7 what was on its way to a worker that died is given back, and what it held', async () => {
  const cluster = await launch(PROGRAM, { workers: ['a', 'victim'] })
  const { code, inFlight, still } = await cluster.on('a').run(blocks.sendToVictim)
  expect({ code, inFlight, still }).toEqual({ code: 'WORKER_DIED', inFlight: 0, still: 1 })
  await cluster.close()
  // Both slots are free again: this thread and 63 workers fit.
  const heap = threadHeap()
  const handles = []
  for (let handle = heap.handle(); handle !== null; handle = heap.handle()) handles.push(handle)
  for (const handle of handles) heap.reclaim(handle)
  expect(handles.length).toBe(63)
})
