/** The rules of SPEC.md on threads. */
import { spawnSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { describe, expect, jest, test } from '@jest/globals'
import { isPostgradError, type PostgradError } from '@postgrad/base'
import { Generator, tensor } from '@postgrad/tensor'
import { RealClock } from '@postgrad/transport/internal'
import { PayloadCodec } from '@postgrad/wire/internal'
import { openPool } from './fixtures/pool.js'
import * as program from './fixtures/program.js'
import type { RunningPlace } from './job-queue.js'
import type { Jobs } from './jobs.js'
import { ThreadPlaces } from './thread-places.js'

async function rejection(promise: Promise<unknown>): Promise<PostgradError> {
  const error = await promise.then(
    () => new Error('it did not fail'),
    (reason) => reason,
  )
  if (!isPostgradError(error)) throw error
  return error
}

const clock = new RealClock()
const sleep = (ms: number): Promise<void> => new Promise((resolve) => clock.setTimer(ms, resolve))

test('JOB-1, JOB-2 values, tensors and errors', async () => {
  await using jobs = openPool({ threads: 1 })
  expect(await jobs.run(program.double, [4])).toBe(8)
  const { sum, t } = await jobs.run(program.sumOf, [{ t: tensor([1, 2, 3]) }])
  expect([sum, t.toArray()]).toEqual([6, [1, 2, 3]])
  const error = await rejection(jobs.run(program.fails, ['MY_CODE']))
  expect(error).toMatchObject({ code: 'MY_CODE', op: 'fails', values: { n: 7 }, cause: { name: 'RangeError', message: 'the reason' } })
})

test('JOB-3, JOB-5 a thousand short jobs, on all threads, with random numbers that do not depend on them', async () => {
  const run = async (threads: number): Promise<number[]> => {
    await using jobs = openPool({ threads })
    return await Promise.all(Array.from({ length: 1000 }, () => jobs.run(program.draw)))
  }
  const [one, three] = [await run(1), await run(3)]
  expect(three).toEqual(one)
  expect(new Set(one).size).toBe(1000)
})

test('JOB-4 reports of a loop without an await', async () => {
  await using jobs = openPool({ threads: 1 })
  const seen: number[] = []
  expect(await jobs.run(program.reports, [200_000], { onProgress: ({ done }) => seen.push(done) })).toBe('done')
  expect(seen[0]).toBe(1)
  expect(seen.at(-1)).toBe(200_000)
  expect(seen).toEqual([...seen].sort((a, b) => a - b))
})

test('JOB-7 map over threads', async () => {
  await using jobs = openPool({ threads: 2 })
  const results: number[] = []
  for await (const x of jobs.map(
    program.double,
    Array.from({ length: 100 }, (_, i) => i),
  ))
    results.push(x)
  expect(results).toEqual(Array.from({ length: 100 }, (_, i) => 2 * i))
})

describe('JOB-8', () => {
  test('the signal of one that awaits aborts, its thread stays', async () => {
    await using jobs = openPool({ threads: 1 })
    const thread = await jobs.run(program.thread)
    const controller = new AbortController()
    const job = rejection(jobs.run(program.untilAborted, [], { signal: controller.signal }))
    await sleep(50)
    controller.abort()
    expect((await job).code).toBe('JOB_CANCELLED')
    expect(await jobs.run(program.thread)).toBe(thread)
  })

  test('one without an await hears of it by asking', async () => {
    await using jobs = openPool({ threads: 1 })
    const controller = new AbortController()
    const job = jobs.run(program.loopsUntilAborted, [], { signal: controller.signal, onProgress: () => controller.abort() })
    expect((await rejection(job)).code).toBe('JOB_CANCELLED')
    expect(await jobs.run(program.loopsEnded)).toBe(1)
  })
})

test('JOB-9 one that goes on after its time loses its thread', async () => {
  await using jobs = openPool({ threads: 1 })
  const thread = await jobs.run(program.thread)
  expect((await rejection(jobs.run(program.stands, [], { timeoutMs: 100 }))).code).toBe('JOB_TIMEOUT')
  expect(await jobs.run(program.thread)).not.toBe(thread)
})

describe('JOB-10 a thread that dies fails its job alone', () => {
  test('process.exit', async () => {
    await using jobs = openPool({ threads: 2 })
    const other = jobs.run(program.after, [300])
    const dying = rejection(jobs.run(program.exits))
    const next = jobs.run(program.double, [3])
    expect(await dying).toMatchObject({ code: 'WORKER_DIED', values: { job: 'exits' } })
    expect(await Promise.all([other, next])).toEqual([300, 6])
    expect((await rejection(jobs.run(program.exits))).code).toBe('WORKER_DIED')
    expect(await jobs.run(program.double, [4])).toBe(8)
  })

  test('a promise that nobody handles, next to what nobody catches', async () => {
    await using jobs = openPool({ threads: 2 })
    for (let round = 0; round < 2; round++) {
      const [forgotten, thrown] = await Promise.all([jobs.run(program.forgets, [10_000]), jobs.run(program.throwsAside)].map(rejection))
      expect(forgotten).toMatchObject({ code: 'WORKER_DIED', values: { cause: 'unhandled-rejection' }, cause: { message: 'forgotten' } })
      expect(thrown).toMatchObject({ code: 'WORKER_DIED', values: { cause: 'uncaught-exception' }, cause: { message: 'aside' } })
    }
  })

  test('out of memory', async () => {
    await using jobs = openPool({ threads: 1, resourceLimits: { maxOldGenerationSizeMb: 64 } })
    expect(await rejection(jobs.run(program.floods))).toMatchObject({ code: 'WORKER_DIED', cause: { code: 'ERR_WORKER_OUT_OF_MEMORY' } })
    expect(await jobs.run(program.double, [4])).toBe(8)
  })
})

test('JOB-16 a thread that throws between two jobs is replaced, and does not die without a word', async () => {
  const warn = jest.spyOn(process, 'emitWarning').mockImplementation(() => {})
  const { exitCode } = process
  try {
    await using jobs = openPool({ threads: 1 })
    // The first job waits until its thread has loaded what it needs, which may take longer than that job's timer.
    await jobs.run(program.double, [4])
    await jobs.run(program.throwsLater)
    while (warn.mock.calls.length === 0) await sleep(10)
    await jobs.run(program.double, [4])
    await jobs.run(program.forgetsLater)
    while (warn.mock.calls.length === 1) await sleep(10)
    expect(warn.mock.calls).toEqual([
      [
        expect.stringContaining('uncaught-exception, after the job'),
        { type: 'WORKER_DIED', detail: expect.stringContaining('RangeError: after the job\n') },
      ],
      [
        expect.stringContaining('unhandled-rejection, forgotten later'),
        { type: 'WORKER_DIED', detail: expect.stringContaining('RangeError: forgotten later\n') },
      ],
    ])
    expect(process.exitCode).toBe(1)
    expect(await jobs.run(program.double, [4])).toBe(8)
  } finally {
    warn.mockRestore()
    process.exitCode = exitCode
  }
})

test('JOB-11 close ends an endless loop, and rejects what runs and what waits', async () => {
  const jobs: Jobs = openPool({ threads: 1 })
  await jobs.run(program.double, [1])
  const errors = [jobs.run(program.hangs), jobs.run(program.double, [1])].map(rejection)
  await sleep(50)
  await jobs.close()
  expect((await Promise.all(errors)).map(({ code }) => code)).toEqual(['JOBS_CLOSED', 'JOBS_CLOSED'])
})

// One turn of the port: the first result, the second job, its result, the end of the thread; and then the port gives the second result.
test.each(['the pool is closed', 'the job is cancelled'])(
  'JOB-11 a thread that is ended as its result arrives has not died: %s',
  async (why) => {
    const warn = jest.spyOn(process, 'emitWarning').mockImplementation(() => {})
    const boot = { program: new URL('./fixtures/program.js', import.meta.url).href, data: null, device: null }
    const places = new ThreadPlaces({ boot, threads: 1 })
    const run = (): RunningPlace => {
      const call = new PayloadCodec(null).encodeCall('double', [4])
      return places.run({ name: 'double', call, seed: 1, onProgress: null, isCancellable: true })
    }
    try {
      await run().reply
      await run().reply
      const running = run()
      const end = expect(running.reply).rejects.toThrow(why === 'the pool is closed' ? 'Terminating worker thread' : 'aborted')
      for (let i = 0; i < 10; i++) await null
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 300)
      if (why === 'the job is cancelled') running.kill()
      else void places.close()
      await end
      await sleep(20)
      expect(warn.mock.calls).toEqual([])
    } finally {
      await places.close()
      warn.mockRestore()
    }
  },
)

test.each([
  ['JOB-12', 'idle', [0, 'done\n', '']],
  ['JOB-11', 'interrupted', [0, 'JOBS_CLOSED\n', '']],
])('%s a program ends by itself: %s', (_rule, way, ends) => {
  const { NODE_OPTIONS: _, ...env } = process.env
  const path = fileURLToPath(new URL('./fixtures/ends.js', import.meta.url))
  const { status, stdout, stderr } = spawnSync(process.execPath, [path, way], { env, timeout: 30_000, encoding: 'utf8' })
  expect([status, stdout, stderr]).toEqual(ends)
})

test('JOB-3 the seed that is given decides', async () => {
  await using jobs = openPool({ threads: 2 })
  const [a, b, c] = await Promise.all([5, 5, 6].map((seed) => jobs.run(program.draw, [], { seed })))
  expect(a).toBe(b)
  expect(a).not.toBe(c)
  expect(a).toBe(new Generator(5).uniform())
})
