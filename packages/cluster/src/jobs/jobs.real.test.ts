/** Pools with and without a cluster, from the main thread and from workers. The rules are in `packages/jobs/SPEC.md`. */
import { expect, test } from '@jest/globals'
import { tensor } from '@postgrad/tensor'
import { launcher } from '../clusters.fixture.js'
import { forgetsFuture, Scale } from '../fixtures/exposed-kinds.js'
import * as program from '../fixtures/jobs.js'
import { jobs } from './job-pool.js'

const URL_OF = new URL('../fixtures/jobs.js', import.meta.url)
const launch = launcher()

test('JOB-1, JOB-4 a pool without a cluster', async () => {
  await using pool = jobs(URL_OF, { threads: 2 })
  expect(pool.threads).toBe(2)
  expect((await pool.run(program.twice, [tensor([1, 2])])).toArray()).toEqual([2, 4])
  expect(await pool.run(program.requiresGrad, [tensor([1], { requiresGrad: true })])).toBe(true)
  const seen: unknown[] = []
  expect(await pool.run(program.reports, [], { onProgress: (progress) => seen.push(progress) })).toBe('end')
  expect(seen).toEqual([
    { done: 1, total: 2, text: 'half' },
    { done: 2, total: 2 },
  ])
  await expect(pool.run((() => 1) as typeof program.draw)).rejects.toMatchObject({ code: 'FUNCTION_NOT_EXPOSED' })
})

test("JOB-3 a thread's first job has the pool's device", async () => {
  await using pool = jobs(URL_OF, { threads: 1, device: 'js' })
  expect([await pool.run(program.deviceOf), await pool.run(program.deviceOf)]).toEqual(['js', 'js'])
})

test('CLU-121 a job calls a static method on its class, and asks a marked function for its future', async () => {
  await using pool = jobs(new URL('../fixtures/exposed-kinds.js', import.meta.url), { threads: 1 })
  expect(await pool.run(Scale.times, [2])).toBe(6)
  await expect(pool.run(forgetsFuture)).rejects.toMatchObject({ code: 'ASYNC_EXECUTION_NO_FUTURE' })
})

test('what is no pool', () => {
  expect(() => jobs(new URL('./not-there.js', import.meta.url))).toThrow(expect.objectContaining({ code: 'JOBS_MODULE_NOT_FOUND' }))
  for (const threads of [0, 1.5, -1]) expect(() => jobs(URL_OF, { threads })).toThrow('threads to be an integer from 1')
  expect(() => jobs(URL_OF, { queueMax: -1 })).toThrow('queueMax to be an integer')
})

test('JOB-13 from a worker: results, errors, a map, cancellation, no such pool', async () => {
  const cluster = await launch(URL_OF, { workers: ['a'] })
  const pool = cluster.jobs(URL_OF, { threads: 2 })
  expect(() => cluster.jobs(URL_OF)).toThrow(expect.objectContaining({ code: 'JOBS_NAME_TAKEN' }))
  const a = cluster.on('a')
  expect((await a.run(program.runsOnWorker, tensor([3]))).toArray()).toEqual([6])
  await expect(a.run(program.failsOnWorker)).rejects.toMatchObject({ name: 'RangeError', message: 'as asked' })
  expect(
    await a.run(
      program.mapsOnWorker,
      [1, 2, 3, 4, 5, 6, 7].map((x) => tensor(x)),
    ),
  ).toEqual([2, 4, 6, 8, 10, 12, 14])
  expect(await a.run(program.cancelsOnWorker)).toBe('JOB_CANCELLED')
  await expect(a.run(program.asksForAnother)).rejects.toMatchObject({ code: 'JOBS_NOT_HERE' })
  expect((await cluster.debugInfo()).a!.pendingJobs).toBe(0)
  // The one that was cancelled may still be on its way out.
  while (pool.counts.running > 0) await new Promise((resolve) => setTimeout(resolve, 5))
  expect(pool.counts.waiting).toBe(0)
  await pool.close()
  await expect(a.run(program.runsOnWorker, tensor([3]))).rejects.toMatchObject({ code: 'JOBS_NOT_HERE' })
  // The name is free again.
  cluster.jobs(URL_OF, { threads: 1 })
  expect((await a.run(program.runsOnWorker, tensor([3]))).toArray()).toEqual([6])
})

test('JOB-3 seeds by submitter and order', async () => {
  const run = async (threads: number): Promise<number[][]> => {
    const cluster = await launch(URL_OF, { workers: ['a', 'b'], seed: 4 })
    cluster.jobs(URL_OF, { threads })
    const drawn = await Promise.all([cluster.on('a').run(program.drawsFromWorker, 5), cluster.on('b').run(program.drawsFromWorker, 5)])
    await cluster.close({ timeoutMs: 0 })
    return drawn
  }
  const [one, two] = [await run(1), await run(2)]
  expect(two).toEqual(one)
  expect(new Set(one.flat()).size).toBe(10)
})

test('JOB-14 the death of a worker cancels its job, and the pool goes on', async () => {
  const cluster = await launch(URL_OF, { workers: ['a', 'b'] })
  const pool = cluster.jobs(URL_OF, { threads: 1 })
  const lost = cluster.on('a').run(program.waitsOnWorker)
  while (pool.counts.running === 0) await new Promise((resolve) => setTimeout(resolve, 5))
  await Promise.all([expect(lost).rejects.toMatchObject({ code: 'WORKER_DIED' }), cluster.kill('a')])
  expect(await pool.run(program.stops)).toBe(1)
  expect((await cluster.on('b').run(program.runsOnWorker, tensor([3]))).toArray()).toEqual([6])
})

test('JOB-11 a cluster that closes takes its pools with it', async () => {
  const cluster = await launch(URL_OF, { workers: ['a'] })
  const pool = cluster.jobs(URL_OF, { threads: 1 })
  const waiting = expect(pool.run(program.waits)).rejects.toMatchObject({ code: 'JOBS_CLOSED' })
  const onWorker = expect(cluster.on('a').run(program.waitsOnWorker)).rejects.toMatchObject({ code: 'CLUSTER_CLOSED' })
  await cluster.close({ timeoutMs: 0 })
  await Promise.all([waiting, onWorker])
  await expect(pool.run(program.draw)).rejects.toMatchObject({ code: 'JOBS_CLOSED' })
  expect(() => cluster.jobs(URL_OF)).toThrow(expect.objectContaining({ code: 'CLUSTER_CLOSED' }))
})
