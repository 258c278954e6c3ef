/** The errors of checkpoints that more than one of these files throws. */
import { isPostgradError, PostgradError } from '@postgrad/base'

/** The user's call. */
export type CheckpointOp = 'save' | 'load' | 'list' | 'latest'

const UNREADABLE = { what: 'the checkpoints could not be read', remedy: 'See the cause, and look at the disk.' }
const TEXTS: Readonly<Record<CheckpointOp, { readonly what: string; readonly remedy: string }>> = {
  save: { what: 'the checkpoint failed', remedy: 'See the cause; earlier checkpoints are as they were.' },
  load: { what: 'the checkpoint failed', remedy: 'See the cause; nothing was changed, unless a worker died in the middle.' },
  list: UNREADABLE,
  latest: UNREADABLE,
}

/** CHECKPOINT_FAILED of these workers, because of `cause`. */
export function failed(op: CheckpointOp, workers: readonly string[], cause: unknown, { what, remedy } = TEXTS[op]): PostgradError {
  return new PostgradError('CHECKPOINT_FAILED', {
    op,
    message: `${what} on ${workers.map((name) => `'${name}'`).join(', ')}: ${cause instanceof Error ? cause.message : String(cause)}`,
    remedy,
    cause,
    values: { workers },
  })
}

/** A save that is complete, and could not remove older checkpoints. */
export function notCleaned(worker: string, cause: unknown): PostgradError {
  return failed('save', [worker], cause, {
    what: 'older checkpoints could not be removed',
    remedy: 'The new checkpoint is complete. See the cause; the next save tries again.',
  })
}

const OWN = ['CORRUPT', 'MISMATCH', 'UNSUPPORTED', 'NOT_FOUND', 'FAILED', 'BUSY'].map((end) => `CHECKPOINT_${end}`)

/** The error itself where it is one of checkpoints, or says that an argument is wrong. */
export function failedUnlessTyped(op: CheckpointOp, workers: readonly string[], error: unknown): unknown {
  if (![...OWN, 'INVALID_ARGUMENT', 'TIMEOUT_INVALID'].some((code) => isPostgradError(error, code))) return failed(op, workers, error)
  return (error as PostgradError).op === ANY_OP ? nameOp(error as PostgradError, op) : error
}

/** In place of the user's call in errors of code that does not know for which call it reads or writes. */
const ANY_OP = 'checkpoint'

/** Changes the error, which was made or decoded for this call alone. Node prints its stack, which begins with the message. */
export function nameOp(error: PostgradError, op: string): PostgradError {
  const message = `${op}${error.message.slice(error.op.length)}`
  const stack = error.stack?.replace(error.message, () => message)
  Object.assign(error, { op, message })
  if (stack !== undefined) error.stack = stack
  return error
}

export function corrupt(path: string, expected: string, got: string, cause?: unknown): PostgradError {
  return new PostgradError('CHECKPOINT_CORRUPT', {
    op: 'checkpoint',
    expected: `${expected} in '${path}'`,
    got,
    remedy: 'Load an earlier checkpoint, and look at the disk.',
    values: { path },
    ...(cause === undefined ? {} : { cause }),
  })
}

export function mismatch(worker: string, expected: string, got: string): PostgradError {
  return new PostgradError('CHECKPOINT_MISMATCH', {
    op: 'load',
    expected: `on worker '${worker}', ${expected}`,
    got,
    remedy: 'Load it into the same program with the same workers, modules and optimizers.',
    values: { worker },
  })
}

export function unsupported(
  path: string,
  got: string,
  remedy = 'Save tensors, numbers, texts, lists and plain objects.',
  cause?: unknown,
): PostgradError {
  return new PostgradError('CHECKPOINT_UNSUPPORTED', {
    op: 'checkpoint',
    expected: `tensors and plain data as '${path}'`,
    got,
    remedy,
    values: { path },
    ...(cause === undefined ? {} : { cause }),
  })
}
