/** The errors that all stores share. */
import { PostgradError } from '@postgrad/base'
import { ownEnd, tooManyOpenFiles } from '@postgrad/base/internal'

export function storeTimeout(op: string, missing: readonly string[], timeoutMs: number): PostgradError {
  return new PostgradError('STORE_TIMEOUT', {
    op,
    message: `after ${Math.round(timeoutMs)} ms the store still lacked ${missing.map((key) => `'${key}'`).join(', ')}`,
    remedy: 'Look at the worker that should set it, or pass a longer { timeoutMs } (0: without a limit).',
    values: { missing, timeoutMs },
  })
}

export function storeCancelled(op: string, reason: unknown): PostgradError {
  return new PostgradError('STORE_CANCELLED', {
    op,
    message: 'the wait was cancelled by its signal',
    remedy: 'Catch this where a wait may be cancelled.',
    ...(reason === undefined ? {} : { cause: reason }),
  })
}

/** Of a store that this program has closed. */
export function storeClosed(op: string): PostgradError {
  return ownEnd(closed(op, 'the store has been closed', 'Close a store after its last use.'))
}

/** Of a store whose server has ended, or is out of reach. */
export function storeEnded(op: string, why: string, cause?: unknown): PostgradError {
  return closed(op, why, 'Look at the process that keeps the store, rank 0.', cause)
}

function closed(op: string, message: string, remedy: string, cause?: unknown): PostgradError {
  return new PostgradError('STORE_CLOSED', { op, message, remedy, ...(cause === undefined ? {} : { cause }) })
}

export function notANumber(key: string): PostgradError {
  return new PostgradError('STORE_NOT_A_NUMBER', {
    op: 'add',
    expected: `a counter under '${key}', and a sum within ±(2^53 - 1)`,
    got: 'something else',
    remedy: 'Keep counters under keys of their own.',
    values: { key },
  })
}

export function storeLimit(op: string, what: string, limit: number, values: Record<string, unknown> = {}): PostgradError {
  return new PostgradError('STORE_LIMIT', {
    op,
    expected: `at most ${limit} ${what}`,
    got: 'more',
    remedy: 'A store is for small values by which workers find each other. Send larger ones by calls.',
    values: { limit, what, ...values },
  })
}

export function storeLocked(op: string, path: string, holder: string, waitedMs: number): PostgradError {
  return new PostgradError('STORE_LOCKED', {
    op,
    message: waitedMs === 0 ? `'${path}' is held by ${holder}` : `for ${Math.round(waitedMs)} ms '${path}' was held by ${holder}`,
    remedy: 'If that process has ended, for example because its machine restarted, delete the lock.',
    values: { path, holder, waitedMs },
  })
}

export function storeFileFailed(op: string, path: string, cause: unknown): PostgradError {
  return new PostgradError('STORE_FILE_FAILED', {
    op,
    message: `'${path}' cannot be used: ${(cause as { message?: unknown })?.message ?? cause}`,
    remedy: tooManyOpenFiles(op, cause)?.remedy ?? 'Look at the folder, its permissions and the space on its disk.',
    values: { path },
    cause,
  })
}

export function storeFileDamaged(op: string, path: string, at: number): PostgradError {
  return new PostgradError('STORE_FILE_DAMAGED', {
    op,
    expected: `records of a store in '${path}'`,
    got: at === 0 ? 'something else' : `something else from byte ${at} on`,
    remedy: 'It was left as it is. Begin with a new file if nothing in it is needed.',
    values: { path, at },
  })
}
