/**
 * A worker's side of a load. It restores its own objects in rounds, so that all workers do or none: `stage` reads and checks everything and changes nothing, `loadStates` lets
 * objects load their states, `commit` copies weights and generator. If an object or a module refuses, `abandon` puts all back; otherwise `end` forgets the old values. `checkpoints.ts` calls it on every worker.
 */
import { join } from 'node:path'
import { PostgradError } from '@postgrad/base'
import { type Module, openSafetensors, type SafetensorsFile, type StateDict } from '@postgrad/nn'
import { currentSignal, expose, workerLocal } from '@postgrad/rpc'
import { currentRuntime } from '@postgrad/rpc/internal'
import { currentGenerator, type GeneratorState } from '@postgrad/tensor'
import { undoOf } from '../module-undo.js'
import { type CheckpointDisk, checkpointDiskOf } from './disk.js'
import type { Entry, Stateful } from './entry.js'
import { corrupt, mismatch } from './errors.js'
import { type FileInfo, isAbsent, sha256, type WorkerFiles } from './manifest.js'
import { type EntryKind, readState, type SavedEntry, type Tree } from './state-lines.js'
import { readStateOfVersion1 } from './version-1.js'

interface Staged {
  readonly token: bigint
  /** Those that are still to be written. */
  readonly modules: { readonly module: Module; readonly state: StateDict }[]
  readonly states: { readonly target: Stateful; readonly state: unknown }[]
  readonly generator: GeneratorState
  readonly undo: (() => unknown)[]
  /** From `loadStates` on. */
  loading: Promise<void> | null
}

const staged = workerLocal<{ now: Staged | null }>(() => ({ now: null }))

/** @throws CHECKPOINT_CORRUPT, CHECKPOINT_MISMATCH; nothing is changed */
async function stage(token: bigint, directory: string, files: WorkerFiles, entries: readonly Entry[]): Promise<void> {
  const disk = checkpointDiskOf(currentRuntime())
  await checkFile(disk, directory, files.tensors, true)
  if (files.state !== null) await checkFile(disk, directory, files.state, true)
  await withFile(disk, directory, files, isStaged, async (file, { head, entries: saved }) => {
    const now = await stageFrom(file, { token, generator: head.generator, saved, entries })
    // If the load was given up meanwhile, `abandon` has been here, and another load may have begun.
    if (!currentSignal().aborted) staged().now = now
  })
}
const isStaged = (kind: EntryKind): boolean => kind !== 'value'

/** Whether a file is there with its length and, if `hashed`, its bytes. @throws CHECKPOINT_CORRUPT */
export async function checkFile(disk: CheckpointDisk, directory: string, expected: FileInfo, hashed: boolean): Promise<void> {
  const path = join(directory, expected.file)
  const size = await disk.size(path)
  if (size === null) throw corrupt(path, 'the file that the manifest names', 'none')
  if (size !== expected.bytes) throw corrupt(path, `${expected.bytes} bytes`, `${size}`)
  if (!hashed) return
  const hash = sha256()
  try {
    for await (const piece of disk.read(path, size)) hash.update(piece)
  } catch (error) {
    if (isAbsent(error)) throw corrupt(path, 'the file that the manifest names', 'none', error)
    throw error
  }
  if (hash.digest('hex') !== expected.sha256) throw corrupt(path, 'the bytes that were written', 'others')
}

/** Reads the values of one worker's files, by name: its caller has all files, and no value goes by a message. @throws CHECKPOINT_CORRUPT */
export async function valuesOf(disk: CheckpointDisk, directory: string, files: WorkerFiles): Promise<[key: string, value: unknown][]> {
  if (files.values?.length === 0) return []
  return await withFile(
    disk,
    directory,
    files,
    (kind) => kind === 'value',
    async (file, { entries }) => {
      const found: [string, unknown][] = []
      for (const { key, tree } of entries) if (tree !== null) found.push([key, await tree.fill(file)])
      return found
    },
  )
}

async function withFile<T>(
  disk: CheckpointDisk,
  directory: string,
  { tensors, state }: WorkerFiles,
  wanted: (kind: EntryKind) => boolean,
  fn: (file: SafetensorsFile, state: Awaited<ReturnType<typeof readState>>) => Promise<T>,
): Promise<T> {
  const path = join(directory, tensors.file)
  let file: SafetensorsFile | null = null
  try {
    file = await openSafetensors(await disk.source(path))
    if (state === null) return await fn(file, readStateOfVersion1(path, file, wanted))
    const statePath = join(directory, state.file)
    return await fn(file, await readState(statePath, disk.read(statePath, state.bytes), wanted))
  } catch (error) {
    // Another process may remove the step meanwhile.
    if (isAbsent(error) || isAbsent((error as { cause?: unknown }).cause))
      throw corrupt(path, 'the files that the manifest names', 'none', error)
    throw error
  } finally {
    await file?.close()
  }
}

interface Staging {
  readonly token: bigint
  readonly generator: GeneratorState
  readonly saved: readonly SavedEntry[]
  readonly entries: readonly Entry[]
}

async function stageFrom(file: SafetensorsFile, { token, generator, saved, entries }: Staging): Promise<Staged> {
  const self = currentRuntime().info.name
  const byKey = new Map(saved.map((entry) => [entry.key, entry]))
  const result: Staged = { token, modules: [], states: [], generator, undo: [], loading: null }
  const unexpected = saved.find(({ key, kind }) => kind !== 'value' && !entries.some((entry) => entry.key === key))
  if (unexpected !== undefined) throw mismatch(self, `a part for '${unexpected.key}', which this worker saved`, 'none')
  for (const { key, kind, ref } of entries) {
    const entry = byKey.get(key)
    if (entry === undefined || entry.tree === null || entry.kind !== kind) {
      throw mismatch(self, `a ${kind} '${key}' in the checkpoint`, entry === undefined ? 'none' : `a ${entry.kind}`)
    }
    if (kind === 'module') {
      const module = (await ref.toHere()) as Module
      result.modules.push({ module, state: await moduleState(file, module, key, entry.tree, self) })
    } else result.states.push({ target: (await ref.toHere()) as Stateful, state: await entry.tree.fill(file) })
  }
  return result
}

async function moduleState(file: SafetensorsFile, module: Module, key: string, tree: Tree, worker: string): Promise<StateDict> {
  const own = module.stateDict()
  const saved = new Set(tree.tensors.map((tensor) => String(tensor.key)))
  const more = [...saved].find((name) => !Object.hasOwn(own, name))
  if (more !== undefined) throw mismatch(worker, `'${key}.${more}' in the module, as in the checkpoint`, 'none')
  const less = Object.keys(own).find((name) => !saved.has(name))
  if (less !== undefined) throw mismatch(worker, `'${key}.${less}' in the checkpoint`, 'none')
  const state = (await tree.fill(file)) as StateDict
  for (const [name, tensor] of Object.entries(own)) {
    const read = state[name]!
    if (read.shape.join() === tensor.shape.join() && read.dtype === tensor.dtype) continue
    const expected = `'${key}.${name}' of ${tensor.dtype} [${tensor.shape.join(', ')}]`
    throw mismatch(worker, expected, `${read.dtype} [${read.shape.join(', ')}]`)
  }
  return state
}

/** @throws what an object throws that refuses its state; those before it are put back by `abandon` */
async function loadStates(token: bigint): Promise<void> {
  const now = stagedUnder(token)
  now.loading = loadInto(now)
  await now.loading
}

async function loadInto(now: Staged): Promise<void> {
  for (const { target, state } of now.states) {
    // Given up while the last object was loading.
    if (staged().now !== now) return
    const before = target.stateDict()
    // Also if it throws in the middle.
    now.undo.push(() => target.loadStateDict(before))
    await target.loadStateDict(state)
  }
}

/** Weights and generator; everything has been checked. @throws as a module's own `loadStateDict` */
function commit(token: bigint): void {
  const { modules, generator, undo } = stagedUnder(token)
  for (let next = modules.shift(); next !== undefined; next = modules.shift()) {
    undo.push(undoOf(next.module, Object.keys(next.state)))
    next.module.loadStateDict(next.state)
  }
  const current = currentGenerator()
  const before = current.state()
  undo.push(() => current.restore(before))
  current.restore(generator)
}

/** The load has succeeded on all workers. */
function end(token: bigint): void {
  if (staged().now?.token === token) staged().now = null
}

/** As if it had not been. */
async function abandon(token: bigint): Promise<void> {
  const { now } = staged()
  if (now?.token !== token) return
  staged().now = null
  // An object that is still loading would write over the state that it gets back.
  await now.loading?.catch(() => {})
  for (const undo of now.undo.reverse()) await undo()
}

function stagedUnder(token: bigint): Staged {
  const { now } = staged()
  if (now?.token === token) return now
  throw new PostgradError('CHECKPOINT_FAILED', {
    op: 'load',
    message: 'another load began on this worker meanwhile',
    remedy: 'Load one checkpoint at a time.',
  })
}

export const restore = { stage, loadStates, commit, end, abandon } as const
expose({
  'postgrad.checkpoint.stage': stage,
  'postgrad.checkpoint.loadStates': loadStates,
  'postgrad.checkpoint.commit': commit,
  'postgrad.checkpoint.endLoad': end,
  'postgrad.checkpoint.abandon': abandon,
})
