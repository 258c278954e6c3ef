/**
 * Defines operations. Each is one exported constant, whose annotation is its signature and whose comment is its documentation. Its entry has its arguments, its
 * computation and its derivative. The function, the method, the in-place form, the check of arguments, and autograd's record are made of the entry.
 *
 * `primitive`: computes with kernels and has a row of derivatives. `composite`: written once over other operations; over the raw ones it computes, over the recorded
 * ones it records its parts. `inPlace`: writes into its first argument. `types.ts` puts the types of all together.
 */
import { nameOperations } from '../../heap/storage.js'
import { overwrite } from '../../raw/inplace.js'
import { type Ops, rawOperations } from '../../raw/operations.js'
import { checked, type Operation, type OptionNames, type Slot, type SlotsOf } from '../../tensor/arguments.js'
import { Tensor } from '../../tensor/tensor.js'
import type { ExtremeOf, ValuesAndIndices } from '../../values/options.js'
import type { Row } from './formula.js'

export { type Ops, rawOperations } from '../../raw/operations.js'

declare const inPlaceMark: unique symbol
declare const functionalMark: unique symbol
/**
 * An operation that also exists as a method with an underscore, which writes the result into the tensor. The mark is optional, so every function with this
 * signature has this type.
 */
export type WithInPlace<F> = F & { readonly [inPlaceMark]?: true }
/** An operation that tensors do not have as a method. */
export type Functional<F> = F & { readonly [functionalMark]?: true }

type IsInPlace<F> = typeof inPlaceMark extends keyof F ? true : false
type IsFunctional<F> = typeof functionalMark extends keyof F ? true : false
type Marks<F> = IsInPlace<F> extends true ? { readonly inPlace: true } : object
/** The signature without marks. */
type Call<F> = F extends (...args: infer P) => infer R ? (...args: P) => R : never

type Checked<F> = {
  /** By position: the kinds of the arguments. */
  readonly args: SlotsOf<F>
  /** Takes tensors of two devices. */
  readonly betweenDevices?: true
  /** Takes cpu tensors without dimensions in its lists and options, as numbers. */
  readonly looseNumbers?: true
} & ([OptionNames<F>] extends [never] ? object : { readonly options: Readonly<Record<OptionNames<F>, true>> })
/** An operation that is not a method may have no check: only operations call it, correctly, or it checks itself. */
type Checks<F> = Marks<F> &
  (IsFunctional<F> extends true ? (Checked<F> & { readonly isFunctional: true }) | { readonly args?: undefined } : Checked<F>)

export type Primitive<F> = Checks<F> & {
  readonly raw: Call<F>
  /** Of an operation with an in-place form: writes into the first argument and returns it. Without it the form copies the result there. */
  readonly into?: Call<F>
  /** null: the result has no gradient. */
  readonly grad: F extends (...args: infer P) => unknown ? Row<P> | null : never
  /** The name of its node, if it is another: two primitives of one operation have one name. */
  readonly node?: string
}

export type Composite<F> = Checks<F> & {
  readonly of: (ops: Ops) => Call<F>
  /** Computes the same with fewer calls. */
  readonly raw?: Call<F>
}

export type InPlace<F> = Checks<F> & {
  readonly raw: Call<F>
  /** Its value as a new tensor, not as a view of the first argument. */
  readonly value: (ops: Ops) => Call<F>
  /** The value does not depend on the first argument's. */
  readonly isBlind?: true
}

/** An operation as the driver sees it. */
export class Entry {
  readonly name: string
  readonly slots: readonly Slot[] | null
  readonly options: readonly string[] | undefined
  readonly betweenDevices: boolean
  readonly looseNumbers: boolean
  readonly how: How
  /** Computes, and records nothing. */
  readonly raw: Operation
  /** Runs after the check of users' calls: records where autograd is loaded. */
  call: Operation
  /** Users call it. */
  fn: Operation

  constructor(name: string, { args, options, betweenDevices, looseNumbers }: AnyChecks, how: How, raw: Operation) {
    this.name = name
    this.slots = args ?? null
    this.options = options && Object.keys(options)
    this.betweenDevices = betweenDevices === true
    this.looseNumbers = looseNumbers === true
    this.how = how
    this.raw = raw
    this.call = raw
    this.fn = this.slots === null ? unchecked(this) : checked(this)
  }
}

interface AnyChecks {
  readonly args?: readonly Slot[]
  readonly options?: object
  readonly betweenDevices?: true
  readonly looseNumbers?: true
  readonly inPlace?: true
  readonly into?: Operation
  readonly isFunctional?: true
}
export type AnyRow = Row<readonly unknown[]>
/** How an operation is recorded. */
export type How =
  | { readonly kind: 'primitive'; readonly row: AnyRow | null; readonly node: string }
  | { readonly kind: 'composite'; readonly of: (ops: Ops) => Operation }
  | { readonly kind: 'in place'; readonly value: (ops: Ops) => Operation; readonly isBlind: boolean }

/** An operation that only others call, or that checks its arguments itself. */
function unchecked(entry: Entry): Operation {
  return Object.defineProperty((...args: unknown[]) => entry.call(...args), 'name', { value: entry.name })
}

/** In the order in which they were defined. */
export const entries: Entry[] = []
/** Makes an operation a recorded one; autograd sets it. */
let recorder: ((entry: Entry) => Operation) | null = null

/** Each operation, also those that come later, is called as `record` makes it. */
export function installRecorder(record: (entry: Entry) => Operation): void {
  recorder = record
  for (const entry of entries) entry.call = record(entry)
}

/** An operation with kernels. An entry that does not fit its signature does not compile. */
export function primitive<F extends Operation>(name: string, def: Primitive<F>): F {
  const { raw, grad, node } = def as unknown as { raw: Operation; grad: AnyRow | null; node?: string }
  return operation(name, def, { kind: 'primitive', row: grad, node: node ?? name }, raw)
}

/** An operation over others. */
export function composite<F extends Operation>(name: string, def: Composite<F>): F {
  const { of, raw } = def as unknown as { of: (ops: Ops) => Operation; raw?: Operation }
  return operation(name, def, { kind: 'composite', of }, raw ?? of(rawOperations))
}

/** An operation that writes into its first argument and returns it. Autograd writes `value`, recorded, where gradients are wanted. */
export function inPlace<F extends Operation>(name: string, def: InPlace<F>): F {
  const { raw, value, isBlind = false } = def as unknown as { raw: Operation; value: (ops: Ops) => Operation; isBlind?: true }
  return operation(name, def, { kind: 'in place', value, isBlind }, raw)
}

/** The in-place form that follows from an operation: its value is written into the first argument, which keeps its shape and dtype and is returned. */
function inPlaceForm(name: string, def: AnyChecks, raw: Operation): void {
  const op = `${name}_`
  const value = (ops: Ops) => (ops as unknown as Record<string, Operation>)[name]!
  const args = def.args && (['tensor', ...def.args.slice(1)] as const)
  const write = def.into ?? ((x: Tensor, ...rest: unknown[]) => overwrite(op, x, raw(x, ...rest)))
  operation(op, { ...def, inPlace: undefined, args }, { kind: 'in place', value, isBlind: false }, write)
}

function operation<F extends Operation>(name: string, def: object, how: How, raw: Operation): F {
  const checks = def as AnyChecks
  if (name in rawOperations) throw new Error(`two operations are called ${name}`)
  const entry = new Entry(name, checks, how, raw)
  entries.push(entry)
  ;(rawOperations as unknown as Record<string, Operation>)[name] = raw
  // Stacks show by these names what ran.
  const shown = how.kind === 'primitive' ? how.node : name
  Object.defineProperty(raw, 'name', { value: shown })
  nameOperations([shown])
  if (recorder !== null) entry.call = recorder(entry)
  if (entry.slots !== null && checks.isFunctional !== true) method(name, entry.fn, entry.slots.length)
  if (checks.inPlace === true) inPlaceForm(name, checks, raw)
  return entry.fn as F
}

/** Installs the method of tensors; its types come from `types.ts`. @param arity of the function, with the tensor; 5 for any number */
export function method(name: string, fn: Operation, arity: number): void {
  const value = [
    function (this: Tensor): unknown {
      return fn(this)
    },
    function (this: Tensor, y: unknown): unknown {
      return fn(this, y)
    },
    function (this: Tensor, y: unknown, z: unknown): unknown {
      return fn(this, y, z)
    },
    function (this: Tensor, y: unknown, z: unknown, w: unknown): unknown {
      return fn(this, y, z, w)
    },
    function (this: Tensor, ...rest: unknown[]): unknown {
      return fn(this, ...rest)
    },
  ][Math.min(arity, 5) - 1]!
  Object.defineProperty(value, 'name', { value: name })
  Object.defineProperty(Tensor.prototype, name, { value, writable: true, configurable: true })
}

/** The operations of a module as functions. */
type Functions<M> = { readonly [K in keyof M]: M[K] }
type MethodNames<M> = { [K in keyof M]: IsFunctional<M[K]> extends true ? never : K }[keyof M]
type InPlaceNames<M> = { [K in keyof M]: IsInPlace<M[K]> extends true ? K : never }[keyof M]
type MethodOf<F> = [F, ExtremeOf<Tensor>] extends [ExtremeOf<Tensor>, F]
  ? {
      /** Of all elements; the gradient is shared by equals. NaN wins. */
      (): Tensor
      /** Along `dim`: the values, and the index of the first of equals, which gets the gradient. */
      (dim: number, keepdim?: boolean): ValuesAndIndices<Tensor>
    }
  : F extends (x: Tensor, ...rest: infer P) => infer R
    ? (...rest: P) => R
    : never
type InPlaceMethodOf<F> = F extends (x: Tensor, ...rest: infer P) => unknown ? (...rest: P) => Tensor : never
/** The operations of a module as methods; each keeps its documentation. */
type Methods<M, K extends keyof M = MethodNames<M>> = { [P in K]: MethodOf<M[P]> }
/** The in-place forms of a module as methods. */
type InPlaceMethods<M, K extends keyof M = InPlaceNames<M>> = { [P in K as `${P & string}_`]: InPlaceMethodOf<M[P]> }
/** The in-place forms of a module, by name. */
type InPlaceFunctions<M, K extends keyof M = InPlaceNames<M>> = {
  readonly [P in K as `${P & string}_`]: M[P] extends (...args: infer A) => unknown ? (...args: A) => Tensor : never
}

/** All that a module adds to `ops`, and to tensors. */
export type AllFunctions<M> = Functions<M> & InPlaceFunctions<M>
export type AllMethods<M> = Methods<M> & InPlaceMethods<M>
