/** Checks of one argument's kind, and its text in messages: for functions other than operations, which `arguments.ts` checks. */
import { invalidArgument, shapeText } from '../values/errors.js'
import { isTensor, type Tensor } from './tensor.js'

/** @throws INVALID_ARGUMENT */
export function checkTensor(op: string, what: string, x: unknown): asserts x is Tensor {
  if (isTensor(x)) return
  const remedy = x instanceof Promise ? 'Await the promise first.' : 'Pass a tensor; tensor(values) makes one.'
  throw invalidArgument(op, `a tensor as ${what}`, argumentText(x), remedy)
}

/** Whether `x` is an array whose items all fit. Not by `every`, which passes over holes: they are undefined to all who read them. */
export function isListOf(x: unknown, fits: (item: unknown) => boolean): boolean {
  if (!Array.isArray(x)) return false
  for (const item of x) if (!fits(item)) return false
  return true
}

/** @throws INVALID_ARGUMENT */
export function checkTensors(op: string, what: string, xs: unknown): asserts xs is readonly Tensor[] {
  if (isListOf(xs, isTensor)) return
  throw invalidArgument(op, `an array of tensors as ${what}`, argumentText(xs), 'Put the tensors into an array: [x, y].')
}

/** @throws INVALID_ARGUMENT */
export function checkFunction(op: string, what: string, fn: unknown): void {
  if (typeof fn !== 'function') throw invalidArgument(op, `a function as ${what}`, argumentText(fn), 'Write () => ….')
}

/** @throws INVALID_ARGUMENT */
export function checkIterable(op: string, what: string, items: unknown): asserts items is Iterable<unknown> {
  if (isTensor(items)) throw invalidArgument(op, `an array as ${what}`, argumentText(items), 'Wrap it in an array: [x].')
  if (typeof (items as Partial<Iterable<unknown>> | null | undefined)?.[Symbol.iterator] === 'function') return
  throw invalidArgument(op, `an array as ${what}`, argumentText(items), 'Write [a, b].')
}

/**
 * `known`: the names of all options. The `remedy` is for all refusals.
 * @throws INVALID_ARGUMENT unless it is an object with these names alone: an ignored option would silently give other results
 */
export function checkOptions<O extends object>(op: string, options: O, known: readonly (keyof O)[], remedy?: string): void {
  const names = known as readonly string[]
  const example = remedy ?? `Write them in braces, as in { ${names[0]}: … }; names are camelCase here, as batchFirst for batch_first.`
  if (typeof options !== 'object' || options === null || Array.isArray(options) || isTensor(options)) {
    throw invalidArgument(op, `an object with options (${names.join(', ')})`, argumentText(options), example)
  }
  if (hasOnly(options, names)) return
  const unknown: string[] = []
  for (const name in options) if (!names.includes(name)) unknown.push(name)
  throw invalidArgument(op, `the options ${names.join(', ')}`, unknown.join(', '), example)
}

/** Whether an object has no other names than these. */
export function hasOnly(options: object, names: readonly string[]): boolean {
  for (const name in options) if (!names.includes(name)) return false
  return true
}

/** An argument as a message shows it. */
export function argumentText(x: unknown): string {
  if (isTensor(x)) return `tensor ${shapeText(x.shape)} of ${x.dtype}`
  if (typeof x === 'string') return `'${x.length > 20 ? `${x.slice(0, 20)}…` : x}'`
  if (Array.isArray(x))
    return `an array of ${x.length === 0 ? 'nothing' : x.slice(0, 4).map(argumentText).join(', ')}${x.length > 4 ? ', …' : ''}`
  if (typeof x === 'object' && x !== null)
    return x.constructor === undefined || x.constructor === Object ? 'an object' : `a ${x.constructor.name}`
  return typeof x === 'function' ? 'a function' : String(x)
}
