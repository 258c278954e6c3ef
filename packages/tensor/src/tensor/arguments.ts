/**
 * Checks arguments of public functions and of tensors' methods: a caller who ignores the types, from JavaScript say, learns what the operation takes
 * and what it got, instead of which property was read of undefined. Operations call each other without it. Only kinds are checked here; each
 * operation checks its values and shapes itself.
 */

import { PostgradError } from '@postgrad/base'
import { inSpan, tracing } from '@postgrad/base/internal'
import { CPU, hasDevices } from '../heap/memory.js'
import { invalidArgument } from '../values/errors.js'
import { argumentText, checkOptions, hasOnly, isListOf } from './check-argument.js'
import { isTensor, Tensor } from './tensor.js'

type Kind =
  | 'tensor'
  | 'operand'
  | 'filling'
  | 'number'
  | 'number or boolean'
  | 'boolean'
  | 'string'
  | 'numbers'
  | 'dims'
  | 'tensors'
  | 'options'
  | 'named or options'
  | 'list'
  | 'number or list'
  | 'target'
/** '?' may be left out, '??' may be null as well. */
export type Slot = Kind | `${Kind}?` | `${Kind}??`

type KindOf<P> = [P] extends [Tensor]
  ? 'tensor'
  : [P] extends [number]
    ? 'number'
    : [P] extends [boolean]
      ? 'boolean'
      : [P] extends [number | Tensor]
        ? 'operand'
        : [P] extends [number | boolean]
          ? 'number or boolean'
          : [P] extends [number | boolean | Tensor]
            ? 'filling'
            : [P] extends [string]
              ? 'string'
              : [P] extends [string | DeviceLike | Tensor]
                ? 'target'
                : [P] extends [readonly number[]]
                  ? 'numbers'
                  : [P] extends [number | readonly number[]]
                    ? 'dims'
                    : [P] extends [readonly Tensor[]]
                      ? 'tensors'
                      : [P] extends [readonly unknown[]]
                        ? 'list'
                        : [P] extends [number | readonly unknown[]]
                          ? 'number or list'
                          : [P] extends [object]
                            ? 'options'
                            : 'named or options'
type SlotOf<P> = null extends P
  ? `${KindOf<Exclude<P, null | undefined>>}??`
  : undefined extends P
    ? `${KindOf<Exclude<P, undefined>>}?`
    : KindOf<P>
export type SlotsOf<F> = F extends (...args: infer P) => unknown ? Required<{ readonly [I in keyof P]: SlotOf<P[I]> }> : never

/** The names of the options among the arguments of an operation. */
type NamesOf<P> = P extends readonly unknown[] | Tensor | DeviceLike | string | number | boolean | null | undefined
  ? never
  : P extends object
    ? keyof P & string
    : never
export type OptionNames<F> = F extends (...args: infer P) => unknown ? NamesOf<P[number]> : never

/** A device, as operations see it. */
export interface DeviceLike {
  readonly spec: string
  readonly type: string
}

// biome-ignore lint/suspicious/noExplicitAny: of any signature.
export type Operation = (...args: any[]) => any

/** An operation as the check of its arguments sees it. */
export interface Checked {
  readonly name: string
  readonly slots: readonly Slot[] | null
  /** The names that the operation's options may have. */
  readonly options?: readonly string[] | undefined
  readonly betweenDevices?: boolean
  readonly looseNumbers?: boolean
  /** Called after the check; read at each call. */
  readonly call: Operation
}

/** A function that checks its arguments before it calls the operation. Up to four arguments go without an array of them, which costs as much as a small operation. */
export function checked(entry: Checked): Operation {
  const { name, options } = entry
  const slots = entry.slots!
  const fits = slots.map((slot) => fitOf(slot, options))
  const [first, second, third, fourth] = fits as [Fit, Fit, Fit, Fit]
  const refuse = (...args: unknown[]): never => {
    throw refusal(name, slots, args, options)
  }
  const apart = (...args: unknown[]): unknown => {
    const placed = hasDevices ? onOneDevice(entry, args) : args
    return tracing === null ? entry.call(...placed) : inSpan('operation', name, undefined, () => entry.call(...placed))
  }
  let wrapper: Operation
  if (slots.length === 1) {
    wrapper = (x) => {
      if (!first(x)) refuse(x)
      if (hasDevices || tracing !== null) return apart(x)
      const { call } = entry
      return call(x)
    }
  } else if (slots.length === 2) {
    wrapper = (x, y) => {
      if (!first(x) || !second(y)) refuse(x, y)
      if (hasDevices || tracing !== null) return apart(x, y)
      const { call } = entry
      return call(x, y)
    }
  } else if (slots.length === 3) {
    wrapper = (x, y, z) => {
      if (!first(x) || !second(y) || !third(z)) refuse(x, y, z)
      if (hasDevices || tracing !== null) return apart(x, y, z)
      const { call } = entry
      return call(x, y, z)
    }
  } else if (slots.length === 4) {
    wrapper = (x, y, z, w) => {
      if (!first(x) || !second(y) || !third(z) || !fourth(w)) refuse(x, y, z, w)
      if (hasDevices || tracing !== null) return apart(x, y, z, w)
      const { call } = entry
      return call(x, y, z, w)
    }
  } else {
    wrapper = (...args) => {
      for (let i = 0; i < fits.length; i++) if (!fits[i]!(args[i])) refuse(...args)
      if (hasDevices || tracing !== null) return apart(...args)
      const { call } = entry
      return call(...args)
    }
  }
  // Functions are called by name over the wire and shown in stacks.
  return Object.defineProperty(wrapper, 'name', { value: name })
}

/** For a function that is not an operation. */
export function checkedOperation<F extends Operation>(name: string, call: F, slots: readonly Slot[]): F {
  return checked({ name, call, slots }) as F
}

/**
 * The arguments of a call with all tensors on one device: those of no dimension follow the others from the cpu, as numbers do.
 * @throws DEVICE_MISMATCH
 */
export function onOneDevice({ name: op, betweenDevices, looseNumbers }: Omit<Checked, 'call' | 'slots'>, args: unknown[]): unknown[] {
  const tensors = args.flatMap(tensorsIn)
  const away = tensors.find(({ storage }) => storage.memory !== CPU)
  if (away === undefined || betweenDevices === true) return args
  const { memory } = away.storage
  const isNumber = (x: Tensor): boolean => x.storage.memory === CPU && x.ndim === 0 && (args.includes(x) || looseNumbers === true)
  const stray = tensors.find((x, i) => x.storage.memory !== memory && (!isNumber(x) || (i === 0 && op.endsWith('_'))))
  if (stray !== undefined) {
    const devices = tensors.map((x) => x.device.toString())
    throw new PostgradError('DEVICE_MISMATCH', {
      op,
      expected: 'tensors of one device (numbers, and tensors of the cpu without dimensions, may come along)',
      got: devices.join(', '),
      remedy: `Move them to one device first: x.to('${away.device}').`,
      values: { devices },
    })
  }
  return args.map((arg) => (isTensor(arg) && arg.storage.memory !== memory ? arg.to(away.device) : arg))
}

/** Those of an argument: itself, the items of a list, the values of options. */
function tensorsIn(arg: unknown): Tensor[] {
  if (isTensor(arg)) return [arg]
  return typeof arg === 'object' && arg !== null && !ArrayBuffer.isView(arg) ? Object.values(arg).filter(isTensor) : []
}

type Fit = (x: unknown) => boolean

const kindOf = (slot: Slot): Kind => slot.replace(/\?+$/, '') as Kind

function fitOf(slot: Slot, options?: readonly string[]): Fit {
  const kind = kindOf(slot)
  const fits: Fit =
    options !== undefined && (kind === 'options' || kind === 'named or options')
      ? (x) => FITS[kind](x) && (typeof x === 'string' || hasOnly(x as object, options))
      : FITS[kind]
  if (slot.endsWith('??')) return (x) => x === undefined || x === null || fits(x)
  return slot.endsWith('?') ? (x) => x === undefined || fits(x) : fits
}

/** instanceof first, since it is cheap; `isTensor` knows those of another realm or copy too. */
const isOne: Fit = (x) => x instanceof Tensor || isTensor(x)
const isNumber: Fit = (x) => typeof x === 'number'
const isNumbers: Fit = (x) => isListOf(x, isNumber)
const isOptions: Fit = (x) => typeof x === 'object' && x !== null && !Array.isArray(x) && !isTensor(x)

const FITS: Readonly<Record<Kind, Fit>> = {
  tensor: isOne,
  operand: (x) => typeof x === 'number' || isOne(x),
  filling: (x) => typeof x === 'number' || typeof x === 'boolean' || isOne(x),
  number: isNumber,
  'number or boolean': (x) => typeof x === 'number' || typeof x === 'boolean',
  boolean: (x) => typeof x === 'boolean',
  string: (x) => typeof x === 'string',
  numbers: isNumbers,
  dims: (x) => typeof x === 'number' || isNumbers(x),
  tensors: (x) => isListOf(x, isOne),
  options: isOptions,
  'named or options': (x) => typeof x === 'string' || isOptions(x),
  list: Array.isArray,
  'number or list': (x) => typeof x === 'number' || Array.isArray(x),
  // The operation knows which dtypes and devices there are, and says so.
  target: (x) => x !== undefined,
}

const WORDS: Readonly<Record<Kind, string>> = {
  tensor: 'tensor',
  operand: 'tensor or number',
  filling: 'tensor or number or boolean',
  number: 'number',
  'number or boolean': 'number or boolean',
  boolean: 'boolean',
  string: 'string',
  numbers: 'number[]',
  dims: 'number or number[]',
  tensors: 'tensor[]',
  options: '{…}',
  'named or options': 'string or {…}',
  list: 'list',
  'number or list': 'number or list',
  target: 'dtype or device or tensor',
}

function refusal(op: string, slots: readonly Slot[], args: readonly unknown[], options?: readonly string[]): Error {
  // Of a function of two arguments that was called with one, say one.
  const given = args.slice(0, args.findLastIndex((x) => x !== undefined) + 1)
  const at = slots.findIndex((slot, i) => !fitOf(slot, options)(args[i]))
  // Of the right kind, so its names are wrong.
  if (options !== undefined && fitOf(slots[at]!)(args[at]))
    checkOptions<Record<string, unknown>>(op, args[at] as Record<string, unknown>, options)
  const expected = slots.map(
    (slot) => `${WORDS[kindOf(slot)]}${slot.endsWith('??') ? ' or null' : ''}${slot.endsWith('?') ? ' or nothing' : ''}`,
  )
  return invalidArgument(
    op,
    `(${expected.join(', ')})`,
    `(${given.map(argumentText).join(', ')})`,
    remedy(kindOf(slots[at]!), args[at], at),
  )
}

function remedy(kind: Kind, got: unknown, at: number): string {
  if (got instanceof Promise) return 'Await the promise first.'
  if (isOptions(got) && kind !== 'options' && kind !== 'named or options' && kind !== 'tensor' && kind !== 'operand') {
    return `Write the value itself as argument ${at + 1}, without braces: arguments go by their order here; a method's own tensor is argument 1.`
  }
  if (kind === 'numbers' && typeof got === 'number') return 'Write [2, 3], not 2, 3.'
  if (kind === 'tensors' && isTensor(got)) return 'Put the tensors into an array: [x, y].'
  if ((kind === 'tensor' || kind === 'operand') && typeof got === 'boolean')
    return `Write tensor(${got}): it promotes as a boolean does in PyTorch.`
  if ((kind === 'tensor' || kind === 'operand') && got !== undefined && got !== null) return 'Make a tensor of it: tensor(values).'
  return `Look at argument ${at + 1}; a method's own tensor is argument 1.`
}
