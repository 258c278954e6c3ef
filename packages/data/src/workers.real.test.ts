/** Batches from threads: the same bits for any number, a code for every failure, nothing left open. */
import { spawnSync } from 'node:child_process'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import * as inspector from 'node:inspector'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { describe, expect, test } from '@jest/globals'
import { isPostgradError, type PostgradError } from '@postgrad/base'
import { arange, Generator, type Tensor } from '@postgrad/tensor'
import { DataLoader, type DataLoaderOptions } from './data-loader.js'
import { ConcatDataset, randomSplit } from './dataset.js'
import * as fixtures from './fixtures/numbers.js'
import * as twins from './fixtures/twins.js'
import { type WorkerDataset, workerDataset } from './worker-dataset.js'

const TWINS = new URL('./fixtures/twins.js', import.meta.url)
const URL_OF = new URL('./fixtures/numbers.js', import.meta.url)

async function rejection(promise: Promise<unknown>): Promise<PostgradError> {
  const error = await promise.then(
    () => new Error('it did not fail'),
    (reason) => reason,
  )
  if (!isPostgradError(error)) throw error
  return error
}

async function all<B>(loader: AsyncIterable<B>): Promise<B[]> {
  const batches: B[] = []
  for await (const batch of loader) batches.push(batch)
  return batches
}

const trouble = (...args: Parameters<typeof fixtures.trouble>): Promise<WorkerDataset<unknown>> =>
  workerDataset(URL_OF, fixtures.trouble, args)

test('0, 1 and 3 workers give the same bits over 3 epochs with shuffling', async () => {
  const [train, rest] = randomSplit(await workerDataset(URL_OF, fixtures.numbers, [20, 100]), [15, 5], { generator: new Generator(1) })
  const more = await workerDataset<fixtures.Numbered>(URL_OF, 'numbers', [4, 1000])
  const dataset = new ConcatDataset([train!, more, rest!])
  const run = async (options: DataLoaderOptions<fixtures.Numbered>): Promise<unknown[]> => {
    const generator = new Generator(7)
    await using loader = new DataLoader(dataset, { batchSize: 5, shuffle: true, generator, ...options })
    const seen: unknown[] = []
    for (let epoch = 0; epoch < 3; epoch++) {
      for await (const { index, noise, name, pair } of loader) {
        seen.push({
          index: index.toArray(),
          noise: [...noise.dataSync()],
          shape: noise.shape,
          name,
          pair: pair.map((one) => one.toArray()),
        })
      }
    }
    return [...seen, generator.state()]
  }
  const here = await run({})
  expect(here).toHaveLength(16)
  expect(await run({ workers: 1 })).toEqual(here)
  expect(await run({ workers: 3, persistentWorkers: true, prefetchFactor: 3 })).toEqual(here)
})

test('workers do the work, a collate that is given runs here; a limit may be longer than Node’s timers', async () => {
  const dataset = await workerDataset(URL_OF, fixtures.threads, [8])
  const loader = new DataLoader(dataset, { batchSize: 2, workers: 2, timeoutMs: 2 ** 33, collate: (samples) => [...samples] })
  const ids = new Set((await all(loader)).flat())
  expect(ids.has(0)).toBe(false)
  expect(ids.size).toBeGreaterThanOrEqual(1)
})

test('the generator of a sampler is closed when the loop ends early', async () => {
  let isOpen = false
  const sampler = {
    length: 20,
    *[Symbol.iterator]() {
      isOpen = true
      try {
        for (let i = 0; i < 20; i++) yield i
      } finally {
        isOpen = false
      }
    },
  }
  const dataset = await workerDataset(URL_OF, fixtures.numbers, [20, 100])
  for await (const _ of new DataLoader(dataset, { batchSize: 2, workers: 1, sampler })) {
    expect(isOpen).toBe(true)
    break
  }
  expect(isOpen).toBe(false)
})

test('tensors as arguments and views as samples', async () => {
  const dataset = await workerDataset(URL_OF, fixtures.rowsOf, [arange(4096).reshape([4, 1024])])
  const batches = await all(new DataLoader(dataset, { batchSize: 2, workers: 1 }))
  expect(batches.map(({ shape, dtype }: Tensor) => [shape, dtype])).toEqual([
    [[2, 1024], 'float32'],
    [[2, 1024], 'float32'],
  ])
  expect(batches[1]!.select(0, 1).toArray()).toEqual(arange(3072, 4096).toArray())
})

test('a TypeScript module, under the name that an import would have', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'postgrad-data-'))
  await writeFile(
    join(folder, 'squares.ts'),
    'export const squares = (length: number) => ({ length, get: (i: number): number => i * i })\n',
  )
  const url = pathToFileURL(join(folder, 'squares.js')).href
  const program = `
    import { DataLoader, workerDataset } from ${JSON.stringify(new URL('./index.js', import.meta.url).href)}
    const dataset = await workerDataset(${JSON.stringify(url)}, 'squares', [4])
    for await (const batch of new DataLoader(dataset, { batchSize: 4, workers: 1 })) console.log(batch.toArray().join())`
  await writeFile(join(folder, 'main.mjs'), program)
  try {
    const { NODE_OPTIONS: _, ...env } = process.env
    const { stdout, stderr } = spawnSync(process.execPath, [join(folder, 'main.mjs')], { env, timeout: 30_000, encoding: 'utf8' })
    expect([stdout, stderr]).toEqual(['0,1,4,9\n', ''])
  } finally {
    await rm(folder, { recursive: true })
  }
})

test.each(['export const rows = makes', 'export default makes', 'export { makes as rows }'])(
  'a module that awaits a dataset of itself loads to its end where another imports it, with a timer open: %s',
  async (exported) => {
    const folder = await mkdtemp(join(tmpdir(), 'postgrad-data-'))
    const rows = `
    import { isMainThread } from 'node:worker_threads'
    import { DataLoader, workerDataset } from ${JSON.stringify(new URL('./index.js', import.meta.url).href)}
    function makes(length) { return { length, get: (i) => i * i } }
    ${exported}
    if (isMainThread)
      for await (const batch of new DataLoader(await workerDataset(import.meta.url, makes, [4]), { batchSize: 4, workers: 1 })) console.log(batch.toArray().join())`
    await writeFile(join(folder, 'rows.mjs'), rows)
    // The timer keeps the thread from noticing that it has nothing left to wait for.
    await writeFile(
      join(folder, 'main.mjs'),
      'const timer = setTimeout(() => process.exit(3), 20_000); await import("./rows.mjs"); clearTimeout(timer)',
    )
    try {
      const { NODE_OPTIONS: _, ...env } = process.env
      const { status, stdout, stderr } = spawnSync(process.execPath, [join(folder, 'main.mjs')], { env, timeout: 30_000, encoding: 'utf8' })
      expect([status, stdout, stderr]).toEqual([0, '0,1,4,9\n', ''])
    } finally {
      await rm(folder, { recursive: true })
    }
  },
)
test('where two exports are functions of one name, workers take neither for the other; the name of an export is that alone', async () => {
  const dataset = await twins.second()
  expect(await dataset.get(0)).toBe('B')
  const loading = rejection(all(new DataLoader(dataset, { workers: 1 })))
  expect(await loading).toMatchObject({ code: 'INVALID_ARGUMENT', message: expect.stringContaining("Pass the export's name") })
  for (const name of ['a', 'b']) {
    const named = await workerDataset<string>(TWINS, name)
    expect(await all(new DataLoader(named, { workers: 1 }))).toEqual([[name.toUpperCase()]])
  }
  expect(await rejection(workerDataset(TWINS, 'rows'))).toMatchObject({ code: 'DATASET_EXPORT_MISSING' })
})

test('a function that is not exported is not taken for an export of its name', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'postgrad-data-'))
  await writeFile(
    join(folder, 'rows.mjs'),
    `import { isMainThread } from 'node:worker_threads'
    import { DataLoader, workerDataset } from ${JSON.stringify(new URL('./index.js', import.meta.url).href)}
    export const rows = () => [10, 20]
    const hidden = { rows: () => [1, 2] }.rows
    if (isMainThread)
      for (const passed of [rows, hidden]) {
        const dataset = await workerDataset(import.meta.url, passed)
        try {
          for await (const batch of new DataLoader(dataset, { batchSize: 2, workers: 1 })) console.log(dataset.get(0), batch.toArray().join())
        } catch (error) { console.log(dataset.get(0), error.code) }
      }`,
  )
  try {
    const { NODE_OPTIONS: _, ...env } = process.env
    const { status, stdout, stderr } = spawnSync(process.execPath, [join(folder, 'rows.mjs')], { env, timeout: 30_000, encoding: 'utf8' })
    expect([status, stdout, stderr]).toEqual([0, '10 10,20\n1 INVALID_ARGUMENT\n', ''])
  } finally {
    await rm(folder, { recursive: true })
  }
})

test('CLU-59 a module that awaits a dataset of itself by its name is refused where another imports it, with a timer open', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'postgrad-data-'))
  await writeFile(
    join(folder, 'rows.mjs'),
    `import { workerDataset } from ${JSON.stringify(new URL('./index.js', import.meta.url).href)}
    export const rows = () => [1, 2, 3]
    const sized = async () => (await workerDataset(import.meta.url, 'rows', [])).length
    console.log((await Promise.allSettled([sized()]))[0].reason?.cause?.code)
    try { await workerDataset(import.meta.url, 'rows', []) } catch (error) { console.log(error.code, error.cause.code, error.remedy) }
    // What the top level does not await can end after it.
    void (async () => console.log(await sized()))()`,
  )
  const timer = 'const timer = setTimeout(() => process.exit(3), 20_000); await import("./rows.mjs"); clearTimeout(timer)'
  await writeFile(join(folder, 'main.mjs'), timer)
  try {
    const { NODE_OPTIONS: _, ...env } = process.env
    const { status, stdout, stderr } = spawnSync(process.execPath, [join(folder, 'main.mjs')], { env, timeout: 30_000, encoding: 'utf8' })
    const said = 'MODULE_NEVER_LOADED\nDATASET_FAILED MODULE_NEVER_LOADED Pass the function itself, not its name.\n3\n'
    expect([status, stdout, stderr]).toEqual([0, said, ''])
  } finally {
    await rm(folder, { recursive: true })
  }
})

test('a function that takes no arguments needs no list of them', async () => {
  for (const three of [fixtures.three, 'three']) expect((await workerDataset(URL_OF, three)).length).toBe(3)
})

describe('what fails is told', () => {
  test.each([
    ['a module that is not there', './nowhere.js', 'numbers', 'DATASET_MODULE_NOT_FOUND'],
    ['an export that is not there', './fixtures/numbers.js', 'number', 'DATASET_EXPORT_MISSING'],
    ['an export that is no function', './fixtures/numbers.js', 'notAFunction', 'DATASET_EXPORT_MISSING'],
    ['what is no dataset', './fixtures/numbers.js', 'noDataset', 'DATASET_INVALID'],
    ['a factory that throws', './fixtures/numbers.js', 'throwsAtOnce', 'DATASET_FAILED'],
    ['a module that throws', './fixtures/throws-at-import.js', 'x', 'DATASET_FAILED'],
  ])('%s', async (_, path, name, code) => {
    expect((await rejection(workerDataset(new URL(path, import.meta.url), name, []))).code).toBe(code)
  })

  test.each<[string, readonly unknown[]]>([
    ['no module', [undefined, 'numbers', []]],
    ['no factory', [URL_OF, undefined, []]],
    ['arguments that are no list', [URL_OF, 'numbers', 5]],
  ])('%s', async (_, args) => {
    const make = workerDataset as (...args: readonly unknown[]) => Promise<unknown>
    expect((await rejection(make(...args))).code).toBe('INVALID_ARGUMENT')
  })

  test('a function that the module does not export, an argument that cannot be sent', async () => {
    const own = (): { length: number; get: () => number } => ({ length: 1, get: () => 1 })
    expect((await rejection(workerDataset(URL_OF, own, []))).message).toContain("the function 'own'")
    expect((await rejection(workerDataset(URL_OF, 'numbers', [(() => 1) as unknown]))).code).toBe('WIRE_UNSUPPORTED_VALUE')
  })

  test.each([1, 2])('what a dataset throws, with index and cause, in its place of the order (%d workers)', async (workers) => {
    const loader = new DataLoader(await trouble(9, 5, 'throws'), { batchSize: 2, workers })
    const seen: unknown[] = []
    const error = await rejection(
      (async () => {
        for await (const batch of loader) seen.push((batch as Tensor).toArray())
      })(),
    )
    expect(seen).toEqual([
      [0, 1],
      [2, 3],
    ])
    expect(error).toMatchObject({ code: 'DATASET_FAILED', values: { index: 5, batch: 2 } })
    expect(error.cause).toMatchObject({ message: 'nothing at 5' })
  })

  test('samples that do not fit together', async () => {
    const error = await rejection(all(new DataLoader(await trouble(4, 3, 'ragged'), { batchSize: 2, workers: 1 })))
    expect(error).toMatchObject({ code: 'COLLATE_MISMATCH', values: { sample: 1, indices: [2, 3] } })
    expect(error.remedy).toContain('pass { collate }')
  })

  test('a sample that cannot be sent', async () => {
    const loader = new DataLoader(await trouble(2, 1, 'function'), { batchSize: 2, workers: 1, collate: (samples) => samples.length })
    expect(await rejection(all(loader))).toMatchObject({ code: 'SAMPLE_NOT_SENDABLE', values: { indices: [0, 1] } })
  })

  test('a thread that ends', async () => {
    const loader = new DataLoader(await trouble(4, 2, 'exits'), { workers: 2, persistentWorkers: true })
    expect(await rejection(all(loader))).toMatchObject({ code: 'WORKER_DIED', values: { batch: 2, indices: [2] } })
    // The pool is gone; the next epoch has another, and the same fate.
    expect(await rejection(all(loader))).toMatchObject({ code: 'WORKER_DIED' })
    await loader.close()
  })

  test.each(['hangs', 'waits'] as const)('a dataset that %s', async (way) => {
    const loader = new DataLoader(await trouble(1, 0, way), { workers: 1, timeoutMs: 700 })
    expect(await rejection(all(loader))).toMatchObject({ code: 'BATCH_TIMEOUT', values: { batch: 0, timeoutMs: 700 } })
  })

  test('CLU-115 no deadline ends the wait for a batch while an inspector is open', async () => {
    inspector.open(0)
    const late = rejection(all(new DataLoader(await trouble(1, 0, 'hangs'), { workers: 1, timeoutMs: 20 })))
    const first = await Promise.race([late, new Promise((resolve) => setTimeout(resolve, 300, 'still waits'))])
    inspector.close()
    expect(first).toBe('still waits')
    expect(await late).toMatchObject({ code: 'BATCH_TIMEOUT' })
  })

  test('close while a loop waits', async () => {
    const loader = new DataLoader(await trouble(1, 0, 'hangs'), { workers: 1, timeoutMs: 0 })
    const waiting = rejection(all(loader))
    await new Promise((resolve) => setTimeout(resolve, 100))
    await loader.close()
    expect((await waiting).code).toBe('LOADER_CLOSED')
  })
})

function runFixture(file: string, ...args: string[]): [status: number | null, stdout: string, stderr: string] {
  const { NODE_OPTIONS: _, ...env } = process.env
  const path = fileURLToPath(new URL(`./fixtures/${file}`, import.meta.url))
  const { status, stdout, stderr } = spawnSync(process.execPath, [path, ...args], { env, timeout: 50_000, encoding: 'utf8' })
  return [status, stdout, stderr]
}

test.each([
  ['break', '1 batches, 0 threads\n'],
  ['all', '20 batches, 0 threads\n'],
  ['close', '1 batches, 0 threads\n'],
  ['persist', '1 batches, 2 threads\n'],
])('a program ends by itself: %s', (way, out) => {
  expect(runFixture('leaves-early.js', way)).toEqual([0, out, ''])
})

// When the threads' file was `require`d as an ES module, the process was aborted within 10 to 100 pools; `workers.soak.test.ts` has a thousand.
test('threads that are ended at any moment of their start take nothing else with them', () => {
  const seed = Math.floor(Math.random() * 2 ** 31)
  console.log(`seed ${seed}`)
  expect(runFixture('closes-at-random.js', `${seed}`, '20', '150')).toEqual([0, '20 pools were closed\n', ''])
})

test('a state goes on with the same bits, in the middle of an epoch and whatever the number of workers', async () => {
  const dataset = await workerDataset(URL_OF, fixtures.numbers, [20, 100])
  const make = (options: DataLoaderOptions<fixtures.Numbered>) =>
    new DataLoader(dataset, { batchSize: 3, shuffle: true, generator: new Generator(7), ...options })
  type Batch = Awaited<ReturnType<typeof all<unknown>>>[number]
  const bits = (batch: Batch): unknown => {
    const { index, noise } = batch as { index: Tensor; noise: Tensor }
    return [index.toArray(), [...noise.dataSync()]]
  }
  const whole: unknown[] = []
  await using first = make({})
  for (let epoch = 0; epoch < 2; epoch++) for await (const batch of first) whole.push(bits(batch))
  for (const [before, behind] of [
    [2, 0],
    [0, 3],
    [3, 1],
  ] as const) {
    await using loader = make({ workers: before, prefetchFactor: 3 })
    const got: unknown[] = []
    // Up to six batches more are loaded, or lie ready, at this moment.
    for await (const batch of loader) if (got.push(bits(batch)) === 2) break
    await using other = make({ workers: behind, persistentWorkers: true })
    other.loadStateDict(JSON.parse(JSON.stringify(loader.stateDict())) as ReturnType<typeof loader.stateDict>)
    for (let epoch = 0; epoch < 2; epoch++) for await (const batch of other) got.push(bits(batch))
    expect(got).toEqual(whole)
  }
})
