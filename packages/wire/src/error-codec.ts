/**
 * Errors across the wire: class, code, message, stack, causes and the workers of the path. Encoding never throws, whatever was thrown: an
 * error takes a bounded part of a message, and the rest is cut.
 *
 *     [null, ValueTag.error, kind, name, message, stack, cause: [value]|null, errors: […]|null, workers: [name, id, …],
 *      code, op, remedy, values]
 *
 * An error comes back as the built-in class of its name or as a `PostgradError`; any other class becomes a `PostgradError` with code
 * REMOTE_EXCEPTION and the name in its values, since no class is ever looked up by a name from the wire. So does a thrown value of another type.
 */
import { types } from 'node:util'
import { isPostgradError, PostgradError, type WorkerHop } from '@postgrad/base'
import { HOPS_KEPT, withHop } from '@postgrad/base/internal'
import { isTensor } from '@postgrad/tensor'
import { wellFormed } from './strings.js'
import { ValueTag } from './value-tag.js'
import { corrupt } from './wire-errors.js'

const Kind = { error: 0, postgrad: 1, thrown: 2 } as const

const CAUSE_DEPTH_MAX = 8
/** Errors in one error: its causes and the members of AggregateErrors together. */
const ERRORS_MAX = 32
const MESSAGE_LENGTH_MAX = 32_768
const STACK_LENGTH_MAX = 16_384
const VALUES_DEPTH_MAX = 4
const VALUES_ENTRIES_MAX = 64
/** Of one error with all that is in it: far below the codec's limits, as nobody could learn of an error that is too large. */
const ELEMENTS_MAX = 8192
const CHARACTERS_MAX = 2 ** 18
/** Marks where a text was cut. */
const CUT = '…'
/** The length of an error's array. */
const ERROR_ELEMENTS = 13

const BUILT_IN = {
  Error: (message: string, cause: ErrorOptions | undefined) => new Error(message, cause),
  EvalError: (message: string, cause: ErrorOptions | undefined) => new EvalError(message, cause),
  RangeError: (message: string, cause: ErrorOptions | undefined) => new RangeError(message, cause),
  ReferenceError: (message: string, cause: ErrorOptions | undefined) => new ReferenceError(message, cause),
  SyntaxError: (message: string, cause: ErrorOptions | undefined) => new SyntaxError(message, cause),
  TypeError: (message: string, cause: ErrorOptions | undefined) => new TypeError(message, cause),
  URIError: (message: string, cause: ErrorOptions | undefined) => new URIError(message, cause),
} as const

/** Fields that postgrad adds to an error of another worker if the error is not a `PostgradError`. They are not enumerable. */
export interface RemoteErrorInfo {
  /** The stack on the worker that threw the error. */
  readonly remoteStack?: string
  /** The workers that the error passed through, beginning with the worker that threw it. */
  readonly workers?: readonly WorkerHop[]
}

/** An error of any realm, also a DOMException, which is not a native error. */
export function isError(value: unknown): value is Error {
  return types.isNativeError(value) || attempt(() => value instanceof Error) === true
}

/** Room left for the rest of an error. */
interface Budget {
  errors: number
  elements: number
  characters: number
}

/** Where the parts of an error go. */
export interface ErrorSink {
  /** Otherwise an error does not say where it arose: files, folders and the insides of a program are nobody else's business. */
  readonly takesStacks: boolean
  /** Makes a value of JSON's kinds packable, and counts its elements. */
  plain(value: unknown): unknown
  /** Counts elements that `plain` does not see. */
  count(elements: number): void
}

/** The wire form; `self` is added to its path. */
export function encodeError(thrown: unknown, self: WorkerHop | null, sink: ErrorSink): unknown[] {
  return encode(thrown, self, sink, 0, { errors: ERRORS_MAX, elements: ELEMENTS_MAX, characters: CHARACTERS_MAX })
}

function encode(thrown: unknown, self: WorkerHop | null, sink: ErrorSink, depth: number, budget: Budget): unknown[] {
  budget.errors--
  const plain = (value: unknown): unknown => sink.plain(value)
  const hops = depth === 0 ? pathFrom(hopsOf(thrown), self) : hopsOf(thrown)
  const workers = hops.flatMap(({ name, id }) => [name, id])
  sink.count(ERROR_ELEMENTS + workers.length)
  if (!isError(thrown)) {
    return [
      null,
      ValueTag.error,
      Kind.thrown,
      typeof thrown,
      describeThrown(thrown),
      null,
      null,
      null,
      workers,
      null,
      null,
      null,
      plain(tame(thrown, 0, budget)),
    ]
  }
  const error = thrown as Error & Partial<PostgradError> & { errors?: unknown }
  const isOurs = attempt(() => isPostgradError(error)) === true
  // First the fields that programs decide by: no later one can cut them.
  const name = text(() => nameOf(error), 'Error', MESSAGE_LENGTH_MAX)
  const codeValue = attempt(() => error.code)
  const code = typeof codeValue === 'string' || typeof codeValue === 'number' ? plain(tame(codeValue, 0, budget)) : null
  const op = isOurs ? text(() => error.op, '', MESSAGE_LENGTH_MAX) : null
  const remedy = isOurs ? text(() => error.remedy, null, MESSAGE_LENGTH_MAX) : null
  const message = text(() => error.message, '', MESSAGE_LENGTH_MAX)
  const stack = sink.takesStacks ? text(() => stackOf(error), null, STACK_LENGTH_MAX) : null
  const nested = (value: unknown): unknown =>
    isError(value) ? encode(value, null, sink, depth + 1, budget) : plain(tame(value, 0, budget))
  const mayNest = depth < CAUSE_DEPTH_MAX && budget.errors > 0
  const causeValue = attempt(() => error.cause)
  const cause = causeValue === undefined || !mayNest ? null : [nested(causeValue)]
  const members = attempt(() => error.errors)
  const errors = Array.isArray(members) && mayNest ? members.slice(0, budget.errors).map(nested) : null
  sink.count((cause?.length ?? 0) + (errors?.length ?? 0))
  const values = isOurs ? plain(tame(error.values, 0, budget)) : plain(ownValues(error, budget))
  return [null, ValueTag.error, isOurs ? Kind.postgrad : Kind.error, name, message, stack, cause, errors, workers, code, op, remedy, values]

  function text<T>(read: () => unknown, otherwise: T, lengthMax: number): unknown | T {
    const value = attempt(read)
    return typeof value === 'string' ? plain(cut(value, lengthMax, budget)) : otherwise
  }
}

/**
 * The error again, from the elements after the tag, of which `ValueReader` has made values (nested errors included).
 * @throws WIRE_CORRUPT
 */
export function decodeError(fields: readonly unknown[]): Error {
  const [kind, name, message, stack, cause, errors, flat, code, op, remedy, values] = fields
  if (fields.length !== 11 || typeof name !== 'string' || typeof message !== 'string') throw corrupt('an error')
  if (!isStringOrNull(stack) || !isStringOrNull(op) || !isStringOrNull(remedy)) throw corrupt('an error')
  if ((cause !== null && !(Array.isArray(cause) && cause.length === 1)) || (errors !== null && !Array.isArray(errors)))
    throw corrupt('an error')
  const workers = decodeHops(flat)
  const options: ErrorOptions | undefined = Array.isArray(cause) ? { cause: cause[0] } : undefined
  // The stack of the decoder says nothing to anybody, and taking it costs more than all the rest.
  const { stackTraceLimit } = Error
  Error.stackTraceLimit = 0
  let error: Error
  try {
    error = make(kind, name, message, options, errors, code, op, remedy, values)
  } finally {
    Error.stackTraceLimit = stackTraceLimit
  }
  if (stack !== null) {
    const isSame = error.name === name
    Object.defineProperty(error, 'stack', { value: isSame ? stack : `${error.name}: ${stack}`, writable: true, configurable: true })
  }
  if (isPostgradError(error)) {
    error.remoteStack = stack ?? undefined
    error.workers = workers
  } else {
    Object.defineProperty(error, 'remoteStack', { value: stack ?? undefined, writable: true, configurable: true })
    Object.defineProperty(error, 'workers', { value: workers, writable: true, configurable: true })
  }
  return error
}

function make(
  kind: unknown,
  name: string,
  message: string,
  options: ErrorOptions | undefined,
  errors: readonly unknown[] | null,
  code: unknown,
  op: string | null,
  remedy: string | null,
  values: unknown,
): Error {
  if (kind === Kind.postgrad) {
    if (typeof code !== 'string') throw corrupt('an error without a code')
    return postgradError(code, message, op ?? '', remedy, isRecord(values) ? values : {}, options)
  }
  if (kind === Kind.thrown) {
    return postgradError('REMOTE_EXCEPTION', message, 'remote', null, { name, thrown: values }, options)
  }
  if (kind !== Kind.error) throw corrupt('an error of an unknown kind')
  if (name === 'AggregateError') return assign(new AggregateError(errors ?? [], message, options), code, values)
  if (Object.hasOwn(BUILT_IN, name)) return assign(BUILT_IN[name as keyof typeof BUILT_IN](message, options), code, values)
  const kept = {
    ...(isRecord(values) ? values : {}),
    name,
    message,
    ...(code === null ? {} : { code }),
    ...(errors === null ? {} : { errors }),
  }
  return postgradError('REMOTE_EXCEPTION', `${name}: ${message}`, 'remote', null, kept, options)
}

function postgradError(
  code: string,
  message: string,
  op: string,
  remedy: string | null,
  values: Record<string, unknown>,
  options: ErrorOptions | undefined,
): PostgradError {
  const parts = {
    op,
    message: '',
    values,
    ...(remedy === null ? {} : { remedy }),
    ...(options === undefined ? {} : { cause: options.cause }),
  }
  const error = new PostgradError(code, parts)
  // As the other worker worded it; the constructor would put the operation in front once more.
  error.message = message
  return error
}

/** As Node prints it: the class's, where that has only inherited the name of a built-in one. */
function nameOf(error: Error): unknown {
  const { name } = error
  const isInherited = (Object.hasOwn(BUILT_IN, name) || name === 'AggregateError') && !Object.hasOwn(error, 'name')
  return isInherited ? error.constructor?.name || name : name
}

/** V8 writes `error.name` in front of it, whatever `nameOf` says. */
function stackOf(error: Error & { remoteStack?: string }): unknown {
  const { name, stack = error.remoteStack } = error
  return stack?.startsWith(name) ? `${nameOf(error)}${stack.slice(name.length)}` : stack
}

/** Plain own properties of a built-in error (Node's code, errno, syscall, …). */
function assign(error: Error, code: unknown, values: unknown): Error {
  if (isRecord(values)) {
    for (const [key, value] of Object.entries(values)) {
      if (!(key in error)) Object.defineProperty(error, key, { value, writable: true, enumerable: true, configurable: true })
    }
  }
  if (code !== null && !('code' in error))
    Object.defineProperty(error, 'code', { value: code, writable: true, enumerable: true, configurable: true })
  return error
}

function ownValues(error: object, budget: Budget): unknown {
  const keys = (attempt(() => Object.keys(error)) ?? []).filter((key) => !OWN_FIELDS.has(key))
  return entries(error, keys, 0, budget)
}

/** Sent as fields of their own, or nobody's business. */
const OWN_FIELDS: ReadonlySet<string> = new Set(['name', 'message', 'stack', 'cause', 'errors', 'code', 'remoteStack', 'workers'])

/** A value of JSON's kinds (and bigints) that says as much of `value` as can be said without its class, in what the budget leaves. */
function tame(value: unknown, depth: number, budget: Budget): unknown {
  switch (typeof value) {
    case 'string':
      return cut(value, MESSAGE_LENGTH_MAX, budget)
    case 'number':
    case 'boolean':
    case 'undefined':
      return value
    case 'bigint':
      return value >= -(1n << 63n) && value < 1n << 64n ? value : String(value)
    case 'object':
      break
    default:
      return attempt(() => asText(value, budget)) ?? typeof value
  }
  if (value === null) return null
  if (isTensor(value)) return `Tensor ${value.dtype} [${value.shape.join(', ')}]`
  if (depth >= VALUES_DEPTH_MAX || isError(value)) return attempt(() => asText(value, budget)) ?? '[object]'
  return (
    attempt(() => {
      if (Array.isArray(value)) {
        const elements = value.slice(0, Math.min(VALUES_ENTRIES_MAX, budget.elements))
        budget.elements -= elements.length
        return elements.map((element) => tame(element, depth + 1, budget))
      }
      const prototype = Object.getPrototypeOf(value)
      if (prototype !== null && Object.getPrototypeOf(prototype) !== null) return asText(value, budget)
      return entries(value, Object.keys(value), depth, budget)
    }) ?? '[object]'
  )
}

/** The properties of an object that the budget has room for. */
function entries(object: object, keys: readonly string[], depth: number, budget: Budget): Record<string, unknown> {
  const kept: Record<string, unknown> = {}
  for (const key of keys.slice(0, VALUES_ENTRIES_MAX)) {
    if (key === '__proto__' || key.length > budget.characters || budget.elements < 2) continue
    budget.characters -= key.length
    budget.elements -= 2
    kept[key] = tame(
      attempt(() => (object as Record<string, unknown>)[key]),
      depth + 1,
      budget,
    )
  }
  return kept
}

/** Makes no text if the budget is spent: the text of a nested array may be long. */
function asText(value: unknown, budget: Budget): string {
  return budget.characters === 0 ? CUT : cut(String(value), MESSAGE_LENGTH_MAX, budget)
}

function cut(text: string, lengthMax: number, budget: Budget): string {
  const length = Math.min(text.length, lengthMax, budget.characters)
  budget.characters -= length
  return length < text.length ? `${text.slice(0, length)}${CUT}` : text
}

function describeThrown(thrown: unknown): string {
  const text = attempt(() => (typeof thrown === 'object' && thrown !== null ? JSON.stringify(thrown) : String(thrown))) ?? typeof thrown
  return wellFormed(`remote: a value that is not an error was thrown: ${text.slice(0, 1000)}.`)
}

function hopsOf(thrown: unknown): readonly WorkerHop[] {
  const workers = attempt(() => (thrown as { workers?: unknown } | null | undefined)?.workers)
  if (!Array.isArray(workers)) return []
  return workers.slice(0, 2 * HOPS_KEPT).flatMap((hop: unknown) => {
    const { name, id } = (hop ?? {}) as Partial<WorkerHop>
    return typeof name === 'string' && typeof id === 'number' ? [{ name: wellFormed(name.slice(0, 256)), id }] : []
  })
}

/** The path up to this worker, which it may contain already. */
function pathFrom(hops: readonly WorkerHop[], self: WorkerHop | null): readonly WorkerHop[] {
  const last = hops.at(-1)
  return self === null || (last !== undefined && last.id === self.id && last.name === self.name) ? hops : withHop(hops, self)
}

function decodeHops(flat: unknown): WorkerHop[] {
  if (!Array.isArray(flat) || flat.length % 2 !== 0 || flat.length > 4 * HOPS_KEPT) throw corrupt("an error's path")
  const hops: WorkerHop[] = []
  for (let i = 0; i < flat.length; i += 2) {
    const name: unknown = flat[i]
    const id: unknown = flat[i + 1]
    if (typeof name !== 'string' || typeof id !== 'number') throw corrupt("an error's path")
    hops.push({ name, id })
  }
  return hops
}

/** Result of `read`; undefined when a getter, a proxy or a toString throws. */
function attempt<T>(read: () => T): T | undefined {
  try {
    return read()
  } catch {
    // Whatever it was, the error that is being sent matters more than this part of it.
    return undefined
  }
}

function isStringOrNull(value: unknown): value is string | null {
  return value === null || typeof value === 'string'
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
