/**
 * The functions and classes that other workers may call, by name. Only `expose` adds any: no code, module path or class name from the
 * wire is ever evaluated. The registry only names functions; each runtime looks them up itself, so simulated workers can share it.
 */
import { PostgradError } from '@postgrad/base'
import { checkFuture, isAsyncExecution } from './async-execution.js'

/** A function with any parameters and any result, as `expose` and `call` take it. */
// biome-ignore lint/suspicious/noExplicitAny: a function of any signature; `unknown[]` would refuse every typed one
export type AnyFunction = (...args: any[]) => any
/** A class with any constructor parameters, as `expose` and `remote` take it. */
// biome-ignore lint/suspicious/noExplicitAny: a class of any constructor
export type AnyClass = new (...args: any[]) => any

export interface Exposed {
  readonly name: string
  readonly target: AnyFunction | AnyClass
  readonly isClass: boolean
  /** The class of a static method; null for all others. */
  readonly receiver: AnyClass | null
  /** Marked with `asyncExecution`. */
  readonly isAsync: boolean
}

/** Runs what is exposed. @throws ASYNC_EXECUTION_NO_FUTURE, and what it throws */
export function runExposed({ name, target, isClass, receiver, isAsync }: Exposed, args: readonly unknown[]): unknown {
  if (isClass) return new (target as AnyClass)(...args)
  const value = receiver === null ? (target as AnyFunction)(...args) : (target as AnyFunction).apply(receiver, args as unknown[])
  return isAsync ? checkFuture(name, value) : value
}

export class FunctionRegistry {
  private readonly byName = new Map<string, Exposed>()
  private readonly byTarget = new Map<AnyFunction | AnyClass, Exposed>()
  private readonly methodsOf = new Map<AnyClass, ReadonlySet<string>>()

  /**
   * Names all functions and classes of `record` or, when one is refused, none. The same pair may be named again, so a module may be imported
   * twice. A function with several names is called by the first. With a class go its own static methods, as `Class.method`.
   * @throws EXPOSE_CONFLICT another function has that name; EXPOSE_NOT_CALLABLE, also for a function without braces and a symbol as a name
   */
  expose(record: Readonly<Record<string, AnyFunction | AnyClass>>): void {
    checkRecord(record)
    const entries = withStatics(record)
    for (const { name, target } of entries) {
      if (typeof target !== 'function') {
        throw new PostgradError('EXPOSE_NOT_CALLABLE', {
          op: 'expose',
          expected: `a function or a class as '${name}'`,
          got: target === null ? 'null' : typeof target,
          remedy: 'Expose functions and classes only; share values as RRefs.',
        })
      }
      const known = this.byName.get(name)
      if (known !== undefined && known.target !== target) {
        throw new PostgradError('EXPOSE_CONFLICT', {
          op: 'expose',
          message: `another function is exposed as '${name}' already`,
          remedy: 'Give one of them another name: expose({ otherName: fn }).',
          values: { name },
        })
      }
    }
    for (const { name, target, receiver } of entries) {
      if (this.byName.has(name)) continue
      const exposed = { name, target, isClass: isClass(target), receiver, isAsync: isAsyncExecution(target as AnyFunction) }
      this.byName.set(name, exposed)
      if (!this.byTarget.has(target)) this.byTarget.set(target, exposed)
    }
  }

  /** @throws FUNCTION_NOT_EXPOSED on the caller, before anything is sent */
  nameOf(target: AnyFunction | AnyClass): string {
    const exposed = this.byTarget.get(target)
    if (exposed !== undefined) return exposed.name
    if (typeof target !== 'function') {
      throw new PostgradError('NOT_CALLABLE', {
        op: 'call',
        expected: 'a function or a class',
        got: typeof target,
        remedy: 'Pass the function itself, not its name.',
      })
    }
    throw notExposed(target.name || '(anonymous)', 'this worker', this.insteadOf(target))
  }

  /** The remedy for a method that was taken off its object; null for others. */
  private insteadOf({ name }: AnyFunction | AnyClass): string | null {
    const isBound = name.startsWith('bound ')
    const method = isBound ? name.slice('bound '.length) : name
    const isMethod = [...this.byTarget.values()].some(({ target, isClass }) => isClass && Object.hasOwn(target.prototype as object, method))
    if (!isBound && !isMethod) return null
    return `A method belongs to one object: make that where it shall live, with remote(to, Class) or rref(object), and use ref.call('${method}', args).`
  }

  /** @throws FUNCTION_NOT_EXPOSED on the callee */
  lookup(name: string, on: string): Exposed {
    const exposed = this.byName.get(name)
    if (exposed === undefined) throw notExposed(name, `worker '${on}'`)
    return exposed
  }

  /** Lets these methods of the class's instances be called from elsewhere by reference, and nothing else of it: it cannot be made from there. */
  exposeMethods(target: AnyClass, methods: Iterable<string>): void {
    this.methodsOf.set(target, new Set(methods))
  }

  /** Whether an exposed class made it, or one that extends such a class. */
  isInstance(value: object): boolean {
    for (let proto = Object.getPrototypeOf(value); proto !== null; proto = Object.getPrototypeOf(proto)) {
      if (this.byTarget.get(proto.constructor)?.isClass) return true
    }
    return false
  }

  /** The name under which the class that made it is exposed, or the first exposed one that it extends; empty if there is none. */
  classNameOf(value: object): string {
    for (let proto = Object.getPrototypeOf(value); proto !== null; proto = Object.getPrototypeOf(proto)) {
      const exposed = this.byTarget.get(proto.constructor)
      if (exposed?.isClass) return exposed.name
      if (this.methodsOf.has(proto.constructor)) return proto.constructor.name
    }
    return ''
  }

  /** Whether `value` was made by an exposed class or by one that extends it, so that its methods may be called from elsewhere. */
  mayCall(value: object, method: string): boolean {
    for (let proto = Object.getPrototypeOf(value); proto !== null; proto = Object.getPrototypeOf(proto)) {
      if (this.byTarget.get(proto.constructor)?.isClass || this.methodsOf.get(proto.constructor)?.has(method)) return true
    }
    return false
  }
}

interface Entry {
  readonly name: string
  readonly target: AnyFunction | AnyClass
  readonly receiver: AnyClass | null
}

/**
 * Without this, a function without braces or a symbol as a name would expose nothing, which shows only at the first call, on another worker.
 * @throws EXPOSE_NOT_CALLABLE
 */
function checkRecord(record: unknown): void {
  const refuse = (got: string, name = 'fn'): never => {
    throw new PostgradError('EXPOSE_NOT_CALLABLE', {
      op: 'expose',
      expected: 'functions and classes by their names',
      got,
      remedy: `Write them in braces: expose({ ${name} }).`,
    })
  }
  if (typeof record === 'function')
    refuse(`the ${isClass(record as AnyFunction) ? 'class' : 'function'} ${record.name}`.trimEnd(), record.name || 'fn')
  if (typeof record !== 'object' || record === null) refuse(record === null ? 'null' : typeof record)
  if (Array.isArray(record)) refuse('a list')
  const symbol = Object.getOwnPropertySymbols(record).find((key) => Object.prototype.propertyIsEnumerable.call(record, key))
  if (symbol !== undefined) refuse(`${String(symbol)} as a name, which no message can carry`)
}

/** The record, and the static methods of its classes. Inherited ones go with the class that has them; getters are not read. */
function withStatics(record: Readonly<Record<string, AnyFunction | AnyClass>>): readonly Entry[] {
  return Object.entries(record).flatMap(([name, target]): Entry[] => {
    const entry = { name, target, receiver: null }
    if (typeof target !== 'function' || !isClass(target)) return [entry]
    const statics = Object.entries(Object.getOwnPropertyDescriptors(target)).filter(
      ([, { value }]) => typeof value === 'function' && !isClass(value as AnyFunction),
    )
    return [
      entry,
      ...statics.map(([key, { value }]) => ({ name: `${name}.${key}`, target: value as AnyFunction, receiver: target as AnyClass })),
    ]
  })
}

/** Written with `class`: must be called with `new`. A method that is named `class` starts like one, but its prototype is not its own. */
function isClass(target: AnyFunction | AnyClass): boolean {
  if (!/^class\b/.test(Function.prototype.toString.call(target))) return false
  return Object.getOwnPropertyDescriptor(target, 'prototype')?.writable === false
}

function notExposed(name: string, where: string, remedy: string | null = null): PostgradError {
  return new PostgradError('FUNCTION_NOT_EXPOSED', {
    op: 'call',
    message: `function '${name}' is not exposed on ${where}`,
    remedy:
      remedy ??
      `Add expose({ ${/^\w+$/.test(name) ? name : 'name: fn'} }) to a module that every worker imports; functions travel by name, their code does not.`,
    values: { function: name },
  })
}

/** The names of this thread. `expose` writes it when a program's module is loaded; it holds names only, no state of any worker. */
export const threadRegistry = new FunctionRegistry()

/**
 * Makes functions and classes callable from other workers, under the keys of `record` as their names. A class is exposed with its methods and its own static
 * methods (`Class.method`). Call `expose` in a module that every worker imports: functions travel by name, their code does not. PyTorch finds functions by
 * their module and name, so it needs no counterpart.
 * @throws EXPOSE_CONFLICT if another function is exposed under that name
 * @throws EXPOSE_NOT_CALLABLE if a value is not a function or class, or if `record` is not a plain object
 * @example expose({ addOne: (a: Tensor) => a.add(1), Linear })
 */
export function expose(record: Readonly<Record<string, AnyFunction | AnyClass>>): void {
  threadRegistry.expose(record)
}
