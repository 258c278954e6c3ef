/**
 * Adds the program's line to an error that comes from elsewhere. If a message handler or a timer rejects a promise, the stack has no line of
 * the code that awaits it. V8 knows those lines, but only inside a promise job that leads to the awaited promise. So a rejection goes
 * through two promises more, of which the first reads the lines; a success pays nothing.
 */

/** Errors that have their lines: one error may end several waits, and the first that knows a line counts. */
const traced = new WeakSet<object>()
/** Frames of the library come before those of the program. */
const FRAMES_MAX = 32
/** After the lines of another worker. */
const HOP = '    --- above: on worker '

/** Rejects `promise`, whose own functions `settle` and `fail` are, with lines of the program that awaits it in `error.stack`. `then` runs right before. */
export function rejectTraced(
  promise: Promise<unknown>,
  settle: (value: never) => void,
  fail: (error: unknown) => void,
  error: unknown,
  then: () => void = () => {},
): void {
  const read = (): never => {
    traceAwait(error, read)
    then()
    throw error
  }
  const job = Promise.reject(error).then(undefined, read)
  // Its `then` makes no new promise but ends the given one, which is how V8 finds from one to the other.
  Object.defineProperty(job, 'constructor', { value: { [Symbol.species]: Given } })
  void job.then()

  function Given(executor: (resolve: (value: never) => void, reject: (error: unknown) => void) => void): Promise<unknown> {
    executor(settle, fail)
    return promise
  }
}

/** Appends the lines that await the running code to the stack of an error. Call it in an async function, after an `await`. */
export function traceAwait(error: unknown, below: (...args: never[]) => unknown = traceAwait): void {
  appendLines(error, below)
}

/**
 * Appends a line with the name of `worker` after that worker's lines, before those of this one. `op` was called there. The first line, which a user reads
 * first, gets the worker where the error arose; the message stays as it is, since programs compare it.
 */
export function markHop(error: unknown, worker: string, op?: string): void {
  changeStack(error, (stack) => {
    const { name, workers } = error as { name?: unknown; workers?: readonly { name: string }[] }
    const origin = ` (on worker '${workers?.[0]?.name ?? worker}')`
    const isNamed = typeof name !== 'string' || !stack.startsWith(name) || stack.startsWith(origin, name.length)
    const head = isNamed ? stack : `${name}${origin}${stack.slice(name.length)}`
    return `${head}\n${HOP}'${worker}'${op === undefined ? '' : `, called as ${op}`} ---`
  })
}

/**
 * Runs `fn`. An error from deep inside has more frames than V8 keeps, and none of the program's: it gets those that called `entry`, in which
 * this is called.
 */
export function withCallerInStack<T>(entry: (...args: never[]) => unknown, fn: () => T): T {
  try {
    return fn()
  } catch (error) {
    appendLines(error, entry)
    throw error
  }
}

/** The lines that lead to `below` and are not in its stack yet. */
function appendLines(error: unknown, below: (...args: never[]) => unknown): void {
  if (typeof error !== 'object' || error === null || traced.has(error)) return
  addToStack(error, (stack) => {
    // Another worker may have been at the same line.
    const here = stack.slice(stack.lastIndexOf(HOP) + 1)
    const missing = stackLines(below).filter((line) => !here.includes(placeOf(line)))
    if (missing.length > 0) traced.add(error)
    return missing.map((line) => `\n${line}`).join('')
  })
}

function addToStack(error: unknown, textFor: (stack: string) => string): void {
  changeStack(error, (stack) => stack + textFor(stack))
}

/** An error whose stack cannot be written stays as it is: the error matters more. */
function changeStack(error: unknown, changed: (stack: string) => string): void {
  if (typeof error !== 'object' || error === null || !Object.isExtensible(error)) return
  try {
    const { stack } = error as { stack?: unknown }
    if (typeof stack !== 'string') return
    const value = changed(stack)
    if (value !== stack) Object.defineProperty(error, 'stack', { value, writable: true, configurable: true })
  } catch {
    // A getter that throws, a proxy, a property that is for good, a stackTraceLimit that cannot be set.
  }
}

/** The frames that called `below`, and those that await them. */
function stackLines(below: (...args: never[]) => unknown): string[] {
  const { stackTraceLimit } = Error
  Error.stackTraceLimit = FRAMES_MAX
  const holder: { stack?: string } = {}
  Error.captureStackTrace(holder, below)
  Error.stackTraceLimit = stackTraceLimit
  return String(holder.stack).split('\n').slice(1)
}

/** The file and the line, without the column. */
function placeOf(line: string): string {
  return /\(?([^( ]*:\d+):\d+\)?$/.exec(line)?.[1] ?? line
}
