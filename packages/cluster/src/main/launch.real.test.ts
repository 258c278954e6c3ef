/** Launching and ending a cluster: its workers, how launches fail, and that nothing is left open. */
import { execFileSync } from 'node:child_process'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { availableParallelism, tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { inspect } from 'node:util'
import { describe, expect, test } from '@jest/globals'
import { isPostgradError, type PostgradError } from '@postgrad/base'
import { launcher } from '../clusters.fixture.js'
import * as basics from '../fixtures/basics.js'
import { script } from '../script.fixture.js'
import type { LaunchOptions } from './launch.js'

const launch = launcher()
const BASICS = new URL('../fixtures/basics.js', import.meta.url)

async function failureOf(promise: Promise<unknown>): Promise<PostgradError> {
  const error = await promise.then(
    () => new Error('it did not fail'),
    (reason) => reason,
  )
  if (!isPostgradError(error)) throw error
  return error
}

const ending = (way: string) => script(new URL('../fixtures/ends-by-itself.js', import.meta.url), way)

describe('launch', () => {
  test('CLU-116 a count names workers worker0…; each knows itself and can call the others', async () => {
    const cluster = await launch(BASICS, { workers: 3 })
    try {
      expect(inspect(cluster)).toBe('Cluster { worker0: alive, worker1: alive, worker2: alive }')
      expect(inspect(cluster.on('worker0'))).toBe('Controller { worker0 }')
      expect(cluster.workers).toEqual([0, 1, 2].map((id) => ({ name: `worker${id}`, id })))
      expect(await Promise.all(cluster.workers.map((worker) => cluster.on(worker).run(basics.whoAmI)))).toEqual([
        'worker0',
        'worker1',
        'worker2',
      ])
      const pairs = cluster.workers.flatMap((from) => cluster.workers.map((to) => [from.name, to.name] as const))
      expect(await Promise.all(pairs.map(([from, to]) => cluster.on(from).run(basics.callWhoAmI, to)))).toEqual(pairs.map(([, to]) => to))
    } finally {
      await cluster.close()
    }
    expect(await cluster.closed).toEqual({ deaths: [], leaks: [] })
    expect(String(cluster)).toMatch(/^Cluster \(closed\) \{.*worker0: (gone|has left)/)
  })

  test('a path works as well as a URL', async () => {
    const cluster = await launch(fileURLToPath(BASICS), { workers: ['only'] })
    expect(await cluster.on('only').run(basics.whoAmI)).toBe('only')
    await cluster.close()
  })

  test.each([null, 'commonjs'])(
    './program.js is program.ts while it has not been compiled, as in an import; "type" is %s',
    async (type) => {
      const folder = await mkdtemp(join(tmpdir(), 'postgrad-'))
      // npm 11 writes such a package.json into a new folder.
      if (type !== null) await writeFile(join(folder, 'package.json'), JSON.stringify({ type }))
      await writeFile(join(folder, 'program.ts'), 'const twice = (x: number): number => 2 * x\nexport default (): void => void twice(1)\n')
      try {
        const cluster = await launch(pathToFileURL(join(folder, 'program.js')), { workers: ['only'] })
        await cluster.on('only').runMain([])
        await cluster.close()
      } finally {
        await rm(folder, { recursive: true })
      }
    },
  )

  test('workers draw different numbers, the same with the same seed, others with another', async () => {
    const draw = async (options: Partial<LaunchOptions>): Promise<number[]> => {
      const cluster = await launch(BASICS, { workers: ['a', 'b'], ...options })
      const numbers = await Promise.all(['a', 'b'].map((name) => cluster.on(name).run(basics.random)))
      await cluster.close()
      return numbers
    }
    const [first, second, other] = await Promise.all([draw({ seed: 5 }), draw({ seed: 5 }), draw({ seed: 6 })])
    expect(first[0]).not.toBe(first[1])
    expect(second).toEqual(first)
    expect(other[0]).not.toBe(first[0])
  })

  test('the device, resource limits and environment reach the worker', async () => {
    const cluster = await launch(BASICS, {
      workers: ['a'],
      device: 'js',
      workerOptions: { env: { COLOUR: 'green' }, resourceLimits: { maxOldGenerationSizeMb: 200 } },
    })
    expect(await cluster.on('a').run(basics.deviceOf)).toBe('js')
    expect(await cluster.on('a').run(basics.env, 'COLOUR')).toBe('green')
    await cluster.close()
  })

  test('CLU-124 computeThreads reaches the workers, which share the cores', async () => {
    for (const workers of [1, 3]) {
      const cluster = await launch(BASICS, { workers, computeThreads: 200 })
      const expected = Math.max(1, Math.floor(availableParallelism() / workers))
      expect(await cluster.on('worker0').run(basics.computeThreads)).toBe(expected)
      // Helpers keep no worker alive.
      await cluster.close()
    }
    const cluster = await launch(BASICS, { workers: 1 })
    expect(await cluster.on('worker0').run(basics.computeThreads)).toBe(1)
    await cluster.close()
  })

  test('output can be captured, by worker', async () => {
    const seen: string[] = []
    const cluster = await launch(BASICS, { workers: ['a', 'b'], stdout: (text, worker) => seen.push(`${worker}: ${text}`) })
    await cluster.on('a').run(basics.print, 'hello')
    await cluster.on('b').run(basics.print, 'hi')
    await cluster.close()
    expect(seen.sort()).toEqual(['a: hello\n', 'b: hi\n'])
  })

  test('CLU-123 the lines of a run arrive before its result', async () => {
    let seen = ''
    const stdout = (text: string): void => {
      seen += text
    }
    const cluster = await launch(BASICS, { workers: ['a'], stdout })
    for (let run = 0; run < 20; run++) {
      seen = ''
      await cluster.on('a').run(basics.printLines, 5)
      expect(seen).toBe('0\n1\n2\n3\n4\n')
    }
    await cluster.close()
  })

  test('progress arrives, the last report always and before the result', async () => {
    const seen: number[] = []
    const cluster = await launch(BASICS, {
      workers: ['a'],
      onProgress: (progress, worker) => {
        expect(worker).toBe('a')
        expect(progress.text).toBe(`step ${progress.done}`)
        seen.push(progress.done)
      },
    })
    await cluster.on('a').run(basics.progress, 1000)
    expect(seen[0]).toBe(1)
    expect(seen.at(-1)).toBe(1000)
    expect(seen.length).toBeLessThan(500)
    await cluster.close()
  })
})

describe('launch fails', () => {
  test.each<[string, readonly string[] | number, string]>([
    ['an empty name', ['a', ''], 'WORKER_NAME_INVALID'],
    ['a character that is not allowed', ['a b'], 'WORKER_NAME_INVALID'],
    ['128 characters', ['x'.repeat(128)], 'WORKER_NAME_INVALID'],
    ['the same name twice', ['a', 'b', 'a'], 'WORKER_NAME_DUPLICATE'],
    ['no worker', [], 'WORKER_COUNT_INVALID'],
    ['count 0', 0, 'WORKER_COUNT_INVALID'],
    ['half a worker', 1.5, 'WORKER_COUNT_INVALID'],
    ['more than 16 bits', 65_537, 'WORKER_COUNT_INVALID'],
  ])('with %s', async (_what, workers, code) => {
    expect(await failureOf(launch(BASICS, { workers }))).toMatchObject({ code })
  })

  test.each<[string, Partial<LaunchOptions>, string]>([
    ['half a seed', { seed: 0.5 }, 'INVALID_ARGUMENT'],
    ['no seed', { seed: Number.NaN }, 'INVALID_ARGUMENT'],
    ['a deadline of calls that is no time', { rpcTimeoutMs: -1 }, 'TIMEOUT_INVALID'],
    ['a deadline of its own that is no time', { launchTimeoutMs: Number.NaN }, 'TIMEOUT_INVALID'],
    ['an environment that Node refuses', { workerOptions: { env: 3 as never } }, 'ERR_INVALID_ARG_TYPE'],
  ])('HEAP-7 with %s, and no slot of the heap is lost', async (_what, options, code) => {
    const error = await failureOf(launch(BASICS, { workers: 2, ...options }))
    // Node refuses an environment as the thread begins.
    expect(error.code === 'LAUNCH_FAILED' ? error.cause : error).toMatchObject({ code })
  })

  test('127 characters are a name', async () => {
    const name = 'Az09-_:'.padEnd(127, 'x')
    const cluster = await launch(BASICS, { workers: [name] })
    expect(await cluster.on(name).run(basics.whoAmI)).toBe(name)
    await cluster.close()
  })

  test.each([new URL('./fixtures/nowhere.js', import.meta.url), './nowhere.js', new URL('https://example.org/x.js')])(
    'when %s is not there',
    async (program) => {
      const error = await failureOf(launch(program, { workers: 2 }))
      expect(error.code).toBe('LAUNCH_FAILED')
      expect(error.cause).toMatchObject({ code: 'PROGRAM_NOT_FOUND' })
    },
  )

  test('when the program throws: the worker and the whole error', async () => {
    const error = await failureOf(launch(new URL('../fixtures/throws-at-import.js', import.meta.url), { workers: ['a', 'b'] }))
    expect(error.code).toBe('LAUNCH_FAILED')
    expect(['a', 'b']).toContain(error.values.worker)
    expect(error.message).toMatch(/could not start: .*this module throws \(\/.*fixtures\/throws-at-import\.js:\d+:\d+\)\.$/)
    expect(error.cause).toMatchObject({ name: 'PostgradError', code: 'BROKEN_PROGRAM', values: { line: 4 } })
    expect((error.cause as PostgradError).remoteStack).toContain('throws-at-import')
  })

  test('CLU-57 when the program does not finish loading, with where to look', async () => {
    const error = await failureOf(launch(new URL('../fixtures/never-loads.js', import.meta.url), { workers: 1, launchTimeoutMs: 300 }))
    expect(error.code).toBe('LAUNCH_FAILED')
    expect(error.cause).toMatchObject({ code: 'RUN_TIMEOUT' })
    expect(error.message).toContain('has not loaded the program within 300 ms. Look at the top level of its modules')
    expect(error.message).not.toMatch(/cluster\.kill|\(\//)
  })

  test.each([0, 1.5, 10_000])('CLU-124 when computeThreads is %p, before a thread starts', async (computeThreads) => {
    const error = await failureOf(launch(BASICS, { workers: 1, computeThreads }))
    expect(error).toMatchObject({ code: 'INVALID_ARGUMENT', op: 'computeThreads' })
  })

  test('CLU-57 when the device is unknown, before a thread starts', async () => {
    const error = await failureOf(launch(BASICS, { workers: 1, device: 'abacus' as 'wasm' }))
    expect(error.code).toBe('DEVICE_UNKNOWN')
    expect(error.message).toContain('abacus')
  })
})

describe('a process with a cluster ends by itself', () => {
  test('after close', async () => {
    expect(await ending('close')).toEqual({ code: 0, out: '[4,6] c\nend of script\n', err: '' })
  })

  test('after the end of an `await using` block', async () => {
    expect(await ending('using')).toEqual({ code: 0, out: 'c\nend of script\n', err: '' })
  })

  test('when all workers have died', async () => {
    expect(await ending('all-die')).toEqual({ code: 0, out: 'WORKER_DIED,WORKER_DIED,WORKER_DIED\n3\nend of script\n', err: '' })
  })

  test.each(['shutdown-inside', 'leave-inside', 'supervised'])('CLU-25 when its workers have ended themselves: %s', async (way) => {
    const { code, out, err } = await ending(way)
    expect({ code, err }).toEqual({ code: 0, err: '' })
    const lines = out.trim().split('\n')
    expect(lines.filter((line) => line.endsWith(' left')).toSorted()).toEqual(['a left', 'b left'])
    expect(lines.filter((line) => line.endsWith('goes on')).join(' ')).toMatch(/a goes on\s+b goes on/)
    expect(lines.slice(-2)).toEqual(['0 deaths 0 workers', 'end of script'])
  })

  test('CLU-25 when its workers have ended themselves, and then their threads: no death', async () => {
    const { code, out, err } = await ending('exit-inside')
    expect({ code, err }).toEqual({ code: 0, err: '' })
    expect(out.trim().split('\n').toSorted()).toEqual(['0 deaths 2 workers', 'a left', 'b left', 'end of script', 'left', 'left'])
  })

  test('CLU-25 a worker that close ends has the whole of graceMs, and stays one of the cluster', async () => {
    const { code, out, err } = await ending('long-grace')
    expect({ code, err, lines: out.trim().split('\n').sort() }).toEqual({
      code: 0,
      err: '',
      lines: ['1 workers', 'end of script', 'the timer fired'],
    })
  })

  test('CLU-25 close right after workers have ended themselves waits for nothing', async () => {
    expect(await ending('shutdown-then-close')).toEqual({ code: 0, out: 'end of script\n', err: '' })
  })

  test('after a launch that failed halfway through starting the threads', async () => {
    expect(await ending('threads-run-out')).toEqual({ code: 0, out: 'LAUNCH_FAILED b no more threads\nend of script\n', err: '' })
  })

  test('after a launch that failed', async () => {
    expect(await ending('launch-fails')).toEqual({ code: 0, out: 'LAUNCH_FAILED\nend of script\n', err: '' })
  })

  test('after close with a run pending', async () => {
    expect(await ending('pending')).toEqual({ code: 0, out: 'CLUSTER_CLOSED\nend of script\n', err: '' })
  })

  test('on an uncaught error of the main thread', async () => {
    const { code, out, err } = await ending('uncaught')
    expect([code, out]).toEqual([1, ''])
    expect(err).toContain('the main thread fails')
  })
})

const testLimits = process.platform === 'win32' ? test.skip : test

testLimits(
  'CLU-67 a launch without open files for its threads, or for what they load, says what to do, and the next one finds all of them free',
  () => {
    const fixture = fileURLToPath(new URL('../fixtures/no-open-files.js', import.meta.url))
    const { NODE_OPTIONS: _, ...env } = process.env
    const out = execFileSync('bash', ['-c', `ulimit -n 300; exec "${process.execPath}" "${fixture}"`], {
      env,
      encoding: 'utf8',
      timeout: 60_000,
    })
    const noFiles = 'LAUNCH_FAILED (WORKER_DIED )?TOO_MANY_OPEN_FILES \\w+ true'
    expect(out).toMatch(new RegExp(`^0 ${noFiles}\n2 ${noFiles}\n5 ${noFiles}\n200 launched\n$`))
  },
)
