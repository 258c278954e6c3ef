/** The rules of SPEC.md that need no thread: jobs on a simulated clock. */
import { getEventListeners } from 'node:events'
import { describe, expect, test } from '@jest/globals'
import { isPostgradError, PostgradError } from '@postgrad/base'
import { SimWorld } from '@postgrad/sim/internal'
import { currentGenerator, Generator, type Tensor, tensor } from '@postgrad/tensor'
import type { Clock } from '@postgrad/transport'
import { currentJob } from './current-job.js'
import { InThreadPlaces } from './in-thread-places.js'
import { JobQueue } from './job-queue.js'
import { type JobFunction, Jobs } from './jobs.js'
import { type JobFromWorker, type JobToWorker, PortHost, PortServer } from './port-host.js'

const names = (fn: JobFunction): string => fn.name

interface Pool {
  readonly jobs: Jobs
  readonly queue: JobQueue
  readonly clock: Clock
  /** Names of jobs in the order in which they began. */
  readonly begun: string[]
  readonly sleep: (ms: number) => Promise<void>
}

/** A pool of functions on a simulated clock. */
function inWorld<T>(
  functions: Readonly<Record<string, JobFunction>>,
  body: (pool: Pool) => Promise<T>,
  { seed = 1, threads = 2, queueMax = 1000 } = {},
): Promise<T> {
  const world = new SimWorld(seed)
  const clock = world.clock
  const begun: string[] = []
  const places = new InThreadPlaces(clock, (name, args) => {
    begun.push(name)
    return functions[name]!(...(args as never[]))
  })
  const queue = new JobQueue(places, { threads, queueMax, clock })
  const jobs = new Jobs({ host: queue, clock, nameOf: names, generator: new Generator(9) })
  const sleep = (ms: number): Promise<void> => new Promise((resolve) => clock.setTimer(ms, resolve))
  return world.run(body({ jobs, queue, clock, begun, sleep }))
}

async function rejection(promise: Promise<unknown>): Promise<PostgradError> {
  const error = await promise.then(
    () => new Error('it did not fail'),
    (reason) => reason,
  )
  if (!isPostgradError(error)) throw error
  return error
}

/** A job that ends when the test says so. */
function gate(): { readonly wait: () => Promise<void>; readonly open: () => void } {
  let open!: () => void
  const opened = new Promise<void>((resolve) => {
    open = resolve
  })
  const wait = (): Promise<void> => opened
  return { wait, open }
}

const ten = (x: number): number => 10 * x

test('JOB-1 values and tensors are copied there and back', async () => {
  const seen: Tensor[] = []
  const take = ({ t }: { t: Tensor }): Tensor => {
    seen.push(t)
    return t
  }
  await inWorld({ take }, async ({ jobs }) => {
    const t = tensor([1, 2])
    const result = await jobs.run(take, [{ t }])
    expect(result.toArray()).toEqual([1, 2])
    expect(result).not.toBe(seen[0])
    expect(seen[0]).not.toBe(t)
    expect((await rejection(jobs.run(take, [{ t: (() => {}) as never }]))).code).toBe('WIRE_UNSUPPORTED_VALUE')
  })
})

test('JOB-2 errors arrive whole', async () => {
  const fails = (): never => {
    throw new PostgradError('MY_CODE', { op: 'mine', message: 'no', values: { n: 1 }, cause: new RangeError('why') })
  }
  await inWorld({ fails }, async ({ jobs }) => {
    const error = await rejection(jobs.run(fails))
    expect(error).toMatchObject({ code: 'MY_CODE', op: 'mine', values: { n: 1 }, cause: { name: 'RangeError', message: 'why' } })
  })
})

test('JOB-3 random numbers depend on the order of the calls, or on a seed, and on nothing else', async () => {
  const draw = (): number => currentGenerator().uniform()
  const run = (seed: number, threads: number): Promise<number[]> =>
    inWorld({ draw }, ({ jobs }) => Promise.all([1, 2, 3].map(() => jobs.run(draw))), { seed, threads })
  const first = await run(1, 1)
  expect(new Set(first).size).toBe(3)
  expect(await run(2, 3)).toEqual(first)
  await inWorld({ draw }, async ({ jobs }) => {
    expect(await jobs.run(draw, [], { seed: 5 })).toBe(await jobs.run(draw, [], { seed: 5 }))
    // A job that was given a seed takes none from later jobs.
    expect(await jobs.run(draw)).toBe(first[2])
  })
})

test('JOB-8 listeners of the signal find the job in which it was asked for', async () => {
  const heard: boolean[] = []
  const listens = (): Promise<void> => {
    const { signal } = currentJob()
    return new Promise((resolve) => {
      signal.addEventListener('abort', () => {
        heard.push(currentJob().signal === signal)
        resolve()
      })
    })
  }
  await inWorld({ listens }, async ({ jobs, sleep }) => {
    const controller = new AbortController()
    const job = rejection(jobs.run(listens, [], { signal: controller.signal }))
    await sleep(1)
    controller.abort()
    expect((await job).code).toBe('JOB_CANCELLED')
    await sleep(1)
    expect(heard).toEqual([true])
  })
})

test('JOB-8 any number of jobs may share a signal: it gets one listener', async () => {
  const { wait, open } = gate()
  await inWorld({ wait }, async ({ jobs }) => {
    const { signal } = new AbortController()
    const all = Array.from({ length: 100 }, () => jobs.run(wait, [], { signal }))
    expect(getEventListeners(signal, 'abort').length).toBe(1)
    open()
    await Promise.all(all)
  })
})

test('JOB-4 what onProgress throws does not hit the job', async () => {
  const heard: string[] = []
  const reports = (): void => {
    try {
      for (let done = 1; done <= 5; done++) currentJob().report({ done })
      heard.push('the job went on')
    } catch {
      heard.push('the job was hit')
    }
  }
  const onProgress = (): never => {
    throw new Error('the listener fails')
  }
  const running = inWorld({ reports }, ({ jobs }) => jobs.run(reports, [], { onProgress }))
  await expect(running).rejects.toThrow('the listener fails')
  expect(heard).toEqual(['the job went on'])
})

test('JOB-4 a job that was cancelled tells no more', async () => {
  await inWorld({}, async ({ clock, sleep }) => {
    const controller = new AbortController()
    const seen: number[] = []
    const stubborn = async (): Promise<void> => {
      for (let done = 1; done <= 4; done++) {
        currentJob().report({ done })
        await sleep(100)
      }
    }
    const queue = new JobQueue(new InThreadPlaces(clock, stubborn), { threads: 1, queueMax: 1, clock })
    const jobs = new Jobs({ host: queue, clock, nameOf: names, generator: new Generator(9) })
    const onProgress = ({ done }: { done: number }): void => {
      seen.push(done)
      if (done === 2) controller.abort()
    }
    expect((await rejection(jobs.run(stubborn, [], { onProgress, signal: controller.signal }))).code).toBe('JOB_CANCELLED')
    await sleep(1000)
    expect(seen).toEqual([1, 2])
  })
})

test('JOB-4 the last report comes before the result', async () => {
  const reports = (): string => {
    for (let done = 1; done <= 5; done++) currentJob().report({ done, total: 5 })
    return 'end'
  }
  await inWorld({ reports }, async ({ jobs }) => {
    const seen: unknown[] = []
    const result = await jobs.run(reports, [], { onProgress: (progress) => seen.push(progress) })
    expect(seen).toEqual([
      { done: 1, total: 5 },
      { done: 5, total: 5 },
    ])
    expect(result).toBe('end')
  })
})

test('JOB-5 first come, first served, and never more than there are threads', async () => {
  let [running, most] = [0, 0]
  const [a, b] = [gate(), gate()]
  const counted = async (i: number): Promise<number> => {
    most = Math.max(most, ++running)
    await (i % 2 === 0 ? a : b).wait()
    running--
    return i
  }
  await inWorld({ counted }, async ({ jobs, queue, sleep }) => {
    const all = Promise.all([0, 1, 2, 3, 4, 5].map((i) => jobs.run(counted, [i])))
    expect(queue.counts()).toEqual({ running: 2, waiting: 4 })
    await sleep(1)
    b.open()
    await sleep(1)
    a.open()
    expect(await all).toEqual([0, 1, 2, 3, 4, 5])
    expect(most).toBe(2)
    expect(queue.counts()).toEqual({ running: 0, waiting: 0 })
  })
})

test('JOB-6 beyond queueMax: JOBS_QUEUE_FULL, and nothing is kept', async () => {
  const { wait, open } = gate()
  await inWorld(
    { wait },
    async ({ jobs, queue }) => {
      const taken = [1, 2, 3, 4].map(() => jobs.run(wait))
      expect(await rejection(jobs.run(wait))).toMatchObject({ code: 'JOBS_QUEUE_FULL', values: { queueMax: 3 } })
      expect(queue.counts()).toEqual({ running: 1, waiting: 3 })
      open()
      await Promise.all(taken)
      await jobs.run(wait)
    },
    { threads: 1, queueMax: 3 },
  )
})

describe('JOB-7 map', () => {
  test('results in order, items taken when there is room', async () => {
    const later = async (i: number): Promise<number> => i
    await inWorld({ later }, async ({ jobs }) => {
      let [taken, given] = [0, 0]
      function* items(): IterableIterator<number> {
        for (;;) yield taken++
      }
      const progress: number[] = []
      for await (const x of jobs.map(later, items(), { ahead: 3, onProgress: ({ done }) => progress.push(done) })) {
        expect(x).toBe(given++)
        expect(taken - given).toBeLessThanOrEqual(3)
        if (given === 10) break
      }
      expect(taken).toBeLessThanOrEqual(13)
      expect(progress.slice(0, 10)).toEqual([1, 2, 3, 4, 5, 6, 7, 8, 9, 10])
    })
  })

  test('the first failure ends it and cancels the rest', async () => {
    const cancelled: number[] = []
    const one = async (i: number): Promise<number> => {
      if (i === 1) throw new RangeError('at 1')
      if (i === 0) return 0
      return new Promise((_, reject) => {
        const { signal } = currentJob()
        signal.addEventListener('abort', () => {
          cancelled.push(i)
          reject(signal.reason)
        })
      })
    }
    await inWorld(
      { one },
      async ({ jobs, sleep, begun, queue }) => {
        const seen: number[] = []
        await expect(
          (async () => {
            for await (const x of jobs.map(one, [0, 1, 2, 3, 4, 5, 6, 7], { ahead: 6 })) seen.push(x)
          })(),
        ).rejects.toThrow('at 1')
        await sleep(1)
        expect(seen).toEqual([0])
        expect(cancelled.length).toBeGreaterThan(0)
        expect(cancelled).toHaveLength(begun.length - 2)
        expect(queue.counts()).toEqual({ running: 0, waiting: 0 })
      },
      { threads: 4 },
    )
  })

  test('a signal ends it, one that has aborted before begins nothing', async () => {
    await inWorld({ ten }, async ({ jobs, begun }) => {
      const error = await rejection(jobs.map(ten, [1, 2], { signal: AbortSignal.abort(new Error('no')) }).next())
      expect(error.code).toBe('JOB_CANCELLED')
      expect(begun).toEqual([])
    })
  })

  test.each([0, 1.5, Number.NaN])('refuses ahead %p', async (ahead) => {
    await inWorld({ ten }, async ({ jobs }) => {
      expect((await rejection(jobs.map(ten, [1], { ahead }).next())).code).toBe('INVALID_ARGUMENT')
    })
  })
})

describe('JOB-8', () => {
  const stops = (): Promise<never> =>
    new Promise((_, reject) => {
      const { signal } = currentJob()
      signal.addEventListener('abort', () => reject(signal.reason))
    })

  test('one that waits does not run', async () => {
    const { wait, open } = gate()
    await inWorld(
      { wait, ten },
      async ({ jobs, begun, queue }) => {
        const first = jobs.run(wait)
        const controller = new AbortController()
        const second = rejection(jobs.run(ten, [1], { signal: controller.signal }))
        controller.abort(new Error('changed my mind'))
        expect(await second).toMatchObject({ code: 'JOB_CANCELLED', cause: { message: 'changed my mind' } })
        expect(queue.counts()).toEqual({ running: 1, waiting: 0 })
        open()
        await first
        expect(begun).toEqual(['wait'])
      },
      { threads: 1 },
    )
  })

  test('one that runs hears of it, and who waits knows at once', async () => {
    const heard: unknown[] = []
    const listens = (): Promise<never> =>
      stops().catch((reason) => {
        heard.push(reason.code)
        throw reason
      })
    await inWorld({ listens }, async ({ jobs, sleep, queue }) => {
      const controller = new AbortController()
      const job = rejection(jobs.run(listens, [], { signal: controller.signal }))
      await sleep(5)
      controller.abort()
      expect((await job).code).toBe('JOB_CANCELLED')
      await sleep(1)
      expect(heard).toEqual(['JOB_CANCELLED'])
      expect(queue.counts()).toEqual({ running: 0, waiting: 0 })
    })
  })

  test('time, of which the wait is a part', async () => {
    const { wait, open } = gate()
    await inWorld(
      { wait, ten },
      async ({ jobs, clock, begun }) => {
        const first = jobs.run(wait)
        expect(await rejection(jobs.run(ten, [1], { timeoutMs: 30 }))).toMatchObject({ code: 'JOB_TIMEOUT', values: { timeoutMs: 30 } })
        expect(clock.now()).toBe(30)
        open()
        await first
        expect(await jobs.run(ten, [2], { timeoutMs: 30 })).toBe(20)
        expect(begun).toEqual(['wait', 'ten'])
      },
      { threads: 1 },
    )
  })

  test.each([-1, Number.NaN])('refuses %p ms', async (timeoutMs) => {
    await inWorld({ ten }, async ({ jobs }) => {
      expect((await rejection(jobs.run(ten, [1], { timeoutMs }))).code).toBe('TIMEOUT_INVALID')
    })
  })

  test('currentJob outside of a job says so', () => {
    expect(() => currentJob()).toThrow('no job is current')
  })
})

test('JOB-11 close rejects what runs, what waits and what comes later', async () => {
  const { wait } = gate()
  await inWorld(
    { wait },
    async ({ jobs }) => {
      const errors = [1, 2, 3].map(() => rejection(jobs.run(wait)))
      await jobs.close()
      await jobs.close()
      errors.push(rejection(jobs.run(wait)))
      expect((await Promise.all(errors)).map(({ code }) => code)).toEqual(Array(4).fill('JOBS_CLOSED'))
    },
    { threads: 2 },
  )
})

describe('JOB-13 through a port', () => {
  /** A worker's host and the main thread's server, joined by a clock's turns. */
  function overPort(
    queue: JobQueue,
    clock: Clock,
  ): { readonly host: PortHost; readonly server: PortServer; readonly jobs: (pool: string) => Jobs } {
    const host: PortHost = new PortHost((message) => clock.defer(() => server.receive(structuredClone(message) as JobFromWorker)))
    const server: PortServer = new PortServer(
      (message) => clock.defer(() => host.receive(structuredClone(message) as JobToWorker)),
      (pool) => (pool === 'jobs' ? queue : undefined),
    )
    const jobs = (pool: string): Jobs => new Jobs({ host: host.pool(pool), clock, nameOf: names, generator: new Generator(3) })
    return { host, server, jobs }
  }

  test('results, errors, progress and refusals', async () => {
    const reports = (): string => {
      currentJob().report({ done: 1 })
      return 'end'
    }
    const fails = (): never => {
      throw new RangeError('it did')
    }
    await inWorld({ ten, reports, fails }, async ({ queue, clock }) => {
      const { jobs, host } = overPort(queue, clock)
      expect(await jobs('jobs').run(ten, [4])).toBe(40)
      const seen: unknown[] = []
      expect(await jobs('jobs').run(reports, [], { onProgress: (progress) => seen.push(progress) })).toBe('end')
      expect(seen).toEqual([{ done: 1 }])
      await expect(jobs('jobs').run(fails)).rejects.toMatchObject({ name: 'RangeError', message: 'it did' })
      expect((await rejection(jobs('others').run(ten, [1]))).code).toBe('JOBS_NOT_HERE')
      expect(host.pendingCount).toBe(0)
      await queue.close()
      expect((await rejection(jobs('jobs').run(ten, [1]))).code).toBe('JOBS_CLOSED')
    })
  })

  test('JOB-8, JOB-14 cancelled by the caller, and by the end of the caller', async () => {
    const heard: string[] = []
    const listens = (who: string): Promise<never> =>
      new Promise((_, reject) => {
        const { signal } = currentJob()
        signal.addEventListener('abort', () => {
          heard.push(`${who} ${signal.reason.code}`)
          reject(signal.reason)
        })
      })
    await inWorld(
      { listens },
      async ({ queue, clock, sleep, begun }) => {
        const { jobs, host, server } = overPort(queue, clock)
        const controller = new AbortController()
        const first = rejection(jobs('jobs').run(listens, ['first'], { signal: controller.signal }))
        await sleep(1)
        controller.abort()
        expect((await first).code).toBe('JOB_CANCELLED')
        await sleep(1)
        expect(heard).toEqual(['first JOB_CANCELLED'])
        const [second, third] = ['second', 'third'].map((who) => rejection(jobs('jobs').run(listens, [who])))
        await sleep(1)
        host.close()
        server.drop(new PostgradError('WORKER_DIED', { op: 'cluster', message: 'gone' }))
        expect([(await second!).code, (await third!).code]).toEqual(['JOBS_CLOSED', 'JOBS_CLOSED'])
        await sleep(1)
        expect(heard).toEqual(['first JOB_CANCELLED', 'second WORKER_DIED'])
        expect(begun).toHaveLength(2)
        expect(queue.counts()).toEqual({ running: 0, waiting: 0 })
      },
      { threads: 1 },
    )
  })
})
