/**
 * The one error class of expected failures: every package throws it, `wire` carries it whole. A failure that a user, a peer or
 * the machine can cause is a `PostgradError` with a stable code; a bug is an assertion (`node:assert`).
 */
import { types } from 'node:util'
import { beginAtProgram, IS_INSTALLED } from './program-stack.js'

/** The parts of a `PostgradError`. Its message reads "op: expected …, got …. Remedy." */
export interface ErrorParts {
  /** The operation as the user called it: `call`, `matmul`, `backward`. */
  readonly op: string
  /** The value that would be right, in words: 'a number ≥ 0'. */
  readonly expected?: string
  /** The value that was given, in words. */
  readonly got?: string
  /** The way out for the reader: a full sentence, the end of the message. */
  readonly remedy?: string
  /** Replaces "expected …, got …" if that form does not fit. */
  readonly message?: string
  /** The error that led to this one; null or left out if there is none. */
  readonly cause?: unknown
  /** Values that identify the case: worker names, ids as strings, shapes. They are sent with the error, so they must be JSON-like. */
  readonly values?: Readonly<Record<string, unknown>>
}

/** A worker that an error passed through on its way back to the caller. */
export interface WorkerHop {
  /** The worker's name. */
  readonly name: string
  /** The worker's id. */
  readonly id: number
}

/** An error keeps the first and the last so many workers of its way. */
export const HOPS_KEPT = 16

/** The way with one hop more; from the middle of a long one, hops are dropped. */
export function withHop(path: readonly WorkerHop[], { name, id }: WorkerHop): readonly WorkerHop[] {
  const longer = [...path, { name, id }]
  return longer.length <= 2 * HOPS_KEPT ? longer : [...longer.slice(0, HOPS_KEPT), ...longer.slice(-HOPS_KEPT)]
}

/**
 * The error class of every expected failure in postgrad. It has a stable `code`, the `values` of the case, and a `remedy`. Another worker receives the error
 * with all its fields. To test for an error, use `isPostgradError(error, 'WORKER_DIED')`; `npx postgrad explain WORKER_DIED` explains a code.
 * @example
 * try {
 *   zeros([2]).add(zeros([3]))
 * } catch (error) {
 *   if (!(error instanceof PostgradError)) throw error
 *   error.code // 'SHAPE_MISMATCH'
 *   error.op // 'add'
 *   error.remedy // 'Insert dimensions of extent 1 with unsqueeze(), or reshape() one side.'
 * }
 */
export class PostgradError extends Error {
  /** The code of the failure, such as `WORKER_DIED`. It is stable across versions: programs compare the code, not the message. */
  readonly code: string
  /** The operation that failed, as the user called it: `call`, `matmul`, `backward`. */
  readonly op: string
  /** Values that identify the case: worker names, ids as strings, shapes. */
  readonly values: Readonly<Record<string, unknown>>
  // Fields that a printed error shows already, in its message and its stack, are none of its own, or it would show them twice.
  readonly #remedy: string | undefined
  #remoteStack: string | undefined
  #workers: readonly WorkerHop[] = []

  constructor(code: string, parts: ErrorParts) {
    super(describe(parts), parts.cause === undefined || parts.cause === null ? undefined : { cause: parts.cause })
    this.name = 'PostgradError'
    this.code = code
    if (IS_INSTALLED) beginAtProgram(this, PostgradError)
    this.op = parts.op
    this.values = parts.values ?? {}
    this.#remedy = parts.remedy
  }

  /** The way out for the reader: the end of the message. Undefined if the message has none. */
  get remedy(): string | undefined {
    return this.#remedy
  }

  /** The stack on the worker where the error arose; undefined if it arose on this worker. */
  get remoteStack(): string | undefined {
    return this.#remoteStack
  }

  set remoteStack(stack: string | undefined) {
    this.#remoteStack = stack
  }

  /** The workers that the error passed through, beginning with the worker where it arose: the first 16 and the last 16. Empty if it arose on this worker. */
  get workers(): readonly WorkerHop[] {
    return this.#workers
  }

  set workers(workers: readonly WorkerHop[]) {
    this.#workers = workers
  }
}

function describe({ op, expected, got, remedy, message }: ErrorParts): string {
  const what = message ?? [expected && `expected ${expected}`, got && `got ${got}`].filter(Boolean).join(', ')
  // After a list, the remedy has a line of its own.
  const end = what.endsWith('\n') ? '' : /[.!?]$/.test(what) ? ' ' : '. '
  return `${op}: ${what}${end}${remedy ?? ''}`.trimEnd()
}

/** The message of an error without its operation and its remedy, for a message of one's own. */
export function whatOf({ op, message, remedy = '' }: PostgradError): string {
  const from = message.startsWith(`${op}: `) ? op.length + 2 : 0
  const to = message.endsWith(remedy) ? message.length - remedy.length : message.length
  return message.slice(from, to).replace(/ $/, '')
}

/**
 * Returns whether a value is a `PostgradError`, and if `code` is given, one with this code. Unlike `instanceof`, it also recognises errors of another copy of
 * postgrad, or of another realm, as in jest.
 * @example
 * try {
 *   zeros([2]).add(zeros([3]))
 * } catch (error) {
 *   isPostgradError(error) // true
 *   isPostgradError(error, 'WORKER_DIED') // false
 * }
 */
export function isPostgradError(error: unknown, code?: string): error is PostgradError {
  if (typeof error !== 'object' || error === null) return false
  const e = error as { name?: unknown; code?: unknown; op?: unknown }
  return e.name === 'PostgradError' && typeof e.op === 'string' && (code === undefined || e.code === code)
}

/** Any part of the library may meet these: the process is at its limit of open files (EMFILE), or the system is (ENFILE). The error of a thread that could not begin has only the word. */
const SAID = /\b(EMFILE|ENFILE)\b/
const CAUSES_MAX = 8

/** TOO_MANY_OPEN_FILES with this error as its cause; null: neither the error nor a cause of it says that. */
export function tooManyOpenFiles(op: string, error: unknown): PostgradError | null {
  let at = error
  for (let depth = 0; depth < CAUSES_MAX && typeof at === 'object' && at !== null; depth++) {
    const { code, message, cause } = at as { code?: unknown; message?: unknown; cause?: unknown }
    if (code === 'TOO_MANY_OPEN_FILES') return at as PostgradError
    const said = [code, message].flatMap((text) => (typeof text === 'string' ? (SAID.exec(text)?.[1] ?? []) : []))[0]
    if (said !== undefined) return openFiles(op, said, error)
    at = cause
  }
  return null
}

function openFiles(op: string, said: string, cause: unknown): PostgradError {
  const ofProcess = said === 'EMFILE'
  return new PostgradError('TOO_MANY_OPEN_FILES', {
    op,
    message: ofProcess
      ? 'this process has reached its limit of open files (EMFILE)'
      : 'the machine has as many files open as it can (ENFILE)',
    remedy: ofProcess
      ? 'Raise the limit before you start the program (ulimit -n 4096; LimitNOFILE in systemd), or start fewer workers in a process. Each worker holds four open files, each connection one more, and loading modules needs a few.'
      : 'End what holds them (lsof), or raise the limit of the machine (fs.file-max).',
    values: { code: said },
    cause,
  })
}

/**
 * A value as text for an error or a log, also a value from a peer. `String(value)` and `${value}` call methods of the value, and a peer may send any value:
 * `{ toString: 1 }` makes them throw where nobody expects it. This never throws and calls nothing of the value.
 */
export function plainText(value: unknown): string {
  if (typeof value === 'string') return value
  if (typeof value === 'function') return 'a function'
  if (typeof value !== 'object' || value === null) return String(value)
  if (Array.isArray(value)) return 'an array'
  const message = types.isNativeError(value) ? Object.getOwnPropertyDescriptor(value, 'message')?.value : undefined
  return typeof message === 'string' ? message : 'an object'
}
