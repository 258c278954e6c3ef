/** The errors of checkpoints that more than one of these files throws. */
import { isPostgradError, PostgradError } from '@postgrad/base'

const REMEDIES = {
  plan: 'See the cause.',
  look: 'See the cause, and look at the disk.',
  save: 'See the cause; earlier checkpoints are as they were.',
  load: 'See the cause; nothing was changed, unless a worker died in the middle.',
  clean: 'The new checkpoint is there; see the cause why older ones could not be removed.',
}
export type CheckpointStage = keyof typeof REMEDIES

/** CHECKPOINT_FAILED of these workers, because of `cause`. */
export function failed(op: CheckpointStage, workers: readonly string[], cause: unknown): PostgradError {
  return new PostgradError('CHECKPOINT_FAILED', {
    op,
    message: `the checkpoint failed on ${workers.map((name) => `'${name}'`).join(', ')}: ${cause instanceof Error ? cause.message : String(cause)}`,
    remedy: REMEDIES[op],
    cause,
    values: { workers },
  })
}

const OWN = ['CORRUPT', 'MISMATCH', 'UNSUPPORTED', 'NOT_FOUND', 'FAILED', 'BUSY'].map((end) => `CHECKPOINT_${end}`)

/** The error itself where it is one of checkpoints, or says that an argument is wrong. */
export function failedUnlessTyped(op: CheckpointStage, workers: readonly string[], error: unknown): unknown {
  return [...OWN, 'INVALID_ARGUMENT', 'TIMEOUT_INVALID'].some((code) => isPostgradError(error, code)) ? error : failed(op, workers, error)
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
