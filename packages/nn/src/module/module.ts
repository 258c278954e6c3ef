/**
 * Module: a tree of named parameters and buffers, and a forward. A module finds its members in its fields, so a model is an ordinary
 * class:
 *
 *     class Model extends Module {
 *       readonly rnn = new LSTM(8, 16)
 *       readonly decoder = new Linear(16, 27)
 *       readonly mask = this.registerBuffer('mask', ones([16]))
 *       forward(x: Tensor): Tensor { … }
 *     }
 *
 * PyTorch: `torch.nn.Module`. Here `forward` is called directly, and hooks run around it then (`module-hooks.ts`).
 *
 * Note [Fields]
 * A field, or an item of an array, Map, Set or plain object in a field (to any depth: `collections.ts`), belongs to the module if it is a Module, a
 * registered buffer, or a parameter: a leaf that was made with `requiresGrad` (also if it was switched off since). Its path is that of the fields and
 * keys: `parts.a.weight`; a collection that a field reaches in several ways counts once. Every walk reads the fields, so that replacing one is enough. If a place held a parameter
 * or a module and gets a value that does not belong to the module, the next call that needs parameters or state fails with MEMBER_REPLACED (`held-members.ts`).
 * Walks do not see `#private` fields, fields under symbols and fields that are not enumerable. If they hide members, the first walk for parameters or state fails
 * with MODULE_HIDDEN (`hidden-members.ts`). Members of a function or an instance of another class are not the module's: `target = () => network` keeps a module that must not be trained along.
 */
import { isVariable } from '@postgrad/autograd/internal'
import { PostgradError } from '@postgrad/base'
import { isThenable } from '@postgrad/base/internal'
import { type Device, type DeviceSpec, type DType, isTensor, type RemovableHandle, type Tensor, zeros } from '@postgrad/tensor'
import {
  argumentText,
  CPU,
  checkFunction,
  checkReadable,
  invalidArgument,
  isDType,
  isFloating,
  raw,
  sameShape,
} from '@postgrad/tensor/internal'
import { checkFloating, checkOptions, nameTaken, noSuch } from './check.js'
import { eachItem, isCollection, replaceItems } from './collections.js'
import { BUFFER, HeldMembers, type Place } from './held-members.js'
import { ensureNothingHidden } from './hidden-members.js'
import { type ForwardHook, type ForwardPreHook, type FullBackwardHook, ModuleHooks } from './module-hooks.js'
import { parameter } from './parameter.js'

/** Tensors by path, such as 'decoder.weight': the result of `stateDict()`, and the argument of `loadStateDict`. PyTorch: the result of `state_dict()`. */
export type StateDict = Record<string, Tensor>

/** Options of `registerBuffer`. */
export interface BufferOptions {
  /** Whether state dicts contain the buffer; default true. */
  readonly persistent?: boolean
}

/** Options of `parameters` and `buffers`. */
export interface WalkOptions {
  /** Whether to include all modules below, and not only this one; default true. */
  readonly recurse?: boolean
}

/** Options of `namedParameters` and `namedBuffers`. */
export interface NamedWalkOptions extends WalkOptions {
  /** A text that is put before all names, with a dot; default none. */
  readonly prefix?: string
}

/** Options of `loadStateDict`. */
export interface LoadStateDictOptions {
  /** Whether missing and unexpected names are errors; default true. A tensor of another shape is always an error. */
  readonly strict?: boolean
}

/** The names in which a module and a state dict differ. */
export interface StateDictDifference {
  /** Names of the module that the state dict lacks. */
  readonly missingKeys: readonly string[]
  /** Names in the state dict that the module lacks. */
  readonly unexpectedKeys: readonly string[]
}

type Fields = Record<string, unknown>
type Kind = 'parameter' | 'buffer' | 'transient buffer'
type Visit = (name: string, member: Tensor | Module, kind: Kind | 'module') => void

/** A module's noted members. Not a method, since users see all methods. */
let heldOf: (module: Module) => HeldMembers

/**
 * A part of a model. Extend it and write `forward`. All parameters, buffers and child modules in its fields belong to it. PyTorch: `torch.nn.Module`.
 * @example
 * class Net extends Module {
 *   hidden = new Linear(4, 8)
 *   out = new Linear(8, 1)
 *   forward(input: Tensor) { return this.out.forward(this.hidden.forward(input).relu()) }
 * }
 * new Net().forward(randn([3, 4])).shape // [3, 1]
 * new Net().namedParameters().map(([name]) => name) // ['hidden.weight', 'hidden.bias', 'out.weight', 'out.bias']
 */
export abstract class Module {
  /** Whether the module is in training mode; true at first. `train` and `eval` set it for the whole tree. Dropout and batch norm depend on it. */
  training = true
  /** Fields that are buffers, and whether they are persistent. Private as the next two, so that no walk sees them. */
  #buffers: Map<string, boolean> | null = null
  #hooks: ModuleHooks | null = null
  #switching = false
  #applying = false
  #writing = false
  /** Whether the tree was searched for what fields that no walk sees hide. */
  #searched = false
  #held: HeldMembers | null = null

  static {
    heldOf = (module) => {
      module.#held ??= new HeldMembers(module, { ensure: ensureMembers, members: membersOf })
      return module.#held
    }
  }

  constructor() {
    noteSoon(this)
  }

  /**
   * Sets training mode here and in all modules below, or evaluation mode if `mode` is false. Returns the module. It calls the `train` of each module, which may
   * be overridden.
   */
  train(mode = true): this {
    // A module that has this one below it again calls it while it is at it.
    if (this.#switching) return this
    this.#switching = true
    try {
      this.training = mode
      for (const child of this.children()) child.train(mode)
    } finally {
      this.#switching = false
    }
    return this
  }

  /** Sets evaluation mode here and in all modules below, and returns the module: `train(false)`. */
  eval(): this {
    return this.train(false)
  }

  /**
   * All parameters of the tree, each once: first those of the module in the order of its fields, then those of its children.
   * @throws MODULE_HIDDEN if a field that is #private, not enumerable or under a symbol holds a module or a parameter; MEMBER_REPLACED if a field, or an item
   * of a collection, held a parameter or a module and now holds something that does not belong to the module. namedParameters, stateDict and loadStateDict fail
   * with both, too
   */
  parameters(options: WalkOptions = {}): Tensor[] {
    this.#search('parameters')
    const found = new Set<Tensor>()
    gatherParameters('parameters', this, found, options.recurse === false ? null : new Set())
    return [...found]
  }

  /** All parameters with their paths, such as `decoder.weight`. A tensor that two fields share is listed once, under its first name. */
  namedParameters(options: NamedWalkOptions = {}): [name: string, parameter: Tensor][] {
    this.#search('namedParameters')
    return unique('namedParameters', this, isParameter, options)
  }

  /** All buffers of the tree, each once. A buffer belongs to the state but is not trained, such as a running mean. */
  buffers(options: WalkOptions = {}): Tensor[] {
    return this.namedBuffers(options).map(([, buffer]) => buffer)
  }

  /** All buffers with their paths. A tensor that two fields share is listed once, under its first name. */
  namedBuffers(options: NamedWalkOptions = {}): [name: string, buffer: Tensor][] {
    return unique('namedBuffers', this, isBuffer, options)
  }

  /** The modules directly below this one, each once. */
  children(): Module[] {
    return this.namedChildren().map(([, child]) => child)
  }

  /** The modules directly below this one, with their names. A module in an array has a name such as `layers.0`. */
  namedChildren(): [name: string, child: Module][] {
    const found = new Map<Module, string>()
    each(this, (name, member) => {
      if (member instanceof Module && !found.has(member)) found.set(member, name)
    })
    return [...found].map(([child, name]) => [name, child])
  }

  /** This module and all modules below it, each once. */
  modules(): Module[] {
    const seen = new Set<Module>()
    gatherModules(this, seen)
    return [...seen]
  }

  /** This module and all modules below it, with their paths. The path of this module is ''. */
  namedModules(): [name: string, module: Module][] {
    const found = new Map<Module, string>()
    const visit = (module: Module, path: string) => {
      if (found.has(module)) return
      found.set(module, path)
      for (const [name, child] of module.namedChildren()) visit(child, path === '' ? name : `${path}.${name}`)
    }
    visit(this, '')
    return [...found].map(([module, path]) => [path, module])
  }

  /** Calls `fn` with each module of the tree, children before their parents, and returns the module. */
  apply(fn: (module: Module) => void): this {
    checkFunction('apply', 'what to do with each module', fn)
    if (this.#applying) return this
    this.#applying = true
    try {
      for (const child of this.children()) child.apply(fn)
    } finally {
      this.#applying = false
    }
    // After the guard, so that `fn` may call apply itself.
    fn(this)
    return this
  }

  /** Sets `requiresGrad` of all parameters, and returns the module. */
  requiresGrad_(flag = true): this {
    for (const each of this.parameters()) each.requiresGrad_(flag)
    return this
  }

  /** Sets `.grad` of all parameters to null. */
  zeroGrad(): void {
    for (const each of this.parameters()) each.grad = null
  }

  /**
   * Converts parameters and buffers of floating point to a dtype, or moves all of them to a device, or both; returns the module. New tensors replace the old
   * ones (in PyTorch they stay the same objects). So make optimizers, and references from other workers, after this call. Shared tensors stay shared. Gradients
   * are dropped. To move a module back to this process, call `await module.cpu()`. PyTorch: `Module.to(dtype)`, `.to(device, dtype)`.
   * @throws DTYPE_MISMATCH if the dtype is not float32 or float64; DEVICE_UNKNOWN if the device is unknown; READ_NOT_SYNCHRONOUS if the tensors are on a device
   * that computes asynchronously. Nothing is changed then
   */
  to(target: DType | Device | DeviceSpec, dtype?: DType): this {
    if (dtype !== undefined) checkFloating('to', dtype)
    else if (isDType(target)) checkFloating('to', target)
    const onlyFloats = isDType(target)
    // A target that is none is refused whatever the module holds.
    if (!onlyFloats) raw.to(zeros([], { device: 'cpu' }), target, dtype)
    return this.#exchange('to', (member) =>
      isFloating(member.dtype) ? raw.to(member, target, dtype) : onlyFloats ? member : raw.to(member, target),
    )
  }

  /**
   * Moves the module to this process as `to('cpu')` does, but waits until the device has computed the tensors. They get the values of the moment of the call;
   * later writes to them are lost. PyTorch: `Module.cpu`.
   */
  async cpu(): Promise<this> {
    const members = [...this.#members('cpu').keys()]
    const moved = new Map(await Promise.all(members.map(async (member) => [member, await member.detach().cpu()] as const)))
    return this.#exchange('cpu', (member) => (member.storage.memory === CPU ? member : (moved.get(member) ?? member)))
  }

  /** Parameters and buffers of the whole tree, and which of both they are. */
  #members(op: string): Map<Tensor, Kind> {
    const found = new Map<Tensor, Kind>()
    for (const module of this.modules()) {
      ensureMembers(module, op)
      each(module, (_, member, kind) => {
        if (kind !== 'module') found.set(member as Tensor, kind)
      })
    }
    return found
  }

  /** Puts other values into the places of parameters and buffers, unless `changed` gives the same ones. */
  #exchange(op: string, changed: (member: Tensor) => Tensor): this {
    const others = new Map<Tensor, Tensor>()
    // All of them first: if one cannot be changed, nothing is.
    for (const [member, kind] of this.#members(op)) {
      const values = changed(member)
      if (values !== member) others.set(member, kind === 'parameter' ? parameter(values, { requiresGrad: member.requiresGrad }) : values)
    }
    for (const module of this.modules()) {
      replaceTensors(module, (member) => others.get(member) ?? member)
      // Or the old ones would stay in memory until the next walk.
      noteMembers(module)
    }
    return this
  }

  /**
   * Makes the field `field` a buffer with this tensor, and returns the tensor. If you later set the field to another tensor, that tensor is the buffer. null
   * means that the buffer does not exist (yet). PyTorch: `register_buffer`.
   * @throws INVALID_ARGUMENT if the name is empty or contains a dot, or `buffer` is neither a tensor nor null; MEMBER_NAME_TAKEN if a method, a parameter, a
   * module or another field has the name
   */
  registerBuffer<T extends Tensor | null>(field: string, buffer: T, options: BufferOptions = {}): T {
    checkOptions('registerBuffer', options, ['persistent'])
    const { persistent = true } = options
    if (typeof field !== 'string' || field === '' || field.includes('.'))
      throw invalidArgument(
        'registerBuffer',
        'a name that is not empty and contains no dot',
        argumentText(field),
        'Dots separate the names of a path.',
      )
    if (buffer !== null && !isTensor(buffer))
      throw invalidArgument('registerBuffer', `a tensor or null as '${field}'`, argumentText(buffer))
    const there = (this as unknown as Fields)[field]
    const isPlainTensor = isTensor(there) && !isVariable(there)
    const isFree = (there ?? null) === null || (isTensor(there) && this.#buffers?.has(field)) || (isPlainTensor && there === buffer)
    if (!isFree) throw nameTaken('registerBuffer', `a name that ${this.constructor.name} does not have yet`, `'${field}'`, field)
    this.#buffers ??= new Map()
    this.#buffers.set(field, persistent)
    ;(this as unknown as Fields)[field] = buffer
    return buffer
  }

  /** @internal The kind of a tensor in this field, null for one that is not the module's. */
  kindOf(field: string, value: Tensor): Kind | null {
    const persistent = this.#buffers?.get(field)
    if (persistent !== undefined) return persistent ? 'buffer' : 'transient buffer'
    return isVariable(value) ? 'parameter' : null
  }

  /**
   * All parameters and persistent buffers by path. A shared tensor is listed under each of its names. The tensors share storage with the module: they are
   * detached, not copied. PyTorch: `state_dict`.
   * @throws MEMBER_NAME_TAKEN if two tensors have the same path, such as those of the keys 1 and '1' of a Map
   */
  stateDict(): StateDict {
    this.#search('stateDict')
    return Object.fromEntries([...stateOf('stateDict', this)].map(([name, member]) => [name, member.detach()]))
  }

  /**
   * Copies the values of `state` into parameters and buffers, converted to their dtypes. Returns the missing and unexpected names, which can exist only if
   * `strict` is false. If it throws, nothing is changed. PyTorch: `load_state_dict`.
   * @throws STATE_DICT_MISMATCH if names or shapes differ: the error lists missing names, unexpected names and shapes; INVALID_ARGUMENT if `state` does not
   * hold tensors
   */
  loadStateDict(state: Readonly<StateDict>, { strict = true }: LoadStateDictOptions = {}): StateDictDifference {
    this.#search('loadStateDict')
    const own = stateOf('loadStateDict', this)
    checkStateDict(state, own)
    const missingKeys = [...own.keys()].filter((name) => state[name] === undefined)
    const unexpectedKeys = Object.keys(state).filter((name) => !own.has(name))
    const fitting = [...own].filter(([name]) => state[name] !== undefined)
    const shapes = fitting.filter(([name, { shape }]) => !sameShape(state[name]!.shape, shape))
    if (shapes.length > 0 || (strict && missingKeys.length + unexpectedKeys.length > 0)) {
      throw stateMismatch(
        'loadStateDict',
        strict ? missingKeys : [],
        strict ? unexpectedKeys : [],
        shapes.map(([name, { shape }]) => `${name} is [${shape.join(', ')}], not [${state[name]!.shape.join(', ')}]`),
      )
    }
    // Before the first is written: what another device has cannot be copied at once.
    for (const [name, member] of fitting) if (member.storage.memory === CPU) checkReadable('loadStateDict', state[name]!)
    for (const [name, member] of fitting) raw.copy_(member, state[name]!)
    return { missingKeys, unexpectedKeys }
  }

  /** The parameter at a path such as 'decoder.weight'. @throws NO_SUCH_MEMBER if that parameter does not exist */
  getParameter(path: string): Tensor {
    return lookup('getParameter', 'parameter', path, [...walk('getParameter', this, isParameter)])
  }

  /** The buffer at a path. @throws NO_SUCH_MEMBER if that buffer does not exist */
  getBuffer(path: string): Tensor {
    return lookup('getBuffer', 'buffer', path, [...walk('getBuffer', this, isBuffer)])
  }

  /** The module at a path; '' is this module. @throws NO_SUCH_MEMBER if that module does not exist */
  getSubmodule(path: string): Module {
    return lookup('getSubmodule', 'module', path, this.namedModules())
  }

  /**
   * The name of a field in paths and state dicts; by default the field's own name. '' puts the items of an array or Map directly under their own names.
   * Override it if names must differ from those of the fields, such as PyTorch's `in_proj_weight`.
   */
  fieldName(field: string): string {
    return field
  }

  /** Calls `hook` before each forward. Returns a handle that removes the hook. */
  registerForwardPreHook(hook: ForwardPreHook<this>): RemovableHandle {
    checkFunction('registerForwardPreHook', 'the hook', hook)
    const hooks = this.hooks()
    return hooks.add(hooks.pre, hook as ForwardPreHook<object>)
  }

  /** Calls `hook` after each forward. Returns a handle that removes the hook. */
  registerForwardHook(hook: ForwardHook<this>): RemovableHandle {
    checkFunction('registerForwardHook', 'the hook', hook)
    const hooks = this.hooks()
    return hooks.add(hooks.post, hook as ForwardHook<object>)
  }

  /**
   * Calls `hook` in each backward pass through a later forward. Returns a handle that removes the hook. A write in place to the result of such a forward fails
   * with INPLACE_ON_VIEW, as in PyTorch: write to a clone() instead. If the result is an argument or a view of one, a write into that argument makes the result
   * unusable.
   */
  registerFullBackwardHook(hook: FullBackwardHook<this>): RemovableHandle {
    checkFunction('registerFullBackwardHook', 'the hook', hook)
    const hooks = this.hooks()
    return hooks.add(hooks.back, hook as FullBackwardHook<object>)
  }

  /**
   * The module as text, as in PyTorch: `Linear(inFeatures=4, outFeatures=2, bias=true)`, with its children and their names below it. If a module contains
   * itself (a child refers to its parent), the second one is `Net(…)`.
   */
  toString(): string {
    const name = this.constructor.name
    const extra = this.extraRepr()
    if (this.#writing) return `${name}(…)`
    this.#writing = true
    let children: string[]
    try {
      children = this.namedChildren().map(([child, module]) => `(${child}): ${module.toString().replaceAll('\n', '\n  ')}`)
    } finally {
      this.#writing = false
    }
    if (children.length === 0) return `${name}(${extra})`
    return `${name}(\n  ${[...(extra === '' ? [] : [extra]), ...children].join('\n  ')}\n)`
  }

  /** The text that toString writes between the parentheses. Override it to show the settings of your module. */
  extraRepr(): string {
    return ''
  }

  [Symbol.for('nodejs.util.inspect.custom')](): string {
    return this.toString()
  }

  #search(op: string): void {
    if (this.#searched) return
    const modules = this.modules()
    ensureNothingHidden(op, modules, Module.prototype, () => {
      const reached = new Set<object>(modules)
      for (const module of modules) each(module, (_, member) => reached.add(member))
      return reached
    })
    this.#searched = true
  }

  private hooks(): ModuleHooks {
    this.#hooks ??= new ModuleHooks(this)
    return this.#hooks
  }
}

/** Modules that were made in this turn: their fields come after their constructor here, and are noted when the program first waits. */
let young: Module[] = []

function noteSoon(module: Module): void {
  // A promise: fake timers of test runners replace queueMicrotask.
  if (young.push(module) === 1) void Promise.resolve().then(noteYoung)
}

function noteYoung(): void {
  const modules = young
  young = []
  for (const module of modules) {
    try {
      noteMembers(module)
    } catch {
      // A fieldName of the user's threw, or the constructor did not get as far as it needs. The walk that the program asks for throws it.
    }
  }
}

/** Everything that the fields hold, by path. */
function placesOf(module: Module): Map<string, Place> {
  const places = new Map<string, Place>()
  const fields = module as unknown as Fields
  const add = (path: string, field: string, value: unknown, isField: boolean) => {
    const belongs = value instanceof Module || (isTensor(value) && module.kindOf(field, value) !== null)
    places.set(path, { value, belongs, isField })
  }
  for (const field in fields) {
    const value = fields[field]
    const name = module.fieldName(field)
    if (typeof value === 'object' && value !== null && isCollection(value))
      eachItem(name, value, (path, item) => add(path, field, item, false))
    else add(name, field, value, true)
  }
  return places
}

/** @throws MEMBER_REPLACED */
function ensureMembers(module: object, op: string): void {
  heldOf(module as Module).check(op, module.constructor.name, placesOf(module as Module))
}

function membersOf(module: object): ReadonlySet<unknown> {
  const members = new Set<unknown>()
  each(module as Module, (_, member) => members.add(member))
  return members
}

/** Notes what the fields hold now, and checks nothing: for the end of a layer's constructor. */
export function noteMembers(module: Module): void {
  each(module, () => {}, heldOf(module))
}

/** As each, and notes what there is. @throws MEMBER_REPLACED */
function eachChecked(op: string, module: Module, visit: Visit): void {
  const held = heldOf(module)
  if (each(module, visit, held) !== held.count) ensureMembers(module, op)
}

/**
 * Calls `visit` with what the module's fields hold, see Note [Fields].
 * @returns how many paths lead to a parameter, a buffer or a module, if `held` is given, which notes them
 */
function each(module: Module, visit: Visit, held: HeldMembers | null = null): number {
  let count = 0
  const walk = held === null ? 0 : held.begin()
  const fields = module as unknown as Fields
  /** Whether it is a module or a tensor, which no collection is. */
  const one = (field: string, name: string, value: object): boolean => {
    let kind: Kind | 'module' | null
    if (value instanceof Module) kind = 'module'
    else if (isTensor(value)) kind = module.kindOf(field, value)
    else return false
    if (kind === null) return true
    if (held?.note(walk, field, name, kind === 'parameter' || kind === 'module' ? value : BUFFER)) count++
    visit(name, value as Tensor, kind)
    return true
  }
  // Neither Object.entries nor a generator: this is on the way of every training step, where they cost several times as much.
  for (const field in fields) {
    const value = fields[field]
    if (typeof value !== 'object' || value === null) continue
    const name = module.fieldName(field)
    if (!one(field, name, value) && isCollection(value)) eachItem(name, value, (path, item) => one(field, path, item))
  }
  return count
}

/** Puts what `fn` returns in the place of each parameter and buffer of the module's own. */
function replaceTensors(module: Module, fn: (member: Tensor) => Tensor): void {
  const fields = module as unknown as Fields
  for (const field in fields) {
    const value = fields[field]
    if (typeof value !== 'object' || value === null) continue
    const other = (item: object): object => {
      const kind = isTensor(item) ? module.kindOf(field, item) : null
      return kind === null ? item : fn(item as Tensor)
    }
    if (isCollection(value)) replaceItems(value, other)
    else if (isTensor(value)) fields[field] = other(value)
  }
}

function gatherParameters(op: string, module: Module, into: Set<Tensor>, seen: Set<Module> | null): void {
  if (seen?.has(module)) return
  seen?.add(module)
  const below: Module[] = []
  eachChecked(op, module, (_, member, kind) => {
    if (kind === 'parameter') into.add(member as Tensor)
    else if (kind === 'module') below.push(member as Module)
  })
  if (seen !== null) for (const child of below) gatherParameters(op, child, into, seen)
}

function gatherModules(module: Module, seen: Set<Module>): void {
  if (seen.has(module)) return
  seen.add(module)
  each(module, (_, member, kind) => {
    if (kind === 'module') gatherModules(member as Module, seen)
  })
}

const isParameter = (kind: Kind): boolean => kind === 'parameter'
const isBuffer = (kind: Kind): boolean => kind !== 'parameter'
const isState = (kind: Kind): boolean => kind !== 'transient buffer'

/** The wanted tensors of the tree, by path, shared ones under each of their names. `above`: the modules on the way here. */
function* walk(
  op: string,
  module: Module,
  wanted: (kind: Kind) => boolean,
  prefix = '',
  recurse = true,
  above: readonly Module[] = [],
): IterableIterator<[name: string, member: Tensor]> {
  const [own, buffers, below]: [[string, Tensor][], [string, Tensor][], [string, Module][]] = [[], [], []]
  eachChecked(op, module, (name, member, kind) => {
    if (kind === 'module') below.push([name, member as Module])
    else if (wanted(kind)) (kind === 'parameter' ? own : buffers).push([prefix + name, member as Tensor])
  })
  yield* own
  yield* buffers
  const path = [...above, module]
  if (recurse) for (const [name, child] of below) if (!path.includes(child)) yield* walk(op, child, wanted, `${prefix}${name}.`, true, path)
}

/** A state's tensors. @throws MEMBER_NAME_TAKEN: one of two tensors of one name would not be saved */
function stateOf(op: string, module: Module): Map<string, Tensor> {
  const state = new Map<string, Tensor>()
  for (const [name, member] of walk(op, module, isState)) {
    const other = state.get(name)
    if (other !== undefined && other !== member)
      throw nameTaken(op, `a path of its own for each parameter and buffer of ${module.constructor.name}`, `two of them at '${name}'`, name)
    state.set(name, member)
  }
  return state
}

/** As walk, each tensor once, under its first name. */
function unique(
  op: string,
  module: Module,
  wanted: (kind: Kind) => boolean,
  { prefix = '', recurse = true }: NamedWalkOptions,
): [string, Tensor][] {
  const found = new Map<Tensor, string>()
  for (const [name, member] of walk(op, module, wanted, prefix === '' ? '' : `${prefix}.`, recurse)) {
    if (!found.has(member)) found.set(member, name)
  }
  return [...found].map(([member, name]) => [name, member])
}

function lookup<T>(op: string, what: string, path: string, entries: readonly (readonly [string, T])[]): T {
  const entry = entries.find(([name]) => name === path)
  if (entry !== undefined) return entry[1]
  throw noSuch(
    op,
    what,
    path,
    entries.map(([name]) => `'${name}'`),
  )
}

/** @throws INVALID_ARGUMENT; a promise would pass for a state dict without names */
function checkStateDict(state: unknown, own: ReadonlyMap<string, Tensor>): void {
  const remedy = 'Pass what stateDict() or await loadSafetensors(path) gives.'
  if (typeof state !== 'object' || state === null) {
    throw invalidArgument('loadStateDict', 'tensors by name', state === null ? 'null' : typeof state, remedy)
  }
  if (isThenable(state)) throw invalidArgument('loadStateDict', 'tensors by name', 'a promise', remedy)
  for (const [name, value] of Object.entries(state)) {
    if (own.has(name) && !isTensor(value)) throw invalidArgument('loadStateDict', `a tensor as '${name}'`, typeof value, remedy)
  }
}

/** STATE_DICT_MISMATCH with the names that differ. */
export function stateMismatch(
  op: string,
  missing: readonly string[],
  unexpected: readonly string[],
  shapes: readonly string[],
): PostgradError {
  const parts = [
    missing.length > 0 && `missing: ${missing.join(', ')}`,
    unexpected.length > 0 && `unexpected: ${unexpected.join(', ')}`,
    shapes.length > 0 && `of another shape: ${shapes.join('; ')}`,
  ]
  return new PostgradError('STATE_DICT_MISMATCH', {
    op,
    message: `the state does not fit this module; ${parts.filter(Boolean).join('; ')}`,
    // A load that is not strict refuses other shapes, too.
    remedy: `Load it into a module of the same structure and sizes${shapes.length === 0 ? ', or pass { strict: false } to skip names that do not fit' : ''}.`,
    values: { missing, unexpected, shapes },
  })
}
