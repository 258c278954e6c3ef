/**
 * Datasets that workers can load. A thread gets no code: it gets a module's URL, the name of an exported function, and plain arguments, and makes the dataset
 * itself (`worker-task.ts`). The threads are in `worker-pool.ts`.
 */
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { isPostgradError, PostgradError } from '@postgrad/base'
import { framesOnStack, importModule, isScript, locateModule, placeOfFrame, refuseWhileLoading } from '@postgrad/base/internal'
import { invalidArgument } from '@postgrad/tensor/internal'
import type { Sendable } from '@postgrad/wire'
import { type Payload, PayloadCodec } from '@postgrad/wire/internal'
import { textOf } from './batch.js'
import { ArrayDataset, asDataset, ConcatDataset, type Dataset, Subset } from './dataset.js'

/** How a worker makes the dataset. */
export interface WorkerSource {
  /** `file:` URL of the module. */
  readonly url: string
  readonly name: string
  /** Whose name it is: the export's alone, or the function's own, which may be exported under another, such as `default`. */
  readonly nameOf: 'export' | 'function'
  /** The function's own text, by which a worker knows it from another of that name; null where a loader may give each thread another text. */
  readonly text: string | null
  /** The arguments, encoded once. */
  readonly args: Payload
}

/** A function that makes a dataset. It runs in the thread that calls `workerDataset`, and once in each worker. */
export type DatasetFactory<A extends readonly unknown[], T> = (...args: A) => Dataset<T> | readonly T[] | Promise<Dataset<T> | readonly T[]>

/**
 * A dataset that the workers of a DataLoader can make again: the result of `workerDataset`.
 * @example
 * const train: WorkerDataset<[Tensor]> = await workerDataset(new URL('./digits.js', import.meta.url), 'digits', ['train.idx.gz'])
 * const [first] = await train.get(0) // made in this thread
 */
export class WorkerDataset<T> implements Dataset<T> {
  /** @internal */
  readonly source: WorkerSource
  private readonly here: Dataset<T>

  /** @internal */
  constructor(source: WorkerSource, here: Dataset<T>) {
    this.source = source
    this.here = here
  }

  /** How many samples the dataset has. */
  get length(): number {
    return this.here.length
  }

  /** Returns the sample at an index, which is made in this thread, or a promise of it. */
  get(index: number): T | Promise<T> {
    return this.here.get(index)
  }
}

/**
 * Makes a dataset for a DataLoader with workers. `factory` is a function that the module at `url` exports, or the name of its export. If you pass the function,
 * TypeScript checks `args`. `factory(...args)` runs in this thread and in each worker, and must make the same dataset each time. `args` are copied to the workers:
 * plain values, typed arrays and tensors. Leave `args` out if the function needs none.
 *
 * If this call is in the module at `url` itself, at its top level, put it into `if (isMainThread) { … }`, because workers import that module, too.
 * @throws INVALID_ARGUMENT; THREADS_WHILE_LOADING if a worker that loads the module makes this call; DATASET_MODULE_NOT_FOUND; DATASET_EXPORT_MISSING;
 * DATASET_INVALID if the function does not return a dataset; DATASET_FAILED if the module or the function throws, with the error in `cause`;
 * WIRE_UNSUPPORTED_VALUE if an argument cannot be copied
 * @example
 * // digits.ts has: export const digits = async (path: string) => new TensorDataset(await readIdx(path))
 * const train = await workerDataset<[Tensor]>(new URL('./digits.js', import.meta.url), 'digits', ['train.idx.gz'])
 * for await (const [images] of new DataLoader(train, { batchSize: 32, workers: 2 })) console.log(images.shape)
 */
export async function workerDataset<T, A extends readonly unknown[] = readonly unknown[]>(
  url: URL | string,
  factory: DatasetFactory<A, T> | string,
  ...rest: [] extends A ? [args?: Sendable<A>] : [args: Sendable<A>]
): Promise<WorkerDataset<T>> {
  const [args = []] = rest
  checkArguments(url, factory, args)
  const found = locateModule(url)
  if (!found.isThere) {
    throw new PostgradError('DATASET_MODULE_NOT_FOUND', {
      op: 'workerDataset',
      expected: 'the file: URL or path of a module that exists',
      got: found.url,
      remedy: `${found.near}new URL('./my-dataset.js', import.meta.url) names a file in the folder of the running one.`,
      values: { url: found.url },
    })
  }
  refuseWhileLoading('workerDataset', found.url)
  // A module that awaits this at its top level, be it the script or imported by another, cannot be imported before its end: its function is taken as it is.
  // Workers look for the export.
  const own = typeof factory === 'function' && factory.name !== '' && (isScript(found.url) || hasCalled(found.url)) ? factory : null
  const name = typeof factory === 'string' ? factory : (own?.name ?? (await nameIn(found.url, factory as DatasetFactory<never, unknown>)))
  const nameOf = own === null ? 'export' : 'function'
  const text = own === null ? null : textIn(found.url, own)
  const source: WorkerSource = { url: found.url, name, nameOf, text, args: new PayloadCodec(null).encodeCall(name, args) }
  const here = own === null ? makeDataset(source) : datasetOf(source, own as DatasetFactory<never, unknown>)
  return new WorkerDataset(source, (await here) as Dataset<T>)
}

/** A function's text, if the file contains it: then no loader has changed it here, and none does in a worker. */
function textIn(url: string, own: DatasetFactory<never, unknown>): string | null {
  const text = String(own)
  try {
    return readFileSync(fileURLToPath(url), 'utf8').includes(text) ? text : null
  } catch {
    // A module of another kind, or one that is gone: the name alone has to do.
    return null
  }
}

/** Whether code of that module has called this, or awaits it. */
function hasCalled(url: string): boolean {
  if (!url.startsWith('file:')) return false
  const path = `${fileURLToPath(url).replaceAll('\\', '/')}:`
  return framesOnStack().some((frame) => placeOfFrame(frame).startsWith(path))
}

/** @throws INVALID_ARGUMENT */
function checkArguments(url: unknown, factory: unknown, args: unknown): void {
  const op = 'workerDataset'
  if (typeof url !== 'string' && !(url instanceof URL)) throw invalidArgument(op, "a module's URL first", typeof url, HOW)
  if (typeof factory !== 'string' && typeof factory !== 'function') {
    throw invalidArgument(op, 'a function that the module exports, or its name', typeof factory, HOW)
  }
  if (!Array.isArray(args)) throw invalidArgument(op, 'a list of arguments for the function', typeof args, HOW)
}

const HOW = "workerDataset(new URL('./my-dataset.js', import.meta.url), makeDataset, [...arguments])"

/**
 * Imports the module and calls the factory; once in each thread.
 * @throws (rejects) as `workerDataset`
 */
export async function makeDataset(source: WorkerSource): Promise<Dataset<unknown>> {
  const module = await load(source.url)
  const factory = source.nameOf === 'export' ? module[source.name] : functionCalled(source, module)
  if (typeof factory !== 'function') throw exportMissing(source.url, `a function exported as '${source.name}'`, typeof factory)
  return datasetOf(source, factory as DatasetFactory<never, unknown>)
}

/** @throws INVALID_ARGUMENT where several exports may be meant, or another than the one that was passed: that would be another dataset than that of the thread that asks. */
function functionCalled({ name, text, url }: WorkerSource, module: Readonly<Record<string, unknown>>): unknown {
  const meant = new Set(Object.values(module).filter((each) => typeof each === 'function' && each.name === name))
  if (meant.size < 2) {
    const [one] = meant
    if (one === undefined || text === null || String(one) === text) return one
    throw invalidArgument(
      'workerDataset',
      `the function '${name}' that was passed to be exported by ${url}`,
      'another export that is called so',
      'Export the function that you pass, under a name of its own.',
    )
  }
  throw invalidArgument(
    'workerDataset',
    `one export of ${url} that is a function called '${name}'`,
    `${meant.size}`,
    "Pass the export's name.",
  )
}

async function datasetOf({ url, name, args }: WorkerSource, factory: DatasetFactory<never, unknown>): Promise<Dataset<unknown>> {
  let made: unknown
  try {
    made = await factory(...(new PayloadCodec(null).decodeCall(args).args as never))
  } catch (error) {
    throw failed(`${name}() of ${url}`, error, { url, name })
  }
  const dataset = asDataset(made)
  if (dataset !== null) return dataset
  throw new PostgradError('DATASET_INVALID', {
    op: 'workerDataset',
    expected: `${name}() to return a dataset: an object with length and get(index), or an array`,
    got: made === null ? 'null' : typeof made,
    remedy: 'An IterableDataset is read in this thread, without workers.',
    values: { url, name },
  })
}

async function nameIn(url: string, factory: DatasetFactory<never, unknown>): Promise<string> {
  const found = Object.entries(await load(url)).find(([, value]) => value === factory)
  if (found !== undefined) return found[0]
  throw exportMissing(url, `an export that is the function '${factory.name}'`, 'no such export')
}

async function load(url: string): Promise<Readonly<Record<string, unknown>>> {
  try {
    return await importModule(url, null)
  } catch (error) {
    const remedy = isPostgradError(error, 'MODULE_NEVER_LOADED') ? 'Pass the function itself, not its name.' : undefined
    throw failed(`the module ${url}`, error, { url }, remedy)
  }
}

function failed(what: string, error: unknown, values: Readonly<Record<string, unknown>>, remedy?: string): PostgradError {
  const parts = remedy === undefined ? {} : { remedy }
  return new PostgradError('DATASET_FAILED', {
    op: 'workerDataset',
    message: `${what} threw ${textOf(error)}`,
    values,
    cause: error,
    ...parts,
  })
}

function exportMissing(url: string, expected: string, got: string): PostgradError {
  return new PostgradError('DATASET_EXPORT_MISSING', {
    op: 'workerDataset',
    expected: `${expected} in ${url}`,
    got,
    remedy: 'Export the function that makes the dataset from that module.',
    values: { url },
  })
}

/** A place in one of several sources. */
export type SourceIndex = readonly [source: number, index: number]

/** The sources of a dataset, for workers, and per index the source that has it and the index there. */
export interface Sources {
  readonly sources: readonly WorkerSource[]
  locate(index: number): SourceIndex
}

/**
 * Looks through subsets and concatenations, which are resolved in this thread.
 * @throws DATASET_NOT_SENDABLE
 */
export function sourcesOf(dataset: Dataset<unknown>): Sources {
  const sources: WorkerSource[] = []
  const collect = (one: Dataset<unknown>): void => {
    if (one instanceof Subset) collect(one.dataset)
    else if (one instanceof ConcatDataset) one.datasets.forEach(collect)
    else if (!(one instanceof WorkerDataset)) throw notSendable(one)
    else if (!sources.includes(one.source)) sources.push(one.source)
  }
  collect(dataset)
  const locate = (one: Dataset<unknown>, index: number): SourceIndex => {
    if (one instanceof Subset) return locate(one.dataset, one.indexOf(index))
    if (one instanceof ConcatDataset) return locate(...one.locate(index))
    return [sources.indexOf((one as WorkerDataset<unknown>).source), index]
  }
  return { sources, locate: (index) => locate(dataset, index) }
}

function datasetText(dataset: Dataset<unknown>): string {
  if (dataset instanceof ArrayDataset) return 'an array'
  const name = dataset.constructor?.name ?? ''
  if (name === '' || name === 'Object') return 'an object'
  return `${/^[AEIOU]/.test(name) ? 'an' : 'a'} ${name}`
}

function notSendable(dataset: Dataset<unknown>): PostgradError {
  return new PostgradError('DATASET_NOT_SENDABLE', {
    op: 'DataLoader',
    expected: 'a dataset of workerDataset(), or subsets and concatenations of such',
    got: datasetText(dataset),
    remedy: 'Code does not travel to workers: make it by workerDataset(url, factory, args), or leave out { workers }.',
  })
}
