/**
 * A worker's side of a checkpoint: it writes what it owns into a file of its own, and takes it over again in three rounds, so that all workers do or none:
 * `stage` reads and checks everything and changes nothing, `loadStates` lets objects take over their state (they may refuse, and are put back then), `commit` copies
 * weights and generator, which cannot fail any more. `checkpoints.ts` above calls it on every worker.
 */
import assert from 'node:assert'
import { join } from 'node:path'
import { isPostgradError, PostgradError } from '@postgrad/base'
import { Module, openSafetensors, type SafetensorsFile, type StateDict } from '@postgrad/nn'
import { safetensorsChunks } from '@postgrad/nn/internal'
import { currentSignal, expose, type RRef, workerLocal } from '@postgrad/rpc'
import { currentRuntime } from '@postgrad/rpc/internal'
import { currentGenerator, type GeneratorState, type Tensor } from '@postgrad/tensor'
import { checkpointDiskOf } from './disk.js'
import { corrupt, sha256, type WorkerFile } from './manifest.js'
import { flatten, tensorNames, unflatten } from './state-tree.js'

/** Anything that can give its state and take it over: optimizers, schedulers, objects of a program. PyTorch: `Stateful` of `torch.distributed.checkpoint`. */
export interface Stateful<State = unknown> {
  /** What is saved: tensors and plain data. */
  stateDict(): State
  /** Goes on from what was saved. */
  loadStateDict(state: State): unknown
}

/** module: weights of a tree of modules; state: what `stateDict()` gives; value: tensors and plain data, given back when it is loaded. */
export type EntryKind = 'module' | 'state' | 'value'

/** Something that a worker owns, under a name that is its alone on this worker. */
export interface Entry {
  readonly key: string
  readonly kind: EntryKind
  readonly ref: RRef
}

/** How far the writing is. */
export interface Written extends Omit<WorkerFile, 'file'> {
  /** Of `bytes`. */
  readonly written: number
}

interface FileHeader {
  readonly worker: string
  readonly generator: GeneratorState
  readonly entries: readonly SavedEntry[]
}

interface SavedEntry {
  readonly key: string
  readonly kind: EntryKind
  /** Of a module the names of its weights, else what `flatten` gives. */
  readonly text: string
}

interface Staged {
  readonly token: bigint
  readonly modules: { readonly module: Module; readonly state: StateDict }[]
  readonly states: { readonly target: Stateful; readonly state: unknown }[]
  readonly values: [key: string, value: unknown][]
  readonly generator: GeneratorState
  readonly undo: (() => unknown)[]
}

const HEADER = 'postgrad'
/** So many bytes are written between two items of the stream. */
const PROGRESS_BYTES = 1 << 24
const staged = workerLocal<{ now: Staged | null }>(() => ({ now: null }))

/** Who is saving where, on the worker that is asked. */
const savers = workerLocal(() => new Map<string, string>())

/** Saves in a directory are one after the other: each holds this open, which ends with it, also when its caller dies. @throws CHECKPOINT_BUSY */
async function* claim(directory: string, saver: string): AsyncGenerator<null> {
  const other = savers().get(directory)
  if (other !== undefined) throw busy(directory, other)
  savers().set(directory, saver)
  try {
    yield null
    const signal = currentSignal()
    if (!signal.aborted) await new Promise((resolve) => signal.addEventListener('abort', resolve, { once: true }))
  } finally {
    savers().delete(directory)
  }
}

/** Writes this worker's file, and says how far it is; the last item has the hash. */
async function* write(directory: string, name: string, entries: readonly Entry[]): AsyncGenerator<Written> {
  const worker = currentRuntime()
  const tensors: StateDict = {}
  const header: FileHeader = {
    worker: worker.info.name,
    generator: currentGenerator().state(),
    entries: await Promise.all(
      entries.map(async ({ key, kind, ref }) => ({ key, kind, text: textOf(kind, await ref.toHere(), key, tensors) })),
    ),
  }
  const { size, chunks } = safetensorsChunks(tensors, { metadata: { [HEADER]: JSON.stringify(header) } })
  const disk = checkpointDiskOf(worker)
  const file = await disk.create(join(directory, name))
  const hash = sha256()
  let [written, told] = [0, 0]
  let isWhole = false
  try {
    for await (const bytes of chunks) {
      for (let at = 0; at < bytes.length; at += PROGRESS_BYTES) {
        const piece = bytes.subarray(at, at + PROGRESS_BYTES)
        hash.update(piece)
        await file.write(piece)
        written += piece.length
        if (written - told < PROGRESS_BYTES) continue
        told = written
        yield { bytes: size, written, sha256: '' }
      }
    }
    isWhole = true
  } finally {
    // Also where nobody takes the next item any more: the save was cancelled, or its caller died.
    if (!isWhole) await file.abort()
  }
  await file.commit()
  yield { bytes: size, written, sha256: hash.digest('hex') }
}

function textOf(kind: EntryKind, target: unknown, key: string, tensors: StateDict): string {
  if (kind === 'module') {
    assert(target instanceof Module)
    const state = target.stateDict()
    for (const [name, tensor] of Object.entries(state)) tensors[`${key}.${name}`] = tensor
    return JSON.stringify(Object.keys(state))
  }
  return flatten(kind === 'state' ? (target as Stateful).stateDict() : target, key, tensors)
}

/** @throws CHECKPOINT_CORRUPT, CHECKPOINT_MISMATCH; nothing is changed */
async function stage(token: bigint, directory: string, expected: WorkerFile, entries: readonly Entry[]): Promise<void> {
  const worker = currentRuntime()
  const disk = checkpointDiskOf(worker)
  const path = join(directory, expected.file)
  if (!(await disk.list(directory)).includes(expected.file)) throw corrupt(path, 'the file that the manifest names', 'none')
  const hash = sha256()
  let bytes = 0
  for await (const piece of disk.read(path)) {
    hash.update(piece)
    bytes += piece.length
  }
  if (bytes !== expected.bytes) throw corrupt(path, `${expected.bytes} bytes`, `${bytes}`)
  if (hash.digest('hex') !== expected.sha256) throw corrupt(path, 'the bytes that were written', 'others')
  const file = await openSafetensors(await disk.source(path))
  try {
    staged().now = await stageFrom(file, token, path, entries)
  } finally {
    await file.close()
  }
}

async function stageFrom(file: SafetensorsFile, token: bigint, path: string, entries: readonly Entry[]): Promise<Staged> {
  const self = currentRuntime().info.name
  const header = headerOf(file, path)
  const saved = new Map(header.entries.map((entry) => [entry.key, entry]))
  const result: Staged = { token, modules: [], states: [], values: [], generator: header.generator, undo: [] }
  const unexpected = [...saved.values()].filter(({ key, kind }) => kind !== 'value' && !entries.some((entry) => entry.key === key))
  if (unexpected.length > 0) throw mismatch(self, `'${unexpected[0]!.key}', which was saved of this worker`, 'nothing to take it over')
  for (const { key, kind, ref } of entries) {
    const entry = saved.get(key)
    if (entry === undefined || entry.kind !== kind) {
      throw mismatch(self, `a ${kind} '${key}' in the checkpoint`, entry === undefined ? 'none' : `a ${entry.kind}`)
    }
    if (kind === 'module') {
      const module = (await ref.toHere()) as Module
      result.modules.push({ module, state: await moduleState(file, module, entry, self) })
    } else if (kind === 'state') {
      result.states.push({ target: (await ref.toHere()) as Stateful, state: await treeOf(file, entry.text) })
    }
  }
  for (const { key, kind, text } of saved.values()) if (kind === 'value') result.values.push([key, await treeOf(file, text)])
  return result
}

async function moduleState(file: SafetensorsFile, module: Module, entry: SavedEntry, worker: string): Promise<StateDict> {
  const state: StateDict = {}
  const own = module.stateDict()
  const prefix = `${entry.key}.`
  const more = (JSON.parse(entry.text) as string[]).find((name) => own[name] === undefined)
  if (more !== undefined) throw mismatch(worker, `'${prefix}${more}' in the module, as in the checkpoint`, 'none')
  for (const [name, tensor] of Object.entries(own)) {
    if (!file.tensors.has(prefix + name)) throw mismatch(worker, `'${prefix}${name}' in the checkpoint`, 'none')
    const read = await file.tensor(prefix + name)
    if (read.shape.join() !== tensor.shape.join() || read.dtype !== tensor.dtype) {
      throw mismatch(
        worker,
        `'${prefix}${name}' of ${tensor.dtype} [${tensor.shape.join(', ')}]`,
        `${read.dtype} [${read.shape.join(', ')}]`,
      )
    }
    state[name] = read
  }
  return state
}

async function treeOf(file: SafetensorsFile, text: string): Promise<unknown> {
  const tensors = new Map<string, Tensor>()
  for (const name of tensorNames(text)) tensors.set(name, await file.tensor(name))
  return unflatten(text, (name) => tensors.get(name))
}

function headerOf(file: SafetensorsFile, path: string): FileHeader {
  try {
    return JSON.parse(file.metadata[HEADER] ?? '') as FileHeader
  } catch (cause) {
    throw corrupt(path, 'a worker’s part of a checkpoint', 'other safetensors', cause)
  }
}

/** @returns the plain values that were saved of this worker. @throws what an object throws that refuses its state; those before it are put back by `abandon` */
async function loadStates(token: bigint): Promise<[key: string, value: unknown][]> {
  const now = stagedUnder(token)
  for (const { target, state } of now.states) {
    const before = target.stateDict()
    // Also if it throws in the middle.
    now.undo.push(() => target.loadStateDict(before))
    await target.loadStateDict(state)
  }
  return now.values
}

/** Weights and generator; everything has been checked. */
function commit(token: bigint): void {
  const { modules, generator } = stagedUnder(token)
  for (const { module, state } of modules) module.loadStateDict(state)
  currentGenerator().restore(generator)
  staged().now = null
}

/** As if it had not been. */
async function abandon(token: bigint): Promise<void> {
  const { now } = staged()
  if (now?.token !== token) return
  staged().now = null
  for (const undo of now.undo.reverse()) await undo()
}

function stagedUnder(token: bigint): Staged {
  const { now } = staged()
  if (now?.token === token) return now
  throw new PostgradError('CHECKPOINT_FAILED', {
    op: 'load',
    expected: 'the load that this worker has read',
    got: 'another one that began meanwhile',
    remedy: 'Load one checkpoint at a time.',
  })
}

function busy(directory: string, saver: string): PostgradError {
  return new PostgradError('CHECKPOINT_BUSY', {
    op: 'save',
    message: `worker '${saver}' is saving in '${directory}' just now`,
    remedy:
      'Let one worker save for all of them, as rank 0: every worker then writes its part. On that worker, let one Checkpoints object have the directory.',
    values: { worker: saver, directory },
  })
}

export function mismatch(worker: string, expected: string, got: string): PostgradError {
  return new PostgradError('CHECKPOINT_MISMATCH', {
    op: 'load',
    expected: `on worker '${worker}', ${expected}`,
    got,
    remedy: 'Load it into the same program with the same workers, modules and optimizers.',
    values: { worker },
  })
}

/** Whose error is not the checkpoint's own. */
export const isCheckpointError = (error: unknown): boolean =>
  ['CHECKPOINT_CORRUPT', 'CHECKPOINT_MISMATCH', 'CHECKPOINT_UNSUPPORTED'].some((code) => isPostgradError(error, code))

export const workerFile = { claim, write, stage, loadStates, commit, abandon } as const
expose({
  'postgrad.checkpoint.claim': claim,
  'postgrad.checkpoint.write': write,
  'postgrad.checkpoint.stage': stage,
  'postgrad.checkpoint.loadStates': loadStates,
  'postgrad.checkpoint.commit': commit,
  'postgrad.checkpoint.abandon': abandon,
})
