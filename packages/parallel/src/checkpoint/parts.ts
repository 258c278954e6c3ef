/**
 * What a program wants saved, taken apart by the workers that own it: a model here with modules elsewhere becomes an entry for each worker that has some of
 * it. `worker-file.ts` has what a worker does with its entries.
 */
import { PostgradError } from '@postgrad/base'
import { Module } from '@postgrad/nn'
import { call, currentWorker, expose, RRef, rref, type WorkerInfo } from '@postgrad/rpc'
import { DistributedOptimizer } from '../distributed-optimizer.js'
import { RemoteModule } from '../remote-module.js'
import type { Entry, EntryKind, Stateful } from './worker-file.js'

/**
 * By name: modules (with RemoteModules in them, at any depth), DistributedOptimizers and local optimizers, schedulers, anything else with `stateDict` and `loadStateDict`, references to
 * such objects on other workers; and tensors and plain data, which `load` gives back. Names are letters, digits, '_' and '-'.
 */
export type CheckpointParts = Readonly<Record<string, unknown>>

export interface PlannedWorker {
  readonly info: WorkerInfo
  readonly entries: readonly Entry[]
}

export interface Plan {
  /** By worker name, in order of first appearance, the caller's first. */
  readonly workers: ReadonlyMap<string, PlannedWorker>
  /** References that were made for it. */
  readonly made: readonly RRef[]
}

const NAME = /^[A-Za-z0-9_-]+$/

/** @throws INVALID_ARGUMENT, CHECKPOINT_UNSUPPORTED, and as calls to the owners do */
export async function planOf(parts: CheckpointParts, workers: readonly WorkerInfo[]): Promise<Plan> {
  const planner = new Planner()
  for (const info of [currentWorker().info, ...workers]) planner.at(info)
  for (const [name, value] of Object.entries(parts)) {
    if (!NAME.test(name)) throw refused(`names of letters, digits, '_' and '-'`, `'${name}'`)
    await planner.add(name, value)
  }
  return planner
}

class Planner implements Plan {
  readonly workers = new Map<string, { readonly info: WorkerInfo; readonly entries: Entry[] }>()
  readonly made: RRef[] = []

  at(info: WorkerInfo): Entry[] {
    let worker = this.workers.get(info.name)
    if (worker === undefined) {
      worker = { info, entries: [] }
      this.workers.set(info.name, worker)
    }
    return worker.entries
  }

  async add(key: string, value: unknown): Promise<void> {
    if (value instanceof RemoteModule) await this.addReference(key, value.getModuleRref())
    else if (value instanceof RRef) await this.addReference(key, value)
    else if (value instanceof DistributedOptimizer) await this.addOptimizer(key, value)
    else if (value instanceof Module) {
      this.addHere(key, 'module', value)
      for (const [path, module] of remoteModulesIn(value)) await this.add(`${key}.${path}`, module)
    } else this.addHere(key, isStateful(value) ? 'state' : 'value', value)
  }

  private addHere(key: string, kind: EntryKind, value: unknown): void {
    this.at(currentWorker().info).push({ key, kind, ref: rref(value) })
  }

  private async addReference(key: string, ref: RRef): Promise<void> {
    const { kind, nested } = await call(ref.owner(), lookAt, [ref])
    this.at(ref.owner()).push({ key, kind, ref })
    for (const [path, module] of nested) {
      this.made.push(module.getModuleRref())
      await this.add(`${key}.${path}`, module)
    }
  }

  private async addOptimizer(key: string, optimizer: DistributedOptimizer): Promise<void> {
    const { owners, groups } = await optimizer.checkpointParts()
    for (const ref of owners) this.at(ref.owner()).push({ key, kind: 'state', ref })
    this.addHere(`${key}.groups`, 'state', groups)
  }
}

/** What a reference refers to, said by its owner. */
async function lookAt(ref: RRef): Promise<{ kind: EntryKind; nested: [path: string, module: RemoteModule][] }> {
  const value = await ref.toHere()
  if (value instanceof Module) return { kind: 'module', nested: remoteModulesIn(value) }
  if (isStateful(value)) return { kind: 'state', nested: [] }
  throw new PostgradError('CHECKPOINT_UNSUPPORTED', {
    op: 'checkpoint',
    expected: `the reference on '${currentWorker().info.name}' to be one to a module, or to an object with stateDict and loadStateDict`,
    got: value === null ? 'null' : typeof value === 'object' ? `an instance of ${value.constructor?.name}` : typeof value,
    remedy: 'Give the class these two methods.',
  })
}

function remoteModulesIn(module: Module, prefix = '', above: readonly Module[] = []): [path: string, module: RemoteModule][] {
  const found: [string, RemoteModule][] = []
  if (above.includes(module)) return found
  for (const [name, child] of module.namedChildren()) {
    if (child instanceof RemoteModule) found.push([prefix + name, child])
    else found.push(...remoteModulesIn(child, `${prefix}${name}.`, [...above, module]))
  }
  return found
}

function isStateful(value: unknown): value is Stateful {
  const { stateDict, loadStateDict } = (value ?? {}) as Partial<Stateful>
  return typeof stateDict === 'function' && typeof loadStateDict === 'function'
}

export function refused(expected: string, got: string): PostgradError {
  return new PostgradError('INVALID_ARGUMENT', { op: 'Checkpoints', expected, got })
}

expose({ 'postgrad.checkpoint.lookAt': lookAt })
