/**
 * An optimizer over parameters that live on several workers: one local optimizer per owner, all stepped at once with the gradients of a
 * distributed context. Its groups are here, where schedulers change them (`optimizer-groups.ts`); its owners' side is `local-optimizer.ts`. PyTorch:
 * `torch.distributed.optim.DistributedOptimizer`.
 */
import { PostgradError } from '@postgrad/base'
import { structuredClone } from '@postgrad/base/internal'
import type { DistAutogradContext, PassOptimizer } from '@postgrad/dist-autograd'
import {
  Adadelta,
  Adagrad,
  Adam,
  Adamax,
  AdamW,
  NAdam,
  type OptimizerState,
  type ParamState,
  RAdam,
  RMSprop,
  Rprop,
  SGD,
  SparseAdam,
} from '@postgrad/nn'
import { type CallOptions, call, expose, type RRef, type WorkerInfo } from '@postgrad/rpc'
import { currentRuntime } from '@postgrad/rpc/internal'
import type { Tensor } from '@postgrad/tensor'
import { checkOptions } from '@postgrad/tensor/internal'
import { type ClipNormOptions, type ClipPart, clipNormOver, clipValueOver, contextIdOf, limitsOf, NORM_OPTIONS } from './clip-grad.js'
import { inAnyCase } from './in-any-case.js'
import { type GroupSettings, type LocalOptimizer, makeLocalOptimizer, type OptimizerClass } from './local-optimizer.js'
import {
  assign,
  type DistributedGroupOptions,
  type DistributedParamGroup,
  groupsOf,
  OptimizerGroups,
  type OwnedGroups,
  unassign,
} from './optimizer-groups.js'

/** The options of an optimizer class: the type of the second argument of its constructor. */
export type OptionsOf<C extends OptimizerClass> = ConstructorParameters<C>[1]

/** The settings of one parameter group of an optimizer class. */
export type SettingsOf<C extends OptimizerClass> = Omit<InstanceType<C>['paramGroups'][number], 'params'>

/** Options of `DistributedOptimizer.step`. */
export interface StepOptions<Settings = object> extends CallOptions {
  /** Settings for this step and later ones, for every group. They travel with the step, so they cost no extra message. */
  readonly settings?: Partial<Settings>
}

const STEP_OPTIONS = ['settings', 'timeoutMs', 'signal', 'ordered'] as const

/** Of `checkpointParts`. */
export interface GroupsState {
  stateDict(): unknown
  loadStateDict(saved: unknown): void
}

/** How the making of an owner's optimizer ended; waiting for it never throws, so that nothing stays unhandled if nobody steps. */
type Made = { readonly optimizer: RRef<LocalOptimizer> } | { readonly error: unknown }

interface Part {
  readonly owned: OwnedGroups
  readonly made: Promise<Made>
  /** Once it is known. */
  optimizer: RRef<LocalOptimizer> | null
}

/**
 * An optimizer over parameters of several workers. Each owner has an optimizer of the given class, and all step with the gradients of a context. PyTorch:
 * `torch.distributed.optim.DistributedOptimizer`.
 * @example
 * const model = new RemoteModule('worker1', Linear, [2, 4]) // the program has: expose({ Linear })
 * const optimizer = new DistributedOptimizer(Adam, await model.remoteParameters(), { lr: 1e-3 })
 * await distAutograd.context(async (ctx) => {
 *   const loss = (await model.forward(x)).square().mean()
 *   await ctx.backward([loss])
 *   await optimizer.step(ctx)
 * })
 */
export class DistributedOptimizer<C extends OptimizerClass = OptimizerClass> implements PassOptimizer {
  private readonly optimizerClass: C
  private readonly options: OptionsOf<C>
  private readonly name: string
  private readonly groups: OptimizerGroups
  private readonly owners = new Map<number, OwnedGroups>()
  private readonly parts = new Map<OwnedGroups, Part>()
  private disposed = false
  private steps = 0
  /** Calls of `loadStateDict`, so that the undoing of one does not undo an earlier one. */
  private loads = 0

  /**
   * Makes an optimizer of the class on every owner of `params`. The class must be exposed on the owners; the classes of `postgrad/optim` are. The constructor
   * does not wait for the owners; `ready()` and the first `step` do. When this worker first needs settings (`paramGroups`, settings of a step, a state), it
   * makes an optimizer here, too. That one has a parameter of one element for each group, and checks settings.
   * @param params references to parameters, or groups of them with settings of their own; settings that a group leaves out are those of the optimizer.
   * You may dispose of the references as soon as the constructor has returned: the owners keep the parameters
   * @throws NO_PARAMETERS, INVALID_ARGUMENT or DUPLICATE_PARAMETER if the parameters or options are not valid; FUNCTION_NOT_EXPOSED if the class is not
   * exposed; RPC_NOT_INITIALIZED if the code does not run on a worker
   */
  constructor(
    optimizerClass: C,
    params: Iterable<RRef<Tensor>> | Iterable<DistributedGroupOptions<SettingsOf<C>>>,
    options: OptionsOf<C> = {} as OptionsOf<C>,
  ) {
    this.name = currentRuntime().registry.nameOf(optimizerClass)
    this.optimizerClass = optimizerClass
    this.options = options
    this.groups = new OptimizerGroups(optimizerClass, options as GroupSettings)
    const list = groupsOf(params as Iterable<RRef<Tensor>>)
    this.groups.add(list)
    for (const owned of assign(this.groups, 0, this.owners)) this.parts.set(owned, this.makePart(owned, list))
  }

  /**
   * The parameter groups with their settings. You may change the settings, or let a scheduler of `postgrad/optim` do so. Changed settings are checked before
   * the next step, and travel with it.
   */
  get paramGroups(): readonly DistributedParamGroup<SettingsOf<C>>[] {
    return this.groups.asked() as unknown as readonly DistributedParamGroup<SettingsOf<C>>[]
  }

  /** The number of steps that all owners have taken since this object was made. From it a scheduler knows whether it was called too early. */
  get stepCount(): number {
    return this.steps
  }

  /**
   * Waits until every owner has its optimizer.
   * @throws OPTIMIZER_CREATION_FAILED if an owner fails: `values.owners` names the owners, and the cause is the first owner's error
   */
  async ready(): Promise<void> {
    await this.optimizers()
  }

  /**
   * Steps the parameters of every owner by their gradients in a context, given as an object or by its id. A parameter without a gradient does not change.
   * Resolves when all owners have stepped. Each owner runs the steps of several callers one after the other; the order may differ between owners. `zeroGrad` is
   * not needed: gradients belong to the context and end with it, so use one context per batch.
   * @param context a context, or its id
   * @throws INVALID_ARGUMENT if the class refuses a setting; CONTEXT_NOT_FOUND or CONTEXT_RELEASED if the context does not exist; PASS_UNDER_WAY if a pass that
   * this program began on this worker in the context has not ended; OPTIMIZER_DISPOSED or OPTIMIZER_CREATION_FAILED if the optimizer does not exist (no owner
   * has stepped then); OPTIMIZER_STEP_FAILED if an owner fails. Its `values.owners` names owners that failed, and `values.stepped` owners that have stepped,
   * which is not undone; its cause is the first owner's error. An owner that died, or did not answer in time, may have stepped or not
   */
  async step(context: DistAutogradContext | bigint, given: StepOptions<OptionsOf<C>> = {}): Promise<void> {
    checkOptions('DistributedOptimizer.step', given, STEP_OPTIONS)
    const { settings, ...options } = given
    const contextId = contextIdOf(context, 'DistributedOptimizer.step')
    if (this.disposed) throw disposedError()
    if (settings !== undefined) this.groups.set(settings as GroupSettings)
    else this.groups.check()
    await this.onAll('step', 'OPTIMIZER_STEP_FAILED', (optimizer, owned) =>
      optimizer.call('step', [contextId, owned.takeChanges(this.groups)], options),
    )
    this.steps++
  }

  /**
   * Announces to the owners that a step will follow the context's next pass. Each owner then computes its step as soon as its gradients are final, which saves
   * time if a step is long. It costs one call to each owner, without waiting, and memory for a copy of parameters and state. `ctx.backward(roots, { optimizer
   * })` calls it.
   */
  announce(context: DistAutogradContext): void {
    if (this.disposed) return
    try {
      this.groups.check()
    } catch {
      // The step will say it.
      return
    }
    for (const { optimizer, owned } of this.parts.values()) {
      // If this fails, the step computes it, or throws.
      optimizer?.call('announce', [context.id, owned.changes(this.groups)], { timeoutMs: 0 }).catch(() => {})
    }
  }

  /** The same as the function `clipGradNorm`, over all parameters of this optimizer. It sends no references to them. */
  async clipGradNorm(context: DistAutogradContext | bigint, maxNorm: number, options: ClipNormOptions = {}): Promise<Tensor> {
    const contextId = contextIdOf(context, 'clipGradNorm')
    return await clipNormOver(await this.clipParts(limitsOf('clipGradNorm', options, NORM_OPTIONS)), contextId, maxNorm, options)
  }

  /** The same as the function `clipGradValue`, over all parameters of this optimizer. It sends no references to them. */
  async clipGradValue(context: DistAutogradContext | bigint, clipValue: number, options: CallOptions = {}): Promise<void> {
    const contextId = contextIdOf(context, 'clipGradValue')
    await clipValueOver(await this.clipParts(limitsOf('clipGradValue', options)), contextId, clipValue)
  }

  /**
   * Adds a group of parameters to the training. Settings that the group leaves out are those of the optimizer. Await it before the next step. `options` limit
   * the time in which the owners check the group. Once all have agreed, they add it, also after an abort. If the call fails, no worker has added anything,
   * unless an owner died meanwhile.
   * @throws NO_PARAMETERS, INVALID_ARGUMENT or DUPLICATE_PARAMETER if the group is not valid; OPTIMIZER_DISPOSED or OPTIMIZER_CREATION_FAILED if the optimizer
   * does not exist; OPTIMIZER_GROUP_REFUSED if an owner refuses the group: `values.owners` names the owners, and the cause is the first owner's error, such as
   * NOT_A_PARAMETER
   */
  async addParamGroup(group: DistributedGroupOptions<SettingsOf<C>>, options: CallOptions = {}): Promise<void> {
    if (this.disposed) throw disposedError()
    await this.optimizers()
    const first = this.groups.groups.length
    const place = this.groups.size
    this.groups.add([group as DistributedGroupOptions])
    const { params: _, ...settings } = group as DistributedGroupOptions<GroupSettings>
    const touched = [...assign(this.groups, first, this.owners)]
    const old = touched.filter((owned) => this.parts.has(owned))
    const fresh = touched.filter((owned) => !this.parts.has(owned))
    const made: Part[] = fresh.map((owned) => this.makePart(owned, [group as DistributedGroupOptions]))
    try {
      const added = (owned: OwnedGroups) => [owned.params.at(-1)!, settings as GroupSettings] as const
      const hasOthers = touched.length > 1
      await this.onSome(old, 'OPTIMIZER_GROUP_REFUSED', (optimizer, owned) =>
        optimizer.call('checkGroup', [...added(owned), hasOthers], options),
      )
      await settled('addParamGroup', 'OPTIMIZER_GROUP_REFUSED', made)
      // All have agreed: an end in the middle would leave the group with some of them.
      await inAnyCase((limits) =>
        this.onSome(old, 'OPTIMIZER_GROUP_REFUSED', (optimizer, owned) => optimizer.call('addGroup', [...added(owned)], limits)),
      )
    } catch (error) {
      unassign(first, place, this.owners)
      this.groups.drop(1)
      for (const part of made) giveUp(part)
      throw error
    }
    for (const part of made) this.parts.set(part.owned, part)
    for (const owned of old) owned.forget()
  }

  /**
   * The settings of all groups and copies of the state of all parameters, gathered from their owners. Await earlier steps before you call it. The state has the
   * layout of a local optimizer's state dict. So a local optimizer over the same parameters in the same groups can load it, and `toTorchOptimizerState` can
   * convert it.
   * @throws OPTIMIZER_DISPOSED or OPTIMIZER_CREATION_FAILED if the optimizer does not exist; OPTIMIZER_STATE_FAILED if an owner fails: `values.owners` names
   * the owners, and the cause is the first owner's error
   */
  async stateDict(options: CallOptions = {}): Promise<OptimizerState<SettingsOf<C>>> {
    if (this.disposed) throw disposedError()
    const gathered = await this.onAll('stateDict', 'OPTIMIZER_STATE_FAILED', async (optimizer, { places }) => {
      const { state } = await optimizer.call('stateDict', [], options)
      return Object.entries(state).map(([own, entry]) => [places[Number(own)]!, entry] as const)
    })
    const entries = gathered.flat().sort(([a], [b]) => a - b)
    return {
      state: Object.fromEntries(entries),
      paramGroups: this.plainGroups() as unknown as OptimizerState<SettingsOf<C>>['paramGroups'],
    }
  }

  /**
   * Loads the settings of all groups and the state of all parameters, and sends them to the owners. `saved` is the state dict of a DistributedOptimizer, or of
   * a local optimizer over the same parameters in the same groups. Either all owners load it or none, unless one dies meanwhile. If the load is aborted or its
   * time is over, it rejects as soon as the owners have restored their old state.
   * @throws STATE_DICT_MISMATCH or INVALID_ARGUMENT if the state does not fit; OPTIMIZER_DISPOSED or OPTIMIZER_CREATION_FAILED if the optimizer does not exist;
   * OPTIMIZER_STATE_FAILED if an owner fails: `values.owners` names the owners, and the cause is the first owner's error, such as STATE_DICT_MISMATCH if a
   * shape differs
   */
  async loadStateDict(saved: OptimizerState<SettingsOf<C>>, options: CallOptions = {}): Promise<void> {
    if (this.disposed) throw disposedError()
    const { state, paramGroups } = this.checkedState(saved)
    const settings = paramGroups.map(({ params: _, ...rest }) => rest as GroupSettings)
    this.groups.checkSaved(settings)
    // A saved group may list its parameters by any numbers: they fit by order, as in PyTorch.
    const numbers = paramGroups.flatMap(({ params }) => params)
    const load = ++this.loads
    try {
      await this.onAll('loadStateDict', 'OPTIMIZER_STATE_FAILED', (optimizer, owned) => {
        const own: Record<number, ParamState> = {}
        for (const [place, global] of owned.places.entries()) {
          const entry = state[numbers[global]!]
          if (entry !== undefined) own[place] = entry
        }
        let place = 0
        const groups = owned.groups.map((index, i) => ({ ...settings[index], params: owned.params[i]!.map(() => place++) }))
        return optimizer.call('loadStateDict', [{ state: own, paramGroups: groups }, load], options)
      })
    } catch (error) {
      // Those that have taken it over take it back; of one that cannot be reached its end is known.
      const all = await this.optimizers()
      await inAnyCase((limits) => Promise.allSettled(all.map(({ optimizer }) => optimizer.call('undoLoad', [load], limits))))
      throw error
    }
    this.groups.load(settings)
    for (const owned of this.parts.keys()) owned.noteSent(this.groups)
  }

  /**
   * The parts for a checkpoint of the cluster: the owners' optimizers, each by its owner, and this object's settings and places. To be loaded
   * together, on all of them. @internal
   */
  checkpointParts(): { readonly owners: RRef<LocalOptimizer>[] | Promise<RRef<LocalOptimizer>[]>; readonly groups: GroupsState } {
    if (this.disposed) throw disposedError()
    const known = [...this.parts.values()].flatMap(({ optimizer }) => (optimizer === null ? [] : [optimizer]))
    const owners = known.length === this.parts.size ? known : this.optimizers().then((all) => all.map(({ optimizer }) => optimizer))
    const stateDict = () => ({
      paramGroups: this.plainGroups(),
      places: Object.fromEntries([...this.parts.keys()].map(({ owner, places }) => [owner.name, [...places]])),
    })
    const loadStateDict = (saved: ReturnType<typeof stateDict>) => {
      const { places } = stateDict()
      const text = (all: typeof places) => JSON.stringify(Object.entries(all).sort(([a], [b]) => (a < b ? -1 : 1)))
      if (text(places) !== text(saved.places)) throw mismatch(this.optimizerClass.name, `parameters as ${text(saved.places)}`, text(places))
      const { paramGroups } = this.checkedState({ state: {}, paramGroups: saved.paramGroups } as unknown as OptimizerState<SettingsOf<C>>)
      const settings = paramGroups.map(({ params: _, ...rest }) => rest as GroupSettings)
      this.groups.checkSaved(settings)
      this.groups.load(settings)
      for (const owned of this.parts.keys()) owned.forget()
    }
    return { owners, groups: { stateDict, loadStateDict } as GroupsState }
  }

  /** Drops the optimizers of all owners with their state, such as momentum. A later `step` rejects with OPTIMIZER_DISPOSED. A second call does nothing. */
  dispose(): void {
    this.disposed = true
    for (const part of this.parts.values()) giveUp(part)
  }

  [Symbol.dispose](): void {
    this.dispose()
  }

  private makePart(owned: OwnedGroups, list: readonly DistributedGroupOptions[]): Part {
    const first = this.groups.groups.length - list.length
    const groups = owned.groups.map((index, i) => {
      const { params: _, ...settings } = list[index - first] as DistributedGroupOptions<GroupSettings>
      return { params: owned.params[i]!, settings: settings as GroupSettings }
    })
    const made: Promise<Made> = call(owned.owner, makeLocalOptimizer, [this.name, groups, this.options]).then(
      (optimizer) => {
        part.optimizer = optimizer
        return { optimizer }
      },
      (error: unknown) => ({ error }),
    )
    const part: Part = { owned, made, optimizer: null }
    owned.noteSent(this.groups)
    return part
  }

  private async optimizers(): Promise<{ owned: OwnedGroups; optimizer: RRef<LocalOptimizer> }[]> {
    return await settled('DistributedOptimizer', 'OPTIMIZER_CREATION_FAILED', [...this.parts.values()])
  }

  private onAll<T>(op: string, code: string, fn: Ask<T>): Promise<T[]> {
    const parts = [...this.parts.values()]
    const areReady = parts.every(({ optimizer }) => optimizer !== null)
    return areReady ? askAll(op, code, parts, fn) : this.optimizers().then(() => askAll(op, code, parts, fn))
  }

  private async onSome<T>(owners: readonly OwnedGroups[], code: string, fn: Ask<T>): Promise<T[]> {
    return await askAll(
      'addParamGroup',
      code,
      owners.map((owned) => this.parts.get(owned)!),
      fn,
    )
  }

  private async clipParts(limits: CallOptions): Promise<ClipPart[]> {
    if (this.disposed) throw disposedError()
    return (await this.optimizers()).map(({ owned, optimizer }) => ({
      owner: owned.owner,
      places: owned.places,
      shares: (contextId, normType) => optimizer.call('gradShares', [contextId, normType], limits),
      scale: (contextId, factor) => optimizer.call('scaleGrads', [contextId, factor], limits),
      clamp: (contextId, clipValue) => optimizer.call('clampGrads', [contextId, clipValue], limits),
    }))
  }

  private plainGroups(): (GroupSettings & { readonly params: readonly number[] })[] {
    let place = 0
    return this.groups.asked().map(({ params, ...settings }) => ({ ...structuredClone(settings), params: params.map(() => place++) }))
  }

  private checkedState(saved: OptimizerState<SettingsOf<C>>): OptimizerState<GroupSettings> {
    const { state, paramGroups } = (saved ?? {}) as Partial<OptimizerState<GroupSettings>>
    const isGroup = (group: unknown) => Array.isArray((group as { params?: unknown } | null)?.params)
    if (typeof state !== 'object' || state === null || !Array.isArray(paramGroups) || !paramGroups.every(isGroup)) {
      throw mismatch(this.optimizerClass.name, '{ state, paramGroups }, as stateDict() gives', saved === null ? 'null' : typeof saved)
    }
    const sizes = (groups: readonly { readonly params: readonly unknown[] }[]) => groups.map(({ params }) => params.length).join(', ')
    if (sizes(paramGroups) !== sizes(this.groups.groups)) {
      throw mismatch(this.optimizerClass.name, `groups of ${sizes(this.groups.groups)} parameters`, sizes(paramGroups))
    }
    return { state, paramGroups }
  }
}

type Ask<T> = (optimizer: RRef<LocalOptimizer>, owned: OwnedGroups) => PromiseLike<T>

async function askAll<T>(op: string, code: string, parts: readonly Part[], fn: Ask<T>): Promise<T[]> {
  const ends = await Promise.allSettled(parts.map(({ optimizer, owned }) => fn(optimizer!, owned)))
  const failed: { readonly owner: WorkerInfo; readonly error: unknown }[] = []
  const done: string[] = []
  for (const [i, end] of ends.entries()) {
    const { owned } = parts[i]!
    if (end.status === 'fulfilled') done.push(owned.owner.name)
    else {
      owned.forget()
      failed.push({ owner: owned.owner, error: end.reason })
    }
  }
  throwFirst(code, op, failed, op === 'step' ? { stepped: done } : {})
  return ends.map((end) => (end as PromiseFulfilledResult<T>).value)
}

async function settled(
  op: string,
  code: string,
  parts: readonly Part[],
): Promise<{ owned: OwnedGroups; optimizer: RRef<LocalOptimizer> }[]> {
  const made = await Promise.all(parts.map(async ({ owned, made: part }) => ({ owned, ...(await part) })))
  throwFirst(
    code,
    op,
    made.flatMap((part) => ('error' in part ? [{ owner: part.owned.owner, error: part.error }] : [])),
  )
  return made as { owned: OwnedGroups; optimizer: RRef<LocalOptimizer> }[]
}

function giveUp({ made }: Part): void {
  void made.then((part) => 'optimizer' in part && part.optimizer.dispose())
}

function disposedError(): PostgradError {
  return new PostgradError('OPTIMIZER_DISPOSED', {
    op: 'DistributedOptimizer',
    message: 'this optimizer has been disposed',
    remedy: 'Dispose of it after its last step.',
  })
}

function mismatch(name: string, expected: string, got: string): PostgradError {
  return new PostgradError('STATE_DICT_MISMATCH', {
    op: `DistributedOptimizer(${name}).loadStateDict`,
    expected,
    got,
    remedy: 'Load it into an optimizer of the same class over the same parameters in the same groups.',
  })
}

function throwFirst(
  code: string,
  op: string,
  failures: readonly { readonly owner: WorkerInfo; readonly error: unknown }[],
  more: { readonly stepped?: readonly string[] } = {},
): void {
  const [first] = failures
  if (first === undefined) return
  const names = failures.map(({ owner }) => owner.name)
  const list = (workers: readonly string[]) => workers.map((name) => `'${name}'`).join(', ')
  const why = first.error instanceof Error ? first.error.message : String(first.error)
  const { stepped = [] } = more
  throw new PostgradError(code, {
    op,
    message: `the optimizer on ${list(names)} failed${stepped.length === 0 ? '' : `, and those on ${list(stepped)} have stepped`}: ${why}`,
    remedy: op === 'step' ? 'See the cause; the steps of other owners are not undone: continue, or load a checkpoint.' : 'See the cause.',
    cause: first.error,
    values: { owners: names, ...more },
  })
}

expose({ SGD, Adadelta, Adagrad, Adam, Adamax, AdamW, NAdam, RAdam, RMSprop, Rprop, SparseAdam })
