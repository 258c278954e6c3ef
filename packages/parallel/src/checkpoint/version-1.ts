/**
 * Checkpoints of version 1, which are only read: each worker had one safetensors file, whose metadata held everything except tensors as one text of
 * JSON. In it, a marker is an object with the key '@', and a user's key that begins with '@' has another '@' in front.
 */
import type { SafetensorsFile } from '@postgrad/nn'
import { corrupt } from './errors.js'
import { type EntryKind, type SavedEntry, type StateHead, Tree } from './state-lines.js'

const MARK = '@'

interface Header extends StateHead {
  readonly entries: readonly { readonly key: string; readonly kind: EntryKind; readonly text: string }[]
}

/** As `readState` of the version that is written today. @throws CHECKPOINT_CORRUPT */
export function readStateOfVersion1(
  path: string,
  file: SafetensorsFile,
  wanted: (kind: EntryKind) => boolean,
): { readonly head: StateHead; readonly entries: readonly SavedEntry[] } {
  try {
    const { worker, generator, entries } = JSON.parse(file.metadata.postgrad ?? '') as Header
    return { head: { worker, generator }, entries: entries.map(({ key, kind, text }) => entryOf(key, kind, text, wanted(kind))) }
  } catch (cause) {
    throw corrupt(path, 'a worker’s part of a checkpoint', 'other safetensors', cause)
  }
}

function entryOf(key: string, kind: EntryKind, text: string, isWanted: boolean): SavedEntry {
  if (!isWanted) return { key, kind, tree: null }
  const tree = new Tree()
  const saved: unknown = JSON.parse(text)
  if (kind === 'module') addModule(tree, key, saved as string[])
  else add(tree, saved)
  return { key, kind, tree }
}

/** The text of a module has the names of its weights. */
function addModule(tree: Tree, key: string, names: readonly string[]): void {
  tree.add(['object'])
  for (const name of names) {
    tree.add(name)
    tree.add(['tensor', `${key}.${name}`])
  }
  tree.add(['end'])
}

function add(tree: Tree, value: unknown): void {
  if (typeof value !== 'object' || value === null) tree.add(value as string | number | boolean | null)
  else if (Array.isArray(value)) {
    tree.add(['list'])
    for (const each of value) add(tree, each)
    tree.add(['end'])
  } else if (Object.hasOwn(value, MARK)) addMarked(tree, value as Record<string, unknown>)
  else {
    tree.add(['object'])
    for (const [key, each] of Object.entries(value)) {
      tree.add(key.startsWith(MARK) ? key.slice(1) : key)
      add(tree, each)
    }
    tree.add(['end'])
  }
}

function addMarked(tree: Tree, { [MARK]: mark, name, value }: Record<string, unknown>): void {
  if (mark === 'tensor') tree.add(['tensor', String(name)])
  else if (mark === 'number') tree.add(['number', String(value)])
  else if (mark === 'bigint') tree.add(['bigint', String(value)])
  else if (mark === 'undefined') tree.add(['undefined'])
  else throw new TypeError(`no such mark: ${String(mark)}`)
}
