/**
 * Divides the parts of a checkpoint among the workers that own them: a model here with modules elsewhere becomes an entry for each worker that has some of it.
 * The roots are known at once; the owners of other modules answer what those contain. `moment.ts` saves them, `checkpoints.ts` loads them.
 */
import { PostgradError } from '@postgrad/base'
import { Module } from '@postgrad/nn'
import { call, currentWorker, expose, RRef, rref, type WorkerInfo } from '@postgrad/rpc'
import { DistributedOptimizer } from '../distributed-optimizer.js'
import { RemoteModule } from '../remote-module.js'
import { type Entry, type Found, foundOf, isStateful, type Reference, remoteModulesIn } from './entry.js'
import { type CheckpointOp, failedUnlessTyped } from './errors.js'
import type { EntryKind } from './state-lines.js'

/**
 * The objects of a checkpoint, by name. An object may be a module (with RemoteModules in it, at any depth), a DistributedOptimizer, a local optimizer, a
 * scheduler, another object with `stateDict` and `loadStateDict`, a reference to such an object or to a tensor on another worker, a tensor, or plain data.
 * `load` returns tensors and plain data. Names consist of letters, digits, '_' and '-'.
 */
export type CheckpointParts = Readonly<Record<string, unknown>>

/** The parts that are known at once. */
export interface Roots {
  readonly here: readonly { readonly key: string; readonly kind: EntryKind; readonly value: unknown }[]
  readonly there: readonly Reference[]
  /** Those of optimizers that their owners are still making. */
  readonly later: readonly Promise<readonly Reference[]>[]
}

export interface PlannedWorker {
  readonly info: WorkerInfo
  readonly entries: readonly Entry[]
}

/** The work of a load. */
export interface Plan {
  /** By worker name, in order of first appearance, the caller's first. */
  readonly workers: ReadonlyMap<string, PlannedWorker>
  /** References that were made for it. */
  readonly made: readonly RRef[]
}

const NAME = /^[A-Za-z0-9_-]+$/

/** @throws INVALID_ARGUMENT, OPTIMIZER_DISPOSED */
export function rootsOf(parts: CheckpointParts): Roots {
  if (typeof parts !== 'object' || parts === null) throw refused('parts by name', parts === null ? 'null' : typeof parts)
  const here: { key: string; kind: EntryKind; value: unknown }[] = []
  const there: Reference[] = []
  const later: Promise<readonly Reference[]>[] = []
  for (const [key, value] of Object.entries(parts)) {
    if (!NAME.test(key)) throw refused(`names of letters, digits, '_' and '-'`, `'${key}'`)
    if (value === undefined) throw refused(`something as '${key}'`, 'undefined')
    if (value instanceof RemoteModule) there.push({ key, ref: value.getModuleRref() })
    else if (value instanceof RRef) there.push({ key, ref: value })
    else if (value instanceof DistributedOptimizer) {
      const { owners, groups } = value.checkpointParts()
      const references = (refs: readonly RRef[]) => refs.map((ref) => ({ key, ref }))
      if (owners instanceof Promise) later.push(owners.then(references))
      else there.push(...references(owners))
      here.push({ key: `${key}.groups`, kind: 'state', value: groups })
    } else if (value instanceof Module) {
      here.push({ key, kind: 'module', value })
      for (const [path, module] of remoteModulesIn(value)) there.push({ key: `${key}.${path}`, ref: module.getModuleRref() })
    } else here.push({ key, kind: isStateful(value) ? 'state' : 'value', value })
  }
  return { here, there, later }
}

/**
 * Asks the owners of `references` by `ask`, and then those of the modules that lie in what they own, down to the last.
 * @returns the references with their kinds. @throws CHECKPOINT_UNSUPPORTED also for two of one name on one worker
 */
export async function askOwners(
  first: readonly {
    readonly owner: WorkerInfo
    readonly references: readonly Reference[]
    readonly found: PromiseLike<readonly Found[]>
  }[],
  ask: (owner: WorkerInfo, references: readonly Reference[]) => PromiseLike<readonly Found[]>,
  made: RRef[],
  op: CheckpointOp,
): Promise<{ readonly owner: WorkerInfo; readonly entry: Entry }[]> {
  const entries: { owner: WorkerInfo; entry: Entry }[] = []
  for (let asked = first; asked.length > 0; ) {
    const nested: Reference[] = []
    // All, so that nothing is under way when it rejects.
    const ends = await Promise.allSettled(asked.map(({ found }) => found))
    for (const [i, { owner, references }] of asked.entries()) {
      const end = ends[i]!
      if (end.status === 'rejected') throw failedUnlessTyped(op, [owner.name], end.reason)
      for (const [j, { key, kind, nested: inIt }] of end.value.entries()) {
        entries.push({ owner, entry: { key, kind, ref: references[j]!.ref } })
        for (const [path, module] of inIt) {
          made.push(module.getModuleRref())
          nested.push({ key: `${key}.${path}`, ref: module.getModuleRref() })
        }
      }
    }
    asked = byOwner(nested).map(([owner, references]) => ({ owner, references, found: ask(owner, references) }))
  }
  return entries
}

export function byOwner(references: readonly Reference[]): [owner: WorkerInfo, references: Reference[]][] {
  const lists = new Map<number, [WorkerInfo, Reference[]]>()
  for (const reference of references) {
    const owner = reference.ref.owner()
    const list = lists.get(owner.id)
    if (list === undefined) lists.set(owner.id, [owner, [reference]])
    else list[1].push(reference)
  }
  return [...lists.values()]
}

/** For a load. @throws INVALID_ARGUMENT, CHECKPOINT_UNSUPPORTED, CHECKPOINT_FAILED (an owner cannot be asked) */
export async function planOf(parts: CheckpointParts, workers: readonly WorkerInfo[]): Promise<Plan> {
  const { here, there, later } = rootsOf(parts)
  const made: RRef[] = []
  const self = currentWorker().info
  const planned = new Map<string, { readonly info: WorkerInfo; readonly entries: Entry[] }>()
  const at = (info: WorkerInfo): Entry[] => {
    const worker = planned.get(info.name) ?? { info, entries: [] }
    planned.set(info.name, worker)
    return worker.entries
  }
  for (const info of [self, ...workers]) at(info)
  for (const { key, kind, value } of here) at(self).push({ key, kind, ref: rref(value) })
  const references = [...there, ...(await Promise.all(later)).flat()]
  const ask = (owner: WorkerInfo, list: readonly Reference[]) => call(owner, lookAt, [list])
  const first = byOwner(references).map(([owner, list]) => ({ owner, references: list, found: ask(owner, list) }))
  for (const { owner, entry } of await askOwners(first, ask, made, 'load')) at(owner).push(entry)
  return { workers: planned, made }
}

async function lookAt(references: readonly Reference[]): Promise<Found[]> {
  return await Promise.all(references.map(async ({ key, ref }) => foundOf(key, await ref.toHere())))
}

export function refused(expected: string, got: string): PostgradError {
  return new PostgradError('INVALID_ARGUMENT', { op: 'Checkpoints', expected, got })
}

expose({ 'postgrad.checkpoint.lookAt': lookAt })
