/**
 * A worker's state at the moment of a save: a copy of everything except tensors, and the versions of the tensors. `moment.ts` asks for it on all workers, `worker-file.ts` writes it.
 *
 * Note [The state of the call]
 * A program may step before the save has begun to write. So `save` notifies each worker in the turn of the call (`hold`), and calls that the program makes afterwards begin there
 * later. `add` follows at once, and captures the objects of references. Only modules in modules of other workers become known later, and references
 * whose owner has not confirmed them yet: for those, the worker's count of writes shows whether they were written to since `hold`.
 */
import type { Module } from '@postgrad/nn'
import { safetensorsChanged } from '@postgrad/nn/internal'
import { currentSignal, expose, type OwnerRRef, workerLocal } from '@postgrad/rpc'
import { currentRuntime } from '@postgrad/rpc/internal'
import { currentGenerator } from '@postgrad/tensor'
import { type Storage, writeCount } from '@postgrad/tensor/internal'
import { type Found, foundOf, type Reference, type Stateful } from './entry.js'
import { failed, unsupported } from './errors.js'
import { type EntryKind, entryLines, headLine, type NamedTensors } from './state-lines.js'

/** State to be written. */
export interface Capture {
  /** Of its state file. */
  readonly lines: Uint8Array[]
  readonly tensors: NamedTensors
  /** Of their storages. */
  readonly versions: Map<Storage, number>
  /** Keys of entries that a load gives back. */
  readonly values: string[]
  readonly keys: Set<string>
  /** How many writes there had been. */
  readonly writes: number
}

const captures = workerLocal(() => new Map<bigint, Capture>())

/** Begins the capture of a save on this worker, which has its generator only. */
export function begin(token: bigint): void {
  const head = headLine({ worker: currentRuntime().info.name, generator: currentGenerator().state() })
  captures().set(token, { lines: [head], tensors: new Map(), versions: new Map(), values: [], keys: new Set(), writes: writeCount() })
}

export function end(token: bigint): void {
  captures().delete(token)
}

/**
 * Takes the state of something of this worker. @throws CHECKPOINT_UNSUPPORTED, SAFETENSORS_CHANGED (it was written to since `begin`)
 * @param isNew it was made just now, and what has written to it since `begin` is its making
 */
export function take(token: bigint, key: string, kind: EntryKind, value: unknown, isNew = false): void {
  const capture = captureOf(token)
  if (capture.keys.has(key)) throw unsupported(key, 'two things of that name on one worker', 'Rename a module: no name may have a dot.')
  capture.keys.add(key)
  if (kind === 'value') capture.values.push(key)
  const before = writeCount()
  const state = kind === 'module' ? (value as Module).stateDict() : kind === 'state' ? (value as Stateful).stateDict() : value
  const known = capture.tensors.size
  for (const line of entryLines(key, kind, state, capture.tensors)) capture.lines.push(line)
  for (const { storage } of [...capture.tensors.values()].slice(known)) {
    // Writes by `stateDict` itself are of this moment.
    if (!isNew && storage.writtenAt > capture.writes && storage.writtenAt <= before) throw safetensorsChanged()
    capture.versions.set(storage, storage.version)
  }
}

/** @throws CHECKPOINT_FAILED when the save has ended */
export function captureOf(token: bigint): Capture {
  const capture = captures().get(token)
  if (capture === undefined) throw failed('save', [currentRuntime().info.name], 'the save that this belongs to has ended')
  return capture
}

/** Begins a capture at once, before the first item is asked for, and keeps it as long as the stream is open, which ends when its caller dies. */
function hold(token: bigint): AsyncGenerator<null> {
  const [all, signal] = [captures(), currentSignal()]
  begin(token)
  const over = new Promise<void>((resolve) => {
    const end = () => {
      all.delete(token)
      resolve()
    }
    if (signal.aborted) end()
    else signal.addEventListener('abort', end, { once: true })
  })
  return (async function* () {
    yield null
    await over
  })()
}

/** Takes what the references refer to, in this turn where it is there. @throws as `take`, CHECKPOINT_UNSUPPORTED, and as the making of a value failed */
export async function add(token: bigint, references: readonly Reference[]): Promise<Found[]> {
  return await Promise.all(
    references.map(async ({ key, ref }) => {
      const owned = ref as OwnerRRef
      // Without a turn between: see the note above.
      const isMade = owned.hasValue
      const value = isMade ? owned.localValue() : await ref.toHere()
      const found = foundOf(key, value)
      take(token, key, found.kind, value, !isMade)
      return found
    }),
  )
}

export const capture = { hold, add } as const
expose({ 'postgrad.checkpoint.hold': hold, 'postgrad.checkpoint.add': add })
