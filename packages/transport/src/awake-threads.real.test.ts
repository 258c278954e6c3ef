/** `AwakeThreads` on a clock that the test sets by hand. */
import { availableParallelism } from 'node:os'
import { Worker } from 'node:worker_threads'
import { afterEach, expect, test } from '@jest/globals'
import { AwakeThreads, type AwakeWords, LEASE_US, makeAwakeWords, oneOfSeveral, processAwakeWords } from './awake-threads.js'
import { MachineCores } from './machine-cores.js'

const threadsOf = (words: AwakeWords, count: number): AwakeThreads[] => Array.from({ length: count }, () => new AwakeThreads(words))

test('AWK-2 a thread has a core while fewer others are awake than there are cores', () => {
  const [a, b, c] = threadsOf(makeAwakeWords(2), 3) as [AwakeThreads, AwakeThreads, AwakeThreads]
  expect([a, b, c].map((one) => one.hasCore(0))).toEqual([true, true, true])
  a.renew(0)
  expect([a, b, c].map((one) => one.hasCore(0))).toEqual([true, true, true])
  b.renew(0)
  expect([a, b, c].map((one) => one.hasCore(0))).toEqual([true, true, false])
  c.renew(0)
  expect([a, b, c].map((one) => one.hasCore(0))).toEqual([false, false, false])
  b.leave()
  expect([a, b, c].map((one) => one.hasCore(0))).toEqual([true, false, true])
})

test('AWK-3 a thread counts from when it is posted to, until it sleeps', () => {
  const [poster, woken, third] = threadsOf(makeAwakeWords(2), 3) as [AwakeThreads, AwakeThreads, AwakeThreads]
  poster.renew(0)
  poster.wake(woken.own, 0)
  expect([poster, woken, third].map((one) => one.hasCore(0))).toEqual([true, true, false])
  woken.leave()
  expect(third.hasCore(0)).toBe(true)
})

test('AWK-3 a post to one that is awake already does not lengthen its time', () => {
  const [a, b] = threadsOf(makeAwakeWords(1), 2) as [AwakeThreads, AwakeThreads]
  a.renew(0)
  b.wake(a.own, LEASE_US - 1)
  expect(b.hasCore(LEASE_US - 1)).toBe(false)
  expect(b.hasCore(LEASE_US)).toBe(true)
})

test('AWK-4 whoever says nothing more counts for a lease and no longer; whoever turns renews it', () => {
  const [a, b] = threadsOf(makeAwakeWords(1), 2) as [AwakeThreads, AwakeThreads]
  a.renew(0)
  expect(b.hasCore(LEASE_US - 1)).toBe(false)
  a.renew(LEASE_US - 1)
  expect(b.hasCore(LEASE_US)).toBe(false)
  expect(b.hasCore(2 * LEASE_US - 2)).toBe(false)
  expect(b.hasCore(2 * LEASE_US - 1)).toBe(true)
})

test('AWK-4 the clock may wrap', () => {
  const [a, b] = threadsOf(makeAwakeWords(1), 2) as [AwakeThreads, AwakeThreads]
  for (const from of [2 ** 31, 2 ** 32, 5 * 2 ** 32]) {
    const at = (us: number): number => (from + us) | 0
    a.renew(at(-LEASE_US / 2))
    expect(b.hasCore(at(LEASE_US / 2 - 1))).toBe(false)
    expect(b.hasCore(at(LEASE_US / 2))).toBe(true)
    expect(b.hasCore(at(100 * LEASE_US))).toBe(true)
    expect(b.hasCore(at(2 ** 31))).toBe(true)
  }
})

test.each([
  [1, 32],
  [16, 32],
  [48, 96],
])('AWK-2 on %i cores threads beyond %i share the words of others', (cores, words) => {
  const threads = threadsOf(makeAwakeWords(cores), words + 1)
  expect(new Set(threads.map((one) => one.own)).size).toBe(words)
  expect(threads.at(-1)!.own).toBe(threads[0]!.own)
})

test('AWK-2 of two that share a word neither counts for the other', () => {
  const words = makeAwakeWords(1)
  const threads = threadsOf(words, 33)
  expect(threads.at(-1)!.own).toBe(threads[0]!.own)
  threads.at(-1)!.renew(0)
  expect(threads[0]!.hasCore(0)).toBe(true)
  expect(threads[1]!.hasCore(0)).toBe(false)
})

test('AWK-6 one of several processes has a core only while the machine has one, whoever else runs there', () => {
  const words = makeAwakeWords(4)
  let running = 5
  const machine = new MachineCores(4, { read: () => `0.00 0.00 0.00 ${running}/99 1`, close: () => {} })
  const thread = new AwakeThreads(words, machine)
  expect(thread.hasCore(0)).toBe(true)
  oneOfSeveral(words)
  expect(thread.hasCore(1000)).toBe(false)
  running = 4
  expect(thread.hasCore(2000)).toBe(true)
  for (const other of threadsOf(words, 4)) other.renew(2000)
  expect(thread.hasCore(2000)).toBe(false)
})

const FREE = new MachineCores(1, { read: () => '', close: () => {} })

/** Another thread of this process: it counts as awake from 0 on, and ends without taking that back. */
const DIES_AWAKE = `
  import { parentPort, workerData } from 'node:worker_threads'
  const { AwakeThreads, processAwakeWords } = await import(workerData)
  new AwakeThreads(processAwakeWords()).renew(0)
  parentPort.postMessage('awake')
  setInterval(() => {}, 1000)
`
const started: Worker[] = []

afterEach(async () => {
  await Promise.all(started.splice(0).map((worker) => worker.terminate()))
})

test('AWK-2 AWK-4 the words are those of the whole process, and one that dies awake does not count for ever', async () => {
  const words = processAwakeWords()
  expect(processAwakeWords()).toBe(words)
  // Another file of this process may have made it one of several.
  const here = new AwakeThreads(words, FREE)
  const cores = availableParallelism()
  for (let i = 0; i < cores; i++) {
    const worker = new Worker(new URL(`data:text/javascript,${encodeURIComponent(DIES_AWAKE)}`), {
      workerData: new URL('./awake-threads.js', import.meta.url).href,
    })
    started.push(worker)
    expect(here.hasCore(1)).toBe(true)
    await new Promise((resolve, reject) => worker.once('message', resolve).once('error', reject))
  }
  expect(here.hasCore(1)).toBe(false)
  await Promise.all(started.map((worker) => worker.terminate()))
  expect(here.hasCore(1)).toBe(false)
  expect(here.hasCore(LEASE_US)).toBe(true)
})
