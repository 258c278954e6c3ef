/**
 * Base of all optimizers: groups with their settings, the walk over parameters that have gradients, a state per parameter that can be
 * saved. An optimizer adds its formula (`update`), the checks of its settings and the layout of its state. PyTorch: `torch.optim.Optimizer`.
 */
import { enableGrad } from '@postgrad/autograd'
import { PostgradError } from '@postgrad/base'
import { isThenable, structuredClone } from '@postgrad/base/internal'
import { isTensor, type Tensor } from '@postgrad/tensor'
import { invalidArgument, OPTIMIZER_STEP, peekGrad, raw, sameShape, shapeText } from '@postgrad/tensor/internal'
import { ensureHeld } from '../module/held-members.js'
import type { Optimizer, OptimizerState, ParamGroup, ParamGroupOptions, ParamState } from './optimizer.js'
import { checkReduced } from './reduced-gradients.js'

/**
 * The type of each entry in the state of a parameter: a number, a tensor, or 'tensor?' if only some settings need the tensor. Tensors have the shape and dtype
 * of the parameter.
 */
export type StateLayout<State> = { readonly [Name in keyof State]-?: 'number' | 'tensor' | 'tensor?' }

/** A step that was computed and not taken: the next values of parameters and states, and what they were computed from. */
export interface PreparedStep {
  readonly age: number
  readonly entries: readonly PreparedEntry[]
}

interface PreparedEntry {
  readonly p: Tensor
  readonly version: number
  readonly grad: Tensor
  readonly gradVersion: number
  readonly settings: object
  readonly next: Tensor
  readonly state: ParamState | undefined
}

/** Classes whose formula keeps no gradient. A user's class, also one that extends these, may keep what it sees. */
const forgetful = new WeakSet<object>()
export function keepsNoGradient(optimizer: object): void {
  forgetful.add(optimizer)
}

/**
 * The base class of optimizers. Extend it to write your own; `DistributedOptimizer` accepts it like the built-in ones. PyTorch: `torch.optim.Optimizer`.
 * @example
 * class SignSGD extends OptimizerBase<{ lr: number }, Record<string, never>> {
 *   protected readonly layout = {}
 *   constructor(params: Iterable<Tensor>, lr: number) { super(params, { lr }, ['lr']) }
 *   protected check({ lr }: { lr: number }) { if (!(lr >= 0)) throw new Error('lr must not be negative') }
 *   protected update(p: Tensor, grad: Tensor, { lr }: { lr: number }) { noGrad(() => p.sub_(grad.sign().mul(lr))) }
 * }
 * const w = tensor([1, 2], { requiresGrad: true })
 * w.square().sum().backward()
 * new SignSGD([w], 0.1).step()
 * w // [0.9, 1.9]
 */
export abstract class OptimizerBase<Settings extends object, State extends ParamState> implements Optimizer<Settings> {
  /** The settings that a group has unless it says otherwise. */
  readonly defaults: Readonly<Settings>
  private readonly groups: ParamGroup<Settings>[] = []
  private readonly states = new Map<Tensor, State>()
  private steps = 0
  /** Counts what makes a prepared step stale, but for writes to parameters, gradients and settings. */
  private age = 0

  protected abstract readonly layout: StateLayout<State>

  /**
   * @param params parameters, or groups of them with settings of their own
   * @param known the settings that `options` may have
   * @throws INVALID_ARGUMENT if a setting is not valid; NO_PARAMETERS if the list is empty; DUPLICATE_PARAMETER if a parameter is listed twice;
   * PARAMETER_NOT_A_LEAF if a parameter was computed
   */
  protected constructor(
    params: Iterable<Tensor> | Iterable<ParamGroupOptions<Settings>>,
    defaults: Settings,
    known: readonly (keyof Settings & string)[],
  ) {
    const unknown = Object.keys(defaults).filter((name) => !(known as readonly string[]).includes(name))
    if (unknown.length > 0) throw invalidArgument(this.op, `settings ${known.join(', ')}`, unknown.join(', '), 'Check the names.')
    this.defaults = defaults
    const list: (Tensor | ParamGroupOptions<Settings>)[] = listOf(this.op, 'parameters, or groups of them', params)
    const elsewhere = (list as readonly unknown[]).find(isReference)
    if (elsewhere !== undefined) throw notOfThisWorker(this.op, elsewhere)
    const groups = list.some(isTensor) ? [{ params: list }] : list
    for (const group of groups) this.addParamGroup(group as ParamGroupOptions<Settings>)
    if (this.parameters().length > 0) return
    throw new PostgradError('NO_PARAMETERS', {
      op: this.op,
      expected: 'at least one parameter',
      got: 'none',
      remedy: 'Pass module.parameters().',
    })
  }

  /** The parameter groups with their settings. You may change the settings between steps. */
  get paramGroups(): readonly ParamGroup<Settings>[] {
    return this.groups
  }

  /** The number of steps since this object was made. From it a scheduler knows whether it was called too early. */
  get stepCount(): number {
    return this.steps
  }

  /**
   * Adds a group of parameters to the training, such as layers that were frozen so far. Settings that the group leaves out are those of the optimizer.
   * @throws INVALID_ARGUMENT if a setting is not valid; DUPLICATE_PARAMETER if a parameter is listed twice; PARAMETER_NOT_A_LEAF if a parameter was computed.
   * Nothing is added then
   */
  addParamGroup(options: ParamGroupOptions<Settings>): void {
    const params = listOf(this.op, 'parameters in a group { params, … }', (options as typeof options | null)?.params)
    const group = { ...this.defaults, ...options, params } as unknown as ParamGroup<Settings>
    this.check(group)
    checkParams(this.op, group.params, new Set(this.parameters()))
    this.groups.push(group)
    this.age++
  }

  /**
   * Changes the parameters in place by their gradients, without recording: by those in `grads` if it is given, else by `.grad`. A parameter without a gradient
   * stays unchanged, and so does its state. `step` does not write to the gradients, and reads nothing back from the device. With a closure, it calls the
   * closure, steps by `.grad`, and returns the result of the closure.
   * @throws GRAD_MISMATCH if a gradient in `grads` has another shape or dtype than its parameter; GRADIENTS_NOT_REDUCED if a gradient of a
   * DistributedDataParallel was not reduced over the ranks; MEMBER_REPLACED if a field of a module held a parameter and now holds something that does not
   * belong to the module. Nothing is changed then
   */
  step(grads?: ReadonlyMap<Tensor, Tensor>): void
  /**
   * Calls `closure` with recording on, then steps by `.grad`, and returns the result of the closure. The closure computes the loss and runs its backward pass.
   * @throws INVALID_ARGUMENT if the closure returns a promise, since its gradients would arrive after the step
   */
  step<Loss>(closure: () => Loss): Loss
  step<Loss>(from?: ReadonlyMap<Tensor, Tensor> | (() => Loss)): Loss | undefined {
    const loss = typeof from === 'function' ? this.evaluate(from) : undefined
    const grads = typeof from === 'function' ? undefined : from
    if (grads !== undefined) this.checkGrads(grads)
    const [op, parameters] = [`${this.op}.step`, this.parameters()]
    checkReduced(op, parameters, grads)
    ensureHeld(op, parameters)
    this.age++
    const keepsNone = forgetful.has(this.constructor)
    for (const group of this.groups) {
      for (const p of group.params) {
        const grad = grads !== undefined ? (grads.get(p) ?? null) : keepsNone ? peekGrad(p) : p.grad
        if (grad === null) continue
        this.update(p, grad, group)
        p.storage.writer = OPTIMIZER_STEP
        const state = this.states.get(p)
        // The state outlives a memoryScope around the step.
        if (state !== undefined) for (const name in state) if (isTensor(state[name])) state[name].storage.isKept = true
      }
    }
    this.steps++
    return loss
  }

  /**
   * Computes copies of parameters and states as `step(grads)` would make them; changes nothing. For gradients that are known before it is known whether
   * the step will be taken. @internal
   * @param changes settings that will hold by then, by group
   */
  prepare(grads: ReadonlyMap<Tensor, Tensor>, changes: ReadonlyMap<number, Partial<Settings>> = new Map()): PreparedStep {
    this.checkGrads(grads)
    const entries: PreparedEntry[] = []
    for (const [index, group] of this.groups.entries()) {
      const { params, ...own } = { ...group, ...changes.get(index) }
      const settings = own as unknown as Settings
      for (const p of params) {
        const grad = grads.get(p)
        if (grad === undefined) continue
        const [version, gradVersion] = [p.storage.version, grad.storage.version]
        const next = raw.clone(p)
        const before = this.states.get(p)
        if (before !== undefined) this.states.set(next, mapTensors(before, raw.clone) as State)
        try {
          this.update(next, grad, settings)
        } finally {
          const state = this.states.get(next)
          this.states.delete(next)
          entries.push({ p, version, grad, gradVersion, settings, next, state })
        }
      }
    }
    return { age: this.age, entries }
  }

  /**
   * Takes a prepared step if it is still what `step(grads)` would do: the same gradients, and no parameter, gradient, state or setting changed since.
   * @returns whether it did. @internal
   */
  take({ age, entries }: PreparedStep, grads: ReadonlyMap<Tensor, Tensor>): boolean {
    if (age !== this.age) return false
    let at = 0
    for (const { params, ...settings } of this.groups) {
      for (const p of params) {
        const grad = grads.get(p)
        if (grad === undefined) continue
        const entry = entries[at++]
        if (entry?.p !== p || entry.grad !== grad || entry.version !== p.storage.version) return false
        if (entry.gradVersion !== grad.storage.version || !sameSettings(entry.settings, settings)) return false
      }
    }
    if (at !== entries.length) return false
    for (const { p, next, state } of entries) {
      raw.copy_(p, next)
      p.storage.writer = OPTIMIZER_STEP
      if (state === undefined) continue
      for (const value of Object.values(state)) if (isTensor(value)) value.storage.isKept = true
      this.states.set(p, state as State)
    }
    this.age++
    this.steps++
    return true
  }

  set(settings: Partial<Settings>): void {
    for (const group of this.groups) {
      const known = Object.keys(group).filter((name) => name !== 'params')
      // A name with a slip would change nothing, in silence.
      const unknown = Object.keys(settings).filter((name) => !known.includes(name))
      if (unknown.length > 0) throw invalidArgument(this.op, `settings ${known.join(', ')}`, unknown.join(', '), 'Check the names.')
      this.checkScheduled({ ...group, ...settings })
    }
    for (const group of this.groups) Object.assign(group, settings)
  }

  zeroGrad(): void {
    for (const p of this.parameters()) p.grad = null
  }

  /** A copy of the settings and of the state of each parameter. Later steps do not change it. */
  stateDict(): OptimizerState<Settings> {
    const places = new Map(this.parameters().map((p, place) => [p, place]))
    return {
      state: Object.fromEntries([...this.states].map(([p, state]) => [places.get(p)!, mapTensors(state, raw.clone)])),
      paramGroups: this.groups.map(({ params, ...settings }) => ({
        ...structuredClone(settings as unknown as Settings),
        params: params.map((p) => places.get(p)!),
      })),
    }
  }

  /**
   * Loads the settings of all groups and the state of all parameters, converted to the parameters' dtypes and moved to their devices. Later steps compute the
   * same bits as the optimizer that was saved. If it throws, nothing is changed.
   * @throws STATE_DICT_MISMATCH if the state does not fit; INVALID_ARGUMENT if the constructor would refuse a setting (except a negative lr, since a scheduler
   * may set one)
   */
  loadStateDict(saved: OptimizerState<Settings>): void {
    if (!isState(saved)) throw this.mismatch('{ state, paramGroups }, as stateDict() gives', describe(saved))
    const { state, paramGroups } = saved
    const sizes = (groups: readonly { readonly params: readonly unknown[] }[]) => groups.map(({ params }) => params.length).join(', ')
    if (sizes(paramGroups) !== sizes(this.groups)) {
      throw this.mismatch(`groups of ${sizes(this.groups)} parameters`, sizes(paramGroups))
    }
    const groups = this.groups.map((group, i) => {
      const { params: _, ...settings } = structuredClone(paramGroups[i]!)
      const next = { ...this.defaults, ...settings, params: group.params } as unknown as ParamGroup<Settings>
      this.checkScheduled(next)
      return next
    })
    const params = this.parameters()
    // A saved group may list its parameters by any numbers: they fit by order, as in PyTorch.
    const numbers = paramGroups.flatMap((group) => group.params)
    const states = new Map<Tensor, State>()
    for (const [place, p] of params.entries()) {
      const saved = state[numbers[place]!]
      if (saved !== undefined) states.set(p, this.restored(saved, p, place))
    }
    for (const [i, group] of groups.entries()) {
      for (const name of Object.keys(this.groups[i]!)) if (!(name in group)) delete this.groups[i]![name as keyof ParamGroup<Settings>]
      Object.assign(this.groups[i]!, group)
    }
    this.age++
    this.states.clear()
    for (const [p, entry] of states) this.states.set(p, entry)
  }

  /** The name in errors. */
  protected get op(): string {
    return this.constructor.name
  }

  /** @throws INVALID_ARGUMENT for a setting that makes no sense */
  protected abstract check(settings: Settings): void

  /** One parameter's step, by raw operations: a step is never recorded, whatever the grad mode around it. May not write to `grad` or keep it. */
  protected abstract update(p: Tensor, grad: Tensor, settings: Settings): void

  /** What was gathered about `p`, made by `initial` at its first step. */
  protected stateOf(p: Tensor, initial: () => State): State {
    let state = this.states.get(p)
    if (state === undefined) {
      state = initial()
      this.states.set(p, state)
    }
    return state
  }

  /** As `check`, but a schedule may have led the rate below 0, if only by rounding: such a training may continue. */
  private checkScheduled(settings: Settings): void {
    const { lr } = settings as { lr?: unknown }
    this.check(typeof lr === 'number' ? { ...settings, lr: Math.abs(lr) } : settings)
  }

  private parameters(): readonly Tensor[] {
    return this.groups.length === 1 ? this.groups[0]!.params : this.groups.flatMap((group) => group.params)
  }

  private evaluate<Loss>(closure: () => Loss): Loss {
    const loss = enableGrad(closure)
    if (isThenable(loss)) {
      throw invalidArgument(`${this.op}.step`, 'a closure that returns its loss', 'a promise', 'Await the loss first, then call step().')
    }
    return loss
  }

  private checkGrads(grads: ReadonlyMap<Tensor, Tensor>): void {
    if (typeof grads.get !== 'function') {
      throw invalidArgument(`${this.op}.step`, 'a Map of gradients, a closure, or nothing', describe(grads))
    }
    for (const { params } of this.groups) for (const p of params) this.checkGrad(p, grads.get(p))
  }

  private checkGrad(p: Tensor, grad: Tensor | undefined): void {
    if (grad !== undefined && !(grad.dtype === p.dtype && sameShape(grad.shape, p.shape))) {
      throw new PostgradError('GRAD_MISMATCH', {
        op: `${this.op}.step`,
        expected: `a gradient of shape ${shapeText(p.shape)} and dtype ${p.dtype}`,
        got: `shape ${shapeText(grad.shape)} and dtype ${grad.dtype}`,
        remedy: 'Give each parameter a gradient of its own shape and dtype.',
        values: { expected: [...p.shape], got: [...grad.shape] },
      })
    }
  }

  /** A copy of a saved entry that fits `p`. */
  private restored(saved: ParamState, p: Tensor, place: number): State {
    const layout = this.layout as Readonly<Record<string, 'number' | 'tensor' | 'tensor?'>>
    for (const name of Object.keys(saved)) {
      if (layout[name] === undefined) throw this.mismatch(`${Object.keys(layout).join(', ')} for parameter ${place}`, name)
    }
    for (const [name, kind] of Object.entries(layout)) {
      const value = saved[name]
      if (value === undefined ? kind === 'tensor?' : kind === 'number' ? Number.isFinite(value) : fits(value, p)) continue
      const expected = kind === 'number' ? 'a finite number' : `a tensor of shape ${shapeText(p.shape)}`
      throw this.mismatch(
        `${name} for parameter ${place}: ${expected}`,
        isTensor(value) ? `a tensor of shape ${shapeText(value.shape)}` : String(value),
      )
    }
    return mapTensors(saved, (t) => {
      const there = raw.to(t, p.device, p.dtype)
      return there === t ? raw.clone(t) : there
    }) as State
  }

  private mismatch(expected: string, got: string): PostgradError {
    return new PostgradError('STATE_DICT_MISMATCH', {
      op: `${this.op}.loadStateDict`,
      expected,
      got,
      remedy: 'Load it into an optimizer of the same class over the same parameters in the same groups.',
    })
  }
}

/** @throws INVALID_ARGUMENT unless it is a list, not a tensor alone, a module or an uncalled method */
function listOf(op: string, expected: string, list: Iterable<unknown> | undefined): Tensor[] {
  if (isTensor(list)) throw invalidArgument(op, expected, 'a tensor', 'Wrap it in an array.')
  if (isReference(list)) throw notOfThisWorker(op, list)
  if (isThenable(list)) throw invalidArgument(op, expected, 'a promise', 'Await it.')
  if (typeof list?.[Symbol.iterator] !== 'function') throw invalidArgument(op, expected, describe(list), 'Pass module.parameters().')
  return [...list] as Tensor[]
}

/** A reference of rpc, which this package does not know: it is recognised by its fields. */
interface Reference {
  readonly rrefId: bigint
  ownerName(): string
}

function isReference(value: unknown): value is Reference {
  const { rrefId, ownerName } = (value ?? {}) as Partial<Reference>
  return typeof rrefId === 'bigint' && typeof ownerName === 'function'
}

function notOfThisWorker(op: string, reference: Reference): PostgradError {
  return invalidArgument(
    op,
    'tensors of this worker',
    `a reference to a tensor of worker '${reference.ownerName()}'`,
    `Write new DistributedOptimizer(${op}, references, { lr }), and await optimizer.step(ctx).`,
  )
}

/** Numbers, flags and lists of numbers. */
function sameSettings(a: object, b: object): boolean {
  const [names, others] = [Object.keys(a), Object.keys(b)]
  const same = (x: unknown, y: unknown): boolean =>
    Array.isArray(x) && Array.isArray(y) ? x.length === y.length && x.every((each, i) => Object.is(each, y[i])) : Object.is(x, y)
  return names.length === others.length && names.every((name) => same(a[name as never], b[name as never]))
}

const describe = (value: unknown): string => (value === null ? 'null' : Array.isArray(value) ? 'an array' : typeof value)

function isState(value: unknown): boolean {
  const { state, paramGroups } = (value ?? {}) as { state?: unknown; paramGroups?: unknown }
  const isGroup = (group: unknown) => Array.isArray((group as { params?: unknown } | null)?.params)
  return typeof state === 'object' && state !== null && Array.isArray(paramGroups) && paramGroups.every(isGroup)
}

function fits(value: Tensor | number, p: Tensor): boolean {
  return isTensor(value) && sameShape(value.shape, p.shape)
}

function mapTensors(state: ParamState, fn: (t: Tensor) => Tensor): ParamState {
  return Object.fromEntries(Object.entries(state).map(([name, value]) => [name, isTensor(value) ? fn(value) : value]))
}

function checkParams(op: string, params: readonly Tensor[], others: ReadonlySet<Tensor>): void {
  for (const p of params) {
    if (isReference(p)) throw notOfThisWorker(op, p)
    if (!isTensor(p)) throw invalidArgument(op, 'parameters that are tensors', p === null ? 'null' : typeof p)
  }
  if (new Set(params).size !== params.length || params.some((p) => others.has(p))) {
    throw new PostgradError('DUPLICATE_PARAMETER', {
      op,
      message: 'a parameter is listed more than once',
      remedy: 'List each parameter once, in one group.',
    })
  }
  const at = params.findIndex((p) => !p.isLeaf)
  if (at >= 0) {
    throw new PostgradError('PARAMETER_NOT_A_LEAF', {
      op,
      expected: 'parameters that are leaves',
      got: `parameter ${at}, which was computed from others`,
      remedy: 'Pass the parameters themselves, or detach() the tensor first.',
    })
  }
}
