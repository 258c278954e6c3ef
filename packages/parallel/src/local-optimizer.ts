/**
 * An owner's side of the distributed optimizer: a local optimizer over the parameters that live here, stepped with the gradients that this worker
 * has in a context. `distributed-optimizer.ts` calls its methods from other workers. They are synchronous, so calls of several callers run one
 * after the other. PyTorch: `_LocalOptimizer`.
 */
import { noGrad } from '@postgrad/autograd'
import { isPostgradError, PostgradError } from '@postgrad/base'
import { currentDistAutograd } from '@postgrad/dist-autograd/internal'
import { type Optimizer, OptimizerBase, type OptimizerState } from '@postgrad/nn'
import { checkReduced, ensureHeld } from '@postgrad/nn/internal'
import { type AnyClass, expose, type RRef, rref } from '@postgrad/rpc'
import { currentRuntime } from '@postgrad/rpc/internal'
import { isTensor, type Tensor } from '@postgrad/tensor'
import { clampGrads, gradShares, scaleGrads } from './clip-shares.js'
import { EarlyStep, type StepsEarly } from './early-step.js'

/** A class of optimizers. Its constructor takes a list of parameters (or of groups of them), and options that can be sent to another worker. */
// biome-ignore lint/suspicious/noExplicitAny: any optimizer's options; `unknown` would refuse every typed one
export type OptimizerClass<O = any> = new (params: Tensor[], options: O) => Optimizer

export type GroupSettings = Readonly<Record<string, unknown>>

/** Settings by the number of the owner's group. */
export type SettingChanges = readonly (readonly [group: number, settings: GroupSettings])[]

/** A group on its way to an owner: its references there, and the settings that the user gave it. */
export interface OwnedGroup {
  readonly params: RRef<Tensor>[]
  readonly settings: GroupSettings
}

export class LocalOptimizer {
  private readonly optimizer: Optimizer
  /** Makes another over groups, for checks. */
  private readonly make: (groups: readonly object[]) => Optimizer
  /** The last load and the state before it, until something else is done. */
  private before: { readonly load: number; readonly state: OptimizerState<object> } | null = null
  /** The step that was announced. */
  private early: EarlyStep | null = null
  private earlySteps = 0

  constructor(optimizer: Optimizer, make: (groups: readonly object[]) => Optimizer) {
    this.optimizer = optimizer
    this.make = make
  }

  /**
   * Takes over changed settings, then steps with what this worker has in the context. A worker that the context has not reached has nothing: its
   * parameters stay as they are. @throws INVALID_ARGUMENT for settings (all stay as they were), what the optimizer throws, CONTEXT_RELEASED
   */
  step(contextId: bigint, changes: SettingChanges | null): void {
    this.before = null
    if (changes !== null) this.change(changes)
    const gradients = gradientsIn(contextId)
    const early = this.early?.take() ?? null
    this.early = null
    if (gradients === null) return
    checkReduced('DistributedOptimizer.step', this.parameters(), gradients)
    if (early !== null) {
      // Any other step looks itself.
      ensureHeld('DistributedOptimizer.step', this.parameters())
      if ((this.optimizer as StepsEarly).take(early, gradients)) {
        this.earlySteps++
        return
      }
    }
    noGrad(() => this.optimizer.step(gradients))
  }

  /** A step with that context's gradients will follow, with these settings changed: it is computed as soon as they are final. */
  announce(contextId: bigint, changes: SettingChanges | null): void {
    this.early?.take()
    const context = currentDistAutograd().container.find(contextId)
    // Nothing of that context has come here, so there will be no gradients; or the class cannot do it.
    if (context === undefined || !(this.optimizer instanceof OptimizerBase)) this.early = null
    else this.early = new EarlyStep(this.optimizer, context, new Map(changes))
  }

  /** How many steps were computed before they were asked for. */
  preparedSteps(): number {
    return this.earlySteps
  }

  /** All of them or none. @throws INVALID_ARGUMENT */
  private change(changes: SettingChanges): void {
    const { paramGroups } = this.optimizer
    if (changes.some(([group]) => paramGroups[group] === undefined)) {
      // A class that shows no groups has one set of settings.
      this.optimizer.set(Object.assign({}, ...changes.map(([, settings]) => settings)))
      return
    }
    const old = changes.map(([group]) => ({ ...paramGroups[group] }))
    for (const [group, settings] of changes) Object.assign(paramGroups[group]!, settings)
    try {
      this.optimizer.set({})
    } catch (error) {
      for (const [i, [group]] of changes.entries()) Object.assign(paramGroups[group]!, old[i])
      throw error
    }
  }

  /** Each gradient's share of the norm, null for a parameter without, in the optimizer's order. */
  gradShares(contextId: bigint, normType: number): (Tensor | null)[] {
    return gradShares(this.parameters(), gradientsIn(contextId), normType)
  }

  /** In place, those of its parameters. */
  scaleGrads(contextId: bigint, factor: Tensor): void {
    scaleGrads(this.parameters(), gradientsIn(contextId), factor)
  }

  clampGrads(contextId: bigint, clipValue: number): void {
    clampGrads(this.parameters(), gradientsIn(contextId), clipValue)
  }

  /** Copies, by the places of this owner's parameters. */
  stateDict(): OptimizerState<object> {
    return this.optimizer.stateDict()
  }

  /** All or nothing. Until the next call of another method `undoLoad` takes it back, by its number; 0: nobody will. @throws STATE_DICT_MISMATCH, INVALID_ARGUMENT */
  loadStateDict(saved: OptimizerState<object>, load = 0): void {
    const state = this.optimizer.stateDict()
    this.optimizer.loadStateDict(saved)
    this.before = { load, state }
  }

  /** Does nothing if that load has not come here, or was refused. */
  undoLoad(load: number): void {
    if (this.before?.load !== load) return
    this.optimizer.loadStateDict(this.before.state)
    this.before = null
  }

  /** Whether a group could be added. If no other owner adds a part of it, only its parameters are waited for: `addGroup` adds all or nothing. @throws NOT_A_PARAMETER, and what addParamGroup throws */
  async checkGroup(params: RRef<Tensor>[], settings: GroupSettings, hasOthers: boolean): Promise<void> {
    const group = { ...settings, params: await valuesOf(params) }
    if (hasOthers) this.make([...this.optimizer.paramGroups.map((each) => ({ ...each })), group])
  }

  /** @throws NOT_AN_OPTIMIZER for one without groups to add to, and as checkGroup; nothing is added then */
  async addGroup(params: RRef<Tensor>[], settings: GroupSettings): Promise<void> {
    const group = { ...settings, params: await valuesOf(params) }
    const optimizer = this.optimizer as Optimizer & { addParamGroup?(group: object): void }
    if (typeof optimizer.addParamGroup !== 'function') throw notAnOptimizer(optimizer.constructor.name, 'one without addParamGroup')
    optimizer.addParamGroup(group)
    this.before = null
  }

  private parameters(): Tensor[] {
    return this.optimizer.paramGroups.flatMap(({ params }) => params)
  }
}

/** Makes the optimizer that is exposed under `name`, on the owner of the groups' parameters. */
export async function makeLocalOptimizer(name: string, groups: readonly OwnedGroup[], options: unknown): Promise<RRef<LocalOptimizer>> {
  const worker = currentRuntime()
  const { target, isClass } = worker.registry.lookup(name, worker.info.name)
  if (!isClass) throw notAnOptimizer(name, 'a function')
  const made: object[] = []
  for (const { params, settings } of groups) made.push({ ...settings, params: await valuesOf(params) })
  const make = (list: readonly object[]) => new (target as AnyClass)(list, options) as Optimizer
  // A class of a user's may know lists of parameters only.
  const isPlain = groups.length === 1 && Object.keys(groups[0]!.settings).length === 0
  const optimizer = make(isPlain ? (made[0] as { params: object[] }).params : made)
  return rref(new LocalOptimizer(optimizer, make))
}

/** This worker's gradients in a context; null where the context has not been. */
export function gradientsIn(contextId: bigint): Map<Tensor, Tensor> | null {
  try {
    return currentDistAutograd().container.retrieve(contextId, 'getGradients').gradientsSoFar()
  } catch (error) {
    if (isPostgradError(error, 'CONTEXT_NOT_FOUND')) return null
    throw error
  }
}

async function valuesOf(params: readonly RRef<Tensor>[]): Promise<Tensor[]> {
  const values = await Promise.all(params.map((param) => param.toHere()))
  values.forEach(checkParameter)
  return values
}

function checkParameter(value: unknown, index: number): void {
  // One that requires no grad (yet) just has no gradients.
  if (isTensor(value) && value.isLeaf) return
  throw new PostgradError('NOT_A_PARAMETER', {
    op: 'DistributedOptimizer',
    expected: `RRef ${index} to hold a leaf tensor`,
    got: isTensor(value) ? 'a tensor that was computed from others' : value === null ? 'null' : typeof value,
    remedy: "Pass RRefs to parameters, as rref(parameter) makes them on the parameter's owner.",
    values: { index },
  })
}

function notAnOptimizer(name: string, got: string): PostgradError {
  return new PostgradError('NOT_AN_OPTIMIZER', {
    op: 'DistributedOptimizer',
    expected: `a class of optimizers as '${name}'`,
    got,
    remedy: 'Pass a class such as SGD.',
    values: { name },
  })
}

expose({ 'postgrad.makeLocalOptimizer': makeLocalOptimizer, 'postgrad.LocalOptimizer': LocalOptimizer })
