/** Errors of stores, whatever carries them. */
import { PostgradError } from '@postgrad/base'

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

export function storeClosed(op: string): PostgradError {
  return new PostgradError('STORE_CLOSED', {
    op,
    message: 'the store has been closed',
    remedy: 'Close a store only when nobody uses it any more.',
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
