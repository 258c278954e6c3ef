/** The entries of a checkpoint, each of which one worker owns. `parts.ts` finds them, `capture.ts` takes their state, `restore.ts` restores it. */
import { PostgradError } from '@postgrad/base'
import { Module } from '@postgrad/nn'
import { currentWorker, type RRef } from '@postgrad/rpc'
import { isTensor } from '@postgrad/tensor'
import { RemoteModule } from '../remote-module.js'
import type { EntryKind } from './state-lines.js'

/**
 * An object that can return its state and load it again: an optimizer, a scheduler, or an object of your program. PyTorch: `Stateful` of
 * `torch.distributed.checkpoint`.
 */
export interface Stateful<State = unknown> {
  /** Returns the state to save: tensors and plain data. */
  stateDict(): State
  /** Loads a state that `stateDict` returned. */
  loadStateDict(state: State): unknown
}

/** Something that a worker owns, under a name that no other entry of that worker has. */
export interface Entry {
  readonly key: string
  readonly kind: EntryKind
  readonly ref: RRef
}

/** A reference whose owner says what it refers to. */
export interface Reference {
  readonly key: string
  readonly ref: RRef
}

/** The owner's answer: the kind, and the modules of other workers in it. */
export interface Found {
  readonly key: string
  readonly kind: EntryKind
  readonly nested: readonly (readonly [path: string, module: RemoteModule])[]
}

/** Describes a reference's value, on its owner. @throws CHECKPOINT_UNSUPPORTED */
export function foundOf(key: string, value: unknown): Found {
  if (value instanceof Module) return { key, kind: 'module', nested: remoteModulesIn(value) }
  if (isStateful(value)) return { key, kind: 'state', nested: [] }
  if (isTensor(value)) return { key, kind: 'value', nested: [] }
  const plain = value === null || typeof value !== 'object' || Array.isArray(value)
  throw new PostgradError('CHECKPOINT_UNSUPPORTED', {
    op: 'checkpoint',
    expected: `the reference '${key}' on '${currentWorker().info.name}' to be one to a module, a tensor, or an object with stateDict and loadStateDict`,
    got: value === null ? 'null' : typeof value === 'object' ? `an instance of ${value.constructor?.name}` : typeof value,
    remedy: plain ? 'Fetch it with toHere(), and save the value itself.' : 'Give the class these two methods.',
    values: { path: key },
  })
}

export function remoteModulesIn(module: Module, prefix = '', above: readonly Module[] = []): [path: string, module: RemoteModule][] {
  const found: [string, RemoteModule][] = []
  if (above.includes(module)) return found
  for (const [name, child] of module.namedChildren()) {
    if (child instanceof RemoteModule) found.push([prefix + name, child])
    else found.push(...remoteModulesIn(child, `${prefix}${name}.`, [...above, module]))
  }
  return found
}

export function isStateful(value: unknown): value is Stateful {
  const { stateDict, loadStateDict } = (value ?? {}) as Partial<Stateful>
  return typeof stateDict === 'function' && typeof loadStateDict === 'function'
}
