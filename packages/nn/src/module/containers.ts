/**
 * Lists and dictionaries that are modules themselves, and can change. A plain array, object, Map or Set in a field works, too, with paths below the field's
 * name. PyTorch: `torch.nn.ModuleList`, `ModuleDict`, `ParameterList`.
 */
import { isTensor, type Tensor } from '@postgrad/tensor'
import { argumentText, checkIterable, indexOutOfRange, invalidArgument } from '@postgrad/tensor/internal'
import { noSuch } from './check.js'
import { Module } from './module.js'
import { parameter } from './parameter.js'

/**
 * Modules in a list. Their parameters have names such as `0.weight`. A ModuleList has no forward. PyTorch: `torch.nn.ModuleList`.
 * @example
 * const blocks = new ModuleList([new Linear(4, 4), new Linear(4, 2)])
 * let h = randn([1, 4])
 * for (const block of blocks) h = block.forward(h)
 * h.shape // [1, 2]
 */
export class ModuleList<M extends Module = Module> extends Module implements Iterable<M> {
  /** The modules in order. Change the list by `append` and `extend`, which check the modules. */
  readonly items: M[]

  constructor(modules: Iterable<M> = []) {
    super()
    checkIterable('ModuleList', 'its modules', modules)
    this.items = [...modules].map((module) => checkedModule('ModuleList', module))
  }

  /** The number of modules. */
  get length(): number {
    return this.items.length
  }

  [Symbol.iterator](): IterableIterator<M> {
    return this.items[Symbol.iterator]()
  }

  /** The module at place `index`; −1 is the last. @throws INDEX_OUT_OF_RANGE if that place does not exist */
  at(index: number): M {
    return checkedAt('ModuleList', this.items, index)
  }

  /** Adds a module at the end, and returns the list. @throws INVALID_ARGUMENT if it is not a module */
  append(module: M): this {
    this.items.push(checkedModule('ModuleList', module))
    return this
  }

  /** Adds several modules at the end, and returns the list. @throws INVALID_ARGUMENT if one of them is not a module */
  extend(modules: Iterable<M>): this {
    for (const module of modules) this.append(module)
    return this
  }

  override fieldName(field: string): string {
    return field === 'items' ? '' : super.fieldName(field)
  }
}

/**
 * Modules by key. Their parameters have names such as `encoder.weight`. A ModuleDict has no forward. PyTorch: `torch.nn.ModuleDict`.
 * @example
 * const heads = new ModuleDict({ policy: new Linear(4, 2), value: new Linear(4, 1) })
 * heads.get('value').forward(randn([1, 4])).shape // [1, 1]
 * heads.namedParameters().map(([name]) => name) // ['policy.weight', 'policy.bias', 'value.weight', 'value.bias']
 */
export class ModuleDict<M extends Module = Module> extends Module implements Iterable<[string, M]> {
  /** The modules by key. Change them by `set` and `delete`, which check the modules. */
  readonly items: Map<string, M>

  constructor(modules: Readonly<Record<string, M>> = {}) {
    super()
    this.items = new Map()
    for (const [key, module] of Object.entries(modules)) this.set(key, module)
  }

  /** The number of modules. */
  get size(): number {
    return this.items.size
  }

  [Symbol.iterator](): IterableIterator<[string, M]> {
    return this.items[Symbol.iterator]()
  }

  /** The keys, in the order in which they were set. */
  keys(): IterableIterator<string> {
    return this.items.keys()
  }

  /** The modules, in the order in which they were set. */
  values(): IterableIterator<M> {
    return this.items.values()
  }

  /** Pairs of key and module, in the order in which they were set. */
  entries(): IterableIterator<[string, M]> {
    return this.items.entries()
  }

  /** Whether there is a module with that key. */
  has(key: string): boolean {
    return this.items.has(key)
  }

  /** The module with that key. @throws NO_SUCH_MEMBER if that module does not exist */
  get(key: string): M {
    const module = this.items.get(key)
    if (module === undefined) throw noSuch('ModuleDict', 'module', key, [...this.items.keys()])
    return module
  }

  /** Sets the module with that key, and returns the dictionary. @throws INVALID_ARGUMENT if it is not a module */
  set(key: string, module: M): this {
    this.items.set(key, checkedModule('ModuleDict', module))
    return this
  }

  /** Removes the module with that key; returns whether there was one. */
  delete(key: string): boolean {
    return this.items.delete(key)
  }

  override fieldName(field: string): string {
    return field === 'items' ? '' : super.fieldName(field)
  }
}

/**
 * Parameters in a list, with the names `0`, `1`, …. Tensors that are not parameters yet become parameters. PyTorch: `torch.nn.ParameterList`.
 * @example
 * const scales = new ParameterList([ones([2]), zeros([3])])
 * scales.length // 2
 * scales.at(0).requiresGrad // true
 */
export class ParameterList extends Module implements Iterable<Tensor> {
  /** The parameters in order. Change the list by `append`. */
  readonly items: Tensor[]

  constructor(parameters: Iterable<Tensor> = []) {
    super()
    checkIterable('ParameterList', 'its parameters', parameters)
    this.items = [...parameters].map(asParameter)
  }

  /** The number of parameters. */
  get length(): number {
    return this.items.length
  }

  [Symbol.iterator](): IterableIterator<Tensor> {
    return this.items[Symbol.iterator]()
  }

  /** The parameter at place `index`; −1 is the last. @throws INDEX_OUT_OF_RANGE if that place does not exist */
  at(index: number): Tensor {
    return checkedAt('ParameterList', this.items, index)
  }

  /** Adds a tensor at the end, as a parameter, and returns the list. @throws REQUIRES_GRAD_NEEDS_FLOAT if it is int32 or bool */
  append(item: Tensor): this {
    this.items.push(asParameter(item))
    return this
  }

  override fieldName(field: string): string {
    return field === 'items' ? '' : super.fieldName(field)
  }

  override extraRepr(): string {
    return this.items
      .filter(isTensor)
      .map((item) => `Parameter(${item.dtype}, [${item.shape.join(', ')}])`)
      .join(', ')
  }
}

/** A module of another copy of this package passes too. @throws INVALID_ARGUMENT for what would take no part in silence */
export function checkedModule<M extends Module>(op: string, module: M): M {
  if (module instanceof Module || typeof (module as Partial<Module> | null | undefined)?.namedModules === 'function') return module
  throw invalidArgument(op, 'modules', argumentText(module), 'Pass the modules themselves: new Sequential(a, b), new ModuleList([a, b]).')
}

export function checkedAt<T>(op: string, items: readonly T[], index: number): T {
  const item = items.at(index)
  if (item !== undefined && Number.isInteger(index)) return item
  throw indexOutOfRange(op, `a place from ${-items.length} to ${items.length - 1}`, index, `There are ${items.length}.`)
}

function asParameter(x: Tensor): Tensor {
  return x.isLeaf && x.requiresGrad ? x : parameter(x)
}
