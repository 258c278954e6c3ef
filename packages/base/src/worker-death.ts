/**
 * The death of a worker: its cause, and the one error for all who wait for it. A death is noticed by a peer whose link has closed, the main thread
 * whose thread has ended, a pool, a simulation.
 */
import { PostgradError, tooManyOpenFiles, type WorkerHop } from './errors.js'
import { placeOfThrown } from './program-frames.js'

/**
 * Why a worker ended, as `values.cause` of WORKER_DIED names it:
 *
 * - `left`: the worker was asked to end, by `leave`, `restart` or `shutdown`. It did not die, but its values are gone.
 * - `link-closed`: its link has closed; the other workers know nothing more.
 * - `exited`: it called `process.exit`, or it had ended before the asking worker began.
 * - `out-of-memory`: its JavaScript heap reached the limit (`resourceLimits`).
 * - `uncaught-exception`: its code threw an error that nothing caught.
 * - `unhandled-rejection`: a promise of its code was rejected, and nothing handled that.
 * - `killed`: it was ended from outside: by `kill`, by a `launch`, join or close that did not wait for it, or by the crash of a simulation.
 * - `stalled`: its thread was blocked for `stallMs`, and it was ended for that (`onStall: 'kill'`).
 * - `process-ended`: its process has ended with all of its workers: by a native crash, for lack of memory, or by a signal.
 */
export type DeathCause =
  | 'left'
  | 'link-closed'
  | 'exited'
  | 'out-of-memory'
  | 'uncaught-exception'
  | 'unhandled-rejection'
  | 'killed'
  | 'stalled'
  | 'process-ended'

/** How a worker ended, as far as its observer knows. */
export interface WorkerDeath {
  /** Null: a thread of a pool, which has no name. */
  readonly worker: WorkerHop | null
  readonly cause: DeathCause
  /** For a reader: what the link said, what the thread threw. '' for nothing. */
  readonly detail: string
  readonly exitCode?: number
  /** Thrown and not caught: the `cause` of the error, or the cause of TOO_MANY_OPEN_FILES there. */
  readonly thrown?: unknown
}

/** Further facts, known where the error is made. */
export interface DeathContext {
  /** The id under which the worker's name lives on. */
  readonly restartedAs?: number | null
  /** Default: what peers can do. */
  readonly remedy?: string
  /** Lost with the worker, for `values`. */
  readonly about?: Readonly<Record<string, unknown>>
}

/**
 * The error for all who wait for a dead worker. Code WORKER_DIED; values: worker, workerId (both null for a thread of a pool), cause, and where
 * there is one: detail, exitCode, restartedAs (the id under which its name lives on), and what `about` adds.
 */
export function workerDied(op: string, death: WorkerDeath, { restartedAs = null, remedy, about = {} }: DeathContext = {}): PostgradError {
  const { worker, cause, detail, exitCode, thrown } = death
  const files = tooManyOpenFiles(op, thrown)
  const who = worker === null ? 'a thread of the pool' : `worker '${worker.name}' (id ${worker.id})`
  const how = cause === 'left' ? 'left the cluster' : `died: ${cause}${detail === '' ? '' : `, ${detail}`}`
  const after = restartedAs === null ? '' : `; its name lives on as a new worker (id ${restartedAs})`
  return new PostgradError('WORKER_DIED', {
    op,
    message: `${who} ${how}${thrown === undefined ? '' : inBrackets(placeOfThrown(thrown))}${after}`,
    remedy: restartedAs === null ? (files?.remedy ?? remedy ?? (cause === 'left' ? LEFT : DIED)) : RESTARTED,
    values: {
      worker: worker?.name ?? null,
      workerId: worker?.id ?? null,
      cause,
      ...(detail === '' ? {} : { detail }),
      ...(exitCode === undefined ? {} : { exitCode }),
      ...(restartedAs === null ? {} : { restartedAs }),
      ...about,
    },
    ...(thrown === undefined ? {} : { cause: files ?? thrown }),
  })
}

/** A reader of the first line alone finds the line of the program. */
const inBrackets = (place: string): string => (place === '' ? '' : ` (${place})`)

const LEFT = 'End all use of a worker before it leaves; cluster.onWorkerLeft of launch notifies you when it has left.'
/** The remedy for a peer of a worker that died. `launch` and `init` add where to look. */
export const DIED = 'Its values are lost; a worker started again under its name has a fresh id.'
const RESTARTED = 'Call it by its name; what the former worker held is lost, so make values and references to them again.'

/** The cause of a thread's end by what it threw. `isRejection`: Node threw it, for a promise. */
export function causeOfThrown(thrown: unknown, isRejection: boolean): 'out-of-memory' | 'uncaught-exception' | 'unhandled-rejection' {
  const { code } = (thrown ?? {}) as { code?: unknown }
  if (code === 'ERR_WORKER_OUT_OF_MEMORY') return 'out-of-memory'
  return isRejection ? 'unhandled-rejection' : 'uncaught-exception'
}

/**
 * For a death that nobody waits for or listens to: a warning of the process with the stack of what was thrown, which names the functions and the workers that it has passed,
 * and an exit code other than 0, as Node ends a process for the error of a thread that nobody listens to. A thread that ended itself with exit code 0 is only warned of.
 */
export function warnOfDeath(error: PostgradError): void {
  const stack = (error.cause as { stack?: unknown } | null | undefined)?.stack
  process.emitWarning(error.message, { type: error.code, ...(typeof stack === 'string' ? { detail: stack } : {}) })
  if (error.values.exitCode !== 0) process.exitCode ??= 1
}
