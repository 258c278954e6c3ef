/** How workers end, and how they stall: the error names each way, and other workers are not affected. Rules CLU-14 to CLU-23 in SPEC.md. */
import { afterEach, describe, expect, test } from '@jest/globals'
import type { PostgradError } from '@postgrad/base'
import { heapStats, threadHeap } from '@postgrad/tensor/internal'
import { launcher } from '../clusters.fixture.js'
import * as ends from '../fixtures/ends.js'
import { script } from '../script.fixture.js'
import type { LaunchOptions } from './launch.js'

const launch = launcher()
const PROGRAM = new URL('../fixtures/ends.js', import.meta.url)
const ending = (...way: string[]) => script(new URL('../fixtures/ends-by-itself.js', import.meta.url), ...way)

afterEach(() => {
  const heap = threadHeap()
  expect([...heapStats(heap).heldBytes.keys()].filter((slot) => slot !== heap.slot)).toEqual([])
})

async function rejection(promise: Promise<unknown>): Promise<PostgradError> {
  return promise.then(
    (value) => {
      throw new Error(`it did not reject, it gave ${JSON.stringify(value)}`)
    },
    (error) => error,
  )
}

test('CLU-14 a worker that runs out of memory, in whatever way, dies with the reason, and the others go on', async () => {
  const cluster = await launch(PROGRAM, {
    workers: ['small', 'other'],
    workerOptions: { resourceLimits: (name) => (name === 'small' ? { maxOldGenerationSizeMb: 32 } : undefined) },
  })
  for (const way of Object.keys(ends.hoarders) as (keyof typeof ends.hoarders)[]) {
    const peer = cluster.on('other').run(ends.waitFor, 'small')
    const error = await rejection(cluster.on('small').run(ends.hoard, way))
    expect([way, error]).toMatchObject([
      way,
      { code: 'WORKER_DIED', values: { worker: 'small', cause: 'out-of-memory' }, cause: { code: 'ERR_WORKER_OUT_OF_MEMORY' } },
    ])
    expect(error.message).toContain('ran out of memory')
    expect(await peer).toBe('WORKER_DIED about small')
    expect(await cluster.on('other').run(ends.ping)).toBe('pong')
    await cluster.restart('small')
    expect(await cluster.on('small').run(ends.ping)).toBe('pong')
  }
})

describe('a worker that ends', () => {
  test('CLU-15 by process.exit, an error that nobody catches, a rejection that nobody handles: each has its name, the code and what was thrown', async () => {
    const cluster = await launch(PROGRAM, { workers: ['a', 'b'] })
    const errors: PostgradError[] = []
    const died = async (fn: (...args: never[]) => void, ...args: readonly unknown[]): Promise<PostgradError> => {
      if (errors.length > 0) await cluster.restart('a')
      const waits = rejection(cluster.on('a').run(ends.forever))
      const peer = cluster.on('b').run(ends.waitFor, 'a')
      void cluster
        .on('a')
        .run(fn as () => void, ...(args as []))
        .catch(() => {})
      const error = await waits
      expect(await peer).toBe('WORKER_DIED about a')
      expect(cluster.deathOf('a')).toMatchObject({ code: 'WORKER_DIED', values: error.values })
      errors.push(error)
      return error
    }

    for (const exitCode of [0, 1, 7]) {
      const error = await died(ends.exitLater, exitCode)
      expect(error).toMatchObject({ code: 'WORKER_DIED', values: { worker: 'a', cause: 'exited', exitCode } })
      expect(error.cause).toBeUndefined()
    }

    const thrown = await died(ends.throwLater)
    expect(thrown).toMatchObject({ values: { cause: 'uncaught-exception' }, cause: { name: 'RangeError', message: 'nobody catches this' } })
    expect(thrown.message).toContain('threw RangeError: nobody catches this, and nobody caught it')

    const rejected = await died(ends.rejectLater)
    expect(rejected).toMatchObject({
      values: { cause: 'unhandled-rejection' },
      cause: { name: 'RangeError', message: 'nobody handles this' },
    })
    expect(rejected.message).toContain('was rejected with RangeError: nobody handles this')

    const text = await died(ends.rejectText)
    expect(text.values.cause).toBe('unhandled-rejection')
    expect(text.message).toContain('only text')

    await cluster.close()
    expect((await cluster.closed).deaths).toMatchObject(errors.map(({ values }) => ({ code: 'WORKER_DIED', values })))
  })

  test('CLU-15 a program that handles its uncaught errors lives, and what ends it later has its own name', async () => {
    const cluster = await launch(PROGRAM, { workers: ['a'] })
    await cluster.on('a').run(ends.survive)
    expect(await cluster.on('a').run(ends.ping)).toBe('pong')
    expect(await rejection(cluster.on('a').run(ends.exit, 4))).toMatchObject({ values: { cause: 'exited', exitCode: 4 } })
  })

  test('CLU-15 by kill', async () => {
    const cluster = await launch(PROGRAM, { workers: ['a'] })
    const waits = rejection(cluster.on('a').run(ends.spin))
    await cluster.kill('a')
    expect(await waits).toMatchObject({ values: { cause: 'killed' } })
  })
})

describe('a worker that stands still', () => {
  /** Long enough for a thread that has its turn late because the machine is busy. */
  const STALL_MS = 600

  /** The reports of stalls, and a wait for the next one. */
  async function watched(options: Partial<LaunchOptions>) {
    const cluster = await launch(PROGRAM, { workers: ['a', 'idle'], stallMs: STALL_MS, ...options })
    const heard: string[] = []
    let wake = (): void => {}
    const hear = (what: string): void => {
      heard.push(what)
      wake()
    }
    cluster.onWorkerStalled(({ name }, { code, values }) => hear(`${name} ${code} ${values.workerId}`))
    cluster.onWorkerRecovered(({ name }) => hear(`${name} recovered`))
    cluster.onWorkerDeath(({ name }, { values }) => hear(`${name} died ${values.cause}`))
    const until = async (count: number): Promise<readonly string[]> => {
      while (heard.length < count) {
        await new Promise<void>((resolve) => {
          wake = resolve
        })
      }
      return heard
    }
    return { cluster, heard, until }
  }

  test('CLU-20 one in an endless loop is reported, once; an idle one is not', async () => {
    const { cluster, until, heard } = await watched({})
    const spinning = rejection(cluster.on('a').run(ends.spin))
    expect(await until(1)).toEqual(['a WORKER_STALLED 0'])
    await pause(3 * STALL_MS)
    expect(heard).toEqual(['a WORKER_STALLED 0'])
    expect(await cluster.on('idle').run(ends.ping)).toBe('pong')
    expect(Object.keys(await cluster.debugInfo())).toEqual(['idle'])
    await cluster.kill('a')
    await spinning
    expect(await until(2)).toEqual(['a WORKER_STALLED 0', 'a died killed'])
  })

  test('CLU-21 one that goes on has recovered', async () => {
    const { cluster, until } = await watched({})
    const blocked = cluster.on('a').run(ends.block, 5 * STALL_MS)
    expect(await until(2)).toEqual(['a WORKER_STALLED 0', 'a recovered'])
    await blocked
  })

  test('CLU-20 one in long kernels is not stalled', async () => {
    const { cluster, heard } = await watched({ stallMs: 1000 })
    expect(await cluster.on('a').run(ends.multiply, 2200)).toBeGreaterThan(0)
    expect(heard).toEqual([])
  })

  test("CLU-23 onStall: 'kill' ends it, with the reason", async () => {
    const { cluster, until } = await watched({ onStall: 'kill' })
    const spinning = rejection(cluster.on('a').run(ends.spin))
    expect(await until(2)).toEqual(['a WORKER_STALLED 0', 'a died stalled'])
    expect(await spinning).toMatchObject({ code: 'WORKER_DIED', values: { cause: 'stalled' } })
    await cluster.restart('a')
    expect(await cluster.on('a').run(ends.ping)).toBe('pong')
  })

  test('CLU-20 with stallMs 0 nobody looks; what is no time and no policy is refused', async () => {
    const { cluster, heard } = await watched({ stallMs: 0 })
    await cluster.on('a').run(ends.block, 2 * STALL_MS)
    expect(heard).toEqual([])
    expect(await rejection(launch(PROGRAM, { workers: 1, stallMs: -1 }))).toMatchObject({ code: 'TIMEOUT_INVALID' })
    expect(await rejection(launch(PROGRAM, { workers: 1, onStall: 'shout' as 'kill' }))).toMatchObject({ code: 'INVALID_ARGUMENT' })
  })
})

const pause = (delayMs: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, delayMs))

test('CLU-19 close waits once for a worker that does not come to itself, and ends the others in order', async () => {
  const cluster = await launch(PROGRAM, { workers: ['spins', 'other'], referenceLeaks: 'warn' })
  const given = rejection(cluster.on('spins', { timeoutMs: 50 }).run(ends.spin))
  expect(await given).toMatchObject({ code: 'RUN_TIMEOUT' })
  const begun = performance.now()
  await cluster.close()
  expect(performance.now() - begun).toBeLessThan(2500)
  expect((await cluster.closed).deaths).toEqual([])
})

describe('a cluster that is closed right after a worker has died', () => {
  const small = { maxOldGenerationSizeMb: 32 }
  const closed = async (body: (cluster: Awaited<ReturnType<typeof launch>>) => Promise<unknown>) => {
    const cluster = await launch(PROGRAM, {
      workers: ['asks', 'dies'],
      workerOptions: { resourceLimits: (name) => (name === 'dies' ? small : undefined) },
    })
    const heard: unknown[] = []
    cluster.onWorkerDeath(({ name }, { values }) => heard.push([name, values.cause]))
    const got = await body(cluster)
    await cluster.close()
    return { got, heard, deaths: (await cluster.closed).deaths.map(({ values }) => [values.worker, values.cause]) }
  }

  test.each([
    ['hoard', 'out-of-memory', 'ERR_WORKER_OUT_OF_MEMORY'],
    ['exit', 'exited', undefined],
    ['throwAndWait', 'uncaught-exception', undefined],
    ['rejectAndWait', 'unhandled-rejection', undefined],
  ] as const)('CLU-17 %s: whoever gets the error of a peer gets the cause, and so do listeners and the end', async (way, cause, code) => {
    const { got, heard, deaths } = await closed((cluster) => rejection(cluster.on('asks').run(ends.callIt, 'dies', way)))
    const death = { code: 'WORKER_DIED', values: { worker: 'dies', cause } }
    expect(got).toMatchObject({ ...death, cause: { ...death, ...(code === undefined ? {} : { cause: { code } }) } })
    expect((got as Error).message).not.toContain('link-closed')
    expect({ heard, deaths }).toEqual({ heard: [['dies', cause]], deaths: [['dies', cause]] })
  })

  test('CLU-17 also if only the peers have heard of it', async () => {
    const { got, heard, deaths } = await closed(async (cluster) => {
      const peer = cluster.on('asks').run(ends.waitFor, 'dies')
      void cluster.on('dies').run(ends.throwLater)
      return peer
    })
    expect(got).toBe('WORKER_DIED about dies')
    expect({ heard, deaths }).toEqual({ heard: [['dies', 'uncaught-exception']], deaths: [['dies', 'uncaught-exception']] })
  })
})

test('CLU-24 an uncaught error right before close is told of, and the exit code is 1; a thread that ended itself well is only told of', async () => {
  const [plain, supervised, exits] = await Promise.all([
    ending('uncaught-then-close'),
    ending('uncaught-then-close', 'supervised'),
    ending('exits-well'),
  ])
  for (const throws of [plain, supervised]) {
    expect(throws).toMatchObject({ code: 1, out: 'end of script\n' })
    expect(throws.err).toMatch(/WORKER_DIED: .*uncaught-exception[\s\S]*RangeError: nobody catches this\n +at .*ends/)
    expect(throws.err).toMatch(/WORKER_DIED: .*unhandled-rejection[\s\S]*RangeError: nobody handles this\n +at .*ends/)
  }
  expect(exits).toMatchObject({ code: 0, out: 'end of script\n', err: expect.stringContaining('exit code 0') })
})
