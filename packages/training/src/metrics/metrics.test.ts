/** Metrics files: what is written is read back, runs continue each other, and nothing is lost. */
import { spawnSync } from 'node:child_process'
import { chmodSync, existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Worker } from 'node:worker_threads'
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals'
import { Future } from '@postgrad/base'
import { type Tensor, tensor } from '@postgrad/tensor'
import { MetricsWriter, type MetricsWriterOptions } from './metrics-writer.js'
import { readMetrics } from './read-metrics.js'

let folder = ''
let files = 0
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'postgrad-metrics-'))
})
afterAll(() => rmSync(folder, { recursive: true, force: true }))

const fresh = (extension: string): string => join(folder, `${++files}.${extension}`)
const textOf = (path: string): string => readFileSync(path, 'utf8')
/** A clock that a test moves. */
const clock = () => {
  let ms = 5000
  return {
    now: () => ms,
    pass: (seconds: number) => {
      ms += 1000 * seconds
    },
  }
}

async function write(path: string, steps: readonly number[], options: MetricsWriterOptions = {}): Promise<void> {
  const { now, pass } = clock()
  await using writer = new MetricsWriter(path, { now, ...options })
  for (const step of steps) {
    writer.log({ loss: 1 / step }, step)
    pass(1)
  }
}

/** Removes what is in the way, and puts it back. */
async function code(action: () => unknown): Promise<unknown> {
  try {
    await action()
    return null
  } catch (error) {
    return (error as { code?: unknown }).code
  }
}

test('TR-1 a line has step, seconds and values; values of one step share a line', async () => {
  const { now, pass } = clock()
  const [json, csv] = [fresh('jsonl'), fresh('csv')]
  for (const path of [json, csv]) {
    const writer = new MetricsWriter(path, { now })
    writer.addScalar('loss', 0.5, 1)
    writer.addScalar('accuracy', 0.25, 1)
    pass(1.5)
    writer.log({ loss: 0.25 }, 2)
    await writer.close()
  }
  expect(textOf(json)).toBe('{"step":1,"seconds":0,"loss":0.5,"accuracy":0.25}\n{"step":2,"seconds":1.5,"loss":0.25}\n')
  expect(textOf(csv)).toBe('step,seconds,loss,accuracy\n1,0,0.5,0.25\n2,1.5,0.25,\n')
  for (const path of [json, csv])
    expect(await readMetrics(path)).toEqual({
      path,
      rows: [
        { step: 1, seconds: 0, values: { loss: 0.5, accuracy: 0.25 } },
        { step: 2, seconds: 1.5, values: { loss: 0.25 } },
      ],
      tags: ['loss', 'accuracy'],
      truncated: null,
      outOfOrder: null,
    })
})

test('TR-1 seconds count from the making of the writer, and are left out without a clock', async () => {
  for (const path of [fresh('jsonl'), fresh('csv')]) {
    const { now, pass } = clock()
    const writer = new MetricsWriter(path, { now })
    pass(2)
    writer.log({ loss: 1 }, 1)
    await writer.close()
    expect((await readMetrics(path)).rows[0]!.seconds).toBe(2)
    await write(path, [1, 2], { now: () => Number.NaN })
    expect(textOf(path)).not.toContain('NaN')
    expect((await readMetrics(path)).rows.map(({ seconds }) => seconds)).toEqual([Number.NaN, Number.NaN])
  }
})

test.each(['jsonl', 'ndjson', 'csv'])('TR-1 values of one step in two lines are one row (%s)', async (extension) => {
  const path = fresh(extension)
  const writer = new MetricsWriter(path)
  writer.log({ a: 1 }, 1)
  await writer.flush()
  writer.log({ b: 2 }, 1)
  writer.log({ b: 3 }, 1)
  await writer.close()
  expect((await readMetrics(path)).rows.map(({ values }) => values)).toEqual([{ a: 1, b: 2 }, { b: 3 }])
})

test.each(['jsonl', 'csv'])('TR-2 numbers have the same bits (%s)', async (extension) => {
  const path = fresh(extension)
  const numbers = [
    0.1,
    -0,
    Number.NaN,
    Number.POSITIVE_INFINITY,
    Number.NEGATIVE_INFINITY,
    5e-324,
    Number.MAX_VALUE,
    Math.fround(0.3),
    1e21,
  ]
  await using writer = new MetricsWriter(path)
  numbers.forEach((x, i) => {
    writer.log({ x, 'a "quoted", tag': i, __proto__x: x }, i)
  })
  await writer.flush()
  const { rows } = await readMetrics(path)
  expect(rows.map(({ values }) => values.x)).toEqual(numbers)
  expect(rows.map(({ values }) => values['a "quoted", tag'])).toEqual(numbers.map((_, i) => i))
})

describe('TR-3', () => {
  test('TR-3 a tensor of one element is a value', async () => {
    const path = fresh('jsonl')
    await using writer = new MetricsWriter(path)
    writer.log({ loss: tensor([[0.25]]), right: tensor([true], { dtype: 'bool' }) }, 1)
    await writer.flush()
    expect((await readMetrics(path)).rows[0]!.values).toEqual({ loss: 0.25, right: 1 })
  })

  test('TR-3 a tensor of a slow device keeps its place', async () => {
    const path = fresh('jsonl')
    const item = new Future<number>()
    const slow = Object.create(tensor(0), { storage: { value: { memory: null } }, item: { value: () => item } }) as Tensor
    await using writer = new MetricsWriter(path)
    writer.log({ loss: 3 }, 1)
    writer.log({ loss: slow }, 2)
    writer.log({ loss: 1 }, 3)
    const flushed = writer.flush()
    item.resolve(2)
    await flushed
    expect((await readMetrics(path)).rows.map(({ values }) => values.loss)).toEqual([3, 2, 1])
  })

  test('TR-3 a tensor that cannot be read fails the flush', async () => {
    const item = new Future<number>()
    const slow = Object.create(tensor(0), { storage: { value: { memory: null } }, item: { value: () => item } }) as Tensor
    await using writer = new MetricsWriter(fresh('jsonl'))
    writer.log({ loss: slow }, 2)
    item.reject(new RangeError('lost'))
    await expect(writer.flush()).rejects.toThrow('lost')
  })
})

describe.each(['jsonl', 'csv'])('TR-4 (%s)', (extension) => {
  test('TR-4 a run that continues keeps the lines before its first step', async () => {
    const path = fresh(extension)
    await write(path, [1, 2, 3, 4])
    await write(path, [3, 4, 5])
    const { rows } = await readMetrics(path)
    expect(rows.map(({ step }) => step)).toEqual([1, 2, 3, 4, 5])
    // The second run continues the time of the first.
    expect(rows.map(({ seconds }) => seconds)).toEqual([0, 1, 1, 2, 3])
    await write(path, [1, 2])
    expect((await readMetrics(path)).rows.map(({ step }) => step)).toEqual([1, 2])
  })

  test('TR-4 purgeStep says from which step on', async () => {
    const path = fresh(extension)
    await write(path, [1, 2, 3, 4])
    await write(path, [10], { purgeStep: 3 })
    expect((await readMetrics(path)).rows.map(({ step }) => step)).toEqual([1, 2, 10])
  })

  test('TR-4 a line that a killed run did not finish goes; a writer that writes nothing changes nothing', async () => {
    const path = fresh(extension)
    await write(path, [1, 2])
    writeFileSync(path, textOf(path).slice(0, -3))
    const before = textOf(path)
    await write(path, [])
    expect(textOf(path)).toBe(before)
    await write(path, [2])
    expect((await readMetrics(path)).rows.map(({ step, values }) => [step, values])).toEqual([
      [1, { loss: 1 }],
      [2, { loss: 0.5 }],
    ])
  })
})

test('TR-5 a new tag adds a column, in a file that continues, too', async () => {
  const path = fresh('csv')
  await write(path, [1, 2])
  const { now } = clock()
  const writer = new MetricsWriter(path, { now })
  writer.log({ other: 5 }, 3)
  await writer.flush()
  writer.log({ third: 7, loss: 1 }, 4)
  await writer.close()
  expect(textOf(path)).toBe('step,seconds,loss,other,third\n1,0,1,,\n2,1,0.5,,\n3,1,,5,\n4,1,1,,7\n')
  expect(readdirSync(folder).filter((name) => name.endsWith('.tmp'))).toEqual([])
})

test('TR-1 a step that comes again later, or with a tag that its row has, is a row of its own', async () => {
  const path = fresh('jsonl')
  writeFileSync(path, '{"step":1,"loss":1}\n{"step":1,"loss":2}\n{"step":2,"loss":3}\n{"step":1,"accuracy":1}\n')
  const { rows, outOfOrder } = await readMetrics(path)
  expect(rows.map(({ step, values }) => [step, values])).toEqual([
    [1, { loss: 1 }],
    [1, { loss: 2 }],
    [2, { loss: 3 }],
    [1, { accuracy: 1 }],
  ])
  expect(outOfOrder).toBe(1)
})

describe('TR-4 files of other programs', () => {
  const rowsOf = async (path: string) => (await readMetrics(path)).rows.map(({ step, seconds, values }) => [step, seconds, values])
  const append = async (path: string, values: Record<string, number>, step: number): Promise<void> => {
    await using writer = new MetricsWriter(path, { now: () => Number.NaN })
    writer.log(values, step)
  }

  test.each([['{"step":1,"loss":1}'], ['\uFEFF{"step":1,"loss":1}\r\n'], ['{"step":1,"loss":1}\r\n\r\n']])(
    'TR-4 JSON lines are continued in lines of their own (%j)',
    async (text) => {
      const path = fresh('jsonl')
      writeFileSync(path, text)
      await append(path, { loss: 2 }, 2)
      expect(await rowsOf(path)).toEqual([
        [1, Number.NaN, { loss: 1 }],
        [2, Number.NaN, { loss: 2 }],
      ])
    },
  )

  test.each([
    ['other order', 'loss,step,seconds\n10,1,0\n', 0],
    ['no seconds', 'step,loss\n1,10\n', Number.NaN],
    ['no seconds, and a line that goes', 'step,loss\n1,10\n2,11\n', Number.NaN],
    ['short lines', 'step,seconds,loss,accuracy\n1,0,10\n', 0],
    ['a tag twice', 'step,seconds,loss,loss\n1,0,9,10\n', 0],
    ['line ends of Windows', 'step,seconds,loss\r\n1,0,10\r\n', 0],
  ])('TR-4 CSV gets the columns of this writer (%s)', async (_, text, seconds) => {
    for (const values of [{ loss: 2 }, { accuracy: 3, loss: 2 }] as Record<string, number>[]) {
      const path = fresh('csv')
      writeFileSync(path, text)
      await append(path, values, 2)
      expect(await rowsOf(path)).toEqual([
        [1, seconds, { loss: 10 }],
        [2, Number.NaN, values],
      ])
    }
  })
})

describe('TR-6', () => {
  test('TR-6 lines of a write that failed are written by the next', async () => {
    const path = fresh('jsonl')
    const writer = new MetricsWriter(path)
    mkdirSync(path) // no file can have this name
    writer.log({ loss: 1 }, 1)
    expect(await code(() => writer.flush())).toBe('METRICS_IO')
    await expect(writer.flush()).rejects.toThrow('The lines that are not written are still in memory: flush() and close() fail')
    writer.log({ loss: 2 }, 2)
    expect(await code(() => writer.close())).toBe('METRICS_IO')
    rmdirSync(path)
    await writer.close()
    expect((await readMetrics(path)).rows.map(({ step }) => step)).toEqual([1, 2])
  })

  test('TR-6 the timer writes, and warns once of a write that fails', async () => {
    const path = fresh('jsonl')
    const warnings: string[] = []
    const listen = (warning: Error): void => void warnings.push(warning.message)
    process.on('warning', listen)
    const writer = new MetricsWriter(path, { flushMs: 5 })
    mkdirSync(path)
    writer.log({ loss: 1 }, 1)
    await new Promise((resolve) => setTimeout(resolve, 60))
    rmdirSync(path)
    await new Promise((resolve) => setTimeout(resolve, 60))
    process.off('warning', listen)
    expect(warnings.filter((text) => text.includes(path))).toEqual([expect.stringContaining('cannot write')])
    // Without flush or close.
    expect(textOf(path)).toContain('"step":1')
    await writer.close()
  })

  const endings = { 'process.exit': 'process.exit(3)', 'an error that nobody catches': "throw new Error('stop')", nothing: '' }
  test.each(Object.entries(endings))('TR-6 a program that ends by %s writes its lines', async (_, ending) => {
    const path = fresh('csv')
    const module = new URL('./metrics-writer.js', import.meta.url).href
    const program = `import { MetricsWriter } from '${module}'\nnew MetricsWriter(${JSON.stringify(path)}, { flushMs: 50 }).log({ loss: 1 }, 7)\n${ending}`
    spawnSync(process.execPath, ['--input-type=module', '-e', program])
    expect((await readMetrics(path)).rows.map(({ step }) => step)).toEqual([7])
  })
})

describe('TR-6 at the end of a thread', () => {
  const module = new URL('./metrics-writer.js', import.meta.url).href
  const head = (path: string, options = '{}') =>
    `import { MetricsWriter } from '${module}'\nconst writer = new MetricsWriter(${JSON.stringify(path)}, ${options})\nwriter.log({ loss: 1 }, 7)\n`
  const run = (text: string) =>
    spawnSync(process.execPath, ['--input-type=module', '-e', text], { encoding: 'utf8', timeout: 20_000, killSignal: 'SIGKILL' })

  test.each(['', 'process.exit()', "process.on('uncaughtException', () => process.exit())\nthrow new Error('stop')"])(
    'TR-6 a worker does not wait for the timer, and writes its lines (%s)',
    async (ending) => {
      const path = fresh('jsonl')
      const text = `${head(path, '{ flushMs: 60_000 }')}${ending}`
      const worker = new Worker(new URL(`data:text/javascript,${encodeURIComponent(text)}`))
      const limit = setTimeout(() => void worker.terminate(), 10_000)
      await new Promise((resolve) => worker.on('exit', resolve))
      clearTimeout(limit)
      expect(existsSync(path)).toBe(true)
      expect((await readMetrics(path)).rows.map(({ step }) => step)).toEqual([7])
    },
  )

  test.each(['', 'process.exit(0)'])('TR-6 a write that fails then says so, with exit code 1 (%s)', (ending) => {
    const path = join(folder, `gone${++files}`, 'run.jsonl')
    const remove = `;(await import('node:fs')).rmSync(${JSON.stringify(join(path, '..'))}, { recursive: true })\n`
    const { status, stderr } = run(head(path) + remove + ending)
    expect(status).toBe(1)
    expect(stderr).toContain(`MetricsWriter: exit: cannot write '${path}': ENOENT`)
    expect(stderr).toContain('The lines that are not written are lost.')
  })

  test('TR-6 a write that fails again and again does not keep the process alive; an exit code of the program stays', () => {
    const path = join(folder, `gone${++files}`, 'run.jsonl')
    const remove = `;(await import('node:fs')).rmSync(${JSON.stringify(join(path, '..'))}, { recursive: true })\n`
    const { status, signal } = run(`${head(path, '{ flushMs: 5 }')}${remove}setTimeout(() => { process.exitCode = 9 }, 50)`)
    expect([status, signal]).toEqual([9, null])
  })

  test('TR-6 lines after one that waits for a tensor are written, and the missing value is named', async () => {
    const path = fresh('jsonl')
    const tensors = import.meta.resolve('@postgrad/tensor')
    const slow = `const slow = Object.create((await import('${tensors}')).tensor(0), { storage: { value: { memory: null } }, item: { value: () => new Promise(() => {}) } })\n`
    const { status, stderr } = run(`${head(path)}${slow}writer.log({ loss: slow, lr: 0.5 }, 8)\nwriter.log({ loss: 3 }, 9)`)
    expect([status, stderr]).toEqual([1, expect.stringContaining(`'${path}' lacks 'loss' of step 8: the thread ends`)])
    expect((await readMetrics(path)).rows.map(({ step, values }) => [step, values])).toEqual([
      [7, { loss: 1 }],
      [8, { lr: 0.5 }],
      [9, { loss: 3 }],
    ])
  })

  test('TR-6 many open writers have one listener', () => {
    const before = process.listenerCount('exit')
    const writers = Array.from({ length: 20 }, () => new MetricsWriter(fresh('jsonl')))
    expect(process.listenerCount('exit')).toBeLessThanOrEqual(before + 1)
    expect(new Set(writers).size).toBe(20)
  })

  test('TR-6 long intervals do not overflow', async () => {
    const warnings: string[] = []
    const listen = (warning: Error): void => void warnings.push(warning.name)
    process.on('warning', listen)
    const writers = [Number.POSITIVE_INFINITY, 3e9].map((flushMs) => new MetricsWriter(fresh('jsonl'), { flushMs }))
    for (const writer of writers) writer.log({ loss: 1 }, 1)
    await new Promise((resolve) => setTimeout(resolve, 50))
    process.off('warning', listen)
    expect([warnings, writers.map(({ path }) => existsSync(path))]).toEqual([[], [false, false]])
    for (const writer of writers) await writer.close()
  })
})

describe('TR-7', () => {
  test.each([
    ['jsonl', '{"step":1,"seconds":0,"loss":1}\n{"step":2,"sec', '{"step":2,"sec'],
    ['csv', 'step,seconds,loss\n1,0,1\n2,1,0.', '2,1,0.'],
    // Whole but for its line feed.
    ['jsonl', '{"step":1,"loss":1}', null],
  ])('TR-7 an unfinished last line is left out (%s %j)', async (extension, text, truncated) => {
    const path = fresh(extension)
    writeFileSync(path, text)
    const metrics = await readMetrics(path)
    expect([metrics.rows.length, metrics.truncated]).toEqual([1, truncated])
  })

  test.each([
    ['jsonl', '{"step":1}\nnot JSON\n', 2],
    ['jsonl', '[1]\n', 1],
    ['jsonl', '{"loss":1}\n', 1],
    ['jsonl', '{"step":1,"loss":"low"}\n', 1],
    ['csv', 'epoch,loss\n1,2\n', 1],
    ['csv', 'step,loss\n1,2\n2,low\n', 3],
    ['csv', 'step,loss\n1,2,3\n', 2],
    ['csv', 'step,loss\n,2\n', 2],
  ])('TR-7 a line of something else is refused (%s %j)', async (extension, text, line) => {
    const path = fresh(extension)
    writeFileSync(path, text)
    await expect(readMetrics(path)).rejects.toMatchObject({ code: 'METRICS_INVALID', values: { path, line } })
    expect(() => new MetricsWriter(path)).toThrow(expect.objectContaining({ code: 'METRICS_INVALID' }))
  })
})

describe.each(['jsonl', 'csv'])('TR-9 (%s)', (extension) => {
  const stepsIn = async (path: string) => (await readMetrics(path)).rows.map(({ step }) => step)

  test('TR-9 a state has all lines in the file; after a load, later ones go with the next write', async () => {
    const path = fresh(extension)
    const { now, pass } = clock()
    const first = new MetricsWriter(path, { now, flushMs: 1e6 })
    expect(first.stateDict()).toEqual({ lines: null, seconds: null })
    expect(existsSync(path)).toBe(false)
    for (const step of [1, 2, 3]) {
      first.log({ loss: 1 / step }, step)
      pass(1)
    }
    const state = first.stateDict()
    expect([state, await stepsIn(path)]).toEqual([{ lines: 3, seconds: 3 }, [1, 2, 3]])
    first.log({ loss: 0, other: 1 }, 4)
    await first.close()

    const second = new MetricsWriter(path, { now })
    second.log({ lr: 1 }, 77) // before the load
    second.loadStateDict(structuredClone(state))
    expect(await stepsIn(path)).toEqual([1, 2, 3, 4])
    expect([second.stateDict(), await stepsIn(path)]).toEqual([state, [1, 2, 3]])
    pass(1)
    // Not a later step: the count decides.
    second.log({ loss: 5 }, 3)
    await second.flush()
    expect(await stepsIn(path)).toEqual([1, 2, 3, 3])
    expect((await readMetrics(path)).rows.at(-1)).toEqual({ step: 3, seconds: 4, values: { loss: 5 } })
    second.log({ loss: 6 }, 5)
    second.loadStateDict(state)
    await second.close()
    expect(await stepsIn(path)).toEqual([1, 2, 3])
  })

  test('TR-9 a load that is taken back changes nothing', async () => {
    const path = fresh(extension)
    await write(path, [1, 2, 3])
    const text = textOf(path)
    const writer = new MetricsWriter(path)
    const before = writer.stateDict()
    writer.loadStateDict({ lines: 1, seconds: 0 })
    writer.loadStateDict(before)
    expect(writer.stateDict()).toEqual({ lines: null, seconds: null })
    await writer.flush()
    expect(textOf(path)).toBe(text)
    writer.log({ loss: 0 }, 3)
    const begun = writer.stateDict()
    writer.loadStateDict({ lines: 1, seconds: 0 })
    writer.loadStateDict(begun)
    writer.log({ loss: 0 }, 4)
    await writer.close()
    expect(await stepsIn(path)).toEqual([1, 2, 3, 4])
  })

  test('TR-9 what cannot be a state fails, and so does a line that waits for a device', async () => {
    const writer = new MetricsWriter(fresh(extension))
    for (const wrong of [null, {}, { lines: -1, seconds: 0 }, { lines: 1 }])
      expect(await code(() => writer.loadStateDict(wrong as never))).toBe('INVALID_ARGUMENT')
    const item = new Future<number>()
    writer.log({ loss: Object.create(tensor(0), { storage: { value: { memory: null } }, item: { value: () => item } }) as Tensor }, 2)
    expect(await code(() => writer.stateDict())).toBe('READ_NOT_SYNCHRONOUS')
    item.resolve(2)
    await writer.flush()
    expect(writer.stateDict().lines).toBe(1)
    await writer.close()
    for (const call of [() => writer.stateDict(), () => writer.loadStateDict({ lines: 1, seconds: 0 })])
      expect(await code(call)).toBe('METRICS_CLOSED')
  })
})

test.each(['jsonl', 'csv'])('TR-10 steps or seconds that go back are found (%s)', async (extension) => {
  const found = async (rows: readonly (readonly [step: number, seconds: number])[]) => {
    const path = fresh(extension)
    const lines = rows.map(([step, seconds]) =>
      extension === 'csv' ? `${step},${seconds},1` : `{"step":${step},"seconds":${seconds},"loss":1}`,
    )
    writeFileSync(path, `${[...(extension === 'csv' ? ['step,seconds,loss'] : []), ...lines].join('\n')}\n`)
    return (await readMetrics(path)).outOfOrder
  }
  const at = [1, 2, 2, 3].map((x) => [x, x] as const)
  expect(await found(at)).toBe(null)
  expect(await found([...at, [2, 4]])).toBe(2)
  // Two runs that are equally fast.
  expect(await found([...at, [3, 2.9]])).toBe(3)
})

describe('TR-8', () => {
  test('TR-8 wrong arguments', async () => {
    await using writer = new MetricsWriter(fresh('jsonl'))
    const wrong: (() => unknown)[] = [
      () => new MetricsWriter(join(folder, 'run.txt')),
      () => new MetricsWriter(5 as never),
      () => new MetricsWriter(fresh('jsonl'), { flush: 1 } as never),
      () => new MetricsWriter(fresh('jsonl'), { flushMs: -1 }),
      () => writer.log({ loss: '1' as never }, 1),
      () => writer.log({ loss: tensor([1, 2]) }, 1),
      () => writer.log({ step: 1 }, 1),
      () => writer.log({ '': 1 }, 1),
      () => writer.log({ 'a\nb': 1 }, 1),
      () => writer.log(5 as never, 1),
      () => writer.log(new Map([['loss', 1]]) as never, 1),
      () => writer.log([1, 2] as never, 1),
      () => writer.addScalar('loss', 1, Number.NaN),
    ]
    for (const one of wrong) expect([String(one), await code(one)]).toEqual([String(one), 'INVALID_ARGUMENT'])
    expect(await code(() => readMetrics(join(folder, 'none.jsonl')))).toBe('METRICS_IO')
  })

  test('TR-8 a path that cannot be used', async () => {
    expect(await code(() => new MetricsWriter(join(folder, 'file.csv', 'run.csv')))).toBe(null)
    writeFileSync(join(folder, 'file'), '')
    for (const path of [join(folder, 'file', 'run.csv'), join(folder, 'file', 'a', 'run.csv')]) {
      expect(await code(() => new MetricsWriter(path))).toBe('METRICS_IO')
      expect(() => new MetricsWriter(path)).toThrow(/cannot make the folder of .* A part of the path that must be a folder is a file/s)
    }
    if (process.getuid?.() !== 0) {
      mkdirSync(join(folder, 'closed'), { mode: 0o500 })
      expect(await code(() => new MetricsWriter(join(folder, 'closed', 'a', 'run.csv')))).toBe('METRICS_IO')
      chmodSync(join(folder, 'closed'), 0o700)
    }
  })

  test('TR-8 a call after close', async () => {
    const writer = new MetricsWriter(fresh('jsonl'))
    await writer.close()
    await writer.close()
    expect(await code(() => writer.log({ loss: 1 }, 1))).toBe('METRICS_CLOSED')
    expect(await code(() => writer.flush())).toBe('METRICS_CLOSED')
  })
})
