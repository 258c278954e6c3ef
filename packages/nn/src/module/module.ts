/**
 * Module: a tree of parameters and buffers with names, and a forward. What belongs to a module is found in its fields, so that a model is an ordinary
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
 * keys: `parts.a.weight`; a collection that a field reaches in several ways counts once. Nothing is kept of this: every walk reads the fields, so that replacing one is enough. `#private` fields cannot be read, so the
 * first walk for parameters or state looks whether they hide any, and refuses then (MODULE_HIDDEN). What a function or an instance of another class
 * holds is not the module's: `target = () => network` is the way to keep a module that is not to be trained along.
 */
import { isVariable } from '@postgrad/autograd/internal'
import { PostgradError } from '@postgrad/base'
import { isThenable } from '@postgrad/base/internal'
import { type DType, isTensor, type RemovableHandle, type Tensor } from '@postgrad/tensor'
import { checkFunction, invalidArgument, isFloating, raw, sameShape } from '@postgrad/tensor/internal'
import { checkFloating, noSuch } from './check.js'
import { eachItem, isCollection, replaceItems } from './collections.js'
import { type ForwardHook, type ForwardPreHook, type FullBackwardHook, ModuleHooks } from './module-hooks.js'
import { parameter } from './parameter.js'
import { namesPrivateFields, privateFields } from './private-fields.js'

/** Tensors by path, as `stateDict()` gives and `loadStateDict` takes them. PyTorch: the same, of `state_dict()`. */
export type StateDict = Record<string, Tensor>

/** Of `registerBuffer`. */
export interface BufferOptions {
  /** Whether state dicts have it; default true. */
  readonly persistent?: boolean
}

/** Of `parameters` and `buffers`. */
export interface WalkOptions {
  /** Default true; false: only what is the module's own. */
  readonly recurse?: boolean
}

/** Of `namedParameters` and `namedBuffers`. */
export interface NamedWalkOptions extends WalkOptions {
  /** Before all names, with a point; default none. */
  readonly prefix?: string
}

/** Of `loadStateDict`. */
export interface LoadStateDictOptions {
  /** Refuse names that are missing or unexpected; default true. Other shapes are refused always. */
  readonly strict?: boolean
}

/** The names that did not fit. */
export interface StateDictDifference {
  /** Names of the module that the state dict lacks. */
  readonly missingKeys: readonly string[]
  /** Names in the state dict that the module lacks. */
  readonly unexpectedKeys: readonly string[]
}

type Fields = Record<string, unknown>
type Kind = 'parameter' | 'buffer' | 'transient buffer'
type Visit = (name: string, member: Tensor | Module, kind: Kind | 'module') => void

/**
 * A part of a model: its fields are its parameters, buffers and modules, found by walking them. Extend it and write `forward`. PyTorch:
 * `torch.nn.Module`.
 */
export abstract class Module {
  /** True from the start; `train` and `eval` switch it for the whole tree. Dropout and batch norm read it. */
  training = true
  /** Fields that are buffers, and whether they are persistent. Private as the next two, so that no walk sees them. */
  #buffers: Map<string, boolean> | null = null
  #hooks: ModuleHooks | null = null
  #switching = false
  /** Whether the tree was searched for what #private fields hide. */
  #searched = false

  /** Into training or evaluation, with all modules below, each by its own `train`: one that overrides it may stay as it is. */
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

  /** Into evaluation, with all modules below: `train(false)`. */
  eval(): this {
    return this.train(false)
  }

  /**
   * All parameters of the tree, each once: a module's own in order of its fields, then those of its children.
   * @throws MODULE_HIDDEN if a #private field holds a module or a parameter (as namedParameters, stateDict and loadStateDict)
   */
  parameters(options: WalkOptions = {}): Tensor[] {
    this.#search('parameters')
    const found = new Set<Tensor>()
    gatherParameters(this, found, options.recurse === false ? null : new Set())
    return [...found]
  }

  /** With their paths: `decoder.weight`. A tensor that is shared by two fields comes once, under its first name. */
  namedParameters(options: NamedWalkOptions = {}): [name: string, parameter: Tensor][] {
    this.#search('namedParameters')
    return unique(this, isParameter, options)
  }

  /** Tensors that belong to the state but are not trained, such as running means; as parameters(). */
  buffers(options: WalkOptions = {}): Tensor[] {
    return this.namedBuffers(options).map(([, buffer]) => buffer)
  }

  /** Buffers with their paths; a tensor that is shared comes once, under its first name. */
  namedBuffers(options: NamedWalkOptions = {}): [name: string, buffer: Tensor][] {
    return unique(this, isBuffer, options)
  }

  /** The modules directly below, each once. */
  children(): Module[] {
    return this.namedChildren().map(([, child]) => child)
  }

  /** With their names; those in an array as `layers.0`. */
  namedChildren(): [name: string, child: Module][] {
    const found = new Map<Module, string>()
    each(this, (name, member) => {
      if (member instanceof Module && !found.has(member)) found.set(member, name)
    })
    return [...found].map(([child, name]) => [name, child])
  }

  /** This module and all below it, each once. */
  modules(): Module[] {
    const seen = new Set<Module>()
    gatherModules(this, seen)
    return [...seen]
  }

  /** With their paths; this one's is ''. */
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

  /** Calls `fn` with all modules of the tree, children before those that have them. */
  apply(fn: (module: Module) => void): this {
    checkFunction('apply', 'what to do with each module', fn)
    for (const child of this.children()) child.apply(fn)
    fn(this)
    return this
  }

  /** Switches recording for all parameters on or off. */
  requiresGrad_(flag = true): this {
    for (const each of this.parameters()) each.requiresGrad_(flag)
    return this
  }

  /** Sets `.grad` of all parameters to null. */
  zeroGrad(): void {
    for (const each of this.parameters()) if (each.grad !== null) each.grad = null
  }

  /**
   * Converts parameters and buffers of floating point. They become other tensors (those of PyTorch stay the same objects): make optimizers, and
   * references from other workers, afterwards. Tensors that are shared stay so. Gradients are dropped.
   * @throws DTYPE_MISMATCH unless float32 or float64
   */
  to(dtype: DType): this {
    checkFloating('to', dtype)
    const converted = new Map<Tensor, Tensor>()
    for (const module of this.modules()) {
      replaceTensors(module, (member, kind) => {
        if (member.dtype === dtype || !isFloating(member.dtype)) return member
        let other = converted.get(member)
        if (other === undefined) {
          const values = raw.to(member, dtype)
          other = kind === 'parameter' ? parameter(values, { requiresGrad: member.requiresGrad }) : values
          converted.set(member, other)
        }
        return other
      })
    }
    return this
  }

  /**
   * Notes that the field `field` holds a buffer, sets it and returns it. Setting the field to another tensor later is fine. A null is a buffer that
   * is not there (yet).
   */
  registerBuffer<T extends Tensor | null>(field: string, buffer: T, { persistent = true }: BufferOptions = {}): T {
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

  /** All parameters and persistent buffers by path, shared ones under each of their names. They are the tensors themselves without history, not copies. */
  stateDict(): StateDict {
    this.#search('stateDict')
    return Object.fromEntries([...walk(this, isState)].map(([name, member]) => [name, member.detach()]))
  }

  /**
   * Copies values into parameters and buffers, converted to their dtypes; all or none.
   * @returns the names that were missing or unexpected, for a load that is not strict
   * @throws STATE_DICT_MISMATCH, which lists missing and unexpected names and other shapes; INVALID_ARGUMENT for what holds no tensors
   */
  loadStateDict(state: Readonly<StateDict>, { strict = true }: LoadStateDictOptions = {}): StateDictDifference {
    this.#search('loadStateDict')
    const own = new Map(walk(this, isState))
    checkStateDict(state, own)
    const missingKeys = [...own.keys()].filter((name) => state[name] === undefined)
    const unexpectedKeys = Object.keys(state).filter((name) => !own.has(name))
    const fitting = [...own].filter(([name]) => state[name] !== undefined)
    const shapes = fitting.filter(([name, { shape }]) => !sameShape(state[name]!.shape, shape))
    if (shapes.length > 0 || (strict && missingKeys.length + unexpectedKeys.length > 0)) {
      throw mismatch(
        missingKeys,
        unexpectedKeys,
        shapes.map(([name, { shape }]) => `${name} is [${shape.join(', ')}], not [${state[name]!.shape.join(', ')}]`),
      )
    }
    for (const [name, member] of fitting) raw.copy_(member, state[name]!)
    return { missingKeys, unexpectedKeys }
  }

  /** The parameter at a path such as 'decoder.weight'. @throws NO_SUCH_MEMBER */
  getParameter(path: string): Tensor {
    return lookup('getParameter', 'parameter', path, [...walk(this, isParameter)])
  }

  /** The buffer at a path. @throws NO_SUCH_MEMBER */
  getBuffer(path: string): Tensor {
    return lookup('getBuffer', 'buffer', path, [...walk(this, isBuffer)])
  }

  /** The module at a path; '' is this one. @throws NO_SUCH_MEMBER */
  getSubmodule(path: string): Module {
    return lookup('getSubmodule', 'module', path, this.namedModules())
  }

  /**
   * What a field is called in paths and state dicts. '' lets the items of an array or Map stand directly under their own names. Override it for
   * names that are no fields' names here, such as PyTorch's `in_proj_weight`.
   */
  fieldName(field: string): string {
    return field
  }

  /** Calls `hook` before each forward. */
  registerForwardPreHook(hook: ForwardPreHook<this>): RemovableHandle {
    checkFunction('registerForwardPreHook', 'the hook', hook)
    const hooks = this.hooks()
    return hooks.add(hooks.pre, hook as ForwardPreHook<object>)
  }

  /** Calls `hook` after each forward. */
  registerForwardHook(hook: ForwardHook<this>): RemovableHandle {
    checkFunction('registerForwardHook', 'the hook', hook)
    const hooks = this.hooks()
    return hooks.add(hooks.post, hook as ForwardHook<object>)
  }

  /**
   * Calls `hook` in each backward pass through a forward that came after this call. What forward then returns of its arguments (themselves, or a view) may not
   * be written to, and a write into the argument makes it unusable: INPLACE_ON_VIEW, as in PyTorch.
   */
  registerFullBackwardHook(hook: FullBackwardHook<this>): RemovableHandle {
    checkFunction('registerFullBackwardHook', 'the hook', hook)
    const hooks = this.hooks()
    return hooks.add(hooks.back, hook as FullBackwardHook<object>)
  }

  /** As PyTorch writes modules: `Linear(inFeatures=4, outFeatures=2, bias=true)`, children below it with their names. */
  toString(): string {
    const name = this.constructor.name
    const extra = this.extraRepr()
    const children = this.namedChildren().map(([child, module]) => `(${child}): ${module.toString().replaceAll('\n', '\n  ')}`)
    if (children.length === 0) return `${name}(${extra})`
    return `${name}(\n  ${[...(extra === '' ? [] : [extra]), ...children].join('\n  ')}\n)`
  }

  /** What toString shows between the parentheses; override it. */
  extraRepr(): string {
    return ''
  }

  [Symbol.for('nodejs.util.inspect.custom')](): string {
    return this.toString()
  }

  #search(op: string): void {
    if (this.#searched) return
    checkNothingHidden(op, this)
    this.#searched = true
  }

  private hooks(): ModuleHooks {
    this.#hooks ??= new ModuleHooks(this)
    return this.#hooks
  }
}

/** Calls `visit` with what the module's fields hold, see Note [Fields]. */
function each(module: Module, visit: Visit): void {
  const fields = module as unknown as Fields
  // Neither Object.entries nor a generator: this is on the way of every training step, where they cost several times as much.
  for (const field in fields) {
    const value = fields[field]
    if (typeof value !== 'object' || value === null) continue
    const name = module.fieldName(field)
    if (!one(module, field, name, value, visit) && isCollection(value)) {
      eachItem(name, value, (path, item) => one(module, field, path, item, visit))
    }
  }
}

/** Whether it is a module or a tensor, which no collection is. */
function one(module: Module, field: string, name: string, value: object, visit: Visit): boolean {
  if (value instanceof Module) visit(name, value, 'module')
  else if (isTensor(value)) {
    const kind = module.kindOf(field, value)
    if (kind !== null) visit(name, value, kind)
  } else return false
  return true
}

/** @throws MODULE_HIDDEN for modules and parameters in #private fields that no walk from `root` reaches, unless they have it below them themselves */
function checkNothingHidden(op: string, root: Module): void {
  const modules = root.modules()
  const suspects = modules.filter((module) => namesPrivateFields(module, Module.prototype))
  if (suspects.length === 0) return
  const reached = new Set<object>(modules)
  for (const module of modules) each(module, (_, member) => reached.add(member))
  const hidden: string[] = []
  for (const module of suspects) {
    for (const [field, value] of privateFields(module)) {
      eachItem(field, value, (path, item) => {
        if (reached.has(item)) return
        const isModule = item instanceof Module && !item.modules().includes(module)
        if (!isModule && !(isTensor(item) && isVariable(item))) return
        hidden.push(`${path} of ${module.constructor.name} (${isModule ? item.constructor.name : 'a parameter'})`)
      })
    }
  }
  if (hidden.length === 0) return
  throw new PostgradError('MODULE_HIDDEN', {
    op,
    message: `it cannot see what #private fields hold, which would not be trained or saved: ${hidden.join(', ')}`,
    remedy:
      "Make it an ordinary field; TypeScript's `private` and a name like _layer are fine. What is not to belong to the module, hold as a function: #layer = () => layer.",
    values: { hidden },
  })
}

/** Puts what `fn` returns in the place of each parameter and buffer of the module's own. */
function replaceTensors(module: Module, fn: (member: Tensor, kind: Kind) => Tensor): void {
  const fields = module as unknown as Fields
  for (const field in fields) {
    const value = fields[field]
    if (typeof value !== 'object' || value === null) continue
    const other = (item: object): object => {
      const kind = isTensor(item) ? module.kindOf(field, item) : null
      return kind === null ? item : fn(item as Tensor, kind)
    }
    if (isCollection(value)) replaceItems(value, other)
    else if (isTensor(value)) fields[field] = other(value)
  }
}

function gatherParameters(module: Module, into: Set<Tensor>, seen: Set<Module> | null): void {
  if (seen?.has(module)) return
  seen?.add(module)
  const below: Module[] = []
  each(module, (_, member, kind) => {
    if (kind === 'parameter') into.add(member as Tensor)
    else if (kind === 'module') below.push(member as Module)
  })
  if (seen !== null) for (const child of below) gatherParameters(child, into, seen)
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

/** What of the tree's tensors is wanted, by path, shared ones under each of their names. `above`: the modules on the way here. */
function* walk(
  module: Module,
  wanted: (kind: Kind) => boolean,
  prefix = '',
  recurse = true,
  above: readonly Module[] = [],
): IterableIterator<[name: string, member: Tensor]> {
  const [own, buffers, below]: [[string, Tensor][], [string, Tensor][], [string, Module][]] = [[], [], []]
  each(module, (name, member, kind) => {
    if (kind === 'module') below.push([name, member as Module])
    else if (wanted(kind)) (kind === 'parameter' ? own : buffers).push([prefix + name, member as Tensor])
  })
  yield* own
  yield* buffers
  const path = [...above, module]
  if (recurse) for (const [name, child] of below) if (!path.includes(child)) yield* walk(child, wanted, `${prefix}${name}.`, true, path)
}

/** As walk, each tensor once, under its first name. */
function unique(module: Module, wanted: (kind: Kind) => boolean, { prefix = '', recurse = true }: NamedWalkOptions): [string, Tensor][] {
  const found = new Map<Tensor, string>()
  for (const [name, member] of walk(module, wanted, prefix === '' ? '' : `${prefix}.`, recurse)) {
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

function mismatch(missing: readonly string[], unexpected: readonly string[], shapes: readonly string[]): PostgradError {
  const parts = [
    missing.length > 0 && `missing: ${missing.join(', ')}`,
    unexpected.length > 0 && `unexpected: ${unexpected.join(', ')}`,
    shapes.length > 0 && `of another shape: ${shapes.join('; ')}`,
  ]
  return new PostgradError('STATE_DICT_MISMATCH', {
    op: 'loadStateDict',
    message: `the names do not fit this module; ${parts.filter(Boolean).join('; ')}`,
    remedy: 'Load it into a module of the same structure and sizes, or with { strict: false } what fits.',
    values: { missing, unexpected, shapes },
  })
}
