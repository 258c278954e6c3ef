/** Errors of stores, whatever carries them. */
import { PostgradError } from '@postgrad/base'
import { ownEnd, tooManyOpenFiles } from '@postgrad/base/internal'

export function storeTimeout(op: string, missing: readonly string[], timeoutMs: number): PostgradError {
  return new PostgradError('STORE_TIMEOUT', {
    op,
    message: `after ${Math.round(timeoutMs)} ms there was no ${missing.map((key) => `'${key}'`).join(', ')} in the store`,
    remedy: 'Look at the worker that should set it, or pass a longer { timeoutMs } (0 is no limit).',
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
  return ownEnd(storeEnded(op, 'the store has been closed'))
}

/** Of one that has ended otherwise. */
export function storeEnded(op: string, why: string, cause?: unknown): PostgradError {
  return new PostgradError('STORE_CLOSED', {
    op,
    message: why,
    remedy: 'Close a store only when nobody uses it any more.',
    ...(cause === undefined ? {} : { cause }),
  })
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
    remedy:
      'A store is for what workers need to find each other; larger things belong into messages. The limits are options of whoever keeps the store.',
    values: { limit, what, ...values },
  })
}

export function storeLocked(op: string, path: string, holder: string, waitedMs: number): PostgradError {
  return new PostgradError('STORE_LOCKED', {
    op,
    message: `for ${Math.round(waitedMs)} ms '${path}' was locked by ${holder}`,
    remedy: 'If that does not use the file any more (its machine was restarted, say), delete the lock.',
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
