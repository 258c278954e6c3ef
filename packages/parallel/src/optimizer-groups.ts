/**
 * The groups of a distributed optimizer as its user sees them: references with settings, which a scheduler may change, and the settings that each owner has.
 * `distributed-optimizer.ts` sends changes with the next step.
 */

import { PostgradError } from '@postgrad/base'
import { isThenable, structuredClone } from '@postgrad/base/internal'
import type { Optimizer } from '@postgrad/nn'
import { RRef, type WorkerInfo } from '@postgrad/rpc'
import { isTensor, type Tensor, tensor } from '@postgrad/tensor'
import { invalidArgument } from '@postgrad/tensor/internal'
import type { GroupSettings, OptimizerClass } from './local-optimizer.js'

/** Parameters, on any workers, that share settings. You, or a scheduler, may change the settings; the next step uses the new ones. */
export type DistributedParamGroup<Settings> = { readonly params: readonly RRef<Tensor>[] } & Settings

/** A parameter group as you pass it to a `DistributedOptimizer`. Settings that it leaves out are those of the optimizer. */
export type DistributedGroupOptions<Settings = object> = Partial<Settings> & { readonly params: Iterable<RRef<Tensor>> }

const OP = 'DistributedOptimizer'
type AnyGroup = DistributedParamGroup<GroupSettings>

export class OptimizerGroups {
  /** Until somebody asks for settings, each group has only those that it was given. */
  readonly groups: AnyGroup[] = []
  private readonly optimizerClass: OptimizerClass
  private readonly options: GroupSettings
  /**
   * One of the class over a parameter of one element per group, which knows and checks the settings; null where that cannot be: the class takes none, or its
   * constructor fails, which the owners will say too. It is made when somebody first asks for settings (undefined until then): a program that only steps
   * constructs nothing here.
   */
  private model: Optimizer | null | undefined
  /** Each group's settings when they were first asked for: its owners were made with them. */
  readonly initial: GroupSettings[] = []
  /** Whether the class has taken what the model has. */
  private isChecked = true
  /** Grows with every change of a setting that was seen. */
  version = 0

  constructor(optimizerClass: OptimizerClass, options: GroupSettings) {
    this.optimizerClass = optimizerClass
    // Copies, here and of what groups are given: the owners got what the user's objects held then, and the settings may be asked for much later.
    this.options = structuredClone(options)
  }

  /** How many parameters there are over all groups. */
  get size(): number {
    return this.groups.reduce((sum, { params }) => sum + params.length, 0)
  }

  /** @throws INVALID_ARGUMENT, NO_PARAMETERS, DUPLICATE_PARAMETER; nothing is added then */
  add(list: readonly DistributedGroupOptions[]): void {
    const added = list.map((group) => {
      const { params, ...settings } = group as DistributedGroupOptions<GroupSettings>
      return { params: checkedParams(params), ...structuredClone(settings) } as AnyGroup
    })
    const all = [...this.groups, ...added]
    if (added.every(({ params }) => params.length === 0)) throw noParameters()
    checkDistinct(all)
    this.groups.push(...added)
    if (this.model !== undefined) this.learn(all.length - added.length)
    this.version++
  }

  /** The groups with all their settings, as somebody may change them from here on. */
  asked(): AnyGroup[] {
    if (this.model === undefined) this.learn(0)
    return this.groups
  }

  get isAsked(): boolean {
    return this.model !== undefined
  }

  /** Makes the model, and gives the groups from `first` on the settings that the class has for them. */
  private learn(first: number): void {
    this.model = modelOf(this.optimizerClass, this.groups, this.options)
    for (let i = first; i < this.groups.length; i++) {
      const { params: _, ...known } = { ...this.options, ...this.model?.paramGroups[i] } as GroupSettings
      const group = { ...structuredClone(known), ...this.groups[i]! }
      this.groups[i] = group
      this.initial[i] = structuredClone(this.known(group, i))
    }
  }

  /** Takes the last groups back. */
  drop(count: number): void {
    this.groups.splice(-count, count)
    if (this.model !== undefined) this.learn(this.groups.length)
  }

  /** Of all groups; all of them or none. @throws INVALID_ARGUMENT */
  set(settings: GroupSettings): void {
    this.asked()
    this.check()
    this.model?.set(settings)
    for (const group of this.groups) Object.assign(group, settings)
    this.version++
  }

  /** Sees what somebody has written into a group. It is asked before each step, so it makes nothing where nothing has changed. @throws INVALID_ARGUMENT for what the class refuses */
  check(): void {
    const { model, groups } = this
    if (model === undefined) return
    if (model === null) {
      this.version++
      return
    }
    for (let i = 0; i < groups.length; i++) {
      const [group, known] = [groups[i] as GroupSettings, model.paramGroups[i] as Record<string, unknown>]
      for (const name in known) {
        if (name === 'params' || !(name in group) || sameSetting(known[name], group[name])) continue
        // A copy, so that a write into a list is seen.
        known[name] = structuredClone(group[name])
        this.isChecked = false
      }
    }
    if (this.isChecked) return
    this.version++
    model.set({})
    this.isChecked = true
  }

  /** The settings that the optimizer looks at: not the params, nor what schedulers keep in a group for themselves. */
  known(group: AnyGroup, index: number): GroupSettings {
    const { params: _, ...settings } = group
    return knownTo(this.model, index, settings)
  }

  /** Saved settings, checked as the class does; nothing is changed. @throws INVALID_ARGUMENT */
  checkSaved(saved: readonly GroupSettings[]): void {
    this.asked()
    const { model } = this
    // If the owners refuse, `check` takes this back. The class does not know the values that schedulers keep in a group.
    const known = saved.map((settings, i) => ({ ...knownTo(model, i, settings), params: [i] }))
    model?.loadStateDict({ state: {}, paramGroups: known })
  }

  /** Takes over saved settings of all groups. */
  load(saved: readonly GroupSettings[]): void {
    for (const [i, group] of this.groups.entries()) {
      const fields = group as Record<string, unknown>
      for (const name of Object.keys(fields)) if (name !== 'params' && !(name in saved[i]!)) delete fields[name]
      Object.assign(fields, structuredClone(saved[i]))
    }
    this.version++
  }
}

/** One owner's part of the groups. */
export class OwnedGroups {
  readonly owner: WorkerInfo
  /** Which groups it has parameters of. */
  readonly groups: number[] = []
  /** Its parameters, in its optimizer's order: their places over all groups. */
  readonly places: number[] = []
  /** The references, by its groups. */
  readonly params: RRef<Tensor>[][] = []
  /** The settings that it has, by its groups; where there are none, the initial ones; null when that is not known, since a step did not come back well. */
  private has: GroupSettings[] | null = []
  /** Of the groups when it got them. */
  private version = -1

  constructor(owner: WorkerInfo) {
    this.owner = owner
  }

  /** To be sent: [its group, settings] of those that changed since the last call of `takeChanges`; null for none. */
  changes(all: OptimizerGroups): [number, GroupSettings][] | null {
    const { has } = this
    if (has !== null && this.version === all.version) return null
    let changes: [number, GroupSettings][] | null = null
    for (const [own, index] of this.groups.entries()) {
      const now = all.known(all.groups[index]!, index)
      const before = has === null ? undefined : (has[own] ?? all.initial[index])
      const changed = before === undefined ? now : changedIn(before, now)
      if (changed === null) continue
      changes ??= []
      changes.push([own, changed])
    }
    return changes
  }

  /** The same, which counts as sent. */
  takeChanges(all: OptimizerGroups): [number, GroupSettings][] | null {
    const changes = this.changes(all)
    if (changes !== null) this.noteSent(all)
    this.version = all.version
    return changes
  }

  noteSent(all: OptimizerGroups): void {
    this.version = all.version
    this.has = all.isAsked ? this.groups.map((index) => structuredClone(all.known(all.groups[index]!, index))) : []
  }

  /** It may have refused them, or never have got them. */
  forget(): void {
    this.has = null
  }
}

/** Adds groups from `first` on to the owners of their parameters. @returns those that got something */
export function assign(all: OptimizerGroups, first: number, owners: Map<number, OwnedGroups>): Set<OwnedGroups> {
  const touched = new Set<OwnedGroups>()
  let place = all.groups.slice(0, first).reduce((sum, { params }) => sum + params.length, 0)
  for (let index = first; index < all.groups.length; index++) {
    for (const param of all.groups[index]!.params) {
      const { id } = param.owner()
      let part = owners.get(id)
      if (part === undefined) {
        part = new OwnedGroups(param.owner())
        owners.set(id, part)
      }
      if (part.groups.at(-1) !== index) {
        part.groups.push(index)
        part.params.push([])
      }
      part.params.at(-1)!.push(param)
      part.places.push(place++)
      touched.add(part)
    }
  }
  return touched
}

/** Undoes `assign`. */
export function unassign(first: number, place: number, owners: Map<number, OwnedGroups>): void {
  for (const [id, part] of owners) {
    while (part.groups.length > 0 && part.groups.at(-1)! >= first) {
      part.groups.pop()
      part.params.pop()
    }
    while (part.places.length > 0 && part.places.at(-1)! >= place) part.places.pop()
    if (part.groups.length === 0) owners.delete(id)
  }
}

/** References, or groups of them, as groups. @throws INVALID_ARGUMENT */
export function groupsOf(params: Iterable<RRef<Tensor>> | Iterable<DistributedGroupOptions>): DistributedGroupOptions[] {
  const list = listOf('RRefs to parameters, or groups of them', params)
  if (list.length === 0) throw noParameters()
  return list.some((each) => each instanceof RRef || isTensor(each))
    ? [{ params: list as RRef<Tensor>[] }]
    : (list as DistributedGroupOptions[])
}

function checkedParams(params: Iterable<RRef<Tensor>> | undefined): RRef<Tensor>[] {
  const list = listOf('RRefs in a group { params, … }', params)
  const at = list.findIndex((each) => !(each instanceof RRef))
  if (at < 0) return list as RRef<Tensor>[]
  const wrong = list[at]
  throw invalidArgument(
    OP,
    'RRefs as parameters',
    isTensor(wrong) ? `a tensor as parameter ${at}` : wrong === null ? 'null' : typeof wrong,
    'Pass rref(parameter), made on its owner, module.remoteParameters(), or await getAllRemoteParams(model).',
  )
}

function listOf(expected: string, list: unknown): unknown[] {
  const iterable = list as Iterable<unknown> | null | undefined
  if (list instanceof RRef) throw invalidArgument(OP, expected, 'an RRef', 'Wrap it in an array.')
  if (isThenable(list)) throw invalidArgument(OP, expected, 'a promise', 'Await it: await module.remoteParameters().')
  if (typeof list === 'string' || typeof iterable?.[Symbol.iterator] !== 'function') {
    throw invalidArgument(OP, expected, list === null ? 'null' : typeof list, 'Pass an array.')
  }
  return [...iterable]
}

/** One value that two references name is found by its owner; one reference that is listed twice, here. */
function checkDistinct(groups: readonly AnyGroup[]): void {
  const ids = groups.flatMap(({ params }) => params.map(({ rrefId }) => rrefId))
  if (new Set(ids).size === ids.length) return
  throw new PostgradError('DUPLICATE_PARAMETER', {
    op: OP,
    message: 'a reference is listed more than once',
    remedy: 'List each parameter once, in one group.',
  })
}

function noParameters(): PostgradError {
  return new PostgradError('NO_PARAMETERS', {
    op: OP,
    expected: 'at least one RRef to a parameter',
    got: 'none',
    remedy: 'Pass the RRefs of the parameters of all workers.',
  })
}

function modelOf(Class: OptimizerClass, groups: readonly AnyGroup[], options: GroupSettings): Optimizer | null {
  try {
    const stand = groups.map(({ params: _, ...settings }) => ({ ...settings, params: [tensor([0], { requiresGrad: true })] }))
    // As for an owner: one group without settings of its own is a plain list.
    const made = new Class(stand as unknown as Tensor[], options)
    return Array.isArray(made.paramGroups) && made.paramGroups.length === groups.length ? made : null
  } catch {
    // The owners say why, and say it of themselves: OPTIMIZER_CREATION_FAILED.
    return null
  }
}

/** The settings that the model's group has, too; without a model, all of them. */
function knownTo(model: Optimizer | null | undefined, index: number, settings: GroupSettings): GroupSettings {
  const group = model?.paramGroups[index]
  return group === undefined
    ? settings
    : Object.fromEntries(Object.entries(settings).filter(([name]) => name in group && name !== 'params'))
}

/** The names whose values differ; null for none. */
function changedIn(before: GroupSettings, now: GroupSettings): GroupSettings | null {
  let changed: Record<string, unknown> | null = null
  for (const name in now) {
    if (sameSetting(before[name], now[name])) continue
    changed ??= {}
    changed[name] = now[name]
  }
  return changed
}

function sameSetting(a: unknown, b: unknown): boolean {
  if (Array.isArray(a) && Array.isArray(b)) return a.length === b.length && a.every((each, i) => sameSetting(each, b[i]))
  return Object.is(a, b)
}
