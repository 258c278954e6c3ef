/** Helper threads: the same bits for any number of threads, and ends of all kinds lose nothing. */
import { spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import type { Worker } from 'node:worker_threads'
import { afterEach, beforeEach, expect, test } from '@jest/globals'
import { Heap } from '../../../heap/heap.js'
import { threadHeap } from '../../../heap/thread-heap.js'
import { verifyHeap } from '../../../heap/verify.js'
import { compile, memoryScope, rand, type Tensor, zeros, zerosLike } from '../../../index.js'
import { scaledDotProductAttention } from '../../../operations.js'
import { kernelsFor } from '../../../tensor/device.js'
import type { AttentionBackward, Conv, Matmul, Norm, NormBackward } from '../../table/operands.js'
import { createWasmBackend } from '../backend.js'
import { installKernelPause } from '../calls/pause.js'
import { helperCounts, setComputeThreads, withThreadLimits } from './compute-threads.js'
import { deaths } from './deaths.fixture.js'
import { runProgram, withHelpers } from './programs.fixture.js'

const PROGRAMS = 100
const seed = Math.floor(Math.random() * 2 ** 30)

let restore = (): void => {}
beforeEach(() => {
  threadHeap()
  restore = withThreadLimits({ cores: 4, sharedWork: 1 })
})
afterEach(() => {
  setComputeThreads(1)
  restore()
})

test(`${PROGRAMS} random programs have the same bits with 1, 2 and 3 threads (seed ${seed})`, async () => {
  const expected = Array.from({ length: PROGRAMS }, (_, i) => runProgram(seed + i))
  for (const threads of [2, 3]) {
    await withHelpers(threads)
    const { helped } = helperCounts()
    for (const [i, results] of expected.entries()) {
      for (const [at, bytes] of runProgram(seed + i).entries()) {
        if (Buffer.compare(bytes, results[at]!) !== 0) throw new Error(`seed ${seed + i}: operation ${at} differs with ${threads} threads`)
      }
    }
    expect(helperCounts().helped - helped).toBeGreaterThan(PROGRAMS)
  }
}, 300_000)

test('helpers take part in all kernels that are shared', async () => {
  await withHelpers(2)
  const { attentionBackward, conv2dInput, layerNormBackward, channelNorm, channelNormBackward } = kernelsFor(rand([1]))
  const [heads, many, queries] = [rand([1, 4, 128, 64]), rand([1, 1, 2100, 64]), rand([1, 1, 64, 64])]
  const [rows, image, weight, column] = [rand([2000, 500]), rand([4, 16, 64, 64]), rand([16, 16, 3, 3]), rand([16])]
  const channels = rand([4, 64, 64, 64])
  const strides = { strideH: 2, strideW: 2, padH: 1, padW: 1, dilH: 1, dilW: 1, groups: 1 }
  const geometry = { n: 4, c: 16, o: 16, h: 127, w: 127, kh: 3, kw: 3, oh: 64, ow: 64, ...strides }
  // Two steps each before and after the polynomial: this thread computes them in registers.
  const chain = compile((x: Tensor) => x.mul(2).add(0.5).tanh().add(1).mul(3))
  const works: Readonly<Record<string, () => unknown>> = {
    'attention of a head': () => scaledDotProductAttention(queries, many, many),
    'attention of a head, causal': () => scaledDotProductAttention(many, many, many, { isCausal: true }),
    attentionBackward: () => {
      const [dq, dk, dv] = [zerosLike(heads), zerosLike(heads), zerosLike(heads)]
      ;(attentionBackward.float32 as AttentionBackward)(heads, heads, heads, heads, null, dq, dk, dv, 0.1, true)
    },
    conv2dInput: () => (conv2dInput.float32 as Conv)(image, weight, null, zeros([4, 16, 127, 127]), geometry),
    layerNormBackward: () => {
      const [each, w] = [rand([2000]), rand([500])]
      ;(layerNormBackward.float32 as NormBackward)(rows, rows, each, each, w, zerosLike(rows), zerosLike(w), null, 0)
    },
    channelNorm: () => (channelNorm.float32 as Norm)(image, null, null, zerosLike(image), zeros([16]), zeros([16]), 0),
    channelNormBackward: () =>
      (channelNormBackward.float32 as NormBackward)(image, image, column, column, null, zerosLike(image), zeros([16]), null, 0.1),
    'sum of rows': () => rows.sum([1]),
    'sum of columns': () => rows.sum([0]),
    'sum of channels': () => channels.sum([0, 2, 3]),
    'greatest of all': () => rows.amax(),
    variance: () => rows.var(1),
    'a row broadcasts': () => rows.add(rows.select(0, 0)),
    'a polynomial of a chain': () => chain(rows),
  }
  const shared: string[] = []
  for (const [name, work] of Object.entries(works)) {
    const { helped } = helperCounts()
    for (let round = 0; round < 300 && helperCounts().helped === helped; round++) memoryScope(() => void work())
    if (helperCounts().helped > helped) shared.push(name)
  }
  expect(shared).toEqual(Object.keys(works))
}, 120_000)

test('one thread starts no helper, nor do small operations', () => {
  const started: Worker[] = []
  const also = withThreadLimits({ sharedWork: 2 ** 21, onStart: (worker) => started.push(worker) })
  memoryScope(() => rand([400, 400]).matmul(rand([400, 400])))
  setComputeThreads(2)
  memoryScope(() =>
    rand([60, 60])
      .matmul(rand([60, 60]))
      .exp(),
  )
  expect(started.length).toBe(0)
  memoryScope(() => rand([400, 400]).matmul(rand([400, 400])))
  expect(started.length).toBe(1)
  also()
})

test('an operation in place is computed by its own thread: its units would read what they write', async () => {
  await withHelpers(2)
  const x = rand([500, 500])
  const { helped } = helperCounts()
  for (let i = 0; i < 20; i++) x.mul_(1.01)
  expect(helperCounts().helped).toBe(helped)
})

test('a helper that is terminated in the middle of a product loses nothing, and is replaced', async () => {
  const started: Worker[] = []
  const also = withThreadLimits({ onStart: (worker) => started.push(worker) })
  await withHelpers(2)
  const [a, b] = [rand([700, 700]), rand([700, 700])]
  setComputeThreads(1)
  const expected = a.matmul(b).dataSync()
  await withHelpers(2)
  let helped = 0
  for (let death = 0; death < 5; death++) {
    const before = helperCounts().helped
    let isAsked = false
    const remove = installKernelPause(() => {
      if (isAsked) return
      isAsked = true
      // Long enough for the helper to wake up, and to be in the middle of its part.
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 2)
      void started.at(-1)!.terminate()
    })
    try {
      expect(a.matmul(b).dataSync()).toEqual(expected)
    } finally {
      remove()
    }
    helped += helperCounts().helped - before
    await once(started.at(-1)!, 'exit')
    await withHelpers(2)
  }
  expect(started.length).toBe(7)
  expect(helped).toBeGreaterThan(0)
  expect(verifyHeap(threadHeap().words)).toEqual([])
  also()
})

test('a helper that is terminated before it begins is replaced', async () => {
  const started: Worker[] = []
  const also = withThreadLimits({
    onStart: (worker) => {
      started.push(worker)
      if (started.length < 3) void worker.terminate()
    },
  })
  await withHelpers(2)
  expect(started.length).toBe(3)
  also()
})

test('a helper that has ended does not count as one that can compute', async () => {
  const started: Worker[] = []
  const also = withThreadLimits({ onStart: (worker) => started.push(worker) })
  await withHelpers(2)
  // It sleeps outside of a job.
  await started[0]!.terminate()
  expect(helperCounts().ready).toBe(0)
  also()
})

test('nothing pauses while a unit is recorded, and each multiplication counts once', async () => {
  await withHelpers(2)
  const pausesOf = (threads: number): number => {
    let pauses = 0
    const remove = installKernelPause(() => pauses++)
    try {
      memoryScope(() => rand([700, 700]).matmul(rand([700, 700])))
    } finally {
      remove()
    }
    if (threads === 2) expect(helperCounts().ready).toBe(1)
    return pauses
  }
  const shared = pausesOf(2)
  setComputeThreads(1)
  // Helpers do not pause: their part is missing.
  expect(shared).toBeLessThanOrEqual(pausesOf(1) + 1)
})

test(`10 rounds of helpers and workers that are terminated in the middle of kernels (seed ${seed})`, async () => {
  const { helpersEnded, workersEnded } = await deaths({ rounds: 10, seed })
  expect([helpersEnded, workersEnded].every((count) => count > 0)).toBe(true)
}, 120_000)

test('all instances of the kernels in a thread have the same helpers', async () => {
  const started: Worker[] = []
  const also = withThreadLimits({ onStart: (worker) => started.push(worker) })
  await withHelpers(3)
  const [a, b, out] = [rand([300, 300]), rand([300, 300]), zeros([300, 300])]
  const other = createWasmBackend(threadHeap).kernels.matmul.float32 as Matmul
  const { helped } = helperCounts()
  for (let round = 0; round < 1000 && helperCounts().helped === helped; round++) other(a, b, out)
  expect([started.length, helperCounts().ready, helperCounts().helped > helped]).toEqual([2, 2, true])
  expect(out.dataSync()).toEqual(a.matmul(b).dataSync())
  also()
})

test('a helper that cannot start leaves its place to another thread', async () => {
  const handle = threadHeap().handle()!
  const another = Heap.attach(handle)
  const warned = once(process, 'warning')
  const also = withThreadLimits({
    cores: 3,
    onStart: (worker) => {
      // As a thread that throws before it begins: the error comes before the end.
      worker.once('exit', () => worker.emit('error', new Error('no memory')))
      void worker.terminate()
    },
  })
  setComputeThreads(2)
  memoryScope(() => zeros([300, 300]).exp())
  expect(another.claimHelpers(2, 2)).toBe(1)
  expect(((await warned) as [Error])[0].message).toContain('no memory')
  memoryScope(() => zeros([300, 300]).exp())
  expect(another.claimHelpers(2, 2)).toBe(2)
  threadHeap().reclaim(handle)
  also()
})

test('a thread that Node refuses at once leaves its place, too', async () => {
  const handle = threadHeap().handle()!
  const another = Heap.attach(handle)
  const warned = once(process, 'warning')
  const also = withThreadLimits({
    cores: 3,
    onStart: (worker) => {
      void worker.terminate()
      throw new Error('no thread')
    },
  })
  setComputeThreads(3)
  memoryScope(() => zeros([300, 300]).exp())
  expect(((await warned) as [Error])[0].message).toContain('no thread')
  expect(another.claimHelpers(2, 2)).toBe(2)
  threadHeap().reclaim(handle)
  also()
})

test('helpers do not keep a process alive', () => {
  const path = fileURLToPath(new URL('./lets-go.fixture.js', import.meta.url))
  const { stdout, status, stderr } = spawnSync(process.execPath, [path], { encoding: 'utf8', timeout: 60_000 })
  expect([stdout, stderr, status]).toEqual(['1 helper computes\n', '', 0])
})
